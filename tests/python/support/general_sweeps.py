"""Random sweep problems of any uniform nest, plans for them, and the plain loops that define them."""

import dataclasses
import itertools
import math
import random

import numpy as np
from row_functions import loops

from tilewave import _core
from tilewave.errors import ConfigError

SCHEMES = list(itertools.product(("hyperplane", "vertical"), ("blocking", "overlapping")))
MOST_EXTENT = {1: 24, 2: 11, 3: 6, 4: 4}


@dataclasses.dataclass
class GeneralCase:
    """What a problem and a plan are made from, and both."""

    seed: int
    shape: tuple
    space: tuple
    arrays: list
    accesses: list
    bounds: list
    downwards: list
    sequential: bool
    window: list = ()  # by array: whether nobody reads it after the run
    ranks: int = 1
    refused: int = 0
    problem: object = None
    plan: object = None

    def __str__(self):
        return (
            f"seed {self.seed}: SweepProblem({self.shape}, {self.space}, {self.arrays}, {self.accesses}, "
            f"{self.bounds}, "
            f"{self.downwards}, {self.sequential}), window {self.window}; {self.ranks} ranks, plan {self.plan}"
        )

    def schedules(self):
        return [_core.sweep(self.problem, self.plan, r, self.ranks) for r in range(self.ranks)]


def general_case(seed, item_bytes=(1, 2, 4, 8), long_rows=False, deep_halo=False, weights=True):
    """The first case of a seed that is not refused; `refused` says how many were before it.

    With `long_rows` all cases have rolling windows with rows so long that they are cut into panels. With `deep_halo`
    ranks compute a deep halo, points of the next one's block, in all cases. With `weights` some have unequal blocks.
    """
    rng = random.Random(seed)
    for refused in range(20_000 if deep_halo else 1000):
        case = random_problem(rng, seed, item_bytes, long_rows)
        case.refused = refused
        try:
            case.window = random_window(seed, refused, case)
            case.problem = _core.SweepProblem(
                case.shape,
                case.space,
                [(*a, f) for a, f in zip(case.arrays, case.window)],
                case.accesses,
                case.bounds,
                case.downwards,
                case.sequential,
            )
            case.ranks, case.plan = random_plan(rng, case)
            use_rolling_windows(random.Random(f"planes {seed} {refused}"), case, long_rows)
            if deep_halo:
                add_deep_halo(random.Random(f"twice {seed} {refused}"), case)
            move_messages(random.Random(f"messages {seed}"), case)
            if weights:
                weigh(random.Random(f"weights {seed} {refused}"), case)
            case.plan.validate(case.problem, case.ranks)
        except ConfigError:
            continue
        return case
    raise AssertionError(f"seed {seed}: all problems and plans were refused")


def factorisations(n, dims, rng):
    """A random tuple of `dims` factors of n."""
    factors = [1] * dims
    p = 2
    while n > 1:
        if n % p == 0:
            factors[rng.randrange(dims)] *= p
            n //= p
        else:
            p += 1
    return tuple(factors)


def random_window(seed, refused, case):
    """By array: whether a rolling window is all that is to be kept. From a stream of its own."""
    rng = random.Random(f"frontier {seed} {refused}")  # recorded seeds depend on this name
    if rng.random() < 0.4:
        return [False] * len(case.arrays)
    written = {a for a, _, writes, _ in case.accesses if writes}
    return [a in written and rng.random() < 0.7 for a in range(len(case.arrays))]


