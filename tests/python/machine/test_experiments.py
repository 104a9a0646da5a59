"""Samples of experiments: as many as were asked for, and together within the time that the experiment took."""

import time

import pytest
from local_ranks import on_ranks

from tilewave import _core

ROUNDS, PASSES, LEAST_STEP_BYTES = 300, 40, 1 << 20
measure = _core.measure


def timed(experiment):
    """What an experiment gives, and the seconds that it took with all that it needs beforehand."""
    begin = time.monotonic()
    found = experiment()
    return found, time.monotonic() - begin


@pytest.mark.parametrize("synchronous", [False, True])
@pytest.mark.parametrize("bytes_", [8, 100_000])
def test_round_trips(bytes_, synchronous):
    """A sample is the way of one message: half of the time until its answer is there."""

    def on_rank(context):
        rank = context.rank
        seat = (1 - rank, rank == 0) if rank < 2 else (-1, False)
        return timed(lambda: measure.round_trips(context._core, *seat, bytes_, ROUNDS, synchronous))

    (found, took_s), (none, _), (neither, _) = on_ranks(3, 1, on_rank)[0]
    assert len(found) == ROUNDS and none == neither == []
    assert min(found) > 0 and 2 * sum(found) <= took_s


@pytest.mark.parametrize("lanes", [0, 1, 2])
@pytest.mark.parametrize("bytes_", [1 << 14, 1 << 21])
def test_passes_over_memory(lanes, bytes_):
    """A sample is one pass of one lane; short ones are repeated within a step, and the first of all does not count."""

    def on_rank(context):
        return timed(lambda: measure.memory(context._core, lanes, bytes_, PASSES))

    ((found, took_s),) = on_ranks(1, 2, on_rank)[0]
    assert len(found) == lanes * PASSES
    assert all(sample > 0 for sample in found)
    assert sum(found) * max(1, LEAST_STEP_BYTES // bytes_) <= max(lanes, 1) * took_s


def test_copies_and_steps():
    found, took_s = timed(lambda: measure.copies(64, 1 << 20, PASSES))
    assert len(found) == PASSES and min(found) > 0 and sum(found) <= took_s
    found, took_s = timed(lambda: measure.steps(50, PASSES))
    assert len(found) == PASSES and min(found) > 0 and sum(found) * 6 * 50 <= took_s  # six steps a tile


def test_hand_overs():
    ((found, took_s),) = on_ranks(1, 2, lambda context: timed(lambda: measure.hand_overs(context._core, 5)))[0]
    assert len(found) == 5 and min(found) > 0 and sum(found) * 100 <= took_s  # of 50 there and back each
