"""Numbers of all points where ranks compute some of the points twice: each counts once, whatever the plan."""

import math

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw

SHAPE, STEPS = (25, 22), 9


@tw.nest
def heat(u, t, i, j, *, w):
    d = w * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])
    u[t+1, i, j] = u[t, i, j] + d


WANTED = {"sum": tw.sum("d"), "norm": tw.norm("u"), "most": tw.max("d"), "least": tw.min("u"), "at": tw.argmax("d")}


def start():
    return np.random.default_rng(11).random(SHAPE)


def plain(wraps, w=0.2):
    """The last time step, and by name the numbers."""
    u, seen = start(), []
    for t in range(STEPS):
        new = u.copy()
        for i in range(0 if wraps else 1, SHAPE[0] - (not wraps)):
            for j in range(1, SHAPE[1] - 1):
                d = w * (u[i - 1, j] + u[(i + 1) % SHAPE[0], j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
                new[i, j] = u[i, j] + d
                seen.append((d, new[i, j], (t, i, j)))
        u = new
    d, values, places = zip(*seen, strict=True)
    most = max(d)
    norm = math.sqrt(math.fsum(float(x) * float(x) for x in values))
    return u, {"sum": math.fsum(d), "norm": norm, "most": most, "least": min(values), "at": places[d.index(most)]}


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
@pytest.mark.parametrize("generator", ["sweep", "stencil"])
@pytest.mark.parametrize("wraps", [False, True])
def test_each_point_counts_once_in_deep_halos(ranks, generator, wraps):
    if wraps and generator == "sweep":
        pytest.skip("sweeps do not wrap")
    u_end, numbers = plain(wraps)
    grid = (1, ranks, 1) if ranks < 4 or generator == "sweep" else (1, 2, ranks // 2)
    plan = {"generator": generator, "grid": grid, "temporal_block": 3, "threads": 1}
    if generator == "sweep":
        cuts = [max(1, min(24, rank * SHAPE[0] // ranks)) for rank in range(ranks + 1)]
        plan |= {"mapping_dim": 2, "tile": (1, max(np.diff(cuts)), 5)}

    def body(context):
        u = tw.field(SHAPE, "f8", init=start(), context=context)
        loops = {"steps": STEPS, "periodic": ("i",) if wraps else (), "context": context, "plan": plan}
        report = tw.run(heat, u=u, w=0.2, reduce=WANTED, **loops)
        if not (generator == "sweep" and ranks == 6):  # whose blocks are too thin
            schedule = tw.schedule(heat, u=u, w=0.2, **loops)
            assert any(work.nest.own[0] for work in schedule._cores[context.rank].works)
            assert tw.check(schedule) is None
        whole = u.gather()
        if context.rank == 0:
            np.testing.assert_array_equal(whole, u_end)
        assert report.results == numbers, report.plan

    results_of(ranks, 1, body)


def test_the_checker_counts_each_point_once():
    plan = {"generator": "stencil", "grid": (1, 2, 1), "temporal_block": 3, "threads": 1}

    def body(context):
        u = tw.field(SHAPE, "f8", init=start(), context=context)
        return tw.schedule(heat, u=u, w=0.2, steps=STEPS, context=context, plan=plan)

    for by, text in ((-1, "no rank's own"), (1, "of two ranks")):
        schedule = results_of(2, 1, body)[0]
        nest = schedule._cores[0].works[0].nest
        low, high = nest.own
        nest.own = low, (high[0], high[1] + by, high[2])
        assert text in str(tw.check(schedule))
