"""Measuring over ranks: the same numbers everywhere, within its time, and what is wrong on one rank alone."""

import collections
import itertools
import json
import os
import sys
import time
import types

import pytest

import tilewave as tw
from tilewave import _core
from tilewave.allgather import allgather
from tilewave.machine import busy, known, measure as measuring
from tilewave.machine.measure import Session, measured

pytestmark = pytest.mark.mpi(ranks=[1, 2, 3, 4, 6])
BUDGET_S = 0.2


@pytest.fixture
def cache(monkeypatch, request):
    """A folder of this test's own in the session's cache, and measuring allowed, as if nothing else ran."""
    monkeypatch.setattr(busy, "queued_s", lambda: 0.0)
    folder = os.path.join(os.environ["TILEWAVE_CACHE_DIR"], request.node.name.replace("/", "_"))
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", folder)
    monkeypatch.delenv(known.VARIABLE)
    return folder


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.sample(3)
def test_all_ranks_have_the_same_numbers(cache, threads, quick):
    context = tw.Context(threads=threads)
    found = measured(context, quick, BUDGET_S)
    texts = allgather(context, found._to_text())
    assert len(set(texts)) == 1
    assert tw.Machine._from_text(texts[0], "it") == found  # what is measured would be loaded
    assert found.host_of == [0] * context.size and found.other_host is None
    assert (found.same_host is None) == (context.size == 1)
    assert len(found.memory) == context.size * threads
    core = context._core.machine()
    assert core.latency_s == found.latency_s == known.startup_machine(context).latency_s
    if found.same_host:
        assert core.same_host.byte_s == found.same_host.byte_s and found.same_host.transfer_s.x[0] == 1


@tw.nest
def relax(A, i, j):
    A[i, j] = 0.5 * (A[i - 1, j] + A[i, j - 1])


@pytest.mark.sample(2)
def test_the_rate_of_a_kernel(cache, monkeypatch):
    context = tw.Context()
    monkeypatch.setattr(sys.modules["tilewave.nests.doors.measuring"], "BUDGET_S", {False: BUDGET_S, True: BUDGET_S})
    A = tw.field((200, 300), "f8", init=lambda i, j: 1.0, context=context)
    found = tw.measure(True, context, relax, A=A)
    rate = found.kernels["relax"]
    assert rate["point_s"] + rate["row_s"] > 0 and "measured on" in rate["note"]
    texts = allgather(context, found._to_text())
    assert len(set(texts)) == 1 and tw.Machine._from_text(texts[0], "it") == found
    assert "relax" in str(found)
    with pytest.raises(tw.ConfigError, match="needs its array 'A'"):
        tw.measure(True, context, relax)


def test_it_ends_in_time(cache, monkeypatch):
    """Where the first experiment takes all of the time, each of the others is made as seldom as it can be."""
    runs, clock, run = [], itertools.count(), Session.run
    monkeypatch.setattr(measuring, "time", types.SimpleNamespace(perf_counter=lambda: next(clock), monotonic=time.time))
    monkeypatch.setattr(Session, "run", lambda *given, **more: (runs.append(given[1]), run(*given, **more))[1])
    measured(tw.Context(), False, 0.3)
    assert len(runs) < 100, collections.Counter(each.__name__ for each in runs)


@pytest.mark.sample(1)
def test_a_first_run_does_not_measure_and_a_later_one_does(cache, monkeypatch):
    """Numbers are assumed until runs have taken so long that measuring costs little."""

    @tw.nest
    def add(A, i, j):
        A[i, j] = A[i - 1, j] + A[i, j - 1]

    monkeypatch.setattr(measuring, "BUDGET_S", {True: 0.1})
    context = tw.Context()
    for k in range(2):
        tw.run(add, A=tw.field((40 + k, 50), init=1.0, context=context))
        assert context._assumed and "date" not in context._machine.conditions
    times = allgather(context, context._core.ran_s)
    assert times[0] > 0 and len(set(times)) == 1
    assert not any(name.startswith("machine-") for name in os.listdir(cache))
    monkeypatch.setattr(measuring, "WORTH", 0)
    tw.run(add, A=tw.field((40, 50), init=1.0, context=context))
    assert not context._assumed and context._machine.conditions["date"]


