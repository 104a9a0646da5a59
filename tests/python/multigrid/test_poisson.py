"""Multigrid on ranks that are threads: solutions, convergence, and what is refused."""

import itertools
import weakref

import numpy as np
import pytest
from local_ranks import results_of
from poisson_matrix import poisson_matrix

import tilewave as tw
from tilewave.errors import ConfigError
from tilewave.multigrid import Poisson
from tilewave.nests.plan import choosing
from tilewave.nests.plan import kernel_maker

CASES = [
    ((32,), {}),
    ((16, 16), {}),
    ((8, 16), {"boundary": (("neumann", "dirichlet"), "neumann"), "cycle": "F"}),
    ((16, 8), {"smoother": "red-black", "sigma": 3.0, "boundary": "neumann", "cycle": "W"}),
    ((8, 8, 8), {"smoother": "jacobi", "post": 3}),
    (
        (8, 16, 8),
        {"k": lambda i, j, k: 1.0 + 20.0 * (i > 3) + 0.1 * j, "boundary": ("dirichlet", "neumann", "dirichlet")},
    ),
]


def found_on(ranks, body):
    """What `body` gives on each of some ranks."""
    return results_of(ranks, 1, body)


def right_side(shape):
    return np.random.default_rng(5).standard_normal(shape)


@pytest.mark.parametrize("ranks, case", [(1, 0), (1, 1), (3, 2), (1, 3), (2, 4), (1, 5), (3, 5)])
def test_solutions_are_those_of_the_dense_matrix(ranks, case):
    shape, options = CASES[case]
    f = right_side(shape)
    operator = {name: options[name] for name in ("boundary", "k", "sigma") if name in options}
    exact = np.linalg.solve(poisson_matrix(shape, **operator), f.ravel()).reshape(shape)

    def body(context):
        solver = Poisson(shape, context=context, **options)
        found = solver.solve(f, tol=1e-9).gather()
        assert solver.history.converged and solver.history.factor < 0.35, solver.history
        return found, solver.history.cycles

    results = found_on(ranks, body)
    np.testing.assert_allclose(results[0][0], exact, rtol=0, atol=1e-7 * abs(exact).max())
    assert len({cycles for _, cycles in results}) == 1


def test_the_same_cycles_on_any_ranks():
    f = right_side((16, 16, 16))

    def body(context):
        solver = Poisson((16, 16, 16), context=context)
        solver.solve(f)
        return solver.history.norms

    norms = {ranks: found_on(ranks, body)[0] for ranks in (1, 2)}
    assert len(norms[1]) == len(norms[2])
    np.testing.assert_allclose(norms[1], norms[2], rtol=1e-12)
    assert (norms[1][-1] / norms[1][0]) ** (1 / (len(norms[1]) - 1)) <= 0.12


@pytest.mark.parametrize("dims", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_second_order_where_k_varies_and_nothing_flows_out(dims):
    errors = []
    for n in (16, 32) if dims < 3 else (8, 16):
        centre = (np.arange(n) + 0.5) / n
        x = np.meshgrid(*[centre] * dims, indexing="ij")
        exact = np.cos(np.pi * x[0]) * (np.cos(2 * np.pi * x[-1]) if dims > 1 else 1)
        k, slope = 2 + np.sin(np.pi * x[0]), np.pi * np.cos(np.pi * x[0])
        along = -np.pi * np.sin(np.pi * x[0]) * (np.cos(2 * np.pi * x[-1]) if dims > 1 else 1)
        f = k * np.pi**2 * (5 if dims > 1 else 1) * exact - slope * along + exact
        found = Poisson((n,) * dims, boundary="neumann", k=k, sigma=1.0).solve(f, tol=1e-11, method="cg").gather()
        errors.append(abs(found - exact).max())
    assert all(a / b > 3.6 for a, b in itertools.pairwise(errors)), errors


def test_second_order():
    errors = []
    for n in (16, 32, 64):
        x, y = np.meshgrid(*[(np.arange(n) + 0.5) / n] * 2, indexing="ij")
        exact = np.sin(np.pi * x) * np.sin(2 * np.pi * y)
        found = Poisson((n, n)).solve(5 * np.pi**2 * exact, tol=1e-10).gather()
        errors.append(abs(found - exact).max())
    assert errors[0] / errors[1] > 3.8 and errors[1] / errors[2] > 3.8, errors


@pytest.mark.parametrize("boundary", ["neumann", "periodic", ("periodic", "neumann")])
def test_no_fixed_values(boundary):
    f = right_side((16, 16))
    solver = Poisson((16, 16), boundary=boundary)
    with pytest.raises(ConfigError, match="mean of f"):
        solver.solve(f + 1)
    found = solver.solve(f - f.mean()).gather()
    assert solver.history.converged and abs(found.mean()) < 1e-12
    matrix = poisson_matrix((16, 16), boundary=boundary)
    np.testing.assert_allclose(matrix @ found.ravel(), (f - f.mean()).ravel(), atol=1e-5)


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (1, 1), (1, 7), (2, 97), (7, 11, 1), (1, 1, 1)])
def test_grids_that_are_hardly_coarsened(shape):
    f = np.random.default_rng(1).standard_normal(shape)
    for boundary in ("dirichlet", "periodic"):
        solver = Poisson(shape, boundary=boundary, sigma=1.0)
        found = solver.solve(f, tol=1e-10).gather()
        assert solver.history.converged
        matrix = poisson_matrix(shape, boundary=boundary, sigma=1.0)
        np.testing.assert_allclose(matrix @ found.ravel(), f.ravel(), atol=1e-8)


