"""Schedules inside schedules: patterns and other schedules, with lanes, buffers, tags and arrays mapped."""

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.schedule.regions import ArrayOfSchedule, Region, integer, one_run

#: Of each pattern: the algorithm where none is given.
ALGORITHMS = {"broadcast": "tree", "reduce": "tree", "spread": "ring", "multi_reduce": "ring"}
#: What a nest takes to enter a schedule.
_BY_NEST = "work = b.nest(nest, arrays, number=) and, for each of its boxes, lane.compute(work, ...)"
#: A pattern's result is behind all of its works; in a schedule it has a number.
AT_THE_END = (1 << 63) - 1


def pattern_of(b, kind, region, into, root, columns, ranks, plan):
    """(core's schedule of this rank, in the pattern's coordinates; the regions of its arrays) or None for a rank
    that takes no part; `plan`: algorithm, bytes of chunks, buffers.
    """
    if kind not in ALGORITHMS:
        raise ConfigError(f"pattern: given {shown(kind)}; allowed: {', '.join(ALGORITHMS)}")
    b._check_region(f"pattern {kind}", region)
    source, parts = region.array, kind in ("spread", "multi_reduce")
    if len(source.shape) > 2:
        raise ConfigError(f"pattern {kind}: array {source.name!r} has {len(source.shape)} dimensions; allowed: 1 and 2")
    if (into is None) != (kind == "broadcast"):
        raise ConfigError(f"pattern {kind}: into: given {shown(into)}; allowed: an array, and none for broadcast")
    if into is not None and (into not in b._arrays or into is source or _kind(into) != _kind(source)):
        raise ConfigError(
            f"pattern {kind}: into: given {shown(into)}; allowed: another array of this builder, of the dtype and "
            f"number of dimensions of {source.name!r}"
        )
    if kind in ("reduce", "multi_reduce") and not (source.separate and source.combine):
        raise ConfigError(
            f"pattern {kind}: array {source.name!r}; allowed: one with separate=True and combine='sum', 'prod', ..."
        )
    if (columns is None) == parts:
        raise ConfigError(
            f"pattern {kind}: columns: given {shown(columns)}; allowed: for spread and multi_reduce, "
            "a number for each rank"
        )
    extents = [h - l for l, h in zip(region.lo, region.hi, strict=True)]
    rows, width = (1, extents[0]) if len(extents) == 1 else extents
    columns = [integer(f"pattern {kind}: columns", n) for n in columns] if parts else [width]
    if sum(columns) != width:
        raise ConfigError(f"pattern {kind}: columns {columns} of {region}; allowed: their sum is {width}")
    if b.rank not in ranks:
        return None
    item = source.dtype.itemsize
    problem = _core.PatternProblem(kind, len(ranks), rows, columns, item, integer(f"pattern {kind}: root", root))
    algorithm, chunk_bytes, buffers = plan
    sizes = integer("pattern: chunk_bytes", chunk_bytes), integer("pattern: buffers", buffers)
    plan = _core.PatternPlan(algorithm or ALGORITHMS[kind], *sizes)
    arrays = [source] if into is None else [source, into]
    # Of a rank that stores nothing of an array the length of its rows does not matter.
    strides = [max(a.storage.hi[-1] - a.storage.lo[-1], width) * item for a in arrays]
    core = _core.pattern_schedule(problem, plan, ranks.index(b.rank), strides[0], strides[-1])
    return core, [Region(a, region.lo, region.hi) for a in arrays]


def _kind(array):
    return array.dtype, len(array.shape)


def ranks_of(b, given, count=None):
    """Which ranks take part, by number in the part."""
    ranks = list(range(b.ranks)) if given is None else [integer("ranks", rank) for rank in given]
    if not ranks or len(set(ranks)) < len(ranks) or not all(0 <= rank < b.ranks for rank in ranks):
        raise ConfigError(f"ranks: given {ranks}; allowed: different ones of 0 to {b.ranks - 1}")
    if count is not None and len(ranks) != count:
        raise ConfigError(
            f"append: a schedule of {count} ranks for the ranks {ranks}; allowed: ranks= as many as it has"
        )
    return ranks


def regions_of(b, schedule, given):
    """Return by array of a schedule the region of this builder's array that it is."""
    given = dict(given or {})
    known = {array.name: array for array in b._arrays}
    found = []
    for name, shape, dtype in schedule._arrays:
        to = given.pop(name, known.get(name))
        if isinstance(to, ArrayOfSchedule):
            to = to[:]
        if shape is None:
            raise ConfigError(
                "append: a schedule of tilewave.schedule was given, whose halos and buffers belong to its fields; "
                f"allowed: one that tilewave.Schedule.build made; its nest is added by {_BY_NEST}"
            )
        if not isinstance(to, Region) or to.array not in b._arrays:
            raise ConfigError(
                f"append: arrays: array {name!r}: given {shown(to)}; allowed: an array or a region of one"
            )
        extents = tuple(h - l for l, h in zip(to.lo, to.hi, strict=True))
        if dtype != to.array.dtype or shape != extents or schedule._combine.get(name) != to.array.combine:
            raise ConfigError(
                f"append: array {name!r}, {dtype} {shape}, would be {to}, {to.array.dtype} {extents}; "
                "allowed: equal dtypes, extents and combine="
            )
        found.append(to)
    if given:
        raise ConfigError(
            f"append: arrays: the schedule has no array {next(iter(given))!r}; allowed: {schedule.arrays}"
        )
    return found


