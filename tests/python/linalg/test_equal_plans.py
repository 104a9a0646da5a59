"""C++ and Python programs get equal plans, times, errors and bits of products and factors."""

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of
from matrices import DTYPES, values
from tilewave import _core
from tilewave.linalg.blas import blas

linalg, axis = _core.linalg, _core.linalg.Axis
CASES = 20


def random_layout(rng, ranks):
    """Keywords of `tilewave.linalg.matrix`."""
    name, blocks = str(rng.choice(["rows", "columns", "cyclic"])), [int(n) for n in rng.integers(1, 50, 2)]
    if name != "cyclic":
        return {"layout": name, "block": blocks[0]}
    grids = [(r, c) for r in range(1, ranks + 1) for c in range(1, ranks + 1) if r * c <= ranks]
    return {"layout": name, "block": tuple(blocks), "grid": grids[rng.integers(len(grids))]}


def in_cpp(shape, ranks, given):
    """The same blocks as by_block_rows(), by_block_columns() and programs write them."""
    (m, n), block = shape, given["block"]
    if given["layout"] == "cyclic":
        return linalg.BlockCyclic(*map(axis, shape, given["grid"], block))
    if given["layout"] == "rows":
        return linalg.BlockCyclic(axis(m, ranks, block), axis(n, 1, 0))
    return linalg.BlockCyclic(axis(m, 1, 0), axis(n, ranks, block))


def random_choices(rng, allowed):
    """Some of the choices, fixed."""
    return {name: values[rng.integers(len(values))] for name, values in allowed.items() if rng.random() < 0.3}


OF_PRODUCTS = {
    "algorithm": ["broadcast", "wavefront", "summa"],
    "lookahead": [0, 1, 3],
    "panel": [5, 64, 300],
    "tree": ["ring", "least_rounds"],
    "pending": [False, True],
    "memory": [1 << 12, 1 << 20],
}
OF_FACTORS = {
    "algorithm": ["broadcast", "wavefront"], "lookahead": [0, 2], "block": [7, 32, 100],
    "tree": ["ring", "least_rounds"], "memory": [1 << 12, 1 << 20],
}


def options(kind, choices, **more):
    made = kind()
    for name, value in {**choices, **more}.items():
        setattr(made, name, value)
    return made


def from_both(ranks, python, cpp):
    """What a program of each language finds on each rank: a plan and elements, or an error without the call's name."""

    def found(program):
        def body(context):
            linalg.use_blas(blas().path)
            try:
                plan, predicted, elements = program(context)
                return str(plan).split(";")[0], plan.predicted_s, plan.memory_bytes, predicted, elements
            except tw.ConfigError as error:
                return str(error).split(": ", 1)[1]

        return results_of(ranks, 1, body)  # a new context: it knows no plans

    for one, other in zip(found(python), found(cpp), strict=True):
        assert one[:-1] == other[:-1], (one, other)
        assert isinstance(one, str) or np.array_equal(one[-1], other[-1])


def stored(context, whole, given):
    """A matrix as C++ programs make it."""
    made = linalg.Matrix(context._core, in_cpp(whole.shape, context.size, given), whole.dtype.name)
    made.array()[...] = tw.linalg.matrix(whole, context=context, **given).local
    return made


@pytest.mark.parametrize("seed", range(CASES))
def test_products_have_equal_plans(seed):
    rng = np.random.default_rng(seed)
    ranks, dtype = seed % 4 + 1, str(rng.choice(DTYPES))
    m, n, k = (int(e) for e in rng.integers(1, 120, 3))
    ops = [str(op) for op in rng.choice(list("NTC"), 2)]
    shapes = [(m, k)[:: 1 if ops[0] == "N" else -1], (k, n)[:: 1 if ops[1] == "N" else -1], (m, n)]
    wholes, layouts = [values(rng, shape, dtype) for shape in shapes], [random_layout(rng, ranks) for _ in shapes]
    choices, beta = random_choices(rng, OF_PRODUCTS), float(rng.integers(2))

    def python(context):
        given = zip(wholes, layouts, strict=True)
        a, b, c = (tw.linalg.matrix(whole, context=context, **layout) for whole, layout in given)
        report = tw.linalg.matmul(a, b, c, beta=beta, trans_a=ops[0], trans_b=ops[1], **choices).report
        return report.plan, report.prediction and report.prediction.time_s, np.array(c.local)

    def cpp(context):
        a, b, c = (stored(context, whole, layout) for whole, layout in zip(wholes, layouts, strict=True))
        given = options(linalg.ProductOptions, choices, beta=beta, op_a=ops[0], op_b=ops[1])
        report = linalg.cpp_multiply(a, b, c, given)
        return report.plan, report.prediction and report.prediction().time_s, np.array(c.array())

    from_both(ranks, python, cpp)


@pytest.mark.parametrize("seed", range(CASES))
def test_factors_have_equal_plans(seed):
    rng = np.random.default_rng(100 + seed)
    kind, ranks, dtype = ("cholesky", "lu", "qr")[seed % 3], seed % 4 + 1, str(rng.choice(DTYPES))
    m, n = (int(e) for e in rng.integers(1, 120, 2))
    shape = (m if kind == "qr" else n, n)
    whole, layout, choices = values(rng, shape, dtype), random_layout(rng, ranks), random_choices(rng, OF_FACTORS)
    if kind == "cholesky":
        whole = np.tril(whole @ whole.conj().T + n * np.eye(n, dtype=dtype)).astype(dtype)

    def python(context):
        made = getattr(tw.linalg, kind)(tw.linalg.matrix(whole, context=context, **layout), **choices)
        report = made.report
        return report.plan, report.prediction and report.prediction.time_s, np.array(made.local)

    def cpp(context):
        made = linalg.cpp_factor(kind, stored(context, whole, layout), options(linalg.FactorOptions, choices))
        report = made.report
        return report.plan, report.prediction and report.prediction().time_s, np.array(made.matrix.array())

    from_both(ranks, python, cpp)
