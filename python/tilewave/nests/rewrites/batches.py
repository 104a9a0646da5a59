"""Which calls are batches: many equal problems of inner loops, a lane of a vector each."""

import dataclasses
import itertools
import math

import numpy as np

from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.kernel.compile import find_types
from tilewave.nest.batch import BOUNDS, WHERE, BatchNest, before, buffers_of, outer_loops
from tilewave.nest.bounds import loop_bounds, loop_directions
from tilewave.nest.box import iteration_box, shapes_of
from tilewave.nest.changed import remembered
from tilewave.nests.call.operands import copied, memory_in_c_order

#: Bytes of the vectors of a point of all lanes: several, whose operations overlap.
VECTORS_BYTES = 256
#: Bytes of the buffers of one lane of a rank from which less lanes are taken, and from which there is no batch.
BUFFERS_BYTES, MOST_BUFFERS_BYTES = 1 << 20, 16 << 20
#: The fewest problems of a batch, and lanes.
LEAST_LANES = 8

#: Elements of what an array is before the run, at most.
MOST_BEFORE = 1 << 23

#: Bounds of loop indices that a body may compute with.
INDEX_LIMIT = 2**30


def batched(call):
    """A call as a batch of many problems; None where it is none."""
    nest, context, arrays, loops = call.nest, call.context, call.arrays, call.loops
    if loops.steps is not None or loops.periodic or call.reduce or call.halos or nest.pivot or call.without("batches"):
        return None
    if not nest.written or nest.inner:
        return None
    windows = {name for name in nest.written if isinstance(arrays[name], Field) and arrays[name].keep == "window"}
    in_order = any(None in dependence.vector for dependence in nest.dependences)
    count = outer_loops(nest) if windows or in_order else 0
    if not count or len(windows) == len(nest.written):
        return None
    shapes = shapes_of(nest, arrays)
    bounds = loop_bounds(nest.indices, iteration_box(nest, shapes), loops.over)
    down = {
        index
        for index, step in zip(nest.indices, loop_directions(nest.indices, loops.reverse), strict=True)
        if step < 0
    }
    ranges = _inner_ranges(bounds, count)
    buffers = buffers_of(nest, count, windows, down)
    if ranges is None or buffers is None or any(abs(end) >= INDEX_LIMIT for ends in bounds.box for end in ends):
        return None
    memory = _memory_of(context, arrays, buffers)
    lanes = 0 if memory is None else _lanes(context, arrays, buffers, nest.indices, bounds.box, count)
    if not lanes:
        return None
    forms = tuple(tuple(tuple((factors, d) for factors, _, d in side) for side in sides) for sides in ranges)
    downwards = tuple(index in down for index in nest.indices[count:])
    made = BatchNest(nest, count, buffers, forms, downwards, lanes)
    if call.plan_loops not in (0, len(made.indices)) or not made.views:  # what has outer indices only bounds the loops
        return None
    found = {name: arrays[name] for name in made.arrays if name in arrays} | memory
    for name in windows:
        found[before(name)] = _before(arrays[name], nest.axes[name], made.inner)
        if found[before(name)] is None:
            return None
    inner_box = bounds.box[count:]
    constants = [constant for sides in ranges for side in sides for _, constant, _ in side]
    found[BOUNDS] = np.array([*itertools.chain(*inner_box), *constants], np.int64)
    found[WHERE] = np.zeros(len(made.inner), np.int64)
    key = "batch", made.code_signature(), call.types()
    if not remembered(nest, key, lambda: _is_plain(made, found, call.scalars, call.captured)):
        return None
    over = {index: bounds.box[k] for k, index in enumerate(made.outer)} | {
        index: ends for index, ends in (loops.over or {}).items() if index in made.outer
    }
    loops = dataclasses.replace(
        loops,
        over=over,
        reverse=(),
        inner=tuple((index, *ends) for index, ends in zip(made.inner, inner_box, strict=True)),
        inner_points=_points(inner_box, ranges),
    )
    return dataclasses.replace(call, nest=made, arrays={name: found[name] for name in made.arrays}, loops=loops)


def _inner_ranges(bounds, count):
    """For each inner loop its lower and upper bounds, (factors of inner indices, constant, divisor); None where they
    depend on outer ones.
    """
    found = []
    for sides in bounds.ranges[count:]:
        if any(any(factors[:count]) for side in sides for factors, *_ in side):
            return None
        found.append(tuple(tuple((tuple(factors[count:]), *rest) for factors, *rest in side) for side in sides))
    return found


