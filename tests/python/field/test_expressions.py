"""Fields like arrays: random expressions, reductions and assignments, bit for bit as NumPy has them, on any ranks."""

import math
import operator

import numpy as np
import pytest
import tilewave as tw
from local_ranks import refused_on_all, results_of

DTYPES = ("float32", "float64", "complex64", "complex128", "int8", "int32", "int64", "uint8", "uint16", "uint64")
BINARY = (operator.add, operator.sub, operator.mul, operator.truediv)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def values(rng, shape, dtype):
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, shape).astype(dtype)
    found = rng.standard_normal(shape) * 3
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.standard_normal(shape)
    return np.where(rng.random(shape) < 0.05, 0, found).astype(dtype)


class Both:
    """An expression of fields, and the same one of NumPy's arrays."""

    def __init__(self, make, text, dtype):
        self.make, self.text, self.dtype = make, text, np.dtype(dtype)


def drawn(rng, leaves, depth):
    """A random expression: a function of the operands by name, which both fields and arrays are given."""
    if depth == 0 or rng.random() < 0.15:
        name = str(rng.choice(list(leaves)))
        return Both(lambda of: of[name], name, leaves[name].dtype)
    kind = rng.choice(["binary", "binary", "binary", "scalar", "unary", "where", "int"])
    one = drawn(rng, leaves, depth - 1)
    if kind == "unary":
        if one.dtype.kind == "b":
            return Both(lambda of: ~one.make(of), f"~{one.text}", "?")
        function = [operator.neg, lambda x: x * x, abs][rng.integers(2 if one.dtype.kind == "c" else 3)]
        return Both(lambda of: function(one.make(of)), f"f({one.text})", function(np.ones(1, one.dtype)).dtype)
    if one.dtype.kind == "b":
        return one
    if kind == "scalar":
        scalar = [2, 0.5, np.float64(1.5), np.float32(2.5), np.int8(3)][rng.integers(5)]
        f = BINARY[rng.integers(3)]
        dtype = f(np.ones(1, one.dtype), scalar).dtype
        if rng.random() < 0.5:
            return Both(lambda of: f(one.make(of), scalar), f"{f.__name__}({one.text}, {scalar!r})", dtype)
        return Both(lambda of: f(scalar, one.make(of)), f"{f.__name__}({scalar!r}, {one.text})", dtype)
    other = drawn(rng, leaves, depth - 1)
    if other.dtype.kind == "b":
        return one
    if kind == "where" and "c" not in one.dtype.kind + other.dtype.kind:
        f = COMPARISONS[rng.integers(6)]

        def chosen(of):
            a, b = one.make(of), other.make(of)
            return (np.where if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) else tw.where)(f(a, b), a, b)

        return Both(chosen, f"where({one.text} {f.__name__} {other.text})", np.result_type(one.dtype, other.dtype))
    f = BINARY[rng.integers(len(BINARY) if kind == "binary" else 3)]
    dtype = f(np.ones(1, one.dtype), np.ones(1, other.dtype)).dtype
    return Both(lambda of: f(one.make(of), other.make(of)), f"{f.__name__}({one.text}, {other.text})", dtype)


