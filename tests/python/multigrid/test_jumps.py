"""Coarse grids that follow k, where it jumps by 10,000 in small blocks: against SciPy's direct solution."""

import numpy as np
import pytest
from local_ranks import results_of
from poisson_matrix import poisson_matrix

import tilewave as tw
from tilewave.errors import ConfigError
from tilewave.multigrid import Poisson, sharing
from tilewave.multigrid.galerkin import following
from tilewave.multigrid.levels import finest

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")


def blocks(rng, shape, values, most=8, part=0.3):
    """1 with blocks of 1 to `most` cells along each axis at random places, which cover about so much."""
    k = np.ones(shape)
    for _ in range(int(part * k.size / ((most + 1) / 2) ** len(shape)) + 1):
        low = [rng.integers(n) for n in shape]
        k[tuple(slice(at, at + rng.integers(1, most + 1)) for at in low)] = rng.choice(values)
    return k


def sparse_matrix(k, sides, sigma=0.0):
    """The operator on the unit box."""
    numbers, diagonal = np.arange(k.size).reshape(k.shape), np.zeros(k.shape) + sigma
    rows, columns, values = [], [], []
    for axis, (pair, n) in enumerate(zip(sides, k.shape, strict=True)):
        c, at = np.moveaxis(k, axis, 0), np.moveaxis(numbers, axis, 0)
        d = np.moveaxis(diagonal, axis, 0)
        both, other = np.roll(c, -1, 0), np.roll(at, -1, 0)
        flow = 2 * c * both / np.where(c + both > 0, c + both, 1) * n**2
        if pair[0] != "periodic":
            flow[-1] = 0
            for end, side in zip((0, -1), pair, strict=True):
                d[end] += 2 * c[end] * n**2 * (side == "dirichlet")
        d += flow + np.roll(flow, 1, 0)
        rows += [at.ravel(), other.ravel()]
        columns += [other.ravel(), at.ravel()]
        values += [-flow.ravel()] * 2
    entries = np.concatenate([*values, diagonal.ravel()])
    places = [np.concatenate([*each, numbers.ravel()]) for each in (rows, columns)]
    return sparse.csc_matrix((entries, places), shape=(k.size,) * 2)


def random_case(seed):
    """(shape, sides, options, f): blocks, perhaps cells without material, values fixed by a boundary or sigma."""
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(*((20, 100), (8, 60), (5, 15))[dims - 1], dims))
    values = [(1e4,), (1e-4,), (1e4, 1e-4), (0.0, 1e4)][rng.integers(4)]
    k = blocks(rng, shape, values, int(rng.integers(1, 9)))
    if rng.integers(3) == 0:
        cells = tuple(int(n) for n in rng.integers(0, shape, dims))
        k[cells] = 1e4
    sides = [("dirichlet", str(rng.choice(["dirichlet", "neumann"])))]
    sides += [(s, s) for s in rng.choice(["dirichlet", "neumann", "periodic"], dims - 1)]
    options = {"k": k, "smoother": str(rng.choice(["gauss-seidel", "red-black"])), "sigma": 0.5 * (0 in values)}
    if rng.integers(4) == 0:
        options["sigma"] = 2.0 + 5j
    return shape, sides, options, rng.standard_normal(shape)


@pytest.mark.parametrize("number", range(24))
def test_random_blocks_against_a_direct_solution(number, seed):
    seed += 1000 * number
    shape, sides, options, f = random_case(seed)
    print(f"seed {seed}: {shape} {sides} {options}")
    solver = Poisson(shape, boundary=sides, coarse="galerkin", context=tw.Context(threads=1), **options)
    tol = 1e-6 if len(shape) == 1 else 1e-8  # rounding: 100**2 times 1e8 between the least and the largest
    found = solver.solve(f, tol).gather()
    assert solver.history.converged and solver.history.cycles <= 60, solver.history
    f = np.where(options["k"] > 0, f, 0.0)
    matrix = sparse_matrix(options["k"], sides, options["sigma"])
    exact = np.where(options["k"] > 0, linalg.spsolve(matrix, f.ravel() + 0j).reshape(shape), 0.0)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-3 * abs(exact).max())
    again = solver.solve(2 * f, tol).gather()
    assert solver.history.converged
    np.testing.assert_allclose(again, 2 * exact, rtol=0, atol=2e-3 * abs(exact).max())


@pytest.mark.parametrize(
    "shape, values, most",
    [((64, 64), (1e4,), 35), ((64, 64), (1e-4,), 14), ((64, 64), (1e4, 1e-4), 30), ((24, 24, 24), (1e4, 1e-4), 45)],
)
def test_fewer_iterations_than_with_averages(shape, values, most, seed):
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    k, f, counts = blocks(rng, shape, values), rng.standard_normal(shape), {}
    for coarse in ("galerkin", "average"):
        solver = Poisson(shape, k=k, coarse=coarse, context=tw.Context(threads=1))
        solver.solve(f, method="cg")
        assert solver.history.converged
        counts[coarse] = solver.history.cycles
    assert counts["galerkin"] <= most and 1.2 * counts["galerkin"] < counts["average"], counts


@pytest.mark.parametrize(
    "seed, shape, values", [(149690573, (24, 24, 24), (1e4, 1e-4)), (1808685358, (64, 64), (1e4,))]
)
def test_grids_become_coarser_where_jumps_leave_couplings_of_the_wrong_sign(seed, shape, values):
    rng = np.random.default_rng(seed)
    k, f = blocks(rng, shape, values), rng.standard_normal(shape)
    solver = Poisson(shape, k=k, coarse="galerkin", context=tw.Context(threads=1))
    solver.solve(f, method="cg")
    assert solver.history.converged


