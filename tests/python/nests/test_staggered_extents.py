"""Arrays of several extents along a loop, as on staggered grids: ranks share them, bit for bit as plain loops."""

import numpy as np
import pytest
from tests.python.support.local_ranks import results_of

import tilewave as tw

N, M, STEPS = 9, 7, 4


@tw.nest
def velocity(vx, vy, p, t, i, j):
    vx[t + 1, i, j] = vx[t, i, j] - 0.5 * (p[t, i, j] - p[t, i - 1, j])
    vy[t + 1, i, j] = vy[t, i, j] - 0.5 * (p[t, i, j] - p[t, i, j - 1])


@tw.nest
def pressure(p, vx, vy, t, i, j):
    p[t + 1, i, j] = p[t, i, j] - 0.5 * (vx[t + 1, i + 1, j] - vx[t + 1, i, j] + vy[t + 1, i, j + 1] - vy[t + 1, i, j])


def started():
    numbers = np.random.default_rng(2)
    return {name: numbers.random(shape) for name, shape in {"vx": (N + 1, M), "vy": (N, M + 1), "p": (N, M)}.items()}


def looped(steps):
    vx, vy, p = started().values()
    for _ in range(steps):
        vx[1:-1, 1:] -= 0.5 * (p[1:, 1:] - p[:-1, 1:])
        vy[1:, 1:-1] -= 0.5 * (p[1:, 1:] - p[1:, :-1])
        p -= 0.5 * (vx[1:] - vx[:-1] + vy[:, 1:] - vy[:, :-1])
    return {"vx": vx, "vy": vy, "p": p}


@pytest.mark.parametrize("grid", [(2, 1), (2, 2), (3, 2)])
def test_nests_in_turn_share_the_points_alike(grid):
    def body(context):
        fields = {name: tw.field(value, context=context) for name, value in started().items()}
        owned = []
        for _ in range(STEPS):
            for nest in (velocity, pressure):
                report = tw.run(nest, steps=1, plan={"grid": (1, *grid)}, **fields)
                assert not report.on_one_rank
                owned.append([field.owned for field in fields.values()])
        assert all(now == owned[0] for now in owned)
        return {name: field.gather() for name, field in fields.items()}

    ranks = grid[0] * grid[1]
    found = results_of(ranks, 1, body)
    for name, value in looped(STEPS).items():
        # The nest of velocities runs where both are inside: the loops above are exactly its points.
        assert found[0][name].tobytes() == value.tobytes(), name


TOGETHER = tw.nest_from("""
def together(u, v, c, d, t, i):
    u[t+1, i] = u[t, i-1] + v[t, i+1] + c[2*i+1] * d[i-3]
    v[t+1, i] = v[t, i-2] - u[t, i+1]
""")


@pytest.mark.parametrize("ranks, choices", [(1, {}), (3, {"generator": "sweep"}), (6, {})])
def test_time_steps_of_arrays_with_factors_and_extents_of_their_own(ranks, choices):
    """d ends before the points of the last ranks begin; c has two elements for each of the points that ranks share."""
    numbers = np.random.default_rng(3)
    start = {name: numbers.random(n) for name, n in {"u": 15, "v": 13, "c": 31, "d": 9}.items()}
    times = {name: [start[name]] for name in "uv"}
    for _ in range(STEPS):
        (u, v), c, d = (times[name][-1] for name in "uv"), start["c"], start["d"]
        new_u, new_v = u.copy(), v.copy()
        for i in range(3, 12):
            new_u[i] = u[i - 1] + v[i + 1] + c[2 * i + 1] * d[i - 3]
            new_v[i] = v[i - 2] - u[i + 1]
        times["u"].append(new_u)
        times["v"].append(new_v)

    def body(context):
        fields = {name: tw.field(value, context=context) for name, value in start.items()}
        tw.run(TOGETHER, steps=STEPS, **fields, plan=choices)
        return [fields[name].gather() for name in "uv"]

    found = results_of(ranks, 1, body)
    assert all(got.tobytes() == times[name][-1].tobytes() for got, name in zip(found[0], "uv", strict=True))


