"""Schedules of factors, solves and reflections: proved for random layouts and choices, and predicted; the checker
sees what is left out.
"""

import random

import pytest
from factors import grids
from tilewave import _core

linalg = _core.linalg


def random_choices(rng, wavefront):
    choices = linalg.FactorChoices(
        not wavefront and rng.random() < 0.5, rng.choice([0, 1, 2, 3]), rng.choice([1, 2, 3]), wavefront
    )
    choices.chunk_bytes, choices.task_flops = rng.choice([1, 500, 10000]), rng.choice([1.0, 100.0, 1e9])
    return choices


def some_weights(rng, parts):
    return [rng.randint(1, 5) for _ in range(parts)] if rng.random() < 0.3 else []


def random_system(rng):
    return linalg.TriangularSystem(rng.random() < 0.5, rng.choice("NTC"), rng.random() < 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_schedules_are_proved_and_predicted(seed):
    rng = random.Random(seed)
    rates = [_core.OperationRate()] * linalg.factor_tasks
    for number in range(100):
        wavefront = rng.random() < 0.4
        choices, system, adjoint = random_choices(rng, wavefront), random_system(rng), rng.random() < 0.5
        used, block = rng.choice([1, 2, 3, 4, 6, 8, 12]), rng.choice([1, 2, 3, 5, 20])
        rows, columns = (1, used) if wavefront else rng.choice(grids(used))
        m, n = (rng.choice([0, 1, 2, 5, 7, 12, 13]) for _ in range(2))
        ranks, order = used + rng.choice([0, 0, 1]), rng.random() < 0.5
        square, shape = (
            linalg.BlockCyclic(linalg.Axis(high, rows, block), linalg.Axis(n, columns, block), order) for high in (n, m)
        )
        if rng.random() < 0.5:
            weights = [rng.randint(1, 5) for _ in range(used)]
            square, shape = square.in_proportion(weights), shape.in_proportion(weights)
        of_sides = linalg.Axis(rng.choice([0, 1, 2, 7, 80]), ranks, rng.choice([1, 2, 40]), some_weights(rng, ranks))
        sides, others = (linalg.BlockCyclic(linalg.Axis(high, 1, 0), of_sides, False) for high in (n, m))
        identity = linalg.BlockCyclic(
            linalg.Axis(m, 1, 0), linalg.Axis(rng.choice([m, min(m, n)]), ranks, block, some_weights(rng, ranks)), False
        )
        for make in (
            lambda *at: linalg.cholesky(square, 8, choices, *at),
            lambda *at: linalg.lu(square, 8, choices, *at),
            lambda *at: linalg.qr(shape, 8, choices, *at),
            lambda *at: linalg.triangular_solve(square, sides, 8, system, choices, *at),
            lambda *at: linalg.apply_reflectors(shape, others, 8, adjoint, False, choices, *at),
            lambda *at: linalg.apply_reflectors(shape, identity, 8, False, True, choices, *at),
        ):
            parts = [make(rank, ranks) for rank in range(ranks)]
            violation = _core.check(parts)
            assert violation is None, (seed, number, str(violation))
            _core.predict_works(parts, _core.Machine(), [_core.KernelRate()], rates, threads=rng.choice([0, 1, 2]))


@pytest.mark.parametrize(
    "kind, shape", [("qr", (8, 8)), ("qr", (8, 5)), ("qr", (4, 8)), ("lu", (8, 8)), ("cholesky", (8, 8))]
)
@pytest.mark.parametrize("grid, wavefront", [((1, 2), False), ((1, 2), True), ((2, 1), False), ((2, 2), False)])
def test_every_wait_of_a_factorization_is_needed(kind, shape, grid, wavefront):
    """Without any one of its waits for another rank, it is refused."""
    ranks = grid[0] * grid[1]
    layout = linalg.BlockCyclic(*(linalg.Axis(n, parts, 1) for n, parts in zip(shape, grid, strict=True)))
    choices = linalg.FactorChoices(lookahead=1, lanes=2, wavefront=wavefront)
    choices.chunk_bytes = 16
    parts = [getattr(linalg, kind)(layout, 8, choices, rank, ranks) for rank in range(ranks)]
    assert _core.check(parts) is None
    waits = 0
    for lane, steps in enumerate(parts[1].lanes):
        for number, step in enumerate(steps):
            if step.op != "wait":
                continue
            broken = _core.Schedule(parts[1])
            lanes = broken.lanes
            del lanes[lane][number]
            broken.lanes = lanes
            assert _core.check([parts[0], broken, *parts[2:]]) is not None, (lane, number)
            waits += 1
    assert waits > 0


def test_a_panel_of_reflectors_leaves_before_the_rest_is_updated():
    """Look-ahead: on its owner, panel k + 1 comes before the updates of later block columns by panel k."""
    layout = linalg.BlockCyclic(linalg.Axis(20, 1, 0), linalg.Axis(12, 2, 1))
    panel, update = 7, 10
    for rank in range(2):
        part = linalg.qr(layout, 8, linalg.FactorChoices(), rank, 2)
        done = [part.tiles[step.item] for step in part.lanes[0] if step.op == "compute"]
        done = [(part.works[tile.work].task.operation, tile.coord) for tile in done]
        assert {operation for operation, _ in done} == {panel, update}
        for at, (operation, coord) in enumerate(done):
            if operation == panel and coord[0] > 0:
                later = [i for i, (other, c) in enumerate(done) if other == update and c[0] == coord[0] - 1]
                assert all(i > at for i in later if done[i][1][1] > coord[0])


def test_what_the_identity_does_not_need_is_left_out():
    """Forming Q, panel k leaves the columns of the identity before its own alone."""
    layout = linalg.BlockCyclic(linalg.Axis(12, 1, 0), linalg.Axis(12, 3, 2))
    for rank in range(3):
        part = linalg.apply_reflectors(layout, layout, 8, False, True, linalg.FactorChoices(), rank, 3)
        for work in part.works:
            if work.task.operation == 9:
                row, column = work.task.writes[0].box[0]
                assert layout.columns.global_of(rank, column - layout.columns.first(rank)) >= row


def test_a_wavefront_hands_panels_on_while_it_updates():
    """Lane 0 has messages, panels and the next panel's column; the lane behind it starts with the first chunk."""
    layout = linalg.BlockCyclic(linalg.Axis(40, 1, 0), linalg.Axis(40, 2, 5))
    choices = linalg.FactorChoices(lookahead=1, wavefront=True)
    choices.chunk_bytes = 8 * 5 * 5 * 2
    choices.task_flops = 2 * 5**3 * 2
    for make, panels in ((linalg.cholesky, {11, 13}), (linalg.lu, {3})):
        parts = [make(layout, 8, choices, rank, 2) for rank in range(2)]
        assert _core.check(parts) is None
        for part in parts:
            messages, updates = part.lanes
            assert not any(step.op in ("wait", "post_send", "post_recv") for step in updates)
            done = [part.works[part.tiles[step.item].work].task for step in messages if step.op == "compute"]
            assert panels <= {task.operation for task in done}
            others = [part.works[part.tiles[step.item].work].task for step in updates if step.op == "compute"]
            assert not panels & {task.operation for task in others}
        # Between two chunks of one panel there is work.
        steps = [step.op for step in parts[1].lanes[1]]
        assert "compute await compute" in " ".join(steps)


@pytest.mark.parametrize("lookahead", [0, 1, 2])
def test_a_panel_of_cholesky_leaves_while_the_one_before_comes(lookahead):
    """Rank 1 sends the first chunk of panel 1 before it waits for the last one of panel 0; rank 0 then waits for it."""
    layout = linalg.BlockCyclic(linalg.Axis(40, 1, 0), linalg.Axis(40, 2, 5))
    choices = linalg.FactorChoices(lookahead=lookahead, wavefront=True)
    choices.chunk_bytes = 1
    parts = [linalg.cholesky(layout, 8, choices, rank, 2) for rank in range(2)]
    assert _core.check(parts) is None
    ops = [step.op for step in parts[1].lanes[0]]
    chunks_of_panel_0 = 7
    assert ops[: ops.index("post_send")].count("wait") < chunks_of_panel_0
    if lookahead > 0:  # a buffer is free
        ops = [step.op for step in parts[0].lanes[0]]
        panel_2 = [i for i, op in enumerate(ops) if op == "post_send"][chunks_of_panel_0]
        assert ops[:panel_2].count("post_recv") > 6  # of panel 3, too


def test_a_panel_of_cholesky_leaves_tile_by_tile():
    """As a wavefront, its first chunk is sent before its last tiles are made."""
    layout = linalg.BlockCyclic(linalg.Axis(40, 1, 0), linalg.Axis(40, 2, 5))
    choices = linalg.FactorChoices(wavefront=True)
    choices.chunk_bytes = 1
    ops = [step.op for step in linalg.cholesky(layout, 8, choices, 0, 2).lanes[0]]
    assert ops[:5] == ["compute", "compute", "post_send", "compute", "post_send"]
