"""predict() on sweeps under the assumptions of athanasaki2002 against its closed forms."""

import random

import pytest

from tilewave import _core
from docs.theory.tilings import cost
from general_sweeps import SCHEMES as GROUPED

SCHEMES = [(schedule, grouping) for grouping, schedule in GROUPED]
ALPHA = 1.0


def paper_machine(ranks, transfer_s=0.0):
    """Nothing costs anything but a message, which takes the same whatever its bytes; a node has its own host."""
    m = _core.Machine()
    m.hand_over_s = m.poll_s = m.step_s = 0
    link = _core.Link()
    link.latency_s = link.send_s = link.receive_s = link.byte_s = link.busy_byte_s = 0
    link.transfer_s = _core.Curve([0.0], [transfer_s])
    link.eager_bytes, link.hidden_polled = 1e9, 1.0
    m.same_host = m.other_host = link
    m.copy_byte_s = _core.Curve()
    m.host_of = list(range(ranks))
    return m


def random_grid(rng, columns=1, dims=None):
    """A TileGrid: nodes of m_x CPUs along every dimension but the mapping one, `columns` tiles a CPU along each."""
    n = dims or rng.choice((1, 2, 2, 3, 3, 4))
    i = rng.randrange(n)
    nodes = [1 if k == i else rng.randint(1, 3) for k in range(n)]
    factors = [1 if k == i else rng.randint(1, 3 if n < 4 else 2) for k in range(n)]
    tiles = [rng.randint(1, 9) if k == i else factors[k] * rng.randint(1, columns) for k in range(n)]
    return cost.TileGrid(tiles=tiles, nodes=nodes, factors=factors, mapping_dim=i)


