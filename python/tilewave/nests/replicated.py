"""Fields that every rank gets whole for a run: those that are read otherwise than ranks cut the loops."""

import math

import numpy as np

from tilewave.field.field import Field


def replicated_fields(nest, arrays, context, steps):
    """The fields that are only read, and lack a loop index that ranks may cut, or are read in several orders or with
    several factors of an index.
    """
    cut = set() if context.size == 1 else {*nest.indices}
    if steps is not None:
        cut -= {nest.time}  # which stays whole on a rank
    found = dict.fromkeys(
        view.array for view in nest.views if cut - {*view.axes} or nest.axes.get(view.array) != view.indices
    )
    factors = {}
    for view in nest.views:
        factors.setdefault(view.array, set()).add(tuple(scale for scale, _ in view.own_phases()))
    found.update(dict.fromkeys(name for name, several in factors.items() if len(several) > 1))
    return [name for name in found if isinstance(arrays[name], Field) and name not in nest.written]


def memory_in_c_order(value):
    """A field's own memory, where this rank has all of it in C order; else None."""
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
    own = memory_in_c_order(value)
    return np.zeros(value.shape, value.dtype) if own is None else own


def count_copies(given, on_one_rank, plan):
    """Note the fields that each rank gets whole in a plan that was chosen, and count them, or those of one for all."""
    copies = copies_of(given.whole, given.replicated)
    if copies and not on_one_rank:
        plan.notes["replicated"] = copies
    plan.memory_bytes += sum(copies.values())
    for record in plan.ranked:
        record["memory_bytes"] += sum(copies.values())