def use_rolling_windows(rng, case, always):
    """Mostly change the plan to one with rolling windows, where there is one."""
    along, across, slant = case.problem.window
    if along < 0 and always:
        raise ConfigError("no rolling windows")
    if along < 0 or not always and rng.random() < 0.2:
        return
    dims, plan = len(case.shape), case.plan
    case.ranks = rng.choice((1, 2, 2, 3, 4, 6)) if case.problem.may_cut(along) else 1

    def only_along(n):
        return tuple(n if k == along else 1 for k in range(dims))

    plan.grid, plan.factors, plan.mapping_dim = only_along(case.ranks), only_along(rng.choice((1, 1, 2, 3, 4))), across
    plan.row = tuple(int(k == along) - slant * (k == across) for k in range(dims))
    if always:
        plan.chunk_bytes = rng.choice((1 << 10, 1 << 18))
    blocks = [max(1, most) for most in largest_blocks(case, plan.grid)]
    plan.tile = tuple(
        rng.randint(1 + most // 20, most) if k in (along, across) else most for k, most in enumerate(blocks)
    )


def add_deep_halo(rng, case):
    """Change the plan to one whose steps go together, over ranks that read back over their border."""
    plan, dims = case.plan, len(case.shape)
    along = rng.randrange(dims)
    case.ranks = rng.choice((2, 2, 3, 4))
    plan.grid = tuple(case.ranks if k == along else 1 for k in range(dims))
    plan.factors = tuple(rng.choice((1, 1, 1, 2, 3)) if k not in (along, plan.mapping_dim) else 1 for k in range(dims))
    plan.temporal_block = rng.choice((2, 2, 3, 4, 9))
    unit = unit_dims(case)
    plan.tile = tuple(
        1 if u else most if k == along else rng.randint(1, most)
        for k, (u, most) in enumerate(zip(unit, (max(1, b) for b in largest_blocks(case, plan.grid))))
    )
    if _core.deep_halo(case.problem, plan)[0] < 0:
        raise ConfigError("no deep halo")


def move_messages(rng, case):
    """How messages go, and sometimes ranks that have nothing to do."""
    case.ranks += rng.choice((0, 0, 0, 0, 1, 2))
    case.plan.synchronous = case.plan.schedule == "blocking" if rng.random() < 0.5 else rng.random() < 0.5
    case.plan.helper = rng.random() < 0.2
    case.plan.poll_period_s = rng.choice((0.0, 1e-6, 50e-6))
    case.plan.aggregate = rng.choice((1, 2, 3, 7, 1000))
    try:
        case.plan.validate(case.problem, case.ranks)
    except ConfigError:
        case.plan.aggregate = 1


def weigh(rng, case):
    """Sometimes give ranks points in proportion to random weights, where the plan then still does."""
    if case.ranks == 1 or rng.random() < 0.6:
        return
    plan, even, deep = case.plan, case.problem, _core.deep_halo(case.problem, case.plan)[0]
    plan.weights = tuple(rng.choice((1, 2, 5, 100)) for _ in range(case.ranks))
    case.problem = even.weighted(plan.weights, case.ranks)
    try:
        plan.validate(case.problem, case.ranks)
    except ConfigError:
        deep = None
    if deep is None or _core.deep_halo(case.problem, plan)[0] != deep:
        case.problem, plan.weights = even, ()


def random_problem(rng, seed, item_bytes, long_rows):
    dims = rng.choice((1, 2, 2, 2, 3, 3, 4))
    time = dims > 1 and rng.random() < 0.35
    sequential = rng.random() < 0.08
    extents = [rng.randint(1, MOST_EXTENT[dims]) for _ in range(dims)]
    if long_rows:
        extents[rng.randrange(dims)] = rng.randint(250, 900)
    downwards = [rng.random() < 0.25 for _ in range(dims)]
    bounds = random_bounds(rng, dims, extents)
    if time:
        downwards[0] = False
    low_rank = rng.random() < 0.25 or sequential
    written = rng.choice((1, 1, 1, 2, 3))
    reads_only = rng.choice((0, 0, 1, 2))
    buffers = rng.choice((1, 2)) if time else 0
    history = random.Random(f"history {seed}")  # of its own: other cases stay as they are
    axes, arrays, places = [], [], []
    for a in range(written + reads_only):
        writes = a < written
        own = random_axes(rng, dims, time, writes, low_rank)
        count = buffers if writes and 0 not in own and time else 0
        if count and history.random() < 0.3:
            count = history.choice((3, 3, 4, 5))
        axes.append(own)
        whole = not writes and rng.random() < 0.3
        arrays.append([rng.choice(item_bytes), whole, None, own, count])
        places += with_history(history, count, random_places(rng, a, dims, own, writes, count, sequential, bounds))
    space, shape = fit(rng, extents, arrays, places)
    places.sort(key=lambda p: not p[2])
    return GeneralCase(seed, shape, space, [tuple(a) for a in arrays], places, bounds, downwards, sequential)


def random_axes(rng, dims, time, written, low_rank):
    """The loop indices of an array, in order or not."""
    axes = list(range(dims))
    if time and (written or rng.random() < 0.5):
        axes.remove(0)
    if low_rank and len(axes) > 1 and rng.random() < 0.6:
        axes.remove(rng.choice(axes))
    if rng.random() < 0.1:
        rng.shuffle(axes)
    return tuple(axes)


def random_places(rng, a, dims, axes, written, buffers, sequential, bounds):
    """The places at which array `a` is accessed: written ones first, all different."""
    reach = rng.choice((1, 1, 1, 2, 3))
    timed = buffers > 0
    lacking = dims - len(axes) - timed

    def anywhere(behind):
        o = [0] * dims
        for k in axes:
            if rng.random() < 0.55:
                o[k] = -rng.randint(0, reach) if rng.random() < behind else rng.randint(-reach, reach)
        return o

    found = []
    keeps = bool(bounds) or rng.random() < 0.2
    first = [0] * dims if timed or rng.random() < 0.7 else anywhere(0.3)
    if written:
        first[0] += timed
        found.append((a, tuple(first), True, keeps))
        if not timed and not (lacking and not sequential) and rng.random() < 0.15:
            found.append((a, tuple(anywhere(0.3)), True, keeps))
    wanted = rng.randint(0 if written else 1, 3)
    behind = rng.choice((1, 0.7, 0.3))
    for _ in range(wanted):
        o = anywhere(behind)
        if written and not timed:
            o = [x + y for x, y in zip(o, first)]
        if written and lacking and not sequential:
            o = list(first)
        if timed:
            o[0] = rng.choice((0, 0, 1))
        found.append((a, tuple(o), False, False))
    unique = {}
    for place in found:
        unique.setdefault(place[1], place)
    return list(unique.values())


def with_history(rng, buffers, places):
    """The same places of an array with so many time buffers, some of them in earlier time steps."""
    unique = {}
    for a, offset, writes, keeps in places:
        if buffers > 2 and offset[0] == 0 and rng.random() < 0.6:
            offset = -rng.randint(1, buffers - 2), *offset[1:]
        unique.setdefault(offset, (a, offset, writes, keeps))
    return list(unique.values())


def random_bounds(rng, dims, extents):
    bounds = []
    while rng.random() < 0.25 and len(bounds) < 3:
        coefficients = tuple(rng.choice((0, 0, 1, -1, 1, -1, 2)) for _ in range(dims))
        middle = sum(c * n for c, n in zip(coefficients, extents)) // 2
        bounds.append((coefficients, rng.randint(0, 3) - middle + rng.choice((0, 0, 1)) * abs(middle)))
    return bounds


def fit(rng, extents, arrays, places):
    """The space and the arrays' shapes: no access leaves its array."""
    dims = len(extents)
    low = [max([0] + [-o[k] for a, o, _, _ in places if k in arrays[a][3]]) for k in range(dims)]
    high = [low[k] + extents[k] for k in range(dims)]
    if rng.random() < 0.2:
        low = [x + rng.randint(0, 2) for x in low]
        high = [max(x, y) for x, y in zip(low, high)]
    ahead = [max([0] + [o[k] for a, o, _, _ in places if k in arrays[a][3]]) for k in range(dims)]
    shape = [x + y + rng.choice((0, 0, 1)) for x, y in zip(high, ahead)]
    for array in arrays:
        array[2] = tuple(shape[k] + (rng.randint(0, 2) if rng.random() < 0.05 else 0) for k in array[3])
    if rng.random() < 0.03:
        high[rng.randrange(dims)] = low[0] if dims == 1 else low[-1]
        high = [max(x, y) for x, y in zip(low, high)]
    return (tuple(low), tuple(high)), tuple(shape)


def unit_dims(case):
    """Along which a tile is one point: as the plan demands it."""
    unit = [False] * len(case.shape)
    for d in case.problem.dependences:
        if min(d) < 0:
            unit[next(k for k, x in enumerate(d) if x)] = True
    for a, _, _, keeps in case.accesses:
        unit[0] = unit[0] or (keeps and case.arrays[a][4] > 1)
    return unit


def largest_blocks(case, grid):
    """Extents in tile coordinates of the largest block of a rank."""
    (low, high), shape = case.space, case.shape
    origin = case.accesses[0][1]
    missing = [k not in case.arrays[case.accesses[0][0]][3] for k in range(len(shape))]
    blocks = []
    for k, row in enumerate(case.problem.loops):
        if grid[k] == 1:
            empty = any(a >= b for a, b in zip(low, high))
            blocks.append(0 if empty else 1 + sum(abs(c) * (b - a - 1) for c, a, b in zip(row, low, high)))
            continue
        o = 0 if missing[k] else origin[k]
        n, parts = shape[k], grid[k]
        cuts = [c * (n // parts) + min(c, n % parts) - o for c in range(parts + 1)]
        blocks.append(max(min(b, high[k]) - max(a, low[k]) for a, b in itertools.pairwise(cuts)))
    return blocks


def random_plan(rng, case):
    """(ranks, plan) for a problem: any grid, tiles, factors, scheme, look-ahead, rows, storage."""
    dims = len(case.shape)
    plan = _core.Plan()
    if rng.random() < 0.3:
        plan.skew = random_skew(rng, case)
    plan.temporal_block = rng.choice((1, 1, 2, 3, 8))
    ranks = rng.choice((1, 2, 2, 3, 4, 6))
    grid = [1] * dims
    cut = [k for k in range(dims) if case.problem.may_cut(k)]
    if cut:
        for k, g in zip(cut, factorisations(ranks, len(cut), rng)):
            grid[k] = g
    plan.grid = tuple(grid)
    plan.mapping_dim = rng.randrange(dims)
    factors = list(factorisations(1 if case.sequential else rng.choice((1, 2, 3, 4)), dims, rng))
    factors[plan.mapping_dim] = 1
    plan.factors = tuple(factors)
    plan.grouping, plan.schedule = rng.choice(SCHEMES)
    plan.lookahead = rng.choice((1, 2, 4))
    plan.slices = rng.choice((1, 2, 5))
    plan.chunk_bytes = rng.choice((1, 16, 100, 1 << 18))
    plan.storage = rng.choice(("plain", "plain", "skewed"))
    plan.row = random_row(rng, dims)
    unit = unit_dims(case)
    tile = []
    for k, most in enumerate(largest_blocks(case, grid)):
        most = max(1, most)
        tile.append(1 if unit[k] else most if case.sequential else rng.randint(1, most))
    plan.tile = tuple(tile)
    return math.prod(grid), plan


def random_skew(rng, case):
    """Two loops whose sum tiles are cut along, which the problem then has; none where the problem refuses them."""
    k, l = rng.randrange(len(case.shape)), rng.randrange(len(case.shape))
    try:
        case.problem = case.problem.skewed(k, l)
    except ConfigError:
        return ()
    return k, l


def random_row(rng, dims):
    if rng.random() < 0.4:
        return ()
    row = [0] * dims
    up = rng.randrange(dims)
    row[up] = 1
    if dims > 1 and rng.random() < 0.5:
        row[rng.choice([k for k in range(dims) if k != up])] = -1
    return tuple(row)


def summed_places(case):
    """By place: whether a kernel may take its value from before the point."""
    return [not writes or keeps for _, _, writes, keeps in case.accesses]


def environment(case):
    """What the kernels are told: places, written ones, loops; by place: summed, perhaps left out."""
    written = [p for p in case.accesses if p[2]]
    return np.array(
        [
            len(case.accesses), len(written), len(case.shape), *summed_places(case),
            *[keeps for *_, keeps in case.accesses],
        ],
        dtype=np.int64,
    )


def plain_loops(case, arrays):
    """The arrays after the nest has run on copies, point by point in the order of the loops; time steps before the
    first are copies.
    """
    before = 4
    low, high = (np.array(x, dtype=np.int64) for x in case.space)
    dims = len(low)
    steps = max(0, high[0] - low[0])
    flat, first, strides, each = [], [], [], []
    for values, (_, _, _, axes, buffers) in zip(arrays, case.arrays):
        stride = np.zeros(dims, dtype=np.int64)
        for m, k in enumerate(axes):
            stride[k] = math.prod(values.shape[m + 1 :])
        stride[0] = values.size if buffers else stride[0]
        older = before if buffers else 0
        memory = np.zeros(values.size * (older + 1 + steps if buffers else 1), dtype=np.int64)
        memory[: values.size * (older + 1)] = np.tile(values.ravel(), older + 1)
        first.append(sum(len(f) for f in flat) + older * values.size)
        flat.append(memory)
        strides.append(stride)
        each.append(values.size if buffers else 0)
    memory = np.concatenate(flat)
    where = np.array(
        [
            first[a] - (low[0] * each[a]) + sum(o[k] * strides[a][k] for k in range(dims))
            for a, o, _, _ in case.accesses
        ],
        dtype=np.int64,
    )
    by_place = np.array([strides[a] for a, *_ in case.accesses]).reshape(-1, dims)
    bounds = np.array([[*c, b] for c, b in case.bounds], dtype=np.int64).reshape(-1, dims + 1)
    if (high > low).all():
        _loops(
            low,
            high,
            np.array(case.downwards),
            bounds,
            environment(case),
            where,
            by_place,
            memory,
            np.array(first),
            np.array(each),
        )
    else:
        steps = 0
    return [memory[f + steps * e :][: values.size].reshape(values.shape) for f, e, values in zip(first, each, arrays)]


@loops
def _loops(low, high, down, bounds, env, where, strides, memory, first, each):
    dims, places, writes = len(low), env[0], env[1]
    count = np.zeros(dims, np.int64)
    x = np.zeros(dims, np.int64)
    fresh = True
    while True:
        for k in range(dims):
            x[k] = high[k] - 1 - count[k] if down[k] else low[k] + count[k]
        if fresh:  # a time buffer begins as a copy of the one before
            for a in range(len(first)):
                now = first[a] + count[0] * each[a]
                memory[now + each[a] : now + 2 * each[a]] = memory[now : now + each[a]]
            fresh = False
        inside = True
        for b in range(len(bounds)):
            inside = inside and (bounds[b, :dims] * x).sum() + bounds[b, dims] >= 0
        if inside:
            value = np.int64(1)
            for p in range(places):
                if env[3 + p]:
                    value += (p + 2) * memory[where[p] + (strides[p] * x).sum()]
            for k in range(dims):
                value += x[k] * (k + 3)
            for p in range(writes):
                if not env[3 + places + p] or (value >> p) % 4 != 0:
                    memory[where[p] + (strides[p] * x).sum()] = value * (2 * p + 1)
        k = dims - 1
        while k >= 0:
            count[k] += 1
            fresh = fresh or k == 0
            if count[k] < high[k] - low[k]:
                break
            count[k] = 0
            k -= 1
        if k < 0:
            return
