"""Plans and machines are values: changing one changes nothing that others have."""

import copy

import numpy as np
import pytest

import tilewave as tw
from tilewave.machine import known, machine
from tilewave.nests.doors.measuring import measure
from tilewave.plan.plan import CHOICES


@tw.nest
def relax(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


@pytest.fixture
def context():
    return tw.Context(threads=1)


def change(plan):
    plan.tile, plan.storage, plan.row, plan.poll_period_s = (1, 1), "plain", (), 0.0
    for record in plan.ranked:
        record["choices"]["tile"] = None
        record["parts"]["total_s"] = -1.0
    plan.ranked.clear()
    plan.notes["rate"]["point_s"] = -1.0
    plan.notes["loops"].clear()
    plan.notes["nest"] = "other"
    plan.memory_bytes = 1


@pytest.mark.parametrize("of", ["plan", "report", "report of a given plan"])
def test_an_edited_plan_changes_no_other_run(context, of):
    A = tw.field((40, 50), init=lambda i, j: 1.0, context=context)
    first = tw.plan(relax, A=A, context=context)
    kept, text = copy.deepcopy(first), first.explain()
    if of == "plan":
        change(first)
    elif of == "report":
        change(tw.run(relax, A=A, context=context).plan)
    else:
        given = copy.deepcopy(first)
        change(tw.run(relax, A=A, context=context, plan=given).plan)
        assert given == kept and given.notes == kept.notes
        assert tw.run(relax, A=A, context=context, plan=given).plan.memory_bytes == kept.memory_bytes
        given.tile = (2, 3)
        report = tw.run(relax, A=A, context=context, plan=given)
        assert report.plan.tile == (2, 3) == report._core.plan.tile
        given.tile = (4, 3)
        assert report.plan.tile == (2, 3)
    for _ in range(2):
        report = tw.run(relax, A=A, context=context)
        assert report.plan == kept and report.plan.choices() == tuple(
            getattr(report._core.plan, name) for name in CHOICES
        )
        assert (report.plan.ranked, report.plan.notes, report.plan.memory_bytes) == (
            kept.ranked,
            kept.notes,
            kept.memory_bytes,
        )
    assert tw.plan(relax, A=A, context=context).explain() == text


def test_what_is_predicted_cannot_be_changed(context):
    predicted = tw.plan(relax, A=np.ones((40, 50)), context=context).predicted
    with pytest.raises(AttributeError):
        predicted.time_s = 0.0
    with pytest.raises(AttributeError):
        predicted.parts.total_s = 0.0


@pytest.mark.parametrize(
    "name, meant",
    [("tiles", "tile"), ("storge", "storage"), ("lookahed", "lookahead"), ("time_blocks", "temporal_block")],
)
def test_a_misspelt_attribute_of_a_plan(context, name, meant):
    plan = tw.plan(relax, A=np.ones((40, 50)), context=context)
    with pytest.raises(
        tw.ConfigError, match=f"Plan has no attribute '{name}'; allowed: {meant}, .* Was '{meant}' meant"
    ):
        setattr(plan, name, 1)
    with pytest.raises(AttributeError, match="Plan has no attribute 'xyz'; allowed: grid, "):
        plan.xyz = 1
    with pytest.raises(tw.ConfigError, match="no attribute 'threads'"):
        plan.threads = 2


def test_lists_do_for_tuples(context):
    plan = tw.plan(relax, A=np.ones((40, 50)), context=context, plan={"storage": "plain", "row": ()})
    plan.tile = [5, 6]
    A, B = np.ones((40, 50)), np.ones((40, 50))
    for _ in range(2):
        assert tw.run(relax, A=A, context=context, plan=plan).plan.tile == (5, 6)
        relax.reference(relax.iteration_box(B.shape), {"A": B})
        assert np.array_equal(A, B)


def test_a_machine_that_is_changed_changes_no_context(context, monkeypatch):
    found = machine.Machine._from_core(context._core.machine(), {"hosts": [], "ranks": 1, "threads": 1})
    monkeypatch.setitem(
        measure.__globals__, "measured", lambda context, quick, budget_s: known.use(context, found) or found
    )
    mine = measure(quick=True, context=context)
    kept = copy.deepcopy(context._machine)
    assert mine == kept
    mine.latency_s = 7.0
    mine.conditions["threads"] = 99
    mine.copy_byte_s.x.append(1)
    mine.host_of.append(4)
    assert context._machine == kept
    for value, name, meant in ((mine, "latency", "latency_s"), (mine.copy_byte_s, "z", "x"), (mine, "host", "host_of")):
        with pytest.raises(tw.ConfigError, match=f"no attribute '{name}'; allowed: .*{meant}"):
            setattr(value, name, 1)
