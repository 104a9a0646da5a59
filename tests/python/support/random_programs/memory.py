"""The arrays of a run: fields, and NumPy arrays in any memory order and alignment."""

import numpy as np

import tilewave as tw

#: Letters that a table of numbers may be given as, by the type of these.
LETTERS = {"u1": ("bytes", "S1"), "u4": ("str", "U1")}

#: What the bytes around an array are, and how many lie before and after it.
AROUND, MARGIN = 0xA5, 64


class Room(np.ndarray):
    """Bytes that an array lies in."""


def laid_out(values, layout):
    """A copy of some values in memory that lies otherwise, with bytes around it, or as letters."""
    if layout in ("bytes", "str"):
        return bytes(values) if layout == "bytes" else "".join(map(chr, values))
    like = values.view(layout) if layout in ("S1", "U1") else values
    every, axes, order = slice(None), values.ndim, "C"
    outer, part = list(values.shape), (every,) * axes
    if layout == "F":
        order = "F"
    elif layout == "negative":
        part = (slice(None, None, -1),) * axes
    elif layout == "strided" and values.size < 1 << 20:  # many dimensions make it much larger
        outer, part = [2 * n for n in outer], (slice(None, None, 2),) * axes
    elif layout == "offset":
        part = tuple(slice(1, 1 + n) for n in outer)
        outer = [n + 3 for n in outer]
    whole = np.empty(outer, like.dtype, order)
    there = whole[(*part, ...)]
    first = MARGIN + there.ctypes.data - whole.ctypes.data + (layout == "unaligned")
    room = Room(whole.nbytes + 2 * MARGIN + 1, "u1")
    room[:] = AROUND
    view = np.ndarray(there.shape, like.dtype, room, first, there.strides)
    view[...] = like
    if layout == "read-only":
        view.setflags(write=False)
    return view


def written_outside(array):
    """Whether bytes around an array of `laid_out` have changed."""
    if not isinstance(room := getattr(array, "base", None), Room):
        return False
    now = room.copy()
    first = array.ctypes.data - room.ctypes.data
    np.ndarray(array.shape, f"V{array.itemsize}", now, first, array.strides)[...] = bytes([AROUND] * array.itemsize)
    return bool((now != AROUND).any())


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
