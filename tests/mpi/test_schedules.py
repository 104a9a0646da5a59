"""Schedules that were built step by step: what is wrong on one rank is one error on all of them."""

import os
import signal
import time

import numpy as np
import pytest

import tilewave as tw
from rings import add, ring

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])


@tw.nest
def steps(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


def refused(context, kind, text, *arguments, **keywords):
    """All ranks raise one error that has the text, and go on."""
    with pytest.raises(kind, match=text) as raised:
        arguments[0].run(*arguments[1:], context=context, **keywords)
    texts = {}
    for rank in range(context.size):  # the same text everywhere
        texts[rank] = context._core.broadcast(str(raised.value).encode())
    assert len(set(texts.values())) == 1
    goes_on(context)


def goes_on(context):
    A = np.arange(12.0)
    report = tw.Schedule.build(ring, context.size).run(context=context, A=A)
    whole = np.arange(12.0)
    for rank in range(context.size):
        lo, hi = 12 * rank // context.size, 12 * (rank + 1) // context.size
        whole[lo:hi] += whole[lo - 1] if rank else 0
    lo, hi = 12 * context.rank // context.size, 12 * (context.rank + 1) // context.size
    assert np.array_equal(A[lo:hi], whole[lo:hi])
    if context.rank == 0:
        events = report.timeline.events
        assert len(events) == sum(tw.Schedule.build(ring, context.size).steps.values())
        assert events["begin_s"].min() == 0 and report.parts.total_s > 0 and set(events["tag"]) <= {-1, 0}


def test_a_ring(context):
    goes_on(context)


@pytest.mark.mpi(ranks=[2, 3])
def test_an_interrupt_on_one_rank_ends_long_tasks_on_all(context):
    """Of 100 tasks of 0.02 s few are left out by the time alone: an interrupt is seen between two of them."""
    done = []

    def slow(out):
        done.append(0)
        if context.rank == context.size - 1 and len(done) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)

    def many(b):
        A, lane = b.array("A", b.ranks), b.lane()
        for n in range(100):
            lane.task(slow, [], [A[b.rank]], number=n * b.ranks + b.rank)

    with pytest.raises(KeyboardInterrupt):
        tw.Schedule.build(many, context.size).run(context=context, A=np.zeros(context.size))
    assert len(done) < 100
    goes_on(context)


@pytest.mark.parametrize("last", [False, True])
def test_a_task_that_raises_on_one_rank(context, last):
    bad = context.size - 1 if last else 0

    def fails(left, part, out):
        if context.rank == bad:
            raise ValueError("no such luck")
        add(left, part, out)

    schedule = tw.Schedule.build(lambda b: ring(b, task=fails), context.size)
    message = f"task {bad} .fails. on rank {bad}: ValueError: no such luck"
    refused(context, tw.KernelError, message, schedule, A=np.ones(12))


def test_a_task_that_writes_what_it_only_reads(context):
    def writes(left, part, out):
        part[...] = 0

    schedule = tw.Schedule.build(lambda b: ring(b, task=writes), context.size)
    refused(context, tw.KernelError, "read-only", schedule, A=np.ones(12))


def test_a_schedule_for_another_number_of_ranks(context):
    refused(context, tw.ConfigError, "a schedule of 7 ranks", tw.Schedule.build(ring, 7), A=np.ones(12))


def test_different_schedules(context):
    if context.size == 1:
        return
    schedule = tw.Schedule.build(ring, context.size, 12, float(context.rank == context.size - 1))
    refused(context, tw.ConfigError, "differ", schedule, A=np.ones(12))


def test_parts_whose_messages_do_not_meet(context):
    if context.size == 1:
        return

    def more(b):
        ring(b)
        if b.rank == 0:  # nobody receives it
            lane, m = b.lane(), b.send(1, b._arrays[0][0:1], tag=9)
            lane.post_send(m)
            lane.wait(m)

    part = tw.Schedule.build(more, context.size, rank=context.rank)
    refused(context, tw.ConfigError, "from rank 0 to rank 1 do not meet: it sends 2", part, A=np.ones(12))


def test_arrays_that_do_not_fit_on_one_rank(context):
    schedule = tw.Schedule.build(ring, context.size)
    bad = context.rank == context.size - 1
    refused(context, tw.ConfigError, "array 'A'", schedule, A=np.ones(11 if bad else 12))
    refused(context, tw.ConfigError, "array 'A'", schedule, A=np.ones(12, "f4" if bad else "f8"))
    refused(context, tw.ConfigError, "array 'A'", schedule, A=[1.0] * 12 if bad else np.ones(12))
    refused(context, tw.ConfigError, "array 'B'", schedule, A=np.ones(12), **({"B": np.ones(2)} if bad else {}))


def test_a_mistake_is_an_error_of_all(context):
    if context.size == 1:
        return

    def forgets(b):
        ring(b)
        if b.rank == 0:
            b._lanes[0]._steps.pop()  # the wait

    refused(
        context,
        tw.ConfigError,
        "is posted and never waited for",
        tw.Schedule.build(forgets, context.size),
        A=np.ones(12),
    )


def test_the_schedule_of_a_nest_is_that_of_the_run(context):
    A = tw.field((40, 40), init=1.0, context=context)
    schedule = tw.schedule(steps, A=A, plan={"tile": (4, 4), "threads": 1}, context=context)
    assert schedule.ranks == context.size or schedule.ranks == 1
    assert tw.check(schedule) is None
    assert tw.predict(schedule).time_s > 0
    report = tw.run(steps, A=A, plan={"tile": (4, 4), "threads": 1}, context=context)
    if context.rank == 0 and schedule.ranks == context.size:
        assert len(report.timeline.events) == sum(schedule.steps.values())
    refused(context, tw.ConfigError, "which tilewave.run runs|ranks was given", schedule, A=np.ones((40, 40)))
