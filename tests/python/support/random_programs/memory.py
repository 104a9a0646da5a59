"""The arrays of a run: fields, and NumPy arrays in any memory order and alignment."""

import numpy as np

import tilewave as tw


#: Letters that a table of numbers may be given as, by the type of these.
LETTERS = {"u1": ("bytes", "S1"), "u4": ("str", "U1")}


def laid_out(values, layout):
    """A copy of some values in memory that lies otherwise, or as letters."""
    if layout in ("bytes", "str"):
        return bytes(values) if layout == "bytes" else "".join(map(chr, values))
    if layout in ("S1", "U1"):
        return values.copy().view(layout)
    if layout == "F":
        return np.array(values, order="F")
    if layout == "negative":
        back = (slice(None, None, -1),) * values.ndim
        return np.array(values[back], order="C")[back]
    if layout == "strided" and values.size < 1 << 20:  # many dimensions make it much larger
        large = np.zeros([2 * n for n in values.shape], values.dtype)
        view = large[(slice(None, None, 2),) * values.ndim]
    elif layout == "offset":
        large = np.zeros([n + 3 for n in values.shape], values.dtype)
        view = large[tuple(slice(1, 1 + n) for n in values.shape)]
    elif layout == "unaligned":
        buffer = np.zeros(values.nbytes + 1, "u1")
        view = buffer[1:].view(values.dtype).reshape(values.shape)
    else:
        view = np.empty_like(values, order="C")
    view[...] = values
    if layout == "read-only":
        view.setflags(write=False)
    return view


def given(program, setting, context):
    """What the nests are given, by name."""
    found = {}
    for name, values in setting.values.items():
        if name in setting.windows:
            found[name] = _window(values, setting.windows[name], context)
        elif name in setting.aliases:
            found[name] = found[setting.aliases[name]]
        elif name in setting.layouts:
            found[name] = laid_out(values, setting.layouts[name])
        else:
            more = {"history": setting.history[name]} if name in setting.history else {}
            more |= {"halo": setting.halos[name]} if name in setting.halos else {}
            found[name] = tw.field(values.shape, values.dtype, init=values, context=context, **more)
            if name in setting.moved and values.size:
                tw.run(_stays(values.ndim), A=found[name], plan=setting.moved[name], context=context)
    for name, other in setting.overlaps.items():
        both = np.concatenate([setting.values[other][:1], setting.values[name]])
        found[other], found[name] = both[:-1], both[1:]
    return found


def _stays(dims):
    """A nest that moves a field to another layout, and leaves its values."""
    at = ", ".join("ijklmp"[:dims])
    return tw.nest_from(f"def stays(A, {at}): A[{at}] = A[{at}]")


def _window(values, how, context):
    """A field of which a run keeps a rolling window only, or what a run makes one of."""
    if how == "scratch":
        return tw.scratch(values.dtype, values.flat[0])
    same = [values.size > 0 and bool(np.all(values == values.take([0], axis))) for axis in range(values.ndim)]
    function = lambda *x: values[tuple(0 if known else at for known, at in zip(same, x, strict=True))]
    init = {"array": values, "function": function, "number": values.flat[0] if values.size else 0}[how]
    return tw.field(values.shape, values.dtype, init=init, keep="window", context=context)
