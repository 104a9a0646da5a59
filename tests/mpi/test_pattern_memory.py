"""A pattern for which one rank lacks memory is a MemoryError of all, and the next call is fine."""

import gc
import mmap
import resource

import numpy as np
import pytest

import tilewave as tw
from tilewave import patterns

pytestmark = pytest.mark.mpi(ranks=[2, 3])

MORE = 16 << 20  # bytes that the rank still gets: for all but the blocks of 72 MB and more
# Of a block. The C library reserves up to 64 MB for each thread, and blocks within are not counted.
DOUBLES = 9_000_000


@pytest.fixture
def context():
    return tw.Context(threads=1)  # which keeps no memory of calls before


def without_memory(rank, context, call):
    """call() while one rank gets no more than `MORE` bytes of memory."""
    gc.collect()  # arrays of tests before must not make room meanwhile
    used = int(open("/proc/self/statm").read().split()[0]) * mmap.PAGESIZE
    limits = resource.getrlimit(resource.RLIMIT_AS)
    if context.rank == rank:
        resource.setrlimit(resource.RLIMIT_AS, (used + MORE, limits[1]))
    try:
        return call()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def big(context):
    """Calls that need more memory than what they are given, and the ranks that do."""
    size = context.size
    strided = np.zeros((DOUBLES, 2))[:, :1]  # zeros take no memory where nobody writes
    long, out = np.zeros((1, DOUBLES)), np.zeros((1, DOUBLES))
    whole, part = np.zeros((1, size * DOUBLES)), np.zeros((1, DOUBLES))
    chunk = {"chunk_bytes": 8 * DOUBLES, "buffers": 2, "context": context}
    everyone = range(size)
    return {
        "broadcast": (lambda: patterns.broadcast(strided, algorithm="ring", **chunk), everyone),
        "reduce": (lambda: patterns.reduce(long, out=out, algorithm="tree", **chunk), [0]),
        "spread": (lambda: patterns.spread(part, context=context), everyone),
        "multi_reduce": (lambda: patterns.multi_reduce(whole, part, algorithm="direct", **chunk), everyone),
        "prepared": (lambda: patterns.broadcast(strided, algorithm="ring", start=False, **chunk), everyone),
        "in flight": (lambda: patterns.broadcast(strided, algorithm="ring", wait=False, **chunk).wait(), everyone),
    }


@pytest.mark.parametrize("name", ["broadcast", "reduce", "spread", "multi_reduce", "prepared", "in flight"])
@pytest.mark.sample(3)
def test_one_rank_lacks_memory(context, name):
    call, ranks = big(context)[name]
    for rank in ranks:
        with pytest.raises(MemoryError, match=f"rank {rank} has not the memory .*; nothing was moved") as error:
            without_memory(rank, context, call)
        assert error.value.agreed
        assert (patterns.allreduce(np.ones((2, 3)), context=context) == context.size).all()
    call()


@pytest.mark.sample(1)
def test_one_rank_lacks_memory_for_the_result_of_a_call_like_the_last(context):
    part = np.zeros((1, DOUBLES))
    for rank in range(context.size):
        patterns.spread(part, context=context)
        for _ in range(2):
            with pytest.raises(MemoryError, match=f"rank {rank} has not the memory .*; nothing was moved") as error:
                without_memory(rank, context, lambda: patterns.spread(part, context=context))
            assert error.value.agreed
    assert patterns.spread(part, context=context).shape == (1, context.size * DOUBLES)


def test_calls_that_find_their_memory_are_right(context):
    size, rank = context.size, context.rank
    for columns in (5000, 5000, 7000, 5000, 5000):  # like the call before or not: made anew, or found
        mine = np.full((3, columns + rank), float(rank))
        out = np.zeros((3, sum(columns + r for r in range(size))))
        for _ in range(3):
            out[:] = -1
            patterns.spread(mine, out, context=context)
            assert (out == np.repeat(np.arange(size), [columns + r for r in range(size)])).all()
            assert (patterns.spread(mine, context=context) == out).all()
    for given in range(4):  # the parts of others change, this rank's does not
        mine = np.ones((3, 4000 + (given if rank == size - 1 else 0)))
        out = np.zeros((3, 4000 * size + given))
        patterns.spread(mine, out, context=context)
        assert (out == 1).all()
