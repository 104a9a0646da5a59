"""Nests that write nothing, over arrays of every kind that is only read."""
# ruff: noqa: F841 - what is assigned is reduced

import math

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2, 3])


@tw.nest
def product(u, v, i, j):
    d = u[i, j] * v[i, j]


@tw.nest
def asymmetry(S, i, j):
    d = S[i, j] - S[j, i]


@tw.nest
def looked_up(T, a, i):
    x = T[a[i]]


def arrays():
    random = np.random.default_rng(3)
    return random.random((30, 40)), random.random((30, 40)), random.random((20, 20))


@pytest.mark.ranks([1, 2, 3])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("as_field", [False, True])
def test_every_kind(as_field):
    a, b, s = arrays()
    table, subscripts = np.random.default_rng(4).random(9), np.random.default_rng(5).integers(0, 9, 50)
    given = tw.field if as_field else np.array
    assert tw.run(product, u=given(a), v=given(b), reduce={"r": tw.sum("d")}).results["r"] == math.fsum((a * b).ravel())
    wanted = {"norm": tw.norm("d", np.inf), "other": tw.sum("S[j, i]"), "more": tw.sum("d > 0"), "any": tw.max("d > 0")}
    found = tw.run(asymmetry, S=given(s), reduce=wanted).results
    assert found["norm"] == abs(s - s.T).max() and found["other"] == math.fsum(s.ravel())
    assert found["more"] == (s > s.T).sum() and found["any"] == np.True_ and found["more"].dtype == np.int64
    found = tw.run(looked_up, T=table, a=given(subscripts), reduce={"x": tw.sum("x"), "at": tw.argmax("x")}).results
    assert found == {"x": math.fsum(table[subscripts]), "at": (table[subscripts].argmax(),)}


def test_plans_and_refusals():
    a, b, s = arrays()
    u, v = tw.field(a), tw.field(b)
    assert tw.plan(product, u=u, v=v, reduce={"r": tw.sum("d")}).grid
    for call, message in (
        (lambda: tw.plan(product, u=u, v=v), "writes no array; allowed"),
        (lambda: tw.run((product, product), u=u, v=v, steps=2), "steps=2: nest 'product' writes no array"),
        (lambda: tw.run(asymmetry, S=s, reduce={"r": tw.sum("S")}), "array 'S' is read in several orders"),
        (lambda: tw.run(looked_up, T=s[0], a=np.arange(3), reduce={"r": tw.sum("T")}), "array 'T' is a table"),
    ):
        with pytest.raises(tw.ConfigError, match=message):
            call()
    assert tw.run(product, u=u, v=v, reduce={"r": tw.dot("u", "v")}).results["r"] == tw.dot(u, v)
