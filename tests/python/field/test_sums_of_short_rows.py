"""Sums, norms and products of fields of any shape against `math.fsum`, bit for bit, also where halos part the rows."""

import math
import os

import numpy as np
import pytest

import tilewave as tw
from local_ranks import results_of

SEED = int(os.environ.get("TILEWAVE_SEED", "20391"))


@tw.nest
def shifted(u, v, i, j):
    v[i, j] = u[i - 1, j] + u[i, j - 1]


def wide(rng, shape, dtype):
    """Of many magnitudes, with zeros and pairs that cancel."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-rng.integers(1, 60), 30, shape)
    x[rng.random(shape) < 0.1] = 0
    flat = x.reshape(-1)
    flat[: len(flat) // 3] = -flat[-(len(flat) // 3) :]
    return x.astype(dtype)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_are_exact(ranks, dtype):
    rng = np.random.default_rng([SEED, ranks])
    for shape in ((40, 16), (300, 3), (7, 130), (1, 900), (90, 1), (2, 2), (60, 62)):
        a, b = wide(rng, shape, dtype), wide(rng, shape, dtype)

        def body(context, a=a, b=b):
            u, v = tw.field(a, context=context), tw.field(b, context=context)
            if min(u.shape) > 2:
                tw.run(shifted, u=u, v=v.copy(), plan={"threads": 1})  # u has halos, and v has none
            return tw.sum(u), tw.norm(u), tw.norm(u, 1), tw.norm(u, np.inf), tw.dot(u, v), tw.dot(v, u), tw.max(u)

        x, y = a.astype("f8").reshape(-1), b.astype("f8").reshape(-1)
        product = math.fsum(x * y)
        wanted = (math.fsum(x), math.sqrt(math.fsum(x * x)), math.fsum(abs(x)), abs(x).max(), product, product, a.max())
        for found in results_of(ranks, 1, body):
            assert found == wanted, f"shape {shape}, seed {SEED}"


def test_what_is_no_number():
    for special, wanted in (([np.inf], np.inf), ([-np.inf], -np.inf), ([np.inf, -np.inf], np.nan), ([np.nan], np.nan)):
        for place in (0, 5, 130, 640):
            a = np.linspace(-1, 1, 700).reshape(100, 7)
            a.reshape(-1)[place : place + len(special)] = special
            np.testing.assert_equal(tw.sum(tw.field(a)), wanted)


@pytest.mark.parametrize("scale", [2.0**-1074, 2.0**-1060, 2.0**-1000, 2.0**1004])
def test_the_ends_of_the_range(scale):
    rng = np.random.default_rng(SEED)
    a = np.floor(rng.standard_normal((50, 21)) * 64) * scale
    assert tw.sum(tw.field(a)) == math.fsum(a.reshape(-1))
