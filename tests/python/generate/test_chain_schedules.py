"""Several sweeps as one schedule: proved for random chains, and what is taken away from them is found."""

import random

import pytest

from tilewave import _core
from tilewave.errors import ConfigError

OFFSETS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (1, 1), (-2, 0), (0, 2)]


def sweep_of(dice, shape, arrays, grid, halo=2):
    """A sweep over `arrays` (numbers of memories): it writes the first, and reads any of them around the point."""
    dims = len(shape)
    reads = [(a, dice.choice(OFFSETS)) for a in range(len(arrays)) for _ in range(dice.randint(0, 3))]
    low = tuple(max([0, *(-o[k] for _, o in reads)]) for k in range(dims))
    high = tuple(shape[k] - max([0, *(o[k] for _, o in reads)]) for k in range(dims))
    down = [bool(dice.getrandbits(1)) for _ in shape]
    problem = _core.SweepProblem(
        shape,
        (low, high),
        [(8, False, (), (), 0, False) for _ in arrays],
        [(0, (0,) * dims, True, False)] + [(a, o, False, False) for a, o in reads],
        [],
        down,
        False,
    )
    for a in range(len(arrays)):
        problem.widen(a, (halo,) * dims, (halo,) * dims)
    plan = _core.Plan()
    lanes = dice.randint(1, 3)
    plan.grid, plan.mapping_dim, plan.lookahead = grid, 1, dice.randint(1, 2)
    plan.tile, plan.factors = (dice.randint(1, 2), dice.randint(1, 5)), (lanes, 1)
    return problem, plan


def random_chain(seed):
    """The schedules of all ranks, or None where a plan is none for its sweep."""
    dice = random.Random(seed)
    shape = (dice.randint(7, 12), dice.randint(6, 12))
    ranks = dice.choice([1, 2, 3])
    grid = (ranks, 1)
    problems, plans, memories = [], [], []
    for _ in range(dice.randint(2, 4)):
        arrays = dice.sample(range(3), dice.randint(1, 3))
        problem, plan = sweep_of(dice, shape, arrays, grid)
        problems.append(problem)
        plans.append(plan)
        memories.append(arrays)
    try:
        return [_core.chain(problems, plans, memories, rank, ranks) for rank in range(ranks)]
    except ConfigError as error:
        assert "tile" in str(error) or "grid" in str(error) or "factors" in str(error), error
        return None


def copies(lanes):
    """Steps that belong to no schedule."""
    return [[_core.Step(step.op, step.item, step.count) for step in lane] for lane in lanes]


@pytest.mark.parametrize("seed", range(30))
def test_chains_are_proved(seed):
    schedules = random_chain(seed)
    if schedules is None:
        pytest.skip("a plan that its sweep does not allow")
    assert _core.check(schedules) is None, f"seed {seed}: {_core.check(schedules)}"
    assert [w.number for w in schedules[0].works] == list(range(len(schedules[0].works)))


@pytest.mark.parametrize("seed", range(12))
def test_two_sweeps_in_another_order_are_found(seed):
    """Tiles of the first sweep change places with tiles of the last one that writes the same array."""
    dice = random.Random(seed)
    shape, ranks = (9, 8), 2
    reads = [(-1, 0), (0, -1), (1, 0), (0, 1)]
    problems, plans = [], []
    for down in (False, True):
        problem = _core.SweepProblem(
            shape,
            ((1, 1), (8, 7)),
            [(8, False, (), (), 0, False)],
            [(0, (0, 0), True, False)] + [(0, o, False, False) for o in reads],
            [],
            [down, down],
            False,
        )
        plan = _core.Plan()
        plan.grid, plan.mapping_dim, plan.tile, plan.factors, plan.lookahead = (ranks, 1), 1, (2, 3), (1, 1), 1
        problems.append(problem)
        plans.append(plan)
    schedules = [_core.chain(problems, plans, [[0], [0]], rank, ranks) for rank in range(ranks)]
    assert _core.check(schedules) is None
    s = schedules[dice.randrange(ranks)]
    lanes = copies(s.lanes)
    works = [tile.work for tile in s.tiles]
    places = [i for i, step in enumerate(lanes[0]) if step.op == "compute"]
    first = [i for i in places if works[lanes[0][i].item] == 0]
    last = [i for i in places if works[lanes[0][i].item] == 1]
    i, j = dice.choice(first), dice.choice(last)
    lanes[0][i], lanes[0][j] = lanes[0][j], lanes[0][i]
    s.lanes = lanes
    found = str(_core.check(schedules))
    assert "right values" in found or "before anything is there" in found, f"seed {seed}"


