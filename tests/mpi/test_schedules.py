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


def refused(kind, text, *arguments, **keywords):
    """All ranks raise one error that has the text, and go on."""
    with pytest.raises(kind, match=text) as raised:
        arguments[0].run(*arguments[1:], **keywords)
    texts = {}
    for rank in range(tw.size):  # the same text everywhere
        texts[rank] = tw.context()._core.broadcast(str(raised.value).encode())
    assert len(set(texts.values())) == 1
    goes_on()


def goes_on():
    A = np.arange(12.0)
    report = tw.Schedule.build(ring, tw.size).run(A=A)
    whole = np.arange(12.0)
    for rank in range(tw.size):
        lo, hi = 12 * rank // tw.size, 12 * (rank + 1) // tw.size
        whole[lo:hi] += whole[lo - 1] if rank else 0
    lo, hi = 12 * tw.rank // tw.size, 12 * (tw.rank + 1) // tw.size
    assert np.array_equal(A[lo:hi], whole[lo:hi])
    if tw.rank == 0:
        events = report.timeline.events
        assert len(events) == sum(tw.Schedule.build(ring, tw.size).steps.values())
        assert events["begin_s"].min() == 0 and report.parts.total_s > 0 and set(events["tag"]) <= {-1, 0}


def test_a_ring(context):
    goes_on()


@pytest.mark.mpi(ranks=[2, 3])
def test_an_interrupt_on_one_rank_ends_long_tasks_on_all(context):
    """It is seen between two of 100 tasks, of which those that come late wait for it."""
    done = []

    def slow(out):
        done.append(0)
        if tw.rank == tw.size - 1 and len(done) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02 if len(done) < 10 else 0.5)

    def many(b):
        A, lane = b.array("A", b.ranks), b.lane()
        for n in range(100):
            lane.task(slow, [], [A[b.rank]], number=n * b.ranks + b.rank)

    with pytest.raises(KeyboardInterrupt):
        tw.Schedule.build(many, tw.size).run(A=np.zeros(tw.size))
    assert len(done) < 100
    goes_on()


@pytest.mark.parametrize("last", [False, True])
def test_a_task_that_raises_on_one_rank(context, last):
    bad = tw.size - 1 if last else 0

    def fails(left, part, out):
        if tw.rank == bad:
            raise ValueError("no such luck")
        add(left, part, out)

    schedule = tw.Schedule.build(lambda b: ring(b, task=fails), tw.size)
    message = f"task {bad} .fails. on rank {bad}: ValueError: no such luck"
    refused(tw.KernelError, message, schedule, A=np.ones(12))


def test_a_task_that_writes_what_it_only_reads(context):
    def writes(left, part, out):
        part[...] = 0

    schedule = tw.Schedule.build(lambda b: ring(b, task=writes), tw.size)
    refused(tw.KernelError, "read-only", schedule, A=np.ones(12))


def test_a_schedule_for_another_number_of_ranks(context):
    refused(tw.ConfigError, "a schedule of 7 ranks", tw.Schedule.build(ring, 7), A=np.ones(12))


def test_different_schedules(context):
    if tw.size == 1:
        return
    schedule = tw.Schedule.build(ring, tw.size, 12, float(tw.rank == tw.size - 1))
    refused(tw.ConfigError, "differ", schedule, A=np.ones(12))


def test_parts_whose_messages_do_not_meet(context):
    if tw.size == 1:
        return

    def more(b):
        ring(b)
        if b.rank == 0:  # nobody receives it
            lane, m = b.lane(), b.send(1, b._arrays[0][0:1], tag=9)
            lane.post_send(m)
            lane.wait(m)

    part = tw.Schedule.build(more, tw.size, rank=tw.rank)
    refused(tw.ConfigError, "from rank 0 to rank 1 do not meet: it sends 2", part, A=np.ones(12))


def test_arrays_that_do_not_fit_on_one_rank(context):
    schedule = tw.Schedule.build(ring, tw.size)
    bad = tw.rank == tw.size - 1
    refused(tw.ConfigError, "array 'A'", schedule, A=np.ones(11 if bad else 12))
    refused(tw.ConfigError, "array 'A'", schedule, A=np.ones(12, "f4" if bad else "f8"))
    refused(tw.ConfigError, "array 'A'", schedule, A=[1.0] * 12 if bad else np.ones(12))
    refused(tw.ConfigError, "array 'B'", schedule, A=np.ones(12), **({"B": np.ones(2)} if bad else {}))


def test_a_mistake_is_an_error_of_all(context):
    if tw.size == 1:
        return

    def forgets(b):
        ring(b)
        if b.rank == 0:
            b._lanes[0]._steps.pop()  # the wait

    refused(tw.ConfigError, "is posted and never waited for", tw.Schedule.build(forgets, tw.size), A=np.ones(12))


def test_the_schedule_of_a_nest_is_that_of_the_run(context):
    A = tw.field((40, 40), init=1.0)
    schedule = tw.schedule(steps, A=A, plan={"tile": (4, 4), "threads": 1})
    assert schedule.ranks == tw.size or schedule.ranks == 1
    assert tw.check(schedule) is None
    assert tw.predict(schedule).time_s > 0
    report = tw.run(steps, A=A, plan={"tile": (4, 4), "threads": 1})
    if tw.rank == 0 and schedule.ranks == tw.size:
        assert len(report.timeline.events) == sum(schedule.steps.values())
    refused(tw.ConfigError, "which tilewave.run runs|ranks was given", schedule, A=np.ones((40, 40)))
