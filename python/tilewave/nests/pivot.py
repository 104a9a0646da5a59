"""Runs of nests with a pivot: from the arguments to the report."""

import dataclasses
import math
import threading
import time
import types

import numpy as np

from tilewave import _core
from tilewave.context.lru_cache import LruCache
from tilewave.errors import ConfigError, KernelError, is_integer, shown
from tilewave.field.field import Field
from tilewave.kernel.compile import compile_kernel
from tilewave.nest.bounds import loop_bounds, loop_directions
from tilewave.nests.arguments import check_arrays, split_arguments
from tilewave.nests.execute import explain
from tilewave.nests.operands import copied, memory_in_c_order
from tilewave.nests.report import Report
from tilewave.plan.fixed import fixed_by
from tilewave.plan.plan import Plan

#: Kernels that were used last.
_kernels, _lock = LruCache(16), threading.Lock()

#: Steps of a block, rows of a task. Shortest paths of 2000 nodes, one core of a Xeon, with blocks of 16, 32 and 64
#: steps: doubles 0.85, 0.74 and 1.05 s, 32-bit integers 0.46, 0.38 and 0.44 s.
BLOCK, ROWS = 32, 64

#: How the core numbers what a place of the kernel reads.
POINT, ROW, COLUMN, CORNER, OPERAND = range(5)


@dataclasses.dataclass
class PivotCall:
    """A call, checked on this rank.

    Attributes
    ----------
    nest : Nest
    context : Context
    arrays : dict
        As they were given.
    memory : dict
        NumPy arrays that kernels read or write: aligned; of fields that are only read a copy of the whole, to be
        filled.
    scalars, captured : dict
    bounds : Bounds
    problem : _core.PivotProblem
    plan : Plan
    description : str
        What must be equal on all ranks.
    """

    nest: object
    context: object
    arrays: dict
    memory: dict
    scalars: dict
    captured: dict
    bounds: object
    problem: object
    plan: Plan
    fastmath: bool
    description: str

    @property
    def core_plan(self):
        """The same for the core."""
        return _core.PivotPlan(*self.plan.tile[:2], self.plan.factors[1])

    def schedules(self):
        """Those of all ranks."""
        return {
            rank: _core.pivot_schedule(self.problem, self.core_plan, rank, self.context.size)
            for rank in range(self.context.size)
        }


def checked(nest, context, loops, plan, fastmath, arguments, reduce=None, points=None):
    """The `PivotCall` of arguments; local.

    Raises
    ------
    ConfigError
        For what a nest with a pivot cannot be run with.
    """
    given = {"reduce": reduce, "steps": loops.steps, "periodic": loops.periodic, "inject, record": points}
    if wrong := next((name for name, value in given.items() if value or name == "steps" and value is not None), None):
        raise ConfigError(
            f"{wrong}= was given, and nest {nest.name!r} reads row {nest.pivot} and column {nest.pivot} of what it "
            "writes; allowed with such a pivot: over=, reverse=, plan=, fastmath="
        )
    arrays, scalars = split_arguments(nest, arguments)
    check_arrays(nest, arrays, context)
    shapes = {view.array: arrays[view.array].shape for view in nest.views}
    bounds = loop_bounds(nest.indices, nest.iteration_box(shapes), loops.over)
    down = [d < 0 for d in loop_directions(nest.indices, loops.reverse)]
    several = {arrays[name].shape for name in nest.written}
    if len(several) > 1:
        raise ConfigError(
            f"nest {nest.name!r} with the pivot {nest.pivot!r} writes arrays of shapes "
            f"{', '.join(map(str, sorted(several)))}; allowed: one shape"
        )
    if windows := [n for n, value in arrays.items() if isinstance(value, Field) and value.keep == "window"]:
        raise ConfigError(f"array {windows[0]!r} keeps a rolling window only; allowed with a pivot: keep='all'")
    ((rows, columns),) = several
    if bounds.box[0][1] > min(rows, columns):
        raise ConfigError(
            f"nest {nest.name!r}: pivot {nest.pivot!r} runs over {bounds.box[0]}, and arrays of shape "
            f"{(rows, columns)} are written; allowed: part of both axes, over={{{nest.pivot!r}: (0, "
            f"{min(rows, columns)})}}"
        )
    pivots = {place.array for place in nest.places if place.axes != nest.indices[1:]}
    matrices = [(arrays[name].dtype.itemsize, name in pivots) for name in nest.written]
    box = tuple(zip(*bounds.box, strict=True))
    problem = _core.PivotProblem(box, list(bounds.constraints), down, rows, columns, matrices)
    scalars, captured = nest.bind_scalars(scalars), nest.captured().values
    memory = {name: _memory(value) for name, value in arrays.items() if name not in nest.written or _is_numpy(value)}
    plan = _plan_of(nest, context, bounds, plan)
    texts = (
        f"{name}: {value.dtype} {value.shape} {f'field {value._number}' if isinstance(value, Field) else 'NumPy array'}"
        for name, value in arrays.items()
    )
    description = (
        f"nest {nest.name!r} {nest.signature()[:12]}, pivot, loops {bounds.box} {bounds.constraints} downwards {down}, "
        f"{', '.join(texts)}, scalars {scalars!r}, plan {plan.choices()}, fastmath {fastmath}"
    )
    return PivotCall(
        nest, context, arrays, memory, scalars, captured, bounds, problem, plan, bool(fastmath), description
    )


