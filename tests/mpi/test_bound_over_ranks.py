"""Bound nests over MPI: what `tilewave.run` computes, interrupts, and ranks that do not run the same."""

import signal
import threading
import time

import numpy as np
import pytest

import tilewave as tw
from tilewave.errors import ConfigError, KernelError
from tilewave.context import interrupts

pytestmark = pytest.mark.ranks([1, 2, 3, 4])


@tw.nest
def sweep(A, i, j, *, c=1):
    A[i, j] = c * A[i - 1, j] + A[i, j - 1]


@tw.nest
def back(A, i, j):
    A[i, j] = A[i + 1, j] - A[i, j + 1]


@tw.nest
def heat(u, t, i):
    u[t + 1, i] = u[t, i] + 0.25 * (u[t, i - 1] - 2 * u[t, i] + u[t, i + 1])


@tw.nest
def fails(A, B, i, j, *, at=-1):
    if B[i, j] == at:
        raise ValueError("found")
    A[i, j] = A[i - 1, j] + A[i, j - 1]


def field(context, shape=(40, 30)):
    return tw.field(shape, "i8", init=lambda i, j: i * 3 - j, context=context)


def same(a, b):
    x, y = a.gather(), b.gather()
    return x is None or np.array_equal(x, y)


def test_alternating(context):
    A = field(context)
    B = A.copy()
    one, other = tw.bind(sweep, A=A), tw.bind(back, A=A, reverse=("i", "j"))
    for c in (1, 2, 1, 3):
        one.run(c=c)
        other.run()
        tw.run(sweep, A=B, c=c)
        tw.run(back, A=B, reverse=("i", "j"))
        assert same(A, B)


def test_steps_and_reductions(context):
    u = tw.field((200,), "f8", init=lambda i: i % 7, context=context)
    v = u.copy()
    bound = tw.bind(heat, u=u, steps=30)
    for steps in (30, 3000, 5, 0, 3001):
        bound.run(steps=steps)
        tw.run(heat, u=v, steps=steps)
        assert same(u, v)
    A, wanted = field(context), {"most": tw.max("A"), "where": tw.argmax("A"), "sum": tw.sum("A")}
    B = A.copy()
    bound = tw.bind(sweep, A=A, reduce=wanted)
    for _ in range(3):
        assert bound.run().results == tw.run(sweep, A=B, reduce=wanted).results


@pytest.mark.mpi(ranks=[1, 3])
def test_an_interrupt_before_the_ranks_agree(context):
    A = field(context)
    bound = tw.bind(sweep, A=A)
    for rank in range(context.size):
        for _ in range(2):
            bound.run()
        with pytest.raises(KeyboardInterrupt):
            if context.rank == rank:
                interrupts.keep(KeyboardInterrupt())
            bound.run()
        A.fill(1)
        B = A.copy()
        bound.run()
        tw.run(sweep, A=B)
        assert same(A, B)


@pytest.mark.mpi(ranks=[2, 3])
def test_an_interrupt_in_a_long_run(context):
    u = tw.field((200_000,), "f8", init=1.0, context=context)
    bound = tw.bind(heat, u=u, steps=20)
    for rank in {0, context.size - 1}:
        begin = time.monotonic()
        if context.rank == rank:
            threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            bound.run(steps=2**30)
        assert time.monotonic() - begin < 60  # of the days that it would take
        u.fill(1.0)
        assert bound.run(steps=3).points == 3 * 199_998


def test_a_body_that_raises_on_one_rank(context):
    B = np.arange(1200).reshape(40, 30)
    A = field(context)
    bound = tw.bind(fails, A=A, B=B)
    for rank in range(context.size):
        row = np.array_split(np.arange(40), context.size)[rank][1]
        with pytest.raises(KernelError, match=rf"ValueError\('found'\) at i={row}, j=1 "):
            bound.run(at=int(B[row, 1]))
        for f in (A, C := A.copy()):
            f.fill(lambda i, j: i - j)
        bound.run()
        tw.run(fails, A=C, B=B)
        assert same(A, C)


@pytest.mark.ranks([2, 3, 4])
def test_ranks_that_run_different_things(context):
    A = field(context)
    one, other = tw.bind(sweep, A=A), tw.bind(back, A=A)
    for rank in range(context.size):
        differs = context.rank == rank
        for call, text in (
            (other.run if differs else one.run, "'back'"),
            (A.gather if differs else one.run, "tw.Field.gather"),
            ((lambda: one.run(c=2)) if differs else one.run, "c=2"),
        ):
            with pytest.raises(ConfigError, match=text) as caught:
                call()
            assert "test_bound_over_ranks.py:" in str(caught.value)
        one.run()
