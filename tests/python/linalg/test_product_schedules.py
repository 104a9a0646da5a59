"""Schedules of products and of moving: proved for random layouts and choices; the checker sees what is left out."""

import random

import pytest
from tilewave import _core

linalg = _core.linalg


def axes(rng, n, parts):
    block = rng.choice([0, 1, 2, 3, 5])
    weights = [rng.randint(1, 5) for _ in range(parts)] if block and rng.random() < 0.4 else []
    return linalg.Axis(n, parts, block, weights)


def random_problem(rng, ranks):
    """A problem that fits, and whether B is by columns on the ranks of C's rows."""
    m, k, n = (rng.choice([0, 1, 2, 3, 5, 7, 12]) for _ in range(3))
    kind = rng.choice(["rows", "common", "grid", "columns"])
    rows, columns, order = ranks, 1, False
    if kind == "grid":
        rows = rng.choice([d for d in range(1, ranks + 1) if ranks % d == 0])
        columns, order = ranks // rows, rng.random() < 0.5
    elif kind == "columns":
        rows, columns = 1, ranks
    of_rows, of_columns = axes(rng, m, rows), axes(rng, n, columns)
    c = linalg.BlockCyclic(of_rows, of_columns, order)
    a = linalg.BlockCyclic(of_rows, axes(rng, k, columns), order)
    b = linalg.BlockCyclic(axes(rng, k, rows), of_columns, order)
    if kind == "rows":
        b = linalg.BlockCyclic(axes(rng, k, 1), axes(rng, n, ranks), rng.random() < 0.5)
    flipped = [rng.random() < 0.5 for _ in range(3)]
    return linalg.MatmulProblem(a, b, c, 8, rng.random() < 0.5, flipped), kind == "rows"


def random_choices(rng, by_columns):
    choices = linalg.MatmulChoices(
        wavefront=by_columns and rng.random() < 0.6,
        least_rounds=rng.random() < 0.5,
        lookahead=rng.choice([0, 1, 2, 3, 5]),
        panel=rng.choice([1, 2, 3, 100]),
        pending=rng.random() < 0.5,
        lanes=rng.choice([1, 2, 3]),
    )
    choices.chunk_bytes, choices.task_flops = rng.choice([1, 20, 1000]), rng.choice([1.0, 100.0, 1e9])
    return choices


@pytest.mark.parametrize("seed", range(5))
def test_products_are_proved_and_predicted(seed):
    rng = random.Random(seed)
    for number in range(300):
        grid = rng.choice([1, 2, 3, 4, 6])
        problem, by_columns = random_problem(rng, grid)
        choices, ranks = random_choices(rng, by_columns), grid + rng.choice([0, 0, 1])
        assert linalg.fits(problem, choices) == ""
        parts = [linalg.matmul(problem, choices, rank, ranks) for rank in range(ranks)]
        violation = _core.check(parts)
        assert violation is None, (seed, number, str(violation))
        _core.predict_works(parts, _core.Machine(), [_core.KernelRate()], [_core.OperationRate()] * 5)


@pytest.mark.parametrize("seed", range(3))
def test_moving_is_proved(seed):
    rng = random.Random(seed)
    for number in range(300):
        ranks = rng.choice([1, 2, 3, 4, 6])
        m, n, item = rng.choice([0, 1, 5, 12]), rng.choice([0, 1, 7, 12]), rng.choice([4, 16])

        def some():
            rows = rng.randint(1, ranks)
            return linalg.BlockCyclic(axes(rng, m, rows), axes(rng, n, ranks // rows), rng.random() < 0.5)

        before, after, chunk = some(), some(), rng.choice([1, 30, 1000])
        parts = [linalg.move_schedule(before, after, item, rank, ranks, chunk) for rank in range(ranks)]
        violation = _core.check(parts)
        assert violation is None, (seed, number, str(violation))


def test_every_wait_is_needed():
    """Without any one of its waits for another rank or lane, a product is refused."""
    axis = linalg.Axis
    rows, one = axis(6, 3, 0), axis(6, 1, 0)
    by_rows, by_columns = linalg.BlockCyclic(rows, one), linalg.BlockCyclic(one, axis(6, 3, 1))
    problem = linalg.MatmulProblem(by_rows, by_columns, by_rows, 8, False, [False] * 3)
    for wavefront, pending in ((False, False), (True, False), (True, True)):
        choices = linalg.MatmulChoices(wavefront=wavefront, pending=pending, lookahead=1, panel=1, lanes=2)
        parts = [linalg.matmul(problem, choices, rank, 3) for rank in range(3)]
        assert _core.check(parts) is None
        for lane, steps in enumerate(parts[1].lanes):
            for number, step in enumerate(steps):
                if step.op != "wait":
                    continue
                broken = _core.Schedule(parts[1])
                lanes = broken.lanes
                del lanes[lane][number]
                broken.lanes = lanes
                assert _core.check([parts[0], broken, parts[2]]) is not None, (wavefront, pending, lane, number)


def test_the_wavefront_meets_block_j_in_wave_i_plus_j():
    """Rank i computes its blocks in the order of B, and lane 0 waits for one block at a time."""
    rows, one = linalg.Axis(8, 4, 0), linalg.Axis(8, 1, 0)
    by_rows, by_columns = linalg.BlockCyclic(rows, one), linalg.BlockCyclic(one, linalg.Axis(8, 4, 1))
    problem = linalg.MatmulProblem(by_rows, by_columns, by_rows, 8, False, [False] * 3)
    choices = linalg.MatmulChoices(wavefront=True, lookahead=0, panel=1)
    for rank in range(4):
        part = linalg.matmul(problem, choices, rank, 4)
        done = [part.works[part.tiles[step.item].work].task for step in part.lanes[0] if step.op == "compute"]
        columns = [task.writes[0].box[0][1] for task in done if task.operation == 2]
        assert columns == list(range(8))
        sent = [m.peer for m in part.messages if m.send]
        assert sorted(sent) == sorted(other for other in range(4) if other != rank for _ in range(2))
