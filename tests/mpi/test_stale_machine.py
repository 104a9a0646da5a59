"""A machine that lies, on ranks that are processes: one warning on rank 0, and all ranks mend the number together."""

import copy
import os
import warnings

import pytest

import tilewave as tw
from tilewave.machine import busy, known, machine, stale
from tilewave.machine.measure import measured

pytestmark = [pytest.mark.mpi(ranks=[2]), pytest.mark.filterwarnings("ignore:.*more than the:RuntimeWarning")]


@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = 0.5 * (A[i-1, j, k] + A[i, j-1, k])


@pytest.fixture
def lying(monkeypatch, request):
    """A context's honest numbers, and the same with the latency of messages 0.2 s; a cache of this test's own."""
    folder = os.path.join(os.environ["TILEWAVE_CACHE_DIR"], request.node.name.replace("/", "_"))
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", folder)
    monkeypatch.delenv(known.VARIABLE)
    monkeypatch.setattr(busy, "queued_s", lambda: 0.0)
    monkeypatch.setattr(stale, "LEAST_S", 0.05)  # what else runs here disturbs less; the lie is of more
    context = tw.Context()
    if context._core.oversubscribed:
        pytest.skip("with more ranks than CPUs nothing is said of a machine")
    honest = measured(context, True, 0.3, save=False)
    wrong = copy.deepcopy(honest)
    wrong.same_host.latency_s = 0.2
    wrong.same_host.transfer_s = machine.Curve([1, 1 << 24], [0.2, 0.2 + (1 << 24) * honest.same_host.byte_s])
    return context, honest, wrong


def runs(context):
    """What is said on this rank, and what was predicted of each run."""
    A = tw.field((7, 129, 1025), "f8", init=lambda i, j, k: 1.0, context=context)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = [
            tw.run(
                relax,
                A=A,
                context=context,
                grid=(context.size, 1, 1),
                tile=(3, 128, 128),
                mapping_dim=2,
                schedule="overlapping",
                chunk_bytes=1 << 20,
            ).predicted.time_s
            for _ in range(6)
        ]
    return [str(one.message) for one in said if "looks stale" in str(one.message)], found


def test_rank_0_tells_once(lying, monkeypatch):
    context, _, wrong = lying
    path = os.path.join(os.environ["TILEWAVE_CACHE_DIR"], "given.json")
    if context.rank == 0:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        wrong.save(path)
    monkeypatch.setenv(known.VARIABLE, path)
    context._core.barrier()
    context = tw.Context()
    said, predicted = runs(context)
    assert len(set(predicted)) == 1
    assert len(said) == (context.rank == 0)
    assert all("latency between ranks of one host (same_host)" in text for text in said)
    assert context._machine == wrong


def test_all_ranks_mend_it_together(lying, monkeypatch):
    context, _, wrong = lying
    if context.rank == 0:
        assert known.keep(wrong)
    monkeypatch.setenv(known.VARIABLE, known.AUTO)
    context._core.barrier()
    context = tw.Context()
    assert context._machine == wrong
    said, predicted = runs(context)
    found = context._machine
    assert found.same_host.latency_s < wrong.same_host.latency_s / 4 and predicted[-1] < predicted[0]
    assert (found.memory, found.step_s) == (wrong.memory, wrong.step_s)
    assert len(said) == (context.rank == 0)
    every = known.share(context, [found._to_text(), predicted])
    assert all(one == every[0] for one in every)
    context._core.barrier()
    assert tw.Context()._machine == found


def test_only_rank_0_s_variable_counts(lying, monkeypatch):
    context, _, wrong = lying
    if context.rank == 0:
        assert known.keep(wrong)
    else:
        monkeypatch.setenv(known.VARIABLE, known.AUTO)
    context._core.barrier()
    context = tw.Context()
    runs(context)
    assert context._machine == wrong