def _is_numpy(value):
    return isinstance(value, np.ndarray)


def _memory(value):
    if isinstance(value, Field):
        local = memory_in_c_order(value)
        return np.empty(value.shape, value.dtype) if local is None else local
    return np.array(value, order="C") if copied(value) else value


def _plan_of(nest, context, bounds, given):
    """The plan: rows over ranks and lanes."""
    whole, choices = fixed_by(given)
    allowed = ("tile", "threads")
    if wrong := next((name for name in choices if name not in allowed), None):
        raise ConfigError(f"plan: {wrong} was given, and nest {nest.name!r} has a pivot; allowed: {', '.join(allowed)}")
    threads = choices.get("threads", whole.factors[1] if whole else context.threads)
    if not is_integer(threads, 1, context.threads):
        raise ConfigError(f"plan: threads: given {shown(threads)}; allowed: 1 to {context.threads}")
    extents = [high - low for low, high in bounds.box]
    tile = choices.get("tile", whole.tile if whole else (BLOCK, ROWS, max(1, extents[2])))
    if not isinstance(tile, tuple) or len(tile) != 3 or not all(is_integer(n, 1, 2**40) for n in tile):
        raise ConfigError(f"plan: tile: given {shown(tile)}; allowed with a pivot: (steps of a block, rows, columns)")
    plan = Plan(grid=(1, context.size, 1), mapping_dim=0, tile=tile, factors=(1, threads, 1))
    plan.notes |= {"nest": nest.name, "pivot": nest.pivot, "loops": nest.indices, "extents": extents}
    return plan


def run_pivot(call, begun):
    """Run what is ready; part of a collective call, behind its agreement on the call's description.

    Returns
    -------
    Report
    """
    context, nest, error, run = call.context, call.nest, None, None
    moving_s = -time.perf_counter()
    try:
        kernel, tables, environment = _kernel_of(call)
        run = _core.PivotRun(
            context._core,
            call.problem,
            call.core_plan,
            *_places_of(call),
            (kernel.address, kernel.rows_address, environment.ctypes.data),
            [tables[name].ctypes.data for name in nest.tables],
            lambda site, point: explain(nest, context, kernel, site, dict(zip(nest.indices, point, strict=True))),
        )
    except BaseException as problem:
        error = problem
    yield error
    for name, value in call.arrays.items():
        if not isinstance(value, Field):
            continue
        if name in nest.written:
            context._moves(value._storage.relayout, _core.pivot_layout(call.problem, context.size))
        elif memory_in_c_order(value) is None:
            whole = call.memory[name]
            context._moves(value._storage.gather, whole.ctypes.data if context.rank == 0 else 0)
            context._core.broadcast_into(whole.ctypes.data, whole.nbytes)
    moving_s += time.perf_counter()
    context._heart.progress.of = nest.name
    try:
        core = run.run([_place_of(call, name) for name in nest.written])
    except (ConfigError, KernelError, MemoryError) as problem:
        raise context._shared(problem) from None
    finally:
        context._heart.done()
        for name in nest.written:
            if name in call.memory and call.memory[name] is not call.arrays[name]:
                call.arrays[name][...] = call.memory[name]
    return _report(call, context._finished(core), run, begun, moving_s)


