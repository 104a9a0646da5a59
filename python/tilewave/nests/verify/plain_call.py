"""What a call of `run` means, on whole NumPy arrays: its nests as plain loops, in each time step one after another."""

import dataclasses

import numpy as np

from tilewave.field.create import Scratch
from tilewave.field.field import Field
from tilewave.field.values import digest, fill
from tilewave.nest.nest import Nest
from tilewave.nest.timeless import timeless_reads
from tilewave.nests.call.arguments import as_numbers, fields_for_scratch
from tilewave.nests.call.operands import memory_of
from tilewave.nests.call.step_members import loops_of, reductions_of
from tilewave.nests.verify.arrays import TimeSteps
from tilewave.nests.verify.plain_nest import PlainNest
from tilewave.nests.verify.plain_points import PlainPoints


class PlainCall:
    """The arguments of a call, as the user gave them.

    Parameters
    ----------
    call : RunCall
        With `fastmath` it may differ from plain loops, and is not compared.
    in_chain : bool
        Whether a repetition is all time steps of several nests, not one of them.
    """

    def __init__(self, call, in_chain=False):
        self._in_chain, self.nests, self.loops = in_chain, call.nests, call.loops
        self.arguments, self.fastmath, self.reduce = call.arguments, call.fastmath, call.reduce
        self.inject, self.record, self._until = call.inject, call.record, call.until

    def prepare(self, context):
        """Whether the call can be compared, as far as its arguments say; local. Scratch becomes fields."""
        self.several = isinstance(self.nests, tuple | list) or self._until is not None
        self.counted = self.several and not self._in_chain
        self.nests = tuple(self.nests) if isinstance(self.nests, tuple | list) else (self.nests,)
        if not self.nests or not all(isinstance(nest, Nest) for nest in self.nests):
            return False
        if not isinstance(self.fastmath, bool | np.bool_) or self.fastmath:
            return False
        self.arguments = as_numbers(self.nests, self.arguments, copies=True)
        names = dict.fromkeys(name for nest in self.nests for name in nest.arrays)
        self.arrays = {name: self.arguments.get(name) for name in names}
        if any(isinstance(value, Scratch) for value in self.arrays.values()):
            self.arrays = fields_for_scratch(self.nests[0], self.arrays, context, self.loops.steps)
        return all(
            value.context is context and not value.closed if isinstance(value, Field) else isinstance(value, np.ndarray)
            for value in self.arrays.values()
        )

    def text(self):
        """What must be the same on all ranks for the arrays to be gathered together."""
        arrays = [
            (name, value.shape, value._number if isinstance(value, Field) else 0) for name, value in self.arrays.items()
        ]
        return f"{[nest.signature() for nest in self.nests]} {arrays}"

    def run(self, memory, repetitions=1, look=None):
        """Run the plain loops on copies.

        Parameters
        ----------
        memory : dict
            From `memory_of` an array to its copy and the earlier time steps, the latest first; changed.
        repetitions : int
            How often it will be run; of several nests the time steps.
        look : function, optional
            It is given the number of each time step of several nests, from 1, and the results by name.

        Returns
        -------
        (results, recorded)
            By name: functions of what is to be compared with them, and arrays.
        """
        self._at = None
        steps = None if self.loops.steps is None else repetitions if self.counted else int(self.loops.steps)
        for value in self.arrays.values():
            if isinstance(value, Field) and value.keep == "window":  # each run begins with it anew
                memory[memory_of(value)] = [start_of(value)]
        copies = {name: memory[memory_of(value)] for name, value in self.arrays.items()}
        shapes = {name: levels[0].shape for name, levels in copies.items()}
        loops = dataclasses.replace(self.loops, steps=steps)
        each = loops_of(self.nests, loops) if self.several else [(self.nests[0], loops)]
        down = steps is not None and self.nests[0].indices[0] in each[0][1].reverse
        times = {} if steps is None else self._times(each, copies, steps, -1 if down else 1)
        arrays = {name: times.get(name, levels[0]) for name, levels in copies.items()}
        scalars = [
            nest.bind_scalars({name: self.arguments[name] for name in nest.scalars if name in self.arguments})
            for nest in self.nests
        ]
        reductions = reductions_of(self.nests, self.reduce) if self.several else [self.reduce]
        self._loops = loops = [
            PlainNest(nest, own, arrays, shapes, own_scalars, reduce, repetitions)
            for (nest, own), own_scalars, reduce in zip(each, scalars, reductions, strict=True)
        ]
        recorded = {}
        with np.errstate(all="ignore"):
            if steps is None:
                for one in loops:
                    self._at = one
                    one.run()
            else:
                dtypes = {name: levels[0].dtype for name, levels in copies.items()}
                points = PlainPoints(self.inject, self.record, shapes, dtypes, steps)
                self._run_in_time(loops, times, copies, steps, down, points, look)
                recorded = points.recorded
        for name, steps_of in times.items():
            if steps_of.written:
                memory[memory_of(self.arrays[name])][:] = steps_of.levels()
        return {} if self.several and not steps else _results(loops), recorded

    def place(self):
        """Where the loops are, as text."""
        if self._at is None or self._at.point is None:
            return f"nest {self.nests[0].name!r}"
        at = ", ".join(map("{}={}".format, self._at.nest.indices, self._at.point))
        return f"nest {self._at.nest.name!r} at {at}"

    def first_point(self, nest, name, elements):
        """The first of some elements of an array in the order of a nest's loops, and the point that writes it as text:
        the loop indices that its subscripts have.
        """
        own = self._loops[self.nests.index(nest)]
        place = next((place for place in nest.places if place.written and place.array == name), None)
        if place is None:
            return tuple(elements[0].tolist()), ""
        first = len(place.axes) - elements.shape[1]  # without time, where the array has none
        phases = place.phases or [(1, 0)] * len(place.axes)
        points = {
            axis: (x - start) // scale - offset
            for axis, offset, (scale, start), x in zip(
                place.axes[first:], place.offsets[first:], phases[first:], elements.T, strict=True
            )
        }
        order = [own.sign(index) * points[index] for index in nest.indices if index in points]
        number = np.lexsort(order[::-1])[0]
        at = {index: int(points[index][number]) for index in nest.indices if index in points}
        inside = all(low <= at.get(index, low) < high for index, (low, high) in own.box.items())
        text = f" at {', '.join(map('{}={}'.format, at, at.values()))}" if inside else ", beside its points"
        return tuple(elements[number].tolist()), text

    def _run_in_time(self, loops, times, copies, steps, down, points, look):
        for step in range(steps):
            for array in times.values():
                array.begin()
            for one in loops:
                self._at = one
                if self.several:
                    one.begin_results()
                one.step(steps - step if down else step)
            if look:
                look(step + 1, _results(loops))
            points.after(step, lambda name: times[name].next if name in times else copies[name][0])
            for array in times.values():
                array.end()

    def _times(self, each, copies, steps, sign):
        """The `TimeSteps` of the arrays that have no dimension for time."""
        back, latest = {}, {name: levels[0] for name, levels in copies.items()}
        for nest, own in each:
            reads = [(place.array, place.offsets[0]) for place in nest.places]
            reads = [(name, at) for name, at in reads if latest[name].ndim < nest.parameters.ranks[name]]
            reads += [(name, at) for name, at, _ in timeless_reads(nest, own, latest)]
            for name, at in reads:
                if name not in nest.rows:
                    back[name] = max(back.get(name, 0), -sign * at)
        written = {name for nest in self.nests for name in nest.written}
        first = 0 if sign > 0 else steps
        return {name: TimeSteps(copies[name], first, sign, count, name in written) for name, count in back.items()}


def _results(loops):
    """Return what was reduced, by name: of nests that use one name the last counts."""
    return {name: of for one in loops for name, of in one.results().items()}


def start_of(window):
    """What a field that keeps a rolling window is before a run, as an array."""
    whole, init = np.zeros(window.shape, window.dtype), window._init
    if callable(init):
        fill(whole, tuple(slice(0, n) for n in window.shape), init)
    elif init is not None:
        whole[...] = init
    return whole


def number_of(calls, context):
    """Prepare calls; stands for them: equal where their texts are, above 0. 0 where some cannot be compared; local."""
    if not all(call.prepare(context) for call in calls):
        return 0
    text = " ".join(call.text() for call in calls)
    return (int(digest(np.frombuffer(text.encode(), np.uint8)), 16) >> 8) + 1
