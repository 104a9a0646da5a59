"""Reductions by Python functions that fail: one clear error on every rank, no hang, and the next call is fine."""


import numpy as np
import pytest

import tilewave as tw
from refused_patterns import A, agreed, patterns, refused

pytestmark = pytest.mark.ranks([1, 2, 3])


def boom(a, b):
    raise ValueError("no sum today")


def interrupted(a, b):
    raise KeyboardInterrupt("ctrl-c")


def too_short(a, b):
    return (a + b)[1:]


def a_number(a, b):
    return 3.0


def complex_(a, b):
    return a + 1j * b


def writes(a, b):
    a += b
    return a


def speaks_greek(a, b):
    raise ValueError("α" * 2000)


def no_text(a, b):
    raise OSError("bad name \udc80")


@pytest.mark.ranks([1, 2, 3])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize(
    "op, words",
    [
        (boom, "reduction boom failed on rank {r}: ValueError: no sum today"),
        (interrupted, "KeyboardInterrupt: ctrl-c"),
        (too_short, r"it returned shape \(\d+,\) for two arrays of shape \(\d+,\)"),
        (a_number, r"it returned shape \(\)"),
        (complex_, "UFuncTypeError|TypeError: Cannot cast"),
        (writes, "ValueError: .*read-only"),
        (speaks_greek, "ValueError: α*$"),
        (no_text, "bad name .udc80"),
    ],
)
def test_a_function_that_fails_on_one_rank(context, op, words):
    if tw.size == 1:
        assert (patterns.reduce(A, op=op) == A).all()  # nothing to combine
        return
    for r in range(tw.size):

        def mine(a, b, failing=r):  # the same function everywhere
            return op(a, b) if tw.rank == failing else np.add(a, b)

        mine.__name__ = op.__name__
        for algorithm in ("tree", "ring"):
            refused(words.format(r=r), "reduce", A, r, mine, algorithm=algorithm, chunk_bytes=48, error=tw.KernelError)
        refused(words.format(r=r), "multi_reduce", A, op=mine, error=tw.KernelError)


def test_a_function_that_calls_patterns(context):
    calls = [
        lambda: patterns.broadcast(A.copy()),
        lambda: patterns.reduce(A, start=False),
        lambda: patterns.send(A, 0),
        lambda: patterns.receive(A, 0),
        context.close,
    ]
    for call in calls if tw.size > 1 else ():
        refused(
            "ConfigError: patterns, sends and receives cannot be called from a reduction's function",
            "reduce",
            A,
            0,
            lambda a, b: call(),
            error=tw.KernelError,
        )


def test_a_function_that_fails_on_all_ranks_and_then_does_not(context):
    fails = [True]

    def sometimes(a, b):
        return boom(a, b) if fails[0] else a + b

    if tw.size == 1:
        return
    handle = patterns.multi_reduce(A + 1, op=sometimes, start=False)
    for _ in range(2):
        agreed("failed on rank 0: ValueError", tw.KernelError, handle.run)
        agreed("failed on rank 0: ValueError", tw.KernelError, lambda: handle.start().wait())
    fails[0] = False
    assert (handle.run() == tw.size).all()