@pytest.mark.parametrize("number", range(30))
def test_coarse_operators_are_those_between_interpolations(number, seed):
    rng = np.random.default_rng(seed + 1000 * number)
    dims = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, (12, 8, 6)[dims - 1], dims))
    sides = [
        ("periodic",) * 2 if rng.integers(2) else tuple(map(str, rng.choice(["dirichlet", "neumann"], 2)))
        for _ in shape
    ]
    k, sigma, spacing = 10.0 ** rng.integers(-2, 3, shape), rng.random(shape) * rng.integers(2), [1 / n for n in shape]
    print(f"seed {seed + 1000 * number}: {shape} {sides}")
    grid = following(finest(shape, spacing, sides, k, sigma), spacing, k)
    expected = poisson_matrix(shape, boundary=sides, k=k, sigma=sigma)
    while True:
        found = grid.matrix()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * abs(expected).max())
        if max(grid.shape) <= 2:
            break
        coarse = grid.coarser()
        p = interpolation(grid, coarse)
        grid, expected = coarse, p.T @ found @ p


def interpolation(grid, coarse):
    """From a coarse grid as a matrix."""
    fine, numbers = (np.arange(np.prod(each.shape)).reshape(each.shape) for each in (grid, coarse))
    halved = [a is not b for a, b in zip(grid.axes, coarse.axes, strict=True)]
    found = np.zeros((fine.size, numbers.size))
    for (parity, step), weights in coarse.weights.items():
        for cell in np.ndindex(*coarse.shape):
            at = tuple(2 * c + p if h else c for c, p, h in zip(cell, parity, halved, strict=True))
            to = tuple((c + s) % n for c, s, n in zip(cell, step, coarse.shape, strict=True))
            if all(x < n for x, n in zip(at, grid.shape, strict=True)):
                found[fine[at], numbers[to]] += weights[cell]
    return found


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
@pytest.mark.parametrize("periodic", [False, True])
def test_the_same_bits_on_any_ranks(ranks, periodic, seed, monkeypatch):
    monkeypatch.setattr(sharing, "LEAST_CELLS", 1)
    rng = np.random.default_rng(seed + ranks)
    shape = [(17, 22), (30, 13), (9, 7, 10)][rng.integers(3)]
    k, f = blocks(rng, shape, (1e4, 1e-4), 4), rng.standard_normal(shape)
    sides = ["dirichlet", *["periodic" if periodic else "neumann"] * (len(shape) - 1)]
    smoother = str(rng.choice(["gauss-seidel", "red-black", "jacobi"]))
    cuts = [g for g in np.ndindex(*(ranks + 1,) * len(shape)) if np.prod(g) == ranks]
    grid = tuple(int(n) for n in cuts[rng.integers(len(cuts))] if smoother == "jacobi") or None
    print(f"seed {seed + ranks}: {shape} {sides} {smoother} {grid}")

    def body(context):
        context = context or tw.Context(threads=1)
        cut = grid if context.size > 1 else None
        solver = Poisson(shape, boundary=sides, k=k, smoother=smoother, grid=cut, context=context)
        return solver.solve(f, max_cycles=4, method="cycles").gather(), solver.history.norms

    alone, norms = body(None)
    found, others = results_of(ranks, 1, body, 600)[0]
    assert others == norms and np.array_equal(found, alone)


def test_what_the_coarse_grids_are():
    k = blocks(np.random.default_rng(1), (32, 32), (1e4,))
    hole = np.pad(np.zeros((3, 3)), (10, 19), constant_values=1.0)
    for options, coarse in [
        ({}, "average"), ({"k": k}, "galerkin"), ({"k": k, "coarse": "average"}, "average"),
        ({"k": 1 + k / 1e4}, "average"), ({"k": hole}, "galerkin"), ({"coarse": "galerkin"}, "galerkin"),
    ]:
        solver = Poisson((32, 32), **options)
        assert solver.coarse == coarse and f"coarse grids: {coarse}" in solver.plan()
        solver.solve(np.ones((32, 32)))
        assert solver.history.coarse == coarse
        assert ("follow k" in str(solver.history)) == (coarse == "galerkin")
    with pytest.raises(ConfigError, match="coarse: given 'none'; allowed: auto, average, galerkin"):
        Poisson((8, 8), coarse="none")

    def body(context):
        with pytest.raises(ConfigError, match="across corners; allowed: ranks along the first axis"):
            Poisson((32, 32), k=k, coarse="galerkin", grid=(1, 2), context=context)
        cut = {"k": k, "grid": (1, 2), "context": context}
        return [Poisson((32, 32), **cut).coarse, Poisson((32, 32), smoother="jacobi", **cut).coarse]

    assert results_of(2, 1, body)[0] == ["average", "galerkin"]


def test_full_multigrid_and_minimal_residuals():
    rng = np.random.default_rng(3)
    shape = (40, 37)
    k, f = blocks(rng, shape, (1e4,)), rng.standard_normal(shape)
    sides = [("dirichlet", "dirichlet"), ("periodic", "periodic")]
    solver = Poisson(shape, boundary=sides, k=k)
    solver.solve(f, method="fmg")
    assert solver.history.norms[-1] < solver.history.norms[0]
    solver = Poisson(shape, boundary=sides, k=k, sigma=-20.0)
    found = solver.solve(f, tol=1e-9).gather()
    exact = linalg.spsolve(sparse_matrix(k, sides, -20.0), f.ravel()).reshape(shape)
    assert solver.history.converged
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5 * abs(exact).max())
