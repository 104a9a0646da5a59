"""How the arrays of a call lie in memory during its run: decided once, before anything is compiled or looked up by
it.
"""

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.field.field import Field

#: Elements of an array with interleaved strides whose addresses are compared one by one; of a larger one it is refused
#: unseen.
MOST_COMPARED = 1 << 22


def memory_form(value):
    """How an array lies in a run, hashable: whatever is compiled in or planned from its memory follows from it.

    A field lies as the plan wants. A NumPy array is used where it is, or, where it is not aligned, as a copy in C
    order.
    """
    if isinstance(value, Field):
        return "field", value.shape, value.keep, value._cuts
    return ("copied", value.shape) if copied(value) else ("in place", value.shape, value.strides)


def order_of(value):
    """The same of arrays of any shape: what lies in which order, and how far apart elements are that follow each
    other."""
    if isinstance(value, Field):
        return "field", value.keep, value.ndim
    if copied(value):
        return "copied", value.ndim
    strides = [abs(stride) for stride in value.strides]
    return "in place", min(strides, default=0), tuple(sorted(range(value.ndim), key=strides.__getitem__))


def copied(array):
    """Whether a run works on a copy of a NumPy array, in C order: kernels load and store aligned elements only."""
    return not array.flags.aligned


def tables_of(nest, arrays):
    """The tables of a nest as its kernel gets them, by name: aligned."""
    return {
        name: np.array(arrays[name], order="C")
        if isinstance(arrays[name], np.ndarray) and copied(arrays[name])
        else arrays[name]
        for name in nest.tables
    }


def operands_of(nest, arrays, initial):
    """The core's arrays, in the order of ``nest.views``, and what has to be written back.

    Parameters
    ----------
    nest : Nest
    arrays : dict
        Fields and NumPy arrays by name.
    initial : dict
        Of rolling-window arrays: the values of elements that no point computes.

    Returns
    -------
    operands : list of _core.RunArray
    copies : list of (numpy.ndarray, numpy.ndarray)
        Written arrays with the copies that the run changes in their place.
    """
    operands, copies, aligned = [], [], {}
    for view in nest.views:
        name = view.array
        value = aligned.get(name, arrays[name])
        if name in initial:
            operands.append(_core.RunArray.window(initial[name].ctypes.data, len(initial[name]) == 1, initial[name]))
            continue
        if isinstance(value, Field):
            operands.append(_core.RunArray(value._storage))
            continue
        if copied(value):
            copy = aligned[name] = np.array(value, order="C")
            if name in nest.written:
                copies.append((value, copy))
            value = copy
        operands.append(_core.RunArray(*view.last(value.ndim).memory(value), value))
    return operands, copies


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
