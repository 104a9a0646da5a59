"""Sources and receivers between the points of the grid, over MPI: the plain loops, bit for bit."""

import pytest
from off_grid_points import RandomPoints, looped

import tilewave as tw


@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.ranks([1, 4, 6])
@pytest.mark.parametrize("seed", [4, 19])
def test_random_points(seed):
    print(f"random points off the grid, seed {seed}")
    case = RandomPoints(seed)
    expected = looped(case.nests, case.first, case.steps, case.sources, case.values, case.receivers)
    whole, recorded = case.run(tw.Context())
    assert whole is None or whole.tobytes() == expected[0].tobytes(), vars(case)
    assert recorded.tobytes() == expected[1].tobytes(), vars(case)
