"""Distributed matrices over MPI: moved, multiplied, as NumPy has it."""

import numpy as np
import pytest
from matrices import applied, close, values

import tilewave as tw

pytestmark = pytest.mark.ranks([2, 3])


@pytest.mark.ranks([2, 3])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("algorithm", ["auto", "broadcast", "wavefront", "summa"])
def test_products(algorithm):
    rng = np.random.default_rng(5)
    for dtype, ta, tb in (("f8", "N", "N"), ("c16", "C", "T")):
        m, n, k = 300, 170, 210
        a, b = values(rng, (m, k) if ta == "N" else (k, m), dtype), values(rng, (k, n) if tb == "N" else (n, k), dtype)
        c = values(rng, (m, n), dtype)
        for layouts in (("rows", "columns", "rows"), ("cyclic", "rows", "cyclic")):
            init = lambda x: x if tw.rank == 0 else None
            x, y, z = (tw.linalg.matrix(v.shape, v.dtype, init(v), layout=name) for v, name in zip((a, b, c), layouts))
            tw.linalg.matmul(x, y, z, alpha=2.0, beta=-1.0, trans_a=ta, trans_b=tb, algorithm=algorithm)
            found = z.gather()
            if tw.rank == 0:
                assert close(found, 2.0 * applied(a, ta) @ applied(b, tb) - c, dtype), (dtype, layouts)


def test_pending_blocks_of_every_rank():
    a, b = np.random.default_rng(6).standard_normal((2, 240, 240))
    x, y = tw.linalg.matrix(a), tw.linalg.matrix(b, layout="columns", block=20)
    found = tw.linalg.matmul(x, y, algorithm="wavefront", pending=True).gather()
    assert found is None or close(found, a @ b, "f8")


def test_moving_a_large_matrix():
    whole = np.random.default_rng(7).standard_normal((900, 800))
    made = tw.linalg.matrix(whole, layout="cyclic", block=64)
    found = made.redistribute("columns").redistribute("rows", 50).gather()
    assert found is None or np.array_equal(found, whole)


@pytest.mark.parametrize("dtype", ["f8", "c8"])
def test_cholesky(dtype):
    x = values(np.random.default_rng(8), (230, 230), dtype)
    whole = (x @ x.conj().T / 230 + np.eye(230)).astype(dtype)
    b = values(np.random.default_rng(9), (230, 7), dtype)
    factor = tw.linalg.cholesky(tw.linalg.matrix(whole, layout="cyclic", block=40), block=32)
    found = factor.solve(tw.linalg.matrix(b)).gather()
    lower = factor.gather()
    if tw.rank == 0:
        assert close(lower @ lower.conj().T, whole, dtype) and close(whole @ found, b, "c8")


def test_not_positive_definite():
    a = tw.linalg.matrix((50, 50), init=lambda i, j: (i == j) * np.where(i == 33, -1.0, 2.0))
    with pytest.raises(tw.linalg.NotPositiveDefinite) as refused:
        tw.linalg.cholesky(a, block=4)
    assert refused.value.info == 34


@pytest.mark.parametrize("dtype", ["f8", "c8"])
def test_lu(dtype):
    whole, b = values(np.random.default_rng(10), (210, 210), dtype), values(np.random.default_rng(11), (210, 5), dtype)
    factor = tw.linalg.lu(tw.linalg.matrix(whole, layout="cyclic", block=40), block=32)
    x = factor.solve(tw.linalg.matrix(b)).gather()
    found = factor.gather()
    if tw.rank == 0:
        lower, upper = np.tril(found, -1) + np.eye(210, dtype=dtype), np.triu(found)
        assert close(lower @ upper, whole[factor.permutation], dtype)
        assert np.abs(whole @ x - b).max() < 1e3 * np.finfo(dtype).eps * np.abs(x).max() * 210


@pytest.mark.parametrize("dtype", ["f8", "c8"])
@pytest.mark.parametrize("shape", [(260, 150), (150, 260)])
def test_qr_and_least_squares(dtype, shape):
    whole, b = values(np.random.default_rng(12), shape, dtype), values(np.random.default_rng(13), (shape[0], 4), dtype)
    a, sides = tw.linalg.matrix(whole, layout="cyclic", block=40), tw.linalg.matrix(b)
    factor = tw.linalg.qr(a, block=32)
    q, r = (x.gather() for x in factor)
    turned, x = factor.apply(sides, trans="C").gather(), tw.linalg.lstsq(a, sides).gather()
    if tw.rank == 0:
        assert close(q @ r, whole, dtype) and close(q.conj().T @ q, np.eye(q.shape[1]), dtype)
        assert close(turned[: q.shape[1]], q.conj().T @ b, dtype)
        assert np.abs(whole.conj().T @ (b - whole @ x)).max() < 1e3 * np.finfo(dtype).eps * 260


def test_a_dependent_column():
    a = tw.linalg.matrix((50, 20), init=lambda i, j: np.cos(i * (j % 13)) + (i == j % 13))
    b = tw.linalg.matrix((50, 1), init=1.0)
    with pytest.raises(tw.linalg.RankDeficient, match="column 13 of a") as refused:
        tw.linalg.qr(a).solve(b)
    assert refused.value.info == 14
    x = tw.linalg.lstsq(a, b)
    found, whole = x.gather(), a.gather()
    assert x.rank == 13 and (found is None or np.allclose(found, np.linalg.lstsq(whole, np.ones((50, 1)))[0]))


@pytest.mark.mpi(ranks=[2, 3])
def test_operators():
    rng = np.random.default_rng(15)
    a, b, x = values(rng, (150, 130), "f8"), values(rng, (150, 130), "c16"), values(rng, (130,), "f8")
    A, B = tw.linalg.matrix(a, layout="cyclic", block=20), tw.linalg.matrix(b)
    assert close(A @ x, a @ x, "f8") and close(x[:20] @ A[:20, ::2], x[:20] @ a[:20, ::2], "f8")
    assert A[7, 9] == a[7, 9] and np.array_equal(A.diagonal(3), a.diagonal(3))
    assert np.isclose(tw.linalg.norm(B), np.linalg.norm(b)) and np.isclose(tw.linalg.norm(B, 1), np.linalg.norm(b, 1))
    for found, wanted in (
        (A.T @ B, a.T @ b),
        (2 * A - B / 2, 2 * a - b / 2),
        (B.H, b.conj().T),
        (A[9:, :40], a[9:, :40]),
    ):
        whole = found.gather()
        assert whole is None or close(whole, wanted, "f8")
    S, s = A[:100, :100], a[:100, :100]
    assert np.allclose(tw.linalg.slogdet(S), np.linalg.slogdet(s)) and np.allclose(
        s @ tw.linalg.solve(S, x[:100]), x[:100]
    )
    assert 0.3 < tw.linalg.cond(S) / np.linalg.cond(s, 1) < 1 + 1e-9


def test_triangles_and_inverses():
    whole = np.random.default_rng(14).standard_normal((160, 160)) + 20 * np.eye(160)
    a, b = tw.linalg.matrix(whole, layout="cyclic", block=30), tw.linalg.matrix((160, 9), init=1.0)
    x, inverse = tw.linalg.solve_triangular(a, b, trans="T", lower=True).gather(), tw.linalg.inv(a).gather()
    if tw.rank == 0:
        assert close(np.tril(whole).T @ x, np.ones((160, 9)), "f8") and close(whole @ inverse, np.eye(160), "f8")
