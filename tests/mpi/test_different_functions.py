"""Reductions by functions that differ between ranks, in code or in the values they carry, are an error of all."""

import functools
import operator

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([2, 3])
patterns = tw.patterns


def weighted(weight):
    return lambda a, b: a + weight * b


def by_default(weight):
    def join(a, b, weight=weight):
        return a + weight * b

    return join


def inside(weights):
    inner = weighted(weights["inner"])
    return lambda a, b: inner(a, b)


class Weighted:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, a, b):
        return a + self.weight * b

    def join(self, a, b):
        return a - self.weight * b


def with_weight(weight, a, b):
    return a + weight * b


#: From one of two numbers to a function: the same where the numbers are.
MADE = {
    "ufunc": lambda k: (np.maximum, np.minimum)[k],
    "builtin": lambda k: (operator.add, operator.mul)[k],
    "lambda": lambda k: (lambda a, b: a + b, lambda a, b: a * b)[k],
    "closure": lambda k: weighted(0.5 + k),
    "closure of an array": lambda k: weighted(np.full(1, 0.5 + k)),
    "closure of a closure": lambda k: inside({"inner": 0.5 + k}),
    "default": lambda k: by_default(0.5 + k),
    "partial": lambda k: functools.partial(with_weight, 0.5 + k),
    "partial by name": lambda k: functools.partial(by_default(1), weight=0.5 + k),
    "object": lambda k: Weighted(0.5 + k),
    "method": lambda k: Weighted(0.5 + k).join,
}


def calls(op):
    size = tw.size
    return [
        lambda: patterns.reduce(np.ones((2, 3)), op=op),
        lambda: patterns.multi_reduce(np.ones((2, 2 * size)), op=op),
        lambda: patterns.allreduce(np.ones((2, 3)), op),
        lambda: patterns.reduce(np.ones((2, 3)), op=op, start=False),
    ]


@pytest.mark.ranks([2, 3])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("name", MADE)
def test_functions_that_differ(name):
    same, other = calls(MADE[name](0)), calls(MADE[name](int(tw.rank == tw.size - 1)))
    for right, wrong in zip(same, other, strict=True):
        right()
        with pytest.raises(tw.ConfigError, match="different arguments") as caught:
            wrong()
        assert caught.value.agreed
        right()
