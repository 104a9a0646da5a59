"""Norms, determinants, conditions, and least squares of any rank and scale: as NumPy and SciPy have them."""

import numpy as np
import pytest
import scipy.linalg
import tilewave as tw
from local_ranks import refused_on_all, results_of
from matrices import DTYPES, layout, values


def near(found, wanted, dtype, what, factor=1e3):
    eps = np.finfo(dtype).eps
    scale = max(np.abs(wanted).max(initial=0), np.finfo(dtype).tiny) if np.size(wanted) else 1
    assert np.shape(found) == np.shape(wanted), what
    assert np.all(np.abs(found - wanted) <= factor * eps * scale) or np.array_equal(found, wanted, equal_nan=True), (
        what,
        found,
        wanted,
    )


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_a_matrix(ranks, dtype, seed):
    rng = np.random.default_rng(seed)
    real = np.finfo(dtype).dtype
    for _ in range(3):
        m, n = (int(x) for x in rng.integers(1, 14, 2))
        size = float(rng.choice([1.0, 1e-30, 1e30]))
        a, s = (values(rng, shape, dtype) * real.type(size) for shape in ((m, n), (n, n)))
        b, how = values(rng, (n, 3), dtype), [layout(rng, ranks) for _ in range(2)]
        what = f"seed {seed}, ranks {ranks}, {(m, n)}, {dtype}, {how}, {size}"

        def body(context):
            A, S = (tw.linalg.matrix(x, context=context, **h) for x, h in zip((a, s), how, strict=True))
            for given, x in ((A, a), (A.H, a.conj().T)):
                for ord, wanted in (
                    ("fro", np.linalg.norm(x.astype("c16"))),
                    (1, np.linalg.norm(x, 1)),
                    (np.inf, np.linalg.norm(x, np.inf)),
                    ("max", np.abs(x).max()),
                ):
                    found = tw.linalg.norm(given, ord)
                    assert found.dtype == real
                    near(found, wanted, dtype, f"{what}: norm {ord}")
            factor = tw.linalg.lu(S)
            lapack, pivots = scipy.linalg.lu_factor(s)
            sign, log = np.linalg.slogdet(s)
            k = np.linalg.cond(s.astype("c16"))
            with np.errstate(all="ignore"):
                for found, wanted in zip(tw.linalg.slogdet(S), (sign, log), strict=True):
                    near(found, wanted, dtype, f"{what}: slogdet", 1e3 * k)
                near(tw.linalg.det(S), np.linalg.det(s), dtype, f"{what}: det", 1e3 * k)
            for trans in (0, 1, 2):
                wanted = scipy.linalg.lu_solve((lapack, pivots), b, trans=trans)
                near(factor.solve(b, trans), wanted, dtype, f"{what}: solve {trans}", 1e3 * k)
                near(factor.solve(b[:, 0], trans), wanted[:, 0], dtype, f"{what}: solve {trans}", 1e3 * k)
            near(tw.linalg.solve(S, b), scipy.linalg.solve(s, b), dtype, f"{what}: solve", 1e3 * k)
            near(tw.linalg.solve(S.T, b), scipy.linalg.solve(s.T, b), dtype, f"{what}: solve", 1e3 * k)
            gecon = scipy.linalg.get_lapack_funcs("gecon", (s,))
            for p, name in ((1, "1"), (np.inf, "I")):
                wanted = 1 / gecon(lapack, np.linalg.norm(s, p), norm=name)[0]
                found, true = tw.linalg.cond(S, p), np.linalg.cond(s.astype("c16"), p)
                assert wanted / 3 <= found <= true * (1 + 1e3 * k * np.finfo(dtype).eps), (what, found, wanted, true)

        results_of(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_is_known_of_a_matrix(ranks, seed):
    rng = np.random.default_rng(seed)
    x, b = values(rng, (9, 9), "c16"), values(rng, (9, 2), "c16")
    definite = x @ x.conj().T + np.eye(9)

    def body(context):
        half = {True: np.tril(definite), False: np.triu(definite)}
        for lower in (False, True):
            wanted = scipy.linalg.solve(definite, b, assume_a="pos", lower=lower)
            for given in (half[lower], tw.linalg.matrix(half[lower], context=context)):
                found = tw.linalg.solve(given, b, lower, assume_a="pos", context=context)
                assert np.allclose(found, wanted), seed
                factor = tw.linalg.cholesky(given, lower, context=context)
                whole = factor.gather()
                assert whole is None or np.allclose(whole, np.linalg.cholesky(definite)), seed
                assert np.isclose(factor.logdet(), np.linalg.slogdet(definite)[1]), seed
        for name in ("lower triangular", "upper triangular"):
            wanted = scipy.linalg.solve_triangular(x, b, lower=name.startswith("lower"))
            assert np.allclose(tw.linalg.solve(x, b, assume_a=name, context=context), wanted), seed
        with pytest.raises(tw.linalg.SingularMatrix):
            tw.linalg.solve(np.ones((3, 3)), np.ones(3), context=context)
        assert tw.linalg.cond(np.ones((3, 3)), context=context) == np.inf
        assert tw.linalg.slogdet(np.ones((3, 3)), context=context) == (0, -np.inf)

    results_of(ranks, 1, body)


def deficient(rng, m, n, rank, dtype):
    return (values(rng, (m, rank), dtype) @ values(rng, (rank, n), dtype)).astype(dtype)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares_of_any_rank_and_scale(ranks, dtype, seed):
    rng = np.random.default_rng(seed)
    real = np.finfo(dtype)
    for _ in range(3):
        m, n, count = (int(x) for x in rng.integers(1, 15, 3))
        least = min(m, n)
        rank = int(rng.integers(0, least + 1))
        a = deficient(rng, m, n, rank, dtype)
        kind = str(rng.choice(["plain", "columns", "tiny", "denormal", "huge"]))
        scale = np.ones(n, real.dtype)
        if kind == "columns":  # of full rank, and of very different sizes: exact powers of 2
            a, rank = values(rng, (m, n), dtype), least
            scale[::2] = 2.0 ** (-40 if real.dtype == "f8" else -12)
        size = {"tiny": real.tiny * 16, "denormal": real.tiny / 1024, "huge": real.max / 1e5}.get(kind, 1)
        a = (a * real.dtype.type(size)).astype(dtype)
        b = values(rng, (m, count), dtype)
        if kind in ("tiny", "denormal"):
            b = (b * real.dtype.type(size)).astype(dtype)
        how = [layout(rng, ranks) for _ in range(2)]
        what = f"seed {seed}, ranks {ranks}, {(m, n, count)}, rank {rank}, {dtype}, {kind}, {how}"

        def body(context):
            A, B = (tw.linalg.matrix(x, context=context, **h) for x, h in zip((a * scale, b), how, strict=True))
            x = tw.linalg.lstsq(A, B)
            found, rank_found = x.gather(), x.rank
            with np.errstate(all="ignore"):
                best, residues, rank_wanted, s = scipy.linalg.lstsq(a, b, real.eps * max(m, n))
            # Not where a singular value lies near what counts as 0.
            limit = real.eps * max(m, n) * s.max(initial=0)
            if kind == "denormal" or np.any((s > limit / 100) & (s < limit * 100)):
                return
            assert rank_found == rank_wanted, what
            assert x.residues.shape == residues.shape, what
            kept = s[:rank_wanted]
            condition = kept.max(initial=1) / kept.min(initial=kept.max(initial=1))
            if found is not None and (m >= n or kind != "columns"):  # of wide ones the least x is another one
                found = found * scale[:, None]
                near(found, best, dtype, what, 1e3 * float(condition) * max(1, float(condition) * 1e-3))
                wanted = np.sum(np.abs(residues)) if residues.size else 0
                assert np.abs(x.residues - residues).max(initial=0) <= 1e3 * real.eps * max(m * count, wanted), what

        results_of(ranks, 1, body)


def test_columns_of_1e_12_are_solved_and_denormals_are_scaled():
    rng = np.random.default_rng(3)
    a, x = rng.standard_normal((40, 20)), rng.standard_normal(20)
    a[:, ::3] *= 1e-12
    found, _, rank, _ = tw.linalg.lstsq(a, a @ x)
    assert rank == 20 and np.allclose(a @ found, a @ x, rtol=1e-12)
    found, _, rank, _ = tw.linalg.lstsq(a[:, 1::3] * 1e-310, a[:, 1] * 1e-310)
    assert rank == 7 and np.allclose(found, np.eye(7)[0], atol=1e-10)
    assert np.isnan(tw.linalg.lstsq(np.full((3, 2), np.nan), np.ones(3))[0]).all()


def test_what_is_not_there():
    for name in ("eig", "eigh", "eigvals", "svd"):
        with pytest.raises(AttributeError, match=f"{name} is not there; allowed: no eigenvalues or singular values"):
            getattr(tw.linalg, name)
        assert not hasattr(tw.linalg, name)
    with pytest.raises(AttributeError, match=r"lu_factor is not there; allowed: F = tilewave.linalg.lu\(A\)"):
        _ = tw.linalg.lu_factor
    refused_on_all(2, lambda c: tw.linalg.norm(tw.linalg.matrix((3, 3), context=c), 2), "singular values are not")
    refused_on_all(2, lambda c: tw.linalg.cond(tw.linalg.matrix((3, 3), context=c), 2), "singular values are not")
    A = tw.linalg.matrix((3, 3))
    for call, text in (
        (lambda: np.exp(A), "numpy.exp: a matrix lies on all ranks"),
        (lambda: np.linalg.eigvals(A), "no eigenvalues"),
        (lambda: np.linalg.norm(A), "allowed: tilewave.linalg.norm"),
        (lambda: np.dot(A, A), "allowed: A @ B"),
        (lambda: np.trace(A), r"allowed: its method trace\(\)"),
        (lambda: np.asarray(A), r"allowed: A.local, this rank's part, and A.gather\(\)"),
    ):
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(AttributeError, match="numpy.ndarray.dot: a matrix lies on all ranks .* allowed: A @ B"):
        _ = A.dot
    with pytest.raises(TypeError, match="comparing matrices"):
        _ = A == A.copy()


@pytest.mark.parametrize("ranks", [1, 3])
def test_matrices_of_integers_and_fields_and_copies(ranks):
    a = np.arange(42).reshape(6, 7) % 11

    def body(context):
        for given in (a, a > 4, a.astype(">f8"), tw.field(a, context=context), a.astype("f4")):
            A = tw.linalg.matrix(given, context=context)
            B = A.copy()
            A += 1
            wanted = given.astype(B.dtype) if isinstance(given, np.ndarray) else a
            assert B.dtype == ("f4" if given.dtype == "f4" else "f8") and B.ndim == 2
            for matrix, elements in ((B, wanted), (A, wanted + 1)):
                gathered = matrix.gather()
                assert gathered is None or np.array_equal(gathered, elements)

    results_of(ranks, 1, body)
