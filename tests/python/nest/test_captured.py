"""Numbers from outside a body that change: the results of plain loops each time, and no new kernel where NumPy's are
the same either way.
"""

import types

import numpy as np
import pytest

import tilewave as tw
from tilewave.nests.plan import kernel_maker

C, DX, GAP, TOL, POWER, HALF, SCALE, ON, SHIFT = 0.3, 0.25, -2, 0.5, 2, 2.0, np.float32(0.1), True, 1
OPTIONS = types.ModuleType("options")
OPTIONS.weight = 0.75


@tw.nest
def linear(A, i, j):
    A[i, j] = C * (A[i-1, j] + A[i, j-1]) / (DX * DX + 1.0) - OPTIONS.weight


@tw.nest
def many(A, B, i, j):
    x = A[i-1, j] + C
    if x > TOL:
        x *= 1.0 / (2 * DX)
    A[i, j] = min(x, TOL) ** POWER + SCALE * B[i, j] / HALF - np.maximum(C, A[i, j-1]) * -C


@tw.nest
def scores(H, S, a, i, j):
    H[i, j] = max(H[i-1, j-1] + GAP, H[i-1, j] - 1, S[a[i]+SHIFT, 0], 0) * 3


@tw.nest
def by_itself(A, i, j):
    y = C
    A[i, j] = A[i-1, j] + y * 2 if ON else C


@tw.nest
def of_index(A, i, j):
    A[i, j] = A[i, j-1] + i * C + C / j


@pytest.fixture
def kernels(monkeypatch):
    """How many kernels were compiled for runs."""
    made, compiled = [], kernel_maker.kernel_for
    before = set()

    def counting(given, made_from):
        kernel = compiled(given, made_from)
        if id(kernel) not in before:
            before.add(id(kernel))
            made.append(kernel)  # alive, so that its id is its own
        return kernel

    monkeypatch.setattr(kernel_maker, "kernel_for", counting)
    return made


def equal(nest, context, **arrays):
    plain = {name: value.copy() for name, value in arrays.items()}
    nest.reference(nest.iteration_box({name: value.shape for name, value in plain.items()}), plain)
    given = {name: value.copy() for name, value in arrays.items()}
    tw.run(nest, context=context, plan={"storage": "plain", "row": ()}, **given)
    return all(np.array_equal(given[name].view("u1"), plain[name].view("u1")) for name in given)


def arrays_of(nest, dtype):
    made = np.random.default_rng(7)
    values = made.integers(0, 9, (6, 7)).astype(dtype) if nest is scores else made.random((6, 7)).astype(dtype)
    if nest is scores:
        return {"H": values, "S": made.integers(-4, 9, (9, 2)).astype(dtype), "a": made.integers(0, 5, 6)}
    return {name: values.copy() for name in nest.arrays}


CHANGES = {
    "float": (
        linear,
        "f8",
        {"C": (0.31, -4.0, 1e300, 0.0, -0.0, float("inf"), float("nan"), 5e-324), "DX": (0.3, 1e200)},
        1,
    ),
    "single": (linear, "f4", {"C": (0.1, 1e-46, 1e39, 3.4028235677973366e38), "DX": (0.7,)}, 1),
    "divisor of 1": (linear, "f8", {"DX": (0.0, 0.5)}, 2),
    "attribute": (linear, "f8", {"weight": (0.1, 0.2, 2.0)}, 1),
    "several": (many, "f4", {"C": (0.2, 0.4), "TOL": (0.1, 1e9), "SCALE": (np.float32(0.7), np.float32(1e38))}, 1),
    "exponent": (many, "f8", {"POWER": (3, 4, 2)}, 3),
    "divisor": (
        many,
        "f8",
        {"HALF": (4.0, 3.0, 7.0, 9.0)},
        3,
    ),  # by 2 and by 4: multiplications; by all others one kernel
    "int": (scores, "i4", {"GAP": (-1, -128, -7)}, 1),
    "int of another range": (scores, "i4", {"GAP": (-1000, -999, -5)}, 2),
    "int in a subscript": (scores, "i8", {"SHIFT": (0, 2)}, 3),
    "alone": (by_itself, "f8", {"C": (0.5, 0.25)}, 3),
    "condition": (by_itself, "f8", {"ON": (False, True)}, 2),
    "with an index": (of_index, "f8", {"C": (0.7, 1e10, -3.0)}, 1),
    "type": (linear, "f4", {"C": (2, 0.5, np.float32(0.5), np.float64(0.5), 3)}, 5),
}


@pytest.mark.parametrize("name", CHANGES)
def test_numbers_that_change(name, kernels, monkeypatch):
    nest, dtype, changes, most = CHANGES[name]
    context, arrays = tw.Context(threads=1), arrays_of(nest, dtype)
    with np.errstate(all="ignore"):
        assert equal(nest, context, **arrays)
        for text, value in [(text, value) for text, values in changes.items() for value in values]:
            target = (OPTIONS, "weight") if text == "weight" else (__import__(__name__), text)
            with monkeypatch.context() as patch:
                patch.setattr(*target, value)
                assert equal(nest, context, **arrays), (text, value)
                assert equal(nest, context, **arrays), (text, value)
            assert equal(nest, context, **arrays), (text, value)
    codes = {(kernel._recipe.signature, kernel.slots) for kernel in kernels}  # each for one or two ways that rows go
    assert len(codes) <= most, codes


def test_a_number_that_makes_an_error(kernels, monkeypatch):
    """An expression of numbers only that raises does so in the points, as in plain loops; and then not any more."""

    @tw.nest
    def inverse(A, i):
        A[i] = A[i-1] + 1.0 / DX

    context = tw.Context(threads=1)
    for value in (0.5, 0.0, 0.25, 0.0):
        monkeypatch.setitem(globals(), "DX", value)
        A = np.zeros(4)
        if value:
            tw.run(inverse, A=A, context=context)
            assert A.tolist() == [k / value for k in range(4)]
        else:
            with pytest.raises(tw.KernelError, match="ZeroDivisionError.* at i=1"):
                tw.run(inverse, A=A, context=context)


def test_each_nest_has_its_own_numbers(kernels):
    def make(c):
        @tw.nest
        def again(A, i):
            A[i] = A[i-1] + c

        return again

    context = tw.Context(threads=1)
    nests = [make(c) for c in (1.5, 2.5, 0.1)]
    for nest, c in [*zip(nests, (1.5, 2.5, 0.1)), *zip(nests, (1.5, 2.5, 0.1))]:
        A = np.zeros(5)
        tw.run(nest, A=A, context=context)
        assert A[1] == c
    assert len(kernels) == 1


LARGE = 1


@tw.nest
def plus(A, B, i):
    B[i] = A[i] + LARGE


@pytest.mark.parametrize("number", [2**31 - 1, -(2**31), 2**53 + 1, 2**63, -(2**70)])
def test_ints_of_any_size_are_what_numpy_makes_of_them(monkeypatch, number):
    monkeypatch.setitem(globals(), "LARGE", number)
    for dtype in ("f4", "f8", "i4", "i8"):
        A, B = np.arange(3).astype(dtype), np.zeros(3, dtype)
        if dtype[0] == "i" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            with pytest.raises(tw.KernelError, match=f"Python integer {number} out of bounds for int"):
                tw.run(plus, A=A, B=B)
        else:
            tw.run(plus, A=A, B=B)
            with np.errstate(over="ignore"):
                assert np.array_equal(B, A + number)