def moved(b, core, regions, ranks, number, tag, operations=(), kernels=()):
    """The part in the coordinates, arrays, ranks, numbers and tags of the whole."""
    shifts = [region.lo for region in regions]

    def box(array, given):
        lo, hi = given
        if len(lo) != len(shifts[array]):  # a pattern's one row
            lo, hi = lo[1:], hi[1:]
        return tuple(tuple(x + s for x, s in zip(corner, shifts[array], strict=True)) for corner in (lo, hi))

    messages, works, results = core.messages, [], core.results
    for m in messages:
        m.peer, m.region, m.tag = ranks[m.peer], box(m.array, m.region), m.tag + tag
        if m.buffer < 0 and m.bytes and not one_run(Region(regions[m.array].array, *m.region)):
            raise ConfigError(
                f"append: a message goes straight from or to its array, and {Region(regions[m.array].array, *m.region)}"
                " is no single run of this rank's memory; allowed: a part whose message has a buffer"
            )
    works.extend(_moved_work(w, number, box, shifts, operations, kernels) for w in core.works)
    for result in results:
        if result.number == AT_THE_END and core.works:
            raise ConfigError("append: a schedule with results at its end was given; allowed: numbered ones")
        result.region = box(result.array, result.region)
        result.ranks = [ranks[rank] for rank in result.ranks]
        result.number = number + (0 if result.number == AT_THE_END else result.number)
    part = _core.Schedule(core)
    part.rank, part.ranks, part.messages, part.works, part.results = b.rank, b.ranks, messages, works, results
    return part


def _moved_work(w, number, box, shifts, operations, kernels):
    if (task := w.task) is not None:
        reads, writes = (
            [_core.Region(r.array, box(r.array, r.box)) for r in regions] for regions in (task.reads, task.writes)
        )
        return _core.Work(w.number + number, _core.TaskWork(operations[task.operation], reads, writes, task.amount))
    nest = w.nest
    if any(any(shifts[place.array]) for place in nest.places):
        raise ConfigError("append: arrays: a nest was given regions that begin elsewhere; allowed: from 0 on")
    nest.kernel = kernels[nest.kernel]
    return _core.Work(w.number + number, nest)


def append(b, part, arrays, lanes):
    """Put a part that was moved behind what this rank has so far."""
    whole = b._made()
    whole.repeated = []
    if part.repeated:
        raise ConfigError("append: a schedule with a repeated block was given; allowed: those without")
    known = {work.number for work in whole.works}
    if both := sorted(work.number for work in part.works if work.number in known):
        raise ConfigError(f"append: work {both[0]} is in both; allowed: number= so that works have different numbers")
    numbers = [lane.number for lane in lanes] if lanes is not None else list(range(len(part.lanes)))
    if len(numbers) != len(part.lanes) or len(set(numbers)) < len(numbers):
        raise ConfigError(
            f"append: {len(numbers)} lanes for {len(part.lanes)}; allowed: a lane for each lane of the part"
        )
    while len(b._lanes) <= max(numbers, default=-1):
        b.lane()
    before = [len(lane._steps) for lane in b._lanes]
    tiles = len(b._tiles)
    _core.append(whole, part, [array.number for array in arrays], numbers)
    b._messages, b._buffers, b._results = whole.messages, whole.buffers, whole.results
    works = whole.works
    for work in works:
        if work.number not in b._works:
            b._works[work.number] = None, work
    b._tiles += [(works[tile.work].number, tile) for tile in whole.tiles[tiles:]]
    for lane, steps, begin in zip(b._lanes, whole.lanes, before, strict=False):
        added = [(step.op, step.item, step.count) for step in steps[begin:]]
        lane._steps += added
        lane._count = max([lane._count, *(count for op, _, count in added if op == "signal")])


def require_schedule(schedule):
    """Refuse what is none."""
    if not hasattr(schedule, "_cores"):
        raise ConfigError(
            f"append: given {shown(schedule)}; allowed: a tilewave.Schedule that tilewave.Schedule.build made; a nest "
            f"is added by {_BY_NEST}"
        )


def part_of_this_rank(b, schedule, ranks):
    """The core's schedule of this rank in a schedule, None where it takes no part."""
    if b.rank not in ranks:
        return None
    rank = ranks.index(b.rank)
    if rank not in schedule._cores:
        raise ConfigError(
            f"append: the part of rank {schedule.rank} was given to rank {rank}; allowed: of this rank, or all"
        )
    return schedule._cores[rank]
