"""Expressions that a run reduces: what they may be of, and their values against NumPy's of whole arrays."""

import math
import re

import numpy as np
import pytest

import tilewave as tw

THRESHOLD = 0.5


@tw.nest
def body(A, B, S, i, j, *, c=2.0):
    d = A[i, j] - B[i, j]
    if d > THRESHOLD:
        e = d * c
        B[i, j] = e + S[j]


def arrays():
    rng = np.random.default_rng(4)
    return {"A": rng.random((6, 7)), "B": rng.random((6, 7)), "S": rng.random(7)}


def reduced(**asked):
    """The results of a run, and what its points had: A, B before and after, S, d, e where it was, as arrays."""
    given = arrays()
    found = tw.run(body, **given, reduce=asked).results
    before = arrays()
    A, S = before["A"], np.broadcast_to(before["S"], (6, 7))
    d = A - before["B"]
    return found, dict(A=A, B=given["B"], S=S, d=d, e=2.0 * d, taken=d > 0.5, i=np.indices((6, 7))[0])


@pytest.mark.parametrize(
    "text, value, where_taken",
    [
        ("d", lambda v: v["d"], False),
        ("  d\n", lambda v: v["d"], False),
        ("abs(d) + A", lambda v: abs(v["d"]) + v["A"], False),
        ("e", lambda v: v["e"], True),
        ("e - d", lambda v: v["e"] - v["d"], True),
        ("e if d > 0.5 else 0.0", lambda v: v["e"], True),  # a point counts where all that is named has a value
        ("d > 0", lambda v: v["d"] > 0, False),
        ("i", lambda v: v["i"], False),
        ("c * i", lambda v: 2.0 * v["i"], False),
        ("A", lambda v: v["A"], False),
        ("A[i, j] * S", lambda v: v["A"] * v["S"], False),
        ("B * 2", lambda v: v["B"] * 2, True),
        ("1.5", lambda v: np.full((6, 7), 1.5), False),
        ("np.where(d > 0, d, 0.0)", lambda v: np.where(v["d"] > 0, v["d"], 0.0), False),
    ],
)
def test_values_are_those_of_the_points(text, value, where_taken):
    found, points = reduced(sum=tw.sum(text), top=tw.max(text), at=tw.argmin(text), norm=tw.norm(text, 1))
    values = value(points)
    mask = points["taken"] if where_taken else np.ones((6, 7), bool)
    assert 3 < mask.sum() and found["sum"] == math.fsum(values[mask]) and found["top"] == values[mask].max()
    assert found["norm"] == math.fsum(abs(values[mask].astype("f8")))
    least = np.where(mask, values.astype("f8"), np.inf)
    assert found["at"] == np.unravel_index(least.argmin(), least.shape)


def test_products_count_where_both_have_a_value():
    found, points = reduced(de=tw.dot("d", "e"), ee=tw.dot("e", "e"), ai=tw.dot("A", "i"))
    taken = points["taken"]
    assert found["de"] == math.fsum((points["d"] * points["e"])[taken])
    assert found["ee"] == math.fsum((points["e"] ** 2)[taken])
    assert found["ai"] == math.fsum((points["A"] * points["i"]).ravel())


@tw.nest
def two_paths(A, B, i):
    if A[i] > 0.3:
        p = A[i] * 2.0  # noqa: F841 - reduced
    if A[i] < 0.7:
        q = A[i] * 3.0  # noqa: F841
    B[i] = A[i]


def test_a_point_counts_where_all_that_is_named_has_a_value():
    A = np.random.default_rng(6).random(40)
    asked = {"both": tw.sum("p + q"), "top": tw.max("q - p"), "p": tw.sum("p")}
    found = tw.run(two_paths, A=A, B=np.zeros(40), reduce=asked)
    has_p, has_q = A > 0.3, A < 0.7
    assert 3 < sum(has_p & has_q) < min(sum(has_p), sum(has_q)) and sum(has_p | has_q) == 40
    both, top, p = (found.results[name] for name in ("both", "top", "p"))
    assert both == math.fsum((A * 2.0 + A * 3.0)[has_p & has_q]) and p == math.fsum((A * 2.0)[has_p])
    assert top == (A * 3.0 - A * 2.0)[has_p & has_q].max()


@pytest.mark.parametrize(
    "text, words",
    [
        ("x", "'x' is no name of nest 'body'; allowed: arrays A, B, S; locals d, e"),
        ("", "'' is no expression"),
        ("d if", "'d if' is no expression: invalid syntax"),
        ("d; e", "is no expression"),
        ("d := 3", "is no expression"),
        ("d\0", "is no expression"),
        ("np.pi * d", "'np.pi' is from outside the body; allowed: an array with one value a point"),
        ("d * THRESHOLD", "'THRESHOLD' is from outside the body"),
        ("A[i-1, j]", "A[i - 1, j] is no element that nest 'body' writes or reads"),
        ("A.shape", "attribute 'shape' of `A[i, j]` is not supported"),
        ("len(A)", "calling len is not supported"),
        ("(d, e)", "`(d, e)`: a tuple is not supported"),
        ("lambda: d", "a lambda is not supported"),
        ("'d'", "a constant of type str is not supported"),
        ("print(d)", "print in a body"),
    ],
)
def test_what_is_no_expression_of_the_body(text, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)) as caught:
        tw.run(body, **arrays(), reduce={"mine": tw.sum(text)})
    assert str(caught.value).startswith(f"reduce: mine: sum({text!r})")


@pytest.mark.parametrize("reduce", [[1], {"x": 3}, {1: tw.sum("d")}, "sum", tw.sum("d"), {"x": None}])
def test_what_is_no_dict_of_reductions(reduce):
    with pytest.raises(tw.ConfigError, match="^reduce: given .*; allowed: a dict from names to tw.max, min"):
        tw.run(body, **arrays(), reduce=reduce)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: tw.max(), "see help(tilewave.max)"),
        (lambda: tw.sum("d", "e"), "see help(tilewave.sum)"),
        (lambda: tw.dot("d"), "see help(tilewave.dot)"),
        (lambda: tw.dot("d", 3), "dot: given a name and int; allowed: two names, or two fields"),
        (lambda: tw.sum(3), "sum: given int; allowed: the name of an array"),
        (lambda: tw.norm("d", 3), "norm: ord=3 was given; allowed: 1, 2, numpy.inf"),
        (lambda: tw.norm("d", True), "norm: ord=True was given"),
        (lambda: tw.norm("d", "inf"), "norm: ord='inf' was given"),
        (lambda: tw.norm("d", float("nan")), "norm: ord=nan was given"),
        (lambda: tw.norm("d", [2]), "norm: ord=[2] was given"),
    ],
)
def test_reductions_of_nothing(call, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        call()


def test_how_reductions_print():
    assert [str(r) for r in (tw.sum("d"), tw.dot("A", "B"), tw.norm("d"), tw.norm("d", np.float64(1)))] == [
        "sum('d')", "dot('A', 'B')", "norm('d')", "norm('d', ord=1)",
    ]
