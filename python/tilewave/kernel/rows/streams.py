"""Where the values that a body reads come from when rows are the lanes of a vector."""

from dataclasses import dataclass, field

#: Steps for which values stay in registers, at most.
MOST_STEPS = 24
#: Streams from memory, at most: each is transposed. A sweep with 26 neighbours, 35 streams: 14 s to compile, 0.7
#: without lanes, and no slower a point.
MOST_FROM_MEMORY = 20


@dataclass(frozen=True)
class Staggered:
    """The word of the caller that rows whose points depend on each other may be computed together.

    ``points``: how many points each must be behind the one before it. ``neighbours`` has for each place of the nest
    (rows, points): its element is that which the point so many rows and points further on writes, in the same sweep
    over the rows; None where no point of them does."""

    points: int
    neighbours: tuple = ()


@dataclass
class Stream:
    """Elements that follow each other along rows, the next in each step, of which a point sees some.

    ``key``: the place that comes first. ``ages``: of each place, the steps from the first to it. ``rows``: how many
    rows above this one the points were that computed the elements, ``behind`` how many steps ago; 0 where they come
    from memory. ``ahead``: steps from the first of the stream to ``key``, where no place is at the first."""

    key: tuple
    rows: int = 0
    behind: int = 0
    ahead: int = 0
    ages: dict = field(default_factory=dict)

    @property
    def depth(self):
        return max(self.ages.values(), default=0)

    @property
    def last(self):
        """The place that comes last."""
        return max(self.ages, key=self.ages.get)


@dataclass
class Streams:
    """All streams of a body: ``results`` and ``above`` by what writes them, ``memory``; ``same`` are places of one
    element a row.
    """

    results: dict  # from written place to the stream of what its row has written there
    above: list
    memory: list
    same: list
    unused: set  # places whose value nothing uses
    checks: list  # (place, its writer, rows, points): what the addresses must say
    lag: int

    def depth(self, writer):
        """Steps for which the results of a written place are needed."""
        return max(
            [self.results[writer].depth, *(stream.behind for stream in self.above if stream.key[0] == writer[0])]
        )


def lag_of(frame, staggered):
    """Points by which a lane is behind the one before it.

    A value goes from lane to lane in about the time of a step. 3 points keep that off the critical path from one step
    to the next; where steps are long (roots, quotients) 2 do, and fewer points are left over. ns a point at 1, 2, 3, 4:
    three neighbours in 64x64x256 floats 0.8, 0.42, 0.39, 0.42; three square roots 1.5, 1.0, 1.15, 1.3."""
    slow = any(each.opname in ("call", "fdiv") for block in frame.row.blocks for each in block.instructions)
    return max(2 if slow else 3, staggered.points)


def streams_of(frame, staggered, unused, most_rows):
    """The streams of a frame's body, or None where rows cannot be lanes.

    Each array that is written needs one written place, with steps of an element; others' steps may be 0. `unused` are
    places whose value nothing uses."""
    nest, steps = frame.nest, frame.steps
    written = {key[0]: key for key in frame.written()}
    if len(written) < len(frame.written()) or len(staggered.neighbours) != len(nest.places):
        return None
    if any(len(nest.axes[array]) != nest.rank for array in written if array in nest.axes):
        return None
    if any(steps[place.key] not in ((-1, 1) if place.array in written else (-1, 0, 1)) for place in nest.places):
        return None
    near = dict(zip((place.key for place in nest.places), staggered.neighbours, strict=True))
    in_memory = [
        place.key
        for place in nest.places
        if place.key not in unused and steps[place.key] and not _was_computed(near[place.key], most_rows)
    ]
    lag = lag_of(frame, staggered)
    found = Streams(
        {key: Stream(key) for key in written.values()},
        [],
        _in_memory(frame, in_memory),
        [place.key for place in nest.places if steps[place.key] == 0],
        unused,
        [],
        lag,
    )
    above = {}
    for place in nest.places:
        key = place.key
        if key in unused or not steps[key] or not _was_computed(near[key], most_rows):
            continue
        rows, points = near[key]
        found.checks.append((key, written[key[0]], rows, points))
        if rows == 0:
            found.results[written[key[0]]].ages[key] = -points
        else:
            above.setdefault((key[0], -rows), {})[key] = points
    for (_, rows), places in above.items():
        first = max(places, key=places.get)
        head = max(places[first], 0)  # the last row's first point needs no results from before its row's
        ages = {key: head - points for key, points in places.items()}
        found.above.append(Stream(first, rows, rows * lag - head, head - places[first], ages))
    streams = [*found.results.values(), *found.above, *found.memory]
    if len(found.memory) > MOST_FROM_MEMORY or any(stream.depth > MOST_STEPS for stream in streams):
        return None
    if any(stream.behind < 1 for stream in found.above):
        return None
    return None if any(found.depth(key) > MOST_STEPS for key in found.results) else found


def _was_computed(neighbour, most_rows):
    """Return whether the group of rows has computed an element before the point that reads it."""
    if neighbour is None:
        return False
    rows, points = neighbour
    return -most_rows < rows < 0 or rows == 0 and points < 0


def _in_memory(frame, keys):
    """Streams of elements that are in memory; those of one row are one stream."""
    places = [place.key for place in frame.nest.places]
    rows = {}
    for key in keys:
        other = frame.same_row[places.index(key)] if frame.same_row else None
        root, elements = (places[other[0]], other[1]) if other else (key, 0)
        rows.setdefault(root, {})[key] = elements * frame.steps[key]
    streams = []
    for found in rows.values():
        first = max(found, key=found.get)
        streams.append(Stream(first, ages={key: found[first] - points for key, points in found.items()}))
    return streams
