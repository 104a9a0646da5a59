"""Blocks of time steps over MPI: the same messages again and again, with the results of one schedule of all steps."""

import numpy as np
import pytest

import tilewave as tw
from tilewave.nests.call import step_blocks as steps

pytestmark = pytest.mark.ranks([2, 3])


@tw.nest
def relax(u, f, t, i, j, *, w):
    mean = 0.25 * (u[t+1, i-1, j] + u[t+1, i, j-1] + u[t, i+1, j] + u[t, i, j+1] + f[t, i])
    u[t+1, i, j] = u[t, i, j] + w * (mean - u[t, i, j])


@tw.nest
def heat(u, f, t, i, j, *, w):
    u[t+1, i, j] = (
        u[t, i, j]
        + w * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])
        + f[t, i] * t
    )


@pytest.mark.ranks([2, 3])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("nest", [relax, heat], ids=lambda nest: nest.name)
def test_equal_to_one_schedule_of_all_steps(nest, monkeypatch):
    start, f = np.random.default_rng(8).random((40, 24)), np.random.default_rng(9).random((50, 40))
    for choices in (
        {"temporal_block": 1},
        {"temporal_block": 4, "schedule": "blocking"},
        {"temporal_block": 1, "synchronous": True},
    ):
        found = []
        for block in (1000, 7):
            for name in ("FEWEST_STEPS", "MOST_STEPS"):
                monkeypatch.setattr(steps, name, block)
            u = tw.field(start.shape, "f8", init=start)
            report = tw.run(nest, u=u, f=f, w=0.2, steps=45, plan=choices)
            assert ("block" in report.plan.notes) == (block == 7)
            found.append((u.gather(), report.points))
        assert found[0][1] == found[1][1]
        if u.context.rank == 0:
            np.testing.assert_array_equal(found[1][0], found[0][0], str(choices))
