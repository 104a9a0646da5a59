"""Functions of whole strips against plain Python loops: every function, length, position and condition."""

import math
import random
import re
import warnings

import numpy as np
import pytest
import tilewave as tw
from bench.costs_bodies import dependent as decay
from bench.costs_bodies import functions as waves
from bodies import HEADER, load
from kernel_bodies import body, special
from kernel_helpers import Runner, bits, check, compare, compare_all_ways, constant_steps, random_array
from local_ranks import results_of
from tilewave import _core
from tilewave.kernel.compile import compile_kernel
from tilewave.kernel.emit import loops

warnings.filterwarnings("ignore", category=RuntimeWarning)

UNARY = (
    "exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh"
).split()
BINARY = "arctan2 hypot power fmod".split()
OFF = _core.paths_off("strips")


def uses_strips(nest, dtypes, **choices):
    """Whether the machine code of a row calls functions of strips."""
    steps = [1] * len(nest.places)
    return bool(compile_kernel(nest, dtypes, steps=steps, **choices)._recipe.build().frame.strips)


def numbers(dtype, count, seed):
    """Ordinary numbers, and where functions change their behaviour."""
    rng = np.random.default_rng(seed)
    parts = [special(dtype), rng.uniform(-3, 3, count), rng.uniform(0, 1, count), rng.normal(0, 1e5, count)]
    found = np.concatenate(parts)
    rng.shuffle(found)
    return found[:count].astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_every_length_and_position(tmp_path, name, dtype):
    """The bits are those of the function of one element, wherever it is."""
    given = ("B[i]", "C[i]")[: 2 if name in BINARY else 1]
    found = body(tmp_path, f"A[i] = np.{name}({', '.join(given)})", head=", ".join(["A", *(g[0] for g in given), "i"]))
    count = 1300
    b, c = (numbers(dtype, count, seed) for seed in (1, 2))
    if name == "power":
        few = np.array([2, 0.5, -1, 0, 1, 3, -2, 1.5, 0.7], dtype)
        c = np.where(np.arange(count) % 3 == 0, few[np.arange(count) % 9], c)
        c[700:1250] = 2
    operands = [b, c][: len(given)]
    alone = np.array([getattr(np, name)(*each) for each in zip(*operands, strict=True)], dtype)
    arrays = {"A": np.zeros(count, dtype), **dict(zip("BC", operands))}
    kernel = compile_kernel(found, dict.fromkeys(arrays, dtype), steps=[1] * len(found.places), independent=True)
    run, rng = Runner(kernel, arrays), random.Random(3)
    lengths = [*range(1, 71), 511, 512, 513, 575, 1024]
    for length in lengths:
        for start in {*range(min(8, count - length)), rng.randrange(count - length), 701 if length < 400 else 0}:
            arrays["A"][:] = -7
            run((start,), (1,), length)
            assert np.array_equal(bits(arrays["A"][start : start + length]), bits(alone[start : start + length]))
            assert (arrays["A"][:start] == -7).all() and (arrays["A"][start + length :] == -7).all()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.26, 0.9, 1.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_conditions(tmp_path, share, dtype):
    """Points that need a function alone, in runs, all and none."""
    found = body(
        tmp_path,
        "if C[i, j] > 0:\n        A[i, j] = np.exp(B[i, j]) + np.log(C[i, j])\n"
        "    elif np.sin(B[i, j]) > 0.5 and np.power(C[i, j], B[i, j]) != 2:\n        A[i, j] = B[i, j] ** 1.5",
        head="A, B, C, i, j",
    )
    rng = np.random.default_rng(int(share * 100))
    shape = 4, 700
    wanted = rng.random(shape) < share
    runs = np.sin(np.arange(700) / 40) < 2 * share - 1
    b, c = random_array(rng, shape, dtype), np.where(wanted | (runs & (share > 0)), 1.5, -1).astype(dtype)
    compare_all_ways(found, dict.fromkeys("ABC", dtype), shape, seed=5, arrays={"B": b, "C": c})


