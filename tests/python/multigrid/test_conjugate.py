"""Cycles as the preconditioner of conjugate gradients."""

import types
import warnings

import numpy as np
import pytest
from local_ranks import results_of
from poisson_matrix import poisson_matrix

from tilewave.errors import ConfigError
from tilewave.multigrid import Poisson, poisson
from tilewave.multigrid.conjugate import ConjugateGradients


def jumps(shape, most=1e4, seed=0):
    """A coefficient of 1 and `most` in random blocks."""
    blocks = np.random.default_rng(seed).integers(0, 2, [-(-n // 3) for n in shape])
    for axis in range(len(shape)):
        blocks = np.repeat(blocks, 3, axis)
    return most ** blocks[tuple(slice(n) for n in shape)].astype(float)


CASES = [
    ((40,), {"k": jumps((40,))}),
    ((15, 18), {"k": jumps((15, 18))}),
    ((8, 9, 7), {"k": jumps((8, 9, 7)), "smoother": "red-black", "pre": 1, "post": 1}),
    ((16, 12), {"boundary": ("periodic", "dirichlet"), "cycle": "W"}),
    ((12, 12), {"sigma": 3 + 40j}),
    ((12, 12), {"sigma": 0j, "k": jumps((12, 12))}),
    ((9, 8), {"sigma": lambda i, j: 10j * (i > j), "k": jumps((9, 8)), "smoother": "jacobi"}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("ranks", [1, 2])
def test_solutions_are_those_of_the_dense_matrix(ranks, case):
    shape, options = CASES[case]
    rng = np.random.default_rng(case)
    f = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if "sigma" in options else 0)

    def body(context):
        solver = Poisson(shape, context=context, **options)
        return solver.solve(f, tol=1e-9, method="cg").gather(), solver.history

    results = results_of(ranks, 1, body)
    found, history = results[0]
    assert history.converged and history.cycles < 25, history
    assert len({h.cycles for _, h in results}) == 1
    operator = {name: options[name] for name in ("boundary", "k", "sigma") if name in options}
    matrix = poisson_matrix(shape, **operator)
    residual = np.linalg.norm(f.ravel() - matrix @ found.ravel())
    assert residual <= 1e-8 * np.linalg.norm(f)
    exact = np.linalg.solve(matrix, f.ravel()).reshape(shape)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5 * abs(exact).max())


def test_it_needs_fewer_cycles_where_k_jumps():
    shape = (32, 32)
    f = np.random.default_rng(1).standard_normal(shape)
    solver = Poisson(shape, k=jumps(shape), coarse="average")
    solver.solve(f, method="cg")
    by_cg = solver.history
    solver.solve(f, max_cycles=2 * by_cg.cycles)
    assert by_cg.converged and (not solver.history.converged or solver.history.cycles > by_cg.cycles)


def test_jumps_inside_coarse_cells_stall_cycles_and_not_conjugate_gradients():
    shape = (64, 64)
    k, f = jumps(shape, seed=1), np.random.default_rng(9).standard_normal(shape)
    solver = Poisson(shape, k=k, coarse="average")
    solver.solve(f)
    assert not solver.history.converged and 0.9 < solver.history.factor < 1
    found = solver.solve(f, method="cg").gather()
    assert solver.history.converged and solver.history.cycles <= 100
    left = f.copy()  # less -div(k grad u), u = 0 on the edge
    for axis in (0, 1):
        u, c = np.moveaxis(found, axis, 0), np.moveaxis(k, axis, 0)
        inner = 2 * c[1:] * c[:-1] / (c[1:] + c[:-1]) * np.diff(u, axis=0)
        flux = np.concatenate([2 * c[:1] * u[:1], inner, -2 * c[-1:] * u[-1:]])
        left += np.moveaxis(np.diff(flux, axis=0), 0, axis) * shape[axis] ** 2
    assert np.linalg.norm(left) < 1e-7 * np.linalg.norm(f)


def test_no_fixed_values_and_starts():
    f = np.random.default_rng(1).standard_normal((16, 16))
    f -= f.mean()
    solver = Poisson((16, 16), boundary="neumann", k=jumps((16, 16)))
    found = solver.solve(f, method="cg")
    assert solver.history.converged and abs(found.gather().mean()) < 1e-12
    solver.solve(f, x0=found, method="cg", tol=1e-6)
    assert solver.history.cycles == 0
    solver.solve(f, method="cg", max_cycles=2)
    assert solver.history.cycles == 2 and not solver.history.converged
    assert abs(solver.solve(0 * f, method="cg").gather()).max() == 0


def test_a_cycle_is_symmetric_where_k_varies():
    shape = (7, 6)
    solver = Poisson(shape, k=jumps(shape), smoother="red-black")
    rows = [solver.precondition(unit.reshape(shape)).gather().ravel() for unit in np.eye(42)]
    np.testing.assert_allclose(rows, np.transpose(rows), atol=1e-13 * np.abs(rows).max())


@pytest.mark.parametrize("options", [{"pre": 1}, {"cycle": "F"}])
def test_cycles_that_are_not_symmetric_are_refused(options):
    solver = Poisson((8, 8), **options)
    with pytest.raises(ConfigError, match="symmetric"):
        solver.solve(np.ones((8, 8)), method="cg")
    with pytest.raises(ConfigError, match="method"):
        solver.solve(np.ones((8, 8)), method="gmres")


def test_one_cycle_by_itself():
    linalg = pytest.importorskip("scipy.sparse.linalg")
    shape = (9, 12)
    solver = Poisson(shape, k=jumps(shape))
    matrix = poisson_matrix(shape, k=jumps(shape))
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, *shape))
    both = solver.precondition(2 * a - b).gather()
    np.testing.assert_allclose(both, 2 * solver.precondition(a).gather() - solver.precondition(b).gather(), atol=1e-12)
    counts = []
    f = rng.standard_normal(matrix.shape[0])
    x, failed = linalg.gmres(
        matrix, f, rtol=1e-9, M=solver.aspreconditioner(), callback=counts.append, callback_type="pr_norm"
    )
    assert not failed and len(counts) < 25
    np.testing.assert_allclose(matrix @ x, f, atol=1e-6 * abs(f).max())


def test_a_warning_says_what_to_do_where_the_cycles_are_not_enough(monkeypatch):
    shape = (24, 24)
    solver, f = Poisson(shape, k=jumps(shape), coarse="average"), np.random.default_rng(2).standard_normal(shape)
    monkeypatch.setitem(poisson.MOST, "cycles", 3)
    with pytest.warns(RuntimeWarning, match="after 3 cycles the norm of the residual is .*; try method='cg'"):
        solver.solve(f)
    monkeypatch.setitem(poisson.MOST, "cg", 2)
    with pytest.warns(RuntimeWarning, match="after 2 iterations .*; try more max_cycles, or a larger tol"):
        solver.solve(f, method="cg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver.solve(f, max_cycles=1)
        solver.solve(f, method="cg", max_cycles=200)
    assert solver.history.converged


@pytest.mark.parametrize("smoother", ["jacobi", "red-black"])
def test_right_sides_whose_product_without_conjugation_is_0(smoother):
    """The sum of exp(ix) squared is 0, and so were all steps along it."""
    x, y = np.meshgrid(*[(np.arange(16) + 0.5) / 16] * 2, indexing="ij")
    f = np.exp(2j * np.pi * (x + y))
    options = {"boundary": "periodic", "sigma": 1j}
    solver = Poisson((16, 16), smoother=smoother, **options)
    u = solver.solve(f, method="cg").gather()
    assert solver.history.converged and solver.history.cycles <= 8, solver.history
    matrix = poisson_matrix((16, 16), **options)
    assert np.linalg.norm(matrix @ u.ravel() - f.ravel()) < 1e-7 * np.linalg.norm(f)


def test_the_residual_is_that_of_the_solution():
    """A start far from the solution: the residual that the iterations keep is lost in rounding."""
    shape, k = (16, 16), 1e8
    rng = np.random.default_rng(1)
    f, x0 = rng.standard_normal(shape), rng.standard_normal(shape)
    solver = Poisson(shape, k=k)
    u = solver.solve(f, method="cg", x0=x0).gather()
    matrix = poisson_matrix(shape, k=k)
    assert solver.history.converged and solver.history.cycles < 20
    assert np.linalg.norm(matrix @ u.ravel() - f.ravel()) <= 2e-8 * np.linalg.norm(f)


def test_iterations_that_come_to_a_stand_begin_anew():
    """Flat cells and a complex sigma in few of them: directions are lost in rounding."""
    shape, rng = (7, 7, 5), np.random.default_rng(10)
    sigma, f = 7j * rng.random(shape) * (rng.random(shape) < 0.3), rng.standard_normal(shape)
    options = {"boundary": ("periodic", "neumann", "neumann"), "smoother": "jacobi", "pre": 1, "post": 1}
    solver = Poisson(shape, (0.001, 0.1, 3.0), sigma=sigma, **options)
    solver.solve(f, method="cg", max_cycles=100)
    assert solver.history.converged, solver.history


@pytest.mark.parametrize("hermitian", [True, False])
def test_products_with_the_matrix_follow_from_those_before(hermitian):
    """Conjugated where the matrix is Hermitian, not so where it is complex and symmetric."""
    rng = np.random.default_rng(7)
    matrix, u, p = (rng.standard_normal(n) + 1j * rng.standard_normal(n) for n in ((5, 5), 5, 5))
    matrix, beta = matrix + (matrix.conj().T if hermitian else matrix.T), 0.7 - 0.4j
    product = np.vdot if hermitian else np.dot
    known = product(u, matrix @ u), beta * product(u, matrix @ p), beta, product(p, matrix @ p)
    found = ConjugateGradients._product(types.SimpleNamespace(_hermitian=hermitian), *known)
    direction = u + beta * p
    assert np.isclose(found, product(direction, matrix @ direction))
