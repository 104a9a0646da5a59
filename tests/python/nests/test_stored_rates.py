"""Rates on disk: a program that runs again measures nothing, and what is wrong with a file costs a measurement only."""

import numpy as np
import pytest

import tilewave as tw
from tilewave import _core
from tilewave.machine.measure import measured as measure_now
from tilewave.nests.plan import choosing
from tilewave.nests.plan import kernel_maker


@tw.nest
def add(H, B, i, j):
    H[i, j] = H[i - 1, j] + 0.5 * H[i, j - 1] + B[i, j]


SHAPE = 300, 400


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """The measurements of a launch that has rates of its own, however busy this machine is."""
    monkeypatch.setenv("TILEWAVE_CACHE_DIR", str(tmp_path))
    found, sampled = [], kernel_maker.sampled

    def launch(context):
        _core.rate_store(context._core).renewed_spread = 1e9
        return "this one"

    def spy(context, given, prepared, budget_s):
        found.append(prepared)
        return sampled(context, given, prepared, budget_s)

    monkeypatch.setattr(choosing, "launch_of", launch)
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
            values[i, j] = values[i - 1, j] + 0.5 * values[i, j - 1] + 1.0
    assert np.array_equal(H.gather(), values)
    return report.plan


def test_a_program_that_runs_again_measures_nothing(measured, tmp_path):
    first = planned()
    count = len(measured)
    again = planned()
    assert count and len(measured) == count
    assert again == first and again.predicted.time_s == first.predicted.time_s
    assert "stored 20" in again.notes["rate"]["note"] and "stored 20" not in first.notes["rate"]["note"]
    for path in tmp_path.glob("*.rates"):
        path.write_bytes(path.read_bytes()[:-3])
    count = len(measured)
    assert "stored 20" not in planned().notes["rate"]["note"] and len(measured) > count


def test_rates_belong_to_a_machine_as_it_was_measured():
    context = tw.Context(threads=1)
    machine = measure_now(context, True, 0.2, save=False)
    machine.conditions.pop("busy", None)
    first = choosing.launch_of(context)
    machine.conditions["date"] = "later"
    assert first and choosing.launch_of(context) != first
    machine.conditions["busy"] = 0.5
    beside = choosing.launch_of(context)
    machine.conditions["date"] = "later still"
    assert beside and choosing.launch_of(context) == beside


def test_no_rates_are_stored_where_no_machine_is():
    assert choosing.launch_of(tw.Context(threads=1)) == ""  # TILEWAVE_MACHINE=default


def test_brief_runs_of_one_body_are_measured_once(measured):
    context = tw.Context(threads=1)
    for n in (40, 30, 20, 10, 5):
        H, B = (tw.field((n, n), init=1.0, context=context) for _ in range(2))
        tw.run(add, H=H, B=B, plan={"storage": "plain"}, context=context)
    assert len(measured) == 1


@tw.nest
def look_up(H, T, a, b, i, j):
    H[i, j] = max(H[i - 1, j - 1] + T[a[i], b[j]], H[i, j - 1])


def test_tables_that_are_looked_up_otherwise_have_rates_of_their_own(measured):
    context = tw.Context(threads=1)
    a = b = np.zeros(SHAPE[0], "i1")
    H = tw.field((SHAPE[0], SHAPE[0]), "i2", context=context)
    for letters in (4, 24):
        tw.plan(look_up, H=H, T=np.ones((letters, letters), "i2"), a=a, b=b, context=context)
    assert len({each.kernel._recipe.choices.layouts for each in measured}) == 2