@tw.nest
def ahead(A, F, i, j):
    A[i+1, j-1] = A[i+2, j] + F[i, j-1] * A[i-1, j-1]


@tw.nest
def behind(A, E, i, j):
    A[i, j] = E[i, j] + 0.5 * A[i-1, j]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_chains_of_nests_that_cut_one_field_alike_in_two_ways(ranks):
    """Evenly, and where the points of an array with fewer rows are: nobody moves it, and no rank waits for others."""
    numbers = np.random.default_rng(3)
    start, other, factor = numbers.random((12, 34)), numbers.random((10, 34)), numbers.random((10, 34))

    def body(context):
        A, E = tw.field(start.copy(), context=context), tw.field(other.copy(), context=context)
        given = {"plan": {"grid": (1, ranks)}, "over": {"i": (1, 10)}, "context": context}
        chain = tw.chain([tw.bind(ahead, A=A, F=factor, **given), tw.bind(behind, A=A, E=E, **given)])
        assert not chain.separate
        chain.run(times=2)
        whole = A.gather()
        if whole is not None:
            expected = start.copy()
            for _ in range(2):
                for i in range(1, 10):
                    for j in range(1, 33):
                        expected[i + 1, j - 1] = expected[i + 2, j] + factor[i, j - 1] * expected[i - 1, j - 1]
                    expected[i + 1, 32] = expected[i + 2, 33] + factor[i, 32] * expected[i - 1, 32]
                for i in range(1, 10):
                    expected[i] = other[i] + 0.5 * expected[i - 1]
            assert whole.tobytes() == expected.tobytes()

    results_of(ranks, 1, body)


@tw.nest
def beside(E, D, j):
    v = E[j-2] + 100 * D[j]  # noqa: F841


@tw.nest
def across(E, D, i, j):
    v = E[j+2] + 100 * D[i-3]  # noqa: F841


@tw.nest
def last_of_all(G, E, A, D, i, j, k):
    unused = G[i, k]  # noqa: F841
    also = E[j-2]  # noqa: F841
    A[j] = D[j]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_each_point_is_some_ranks_where_what_is_read_begins_elsewhere(ranks):
    def program(context):
        E, D, A = (tw.field(np.arange(float(n)), context=context) for n in (5, 7, 7))
        G = np.arange(256).reshape(2, 128)
        numbers = [
            tw.run(nest, E=E, D=D, reduce={"sum": tw.sum("v")}, context=context).results["sum"]
            for nest in (beside, across)
        ]
        for grid in ((1, ranks, 1), None):
            A.fill(-1)
            tw.run(last_of_all, G=G, E=E, A=A, D=D, plan={"grid": grid} if grid else None, context=context)
            numbers.append(A.gather())
        return numbers

    sums, *arrays = (found := results_of(ranks, 1, program)[0])[0], *found[2:]
    assert sums == sum(range(5)) + 100 * sum(range(2, 7))
    assert found[1] == 7 * sum(range(5)) + 100 * 5 * sum(range(7))
    for array in arrays:
        assert array.tolist() == [-1, -1, 2, 3, 4, 5, 6]


@tw.nest
def from_the_end(A, B, D, t, i):
    A[t+1, i] = A[t, i] + D[i+2]
    B[t+1, i] = B[t, i] - A[t, i]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_time_steps_read_elements_beyond_the_extent_of_the_points(ranks):
    def program(context):
        A, B, D = (tw.field(10.0**n * np.arange(n), context=context) for n in (2, 4, 4))
        tw.run(from_the_end, A=A, B=B, D=D, steps=2, context=context)
        return A.gather(), B.gather()

    A, B = results_of(ranks, 1, program)[0]
    assert A.tolist() == [0 + 2 * 20000, 100 + 2 * 30000]
    assert B.tolist() == [0 - 0 - 20000, 10000 - 100 - 30100, 20000, 30000]
