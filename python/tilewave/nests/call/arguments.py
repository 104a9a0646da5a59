"""The arguments of a call: sorted into arrays and scalars, and checked one by one and against each other."""

import sys

import numpy as np

from tilewave.dtypes import ALL, is_masked
from tilewave.errors import ConfigError
from tilewave.field.create import Scratch
from tilewave.field.field import Field
from tilewave.field.views import is_stale_view
from tilewave.foreign import array_of
from tilewave.nest.box import check_table, wrong_rank
from tilewave.nest.nest import Nest
from tilewave.nest.views import elements_of
from tilewave.plan.fixed import refuse_choices

#: Elements of an array with interleaved strides whose addresses are compared one by one; of a larger one it is refused
#: unseen.
MOST_COMPARED = 1 << 22


def split_arguments(nest, arguments):
    """Split keywords into arrays and scalars."""
    arrays = {name: value for name, value in arguments.items() if name in nest.arrays}
    scalars = {name: value for name, value in arguments.items() if name in nest.scalars}
    if others := {name: value for name, value in arguments.items() if name not in arrays and name not in scalars}:
        refuse_choices(others)
        raise ConfigError(
            f"run: nest {nest.name!r} has no argument {next(iter(others))!r}; allowed: arrays "
            f"{', '.join(nest.arrays)}; scalars {', '.join(nest.scalars) or 'none'}"
        )
    if missing := [name for name in nest.arrays if name not in arrays]:
        raise lacks_array(nest, missing[0])
    return arrays, scalars


def lacks_array(nest, name):
    """Return the error of a call that gives a nest less than its arrays."""
    return ConfigError(
        f"run: nest {nest.name!r} needs its array {name!r}; allowed: {name}=, a field or a NumPy array, beside "
        f"{', '.join(other for other in nest.arrays if other != name) or 'no others'}"
    )


def as_numbers(nests, arguments, copies=False):
    """The arguments with NumPy arrays in place of those of other libraries, and integers in place of bytes and letters
    that a nest, or all of some nests, only read: views of the same memory.
    With `copies`, also those of arrays in another byte order than the processor's.
    """
    nests = nests if isinstance(nests, tuple | list) else (nests,)
    if not all(isinstance(nest, Nest) for nest in nests):
        return arguments
    made = dict(arguments)
    arrays = {name for nest in nests for name in nest.arrays}
    written = {name for nest in nests for name in (*nest.written, *nest.written_tables)}
    for name in arrays & made.keys():
        made[name] = array_of(f"array {name!r}", made[name], name in written)
    for name in (arrays - written) & made.keys():
        value = made[name]
        if isinstance(value, str):
            value = value.encode("utf-32-le" if sys.byteorder == "little" else "utf-32-be")
            made[name] = np.frombuffer(value, np.uint32)
        elif isinstance(value, bytes | bytearray):
            made[name] = np.frombuffer(value, np.uint8)
        elif isinstance(value, np.ndarray):
            if copies and not value.dtype.isnative and value.dtype.kind in "iufcU":
                value = value.astype(value.dtype.newbyteorder("="))
            letter = value.dtype.isnative and {"S1": "u1", "U1": "u4"}.get(value.dtype.str.lstrip("|<>"))
            made[name] = value.view(letter) if letter else value
    return made


def fields_for_scratch(nest, arrays, context, steps):
    """The fields of arrays that were given as scratch: along each index but time as long as the longest other array."""
    longest = {}
    for view in nest.views:
        if isinstance(value := arrays[view.array], Scratch):
            if view.scaled:
                raise ConfigError(
                    f"array {view.array!r}: given scratch, and its subscripts multiply loop indices; allowed: a field"
                )
            continue
        for index, (scale, residue), extent in zip(
            reversed(view.axes), reversed(view.all_phases()), reversed(getattr(value, "shape", ()))
        ):
            extent = elements_of(extent, scale, residue)
            longest[index] = max(longest.get(index, 0), extent)
    made = {}
    for name, value in arrays.items():
        if isinstance(value, Scratch):
            if name in nest.tables or name not in nest.written:
                raise ConfigError(f"array {name!r}: given scratch; allowed: where nest {nest.name!r} writes it")
            axes = nest.axes[name][steps is not None and nest.axes[name][0] == nest.indices[0] :]
            if missing := [index for index in axes if index not in longest]:
                raise ConfigError(
                    f"array {name!r}: given scratch, and no other array has index {missing[0]!r}, "
                    "from which its length would follow; allowed: a field with keep='window'"
                )
            shape = tuple(longest[index] for index in axes)
            init = value.init if callable(value.init) else np.broadcast_to(np.asarray(value.init, value.dtype), shape)
            value = Field(context, shape, value.dtype, "window", init)
        made[name] = value
    return made


