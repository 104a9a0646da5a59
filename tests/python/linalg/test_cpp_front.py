"""C++ programs and Python give the core one question: equal plans, and equal bits, of products and factors."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of
from matrices import DTYPES, layout, values
from tilewave import _core
from tilewave.linalg.blas import blas
from tilewave.linalg.plan import FactorPlan, MatmulPlan, options_of

pytestmark = pytest.mark.filterwarnings("ignore:.*more than the.*CPUs")
linalg = _core.linalg


def random_options(rng, kind):
    given = {}
    if rng.random() < 0.5:
        given["lookahead"] = int(rng.integers(0, 3))
    if rng.random() < 0.5:
        given["panel" if kind is MatmulPlan else "block"] = int(rng.integers(1, 9))
    return given


@pytest.mark.parametrize("seed", range(10))
def test_products_and_factors(seed):
    rng = np.random.default_rng(seed)
    ranks, dtype, n = int(rng.choice([1, 2, 3, 4, 6])), str(rng.choice(DTYPES)), int(rng.integers(1, 50))
    a, b = values(rng, (n, n), dtype) + n * np.eye(n, dtype=dtype), values(rng, (n, n), dtype)
    layouts = [layout(rng, ranks, 12) for _ in range(3)]
    product, factor = (random_options(rng, kind) for kind in (MatmulPlan, FactorPlan))

    def body(context):
        linalg.use_blas(blas().path)
        x, y, z = (
            tw.linalg.matrix(m, context=context, **given) for m, given in zip((a, b, b), layouts, strict=True)
        )
        python = tw.linalg.matmul(x, y, z, **product)
        whole, plan = python.gather(), str(python.report.plan).split(";")[0]
        done = linalg.cpp_multiply(x._storage, y._storage, z._storage, options_of("test", MatmulPlan, product, None))
        pairs = [((plan, whole), (str(done.plan), z.gather()))]
        for kind in ("lu", "qr"):
            made = getattr(tw.linalg, kind)(x, **factor)
            python_front = str(made.report.plan).split(";")[0], np.array(made.local)
            cpp = linalg.cpp_factor(kind, x._storage, options_of("test", FactorPlan, factor, None))
            pairs.append((python_front, (str(cpp.report.plan), cpp.matrix.array())))
        for (one, elements), (other, others) in pairs:
            assert one == other and (elements is None or np.array_equal(elements, others)), (one, other)

    results_of(ranks, 1, body)
