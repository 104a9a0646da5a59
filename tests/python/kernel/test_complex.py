"""Complex numbers in nests: equal plain loops, bit for bit (the sign and payload of a NaN aside)."""

import sys

import numpy as np
import pytest
from tests.python.support.local_ranks import results_of

import tilewave as tw


def same(found, expected):
    """Equal bits, part by part; all NaNs are equal."""
    part = np.dtype(f"f{found.itemsize // 2}") if found.dtype.kind == "c" else found.dtype
    a, b = (np.ascontiguousarray(x).view(part) for x in (found, expected))
    if part.kind != "f":
        return np.array_equal(a, b)
    return np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(
        np.where(np.isnan(a), 0, a).view(f"u{part.itemsize}"), np.where(np.isnan(b), 0, b).view(f"u{part.itemsize}")
    )


def numbers(rng, shape, dtype):
    """Of all sizes, with zeros of both signs, infinities and NaNs among them where the dtype has them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return rng.integers(-5, 6, shape).astype(dtype)
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e30, 1e-30, 0.5])

    def floats():
        usual = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
        return np.where(rng.random(shape) < 0.15, rng.choice(special, shape), usual)

    if dtype.kind == "f":
        return floats().astype(dtype)
    result = np.empty(shape, dtype)
    result.real, result.imag = floats(), floats()
    return result


EXPRESSIONS = [
    "a + b", "a - b", "a * b", "a / b", "-a + np.conj(b)", "a * 2 - b / 4", "a * 0.1 + 3", "2.5 / a",
    "1j * a - b * (1 - 2j)", "a / (2 + 1j)", "r * a + b", "a / r", "k * a", "a.real + 1j * b.imag",
    "np.real(a) * np.imag(b)", "abs(a) - np.abs(b)", "np.exp(a)", "np.sqrt(a) + np.sqrt(b)", "np.log(a)",
    "np.sin(a)", "np.square(a)", "np.where(abs(a) > 1, a, b)", "np.where(r > 0, a, 2.0)",
    "a if a == b or abs(a) < 1 else b", "b if a else a * 2", "np.complex64(a) * b", "np.complex128(r) + a",
    "complex(r, 2) * a", "i * a + j * 1j", "c * a + s", "np.isnan(a) + np.isinf(b) * 2.0 + np.isfinite(a) * a",
    "np.power(a, b)", "OUTSIDE * a + OUTSIDE.real",
]
if sys.version_info < (3, 14):  # which divides complex by real numbers otherwise
    EXPRESSIONS += ["complex(k, r) / complex(r, abs(int(k)) + 1)", "complex(r, k) / complex(abs(int(k)) + 1, r)"]


TOGETHER = 11  # expressions of one nest


@pytest.mark.parametrize("dtypes", ["c8 c8", "c16 c16", "c8 c16", "c16 c8"])
@pytest.mark.parametrize("first", range(0, len(EXPRESSIONS), TOGETHER))
def test_expressions(first, dtypes):
    one, two = dtypes.split()
    some = EXPRESSIONS[first : first + TOGETHER]
    results = [f"X{k}" for k in range(len(some))]
    lines = [f"    {name}[i, j] = {expression}" for name, expression in zip(results, some, strict=True)]
    text = "\n".join(
        [
            f"def body({', '.join(results)}, A, B, R, K, i, j, *, c=1.5 - 0.5j, s=np.complex64(0.25 + 3j)):",
            "    a, b, r, k = A[i, j], B[i, j], R[i, j], K[i, j]",
            *lines,
        ]
    )
    nest = tw.nest_from(text, {"OUTSIDE": 0.75 - 2j})
    rng = np.random.default_rng(first)
    shape = (3, 37)
    arrays = {name: np.zeros(shape, one) for name in results}
    arrays |= {"A": numbers(rng, shape, one), "B": numbers(rng, shape, two)}
    arrays |= {"R": numbers(rng, shape, rng.choice(["f4", "f8"])), "K": numbers(rng, shape, "i4")}
    expected = {name: array.copy() for name, array in arrays.items()}
    nest.reference(nest.iteration_box({name: array.shape for name, array in arrays.items()}), expected)
    tw.run(nest, **arrays, plan={"threads": 1})
    for name, expression in zip(results, some, strict=True):
        assert same(arrays[name], expected[name]), expression


@tw.nest
def sweep(A, B, i, j):
    A[i, j] = (A[i - 1, j] * B[i, j] + A[i, j - 1]) / (B[i, j] + 2 - 1j)


@tw.nest
def waves(u, t, i, j, *, k=0.25j):
    u[t + 1, i, j] = u[t, i, j] + k * (u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1])


@pytest.mark.parametrize("ranks, threads", [(1, 2), (2, 1), (3, 1), (4, 1), (6, 1)])
def test_fields(ranks, threads, tmp_path):
    rng = np.random.default_rng(5)
    for dtype in ("c8", "c16"):
        shape = (13, 21)
        A, B = ((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype) for _ in "AB")
        swept = {"A": A.copy(), "B": B}
        sweep.reference(sweep.iteration_box(dict.fromkeys("AB", shape)), swept)
        waved = A.copy()
        for _ in range(4):
            before = waved.copy()
            times = np.array([before, before])
            waves.reference(((0, 1), (1, shape[0] - 1), (1, shape[1] - 1)), {"u": times})
            waved = times[1]

        def body(context):
            a, b = tw.field(shape, dtype, A, context=context), tw.field(B, context=context)
            u = a.copy()
            tw.run(sweep, A=a, B=b, plan={"threads": threads})
            tw.run(waves, u=u, steps=4, plan={"threads": threads})
            a.save(tmp_path / f"{dtype}.npy")
            c = tw.load(tmp_path / f"{dtype}.npy", context=context)
            c[2, 3:5] = 7j
            middle = c[2, 3:6]
            d = tw.field(shape, dtype, lambda i, j: i + 1j * j, context=context)
            found = tw.sum(d), tw.norm(d), tw.norm(d, np.inf), tw.norm(d, 1), tw.dot(d, d)
            return a.gather(), u.gather(), middle, found

        found = results_of(ranks, threads, body)
        assert same(found[0][0], swept["A"]) and same(found[0][1], waved)
        assert all(same(middle, np.array([7j, 7j, swept["A"][2, 5]], dtype)) for _, _, middle, _ in found)
        whole = np.add.outer(np.arange(13), 1j * np.arange(21))
        wanted = whole.sum(), np.linalg.norm(whole), abs(whole).max(), abs(whole).sum(), (whole * whole).sum()
        assert all(np.allclose(numbers_, wanted, rtol=1e-14) for *_, numbers_ in found)
        assert all(numbers_ == found[0][3] for *_, numbers_ in found)


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (3, 1)])
def test_rolling_windows(ranks, threads):
    table = tw.nest_from(
        "def table(H, x, y, i, j):\n    H[i, j] = H[i-1, j-1] * x[i] + H[i-1, j] * 0.5 - y[j] * H[i, j-1]\n"
    )
    rng = np.random.default_rng(6)
    x, y = (rng.standard_normal(40) + 1j * rng.standard_normal(40) for _ in "xy")
    whole = np.full((40, 40), 1 - 1j)
    table.reference(((1, 40), (1, 40)), {"H": whole, "x": x, "y": y})

    def body(context):
        H = tw.field((40, 40), "c16", 1 - 1j, keep="window", context=context)
        return tw.run(
            table, H=H, x=x, y=y, plan={"threads": threads}, context=context, reduce={"most": tw.max("abs(H)")}
        ).results

    found = results_of(ranks, threads, body)
    assert all(results["most"] == max(abs(z) for z in whole[1:, 1:].flat) for results in found)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_reductions_of_a_run(ranks, dtype):
    nest = tw.nest_from("def body(X, A, i, j):\n    d = A[i, j] * 2\n    X[i, j] = d - 1j\n")
    A = (np.random.default_rng(9).integers(-9, 9, (2, 7, 12)) * [[[1]], [[1j]]]).sum(axis=0).astype(dtype)
    reduce = {"s": tw.sum("X"), "d": tw.sum("d"), "n": tw.norm("d"), "one": tw.norm("d", 1), "p": tw.dot("d", "A")}
    reduce |= {"most": tw.norm("d", np.inf), "real": tw.max("d.real"), "at": tw.argmax("abs(d)")}

    def body(context):
        X, a = tw.field(A.shape, dtype, context=context), tw.field(A, context=context)
        return tw.run(nest, X=X, A=a, reduce=reduce).results

    found = results_of(ranks, 1, body)
    wide = A.astype("c16")
    wanted = {"s": (2 * wide - 1j).sum(), "d": 2 * wide.sum(), "n": np.linalg.norm(2 * wide)}
    wanted |= {"one": abs(2 * wide).sum(), "p": (2 * wide * wide).sum(), "most": abs(2 * wide).max()}
    for results in found:
        assert all(np.isclose(results[name], value, rtol=1e-14) for name, value in wanted.items())
        assert results["real"] == (2 * A).real.max() and results["s"].dtype == np.dtype("c16")
        assert results["at"] == np.unravel_index(abs(A).argmax(), A.shape)


@pytest.mark.parametrize(
    "expression, wanted",
    [
        ("a < b", "compare abs"), ("a ** 2", "np.power"), ("a // b", "//"), ("max(a, b)", "compare abs"),
        ("float(a)", "take z.real"), ("math.sqrt(a)", "take z.real"), ("np.arctan2(a, b)", "arctan2"),
    ],
)
def test_refused(expression, wanted):
    nest = tw.nest_from(f"def body(X, A, B, i):\n    a, b = A[i], B[i]\n    X[i] = {expression}\n")
    with pytest.raises(tw.ConfigError, match=wanted):
        tw.run(nest, X=np.zeros(4, "c16"), A=np.ones(4, "c16"), B=np.ones(4, "c16"))


def test_refused_in_real_arrays():
    nest = tw.nest_from("def body(X, A, i):\n    X[i] = A[i] + 1\n")
    with pytest.raises(tw.ConfigError, match=r"a complex number as float64 \(take z.real"):
        tw.run(nest, X=np.zeros(4), A=np.ones(4, "c16"))
    with pytest.raises(tw.ConfigError, match="its values are complex"):
        tw.run(nest, X=np.zeros(4, "c8"), A=np.ones(4, "c16"), reduce={"s": tw.max("A")})
    with pytest.raises(tw.ConfigError, match="have no order"):
        tw.max(tw.field((3,), "c16"))
