"""What looks stale of a machine is named by what runs take beside what was predicted, and measured again on demand."""

import copy
import dataclasses
import os
import types
import warnings

import pytest
from local_ranks import on_ranks

import tilewave as tw
from tilewave.machine import busy, known, machine, stale
from tilewave.machine.measure import measured as measure_now
from tilewave.timeline.parts import PARTS, Parts
from tilewave.machine.stale import Suspect, queued_s, suspected_number, suspected_part

RUNS = 6


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
    "links, fresh, messages, way, suspect",
    [
        # A link of 1 Gb/s that was measured as one of 10, and the other way round.
        (dict(other_host=(2e-5, 8e-10)), (2e-5, 8e-9), FAR, 1, Suspect("bandwidth", "other_host")),
        (dict(other_host=(2e-5, 8e-8)), (2e-5, 8e-9), FAR, -1, Suspect("bandwidth", "other_host")),
        # It changed after the context was made: what takes the time.
        (dict(other_host=(2e-5, 8e-10)), (2e-5, 8e-10), FAR, 1, Suspect("bandwidth", "other_host")),
        (dict(other_host=(2e-5, 8e-10)), (2e-5, 8e-10), TINY, 1, Suspect("latency", "other_host")),
        # What the context measured of the latency is off, too, which explains next to nothing.
        (dict(other_host=(2e-5, 8e-10)), (4e-5, 8e-10), FAR, 1, Suspect("bandwidth", "other_host")),
        # Ten times the latency, where bytes would explain it as well.
        (dict(other_host=(5e-6, 8e-9)), (5e-5, 8e-9), [(1, 2, 1000)] * 9, 1, Suspect("latency", "other_host")),
        (dict(other_host=(5e-5, 8e-10)), (5e-5, 8e-9), [(1, 2, 10000)] * 9, 1, Suspect("bandwidth", "other_host")),
        # Both kinds of neighbours: the one that takes most of the time.
        (BOTH, (2e-5, 8e-9), NEAR + FAR, 1, Suspect("bandwidth", "other_host")),
        (BOTH, (2e-5, 8e-9), NEAR, 1, Suspect("bandwidth", "same_host")),
        (dict(same_host=(1e-6, 1e-10)), (2e-5, 8e-9), FAR, 1, None),  # a machine that knows no such neighbours
        (dict(other_host=(2e-5, 8e-10)), (2e-5, 8e-9), [], 1, None),
    ],
)
def test_latency_or_bandwidth(links, fresh, messages, way, suspect):
    assert suspected_number(some_machine(**links), own(*fresh), messages, way) == suspect


class FakeCore:
    """A run that took so long."""

    def __init__(self, time_s, measured=None):
        self.time_s, self.interrupted = time_s, False
        self.parts = measured or parts(compute_s=time_s)


