"""Axes that wrap around, and complex sigma: solutions, order, and cycles that do not depend on ranks."""

import numpy as np
import pytest
from local_ranks import results_of
from poisson_matrix import poisson_matrix

import tilewave as tw
from tilewave.multigrid import Poisson
import itertools

PERIODIC = [
    ((16,), {"boundary": "periodic", "sigma": 1.0}),
    ((16, 8), {"boundary": ("periodic", "dirichlet")}),
    ((8, 16), {"boundary": ("neumann", "periodic"), "smoother": "red-black", "sigma": 0.1}),
    ((8, 12), {"boundary": "periodic", "smoother": "jacobi", "sigma": 2.0, "cycle": "W"}),
    ((7, 10), {"boundary": "periodic", "sigma": 2.0, "k": lambda i, j: 1.0 + i + j % 3}),
    ((8, 8, 8), {"boundary": ("periodic", "periodic", "dirichlet")}),
    ((6, 8, 8), {"boundary": ("dirichlet", "periodic", "periodic"), "k": lambda i, j, k: 1.0 + 0.1 * i * (k % 4)}),
]
COMPLEX = [
    ((32,), {"sigma": 3.0 + 40j}),
    ((16, 16), {"sigma": 50j}),
    ((12, 9), {"sigma": lambda i, j: (i > 3) * (2.0 + 30j), "smoother": "red-black"}),
    ((8, 8, 8), {"sigma": 10j, "boundary": ("periodic", "neumann", "neumann")}),
    ((8, 8), {"sigma": 1 + 5j, "k": lambda i, j: 1.0 + 5.0 * (i > j), "smoother": "jacobi"}),
]


def solved(ranks, shape, options, f, **of_call):
    """(solution, history) on so many ranks."""

    def body(context):
        solver = Poisson(shape, context=context, **options)
        return solver.solve(f, tol=1e-9, **of_call).gather(), solver.history

    results = results_of(ranks, 1, body)
    return results[0]


def exact_of(shape, options, f):
    operator = {name: options[name] for name in ("spacing", "boundary", "k", "sigma") if name in options}
    return np.linalg.solve(poisson_matrix(shape, **operator), f.ravel()).reshape(shape)


@pytest.mark.parametrize("case", range(len(PERIODIC)))
@pytest.mark.parametrize("ranks", [1, 2])
def test_periodic_solutions_are_those_of_the_dense_matrix(ranks, case):
    shape, options = PERIODIC[case]
    f = np.random.default_rng(case).standard_normal(shape)
    found, history = solved(ranks, shape, options, f)
    assert history.converged and history.factor < 0.35, history
    exact = exact_of(shape, options, f)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * abs(exact).max())


@pytest.mark.parametrize("case", range(len(COMPLEX)))
@pytest.mark.parametrize("ranks", [1, 3])
def test_complex_solutions_are_those_of_the_dense_matrix(ranks, case):
    shape, options = COMPLEX[case]
    rng = np.random.default_rng(case)
    f = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    found, history = solved(ranks, shape, options, f)
    assert found.dtype == np.complex128
    assert history.converged and history.factor < 0.35, history
    exact = exact_of(shape, options, f)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * abs(exact).max())


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_periodic_solutions_are_of_second_order(dims):
    errors = []
    for n in (8, 16, 32) if dims < 3 else (8, 16):
        x = np.meshgrid(*[(np.arange(n) + 0.5) / n] * dims, indexing="ij")
        exact = sum(np.sin(2 * np.pi * (each + 0.1 * d)) for d, each in enumerate(x))
        solver = Poisson((n,) * dims, boundary="periodic")
        found = solver.solve(4 * np.pi**2 * exact, tol=1e-10).gather()
        assert solver.history.converged
        errors.append(abs(found - exact).max())
    assert all(a / b > 3.7 for a, b in itertools.pairwise(errors)), errors


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_complex_solutions_are_of_second_order(dims):
    errors = []
    for n in (8, 16, 32) if dims < 3 else (8, 16):
        x = np.meshgrid(*[(np.arange(n) + 0.5) / n] * dims, indexing="ij")
        sigma = sum(x) * (1 + 20j)
        exact = np.prod([np.sin(np.pi * each) for each in x], axis=0) * (1 - 2j)
        found = Poisson((n,) * dims, sigma=sigma).solve((dims * np.pi**2 + sigma) * exact, tol=1e-10).gather()
        errors.append(abs(found - exact).max())
    assert all(a / b > 3.7 for a, b in itertools.pairwise(errors)), errors


def test_a_complex_solver_takes_real_right_sides():
    f = np.random.default_rng(2).standard_normal((8, 8))
    exact = exact_of((8, 8), {}, f)
    for given in (f, tw.field(f)):
        found = Poisson((8, 8), sigma=0j).solve(given, tol=1e-9).gather()
        np.testing.assert_allclose(found, exact, atol=1e-7 * abs(exact).max())


def test_a_shifted_right_side_has_the_shifted_solution():
    f = np.random.default_rng(7).standard_normal((16, 16))
    f -= f.mean()
    solver = Poisson((16, 16), boundary="periodic")
    straight = solver.solve(f, tol=1e-11).gather()
    shifted = solver.solve(np.roll(f, (3, 5), (0, 1)), tol=1e-11).gather()
    np.testing.assert_allclose(np.roll(straight, (3, 5), (0, 1)), shifted, atol=1e-9 * abs(straight).max())


@pytest.mark.parametrize("smoother", ["gauss-seidel", "red-black", "jacobi"])
def test_a_periodic_axis_of_short_cells_is_coarsened_to_one(smoother):
    """That one is no neighbour of itself: else sweeps of all other axes would be held back."""
    shape, spacing = (6, 12), (0.01, 1.0)
    f = np.random.default_rng(4).standard_normal(shape)
    options = {"boundary": ("periodic", "dirichlet")}
    solver = Poisson(shape, spacing, smoother=smoother, **options)
    u = solver.solve(f).gather()
    assert (1, 12) in solver.levels and solver.history.cycles < 12, solver.history
    matrix = poisson_matrix(shape, spacing, **options)
    assert np.linalg.norm(matrix @ u.ravel() - f.ravel()) <= 1e-7 * np.linalg.norm(f)