NESTS = {
    "nested": "A[i, j] = np.exp(np.sin(np.sqrt(np.abs(np.cos(B[i, j])))))",
    "deep": "A[i, j] = np.sin(np.cos(np.sin(np.cos(np.tanh(np.exp(-B[i, j] ** 2))))))",
    "mixed": "A[i, j] = np.exp(np.float32(B[i, j])) + np.log1p(np.float64(B[i, j])) * math.cos(i)",
    "conditions of results": "x = np.tanh(B[i, j])\n    A[i, j] = np.exp(x) if x > np.sin(A[i-1, j]) else max(x, 0)",
    "beside a recurrence": "A[i, j] = 0.3 * np.exp(-A[i-1, j] * B[i, j]) + 0.2 * A[i, j-1]",
    "through a recurrence": "A[i, j] = np.tanh(A[i, j-1] + np.sin(B[i, j] - A[i-1, j]))",
    "ahead": "A[i, j] = np.exp(-np.abs(A[i, j+2])) + np.cos(A[i, j] * B[i, j])",
    "back": "A[i, j] = 0.5 * np.sin(A[i, j-3]) + np.cos(B[i, j])",
    "one element": "A[i] = np.sin(A[i]) + np.cos(B[i, j])",
    "complex": "A[i, j] = np.abs(np.exp(1j * B[i, j])) + np.sin(B[i, j])",
    "math": "A[i, j] = math.log(2 + np.sin(B[i, j])) + math.exp(-1)",
    "in several types": "A[i, j] = np.exp(max(B[i, j], 0)) + np.arctan2(i, B[i, j])",
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", NESTS)
def test_bodies(tmp_path, name, dtype):
    found = body(tmp_path, NESTS[name])
    for columns in (1, 7, 40, 530):
        compare_all_ways(found, dict.fromkeys("AB", dtype), (4, columns), seed=columns)


def test_distances_within_and_beyond_a_strip(tmp_path):
    """What a strip must not read ahead is known by its addresses."""
    for back in (1, 2, 63, 64, 500, 511, 512, 513, 600):
        found = body(tmp_path, f"A[i] = 0.5 * np.cos(A[i-{back}])", head="A, i", name=f"back{back}")
        compare(found, {"A": "f8"}, (1400,), seed=back)
        down = body(tmp_path, f"A[i, j] = 0.5 * np.cos(A[i-{back}, j])", head="A, i, j", name=f"down{back}")
        arrays = {"A": np.random.default_rng(back).normal(size=(1400, 2))}
        box = (back, 1400), (0, 2)
        for steps in (None, (2, 2)):
            kernel = compile_kernel(down, {"A": "f8"}, steps=steps)
            columns = [((back, j), (1, 0), 1400 - back) for j in range(2)]
            check(kernel, box, arrays, None, lambda _, columns=columns: columns, f"{back} rows back, {steps}")


@pytest.mark.parametrize("at", [0, 1, 299, 511, 512, 600])
def test_a_point_that_raises(tmp_path, at):
    """The points before it are stored, those after it are not."""
    for number, text in enumerate(
        (
            "assert B[i, j] >= 0\n    A[i, j] = np.exp(B[i, j])",
            "A[i, j] = np.exp(B[i, j])\n    A[i, j] += math.log(B[i, j])",
            "A[i, j] = S[int(np.exp(B[i, j]))]",
        )
    ):
        found = body(tmp_path, text, head="A, B, S, i, j" if "S[" in text else "A, B, i, j", name=f"raises{number}")
        b = np.random.default_rng(at).uniform(0.1, 1, (2, 700))
        b[1, at], b[1, 650] = (90, 91) if "S[" in text else (-1, -2)
        arrays = {"A": np.zeros((2, 700)), "B": b} | ({"S": np.arange(4.0)} if "S[" in text else {})
        compare(found, dict.fromkeys([*found.arrays, *found.tables], "f8"), (2, 700), arrays=arrays)


SOURCES = ("A[i-1, j]", "B[i, j]", "A[i, j-1]", "A[i-1, j-1]", "B[i, j+1]", "A[i, j]", "x", "c", "i", "j")


def expression(rng, depth):
    """An expression with many functions."""
    kind = rng.random()
    if depth == 0 or kind < 0.1:
        return rng.choice(SOURCES)
    if kind < 0.45:
        return f"np.{rng.choice(UNARY)}({expression(rng, depth - 1)})"
    if kind < 0.55:
        return f"np.{rng.choice(BINARY)}({expression(rng, depth - 1)}, {expression(rng, depth - 1)})"
    if kind < 0.65:
        parts = [expression(rng, depth - 1) for _ in range(4)]
        return "({} if {} < {} else {})".format(*parts)
    return f"({expression(rng, depth - 1)} {rng.choice('+-*')} {expression(rng, depth - 1)})"


@pytest.mark.parametrize("seed", range(30))
def test_random_bodies(tmp_path, seed):
    rng = random.Random(seed)
    first = re.sub(r"\bx\b", "c", expression(rng, 2))
    text = f"""{HEADER}@nest
def body(A, B, i, j, *, c=0.4):
    x = {first}
    if {expression(rng, 2)} > {rng.choice(SOURCES)}:
        x = {expression(rng, 2)}
    {rng.choice(["A[i, j]", "A[i, j]", "x"])} = {expression(rng, 3)}
    A[i, j] = {expression(rng, 2)} + x
"""
    found = load(tmp_path, f"random{seed}", text).body
    dtypes = {name: rng.choice(("f4", "f8")) for name in "AB"}
    compare_all_ways(found, dtypes, (4, rng.choice((3, 20, 70, 600))), seed=seed)


@tw.nest
def through(A, B, i, j):
    A[i, j] = np.tanh(A[i, j - 1] + B[i, j])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_where_strips_are_taken(dtype):
    dtypes = dict.fromkeys("AB", dtype)
    assert uses_strips(waves, dtypes, independent=True) and uses_strips(decay, dtypes)
    assert not uses_strips(waves, dtypes, independent=True, off=OFF) and not uses_strips(through, dtypes)


def test_a_loop_that_is_not_uniform_is_called_for_one_element(monkeypatch):
    from tilewave.kernel.rows import strips

    monkeypatch.setattr(strips, "is_uniform", lambda name, dtype: name == "exp")
    dtypes = dict.fromkeys("AB", "f8")
    arrays = {name: np.random.default_rng(1).normal(size=(3, 80)) for name in "AB"}
    steps = constant_steps(waves, arrays, (0, 1))
    build = compile_kernel(waves, dtypes, steps=steps, independent=True)._recipe.build
    text = str(build().module)
    assert "strip_all_numpy_exp" in text and "strip_all_numpy_sin" not in text
    assert loops.is_uniform("sin", np.dtype("f8")) in (True, False)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", [*UNARY, "power", "arctan2", "hypot"])
def test_fastmath_is_near(tmp_path, name, dtype):
    binary = name in BINARY
    found = body(
        tmp_path,
        f"if B[i] > 0.3:\n        A[i] = np.{name}(B[i] {'' if name != 'arccosh' else '+ 1'}{', C[i]' * binary})",
        head="A, B, C, i" if binary else "A, B, i",
    )
    rng = np.random.default_rng(2)
    arrays = {"A": np.zeros(777, dtype), "B": rng.uniform(0.05, 0.95, 777).astype(dtype)}
    if binary:
        arrays["C"] = rng.uniform(0.1, 3, 777).astype(dtype)
    expected = {key: array.copy() for key, array in arrays.items()}
    found.reference(((0, 777),), expected)
    steps = [1] * len(found.places)
    kernel = compile_kernel(found, dict.fromkeys(arrays, dtype), steps=steps, independent=True, fastmath=True)
    Runner(kernel, arrays)((0,), (1,), 777)
    np.testing.assert_allclose(arrays["A"], expected["A"], rtol=8 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("nest", [waves, decay, through], ids=lambda nest: nest.name)
def test_ranks(nest, ranks):
    """The same bits on any ranks, with and without strips."""
    rng = np.random.default_rng(4)
    start = {name: rng.uniform(0, 1, (61, 140)).astype("f4") for name in "AB"}

    def run(context):
        fields = {name: tw.field((61, 140), "f4", array, context=context) for name, array in start.items()}
        tw.run(nest, **fields, context=context)
        return fields["A"].gather()

    expected = {name: array.copy() for name, array in start.items()}
    nest.reference(nest.iteration_box(dict.fromkeys("AB", (61, 140))), expected)
    for without in (None, "strips"):
        found = results_of(ranks, 1, run, without=without)[0]
        assert np.array_equal(bits(found), bits(expected["A"])), (nest.name, ranks, without)


def test_math_is_the_c_librarys(tmp_path):
    """`x ** 2` of a NumPy float is the C library's pow, also in a strip."""
    found = body(tmp_path, "A[i] = np.exp(-(B[i] ** 2.5)) + math.exp(-1)", head="A, B, i")
    compare(found, dict.fromkeys("AB", "f8"), (600,), seed=2, special=0)
    assert math.exp(-1) > 0