def check_arrays(nest, arrays, context):
    """Check what is given for the nest's arrays, one by one and against each other.

    Raises
    ------
    ConfigError
    """
    for name, value in arrays.items():
        check_kind(nest, name, value)
        if value.dtype not in ALL:
            raise ConfigError(f"array {name!r} has dtype {value.dtype}; allowed: {_allowed(nest, name)}")
        if isinstance(value, np.ndarray) and is_stale_view(value):
            raise ConfigError(
                f"array {name!r} is a view of a field from before a run moved the field's values elsewhere; "
                "allowed: the field's local as it is now, or a copy() of the view"
            )
        if isinstance(value, Field) and value.closed:
            raise ConfigError(f"array {name!r} is a field that was closed; allowed: a field that is not")
        if isinstance(value, Field) and value.context is not context:
            raise ConfigError(
                f"array {name!r} is a field of another context than the call's; allowed: fields of one context, "
                "given as context= (context=field.context), or a field made with tilewave.field(..., context=...)"
            )
        if isinstance(value, Field) and value.keep == "window" and name not in nest.written:
            raise ConfigError(
                f"array {name!r} is a field that keeps a rolling window only, and nest {nest.name!r} only reads it; "
                "allowed: a field with keep='all'"
            )
    for view in nest.views:
        shape = arrays[view.array].shape
        if not len(view.axes) - 1 <= len(shape) <= len(view.axes):  # time may be lacking
            raise wrong_rank(nest, view.array, view.axes, shape)
    for name in nest.tables:
        check_table(nest, name, arrays[name].shape)
    _check_fields_once(arrays)
    for name in nest.written:
        written = arrays[name]
        if isinstance(written, np.ndarray):
            if context.size > 1:
                raise ConfigError(
                    f"array {name!r} is written and a NumPy array, on {context.size} "
                    "ranks; allowed: a field, or a NumPy array on one rank"
                )
            if not written.flags.writeable:
                raise ConfigError(
                    f"array {name!r} is written, but its memory is read-only; allowed: a writeable one, such as its "
                    "copy()"
                )
            check_own_elements(name, written)
        for other, value in arrays.items():
            if other != name and _share(value, written):
                raise ConfigError(
                    f"arrays {other!r} and {name!r} share memory; an array that is written must be given once"
                )


def check_kind(nest, name, value):
    """Refuse what is no array."""
    if not isinstance(value, (Field, np.ndarray)) or is_masked(value):
        also = "" if name in nest.written else "; bytes, str and lists, where only read"
        raise ConfigError(f"array {name!r}: given {type(value).__name__}; allowed: a field or a NumPy array{also}")


def _allowed(nest, name):
    """The dtypes of an array of a nest, for a message."""
    names = f"{', '.join(d.name for d in ALL)}, in native byte order"
    if name in nest.written:
        return names
    return f"{names} (`run` takes others for arrays that are only read), and S1, U1, whose letters are read as numbers"


def _check_fields_once(arrays):
    """A field has one place in memory, with the halo of the one array that it is."""
    names = {}
    for name, value in arrays.items():
        if isinstance(value, Field) and (other := names.setdefault(id(value), name)) != name:
            raise ConfigError(
                f"arrays {other!r} and {name!r} share memory: they are one field; "
                "allowed: a field for one array of the nest, under one name in its body"
            )


def _share(a, b):
    if any(isinstance(x, Field) and x.keep == "window" for x in (a, b)):
        return a is b
    if isinstance(a, Field) or isinstance(b, Field):
        return a is b or isinstance(a, np.ndarray) and b._holds(a) or isinstance(b, np.ndarray) and a._holds(b)
    return np.shares_memory(a, b) if a.size and b.size else False


def check_own_elements(name, array):
    """Refuse an array to be written of which two elements share memory: points would depend on each other in ways no
    subscript tells.
    """
    if _elements_share_memory(array):
        raise ConfigError(
            f"array {name!r} is written, and elements of it share memory: shape {array.shape}, strides "
            f"{array.strides}; "
            "allowed: an array whose elements have memory of their own, such as its copy()"
        )


def _elements_share_memory(array):
    dims = sorted((abs(step), extent) for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1)
    reach = array.itemsize  # bytes from the first of some elements to the end of the last
    for step, extent in dims:
        if step < reach:
            break
        reach += step * (extent - 1)
    else:
        return False
    if array.size == 0:
        return False
    if any(step == 0 for step, _ in dims) or array.size > MOST_COMPARED:
        return True
    starts = np.zeros(1, np.int64)
    for step, extent in dims:
        starts = (starts[:, None] + step * np.arange(extent)).ravel()
    starts.sort()
    return bool((np.diff(starts) < array.itemsize).any())
