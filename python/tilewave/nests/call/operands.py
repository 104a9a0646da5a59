"""How the arrays of a call lie in memory during its run: decided once, before anything is compiled or looked up by
it.
"""

import math

import numpy as np

from tilewave import _core
from tilewave.field.field import Field
from tilewave.nest.changed import has_time
from tilewave.nest.order_free import nothing


def memory_form(value):
    """How an array lies in a run, hashable: whatever is compiled in or planned from its memory follows from it.

    A field lies as the plan wants. A NumPy array is used where it is, or, where it is not aligned, as a copy in C
    order.
    """
    if isinstance(value, Field):
        return "field", value.shape, value.keep, value._cuts
    return ("copied", value.shape) if copied(value) else ("in place", value.shape, value.strides)


def order_of(value):
    """The same of arrays of any shape: what lies in which order, and the distance of elements that follow each
    other."""
    if isinstance(value, Field):
        return "field", value.keep, value.ndim
    if copied(value):
        return "copied", value.ndim
    strides = [abs(stride) for stride in value.strides]
    return "in place", min(strides, default=0), tuple(sorted(range(value.ndim), key=strides.__getitem__))


def memory_of(array):
    """Equal for arrays that are one field, or one NumPy array's elements in the same place."""
    if isinstance(array, Field):
        return id(array)
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str


def copied(array):
    """Whether a run works on a copy of a NumPy array, in C order: kernels load and store aligned elements only."""
    return not array.flags.aligned


def tables_of(nest, arrays):
    """The tables of a nest as its kernel gets them, by name: aligned. Of a field that is updated in any order what this
    rank adds to it, nothing yet."""
    tables = {}
    for name in nest.tables:
        table = arrays[name]
        if isinstance(table, Field) and name in nest.updates:
            table = np.full(table.shape, nothing(nest.updates[name].op, table.dtype), table.dtype)
        elif isinstance(table, np.ndarray) and copied(table):
            table = np.array(table, order="C")
        tables[name] = table
    return tables


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
    for view, operand in zip(nest.views, operands, strict=True):
        operand.mirrored = has_time(nest, view, arrays[view.array])
    return operands, copies


def replicated_fields(nest, arrays, context, steps):
    """The fields that are only read, by a nest with a pivot or that reads along whole axes; or that lack a loop index
    which ranks may cut, are read in several orders or with several factors of an index, or are tables.
    """
    cut = set() if context.size == 1 else {*nest.indices}
    if steps is not None:
        cut -= {nest.time}  # which stays whole on a rank
    found = dict.fromkeys(
        view.array
        for view in nest.views
        if nest.pivot or nest.parameters.wholes or cut - {*view.axes} or nest.axes.get(view.array) != view.indices
    )
    factors = {}
    for view in nest.views:
        factors.setdefault(view.array, set()).add(tuple(scale for scale, _ in view.all_phases()))
    found.update(dict.fromkeys(name for name, several in factors.items() if len(several) > 1))
    found.update(dict.fromkeys(name for name in nest.tables if name not in nest.updates))  # those of batches
    return [name for name in found if isinstance(arrays[name], Field) and name not in nest.written]


def memory_in_c_order(value):
    """The memory of a field, where this rank has all of it in C order; else None."""
    if value.context.size > 1:
        return None
    local = value._view(0)
    strides = tuple(math.prod(value.shape[d + 1 :]) * value.dtype.itemsize for d in range(value.ndim))
    return local if local.strides == strides else None


def copies_of(arrays, names):
    """Bytes of the copies that each rank needs to have fields whole, by name."""
    return {
        name: arrays[name].size * arrays[name].dtype.itemsize
        for name in names
        if memory_in_c_order(arrays[name]) is None
    }


def as_replicated(value):
    """A field as an array that lies like what each rank will have of it whole."""
    memory = memory_in_c_order(value)
    return np.zeros(value.shape, value.dtype) if memory is None else memory
