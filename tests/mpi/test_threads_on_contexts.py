"""Threads on contexts of their own: below MPI_THREAD_MULTIPLE the library takes one of them at a time."""

import threading
import time

import numpy as np
import pytest
from local_ranks import LONG_S, together

import tilewave as tw
from tilewave import _core

patterns = tw.patterns


@pytest.fixture
def contexts(monkeypatch):
    monkeypatch.setenv("TILEWAVE_WITHOUT", "shared")  # all that they send goes through the library
    both = [tw.Context(threads=1), tw.Context(threads=1)]
    yield both
    for context in both:
        context._core.barrier()
        context.close()


@pytest.mark.mpi(ranks=[2])
@pytest.mark.parametrize("bytes_, rounds", [(8, 20_000), (10_000, 8_000), (100_000, 2_000)])
def test_two_threads_in_the_library(contexts, bytes_, rounds):
    """Both are in the library all the time, without Python's lock."""

    def talk(context):
        _core.measure.round_trips(context._core, 1 - context.rank, context.rank == 0, bytes_, rounds)

    together(*(lambda c=c: talk(c) for c in contexts))


@pytest.mark.mpi(ranks=[2, 3])
def test_results_name_the_context_they_came_over(contexts):
    def talk(context, salt):
        size, rank = context.size, context.rank
        A = tw.field((8, 8), init=lambda i, j: i + j + salt, context=context)
        for turn in range(30):
            patterns.send(np.full((1, 2000), float(salt + turn + rank)), (rank + 1) % size, context=context)
            got = patterns.receive(np.zeros((1, 2000)), (rank - 1) % size, context=context)
            assert (got == salt + turn + (rank - 1) % size).all()
            M = np.full((3, 5), float(salt + turn if rank == 0 else -1))
            algorithm = ("auto", "mpi")[turn % 2]
            patterns.broadcast(M, root=0, algorithm=algorithm, context=context)
            assert (M == salt + turn).all()
            assert tw.max(A) == 14 + salt

    together(*(lambda n=n, c=c: talk(c, 1000 * n) for n, c in enumerate(contexts)))


@pytest.mark.mpi(ranks=[2])
@pytest.mark.parametrize("first", [0, 1])
def test_a_thread_that_waits_holds_nobody(contexts, first):
    """One thread waits in a collective call of the library itself for a rank that first wants a message of another."""
    messages, ready = contexts[0], threading.Event()
    rank = messages.rank
    made = []

    def make():
        if rank != first:
            ready.wait(LONG_S)
        made.append(_core.Context.mpi(None, 1))

    def talk():
        if rank == first:
            time.sleep(0.2)  # the other thread is likely to be in its call then
            patterns.send(np.ones((1, 100_000)), 1 - rank, context=messages)
            patterns.receive(np.zeros(1), 1 - rank, context=messages)
        else:
            patterns.receive(np.zeros((1, 100_000)), 1 - rank, context=messages)
            patterns.send(np.ones(1), 1 - rank, context=messages)
        ready.set()

    together(make, talk)
    assert made[0].size == 2
