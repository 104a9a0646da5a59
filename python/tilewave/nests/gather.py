"""Nests that read what earlier time steps have written along a whole axis: each step is gathered by all ranks."""

import dataclasses
import math

from tilewave import _core
from tilewave.field.field import Field
from tilewave.nest.bounds import loop_bounds, loop_directions, read_strides
from tilewave.nest.inner_loops import extents_of
from tilewave.nest.timeless import without_time
from tilewave.nest.unreached import check_reached
from tilewave.nests.arguments import check_arrays, split_arguments
from tilewave.nests.problem import box_of_loops, lacking_time
from tilewave.nests.task_nests import TaskNestCall, is_numpy, threads_of, tile_of
from tilewave.plan.fixed import fixed_by
from tilewave.plan.plan import Plan

#: Bytes that a chunk of a part has at least, and the most chunks of one.
CHUNK_BYTES, MOST_CHUNKS = 4096, 8
#: Seconds of a term of a loop inside the body for each byte of it. Viterbi, doubles and floats, one lane of a Xeon
#: with AVX-512: 0.16 and 0.055 ns.
TERM_BYTE_S = 0.02e-9
#: Seconds that a task and its steps take beyond its points.
TASK_S = 2e-6
#: All ranks are used where a step on all of them is predicted to take at most this part of one on one rank.
WORTH = 0.9


@dataclasses.dataclass
class Gathered:
    """What is known of a nest, and of the shapes of its arrays.

    Attributes
    ----------
    time, cut : int
        Which loops are time, and divided.
    lacking : tuple of str
        Arrays without a dimension for time.
    places : dict
        From each written array to the place that is written.
    depths : dict
        From each written array to how many steps back it is read; 0: not from a plane.
    travels : dict
        Whether it is read at other values of the loop that is divided.
    """

    time: int
    cut: int
    lacking: tuple
    places: dict
    depths: dict
    travels: dict


class GatherCall(TaskNestCall):
    """A call of such a nest; `problem` is a `_core.GatherProblem`, `facts` a `Gathered`."""

    tasks, kept = ("load", "step"), "planes of"
    facts = core_loops = None

    @property
    def core_plan(self):
        """The plan for the core."""
        return _core.GatherPlan(self.plan.tile[self.facts.cut], math.prod(self.plan.factors))

    def schedule_of(self, rank):
        """That of a rank."""
        return _core.gather_schedule(self.problem, self.core_plan, rank, self.context.size)

    def keeps(self, name):
        """Whether the schedule has an array for what is kept of a written one."""
        return self.facts.depths[name] > 0

    def axes_of(self, name):
        """The loops of the dimensions of a written array, as numbers."""
        axes = self.facts.places[name].axes[name in self.facts.lacking :]
        return [self.nest.indices.index(index) for index in axes]

    def layout_of(self, name):
        """Who has which elements."""
        grid = tuple(self.context.size if axis == self.facts.cut else 1 for axis in self.axes_of(name))
        return _core.Layout(self.arrays[name].shape, grid)

    @property
    def points(self):
        """That are computed."""
        return self.core_loops.points

    @property
    def waves(self):
        """Time steps."""
        low, high = self.bounds.box[self.facts.time]
        return high - low

    def core_run(self, *made):
        return _core.GatherRun(self.context._core, self.core_loops, self.problem, self.core_plan, *made)

    def planes_of(self, name):
        """How a plane of an array lies, by loop: [the loop that is divided][the others]."""
        axes, shape = self.axes_of(name), self.arrays[name].shape
        extents = {axis: shape[d] for d, axis in enumerate(axes) if axis != self.facts.time}
        order = sorted(extents, key=lambda axis: (axis != self.facts.cut, axis))
        bytes_, step = {}, self.arrays[name].dtype.itemsize
        for axis in reversed(order):
            bytes_[axis] = step
            step *= extents[axis]
        return order, extents, bytes_

    def _outside(self, name):
        """(address of element 0, bytes along the loops) of a written array."""
        local, axes = self.local(name), self.axes_of(name)
        bytes_ = dict(zip(axes, local.strides, strict=True))
        first = [0] * local.ndim if is_numpy(self.arrays[name]) else self.arrays[name]._storage.owned[0]
        return local.ctypes.data - sum(f * s for f, s in zip(first, local.strides, strict=True)), bytes_

    def back(self, place):
        """How many steps before the one at hand made what a place has; 0: this one."""
        nest, facts = self.nest, self.facts
        written, index = facts.places[place.array], nest.indices[facts.time]
        return abs(written.along.get(index, 0) - place.along.get(index, 0))

    def in_planes(self, place):
        """Whether a place of a written array is in its planes."""
        if not self.facts.depths[place.array]:
            return False
        return self.back(place) > 0 or place.array in self.facts.lacking

    def step_of(self, place):
        """Bytes from point to point of a row."""
        name, last = place.array, len(self.nest.indices) - 1
        if name not in self.nest.written:
            return self.read_only(place)[1][last]
        if self.in_planes(place):
            return self.planes_of(name)[2].get(last, 0)
        if name in self.memory:
            return self._outside(name)[1].get(last, 0)
        axes = self.axes_of(name)
        return self.arrays[name].dtype.itemsize if axes[-1] == last else None if last in axes else 0

    def places_of_run(self):
        """What is known once fields lie as they are run: where places and matrices are."""
        nest, facts = self.nest, self.facts
        loops, position = range(len(nest.indices)), nest.indices.index
        places, matrices = [], []
        for place in nest.places:
            name = place.array
            if name not in nest.written:
                places.append((-1, 0, self.read_only(place)[0], 0, self.read_only(place)[1]))
                continue
            inside = self.in_planes(place)
            address, bytes_ = (0, self.planes_of(name)[2]) if inside else self._outside(name)
            offset = sum(bytes_.get(position(index), 0) * by for index, by in place.along.items())
            matrix = nest.written.index(name) if inside else -1
            places.append((matrix, self.back(place), address, offset, tuple(bytes_.get(d, 0) for d in loops)))
        for name in nest.written:
            place = facts.places[name]
            order, extents, planes = self.planes_of(name)
            address, bytes_ = self._outside(name)
            box = [self.bounds.box[axis] for axis in order]
            complete = place.always and not self.bounds.constraints
            complete = complete and not any(place.along[nest.indices[axis]] for axis in order)
            complete = complete and box == [(0, extents[axis]) for axis in order]
            matrices.append(
                (
                    address,
                    bytes_.get(facts.time, 0),
                    place.along.get(nest.indices[facts.time], 0),
                    complete,
                    tuple(extents[axis] for axis in order),
                    tuple(bytes_[axis] for axis in order),
                    tuple(planes[axis] for axis in order),
                    self.arrays[name].dtype.itemsize,
                )
            )
        return places, matrices