def test_starts_and_fields():
    f = right_side((16,))
    solver = Poisson(16)
    found = solver.solve(tw.field(f))
    solver.solve(f, x0=found)
    assert solver.history.cycles == 0 and solver.history.converged
    solver.solve(f, max_cycles=2)
    assert solver.history.cycles == 2 and not solver.history.converged
    assert abs(solver.solve(np.zeros(16)).gather()).max() == 0


BAD = [
    (dict(shape=(4, 4, 4, 4)), "shape"),
    (dict(shape=(8,), spacing=-1.0), "spacing"),
    (dict(shape=(8,), boundary="open"), "boundary"),
    (dict(shape=(8, 8), boundary=("neumann", ("periodic", "dirichlet"))), "both sides"),
    (dict(shape=(8,), k=0), "k"),
    (dict(shape=(8,), k=np.zeros(8)), "above 0"),
    (dict(shape=(8,), k=np.ones(9)), "shape"),
    (dict(shape=(8,), k=np.ones(8) * 1j), "k: given"),
    (dict(shape=(8,), sigma=-np.inf), "sigma"),
    (dict(shape=(8,), sigma=-1 + 2j), "sigma"),
    (dict(shape=(8,), sigma=np.full(8, -1 + 1j)), "sigma has the value -1"),
    (dict(shape=(8,), sigma=np.full(8, np.nan)), "sigma has the value nan"),
    (dict(shape=(8,), cycle="X"), "cycle"),
    (dict(shape=(8,), smoother="sor"), "smoother"),
    (dict(shape=(8,), pre=0, post=0), "sweep"),
    (dict(shape=(8,), pre=True), "pre"),
    (dict(shape=(8,), post=10**9), "0 to 100"),
    (dict(shape=True), "shape: given True"),
    (dict(shape=None), "shape: given None"),
    (dict(shape=(8,), boundary=[1]), r"boundary: given \[1\]"),
    (dict(shape=(8,), boundary=[[[], "neumann"]]), "boundary: given"),
    (dict(shape=(8,), k=lambda i: 1 // 0), "k raised ZeroDivisionError"),
    (dict(shape=(8,), k=lambda i: np.where(i == 3, np.inf, 1.0)), "k has the value inf"),
    (dict(shape=(8,), k=np.full(8, 1e308)), "k / spacing"),
    (dict(shape=(8,), k=np.where(np.arange(8) < 3, 1e-300, 1.0)), "k / spacing"),
    (dict(shape=(8,), spacing=1e-200), "k / spacing"),
    (dict(shape=(8,), spacing=1e200), "k / spacing"),
    (dict(shape=(8,), sigma=1e300), "sigma is up to"),
    (dict(shape=(8,), sigma=1e-30, boundary="neumann"), "sigma is 1e-30 on average"),
]


@pytest.mark.parametrize("arguments, said", BAD, ids=[said for _, said in BAD])
def test_bad_solvers(arguments, said):
    with pytest.raises(ConfigError, match=said) as error:
        Poisson(**arguments)
    assert "allowed" in str(error.value)


@pytest.mark.parametrize(
    "f, said",
    [
        (np.full(8, np.nan), "not finite"), (np.full(8, np.inf), "not finite"), (np.full(8, 1e300), "scale f"),
        (np.full(8, -1e-170), "scale f"), (np.ones(9), "shape"), (np.ones(8, "c16"), "sigma=0j"), ("f", "real"),
    ],
)
def test_bad_right_sides(f, said):
    with pytest.raises(ConfigError, match=said):
        Poisson(8).solve(f)


def test_a_bad_argument_on_one_rank_is_an_error_of_all():
    def body(context):
        with pytest.raises(ConfigError, match="boundary"):
            Poisson((8, 8), boundary="open" if context.rank == 1 else "neumann", context=context)
        with pytest.raises(ConfigError):
            Poisson((8, 8 + context.rank), context=context)
        solver = Poisson((8, 8), context=context)
        for _ in range(2):  # before there is a plan, and then
            with pytest.raises(ConfigError, match="different functions"):
                solver.plan() if context.rank == 1 else solver.solve(np.ones((8, 8)))
            solver.plan()
        for wrong in (np.ones((8, 9)), np.ones((8, 8), "c16"), None):
            with pytest.raises(ConfigError, match="f: given"):
                solver.solve(wrong if context.rank == 1 else np.ones((8, 8)))
        with pytest.raises(ConfigError, match="not finite"):
            solver.solve(np.full((8, 8), np.nan))
        with pytest.raises(ConfigError, match="x0"):
            solver.solve(np.ones((8, 8)), x0=np.full((8, 8), np.inf))
        here, differ = np.full((8, 8), 1.0 + context.rank), "different arguments"
        with pytest.raises(ConfigError, match=differ):
            Poisson((8, 8), k=here, context=context)
        fields = [tw.field((8, 8), context=context) for _ in range(2)]
        for wrong in ({"f": here}, {"f": fields[context.rank]}, {"f": np.ones((8, 8)), "x0": here}):
            with pytest.raises(ConfigError, match=differ):
                solver.solve(**wrong)
        return solver.solve(np.ones((8, 8))).gather() is not None

    assert found_on(2, body) == [True, False]


@pytest.mark.parametrize(
    "shape, error", [((2**62,), ConfigError), ((2**31, 2**31), ConfigError), ((2**40, 2), MemoryError)]
)
def test_what_no_rank_has_room_for_is_refused_before_memory_is_filled(shape, error):
    def body(context):
        with pytest.raises(error) as caught:
            Poisson(shape, k=lambda *_: pytest.fail("too late"), context=context)
        return str(caught.value)

    first, second = found_on(2, body)
    assert first == second and "field: " in first


def test_the_plan_names_all_nests():
    text = Poisson((8, 8)).plan()
    names = ("relax", "residual", "restrict", "correct", "solve")
    assert "one schedule" in text and all(name in text for name in names)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_second_solver_of_the_same_shape_plans_nothing(ranks, monkeypatch):
    decided, decide = [], choosing.decide
    monkeypatch.setattr(choosing, "decide", lambda *given: decided.append(1) or decide(*given))
    f = np.random.default_rng(5).standard_normal((12, 9, 10))

    def body(context):
        found, counts = [], []
        for _ in range(2):
            found.append(Poisson(f.shape, context=context).solve(f).gather())
            context.agree()
            counts.append(len(decided))
        return found, counts

    results = results_of(ranks, 1, body)
    (first, second), counts = results[0]
    assert np.array_equal(first, second) and 0 < counts[0] == counts[1]


def test_kernels_of_the_first_solution_are_compiled_ahead(monkeypatch, tmp_path):
    """Those that threads have begun to compile are those that run."""
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernel_maker, "kernels", weakref.WeakValueDictionary())
    solver = tw.multigrid.Poisson((9, 8), context=tw.Context(threads=1))
    solver.solve(np.ones((9, 8)))
    kernels = solver._cycle._kernels
    assert len(kernels) > 5 and all(kernel._engine for kernel in kernels)
