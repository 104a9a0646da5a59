"""Runs of nests that write a row for several time steps: one after another, of the steps that have one row."""

import dataclasses
import functools
import time
import types

from tilewave import _core
from tilewave.field.create import field
from tilewave.field.field import Field
from tilewave.nests.call.step_blocks import for_steps
from tilewave.nests.rewrites.step_rows import RowPart, like_rows
from tilewave.nests.run.execute import report_of, run_bound, stored
from tilewave.nests.run.report import LaneTimes
from tilewave.timeline.parts import Parts

#: What is added up of a lane.
LANE_TIMES = [each.name for each in dataclasses.fields(LaneTimes) if each.name not in ("rank", "lane", "idle_s")]


class RowParts:
    """What prepares and runs the parts of a call, which a `BoundNest` has.

    Parameters
    ----------
    rows : StepRows
    arguments : dict
        Arrays and scalars by name.
    prepare : function
        It prepares a call of one part: it is given nest, loops, and arguments by name.
    """

    def __init__(self, rows, arguments, prepare):
        self._rows, self._prepare = rows, prepare
        self._given, self._fresh = {**arguments, **rows.call.arrays}, False
        self.context = rows.call.context

    def agreed(self, first, steps, scalars):
        """The parts of so many steps, on which the ranks have agreed, and their arrays; part of a collective call."""
        error, parts, text = None, [], ""
        try:
            parts = self._rows.parts(first, steps, self._rows.call.nest.bind_scalars(scalars))
            text = self._rows.text(parts)
        except BaseException as problem:
            error = problem
        yield error or text
        if not self._fresh:
            self._make_arrays()
        self._given |= scalars
        return parts

    def _make_arrays(self):
        """The rows that time steps write, and whole arrays for rolling windows, which are to last over all parts;
        collective.
        """
        self.step_rows, self.windows, arrays = {}, {}, self._rows.call.arrays
        for name, array in like_rows(self._rows.call.nest, arrays).items():
            window = getattr(arrays[name], "keep", "") == "window"
            whole = stored(arrays[name], self.context) if window else arrays[name]
            if name not in self._rows.whole:
                self.windows |= {name: whole} if window else {}
            elif isinstance(whole, Field):
                self._given[name] = field(array.shape, array.dtype, context=self.context)
                self.step_rows[name] = _core.StepRow(whole._storage, self._given[name]._storage)
            else:
                self._given[name], form = array, (array.strides, array.shape, array.itemsize)
                self.step_rows[name] = _core.StepRow(whole.ctypes.data, whole.strides, array.ctypes.data, *form)
        self._given |= self.windows
        self._fresh = True

    def written(self, steps, scalars):
        """Whether each of so many time steps has to write its rows."""
        return self._rows.written(steps, self._rows.call.nest.bind_scalars(scalars))

    @property
    def shows_each(self):
        """Whether each time step has something to write: no condition says that it has not."""
        return self._rows.film is None or self._rows.film.test is None

    @property
    def whole(self):
        """The arrays of which the nest writes rows, by name."""
        return self._rows.whole

    def of(self, part):
        """What a call of one part is given: nest, loops and arguments."""
        nest, given = self._rows.nest_of(part), self._given
        if nest is not self._rows.nest:
            given = {name: value for name, value in given.items() if name in nest.arrays or name in nest.scalars}
        return {"nests": nest, "loops": self._rows.loops_of(part), "arguments": given}

    def key(self, part):
        """Equal for parts that one nest serves."""
        nest = self._rows.nest_of(part)
        return nest is self._rows.nest, self._rows.loops_of(part).key(nest)

    def why_not_alike(self, steps):
        """Return why each of so many steps would be another nest; empty: they are one."""
        if self.key(RowPart(0, 1, {})) == self.key(RowPart(max(steps - 1, 0), 1, {})):
            return ""
        return f"bounds of nest {self._rows.call.nest.name!r} depend on time"

    def prepared(self, first, steps, scalars):
        """The `BoundNest` of a run with these scalars; part of a collective call."""
        parts = yield from self.agreed(first, steps, scalars)
        longest = max(parts, key=lambda part: part.steps)
        ready = yield from self._prepare(*self.of(longest).values())
        windows = [name for name, array in self._rows.call.arrays.items() if getattr(array, "keep", "") == "window"]
        planned = functools.partial(_planned, ready.plan, longest.steps)
        return dataclasses.replace(
            ready,
            parts=self,
            longest=ready,
            plan=planned(steps),
            planned_for=planned,
            steps=steps,
            stored=windows,
            called=self._rows.call.arrays,
            after=(),  # what follows each part's run
        )

    def run(self, ready, begun):
        """One run of it; part of a collective call. Returns what is like the core's report."""
        nest, readies, cores, moving_s = self._rows.call.nest, {}, [], 0.0
        scalars = {name: value for name, value in ready.values.items() if name in nest.scalars}
        parts = yield from self.agreed(ready.first_step, ready.steps, scalars)
        self._fresh = False  # whatever becomes of this run, the next one begins with other arrays
        keys = [self.key(part) for part in parts]
        for part, key in zip(parts, keys, strict=True):  # all of them before anything runs: a plan may not fit one
            if key not in readies:
                readies[key] = yield from self._prepare(*self.of(part).values())
                if ready.visited:
                    readies[key].points = ready.visited[0].of(readies[key].problem.nest, False)
        for part, key in zip(parts, keys, strict=True):
            now = readies[key]
            now.first_step = part.first
            if now.copies_arrays:
                now.copy_again()
            rows, before = part.rows if part.writes else {}, time.perf_counter()
            self._move(rows, back=False)
            moving_s += time.perf_counter() - before
            core = yield from run_bound(now, time.perf_counter())
            before = time.perf_counter()
            self._move(rows, back=True)
            moving_s += time.perf_counter() - before
            cores.append(core)
        return _all_of(cores, begun, moving_s)

    def _move(self, rows, back):
        """Copy rows to where the time steps find them, or `back`; collective."""
        for name, row in rows.items():
            self.context._moves(self.step_rows[name].move, row, back)


def _planned(plan, together, steps):
    """The plan of the longest part, with what it is predicted to take for all steps."""
    return for_steps(plan, together, together, 0.0, steps) if together else plan


def _all_of(cores, begun, moving_s):
    """The core's report of all: times, parts and lanes of all runs, the timeline of the last."""
    reduced, *others = (list(core.reduced) for core in cores)
    for other in others:
        for each, more in zip(reduced, other, strict=True):
            each.combine(more)
    last = cores[-1]
    parts = [Parts.of(core.parts) for core in cores]
    lanes = {}
    for lane in (lane for core in cores for lane in core.lanes):
        place = lane.rank, lane.lane
        so_far = lanes.get(place)
        lanes[place] = types.SimpleNamespace(
            rank=lane.rank,
            lane=lane.lane,
            **{name: getattr(lane, name) + getattr(so_far, name, 0.0) for name in LANE_TIMES},
        )
    return report_of(
        sum(core.time_s for core in cores),
        sum(core.points for core in cores),
        plan=last.plan,
        ranks=last.ranks,
        threads=last.threads,
        timeline=last.timeline,
        lanes=[*lanes.values()],
        overlap_ratio=last.overlap_ratio,
        interrupted=last.interrupted,
        parts=Parts(*(sum(each) for each in zip(*map(dataclasses.astuple, parts), strict=True))),
        moving_s=moving_s + sum(core.moving_s for core in cores),
        call_s=time.perf_counter() - begun,
        waves=sum(core.waves for core in cores),
        buffer_bytes=max(core.buffer_bytes for core in cores),
        reduced=reduced,
    )