def _report(call, core, run, begun, moving_s):
    points, time_s = call.problem.points, core.time_s
    made = types.SimpleNamespace(
        ranks=call.context.size,
        threads=call.plan.factors[1],
        timeline=core.timeline,
        parts=core.parts,
        lanes=[],
        overlap_ratio=math.nan,
        time_s=time_s,
        moving_s=moving_s,
        call_s=time.perf_counter() - begun,
        points=points,
        points_per_s=points / time_s if time_s > 0 else 0.0,
        waves=-(-(call.bounds.box[0][1] - call.bounds.box[0][0]) // call.plan.tile[0]),
        buffer_bytes=run.kept_bytes,
    )
    loops = dict(zip(call.nest.indices, call.bounds.box, strict=True))
    return Report(made, call.plan, loops=loops, context=None)


def _place_of(call, name):
    """(address, strides) of this rank's rows of a written array."""
    local = call.memory[name] if name in call.memory else call.arrays[name]._view(0)
    return local.ctypes.data, local.strides


def _places_of(call):
    """What each place of the kernel is, and the operands."""
    nest, (k, i, j) = call.nest, call.nest.indices
    kinds = {(i, j): POINT, (k, j): ROW, (i, k): COLUMN, (k, k): CORNER}
    places, operands = [], []
    for place in nest.places:
        if place.array in nest.written:
            places.append((kinds[place.axes], nest.written.index(place.array)))
            continue
        address, strides = place.view.memory(call.memory[place.array])
        along = dict(zip(place.view.indices, strides, strict=True))
        address += sum(along[index] * offset for index, offset in place.along.items())
        places.append((OPERAND, len(operands)))
        operands.append((address, tuple(along.get(index, 0) for index in nest.indices)))
    return places, operands


def _kernel_of(call):
    """The kernel of rows along the last loop, its tables and its environment."""
    nest, j = call.nest, call.nest.indices[2]
    steps = []
    for place in nest.places:
        item = call.arrays[place.array].dtype.itemsize
        if place.array in nest.written:
            step = item if j in place.axes else 0
            if place.axes == nest.indices[1:] and place.array in call.memory:
                step = call.memory[place.array].strides[1]
        else:
            _, strides = place.view.memory(call.memory[place.array])
            step = dict(zip(place.view.indices, strides, strict=True)).get(j, 0)
        steps.append(step // item if abs(step) in (0, item) else None)
    tables = {name: np.ascontiguousarray(call.memory[name]) for name in nest.tables}
    kernel = compile_kernel(
        nest,
        {name: value.dtype for name, value in call.arrays.items()},
        call.scalars,
        fastmath=call.fastmath,
        steps=steps,
        independent=True,
        long_rows=True,
        captured=call.captured,
        shapes={name: table.shape for name, table in tables.items()},
        off=call.context._off,
        separate=True,
        in_place=True,
    )
    with _lock:  # one that was used before is loaded
        kernel = _kernels.get(kernel.digest) or kernel
        _kernels[kernel.digest] = kernel
    return kernel, tables, kernel.pack({**call.scalars, **call.captured}, tables)