def checked(nest, context, loops, plan, fastmath, arguments, reduce=None, points=None):
    """The `GatherCall` of arguments; local. None where the nest runs in another way: in the order of its loops on one
    rank, if it reads along loops inside its body what it writes.

    Raises
    ------
    ConfigError
    """
    whole, choices = fixed_by(plan)
    if reduce or points or loops.periodic or context._dry_run is not None:
        return None
    if context.size * context.threads == 1 and loops.steps is None:
        return None
    if choices.keys() - {"grid", "tile", "threads"} or read_strides(nest.indices, loops.over):
        return None
    grid = choices.get("grid", whole and whole.grid)
    if grid is not None and (not isinstance(grid, tuple) or whole and "gathers" not in whole.notes):
        return None
    arrays, scalars = split_arguments(nest, arguments)
    nest = without_time(nest, loops, arrays)
    if any(not is_numpy(value) and not isinstance(value, Field) for value in arrays.values()):
        return None
    check_arrays(nest, arrays, context)
    down = [d < 0 for d in loop_directions(nest.indices, loops.reverse)]
    if any(getattr(value, "keep", "all") != "all" for value in arrays.values()) or loops.steps is not None and down[0]:
        return None
    bounds = loop_bounds(nest.indices, box_of_loops(nest, arrays, loops.steps), loops.over)
    lanes = threads_of(context, choices, whole)
    facts = gathered(nest, arrays, bounds, down, context.size, lanes, loops.steps, grid)
    if facts is None:
        return None
    check_reached(nest, arrays, nest.bind_scalars(scalars), loops, bounds)
    extents = [high - low for low, high in bounds.box]
    usual = whole.tile if whole else _tile(nest, context, arrays, facts, extents)
    tile = tile_of(choices, usual, "here: a number for each loop")
    # A time step that is not all written begins as the one before, which the order of the loops alone does not copy.
    copies = loops.steps is not None and (bounds.constraints or not all(p.always for p in facts.places.values()))
    worth = context.size * lanes > 1 and (
        grid is not None or _is_worth_it(nest, context, arrays, facts, extents, lanes)
    )
    if not copies and not worth:
        return None
    count = len(nest.indices)
    along = lambda n: tuple(n if d == facts.cut else 1 for d in range(count))
    made = Plan(grid=along(context.size), mapping_dim=facts.time, tile=tile, factors=along(lanes))
    made.notes |= {
        "nest": nest.name,
        "gathers": nest.indices[facts.cut],
        "travels": any(facts.travels.values()),
        "loops": nest.indices,
        "extents": extents,
    }
    scalars, captured = nest.bind_scalars(scalars), {**nest.captured().values, **extents_of(nest, arrays)}
    kind = f"gathers, downwards {down}"
    call = GatherCall(nest, context, arrays, scalars, captured, bounds, None, made, bool(fastmath), kind)
    call.facts = facts
    sizes = [(call.planes_of(n)[2][facts.cut], facts.depths[n], facts.travels[n]) for n in nest.written]
    call.problem = _core.GatherProblem(extents[facts.time], _extent(nest, arrays, facts), sizes)
    box = tuple(zip(*bounds.box, strict=True))
    call.core_loops = _core.GatherLoops(box, list(bounds.constraints), facts.time, facts.cut, down[facts.time])
    return call


