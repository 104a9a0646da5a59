"""Runs of nests whose schedules have tasks: from what was checked to the report."""

import dataclasses
import threading
import time

import numpy as np

from tilewave.context.lru_cache import LruCache
from tilewave.errors import ConfigError, KernelError, is_integer, shown
from tilewave.field.field import Field
from tilewave.kernel.compile import compile_kernel
from tilewave.nest.box import short_arrays
from tilewave.nests.execute import explain, report_of
from tilewave.nests.operands import copied, memory_in_c_order
from tilewave.nests.problem import free_loops
from tilewave.nests.report import Report
from tilewave.plan.plan import Plan

#: Kernels that were used last.
_kernels, _lock = LruCache(16), threading.Lock()


@dataclasses.dataclass
class TaskNestCall:
    """A call, checked on this rank.

    Attributes
    ----------
    nest : Nest
    context : Context
    arrays : dict
        As they were given.
    scalars, captured : dict
    bounds : Bounds
    problem
        The core's.
    plan : Plan
    fastmath : bool
    kind : str
        Of the schedule, with what of the call neither bounds nor the plan say.
    memory : dict
        NumPy arrays that kernels read or write: aligned; of fields that are only read a copy of the whole, to be
        filled.
    """

    nest: object
    context: object
    arrays: dict
    scalars: dict
    captured: dict
    bounds: object
    problem: object
    plan: Plan
    fastmath: bool
    kind: str

    def __post_init__(self):
        arrays = self.arrays.items()
        self.memory = {n: _memory(value) for n, value in arrays if n not in self.nest.written or is_numpy(value)}

    @property
    def description(self):
        """What must be equal on all ranks."""
        texts = (
            f"{name}: {value.dtype} {value.shape} {'NumPy array' if is_numpy(value) else f'field {value._number}'}"
            for name, value in self.arrays.items()
        )
        return (
            f"nest {self.nest.name!r} {self.nest.signature()[:12]}, {self.kind}, loops {self.bounds.box} "
            f"{self.bounds.constraints}, {', '.join(texts)}, scalars {self.scalars!r}, plan {self.plan.choices()}, "
            f"fastmath {self.fastmath}"
        )

    def short_arrays(self, loops):
        """Texts about arrays that end loops since they have fewer elements than others."""
        shapes = {name: value.shape for name, value in self.arrays.items()}
        return tuple(short_arrays(self.nest, shapes, free_loops(self.nest, loops, self.bounds)))

    def schedules(self):
        """Those of all ranks."""
        return {rank: self.schedule_of(rank) for rank in range(self.context.size)}

    def read_only(self, place):
        """(address at loop indices 0, bytes along each of them) of a place of an array that is only read."""
        value = self.memory[place.array]
        view = place.view.last(value.ndim)
        address, strides = view.memory(value)
        along = dict(zip(view.indices, strides, strict=True))
        address += sum(step * place.along[index] for index, step in along.items())
        return address, tuple(along.get(index, 0) for index in self.nest.indices)

    def local(self, name):
        """This rank's part of a written array."""
        return self.memory[name] if name in self.memory else self.arrays[name]._view(0)

    def core_run(self, kernel, *made):
        """What the core runs, of a kernel; local. `made`: the kernel's addresses, its tables, the text of an error."""
        raise NotImplementedError

    def kernel(self):
        """The kernel of rows along the last loop, its tables and its environment."""
        nest, items = self.nest, [self.arrays[place.array].dtype.itemsize for place in self.nest.places]
        steps = [
            step // item if step is not None and abs(step) in (0, item) else None
            for step, item in zip(map(self.step_of, nest.places), items, strict=True)
        ]
        tables = {name: np.ascontiguousarray(self.memory[name]) for name in nest.tables}
        kernel = compile_kernel(
            nest,
            {name: value.dtype for name, value in self.arrays.items()},
            self.scalars,
            fastmath=self.fastmath,
            steps=steps,
            independent=True,
            long_rows=True,
            captured=self.captured,
            shapes={name: table.shape for name, table in tables.items()},
            off=self.context._off,
            separate=True,
        )
        with _lock:  # one that was used before is loaded
            kernel = _kernels.get(kernel.digest) or kernel
            _kernels[kernel.digest] = kernel
        return kernel, tables, kernel.pack({**self.scalars, **self.captured}, tables)


def is_numpy(value):
    """Whether it is no field."""
    return isinstance(value, np.ndarray)


def _memory(value):
    if isinstance(value, Field):
        local = memory_in_c_order(value)
        return np.empty(value.shape, value.dtype) if local is None else local
    return np.array(value, order="C") if copied(value) else value


def threads_of(context, choices, whole):
    """The lanes of a rank that a plan gives, or the most."""
    threads = choices.get("threads", whole.factors[1] if whole else context.threads)
    if not is_integer(threads, 1, context.threads):
        raise ConfigError(f"plan: threads: given {shown(threads)}; allowed: 1 to {context.threads}")
    return threads


def tile_of(choices, usual, meaning):
    """The tile that a plan gives, or the usual one."""
    tile = choices.get("tile", usual)
    if not isinstance(tile, tuple) or len(tile) != len(usual) or not all(is_integer(n, 1, 2**40) for n in tile):
        raise ConfigError(f"plan: tile: given {shown(tile)}; allowed {meaning}")
    return tile


def run_tasks(call, begun):
    """Run what is ready; part of a collective call, behind its agreement on the call's description.

    Returns
    -------
    Report
    """
    context, nest, error, run = call.context, call.nest, None, None
    moving_s = -time.perf_counter()
    try:
        kernel, tables, environment = call.kernel()
        run = call.core_run(
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
            context._moves(value._storage.relayout, call.layout_of(name))
        elif memory_in_c_order(value) is None:
            whole = call.memory[name]
            context._moves(value._storage.gather, whole.ctypes.data if context.rank == 0 else 0)
            context._core.broadcast_into(whole.ctypes.data, whole.nbytes)
    moving_s += time.perf_counter()
    context._heart.progress.of = nest.name
    try:
        core = run.run(*call.places_of_run())
    except (ConfigError, KernelError, MemoryError) as problem:
        raise context._shared(problem) from None
    finally:
        context._heart.done()
        for name in nest.written:
            if name in call.memory and call.memory[name] is not call.arrays[name]:
                call.arrays[name][...] = call.memory[name]
    return _report(call, context._finished(core), run, begun, moving_s)


def _report(call, core, run, begun, moving_s):
    made = report_of(
        core.time_s,
        call.points,
        ranks=call.context.size,
        threads=call.plan.threads,
        timeline=core.timeline,
        parts=core.parts,
        moving_s=moving_s,
        call_s=time.perf_counter() - begun,
        waves=call.waves,
        buffer_bytes=run.kept_bytes,
    )
    loops = dict(zip(call.nest.indices, call.bounds.box, strict=True))
    return Report(made, call.plan, loops=loops, context=None)