def test_lanes_of_a_later_sweep_wait_for_those_before():
    """Without the waits between lanes that a chain adds, there is no order between its sweeps."""
    dice = random.Random(3)
    found = 0
    for _ in range(6):
        problems, plans = [], []
        for down in (False, True):
            problem, plan = sweep_of(dice, (10, 10), [0], (1, 1))
            problems.append(problem)
            plan.factors = (2, 1)
            plans.append(plan)
        try:
            schedules = [_core.chain(problems, plans, [[0], [0]], 0, 1)]
        except ConfigError:
            continue
        assert _core.check(schedules) is None
        s = schedules[0]
        lanes = copies(s.lanes)
        works = [tile.work for tile in s.tiles]
        for lane in lanes:
            begin = next((i for i, x in enumerate(lane) if x.op == "compute" and works[x.item] == 1), len(lane))
            lane[:] = [x for i, x in enumerate(lane) if not (x.op == "await" and i >= begin - 3)]
        s.lanes = lanes
        found += "order" in str(_core.check(schedules)) or "right values" in str(_core.check(schedules))
    assert found > 0


def test_what_no_chain_can_be():
    dice = random.Random(1)
    shape = (8, 8)
    one, plan = sweep_of(dice, shape, [0], (2, 1))
    other, other_plan = sweep_of(dice, shape, [0], (2, 1), halo=3)
    plan.factors = other_plan.factors = (1, 1)
    with pytest.raises(ConfigError, match=r"nest 2 has array 0 on grid \(2, 1\) with halos .*, nest 1 on grid"):
        _core.chain([one, other], [plan, other_plan], [[0], [0]], 0, 2)
    with pytest.raises(ConfigError, match="no sweeps were given"):
        _core.chain([], [], [], 0, 1)
    with pytest.raises(ConfigError, match="2 memories for 1 arrays"):
        _core.chain([one], [plan], [[0, 1]], 0, 2)
    reading = _core.SweepProblem(
        shape, ((1, 0), shape), [(8, False, (), (), 0, False)],
        [(0, (0, 0), True, False), (0, (-1, 0), False, False)], [], [False, False], False,
    )
    with pytest.raises(ConfigError, match="take larger tiles, or fewer nests"):
        _core.chain([reading], [plan], [[0]], 1, 2, 5)


@pytest.mark.parametrize("seed", range(24))
def test_chains_are_repeatable(seed):
    schedules = random_chain(seed)
    if schedules is None:
        pytest.skip("a plan that its sweep does not allow")
    block = [_core.repeatable(s) for s in schedules]
    assert _core.check(block) is None, f"seed {seed}: {_core.check(block)}"


def test_lanes_of_a_repetition_wait_for_the_one_before():
    """A block of all steps without more waits has no order between the lanes of two repetitions."""
    found = 0
    for seed in range(24):
        schedules = random_chain(seed)
        if schedules is None or max(len(s.lanes) for s in schedules) < 2:
            continue
        for s in schedules:
            s.repeated = [(0, len(lane)) for lane in s.lanes]
        text = str(_core.check(schedules))
        found += "where the block is repeated" in text
    assert found > 5


@pytest.mark.parametrize("rank", [0, 1])
def test_messages_of_different_sweeps_have_different_tags(rank):
    """Lanes of sweeps that share no array may be anywhere: nothing else says which message is whose."""
    accesses = [(0, (0, 0), True, False), (0, (-1, 0), False, False), (0, (1, 0), False, False)]
    array = 8, False, (), (), 0, False
    problems, plans = [], []
    for tile in (1, 2, 4):
        problems.append(_core.SweepProblem((9, 8), ((1, 0), (8, 8)), [array], accesses, [], [False, False], False))
        plans.append(_core.Plan())
        plans[-1].grid, plans[-1].mapping_dim, plans[-1].tile, plans[-1].factors = (2, 1), 1, (1, tile), (1, 1)
    made = _core.chain(problems, plans, [[0], [1], [2]], rank, 2)
    tags = [{m.tag for m in made.messages if m.array == number} for number in range(3)]
    assert all(tags) and sum(map(len, tags)) == len(set().union(*tags)), tags


