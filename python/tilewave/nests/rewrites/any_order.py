"""Which updates of a call may be made in any order, by the types of their values and the memory that is given."""

import dataclasses
import re

import numpy as np

from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.kernel.compile import find_types
from tilewave.nest.bounds import loop_bounds
from tilewave.nest.changed import has_time, remembered
from tilewave.nest.order_free import OrderFreeNest, last_name, nothing, updates_of
from tilewave.nest.types import ARRAY0
from tilewave.nests.call.operands import copied
from tilewave.nests.call.problem import box_of_loops
from tilewave.patterns import allreduce

#: How what several ranks give is combined.
COMBINED = {
    "max": np.maximum,
    "min": np.minimum,
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def in_any_order(call):
    """A call with the updates whose order does not matter taken out of its nest; None where there are none."""
    nest, arrays, scalars, loops, reduce = call.nest, call.arrays, call.scalars, call.loops, call.reduce
    if call.halos or nest.pivot or loops.inner or call.without("order_free"):
        return None
    asked = reduce.values() if isinstance(reduce, dict) else ()  # others are refused where they are read
    texts = " ".join(text for r in asked for text in getattr(r, "texts", ()))
    updates = {
        name: each
        for name, each in remembered(nest, "updates", lambda: updates_of(nest)).items()
        if _is_taken(nest, each, arrays, loops) and not re.search(rf"\b{name}\b", texts)
    }
    if not updates:
        return None
    box = box_of_loops(nest, arrays, loops.steps, loops.periodic)
    bounds = loop_bounds(nest.indices, box, loops.over)
    last = bounds.last(loops.reverse)
    if bounds.constraints:  # elements may have a last point each
        along = [{i for i, factor in zip(nest.indices, factors) if factor} for factors, _ in bounds.constraints]
        updates = {
            name: each
            for name, each in updates.items()
            if each.op != "last" or last and all(indices <= {*each.lacking} for indices in along)
        }
    key = "order free", *updates, call.types(), nest.code_signature()
    free = remembered(nest, key, lambda: _exact(nest, updates, call.dtypes, scalars, call.captured))
    # An updated array may be what ends the loops.
    if free is nest or not _has_the_box(free, arrays, loops, box):
        return None
    last = last or (0,) * len(nest.indices)  # there is no point
    lasts = {last_name(index): at for index, at in zip(nest.indices, last, strict=True) if index in free.lasts}
    turned = {
        name: arrays[name][::-1]
        for name, update in free.updates.items()
        if has_time(nest, update, arrays[name]) and isinstance(arrays[name], np.ndarray)
    }
    arrays = {**arrays, **turned} if turned else arrays
    return dataclasses.replace(
        call, nest=free, arrays=arrays, scalars={**scalars, **lasts}, after=(*call.after, combine)
    )


def _has_the_box(nest, arrays, loops, box):
    try:
        return box_of_loops(nest, arrays, loops.steps, loops.periodic) == box
    except ConfigError:
        return False


def _is_taken(nest, update, arrays, loops):
    array = arrays[update.array]
    at = dict(zip(update.axes, update.offsets, strict=True))
    # A table has all dimensions, in the order in which they lie in memory, and does not wrap.
    if array.ndim != len(update.axes) or update.array in loops.visited:
        return False
    if any(at.get(index) for index in loops.periodic):
        return False
    there = array.keep == "all" if isinstance(array, Field) else not copied(array)
    return there and (update.op == "last" or array.dtype.kind in "iu")


def _exact(nest, updates, dtypes, scalars, captured):
    """The nest without the updates whose order does not matter for values of these types."""
    if not updates:
        return nest
    free = OrderFreeNest(nest, updates)
    try:
        find_types(free, dtypes, scalars, captured)
    except ConfigError:
        return nest  # which says why
    left = {name: each for name, each in updates.items() if _order_does_not_matter(each, free.types[name], dtypes)}
    return OrderFreeNest(nest, left) if left else nest


def _order_does_not_matter(update, types, dtypes):
    """Values of the array's own type wrap, whatever comes first. Of a wider type the largest and the smallest may be
    taken: an element of a signed array refuses what it cannot hold."""
    dtype = dtypes[update.array]
    if update.op == "last" or dtype.kind == "b":
        return dtype.kind != "b"
    if not types or any(kind.is_float or kind.is_complex for kind in types):
        return False
    if all(not kind.is_python and kind.dtype == dtype for kind in types):
        return True
    refuses = dtype.kind == "i" and all(kind.kind != ARRAY0 for kind in types)
    return refuses and update.op in ("max", "min")


def begin_updates(ready):
    """Have this rank find nothing yet of fields that are updated, in the memory that its kernel knows; local."""
    for name, update in ready.problem.nest.updates.items():
        if isinstance(ready.arrays[name], Field):
            ready.tables[name][...] = nothing(update.op, ready.tables[name].dtype)


def combine(ready):
    """Update the fields by what all ranks have found; collective."""
    nest = ready.problem.nest
    for name, update in nest.updates.items():
        value, found = ready.arrays[name], ready.tables[name]
        if not isinstance(value, Field):
            continue
        if ready.context.size > 1 and found.size:
            last = update.op == "last"  # of one rank, and 0 elsewhere
            bits = found.view(np.uint8) if last and found.ndim else found
            allreduce(bits, np.bitwise_or if last else COMBINED[update.op], out=bits, context=ready.context)
        local, here = value._view(0), value.owned
        if has_time(nest, update, value):
            local, here = local[::-1], (slice(len(found) - here[0].stop, len(found) - here[0].start), *here[1:])
        if update.op != "last":
            COMBINED[update.op](local, found[here], out=local)
            continue
        box = dict(zip(nest.indices, ready.problem.bounds.box, strict=True))
        if ready.loops.steps is not None:  # the problem is of a block of time steps
            first, steps = (
                box[nest.time][0] + ready.first_step,
                ready.loops.steps if ready.steps is None else ready.steps,
            )
            box[nest.time] = first, first + steps
        if all(low < high for low, high in box.values()):
            stored = np.zeros(found.shape, bool)
            stored[
                tuple(
                    slice(box[axis][0] + offset, box[axis][1] + offset)
                    for axis, offset in zip(update.axes, update.offsets, strict=True)
                )
            ] = True
            local[stored[here]] = found[here][stored[here]]