def watched(
    monkeypatch,
    times,
    predicted_s=0.1,
    variable="kept.json",
    threads=1,
    oversubscribed=False,
    notes=None,
    watch=None,
):
    """What is said of runs of one kernel that took these times; all of it computing."""
    monkeypatch.setenv(known.VARIABLE, variable)
    if stale.queued_s is queued_s:
        monkeypatch.setattr(stale, "queued_s", lambda: 0.0)  # the runs are none
    watch = watch or stale.Watch()
    core = types.SimpleNamespace(oversubscribed=oversubscribed)
    context = types.SimpleNamespace(_core=core, _machine=types.SimpleNamespace(), _own=core, size=1, threads=1)
    predicted = types.SimpleNamespace(time_s=predicted_s, parts=parts(compute_s=predicted_s))
    plan = types.SimpleNamespace(predicted=predicted, threads=threads, notes=notes or {})
    kernel = types.SimpleNamespace(runs=0, misses=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for time_s in times:
            ready = types.SimpleNamespace(kernel=kernel, plan=plan, context=context, rate=None)
            watch.ran(relax, ready, FakeCore(time_s))
    return [str(one.message) for one in said], watch


@pytest.mark.parametrize(
    "times, more, count",
    [
        ([0.1] * 5, {}, 0),
        ([0.149, 0.068, 0.149, 0.149], {}, 0),
        ([9.0, 0.2], {}, 0),  # the first run of a kernel does not count
        ([9.0, 0.2, 0.2], {}, 1),
        ([0.1, 0.2, 0.2, 0.2, 0.2, 0.2], {}, 1),  # once
        ([0.1, 0.06, 0.06], {}, 1),
        ([0.1, 0.2, 0.1, 0.2, 0.1], {}, 0),  # something else disturbed it
        ([0.1, 0.2, 0.06, 0.2, 0.06], {}, 0),
        ([0.004, 0.004, 0.004], {"predicted_s": 0.001}, 0),  # too short
        ([0.006, 0.006, 0.006], {"predicted_s": 0.001}, 1),
        ([0.001, 0.001, 0.001], {"predicted_s": 0.006}, 1),
        ([0.1, 0.3, 0.3, 0.3], {"threads": 10**6}, 0),  # more lanes than CPUs: that was told
        ([0.1, 0.3, 0.3, 0.3], {"oversubscribed": True}, 0),
        (
            [0.1, 0.3, 0.3, 0.3],
            {"notes": {"given_whole": True}},
            0,
        ),  # whose tiles may be of a kind that was not measured
        ([0.1, 0.3, 0.3, 0.3], {"variable": "default"}, 0),  # the machine's numbers are of none in particular
    ],
)
def test_what_counts(monkeypatch, times, more, count):
    said, watch = watched(monkeypatch, times, **more)
    assert len(said) == count
    for words in ("nest 'relax'", "rate of the body", "TILEWAVE_MACHINE=auto"):
        assert all(words in text for text in said)
    assert watch.wanted is None


def test_auto_wants_it_measured(monkeypatch):
    said, watch = watched(monkeypatch, [0.1, 0.3, 0.3, 0.3, 0.3], variable="auto")
    assert watch.wanted == Suspect("rate", nest="relax") and len(said) == 1
    for words in (
        "took 300 ms where 100 ms was predicted",
        "computing 300 ms (predicted 100)",
        "again at the next call",
    ):
        assert words in said[0]


@pytest.mark.parametrize("queued_s, told", [(0.0, 1), (0.05, 1), (0.15, 0), (1.0, 0)])
def test_no_number_is_stale_where_other_programs_have_the_cpus(monkeypatch, queued_s, told):
    passed = iter(range(100))
    monkeypatch.setattr(stale, "queued_s", lambda: next(passed) * queued_s)
    said, watch = watched(monkeypatch, [0.1, 0.3, 0.3, 0.3], variable="auto")
    assert len(said) == told and (watch.wanted is None) == (told == 0)
    assert len(watched(monkeypatch, [0.1, 0.05, 0.05], variable="auto")[0]) == 1  # shorter than predicted all the same


def test_seconds_in_which_others_had_the_cpu():
    before = stale.queued_s()
    assert 0 <= before <= stale.queued_s()


def test_a_number_that_has_held_may_be_measured_again(monkeypatch):
    # A link that becomes slow a second time, hours later.
    rate = Suspect("rate", nest="relax")

    def after(good_runs):
        said, watch = watched(monkeypatch, [0.1, 0.3, 0.3], variable="auto")
        assert watch.wanted == rate and len(said) == 1
        watch.renewed(rate)
        assert watch.wanted is None
        said, watch = watched(monkeypatch, [0.1] * good_runs + [0.3, 0.3], variable="auto", watch=watch)
        assert len(said) == (watch.wanted is not None)
        return watch.wanted

    assert after(stale.HELD) == rate
    assert after(stale.HELD - 2) is None  # that number is not to blame, or it will not be measured right
    said, watch = watched(monkeypatch, [0.1, 0.3, 0.3], variable="auto")
    watch.renewed(rate)
    broken = [0.1] * (stale.HELD - 2) + [0.3] + [0.1] * (stale.HELD - 2)
    assert watched(monkeypatch, [*broken, 0.3, 0.3], variable="auto", watch=watch)[1].wanted is None


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv(known.VARIABLE)
    monkeypatch.setattr(busy, "queued_s", lambda: 0.0)
    monkeypatch.setattr(stale, "LEAST_S", 0.05)  # what else runs here disturbs less; the lies are of more
    return tmp_path


def measured(ranks, threads):
    """The numbers of such ranks here, found quickly."""
    results, errors = on_ranks(ranks, threads, lambda context: measure_now(context, True, 0.3, save=False))
    assert errors == [None] * ranks
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


def runs(context, warm=lambda context: None):
    """Some runs: messages of 128 KB between ranks, lanes that wait for each other."""
    A = tw.field((5, 129, 1025), "f8", init=lambda i, j, k: 1.0, context=context)
    choices = {
        "grid": (context.size, 1, 1),
        "tile": (2, 128, 128),
        "schedule": "overlapping",
        "chunk_bytes": 1 << 20,
        "mapping_dim": 2,
    }
    if context.threads > 1:
        choices.update(factors=(1, 2, 1), tile=(4, 64, 128))
    found = []
    for turn in range(RUNS):
        if turn == 1:
            warm(context)
        found.append(tw.run(relax, A=A, context=context, **choices).predicted.time_s)
    return found, context


def warned(ranks, threads, body):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        results, errors = on_ranks(ranks, threads, body)
    assert errors == [None] * ranks
    return [one for one in said if "looks stale" in str(one.message)], results


CASES = [
    ("bandwidth", 2, 1, "bandwidth between ranks of one host (same_host)"),
    ("latency", 2, 1, "latency between ranks of one host (same_host)"),
    ("hand-over", 1, 2, "hand-over between lanes"),
]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two lanes or ranks need two CPUs")
@pytest.mark.parametrize("name, ranks, threads, words", CASES)
def test_a_file_that_lies_is_told_once(folder, monkeypatch, name, ranks, threads, words):
    path = folder / "given.json"
    lie(measured(ranks, threads), name).save(path)
    monkeypatch.setenv(known.VARIABLE, str(path))
    said, results = warned(ranks, threads, runs)
    assert len(said) == 1 and words in str(said[0].message), [str(one.message) for one in said]
    assert "tilewave measure -n" in str(said[0].message) and said[0].filename == __file__
    assert all(len(set(found)) == 1 for found, _ in results)  # nothing was planned anew


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two lanes or ranks need two CPUs")
@pytest.mark.parametrize("ranks, threads", [(2, 1), (1, 2)])
def test_an_honest_file_is_not_told(folder, monkeypatch, ranks, threads):
    # What else runs here disturbs runs of 1 ms by less, twice in a row; the lies above are farther off.
    monkeypatch.setattr(stale, "FACTOR", 30)
    path = folder / "given.json"
    measured(ranks, threads).save(path)
    monkeypatch.setenv(known.VARIABLE, str(path))
    assert warned(ranks, threads, runs)[0] == []


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two lanes or ranks need two CPUs")
@pytest.mark.parametrize("name, ranks, threads, words", CASES)
def test_auto_mends_that_number_alone(folder, monkeypatch, name, ranks, threads, words):
    honest = measured(ranks, threads)
    wrong = lie(honest, name)
    assert known.keep(wrong)
    monkeypatch.setenv(known.VARIABLE, known.AUTO)
    said, results = warned(ranks, threads, runs)
    assert len(said) == 1 and words in str(said[0].message)
    after = [context._machine for _, context in results]
    assert all(one == after[0] for one in after)
    if name == "hand-over":
        assert after[0].hand_over_s < wrong.hand_over_s / 2
        assert after[0].memory == wrong.memory and after[0].copy_byte_s == wrong.copy_byte_s
    else:
        assert after[0].same_host.latency_s < SLOW_LATENCY_S / 4 and after[0].same_host.byte_s < SLOW_BYTE_S / 4
        assert (after[0].hand_over_s, after[0].memory) == (wrong.hand_over_s, wrong.memory)
    # It was planned anew with it, on all ranks alike, and is kept for the next launch.
    predicted = [found for found, _ in results]
    assert all(found == predicted[0] for found in predicted) and predicted[0][-1] < predicted[0][0]
    kept = tw.Machine.load(known.cache_path(wrong.conditions))
    assert kept == after[0] and "renewed" in kept.conditions


def test_auto_measures_the_rate_of_a_body_again(folder, monkeypatch):
    assert known.keep(measured(1, 1))
    monkeypatch.setenv(known.VARIABLE, known.AUTO)

    def slow_rate(context):
        for key in list(context._rates):
            rates = context._rates.get(key)
            rates.measured = [(plan, dataclasses.replace(rate, point_s=1e-6)) for plan, rate in rates.measured]
        context._prepared.clear()
        context._plans.clear()

    said, [(predicted, context)] = warned(1, 1, lambda context: runs(context, slow_rate))
    assert len(said) == 1 and "rate of the body of nest 'relax'" in str(said[0].message)
    assert all(rate.point_s < 0.5e-6 for rates in context._rates.values() for _, rate in rates.measured)
    assert predicted[-1] < predicted[1] / 2
    assert context._machine.kernels["relax"]["point_s"] < 0.5e-6
    assert tw.Machine.load(known.cache_path(context._machine.conditions)).kernels == context._machine.kernels
