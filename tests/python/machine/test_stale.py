"""What looks stale of a machine is named in the report of a run that misses its prediction; nothing is measured."""

import copy
import os
import pickle
import types

import pytest
from local_ranks import on_ranks, results_of

import tilewave as tw
from tilewave.machine import busy, known, machine, stale
from tilewave.machine.measure import measured as measure_now
from tilewave.timeline.parts import PARTS, Parts
from tilewave.machine.stale import looks_stale, misses, suspected_number, suspected_part

@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = 0.5 * (A[i-1, j, k] + A[i, j-1, k])


def parts(**seconds):
    every = {**dict.fromkeys(PARTS, 0.0), **seconds}
    return Parts(total_s=sum(every.values()), **every)


@pytest.mark.parametrize(
    "predicted, measured, part",
    [
        (dict(compute_s=0.05, wait_s=0.03), dict(compute_s=0.05, wait_s=0.2), "messages"),
        (dict(compute_s=0.05, wait_s=0.2), dict(compute_s=0.06, wait_s=0.01), "messages"),  # less than predicted
        (dict(compute_s=0.05, fill_s=0.01), dict(compute_s=0.06, fill_s=0.2), "messages"),
        (dict(compute_s=0.05, wait_s=0.03), dict(compute_s=0.15, wait_s=0.05), "rate"),
        (dict(compute_s=0.05, wait_s=0.03), dict(compute_s=0.01, wait_s=0.02), "rate"),
        # Half of the time ranks wait for the first tile of others, whose body is as slow as their own.
        (dict(compute_s=0.05, fill_s=0.06, drain_s=0.06), dict(compute_s=0.15, fill_s=0.18, drain_s=0.18), "rate"),
        (dict(compute_s=0.05, hand_over_s=0.001), dict(compute_s=0.05, hand_over_s=0.1), "hand-over"),
        # Without messages.
        (dict(compute_s=0.05, fill_s=0.1, drain_s=0.1), dict(compute_s=0.05, fill_s=0.001, drain_s=0.001), "hand-over"),
        # They waited for a hand-over of 0.3 s by prediction, and computing was faster by more than half, too.
        (dict(compute_s=0.002, fill_s=0.2, drain_s=0.1), dict(compute_s=0.0008, fill_s=0.001), "hand-over"),
        (dict(compute_s=0.05, pack_s=0.001), dict(compute_s=0.05, pack_s=0.1), "copies"),
        (dict(compute_s=0.05, wait_s=0.05), dict(compute_s=0.05, wait_s=0.05), None),
        # No one number is to blame.
        (
            dict(compute_s=1.0, wait_s=1.0, hand_over_s=1.0, pack_s=1.0),
            dict(compute_s=2.0, wait_s=2.0, hand_over_s=2.0, pack_s=2.0),
            None,
        ),
    ],
)
def test_the_part_that_explains_most(predicted, measured, part):
    assert suspected_part(parts(**predicted), parts(**measured), messages=part == "messages") == part


def some_machine(**links):
    def link(latency_s, byte_s):
        return machine.Link(latency_s, 3e-7, 2e-7, byte_s, transfer_s=machine.Curve([1], [latency_s]))

    given = {kind: link(*numbers) for kind, numbers in links.items()}
    return types.SimpleNamespace(**{"host_of": [0, 0, 1], "same_host": None, "other_host": None, **given})


def own(latency_s, byte_s):
    return types.SimpleNamespace(latency_s=latency_s, byte_s=byte_s)


NEAR, FAR = [(0, 1, 1 << 20)] * 8, [(1, 2, 1 << 20)] * 8
BOTH = dict(same_host=(1e-6, 1e-10), other_host=(2e-5, 8e-9))
TINY = [(1, 2, 64)] * 100


@pytest.mark.parametrize(
    "links, fresh, messages, longer, found",
    [
        # A link of 1 Gb/s that was measured as one of 10, and the other way round.
        (dict(other_host=(2e-5, 8e-10)), (2e-5, 8e-9), FAR, True, ("bandwidth", "other_host")),
        (dict(other_host=(2e-5, 8e-8)), (2e-5, 8e-9), FAR, False, ("bandwidth", "other_host")),
        # It changed after the context was made: what takes the time.
        (dict(other_host=(2e-5, 8e-10)), (2e-5, 8e-10), FAR, True, ("bandwidth", "other_host")),
        (dict(other_host=(2e-5, 8e-10)), (2e-5, 8e-10), TINY, True, ("latency", "other_host")),
        # What the context measured of the latency is off, too, which explains next to nothing.
        (dict(other_host=(2e-5, 8e-10)), (4e-5, 8e-10), FAR, True, ("bandwidth", "other_host")),
        # Ten times the latency, where bytes would explain it as well.
        (dict(other_host=(5e-6, 8e-9)), (5e-5, 8e-9), [(1, 2, 1000)] * 9, True, ("latency", "other_host")),
        (dict(other_host=(5e-5, 8e-10)), (5e-5, 8e-9), [(1, 2, 10000)] * 9, True, ("bandwidth", "other_host")),
        # Both kinds of neighbours: the one that takes most of the time.
        (BOTH, (2e-5, 8e-9), NEAR + FAR, True, ("bandwidth", "other_host")),
        (BOTH, (2e-5, 8e-9), NEAR, True, ("bandwidth", "same_host")),
        (dict(same_host=(1e-6, 1e-10)), (2e-5, 8e-9), FAR, True, None),  # a machine that knows no such neighbours
        (dict(other_host=(2e-5, 8e-10)), (2e-5, 8e-9), [], True, None),
    ],
)
def test_latency_or_bandwidth(links, fresh, messages, longer, found):
    assert suspected_number(some_machine(**links), own(*fresh), messages, longer) == found


