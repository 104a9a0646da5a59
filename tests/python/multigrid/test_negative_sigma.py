"""Helmholtz: sigma below 0, by minimal residuals, against the matrix."""

import numpy as np
import pytest
from local_ranks import results_of
from poisson_matrix import poisson_matrix

from tilewave.errors import ConfigError
from tilewave.multigrid import Poisson, sharing


def random_case(seed):
    """(shape, options, f): sigma of both signs or of one, with some eigenvalues below 0 and none next to it."""
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(3, (40, 14, 8)[dims - 1], dims))
    options = {
        "boundary": [str(rng.choice(["periodic", "dirichlet", "neumann"])) for _ in range(dims)],
        "smoother": str(rng.choice(["gauss-seidel", "red-black", "jacobi"])),
        "cycle": str(rng.choice(["V", "W"])),
    }
    if rng.integers(2):
        options["k"] = 1 + 5 * rng.random(shape)
    operator = {name: options[name] for name in ("boundary", "k") if name in options}
    values = np.unique(np.linalg.eigvalsh(poisson_matrix(shape, **operator)).round(6))
    low = int(rng.integers(0, min(6, len(values) - 1)))
    sigma = -(values[low] + values[low + 1]) / 2
    options["sigma"] = [sigma, sigma + 0j, np.full(shape, sigma) * (1 + 0.01 * rng.random(shape))][rng.integers(3)]
    return shape, options, rng.standard_normal(shape)


@pytest.mark.parametrize("number", range(12))
def test_random_problems(number, seed):
    seed = seed + 1000 * number
    shape, options, f = random_case(seed)
    print(f"seed {seed}: {shape} {options}")
    matrix = poisson_matrix(shape, **{name: options[name] for name in ("boundary", "k", "sigma") if name in options})
    solver = Poisson(shape, **options)
    found = solver.solve(f, tol=1e-9).gather()
    assert solver.history.converged and solver.history.cycles < 150, solver.history
    residual = np.linalg.norm(f.ravel() - matrix @ found.ravel())
    assert residual <= 2e-9 * np.linalg.norm(f)
    # The norm of the last residual is that of the solution, not one that the iterations only believe in.
    assert np.isclose(residual, solver.history.norms[-1], rtol=1e-2, atol=1e-12 * np.linalg.norm(f))


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
def test_the_same_solution_on_any_ranks(ranks, seed, monkeypatch):
    monkeypatch.setattr(sharing, "LEAST_CELLS", 1)
    shape, options, f = random_case(seed + ranks)
    print(f"seed {seed + ranks}: {shape} {options}")

    def body(context):
        solver = Poisson(shape, context=context, **options)
        return solver.solve(f, max_cycles=6, tol=0).gather(), solver.history.norms

    (alone, norms), results = body(None), results_of(ranks, 1, body)
    assert np.array_equal(results[0][0], alone)
    assert all(found == norms for _, found in results)


def test_around_obstacles_and_from_a_start():
    shape = (18, 14)
    x, y = np.indices(shape)
    k, f = np.where((abs(x - 8) < 3) & (abs(y - 6) < 2), 0.0, 1.0), np.cos(x + y)
    solver = Poisson(shape, k=k, sigma=-150.0)
    found = solver.solve(f)
    assert solver.history.converged
    inside = k.ravel() > 0
    matrix = poisson_matrix(shape, k=k, sigma=-150.0)[np.ix_(inside, inside)]
    exact = np.linalg.solve(matrix, f.ravel()[inside])
    np.testing.assert_allclose(found.gather().ravel()[inside], exact, rtol=0, atol=1e-6 * abs(exact).max())
    solver.solve(f, x0=found, tol=1e-7)
    assert solver.history.cycles == 0
    solver.solve(f, max_cycles=3)
    assert solver.history.cycles == 3 and not solver.history.converged
    assert abs(solver.solve(0 * f).gather()).max() == 0


@pytest.mark.parametrize("method", ["cycles", "cg", "fmg"])
def test_other_methods_are_refused(method):
    with pytest.raises(ConfigError, match=f"'{method}' was given for sigma that is below 0 somewhere; allowed: minres"):
        Poisson((8, 8), sigma=-1.0).solve(np.ones((8, 8)), method=method)
    with pytest.raises(ConfigError, match="not below 0"):
        Poisson((8, 8)).solve(np.ones((8, 8)), method="minres")
    with pytest.raises(ConfigError, match="symmetric"):
        Poisson((8, 8), sigma=-1.0, pre=1).solve(np.ones((8, 8)))
    with pytest.raises(ConfigError, match="Hermitian"):
        Poisson((8, 8), sigma=-1 + 2j)
