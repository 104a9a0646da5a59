"""Nests among the works of a schedule that is built step by step."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np

from tilewave import _core
from tilewave.dtypes import ALL
from tilewave.errors import ConfigError, shown
from tilewave.kernel.compile import compile_kernel
from tilewave.nest.bounds import Loops
from tilewave.nest.nest import Nest
from tilewave.nests.call.problem import make_problem
from tilewave.schedule.regions import ArrayOfSchedule, integer

_compiling = threading.Lock()  # ranks may be threads of one process, with one schedule


@dataclasses.dataclass(eq=False)
class KernelOfSchedule:
    """Hold what nests of a schedule call: a body with its dtypes and scalars; compiled when it first runs."""

    nest: Nest
    dtypes: dict
    values: dict  # of scalars
    independent: bool
    _compiled: tuple = None

    def key(self):
        dtypes = tuple((name, dtype.str) for name, dtype in self.dtypes.items())
        return self.nest.signature(), dtypes, repr(sorted(self.values.items())), self.independent

    def text(self):
        """Return what must be equal on all ranks."""
        return f"nest {self.nest.name!r} {self.nest.signature()[:12]}, scalars {sorted(self.values.items())!r}"

    def core(self):
        """(address of the row function, address of its environment)."""
        with _compiling:
            if self._compiled is None:
                captured = self.nest.captured().values
                independent = self.independent
                kernel = compile_kernel(self.nest, self.dtypes, self.values, independent=independent, captured=captured)
                self._compiled = kernel, kernel.pack({**self.values, **captured}, {})
        kernel, packed = self._compiled
        return kernel.address, packed.ctypes.data

    def explain(self, site, point):
        """Return what a body has raised, as text."""
        name, message, line = self._compiled[0].sites[site - 1]
        where = ", ".join(f"{i}={p}" for i, p in zip(self.nest.indices, point, strict=True))
        return f"nest {self.nest.name!r} raised {name}({message!r}) at {where}, line {line}"


@dataclasses.dataclass(frozen=True, eq=False)
class NestOfSchedule:
    """A nest among the works; `ScheduleBuilder.nest` makes it, `LaneOfSchedule.compute` computes points of it.

    Attributes
    ----------
    number : int
        Of the work.
    over : tuple of (int, int)
        The range of each loop index.
    """

    builder: Any
    number: int
    indices: tuple[str, ...]
    over: tuple[tuple[int, int], ...]

    def box(self, subscripts: Any) -> tuple[list[int], list[int]]:
        """(lo, hi) of the points that subscripts name, one for each loop index."""
        given = subscripts if isinstance(subscripts, tuple) else (subscripts,)
        if len(given) > len(self.indices):
            raise ConfigError(f"compute: {len(given)} ranges were given; the nest has {len(self.indices)} loop indices")
        lo, hi = [], []
        for index, (first, end), s in zip(
            self.indices, self.over, given + (slice(None),) * (len(self.indices) - len(given)), strict=True
        ):
            if not isinstance(s, slice):
                low = integer(f"compute: {index}", s)
                s = slice(low, low + 1)
            if s.step not in (None, 1):
                raise ConfigError(f"compute: {index}: given {shown(s)}; allowed: integers, and slices without a step")
            low = first if s.start is None else integer(f"compute: {index}", s.start)
            high = end if s.stop is None else integer(f"compute: {index}", s.stop)
            if not first <= low <= high <= end:
                raise ConfigError(
                    f"compute: {index}: [{low}:{high}] was given; allowed: within [{first}:{end}], from low to high"
                )
            lo.append(low)
            hi.append(high)
        return tuple(lo), tuple(hi)


def work_of(nest, arrays, over, scalars):
    """(core's work, what it calls, ranges of the loops) of a nest on arrays of a builder."""
    if not isinstance(nest, Nest):
        raise ConfigError(f"nest: given {shown(nest)}; allowed: a function under @tilewave.nest")
    if nest.inner:
        _refuse(nest, "a loop inside the body")
    if nest.rows:
        _refuse(nest, f"rows of {next(iter(nest.rows))!r} for several time steps")
    if nest.tables:
        _refuse(nest, f"table {nest.tables[0]!r}")
    if wrong := sorted(set(nest.arrays) ^ arrays.keys()):
        what = "needs its array" if wrong[0] in nest.arrays else "has no array"
        raise ConfigError(f"nest {nest.name!r} {what} {wrong[0]!r}; allowed: {', '.join(nest.arrays)}")
    names = {}
    for name, array in arrays.items():
        if not isinstance(array, ArrayOfSchedule):
            raise ConfigError(f"nest {nest.name!r}: {name}: given {shown(array)}; allowed: an array of this builder")
        if (other := names.setdefault(array.number, name)) != name:
            raise ConfigError(
                f"nest {nest.name!r}: array {array.name!r} was given as {other!r} and {name!r}; allowed: under one name"
            )
        if array.dtype not in ALL:
            raise ConfigError(f"nest {nest.name!r}: array {array.name!r} has dtype {array.dtype}; nests have others")
    for view in nest.views:
        if view.axes != nest.indices or view.scaled:
            _refuse(nest, f"array {view.array!r}, whose subscripts are not {', '.join(nest.indices)} in this order")
    # The shapes count, not the memory.
    stand_ins = {n: np.broadcast_to(np.zeros((), a.dtype), a.shape) for n, a in arrays.items()}
    problem = make_problem(nest, stand_ins, Loops(over))
    if problem.sequential:
        _refuse(nest, f"points in loop order only ({problem.sequential})")
    values = nest.bind_scalars(scalars)
    along = [d for d in problem.core.dependences if not any(d[:-1])]
    places = [
        _core.Access(arrays[p.array].number, tuple(p.offsets), p.written, p.written and p.read) for p in nest.places
    ]
    box = tuple(zip(*problem.bounds.box, strict=True))
    work = _core.NestWork(box, places)
    work.bounds = list(problem.bounds.constraints)
    work.rows_depend = bool(along)
    kernel = KernelOfSchedule(nest, {n: a.dtype for n, a in arrays.items()}, values, not along)
    return work, kernel, problem.bounds.box


def _refuse(nest, what):
    raise ConfigError(
        f"nest {nest.name!r} has {what}; allowed among the works of a schedule: arrays with all loop indices as "
        "subscripts, in the order of the loops, and points that need not go in loop order"
    )