@pytest.mark.parametrize(
    "time_s, predicted_s, missed",
    [
        (0.149, 0.1, False),
        (0.068, 0.1, False),
        (0.151, 0.1, True),
        (0.066, 0.1, True),
        (0.004, 0.001, False),  # too short
        (0.006, 0.001, True),
        (0.001, 0.006, True),
    ],
)
def test_what_misses_a_prediction(time_s, predicted_s, missed):
    assert misses(time_s, predicted_s) == missed


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv(known.VARIABLE)
    monkeypatch.setattr(busy, "queued_s", lambda: 0.0)
    monkeypatch.setattr(stale, "LEAST_S", 0.05)  # what else runs here disturbs less; the lies are of more
    return tmp_path


def measured(ranks, threads):
    """The numbers of such ranks here, found quickly."""
    results = results_of(ranks, threads, lambda context: measure_now(context, True, 0.3, save=False))
    return results[0]


SLOW_BYTE_S, SLOW_LATENCY_S = 2e-6, 0.2


def lie(honest, name):
    """A machine whose messages, or lanes, are slow beyond what any disturbance here could make them."""
    wrong = copy.deepcopy(honest)
    link = wrong.same_host
    if name == "bandwidth":
        link.byte_s = SLOW_BYTE_S
        link.transfer_s = machine.Curve([1, 1 << 24], [link.latency_s, link.latency_s + (1 << 24) * link.byte_s])
    elif name == "latency":
        link.latency_s = SLOW_LATENCY_S
        link.transfer_s = machine.Curve([1, 1 << 24], [link.latency_s, link.latency_s + (1 << 24) * link.byte_s])
    elif name == "hand-over":
        wrong.hand_over_s = 0.3
    return wrong


def runs(context):
    """The last report of some runs: messages of 128 KB between ranks, lanes that wait for each other."""
    A = tw.field((5, 129, 1025), "f8", init=lambda i, j, k: 1.0, context=context)
    choices = {
        "grid": (context.size, 1, 1), "tile": (2, 128, 128), "schedule": "overlapping", "chunk_bytes": 1 << 20,
        "mapping_dim": 2,
    }
    if context.threads > 1:
        choices.update(factors=(1, 2, 1), tile=(4, 64, 128))
    reports = [tw.run(relax, A=A, context=context, plan=choices)]
    before = context._machine
    reports += [tw.run(relax, A=A, context=context, plan=choices) for _ in range(2)]
    assert context._machine is before and len({report.predicted.time_s for report in reports}) == 1
    assert ("looks stale" in str(reports[-1])) == bool(reports[-1].stale)
    assert pickle.loads(pickle.dumps(reports[-1])).stale == reports[-1].stale
    return reports[-1].stale


CASES = [
    ("bandwidth", 2, 1, "bandwidth between ranks of one host (same_host)"),
    ("latency", 2, 1, "latency between ranks of one host (same_host)"),
    ("hand-over", 1, 2, "hand-over between lanes"),
]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two lanes or ranks need two CPUs")
@pytest.mark.parametrize("name, ranks, threads, words", CASES)
def test_a_file_that_lies_is_named_by_the_report(folder, monkeypatch, name, ranks, threads, words):
    path = folder / "given.json"
    lie(measured(ranks, threads), name).save(path)
    monkeypatch.setenv(known.VARIABLE, str(path))
    (text, *others), errors = on_ranks(ranks, threads, runs)
    assert errors == [None] * ranks
    assert words in text and f"`tilewave measure -n {ranks}" in text and not any(others)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two lanes or ranks need two CPUs")
@pytest.mark.parametrize("variable", ["honest", "default"])
@pytest.mark.parametrize("ranks, threads", [(2, 1), (1, 2)])
def test_nothing_looks_stale_of_an_honest_file_nor_without_measured_numbers(
    folder, monkeypatch, variable, ranks, threads
):
    # What else runs here disturbs runs of 1 ms by less; the lies above are farther off.
    monkeypatch.setattr(stale, "FACTOR", 30)
    path = folder / "given.json"
    if variable == "honest":
        measured(ranks, threads).save(path)
    monkeypatch.setenv(known.VARIABLE, "default" if variable == "default" else str(path))
    results = results_of(ranks, threads, runs)
    assert not any(results)


def test_the_rate_of_a_body(monkeypatch):
    context, predicted = tw.Context(threads=1), parts(compute_s=0.05)
    context._machine = types.SimpleNamespace(conditions={"date": "then"})
    plan = types.SimpleNamespace(threads=1, notes={}, predicted=types.SimpleNamespace(time_s=0.05, parts=predicted))
    measured = types.SimpleNamespace(time_s=0.2, parts=parts(compute_s=0.2))
    text = looks_stale(context, plan, measured, list)
    assert text.startswith("rate of the body; if no other program has the CPUs, measure again: `tilewave measure -n 1`")
    plan.notes["given_whole"] = True  # whose tiles may be of a kind that was not measured
    assert looks_stale(context, plan, measured, list) == ""
    plan.notes.clear()
    plan.threads = 10**6  # more lanes than CPUs: a warning said so
    assert looks_stale(context, plan, measured, list) == ""