def gathered(nest, arrays, bounds, down, ranks, lanes, steps, grid):
    """`Gathered`, or None where steps of the nest depend on each other in other ways than are gathered."""
    lacking = () if steps is None else tuple(lacking_time(nest, arrays))
    if not nest.parameters.wholes or any(low >= high for low, high in bounds.box):
        return None
    if any(name not in nest.axes for name in nest.written):
        return None
    if any(place.phases for place in nest.places if place.array in nest.written):
        return None
    vectors = [each.vector for each in nest.dependences]
    firsts = {next(d for d, entry in enumerate(vector) if entry != 0) for vector in vectors}
    if len(firsts) != 1 or any(vector[min(firsts)] is None for vector in vectors):
        return None  # a dependence within a step, or between all
    (time,) = firsts
    places, depths, travels = {}, {}, {}
    for name in nest.written:
        of = [place for place in nest.places if place.array == name]
        places[name], *more = [place for place in of if place.written]
        index, written = nest.indices[time], places[name]
        back = [(written.along.get(index, 0) - p.along.get(index, 0)) * (-1 if down[time] else 1) for p in of]
        if more or min(back) < 0 or any(b == 0 and p is not written for b, p in zip(back, of, strict=True)):
            return None
        travels[name] = any(_moves(p, written, index) for p in of)
        depths[name] = max(back) if travels[name] or name in lacking else 0
        if name in lacking and (max(back) > 1 or getattr(arrays[name], "history", 0)):
            return None
    cuts = [d for d in range(len(nest.indices)) if d != time and _may_cut(nest, arrays, lacking, places, d)]
    free = [d for d in cuts if not any(vector[d] for vector in vectors) and None not in {v[d] for v in vectors}]
    long = [d for d in free if bounds.box[d][1] - bounds.box[d][0] >= ranks * lanes]
    if grid is not None and ranks > 1:
        cuts = [d for d in cuts if grid == tuple(ranks if k == d else 1 for k in range(len(nest.indices)))]
        long = [d for d in free if d in cuts]
    if not cuts:
        return None
    cut = max(long or cuts[-1:], key=lambda d: bounds.box[d][1] - bounds.box[d][0])
    if cut in free:
        travels = dict.fromkeys(travels, False)
    return Gathered(time, cut, lacking, places, depths, travels)


def _moves(place, written, time):
    """Whether a place of a written array is not that of the point that writes."""
    here, there = place.along, written.along
    return bool(place.whole) or any(here[index] != there[index] for index in here if index != time)


def _may_cut(nest, arrays, lacking, places, d):
    """Whether ranks may divide a loop: what is written has elements of its own for each of its values."""
    index, extents = nest.indices[d], set()
    for name, place in places.items():
        if place.axes.count(index) != 1 or place.along[index] != 0:
            return False
        extents.add(arrays[name].shape[place.axes.index(index) - (name in lacking)])
    return len(extents) == 1


def _extent(nest, arrays, facts):
    """The elements along the loop that is divided."""
    name = nest.written[0]
    return arrays[name].shape[facts.places[name].axes.index(nest.indices[facts.cut]) - (name in facts.lacking)]


def _tile(nest, context, arrays, facts, extents):
    """One step, and as many elements of the loop that is divided as travel at once."""
    part = max(1, -(-_extent(nest, arrays, facts) // context.size))
    item = max(arrays[name].dtype.itemsize for name in nest.written)
    others = math.prod(n for d, n in enumerate(extents) if d not in (facts.time, facts.cut))
    chunks = min(MOST_CHUNKS, part * item * others // CHUNK_BYTES) if any(facts.travels.values()) else 1
    chunk = -(-part // max(1, chunks))
    return tuple(1 if d == facts.time else chunk if d == facts.cut else n for d, n in enumerate(extents))


def _is_worth_it(nest, context, arrays, facts, extents, lanes):
    """Whether a step on all ranks and lanes is predicted to take less than on one."""
    machine, ranks = context._core.machine(), context.size
    along = max(arrays[node.value.id].shape[-1] for node in nest.parameters.wholes)
    item = max(arrays[name].dtype.itemsize for name in nest.written)
    points = math.prod(n for d, n in enumerate(extents) if d != facts.time)
    one_s = points * len(nest.inner) * along * item * TERM_BYTE_S
    all_s = one_s * max(1, machine.ranks_per_core) / (ranks * lanes) + TASK_S
    if any(facts.travels.values()):
        hosts = set(machine.host_of)
        link = machine.other_host if len(hosts) > 1 else machine.same_host
        part = points / ranks * item
        rounds = max(1, math.ceil(math.log(ranks, 8))) if ranks > 1 else 0
        all_s += rounds * link.latency_s + (ranks - 1) * (link.send_s + link.receive_s + part * link.byte_s)
        all_s += 2 * machine.hand_over_s * (lanes > 1) + 40e-6 * rounds * (machine.ranks_per_core - 1)
    return all_s < WORTH * one_s