def test_it_is_kept_and_later_contexts_use_it(cache):
    context = tw.Context()
    assert context._machine is None
    found = measured(context, True, BUDGET_S)
    context._core.barrier()  # rank 0 has written it
    later = tw.Context()
    assert later._machine == found and measuring.of(later) is later._machine
    assert later._core.machine().chunk_s == found.chunk_s
    assert tw.Context(threads=3)._machine is None


def test_a_rank_that_sees_another_file(cache, monkeypatch, tmp_path):
    """Rank 0's file is everyone's."""
    context = tw.Context()
    found = measured(context, True, BUDGET_S)
    if context.rank > 0:
        monkeypatch.setenv(known.VARIABLE, str(tmp_path / "none.json"))
        monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path))
    context._core.barrier()
    assert measuring.of(tw.Context()) == found


@pytest.mark.parametrize(
    "spoil, words",
    [
        (None, "no machine can be read"),
        (lambda data: data.update(format=99), "field format: found 99; allowed: 1"),
        (lambda data: data.update(byte_s=-1), "field byte_s: found -1; allowed: a finite number > 0"),
        (lambda data: data.update(cache_bytes=10**400), "field cache_bytes: found 1000"),
        (lambda data: data.update(host_of=[1 << 70]), "field host_of[0]: found 1180591620717411303424"),
        (lambda data: data["conditions"].update(threads=7), "field conditions.threads: found 7; allowed: 1"),
        (lambda data: data["conditions"].update(hosts=["elsewhere"]), "field conditions.hosts: found ['elsewhere']"),
    ],
)
def test_a_given_file_that_does_not_do(cache, monkeypatch, tmp_path, spoil, words):
    context = tw.Context()
    path = os.path.join(cache, "given.json")
    if spoil and context.rank == 0:
        data = json.loads(tw.Machine._from_core(known.startup_machine(context), known.conditions(_alone()))._to_text())
        data["conditions"]["ranks"] = context.size
        data["conditions"]["hosts"] *= context.size
        spoil(data)
        os.makedirs(cache, exist_ok=True)
        with open(path, "w") as file:
            json.dump(data, file)
    monkeypatch.setenv(known.VARIABLE, path)
    context._core.barrier()
    context = tw.Context()  # patterns go on with what it measured itself
    for _ in range(2):
        with pytest.raises(tw.ConfigError) as error:
            measuring.of(context)
        assert "given.json" in str(error.value) and words in str(error.value)
    assert len(set(allgather(context, str(error.value)))) == 1


def _alone():
    return tw.Context._of(_core.Context.local(_core.LocalFabric(1), 0, 1))


@pytest.mark.sample(1)
def test_a_spoilt_kept_file_is_measured_anew(cache):
    context = tw.Context()
    measured(context, True, BUDGET_S)
    if context.rank == 0:
        path = known.cache_path(machine_conditions := context._machine.conditions)
        assert machine_conditions["ranks"] == context.size
        path.write_text(path.read_text()[:200])
    context._core.barrier()
    if context.rank == 0:
        with pytest.warns(RuntimeWarning, match="the stored machine is not used"):
            context = tw.Context()
    else:
        context = tw.Context()
    assert context._machine is None
    found = measured(context, True, BUDGET_S)
    context._core.barrier()
    assert tw.Context()._machine == found


@pytest.mark.parametrize("failing", [0, 1])
def test_one_rank_is_given_nonsense(failing):
    context = tw.Context()
    failing %= context.size
    with pytest.raises(tw.ConfigError, match="quick: given 3; allowed: True, False"):
        tw.measure(quick=3 if context.rank == failing else True, context=context)
    if context.size > 1:
        with pytest.raises(tw.ConfigError, match="different arguments"):
            tw.measure(quick=context.rank == failing, context=context)


@pytest.mark.parametrize("failing", [0, 1])
def test_an_experiment_fails_on_one_rank_alone(failing):
    context = tw.Context()
    failing %= context.size
    session = Session(context, True, 1.0)

    def experiment(core):
        if core.rank == failing:
            raise MemoryError("no room")
        return [1.0]

    with pytest.raises(MemoryError, match="no room"):
        session.run(experiment)
    assert session.run(lambda core: core.rank) == list(range(context.size))