def same(found, wanted, what):
    if found is not None:
        assert found.dtype == wanted.dtype and found.shape == wanted.shape, (what, found.dtype, wanted.dtype)
        if found.dtype.kind == "c":  # NumPy's loops over arrays may fuse products, those over elements do not
            limit = 1e-4 * max(1.0, np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
            assert np.allclose(found, wanted, 1e-4, limit, True), (what, found, wanted)
        else:
            assert np.array_equal(found, wanted, equal_nan=found.dtype.kind == "f"), (what, found, wanted)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_expressions_are_numpys(ranks, seed):
    rng = np.random.default_rng(seed)
    for _ in range(2):
        ndim = int(rng.integers(1, 4))
        shape = tuple(int(n) for n in rng.integers(1, 8, ndim))
        arrays = {name: values(rng, shape, rng.choice(DTYPES)) for name in "uvw"}
        arrays["r"] = values(rng, shape[-1:], rng.choice(DTYPES))
        both = drawn(rng, arrays, 3)
        what = f"seed {seed}, ranks {ranks}, {shape}, { {k: str(v.dtype) for k, v in arrays.items()} }, {both.text}"
        with np.errstate(all="ignore"):
            wanted = both.make(arrays) + np.zeros(shape, "i1")
            other = both.make(arrays) * arrays["v"]

        def body(context):
            of = {name: tw.field(x, context=context) for name, x in arrays.items()}
            found = both.make(of)
            same((found + tw.field(shape, "i1", context=context)).copy().gather(), wanted, what)
            out = tw.field(shape, wanted.dtype, context=context)
            out[...] = found
            same(out.gather(), wanted, what)
            if np.can_cast(other.dtype, out.dtype, "same_kind") and out.dtype.kind == other.dtype.kind:
                before = out.gather()
                out -= both.make(of) * of["v"]
                found = out.gather()
                if before is not None:
                    with np.errstate(all="ignore"):
                        before -= other
                    same(found, before, what)

        results_of(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_reductions_are_numpys_and_sums_are_exact(ranks, seed):
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 5))
    shape = tuple(int(n) for n in rng.integers(1, 7, ndim))
    a = values(rng, shape, rng.choice(DTYPES[:2] + DTYPES[4:]))
    if a.dtype.kind == "f" and rng.random() < 0.3:
        a[rng.random(shape) < 0.1] = np.nan
    several = tuple(int(k) for k in rng.permutation(ndim)[: rng.integers(1, ndim + 1)])
    axes = [None, int(rng.integers(-ndim, ndim)), several]
    what = f"seed {seed}, ranks {ranks}, {shape}, {a.dtype}"

    def exact(x, axis):
        rest = [x.shape[k] for k in range(ndim) if k not in axis]
        flat = np.moveaxis(x.astype("f8"), axis, range(len(axis))).reshape(-1, math.prod(rest)).T
        return np.array([math.fsum(row) for row in flat]).reshape(rest)

    def body(context):
        u = tw.field(a, context=context)
        for given, x in ((u, a), (u * np.int8(2), a * np.int8(2))):
            for axis in axes:
                for kind in ("sum", "mean", "min", "max", "any", "all", "argmin", "argmax"):
                    if kind.startswith("arg") and isinstance(axis, tuple):
                        continue
                    found, which = getattr(given, kind)(axis), f"{what}: {kind} {axis}"
                    found = found.gather() if isinstance(found, tw.Field) else np.asarray(found)
                    along = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis % ndim,)
                    if kind in ("sum", "mean") and (x.dtype.kind == "f" or kind == "mean"):
                        wanted = exact(x, along) / (math.prod(shape[k] for k in along) if kind == "mean" else 1)
                    elif kind.startswith("arg") and axis is None:
                        wanted = np.array(np.unravel_index(getattr(x, kind)(), shape))
                    else:
                        wanted = np.asarray(getattr(x, kind)(axis))
                    if found is not None:
                        assert np.array_equal(found, wanted, equal_nan=True), (which, found, wanted)

    results_of(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 3])
def test_sums_along_axes_of_complex_and_huge_numbers(ranks):
    z = values(np.random.default_rng(1), (5, 6), "c16")
    huge = np.array([[1e308, 1.0], [1e300, 1e-20], [1.0, np.inf], [-1e300, -1.0]])

    def body(context):
        u, v = tw.field(z, context=context), tw.field(huge, context=context)
        found, sums = u.sum(0).gather(), v.sum(0).gather()
        if found is not None:
            assert np.allclose(found, z.sum(0), rtol=1e-15) and list(sums) == [math.fsum(huge[:, 0]), np.inf]
        assert u.mean() == u.sum() / 30 and np.isclose(u.sum(), z.sum())

    results_of(ranks, 1, body)


def test_an_expression_is_one_nest(monkeypatch):
    from tilewave.nests.doors import expressions

    ran = []
    monkeypatch.setattr(expressions, "run", lambda nest, **given: ran.append(nest.name) or tw.run(nest, **given))
    u, v = tw.field((4, 5), init=1.0), tw.field((4, 5), init=2.0)
    u[...] = 2 * u + tw.where(v > 1, v, 0) * np.sqrt(v)
    u += 1
    assert (abs(u) * v).sum() > 0 and ran == ["assign", "assign", "sum"]
    u.max(axis=1)
    assert ran == ["assign", "assign", "sum", "max"]


