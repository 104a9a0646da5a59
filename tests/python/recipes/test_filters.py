"""Filters and recurrences, against plain loops and SciPy."""

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of

import tilewave as tw
from tilewave import recipes

signal = pytest.importorskip("scipy.signal")
linalg = pytest.importorskip("scipy.linalg")


def some_shape(rng):
    dims = int(rng.integers(1, 4))
    return tuple(int(n) for n in rng.integers(1, (60, 12, 7)[dims - 1], dims)), int(rng.integers(-dims, dims))


def on_all(ranks, call, *arrays):
    """The result of a recipe, the same on every rank, of arrays and of fields."""

    def body(context):
        found = call(*arrays, context=context)
        fields = [tw.field(each, context=context) for each in arrays]
        return found, call(*fields, context=context)[...]

    found = results_of(ranks, 2, body)
    for of_arrays, of_fields in found:
        assert of_arrays.tobytes() == of_fields.tobytes() == found[0][0].tobytes()
        assert type(of_arrays) is np.ndarray
    return found[0][0]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_filters_are_those_of_scipy(ranks, seed):
    rng = np.random.default_rng(seed)
    for dtype in ("f8", "f4"):
        shape, axis = some_shape(rng)
        x = rng.standard_normal(shape).astype(dtype)
        order = int(rng.integers(1, 5))
        b, a = (each.astype(dtype) for each in signal.butter(order, 0.3))
        a *= dtype == "f8" and 2.0 or 1.0
        sos = signal.butter(order, 0.3, output="sos").astype(dtype)
        what = f"seed {seed}, {dtype}, {shape}, axis {axis}, order {order}"
        eps = np.finfo(dtype).eps
        found = on_all(ranks, lambda x, context: recipes.lfilter(b, a, x, axis, context=context), x)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, signal.lfilter(b, a, x, axis), 50 * eps, 50 * eps, err_msg=what)
        found = on_all(ranks, lambda x, context: recipes.sosfilt(sos, x, axis, context=context), x)
        np.testing.assert_allclose(found, signal.sosfilt(sos, x, axis), 50 * eps, 50 * eps, err_msg=what)


def test_filters_without_feedback_or_order():
    x = np.arange(7)
    np.testing.assert_allclose(recipes.lfilter([1, 2, 3], [2.0], x), signal.lfilter([1, 2, 3], [2.0], x))
    np.testing.assert_allclose(recipes.lfilter([3.0], [2.0], x), 1.5 * x)
    np.testing.assert_allclose(recipes.lfilter([1.0], [1, -0.5, 0.25], x), signal.lfilter([1.0], [1, -0.5, 0.25], x))
    assert recipes.lfilter([1.0], [1.0, 0.5], np.zeros((0, 3))).shape == (0, 3)


def plain_ema(x, alpha):
    y = x.copy()
    for t in range(1, len(x)):
        y[t] = (1 - alpha) * y[t-1] + alpha * x[t]
    return y


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_exponential_means(ranks, seed):
    rng = np.random.default_rng(seed)
    shape, axis = some_shape(rng)
    x, alpha = rng.random(shape), float(rng.random())
    found = on_all(ranks, lambda x, context: recipes.ema(x, alpha, axis=axis, context=context), x)
    assert np.array_equal(found, np.apply_along_axis(plain_ema, axis, x, alpha)), (seed, shape, axis)

    x, groups = rng.random(40), rng.integers(0, 4, 40)
    for labels in (groups, groups.astype("U1")):
        found = on_all(ranks, lambda x, context: recipes.ema(x, alpha, labels, context=context), x)
        for group in np.unique(groups):
            assert np.array_equal(found[groups == group], plain_ema(x[groups == group], alpha)), seed


def plain_thomas(lower, diagonal, upper, rhs):
    c, x = np.zeros_like(rhs), np.zeros_like(rhs)
    for i in range(len(rhs)):
        pivot = diagonal[i] - lower[i] * (c[i-1] if i else 0.0)
        c[i] = upper[i] / pivot
        x[i] = (rhs[i] - lower[i] * (x[i-1] if i else 0.0)) / pivot
    for i in range(len(rhs) - 2, -1, -1):
        x[i] = x[i] - c[i] * x[i+1]
    return x


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_tridiagonal_columns(ranks, seed):
    rng = np.random.default_rng(seed)
    shape, _ = some_shape(rng)
    n, dims = shape[0], len(shape)
    rhs = rng.random(shape)
    diagonals = [rng.random(shape if rng.integers(2) else shape[:1]) + shift for shift in (0, 3, 0)]
    whole = [np.broadcast_to(d.reshape(d.shape + (1,) * (dims - d.ndim)), shape) for d in diagonals]
    found = on_all(ranks, recipes.tridiagonal, *diagonals, rhs)
    assert np.array_equal(found, plain_thomas(*whole, rhs)), (seed, shape)
    columns = [each.reshape(n, -1)[:, 0] for each in whole]
    banded = np.array([np.r_[0, columns[2][:-1]], columns[1], np.r_[columns[0][1:], 0]])
    wanted = linalg.solve_banded((1, 1), banded, rhs.reshape(n, -1)[:, 0]) if n > 1 else rhs.ravel()[:1] / columns[1]
    np.testing.assert_allclose(found.reshape(n, -1)[:, 0], wanted, 1e-12)


def test_what_filters_refuse():
    def refused(text, call):
        with pytest.raises(tw.ConfigError, match=text):
            call()

    refused("lfilter: axis: given 1", lambda: recipes.lfilter([1.0], [1.0], [1.0], 1))
    refused("lfilter: a: given 0", lambda: recipes.lfilter([1.0], [0.0, 1.0], [1.0]))
    refused("lfilter: b: given .*allowed: 1 to 32", lambda: recipes.lfilter(np.ones(40), [1.0], [1.0]))
    refused("lfilter: x: given elements of complex128", lambda: recipes.lfilter([1.0], [1.0], [1j]))
    refused(r"sosfilt: sos: .*rows of 6", lambda: recipes.sosfilt(np.ones((2, 5)), [1.0]))
    refused(r"sosfilt: sos: .*sos\[:, 3\]; allowed: 1", lambda: recipes.sosfilt(np.zeros((2, 6)), [1.0]))
    refused("ema: alpha: given 1.5", lambda: recipes.ema([1.0], 1.5))
    refused("ema: groups: given shape", lambda: recipes.ema([1.0, 2.0], 0.5, [1]))
    refused("tridiagonal: lower: given shape", lambda: recipes.tridiagonal([1.0], [1.0] * 2, [1.0] * 2, [1.0] * 2))
    refused("allowed: a NumPy array of finite numbers", lambda: recipes.lfilter([np.nan], [1.0], [1.0]))
    x = np.arange(4.0)
    for of_ranks in (
        lambda x, context: recipes.ema(x, 0.5, context=context),
        lambda x, context: recipes.ema(x, 0.5, [0, 1, 0, 1], context=context),
        lambda x, context: recipes.lfilter([1.0], [1.0, 0.5], x, context=context),
        lambda x, context: recipes.tridiagonal(x, x + 5, x, x, context=context),
    ):
        refused_on_all(2, lambda context: of_ranks(x + context.rank, context), "")
    refused_on_all(2, lambda context: recipes.ema(x, 0.5 if context.rank else 2.0, context=context), "alpha: given 2.0")


def test_means_of_nothing():
    assert recipes.ema(np.zeros((0, 3)), 0.5).shape == recipes.ema(np.zeros((0, 3)), 0.5, axis=0).shape == (0, 3)
    assert recipes.ema([], 0.5, []).shape == (0,)
