"""Nests with a pivot: what a call must have, and how it is cut."""

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.nest.bounds import loop_bounds, loop_directions
from tilewave.nest.box import shapes_of
from tilewave.nest.changed import strided
from tilewave.nest.inner import extents_of
from tilewave.nest.periodic import read_periodic
from tilewave.nest.unreached import check_reached
from tilewave.nests.arguments import check_arrays, split_arguments
from tilewave.nests.task_nests import TaskNestCall, threads_of, tile_of
from tilewave.plan.fixed import fixed_by
from tilewave.plan.plan import Plan

#: Steps of a block, rows of a task. Shortest paths of 2000 nodes, one core of a Xeon, with blocks of 16, 32 and 64
#: steps: doubles 0.85, 0.74 and 1.05 s, 32-bit integers 0.46, 0.38 and 0.44 s.
BLOCK, ROWS = 32, 64

#: How the core numbers what a place of the kernel reads.
POINT, ROW, COLUMN, CORNER, OPERAND = range(5)


class PivotCall(TaskNestCall):
    """A call of a nest with a pivot; `problem` is a `_core.PivotProblem`."""

    in_place = True
    tasks, kept = ("panel", "update"), "kept rows of"

    @property
    def core_plan(self):
        """The plan for the core."""
        return _core.PivotPlan(*self.plan.tile[:2], self.plan.factors[1])

    def schedule_of(self, rank):
        """That of a rank."""
        return _core.pivot_schedule(self.problem, self.core_plan, rank, self.context.size)

    def keeps(self, name):
        """Whether the schedule has an array for what is kept of a written one."""
        return any(place.array == name and place.axes != self.nest.indices[1:] for place in self.nest.places)

    def layout_of(self, name):
        """Who has which rows."""
        return _core.pivot_layout(self.problem, self.context.size)

    @property
    def points(self):
        """That are computed."""
        return self.problem.points

    @property
    def waves(self):
        """Blocks of steps."""
        low, high = self.bounds.box[0]
        return -(-(high - low) // self.plan.tile[0])

    def core_run(self, *made):
        return _core.pivot_run(self.context._core, self.problem, self.core_plan, *self._places(), *made)

    def places_of_run(self):
        """What is known once fields lie as they are run: this rank's rows of written arrays."""
        rows = [self.local(name) for name in self.nest.written]
        return ([(local.ctypes.data, local.strides) for local in rows],)

    def _places(self):
        """What each place of the kernel is, and the operands."""
        nest, (k, i, j) = self.nest, self.nest.indices
        kinds = {(i, j): POINT, (k, j): ROW, (i, k): COLUMN, (k, k): CORNER}
        places, operands = [], []
        for place in nest.places:
            if place.array in nest.written:
                places.append((kinds[place.axes], nest.written.index(place.array)))
                continue
            places.append((OPERAND, len(operands)))
            operands.append(self.read_only(place))
        return places, operands

    def step_of(self, place):
        """Bytes from point to point of a row."""
        name, j = place.array, self.nest.indices[2]
        if name not in self.nest.written:
            return self.read_only(place)[1][2]
        if place.axes == self.nest.indices[1:] and name in self.memory:
            return self.memory[name].strides[1]
        return self.arrays[name].dtype.itemsize if j in place.axes else 0


def checked(nest, context, loops, plan, fastmath, arguments, reduce=None, points=None):
    """The `PivotCall` of arguments; local.

    Raises
    ------
    ConfigError
        For what a nest with a pivot cannot be run with.
    """
    given = {"reduce": reduce, "steps": loops.steps, "periodic": loops.periodic or None, "inject, record": points}
    read_periodic(nest, loops.periodic, False)
    if wrong := next((name for name, value in given.items() if value is not None), None):
        raise ConfigError(
            f"{wrong}= was given, and nest {nest.name!r} reads row {nest.pivot} and column {nest.pivot} of what it "
            "writes; allowed with such a pivot: over=, reverse=, plan=, fastmath="
        )
    nest, loops = strided(nest, loops, {}, None)
    arrays, scalars = split_arguments(nest, arguments)
    check_arrays(nest, arrays, context)
    shapes = shapes_of(nest, arrays)
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
    scalars, captured = nest.bind_scalars(scalars), {**nest.captured().values, **extents_of(nest, arrays)}
    check_reached(nest, arrays, scalars, loops, bounds)
    plan = _plan_of(nest, context, bounds, plan)
    kind = f"pivot, downwards {down}"
    return PivotCall(nest, context, arrays, scalars, captured, bounds, problem, plan, bool(fastmath), kind)


def _plan_of(nest, context, bounds, given):
    """The plan: rows over ranks and lanes."""
    whole, choices = fixed_by(given)
    allowed = ("tile", "threads")
    if wrong := next((name for name in choices if name not in allowed), None):
        raise ConfigError(f"plan: {wrong} was given, and nest {nest.name!r} has a pivot; allowed: {', '.join(allowed)}")
    threads = threads_of(context, choices, whole)
    extents = [high - low for low, high in bounds.box]
    usual = whole.tile if whole else (BLOCK, ROWS, max(1, extents[2]))
    tile = tile_of(choices, usual, "with a pivot: (steps of a block, rows, columns)")
    plan = Plan(grid=(1, context.size, 1), mapping_dim=0, tile=tile, factors=(1, threads, 1))
    plan.notes |= {"nest": nest.name, "pivot": nest.pivot, "loops": nest.indices, "extents": extents}
    return plan