def test_expressions_have_no_values():
    u, v = tw.field((3, 4), init=1.0), tw.field((3, 4))
    e = u + 1
    kept = e.copy()
    u += 1
    with pytest.raises(tw.ConfigError, match="has been changed since it was written"):
        v[...] = e
    assert kept[0, 0] == 2
    assert repr(e) == "<tilewave expression (3, 4) float64>"
    e = v * 2
    e += 1
    assert isinstance(e, type(v * 2)) and v.max() == 0
    for wrong, text in (
        (lambda: v + tw.field((4, 3)), "broadcast"),
        (lambda: v + tw.field((3, 1)), "allowed: fields of one shape"),
        (lambda: v + "x", "str was given with a field"),
        (lambda: v.__setitem__(0, u + 1), "was given for a part of a field"),
        (lambda: v.__setitem__(..., tw.field((2, 3, 4)) + 1), "allowed: of its shape"),
        (lambda: tw.field((3,), "i4").__iadd__(0.5), r"allowed: u = \(u \+ x\).copy"),
        (lambda: v.__setitem__(..., v * 1j), "complex128 was given for a field of float64"),
        (lambda: v.sum(2), "allowed: -2 to 1"),
        (lambda: v.sum((0, -2)), "each axis once"),
        (lambda: v.argmax((0, 1)), "allowed: -2 to 1"),
        (lambda: tw.field((0, 3)).max(0), "no elements"),
        (lambda: (tw.field((0, 3)) + 1).max(), "has no elements"),
        (lambda: v[v > 0], "tilewave.where"),
        (lambda: tw.where(True, 1, 2), "no field was given"),
    ):
        with pytest.raises(tw.ConfigError, match=text):
            wrong()
    for wrong, text in (
        (lambda: np.fft.fft(v), "numpy.fft.fft: a field lies on all ranks"),
        (lambda: np.dot(u, v), r"allowed: tilewave.dot\(u, v\)"),
        (lambda: np.cumsum(v), "allowed: a nest"),
        (lambda: np.argmin(v), r"its method argmin\(\)"),
        (lambda: np.sum(v, keepdims=True), r"its method sum\(\)"),
        (lambda: np.round(v, 1), r"np.round\(u \* 10\)"),
        (lambda: np.frexp(v), "numpy.frexp"),
        (lambda: np.add.reduce(v), "numpy.add.reduce"),
        (lambda: np.asarray(v + 1), "numpy.asarray"),
        (lambda: bool(v > 0), r"\.any\(\)"),
        (lambda: (v + 1)[0], r"\.copy\(\)"),
    ):
        with pytest.raises(TypeError, match=text):
            wrong()
    for name, way in (("T", r"v\[j, i\]"), ("std", "np.sqrt"), ("reshape", r"field.gather\(\)")):
        with pytest.raises(AttributeError, match=f"numpy.ndarray.{name}: .* allowed: .*{way}"):
            getattr(v, name)
    assert not hasattr(v, "no_such_thing")
    refused_on_all(2, lambda c: tw.field((4,), context=c) + tw.field((5,), context=c), "broadcast")
    assert (tw.field((0, 3)) + 1).sum() == 0 and not (tw.field((0, 3)) > 1).any() and (tw.field((0, 3)) > 1).all()


@pytest.mark.parametrize("ranks", [1, 2])
def test_numpys_functions_and_conversions(ranks, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 6, 5)) * 3
    flags = rng.random((6, 5)) < rng.choice([0, 0.5, 1])

    def body(context):
        u, v, m = (tw.field(x, context=context) for x in (a, b, flags))
        for found, wanted in (
            (np.where(m, u, v), np.where(flags, a, b)),
            (np.where(m, u, 0) + 1, np.where(flags, a, 0) + 1),
            (np.clip(u, -1, v), np.clip(a, -1, b)),
            (u.astype("i4"), a.astype("i4")),
            ((u * v).astype(np.float32), (a * b).astype("f4")),
        ):
            gathered = found.gather()
            assert gathered is None or np.array_equal(gathered, wanted) and gathered.dtype == wanted.dtype
        assert np.max(u) == a.max() and np.amin(u + v) == (a + b).min() and np.any(m) == m.any() == flags.any()
        assert m.all() == flags.all() and np.all(m | ~m) and np.sum(u) == math.fsum(a.flat)
        assert np.array_equal(np.max(u, axis=0)[...], a.max(0)) and np.array_equal(m.any(1)[...], flags.any(1))

    results_of(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 3])
def test_planes_are_saved(ranks, tmp_path):
    a = np.random.default_rng(2).standard_normal((5, 6, 7)).astype("f4")

    def body(context):
        u = tw.field(a, context=context)
        plane = u[..., 3]
        u += 1
        plane.save(tmp_path / "plane.npy")
        plane[1:].save(tmp_path / "plane.zarr")
        assert repr(plane) == repr(a[..., 3])
        loaded = tw.load(tmp_path / "plane.zarr", context=context).gather()
        assert loaded is None or np.array_equal(loaded, a[1:, :, 3])

    results_of(ranks, 1, body)
    assert np.array_equal(np.load(tmp_path / "plane.npy"), a[..., 3])


@pytest.mark.parametrize("ranks", [1, 2])
def test_functions_of_fields_take_formulas(ranks, seed):
    a, b = np.random.default_rng(seed).integers(-9, 9, (2, 5, 4)).astype("f8")

    def body(context):
        u, v = (tw.field(x, context=context) for x in (a, b))
        assert tw.max(u - v) == (a - b).max() and tw.min(array=u - v) == (a - b).min()
        assert tw.sum(u * v) == (a * b).sum() == tw.dot(u, v + 0) and tw.norm(u - v, ord=1) == abs(a - b).sum()
        assert tw.argmax(u - v) == np.unravel_index((a - b).argmax(), a.shape)
        with pytest.raises(tw.ConfigError, match="max: given int; allowed: .* a formula of fields"):
            tw.max(3)

    results_of(ranks, 1, body)
