"""What stops one rank stops all of them, with one error, and the next run is fine."""

import gc
import resource

import numpy as np
import pytest

import tilewave as tw
from tilewave.context import interrupts

pytestmark = pytest.mark.mpi(ranks=[2, 3])


@tw.nest
def sweep(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


@tw.nest
def divides(A, B, i, j):
    A[i, j] = A[i-1, j] // B[i, j] + A[i, j-1]
    if B[i, j] == 7:
        raise ValueError("seven")


def field(context, shape=(40, 30)):
    return tw.field(shape, "i8", init=1, context=context)


def works(context):
    A = field(context)
    tw.run(sweep, A=A, context=context)
    plain = np.ones((40, 30), "i8")
    sweep.reference(sweep.iteration_box((40, 30)), {"A": plain})
    whole = A.gather()
    assert whole is None or np.array_equal(whole, plain)


def test_an_interrupt_before_the_ranks_agree(context):
    A = field(context)
    tw.run(sweep, A=A, context=context)
    for rank in range(context.size):
        with pytest.raises(KeyboardInterrupt):
            if context.rank == rank:
                interrupts.keep(KeyboardInterrupt())
            tw.run(sweep, A=A, context=context)
        works(context)


def test_only_the_rank_that_failed_first_is_named(context):
    # The others get empty messages after it, and may fail of what they make of them.
    B = np.ones((40, 30), "i8")
    for rank in range(context.size):
        row = np.array_split(np.arange(40), context.size)[rank][1]
        B[:] = 1
        B[row, 1] = 7
        A = field(context)
        for _ in range(3):
            with pytest.raises(tw.KernelError, match=rf"ValueError\('seven'\) at i={row}, j=1 "):
                tw.run(divides, A=A, B=B, context=context, plan={"grid": (context.size, 1)})
        works(context)


def without_memory(rank, context, more, call):
    """call() while one rank gets no more than `more` bytes."""
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    if context.rank == rank:
        resource.setrlimit(resource.RLIMIT_AS, (used + more, limits[1]))
    try:
        call()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_threads_that_one_rank_cannot_start(context):
    plan = tw.plan(sweep, A=field(context), context=context, plan={"threads": 40, "grid": (context.size, 1)})
    for rank in range(context.size):
        mine = tw.Context(threads=1)  # has started none yet
        A = field(mine)
        gc.collect()  # the threads of the context before end now, not where their memory would serve this one's
        with pytest.raises(MemoryError, match=f"no further thread .* on rank {rank} "):
            without_memory(
                rank, mine, 60 << 20, lambda A=A, plan=plan, mine=mine: tw.run(sweep, A=A, context=mine, plan=plan)
            )
        works(mine)


def test_memory_for_levels_that_one_rank_lacks(context):
    block = 6000 * 2000 * 8 // context.size
    for rank in range(context.size):
        with pytest.raises(MemoryError, match=f"memory ran out on rank {rank}") as error:
            without_memory(
                rank,
                context,
                block * 3 // 2 + (8 << 20),
                lambda: tw.field((6000, 2000), "f8", history=3, context=context),
            )
        assert error.value.agreed  # so that a program which goes on ends as well as any
        works(context)
