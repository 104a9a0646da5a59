"""Grids that no powers of 2 describe: odd numbers of cells, thin boxes, flat cells."""

import itertools

import numpy as np
import pytest
from poisson_matrix import poisson_matrix

from tilewave.multigrid import Poisson
from tilewave.multigrid.axes import Axis
from tilewave.multigrid.levels import all_grids, finest


@pytest.mark.parametrize(
    "shape, options, most",
    [
        ((37, 53), {}, 0.15),
        ((33, 1), {"boundary": ("dirichlet", "neumann")}, 0.15),
        ((5, 7, 9), {}, 0.15),
        ((17, 6, 3), {"boundary": ("periodic", "neumann", "dirichlet")}, 0.2),
        ((4, 96), {"spacing": 1.0}, 0.15),
        ((4, 96), {"spacing": 1.0, "boundary": ("neumann", "dirichlet")}, 0.15),
        ((24, 20), {"spacing": (1.0, 0.1)}, 0.15),
        ((9, 8, 10), {"spacing": (0.05, 1.0, 1.3)}, 0.25),
        ((15, 21), {"k": lambda i, j: 1.0 + 0.5 * np.sin(i) * np.cos(j)}, 0.2),
        ((15, 21), {"smoother": "red-black", "boundary": "neumann", "sigma": 0.5}, 0.15),
        ((1, 1), {}, 0.1),
    ],
)
def test_any_grid_converges_as_a_power_of_two_does(shape, options, most):
    f = np.random.default_rng(3).standard_normal(shape)
    solver = Poisson(shape, **options)
    found = solver.solve(f, tol=1e-9).gather()
    assert solver.history.converged and solver.history.factor < most, (solver.history, solver.levels)
    operator = {name: options[name] for name in ("spacing", "boundary", "k", "sigma") if name in options}
    exact = np.linalg.solve(poisson_matrix(shape, **operator), f.ravel()).reshape(shape)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-6 * abs(exact).max())


def test_which_axes_are_halved():
    assert Poisson((24, 12)).levels == [(24, 12), (12, 12), (6, 6), (3, 3), (2, 2)]
    assert Poisson((8, 8), spacing=(1.0, 0.25)).levels == [(8, 8), (8, 4), (8, 2), (4, 1), (2, 1)]


def test_one_grid_is_solved_at_once():
    f = np.random.default_rng(1).standard_normal((2, 1, 2))
    solver = Poisson((2, 1, 2), boundary=("periodic", "dirichlet", "neumann"))
    found = solver.solve(f).gather()
    assert solver.history.cycles == 1
    matrix = poisson_matrix((2, 1, 2), boundary=("periodic", "dirichlet", "neumann"))
    np.testing.assert_allclose(found.ravel(), np.linalg.solve(matrix, f.ravel()), rtol=1e-12)


def _grids(shape, k=1.0, boundary="dirichlet", sigma=0.0):
    return all_grids(finest(shape, [1 / n for n in shape], [(boundary, boundary)] * len(shape), k, sigma))


SIDES = [("periodic", "periodic"), *itertools.product(("dirichlet", "neumann"), repeat=2)]


@pytest.mark.parametrize("boundary", SIDES)
@pytest.mark.parametrize("cells", [2, 7, 8])
@pytest.mark.exhaustive
def test_corrections_are_linear_between_centres(cells, boundary):
    """And to 0 at a Dirichlet boundary; at one of Neumann a cell has its own value alone."""
    axis = Axis(np.random.default_rng(cells).random(cells) + 0.5, boundary)
    coarse = axis.halved()
    low, high = axis.weights(coarse)
    total, centres = axis.lengths.sum(), coarse.centres
    below, above = (centres[-1] - total, centres[0] + total) if axis.periodic else (0.0, total)
    places = [below, *centres, above]
    for c in range(coarse.cells):
        at, lower, upper = centres[c], axis.centres[2 * c], axis.centres[2 * c + 1 : 2 * c + 2]
        beside = boundary[0] == "neumann" and c == 0, boundary[1] == "neumann" and c == coarse.cells - 1
        assert np.isclose(low[c + 1], 0.0 if beside[0] else (at - lower) / (at - places[c]))
        for there in upper:  # there is none in the last cell of an odd number
            assert np.isclose(high[c + 1], 0.0 if beside[1] else (there - at) / (places[c + 2] - at))


def test_coarse_faces_keep_what_flows():
    """All of it where k is the same along the axis; at least what the faces alone say where it varies."""
    k = np.random.default_rng(1).random((4, 6, 8)) + 0.5
    for axis in range(3):
        every = tuple(slice(1, None, 2) if d == axis else slice(1, -1) for d in range(3))
        inside = tuple(slice(1, None) if d == axis else slice(1, -1) for d in range(3))
        for same in (True, False):
            values = np.broadcast_to(k.mean(axis, keepdims=True), k.shape) if same else k
            fine = finest(k.shape, [1.0, 1.0, 1.0], [("dirichlet", "neumann")] * 3, values, 0.0)
            coarse = fine.coarser()
            assert coarse.shape == (2, 3, 4)
            kept, flows = coarse.faces[axis][inside].sum() * 16, fine.faces[axis][every].sum()
            assert np.isclose(kept, flows) if same else flows < kept < 1.3 * flows


@pytest.mark.parametrize("shape", [(64,), (20, 24)])
def test_a_smooth_coefficient_converges(shape):
    """Of 1 at the boundary and 100 inside: coarse grids saw too little of it near the boundary."""
    k = 1 + 99 * np.prod(np.meshgrid(*[np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in shape], indexing="ij"), 0)
    solver = Poisson(shape, k=k)
    solver.solve(np.ones(shape))
    assert solver.history.converged and solver.history.cycles < 18, solver.history


@pytest.mark.parametrize("boundary", ["dirichlet", "neumann", "periodic"])
def test_coarse_operators_of_odd_grids_are_symmetric_and_keep_constants(boundary):
    for cells in _grids((9, 7), boundary=boundary, sigma=2.0)[1:]:
        matrix = cells.matrix()
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12 * abs(matrix).max())
        if boundary != "dirichlet":  # each cell's part of the whole, 63 cells, times sigma
            volume = 63 / np.prod([axis.lengths.max() * n for axis, n in zip(cells.axes, (9, 7), strict=True)])
            assert np.isclose(matrix.sum(), 2.0 * volume)


def test_even_grids_are_those_of_constants():
    for cells in _grids((16, 8)):
        assert not cells.varies
    for equal, varying in zip(_grids((16, 16)), _grids((16, 16), k=np.ones((16, 16))), strict=True):
        np.testing.assert_allclose(equal.matrix(), varying.matrix(), rtol=1e-13)
