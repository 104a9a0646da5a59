"""Multigrid over MPI ranks: solutions and cycles are those of one rank, and wrong arguments are errors of all."""

import numpy as np
import pytest

import tilewave as tw
from tilewave.errors import ConfigError

CASES = {
    "gauss-seidel": ((16, 16, 16), {}, "cycles"),
    "periodic": ((12, 20), {"boundary": ("dirichlet", "periodic")}, "cycles"),
    "all periodic": ((8, 8, 8), {"boundary": "periodic", "smoother": "red-black"}, "cycles"),
    "odd, complex": ((13, 11), {"sigma": lambda i, j: 9j * (i > j)}, "cycles"),
    "conjugate gradients": ((14, 10), {"k": lambda i, j: np.where((i + j) % 5 > 2, 1.0, 1e3)}, "cg"),
}


@pytest.mark.mpi(ranks=[2, 3])  # on 6: tests/python/multigrid/test_sharing.py, with ranks as threads
@pytest.mark.parametrize("case", CASES)
@pytest.mark.sample(3)
def test_cycles_are_those_of_one_rank(case):
    MPI = pytest.importorskip("mpi4py.MPI")  # here: importing it starts MPI in pytest's process, too
    shape, options, method = CASES[case]
    f = np.random.default_rng(1).standard_normal(shape)
    f -= f.mean()
    found = []
    for context in (tw.Context(), tw.Context(comm=MPI.COMM_SELF)):
        solver = tw.multigrid.Poisson(shape, context=context, **options)
        found.append((solver.solve(f, method=method)[...], solver.history))
    (u, together), (expected, alone) = found
    assert together.converged and together.cycles == alone.cycles
    np.testing.assert_allclose(together.norms, alone.norms, rtol=1e-6)
    np.testing.assert_allclose(u, expected, rtol=0, atol=1e-9 * abs(expected).max())


@pytest.mark.mpi(ranks=[2, 3])
def test_wrong_arguments_of_one_rank_are_errors_of_all():
    last = tw.rank == tw.size - 1
    with pytest.raises(ConfigError, match="periodic"):
        tw.multigrid.Poisson((8,), boundary=[("periodic", "neumann")] if last else "neumann")
    solver = tw.multigrid.Poisson((8,), boundary="periodic")
    with pytest.raises(ConfigError, match="shape"):
        solver.solve(np.zeros(7 if last else 8))
    with pytest.raises(ConfigError, match="mean of f"):
        solver.solve(np.ones(8))
