"""The plain loops of one nest: its body as Python, point after point in the order of the loops."""

import functools
import inspect
import numbers

from tilewave.context import interrupts
from tilewave.nest.reference import run_body
from tilewave.nests.verify.arrays import Elements, TimeSteps
from tilewave.nests.verify.plain_results import PlainResults
from tilewave.nests.verify.scalar_rows import scalar_rows

#: Points of a run that the body computes as Python, 1 to 10 us each; more are computed by machine code where it can.
MOST_IN_PYTHON = 1 << 14
#: After so many points an interrupt is looked for.
POINTS_BETWEEN = 4096


class PlainNest:
    """One nest of a call.

    Parameters
    ----------
    nest : Nest
        As the user wrote it.
    loops : Loops
        Its own: `over`, `reverse`, `periodic`, and `steps` or None.
    arrays : dict
        By name: an ndarray, or the `TimeSteps` of one without a dimension for time.
    shapes : dict
        By name, without time steps.
    scalars : dict
    reduce : dict or None
    times : int
        How often it runs.
    """

    def __init__(self, nest, loops, arrays, shapes, scalars, reduce=None, times=1):
        self.nest, self._over, self._scalars = nest, loops.over or {}, scalars
        self.point = None  # at which the loops are
        steps = loops.steps
        in_time = {name for name in nest.arrays if nest.parameters.ranks[name] > len(shapes[name])}
        full = {name: (steps + 1, *shapes[name]) if name in in_time else shapes[name] for name in nest.arrays}
        self.box = dict(zip(nest.indices, nest.iteration_box(full), strict=True))
        wraps = {}
        for place in nest.places:
            extents = full[place.array]
            phases = place.phases or ((1, 0),) * len(extents)
            for number, (index, (scale, _), extent) in enumerate(zip(place.axes, phases, extents, strict=True)):
                if index in loops.periodic:
                    self.box[index] = 0, extent // scale
                    wraps.setdefault(place.array, [0] * len(extents))[number] = extent
        self._down = set(loops.reverse)
        if steps is not None:
            self.box[nest.indices[0]] = (1, steps + 1) if nest.indices[0] in self._down else (0, steps)
        self._results = reduce and PlainResults(nest, reduce)
        self._arrays = {}
        for name in nest.arrays:
            array, around = arrays[name], wraps.get(name, ())
            if name in in_time:
                around = around[1:]
            if isinstance(array, TimeSteps) or any(around) or self._results and name in self._results.watched:
                array = Elements(array, full[name], around if any(around) else ())
            self._arrays[name] = array
        self._rows = None
        if times * max(steps or 1, 1) * self._most_points(steps) > MOST_IN_PYTHON and not reduce:
            timed = {name for name in nest.arrays if isinstance(arrays[name], TimeSteps)}
            self._rows = scalar_rows(nest, arrays, scalars, wraps) if timed <= in_time else None

    def run(self):
        """Run all loops."""
        self._run({})

    def step(self, t):
        """Run the loops within one time step."""
        time = self.nest.indices[0]
        if t in self._values(time, {}):
            self._run({time: t})

    def begin_results(self):
        """Forget what was reduced so far."""
        if self._results:
            self._results.begin()

    def sign(self, index):
        """-1 for a loop that runs downwards, else 1."""
        return -1 if index in self._down else 1

    def results(self):
        """What was reduced, by name."""
        return self._results.values() if self._results else {}

    def _most_points(self, steps):
        """The points of a time step, where no bound depends on another index; else more."""
        count = 1
        for index, (low, high) in list(self.box.items())[steps is not None :]:
            low, high, *stride = self._over.get(index, (low, high))
            whole = all(isinstance(end, numbers.Integral) for end in (low, high))
            count *= len(range(*(map(int, (low, high, *stride)) if whole else self.box[index])))
        return count

    def _run(self, outer):
        points = self._points(outer, len(self.nest.indices) - bool(self._rows))
        if self._rows:
            for point in self._watched(points):
                outer = dict(zip(self.nest.indices, point))
                self._rows.run(outer, self._values(self.nest.indices[-1], outer))
            return
        function = self._results and self._results.body(self._arrays)
        run_body(self.nest, self._watched(points), self._arrays, self._scalars, function)

    def _watched(self, points):
        for number, point in enumerate(points):
            if number % POINTS_BETWEEN == 0 and interrupts.pending():
                raise KeyboardInterrupt
            self.point = point
            yield point

    def _points(self, outer, count):
        """The values of the first `count` indices, in the order of the loops."""
        if len(outer) == count:
            yield tuple(outer.values())
            return
        index = self.nest.indices[len(outer)]
        for x in self._values(index, outer):
            yield from self._points({**outer, index: x}, count)

    def _values(self, index, outer):
        """The values of a loop index, in their order."""
        low, high, *stride = self._over.get(index, self.box[index])
        values = range(_bound(low, max, outer), _bound(high, min, outer), *stride)
        return values[::-1] if index in self._down else values


def _bound(bound, pick, outer):
    """A bound of `over` at the values of the outer indices."""
    if isinstance(bound, tuple | list):
        return pick(_bound(each, pick, outer) for each in bound)
    if isinstance(bound, str):
        return eval(_code(bound), {"__builtins__": {}}, outer)
    if callable(bound):
        return int(bound(**{name: outer[name] for name in inspect.signature(bound).parameters if name in outer}))
    return int(bound)


@functools.lru_cache(256)
def _code(text):
    return compile(text.strip(), "<over>", "eval")