def _points(box, ranges, outer=()):
    """Points of inner loops."""
    level = len(outer)
    if level == len(box):
        return 1
    low, high = (
        pick((constant + sum(c * x for c, x in zip(factors, outer))) // d for factors, constant, d in side)
        for pick, side in zip((max, min), ranges[level], strict=True)
    )
    count = max(0, high - low)
    if not any(any(factors) for sides in ranges[level + 1 :] for side in sides for factors, *_ in side):
        for k in range(level + 1, len(box)):
            count *= max(0, box[k][1] - box[k][0])
        return count
    return sum(_points(box, ranges, (*outer, x)) for x in range(low, high))


def _memory_of(context, arrays, buffers):
    """What is a table to the kernel, by name: NumPy arrays, and fields that each rank gets whole; None where some array
    cannot be one.
    """
    found = {}
    for buffer in buffers:
        value = arrays[buffer.array]
        if buffer.kind == "outer" or (buffer.written and not buffer.stored):
            continue
        if isinstance(value, Field) and buffer.written:
            value = memory_in_c_order(value) if value.keep == "all" else None
        if value is None or (buffer.written and (copied(value) or context.size > 1)):
            return None
        found[buffer.array] = value
    return found


def _lanes(context, arrays, buffers, indices, box, count):
    """Points of the batch that are computed at once; 0 where there are too few, or their buffers too large."""
    dtypes = [arrays[buffer.array].dtype for buffer in buffers]
    inner = list(zip(indices, box, strict=True))[count:]
    low, high = box[count - 1]
    points = -(-(high - low) // max(context.threads, 1))
    if high - low < LEAST_LANES or any(dtype.kind == "c" for dtype in dtypes):
        return 0
    lanes, bytes_ = VECTORS_BYTES // max(dtype.itemsize for dtype in dtypes), 0
    for buffer, dtype in zip(buffers, dtypes, strict=True):
        axes = buffer.places[0].axes
        if buffer.kind == "packed":
            bytes_ += math.prod(ends[1] - ends[0] for index, ends in inner if index in axes) * dtype.itemsize
        elif buffer.kind == "ring":  # of two planes
            planes = inner[1:] if len(inner) > 1 else inner
            bytes_ += 2 * math.prod(ends[1] - ends[0] for _, ends in planes) * dtype.itemsize
    while lanes > LEAST_LANES and (lanes // 2 >= points or lanes * bytes_ > BUFFERS_BYTES):
        lanes //= 2
    return 0 if lanes * bytes_ > MOST_BUFFERS_BYTES else lanes


def _before(field, axes, inner):
    """What a rolling-window field is before the run, by inner indices; None where it depends on the batch, or on what
    else no array tells.
    """
    extents = [field.shape[axes.index(index)] for index in inner]
    init = field._init
    if init is None:
        init = np.zeros((), field.dtype)
    if not callable(init):
        if any(init.strides):
            return None
        return np.broadcast_to(init.reshape(-1)[0] if init.size else init.dtype.type(0), extents)
    if np.prod(extents) > MOST_BEFORE:
        return None

    def values(most, outer):
        """Of the first elements along each index, so many."""
        index = np.ogrid[tuple(slice(min(n, most if a in inner else outer)) for n, a in zip(field.shape, axes))]
        return np.asarray(init(*index))

    try:
        few = values(2, 2)
        if few.ndim > len(axes) or any(
            few.shape[few.ndim - len(axes) + k] > 1
            for k, axis in enumerate(axes)
            if axis not in inner and few.ndim - len(axes) + k >= 0
        ):
            return None
        whole = np.empty([n if a in inner else 1 for n, a in zip(field.shape, axes, strict=True)], field.dtype)
        whole[...] = values(max(extents), 1)
    except Exception:
        return None  # no function of arrays: it is asked for one element after the other
    order = [k for k, axis in enumerate(axes) if axis not in inner] + [axes.index(index) for index in inner]
    return whole.transpose(order).reshape(extents)


def _is_plain(made, arrays, scalars, captured):
    """Whether a body of these types calls no function for a point, and has no place that may raise."""
    try:
        return find_types(made, {name: arrays[name].dtype for name in made.arrays}, scalars, captured).vectors
    except ConfigError:
        return False  # the nest says why
