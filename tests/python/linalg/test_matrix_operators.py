"""Matrices as people write them: operators, elements and parts, as NumPy has them, on any layout and ranks."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import refused_on_all, results_of
from matrices import DTYPES, close, layout, values


def same(found, wanted, what):
    """Bit for bit, and of one dtype; `found` is None except on rank 0."""
    if found is not None:
        assert found.dtype == wanted.dtype and found.shape == wanted.shape, (what, found.dtype, wanted.dtype)
        assert np.array_equal(found, wanted, equal_nan=True), what


def run_slice(rng, n):
    """A random slice of n elements, of any step."""
    low, high = sorted(rng.integers(-n - 2, n + 3, 2))
    step = int(rng.choice([1, 1, 1, 2, 3, -1, -2]))
    return slice(*((int(low), int(high)) if step > 0 else (int(high), int(low))), step)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_expressions_are_numpys(ranks, seed):
    rng = np.random.default_rng(seed)
    for _ in range(6):
        m, n = (int(x) for x in rng.integers(1, 14, 2))
        one, other = (str(x) for x in rng.choice(DTYPES, 2))
        a, b, c = values(rng, (m, n), one), values(rng, (m, n), other), values(rng, (n, m), other)
        row, column = values(rng, (n,), other), rng.integers(-5, 5, (m, 1))
        how = [layout(rng, ranks) for _ in range(3)]
        i, j = (int(rng.integers(-k, k)) for k in (m, n))
        rows, columns = run_slice(rng, m), run_slice(rng, n)
        offset = int(rng.integers(-m - 1, n + 2))
        what = f"seed {seed}, ranks {ranks}, {(m, n)}, {one} {other}, {how}, [{rows}, {columns}], {offset}"

        def body(context):
            A, B, C = (tw.linalg.matrix(x, context=context, **h) for x, h in zip((a, b, c), how, strict=True))
            whole = {
                "A + B": (A + B, a + b),
                "A - C.T": (A - C.T, a - c.T),
                "A.H + C": (A.H + C, a.conj().T + c),
                "2 * A": (2 * A, 2 * a),
                "-A": (-A, -a),
                "A / 2": (A / 2, a / 2),
                "A * 2j": (A * 2j, a * 2j),
                "np.float64(3) * A": (np.float64(3) * A, np.float64(3) * a),
                "row - A": (row - A, row - a),
                "A * column": (A * column, a * column),
                "A.H": (A.H, a.conj().T),
                "A.H.T": (A.H.T, a.conj()),
                "A[rows, columns]": (A[rows, columns], a[rows, columns]),
                "A.T[columns, rows]": (A.T[columns, rows], a.T[columns, rows]),
                "A.H[columns, rows]": (A.H[columns, rows], a.conj().T[columns, rows]),
            }
            for name, (found, wanted) in whole.items():
                same(found.gather(), wanted, f"{what}: {name}")
            arrays = {
                "A[i, j]": (A[i, j], a[i, j]),
                "A.H[j, i]": (A.H[j, i], a.conj().T[j, i]),
                "A[i]": (A[i], a[i]),
                "A[rows, j]": (A[rows, j], a[rows, j]),
                "A.T[j]": (A.T[j], a.T[j]),
                "diagonal": (A.diagonal(offset), np.diagonal(a, offset) if -m < offset < n else a[0, :0]),
                "diagonal of H": (A.H.diagonal(), a.conj().T.diagonal()),
            }
            for name, (found, wanted) in arrays.items():
                same(np.asarray(found), np.asarray(wanted), f"{what}: {name}")
            D = A.astype(one)
            D += A
            D -= 1
            D[rows, columns] = 7
            D[i] = np.arange(n)
            d = a.copy()
            d += a
            d -= 1
            d[rows, columns] = 7
            d[i] = np.arange(n)
            same(D.gather(), d, f"{what}: in place")
            assert close(np.asarray(A.trace()), np.asarray(a.trace()), one), what

        results_of(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_products_are_numpys(ranks, seed):
    rng = np.random.default_rng(seed)
    for _ in range(4):
        m, n, k = (int(x) for x in rng.integers(1, 14, 3))
        one, other = (str(x) for x in rng.choice(DTYPES, 2))
        a, b, t = values(rng, (m, n), one), values(rng, (n, k), other), values(rng, (k, n), other)
        x, left, ints = values(rng, (n,), other), values(rng, (k, m), other), rng.integers(-4, 5, (n, 2))
        how = [layout(rng, ranks) for _ in range(3)]
        what = f"seed {seed}, ranks {ranks}, {(m, n, k)}, {one} {other}, {how}"

        def body(context):
            A, B, T = (tw.linalg.matrix(v, context=context, **h) for v, h in zip((a, b, t), how, strict=True))
            narrow = min((np.dtype(d) for d in (one, other)), key=lambda d: np.finfo(d).precision)
            for found, wanted in (
                ((A @ B).gather(), a @ b),
                ((A @ T.T).gather(), a @ t.T),
                ((T.H.H @ A.H).gather(), t @ a.conj().T),
                (A @ x, a @ x),
                (A.H @ left.T, a.conj().T @ left.T),
                (A.T @ left.T, a.T @ left.T),
                (left @ A, left @ a),
                (x @ A.H, x @ a.conj().T),
                (left[0] @ A, left[0] @ a),
                (A @ ints, a @ ints),
                (A @ x.tolist(), a @ np.array(x.tolist())),
            ):
                if found is not None:
                    assert found.dtype == wanted.dtype and close(found, wanted, narrow), what

        results_of(ranks, 1, body)


def test_what_does_not_fit_is_refused_on_all_ranks():
    cases = [
        (lambda A: A + A[:, :1], "allowed: one shape"),
        (lambda A: A @ np.ones(5), "allowed: a vector of 4 elements"),
        (lambda A: A + "x", "given str with a matrix"),
        (lambda A: A + np.ones((2, 2)), "one that broadcasts to it"),
        (lambda A: A[9, 0], "index 9 is out of bounds"),
        (lambda A: A[[0, 1]], "list was given for dimension 0"),
        (lambda A: A + np.full(4, A.context.rank), "different"),
        (lambda A: A.__iadd__(1j), "allowed: A = A + x"),
        (lambda A: tw.linalg.lu(A).__imul__(2), "is no factor"),
        (lambda A: A + np.longdouble(1), "the result would have dtype"),
    ]
    for call, text in cases:
        refused_on_all(2, lambda context, call=call: call(tw.linalg.matrix((4, 4), context=context)), text)
