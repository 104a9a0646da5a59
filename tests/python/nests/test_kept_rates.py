"""Rates on disk: a program that runs again measures nothing, and what is wrong with a file costs a measurement only."""

import time

import numpy as np
import pytest

import tilewave as tw
from tilewave import _core
from tilewave.nests.plan_changes import kept_rates
from tilewave.machine.measure import measured as measure_now
from tilewave.nests import kernel_maker


@tw.nest
def add(H, B, i, j):
    H[i, j] = H[i-1, j] + 0.5 * H[i, j-1] + B[i, j]


SHAPE = 300, 400


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """The measurements of a launch that has rates of its own, on an idle machine."""
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kept_rates, "launch_of", lambda context: "this one")
    monkeypatch.setattr(kept_rates, "queued_s", lambda: 0.0)
    found, sampled = [], kernel_maker.sampled

    def spy(given, prepared, budget_s):
        found.append(prepared)
        return sampled(given, prepared, budget_s)

    monkeypatch.setattr(kernel_maker, "sampled", spy)
    return found


def planned(shape=SHAPE):
    """The plan of a nest in a context that knows nothing."""
    context = tw.Context(threads=1)
    values = np.random.default_rng(3).random(shape)
    H, B = tw.field(shape, init=values, context=context), tw.field(shape, init=1.0, context=context)
    report = tw.run(add, H=H, B=B, context=context)
    for i in range(1, shape[0]):
        for j in range(1, shape[1]):
            values[i, j] = values[i-1, j] + 0.5 * values[i, j-1] + 1.0
    assert np.array_equal(H.gather(), values)
    return report.plan


def test_a_program_that_runs_again_measures_nothing(measured, tmp_path):
    first = planned()
    count = len(measured)
    again = planned()
    assert count and len(measured) == count
    assert again == first and again.predicted.time_s == first.predicted.time_s
    assert "kept from" in again.notes["rate"]["note"] and "kept from" not in first.notes["rate"]["note"]
    planned((301, 900))
    assert len(measured) > count
    for path in tmp_path.glob("*" + kept_rates.SUFFIX):
        path.write_bytes(path.read_bytes()[:-3])
    count = len(measured)
    assert "kept from" not in planned().notes["rate"]["note"] and len(measured) > count


def test_rates_that_are_old_are_measured_again(measured, monkeypatch):
    planned()
    count, now = len(measured), time.time()
    monkeypatch.setattr(time, "time", lambda: now + kept_rates.MOST_AGE_S + 10)
    planned()
    assert len(measured) > count


@pytest.mark.parametrize(
    "age_s, good",
    [(0.0, True), (kept_rates.MOST_AGE_S - 60, True), (kept_rates.MOST_AGE_S + 60, False), (-3600.0, False)],
)
def test_a_rate_is_good_for_some_time_from_when_it_was_kept_on(monkeypatch, tmp_path, age_s, good):
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kept_rates, "queued_s", lambda: 0.0)
    context, now = tw.Context(threads=1), time.time()
    with monkeypatch.context() as then:
        then.setattr(time, "time", lambda: now - age_s)
        rate = _core.MeasuredRate(_core.Plan(), _core.KernelRate(1e-9, 0.0, 0.0), note="measured")
        kept_rates.Store(context, "this one").keep("key", [rate], 1)
    (found,) = kept_rates.Store(context, "this one").read(["key"])
    assert len(found) == good


def test_rates_belong_to_a_machine_as_it_was_measured():
    context = tw.Context(threads=1)
    machine = measure_now(context, True, 0.2, save=False)
    first = kept_rates.launch_of(context)
    machine.conditions["date"] = "later"
    assert first and kept_rates.launch_of(context) != first


def test_what_is_measured_beside_other_work_is_not_kept(measured, monkeypatch, tmp_path):
    monkeypatch.setattr(kept_rates, "queued_s", time.perf_counter)
    planned()
    assert not list(tmp_path.glob("*" + kept_rates.SUFFIX)) and measured


def test_a_number_for_any_body_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path))
    context = tw.Context(threads=1)
    monkeypatch.setattr(kept_rates, "queued_s", lambda: 0.0)
    store = kept_rates.Store(context, "this one")
    store.keep("key", [_core.MeasuredRate(_core.Plan(), _core.KernelRate(1e-9), note="not measured: no points")], 1)
    assert store.read(["key"]) == [[]]
    assert kept_rates.launch_of(context) == ""  # as TILEWAVE_MACHINE=default has it


def test_brief_runs_of_one_body_are_measured_once(measured):
    context = tw.Context(threads=1)
    for n in (40, 30, 20, 10, 5):
        H, B = (tw.field((n, n), init=1.0, context=context) for _ in range(2))
        tw.run(add, H=H, B=B, plan={"storage": "plain"}, context=context)
    assert len(measured) == 1