def apart_of(dice, shape, arrays, grid, periodic):
    """A nest without dependences over `arrays` (numbers of memories), which may wrap around."""
    reads = [(a, dice.choice(OFFSETS)) for a in range(1, len(arrays)) for _ in range(dice.randint(1, 3))]
    low = tuple(0 if periodic[k] else max([0, *(-o[k] for _, o in reads)]) for k in range(2))
    high = tuple(shape[k] - (0 if periodic[k] else max([0, *(o[k] for _, o in reads)])) for k in range(2))
    problem = _core.SweepProblem(
        shape,
        (low, high),
        [(8, False, (), (), 0, False) for _ in arrays],
        [(0, (0, 0), True, False), (0, (0, 0), False, False)] + [(a, o, False, False) for a, o in reads],
        [],
        [False, False],
        False,
        tuple(map(int, periodic)),
    )
    for a in range(len(arrays)):
        problem.widen(a, (2, 2), (2, 2), tuple(map(int, periodic)) if any(periodic) else ())
    plan = _core.Plan()
    plan.grid, plan.mapping_dim, plan.factors, plan.lookahead = grid, 1 if grid[0] > 1 else 0, (1, 1), 1
    plan.tile = tuple(max((b - a) // g - 3 * (g > 1), 1) for a, b, g in zip(low, high, grid))
    if any(periodic):
        plan.generator = "stencil"
    return problem, plan


def fused_chains(seed, made=None):
    """(problems, plans, memories, ranks, rows of a slice, repetitions), some nests with dependences among them."""
    dice = random.Random(f"fused {seed}")
    shape, ranks = (dice.randint(8, 16), dice.randint(7, 12)), dice.choice([1, 2, 3, 4])
    grid = dice.choice([(ranks, 1), (ranks, 1), (1, ranks)])
    periodic = (dice.random() < 0.4, dice.random() < 0.3)
    lanes = dice.choice([(1, 1), (1, 1), (2, 1), (1, 2), (3, 1), (2, 2)])
    problems, plans, memories = [], [], []
    for _ in range(dice.randint(2, 4)):
        arrays = dice.sample(range(3), dice.randint(2, 3))
        if not any(periodic) and dice.random() < 0.3:
            problem, plan = sweep_of(dice, shape, arrays, grid)
        else:
            problem, plan = apart_of(dice, shape, arrays, grid, periodic)
        plan.mapping_dim = 1 if grid[0] > 1 or ranks == 1 and lanes[0] > 1 else 0
        own = dice.choice([lanes, lanes, lanes, (1, 1)])
        plan.factors = tuple(1 if k == plan.mapping_dim else own[k] for k in range(2))
        problems.append(problem)
        plans.append(plan)
        memories.append(arrays)
    return problems, plans, memories, ranks, dice.randint(1, 5), dice.randint(1, 4)


def step_of(dice, shape, arrays, grid, periodic):
    """A time step over `arrays` (numbers of memories): it writes the first, of which it reads several steps before."""
    buffers = dice.choice([1, 2, 2, 3, 3, 4])
    reads = [(0, (0, *dice.choice(OFFSETS))) for _ in range(2 * (buffers > 1))]
    reads += [(0, (1 - back, 0, 0)) for back in range(1, buffers)] or [(0, (0, 0, 0))]
    reads += [(a, (0, *dice.choice(OFFSETS))) for a in range(1, len(arrays)) for _ in range(dice.randint(1, 2))]
    low = tuple(0 if periodic[k] else max([0, *(-o[k + 1] for _, o in reads)]) for k in range(2))
    high = tuple(shape[k] - (0 if periodic[k] else max([0, *(o[k + 1] for _, o in reads)])) for k in range(2))
    others = [(8, False, shape, (1, 2), 0, False) for _ in arrays[1:]]
    problem = _core.SweepProblem(
        (1, *shape),
        ((0, *low), (1, *high)),
        [(8, False, shape, (1, 2), buffers, False), *others],
        [(0, (1, 0, 0), True, False)] + [(a, o, False, False) for a, o in reads],
        [],
        [False] * 3,
        False,
        (0, *map(int, periodic)),
    )
    for a in range(len(arrays)):
        problem.widen(a, (2, 2), (2, 2), tuple(map(int, periodic)) if any(periodic) else ())
    plan = _core.Plan()
    plan.grid, plan.mapping_dim, plan.factors, plan.lookahead = (1, *grid), 1 if grid[0] > 1 else 0, (1, 1, 1), 1
    plan.tile = (1, *(max((b - a) // g - 3 * (g > 1), 1) for a, b, g in zip(low, high, grid, strict=True)))
    plan.generator = "stencil"
    return problem, plan


def chains_in_time(seed):
    """As fused_chains(), of time steps."""
    dice = random.Random(f"in time {seed}")
    shape, ranks = (dice.randint(10, 16), dice.randint(9, 12)), dice.choice([1, 2, 3, 4, 5])
    grid = dice.choice([(ranks, 1), (1, ranks)])
    periodic = (dice.random() < 0.3, dice.random() < 0.3)
    lanes = dice.choice([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2)])
    problems, plans, memories = [], [], []
    for _ in range(dice.randint(1, 3)):
        arrays = dice.sample(range(3), dice.randint(1, 3))
        problem, plan = step_of(dice, shape, arrays, grid, periodic)
        plan.mapping_dim = 0
        plan.factors = (1, *dice.choice([lanes, lanes, (1, 1)]))
        problems.append(problem)
        plans.append(plan)
        memories.append(arrays)
    return problems, plans, memories, ranks, dice.randint(1, 5), dice.randint(1, 7)


@pytest.mark.parametrize("seed", range(80))
def test_time_steps_with_buffers_in_turn_are_proved(seed):
    problems, plans, memories, ranks, rows, repetitions = chains_in_time(seed)
    pieces = 1 + seed % 3
    try:
        schedules = [
            _core.fused_chain(problems, plans, memories, rank, ranks, rows, repetitions, pieces)
            for rank in range(ranks)
        ]
    except ConfigError as error:
        assert "tile" in str(error) or "grid" in str(error) or "halo" in str(error) or "thin" in str(error), error
        pytest.skip(str(error))
    assert _core.check(schedules) is None, f"seed {seed}: {_core.check(schedules)}"
    block = [_core.repeatable(s) for s in schedules]
    assert _core.check(block) is None, f"seed {seed}: {_core.check(block)}"
    arrays = _core.chain_arrays(problems, plans, memories, repetitions)
    assert len(arrays) == len(schedules[0].arrays)


@pytest.mark.parametrize("seed", range(60))
def test_nests_that_take_turns_are_proved(seed):
    problems, plans, memories, ranks, rows, repetitions = fused_chains(seed)
    try:
        schedules = [
            _core.fused_chain(problems, plans, memories, rank, ranks, rows, repetitions) for rank in range(ranks)
        ]
    except ConfigError as error:
        assert "tile" in str(error) or "grid" in str(error), error
        pytest.skip(str(error))
    assert _core.check(schedules) is None, f"seed {seed}: {_core.check(schedules)}"
    block = [_core.repeatable(s) for s in schedules]
    assert _core.check(block) is None, f"seed {seed}: {_core.check(block)}"
    again = [each * repetitions for each in (problems, plans, memories)]
    plain = [_core.chain(*again, rank, ranks) for rank in range(ranks)]
    for ours, theirs in zip(schedules, plain, strict=True):
        assert [w.number for w in ours.works] == [w.number for w in theirs.works]
        for lane in range(len(theirs.lanes)):
            counts = [sorted(step.op for step in s.lanes[lane] if step.op != "compute") for s in (ours, theirs)]
            assert counts[0] == counts[1]


def test_nests_take_turns():
    """Slices of the second nest come between those of the first one, and of the next repetition between these."""
    dice = random.Random(7)
    problem, plan = apart_of(dice, (40, 10), [0, 1], (1, 1), (False, False))
    other, other_plan = apart_of(dice, (40, 10), [1, 0], (1, 1), (False, False))
    made = _core.fused_chain([problem, other], [plan, other_plan], [[0, 1], [1, 0]], 0, 1, 4, 2)
    works = [made.tiles[step.item].work for step in made.lanes[0] if step.op == "compute"]
    assert set(works) == {0, 1, 2, 3} and works != sorted(works)
    assert works.index(3) < len(works) - works[::-1].index(0)
