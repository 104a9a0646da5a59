"""Full multigrid: one pass to the error of the discretisation, on any grid, coefficient and number of ranks."""

import itertools

import numpy as np
import pytest
from local_ranks import results_of

from tilewave.errors import ConfigError
from tilewave.multigrid import Poisson

CASES = {
    "1-D": ((48,), {}),
    "2-D": ((32, 24), {}),
    "odd": ((27, 37), {}),
    "flat cells": ((24, 24), {"spacing": (1 / 24, 1 / 240)}),
    "Neumann, sigma": ((24, 40), {"boundary": "neumann", "sigma": 2.0}),
    "periodic": ((32, 32), {"boundary": ("periodic", "dirichlet"), "cycle": "F"}),
    "singular": ((16, 24), {"boundary": "neumann", "cycle": "W"}),
    "k varies": ((32, 32), {"k": lambda x, y: 2.0 + np.sin(3 * x) * np.cos(2 * y)}),
    "complex": ((24, 24), {"sigma": 20j}),
    "red-black": ((16, 16, 16), {"smoother": "red-black"}),
    "Jacobi": ((16, 12, 8), {"smoother": "jacobi"}),
}


def smooth(shape, mean):
    """A right side that is smooth up to the boundary, at the centres of cells."""
    places = np.meshgrid(*[(np.arange(n) + 0.5) / n for n in shape], indexing="ij")
    f = 1.0 + sum((d + 1) * np.cos(2 * np.pi * x) + x * (1 - x) for d, x in enumerate(places))
    return f - f.mean() * (not mean)


def solver_of(shape, options, finer=1, **more):
    """The solver on this box with `finer` times as many cells along each axis; functions take places."""
    cells = tuple(n * finer for n in shape)
    options = options | more
    if callable(options.get("k")):
        k = options["k"]
        options["k"] = lambda *at: k(*((i + 0.5) / n for i, n in zip(at, cells, strict=True)))
    if "spacing" in options:
        options["spacing"] = tuple(h / finer for h in options["spacing"])
    return Poisson(cells, **options), cells


def means(values, shape):
    """Of two cells along each axis."""
    split = values.reshape([n for cells in shape for n in (cells, 2)])
    return split.mean(axis=tuple(range(1, 2 * len(shape), 2)))


@pytest.mark.parametrize("case", CASES)
def test_a_pass_leaves_an_error_of_the_discretisations_size(case):
    shape, options = CASES[case]
    mean = case != "singular"
    (solver, _), (fine, cells) = solver_of(shape, options), solver_of(shape, options, finer=2)
    f = smooth(shape, mean)
    exact = solver.solve(f, tol=1e-11).gather()
    better = means(fine.solve(smooth(cells, mean), tol=1e-11).gather(), shape)
    found = solver.solve(f, method="fmg").gather()
    assert solver.history.cycles == 1 and solver.history.converged
    assert solver.history.dof_per_s == exact.size / solver.history.time_s
    discretisation, algebraic = (np.linalg.norm(u - exact) for u in (better, found))
    assert algebraic < 2 * discretisation, (algebraic, discretisation)


def test_cycles_follow_where_a_tolerance_is_given():
    f = np.random.default_rng(3).standard_normal((24, 24))
    solver = Poisson((24, 24))
    expected = solver.solve(f, tol=1e-10).gather()
    few = solver.history.cycles
    found = solver.solve(f, tol=1e-10, method="fmg").gather()
    assert solver.history.converged and 1 < solver.history.cycles <= few
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * abs(expected).max())
    solver.solve(f, tol=1e-10, method="fmg", max_cycles=2)
    assert solver.history.cycles == 2 and not solver.history.converged


@pytest.mark.parametrize("shape", [(1,), (2, 1), (3, 2)])
def test_the_smallest_grids(shape):
    f = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    solver = Poisson(shape)
    exact = solver.solve(f, tol=1e-13).gather()
    np.testing.assert_allclose(solver.solve(f, tol=1e-13, method="fmg").gather(), exact, rtol=1e-12)


def test_what_full_multigrid_does_not_take():
    solver = Poisson((8, 8))
    with pytest.raises(ConfigError, match="x0 was given for method 'fmg'.*allowed"):
        solver.solve(np.ones((8, 8)), x0=np.ones((8, 8)), method="fmg")
    assert not solver.solve(np.zeros((8, 8)), method="fmg").gather().any()
    assert not solver.solve(np.ones((8, 8)), method="fmg", max_cycles=0).gather().any()


@pytest.mark.parametrize("case", ["odd", "periodic", "k varies", "red-black"])
def test_equal_bits_on_any_ranks(case):
    shape, options = CASES[case]

    def body(context):
        solver, _ = solver_of(shape, options, context=context)
        return solver.solve(smooth(shape, True), method="fmg").gather(), solver.history.norms

    found = [results_of(ranks, 1, body)[0] for ranks in (1, 2, 3, 4)]
    for (u, norms), (v, others) in itertools.pairwise(found):
        assert np.array_equal(u, v) and norms == others