def sweep_of(grid, schedule, grouping, slices=1, lookahead=1):
    """Schedules of a nest with unit dependences that is cut so, and its plan."""
    n = len(grid.tiles)
    tile = [2 * slices if k == grid.mapping_dim else 2 for k in range(n)]
    shape = [a * b * c for a, b, c in zip(grid.tiles, grid.nodes, tile)]
    tile = [min(t, s // g if g > 1 else s - 1) for t, s, g in zip(tile, shape, grid.nodes)]  # the nest begins at 1
    unit = [tuple(-(k == l) for k in range(n)) for l in range(n)]
    problem = _core.SweepProblem(shape, ((1,) * n, shape), [(4, False)], [(0, d) for d in unit])
    plan = _core.Plan()
    plan.grid, plan.tile, plan.factors, plan.mapping_dim = grid.nodes, tile, grid.factors, grid.mapping_dim
    plan.schedule, plan.grouping, plan.slices, plan.lookahead = schedule, grouping, slices, lookahead
    ranks = 1
    for g in grid.nodes:
        ranks *= g
    schedules = [_core.sweep(problem, plan, r) for r in range(ranks)]
    assert _core.check(schedules) is None
    return schedules, _core.sweep_waves(problem, plan)


def text(grid):
    return f"tiles {grid.tiles} nodes {grid.nodes} factors {grid.factors} mapping {grid.mapping_dim}"


def slow_grids(seed, count, columns=1):
    rng = random.Random(seed)
    for _ in range(count):
        yield random_grid(rng, columns), rng


@pytest.mark.parametrize("schedule,grouping", SCHEMES)
@pytest.mark.parametrize("columns", [1, 3])
def test_steps_are_those_of_the_sweep(schedule, grouping, columns):
    for grid, _ in slow_grids(17, 40, columns):
        steps = sweep_of(grid, schedule, grouping)[1]
        assert cost.pipeline_steps(schedule, grouping, grid) == steps, text(grid)


def test_steps_of_nodes_that_are_not_full():
    # 5 tiles a node in groups of 2: the second node begins at tile 6.
    grid = cost.TileGrid(tiles=(7, 5), nodes=(1, 2), factors=(1, 2), mapping_dim=0)
    for schedule, grouping in SCHEMES:
        assert cost.pipeline_steps(schedule, grouping, grid) == sweep_of(grid, schedule, grouping)[1]
    assert grid.columns == 3 and grid.depth == 1


def predicted(schedules, machine, slices=1):
    rate = _core.KernelRate(point_s=0, row_s=0, tile_s=ALPHA / slices)
    return _core.predict(schedules, machine, rate, poll_period_s=0, record=False).time_s


def crossings(grid):
    """Hand-overs between CPUs of a node on the way of the pipeline to the last CPU."""
    return sum(g * (m - 1) for g, m in zip(grid.nodes, grid.factors))


@pytest.mark.parametrize(
    "schedule,grouping,slices", [(*s, 1) for s in SCHEMES] + [(s, "vertical", 4) for s in ("blocking", "overlapping")]
)
def test_run_time_of_each_scheme(schedule, grouping, slices):
    """A blocking step is computing alone, an overlapping one as long as the transfers that it hides: T = P alpha.

    Slices are one step of the paper's, which ends when the last CPU does; lanes go on as soon as they may, so that only
    the way to the last CPU shows, alpha / N at each hand-over: between P alpha and P beta(N).
    """
    for seed in range(3):
        for grid, rng in slow_grids(seed, 12):
            schedules, steps = sweep_of(grid, schedule, grouping, slices, rng.choice((1, 2)))
            machine = paper_machine(len(schedules), ALPHA if schedule == "overlapping" else 0.0)
            costs = cost.StepCosts(alpha_s=ALPHA, t_comm_dma_s=ALPHA)
            time = predicted(schedules, machine, slices)
            where = f"seed {seed}, {text(grid)}"
            if grouping == "hyperplane":
                assert time == pytest.approx(cost.run_s(schedule, grouping, grid, costs), rel=1e-9), where
                assert time == pytest.approx(steps * ALPHA, rel=1e-9), where
            else:
                exact = (steps + crossings(grid) / slices) * ALPHA
                assert time == pytest.approx(exact, rel=1e-9), where
                most = steps * cost.vertical_group_s(ALPHA, 0.0, slices, grid.depth)
                assert steps * ALPHA <= time * (1 + 1e-9) and time <= most * (1 + 1e-9), where


@pytest.mark.parametrize("grouping", ["hyperplane", "vertical"])
def test_blocking_messages_are_part_of_a_step(grouping):
    """t_comm is all communication of a step: what a node receives and what it sends. Nodes at the border have less."""
    transfer = 0.25
    for nodes in (2, 3, 5, 8):
        grid = cost.TileGrid(tiles=(200, 1), nodes=(1, nodes), factors=(1, 1), mapping_dim=0)
        schedules, steps = sweep_of(grid, "blocking", grouping)
        machine = paper_machine(len(schedules), transfer)
        machine.same_host.eager_bytes = machine.other_host.eager_bytes = 0  # a send ends when it is received
        most = 2 * transfer if nodes > 2 else transfer
        costs = cost.StepCosts(alpha_s=ALPHA, t_comm_s=most)
        bound = cost.run_s("blocking", grouping, grid, costs)
        time = predicted(schedules, machine)
        assert bound - (nodes + 1) * most <= time <= bound, nodes


@pytest.mark.parametrize("schedule,grouping", SCHEMES)
def test_several_columns_take_no_longer_than_full_steps(schedule, grouping):
    for grid, _ in slow_grids(5, 25, columns=3):
        schedules, steps = sweep_of(grid, schedule, grouping)
        machine = paper_machine(len(schedules), 0.0)
        costs = cost.StepCosts(alpha_s=ALPHA)
        time = predicted(schedules, machine)
        depth = cost.vertical_group_s(ALPHA, 0.0, 1, grid.depth) if grouping == "vertical" else ALPHA
        assert time <= steps * grid.columns * depth * (1 + 1e-9), text(grid)
        assert time >= grid.tiles[grid.mapping_dim] * grid.columns * costs.alpha_s * (1 - 1e-9), text(grid)


def test_hidden_transfers_and_exposed_ones():
    """An overlapping step is as long as the longer of computing and transfers: max(alpha, t_comm_dma)."""
    grid = cost.TileGrid(tiles=(60, 2), nodes=(1, 4), factors=(1, 2), mapping_dim=0)
    schedules, steps = sweep_of(grid, "overlapping", "hyperplane", lookahead=1)
    for transfer in (0.0, 0.5, 1.0, 1.5, 3.0):
        costs = cost.StepCosts(alpha_s=ALPHA, t_comm_dma_s=transfer)
        bound = cost.run_s("overlapping", "hyperplane", grid, costs)
        # Messages that do not share a link pass each other: only the fill is longer than alpha a step.
        time = predicted(schedules, paper_machine(len(schedules), transfer))
        least = ALPHA * (60 + 2 * 4 - 1) + (4 - 1) * transfer
        assert time == pytest.approx(least, rel=1e-9)
        assert time <= bound * (1 + 1e-9)
