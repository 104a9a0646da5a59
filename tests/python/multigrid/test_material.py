"""Cells without material, k = 0, against the matrix of the cells that have some."""

import numpy as np
import pytest
from local_ranks import results_of
from poisson_matrix import poisson_matrix

from tilewave.errors import ConfigError
from tilewave.multigrid import Poisson, sharing
from tilewave.multigrid.material import Material


def random_case(seed):
    """(shape, options, f): random obstacles, boundaries, coefficients and sigma, all regions with mean 0 of f."""
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(3, (40, 14, 8)[dims - 1], dims))
    options = {
        "k": (1 + 20 * rng.random(shape)) * (rng.random(shape) < rng.choice([0.5, 0.7, 0.95])),
        "boundary": [str(rng.choice(["periodic", "dirichlet", "neumann", "neumann"])) for _ in range(dims)],
        "smoother": str(rng.choice(["gauss-seidel", "red-black", "jacobi"])),
    }
    options["k"].flat[0] = 1.0
    if rng.integers(3) == 0:
        options["sigma"] = [2.0, 1j, 3 * (rng.random(shape) < 0.2)][rng.integers(3)]
    f = rng.standard_normal(shape)
    for region in regions(shape, options):
        f[region] -= f[region].mean()
    f[options["k"] == 0] = np.nan if rng.integers(2) else 7.0
    return shape, options, f


def regions(shape, options):
    """Masks of the regions that nothing fixes: null vectors of the matrix that are one region's cells."""
    matrix = poisson_matrix(shape, boundary=options["boundary"], k=options["k"], sigma=options.get("sigma", 0.0))
    linked, left = matrix != 0, {int(i) for i in np.flatnonzero(options["k"])}
    while left:
        region = {left.pop()}
        border = region
        while border:
            border = {int(j) for i in border for j in np.flatnonzero(linked[i])} - region
            region = region | border
        left -= region
        mask = np.isin(np.arange(matrix.shape[0]), list(region))
        if np.abs(matrix[mask].sum(1)).max() <= 1e-9 * np.abs(matrix).max():
            yield mask.reshape(shape)


def exact_solution(shape, options, f):
    """By least squares among the cells with material: of mean 0 in regions that nothing fixes."""
    matrix = poisson_matrix(shape, boundary=options["boundary"], k=options["k"], sigma=options.get("sigma", 0.0))
    inside = options["k"].ravel() > 0
    found = np.zeros(inside.size, matrix.dtype)
    found[inside] = np.linalg.lstsq(matrix[np.ix_(inside, inside)], f.ravel()[inside], rcond=1e-11)[0]
    return found.reshape(shape)


@pytest.mark.parametrize("number", range(12))
def test_random_obstacles(number, seed):
    seed = seed + 1000 * number
    shape, options, f = random_case(seed)
    print(f"seed {seed}: {shape} {options}")
    solver = Poisson(shape, **options)
    found = solver.solve(f, tol=1e-10, method="cg").gather()
    assert solver.history.converged, solver.history
    assert not found[options["k"] == 0].any()
    exact = exact_solution(shape, options, f)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * max(abs(exact).max(), 1e-3))


@pytest.mark.parametrize("seed", [7018, 7105, 7110, 7177])
def test_conjugate_gradients_in_rooms_that_nothing_fixes(seed):
    """Rooms beside a wall, and cells alone: constants must not grow where coarse grids join them."""
    shape, options, f = random_case(seed)
    solver = Poisson(shape, **options)
    solver.solve(f, tol=1e-10, method="cg")
    assert solver.history.converged and solver.history.cycles < 15, solver.history


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
def test_obstacles_have_the_same_bits_on_any_ranks(ranks, seed, monkeypatch):
    monkeypatch.setattr(sharing, "LEAST_CELLS", 1)
    shape, options, f = random_case(seed + ranks)
    print(f"seed {seed + ranks}: {shape} {options}")

    def body(context):
        return Poisson(shape, context=context, **options).solve(f, max_cycles=3).gather()

    alone, found = body(None), results_of(ranks, 1, body)[0]
    assert np.array_equal(found, alone)


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann"])
@pytest.mark.parametrize("smoother, most", [("gauss-seidel", 0.5), ("red-black", 0.5), ("jacobi", 0.7)])
@pytest.mark.parametrize("wall", [False, True])
def test_cycles_converge_around_bodies_and_conjugate_gradients_around_thin_walls(boundary, smoother, most, wall):
    """On coarse grids both sides of a wall of one cell are in one coarse cell: cycles alone are slow."""
    shape = (48, 40)
    x, y = np.indices(shape)
    k = ((x - 20) ** 2 + (y - 17) ** 2 > 60) & ~((abs(x - 38) < 4) & (y > 12)) & ~(wall & (x == 9))
    f = np.random.default_rng(2).standard_normal(shape)
    if boundary == "neumann":
        for region in regions(shape, {"k": 1.0 * k, "boundary": boundary}):
            f[region] -= f[region].mean()
    solver = Poisson(shape, k=1.0 * k, boundary=boundary, smoother=smoother)
    solver.solve(f, method="cg" if wall else "cycles")
    assert solver.history.converged and solver.history.factor < most, solver.history


def test_a_region_that_nothing_fixes_needs_a_mean_of_0():
    k = np.ones((9, 8))
    k[3] = 0.0
    f = np.where(np.arange(9)[:, None] < 3, 1.0, 0.0) * np.ones(8)
    solver = Poisson((9, 8), k=k, boundary=(("neumann", "dirichlet"), "neumann"))
    with pytest.raises(ConfigError, match=r"the mean of f is 1 in the 24 cells around \(0, 0\)"):
        solver.solve(f)
    f[:3] = np.linspace(-1, 1, 8)
    found = solver.solve(f).gather()
    assert solver.history.converged and abs(found[:3].mean()) < 1e-12 < abs(found[:3]).max()
    with pytest.raises(ConfigError, match="sigma is lost"):
        Poisson((9, 8), k=k, boundary="neumann", sigma=1e-30)
    assert Poisson((9, 8), k=k, boundary="neumann", sigma=1.0).solve(f) is not None


def test_regions_that_wind():
    """One path through all rows, closed at its ends or not by a periodic axis."""
    cells = np.ones((41, 30), bool)
    cells[1::4, 1:] = cells[3::4, :-1] = False
    for boundary, most in ((("neumann", "neumann"), 1), (("periodic", "periodic"), 1)):
        found = Material(1.0 * cells, [boundary] * 2, np.zeros(cells.shape), 1.0)
        assert len(found.counts) == 1 + most and found.counts[1] == cells.sum()
