"""Random sweep problems and plans, from a seed."""

import itertools
import random

from tilewave import _core

SCHEMES = list(itertools.product(("hyperplane", "vertical"), ("blocking", "overlapping")))


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


def random_case(seed, ranks=None, item_bytes=(4, 8), parts=False):
    """(problem, plan, ranks): any dims, dependences, grid, tiles, factors, scheme, look-ahead."""
    rng = random.Random(seed)
    dims = rng.choice((1, 2, 2, 2, 3, 3, 4))
    ranks = ranks or rng.choice((1, 2, 3, 4, 6))
    most = {1: 30, 2: 14, 3: 8, 4: 5}[dims]
    shape = tuple(rng.randint(1, most) for _ in range(dims))
    reach = rng.choice((1, 1, 1, 2, 3))
    wanted = rng.randint(1, 4)
    offsets = {(0,) * dims} if rng.random() < 0.3 else set()
    for _ in range(50):
        if len(offsets) >= wanted:
            break
        o = tuple(-rng.randint(0, reach) if rng.random() < 0.6 else 0 for _ in range(dims))
        offsets.add(o)
    reads = [(0, o) for o in sorted(offsets)]
    arrays = [(rng.choice(item_bytes), False)]
    for a in range(rng.choice((0, 0, 1, 2))):
        arrays.append((rng.choice(item_bytes), rng.random() < 0.3))
        times = rng.randint(1, 2)
        reads.extend((a + 1, tuple(rng.randint(-1, 2) for _ in range(dims))) for _ in range(times))
    low = [max([0] + [-o[k] for _, o in reads]) for k in range(dims)]
    high = [min([n] + [n - o[k] for _, o in reads]) for k, n in enumerate(shape)]
    low = tuple(min(a, n) for a, n in zip(low, shape))
    high = tuple(max(a, b) for a, b in zip(low, high))
    if rng.random() < 0.2:  # narrowed
        low, high = zip(*((a + (b - a) // 4, b - (b - a) // 4) for a, b in zip(low, high)))
    problem = _core.SweepProblem(shape, (low, high), arrays, reads)
    plan = _core.Plan()
    plan.grid = factorisations(ranks, dims, rng)
    plan.mapping_dim = rng.randrange(dims)
    threads = rng.choice((1, 2, 3, 4))
    factors = list(factorisations(threads, dims, rng))
    factors[plan.mapping_dim] = 1
    plan.factors = tuple(factors)
    plan.grouping, plan.schedule = rng.choice(SCHEMES)
    plan.lookahead = rng.choice((1, 2, 4))
    plan.slices = rng.choice((1, 2, 5))
    plan.chunk_bytes = rng.choice((16, 100, 1 << 18))
    tile = []
    for k in range(dims):
        blocks = [
            min(high[k], (c + 1) * (shape[k] // plan.grid[k]) + min(c + 1, shape[k] % plan.grid[k]))
            - max(low[k], c * (shape[k] // plan.grid[k]) + min(c, shape[k] % plan.grid[k]))
            for c in range(plan.grid[k])
        ]
        tile.append(rng.randint(1, max(1, *blocks)) if len(blocks) > 1 else rng.randint(1, max(1, blocks[0])))
    plan.tile = tuple(tile)
    if parts:
        return problem, plan, ranks, reads, [whole for _, whole in arrays]
    return problem, plan, ranks


def schedules(problem, plan, ranks):
    return [_core.sweep(problem, plan, r) for r in range(ranks)]


def describe(problem, plan, ranks):
    return f"shape {problem.shape} space {problem.space} deps {problem.dependences} ranks {ranks} plan {plan}"
