"""Fields that change their layout between runs: what that takes is reported, and it does not happen without need."""

import types

import numpy as np
import pytest
from local_ranks import on_ranks

import tilewave as tw
from tilewave.runtime import turns
from tilewave.nest.views import View

pytestmark = pytest.mark.filterwarnings("ignore:.*more than the:RuntimeWarning")


@tw.nest
def smooth(B, A, i, j):
    B[i, j] = 0.25 * (A[i-1, j] + A[i+2, j] + A[i, j-1] + A[i, j+1])


def places(*fields):
    return [field._storage.address for field in fields]


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (3, 1)])
def test_swapped_fields_do_not_move(ranks, threads):
    def body(context):
        start = np.random.default_rng(3).random((40, 31))
        A, B = (tw.field(start.shape, "f8", init=start, context=context) for _ in range(2))
        tw.run(smooth, A=A, B=B, context=context)
        where, prepared = places(A, B), len(context._prepared)
        for _ in range(5):
            report = tw.run(smooth, A=A, B=B, context=context)
            assert report.measured.moving_s == 0 and "+ moving" not in str(report)
            assert report.measured.call_s >= report.measured.time_s
            A, B = B, A
        assert places(B, A) == where and len(context._prepared) == prepared
        whole = A.gather()
        if context.rank == 0:
            a, b = start.copy(), start.copy()
            for _ in range(5):
                b[1:-2, 1:-1] = 0.25 * (((a[:-3, 1:-1] + a[3:, 1:-1]) + a[1:-2, :-2]) + a[1:-2, 2:])
                a, b = b, a
            np.testing.assert_array_equal(whole, a)

    _, errors = on_ranks(ranks, threads, body)
    assert not any(errors), errors


@pytest.mark.parametrize("ranks", [1, 2])
def test_moving_is_reported(ranks):
    def body(context):
        A, B = (tw.field((64, 64), "f8", init=1.0, context=context) for _ in range(2))
        reports = [
            tw.run(smooth, A=A, B=B, context=context, grid=grid)
            for grid in ((ranks, 1), (1, ranks), (ranks, 1), (ranks, 1))
        ]
        moving = [report.measured.moving_s for report in reports]
        assert all(m > 0 for m in moving[1:3]) == (ranks > 1) and moving[3] == 0
        for report in reports:
            measured = report.measured
            assert (
                measured.call_s >= measured.moving_s and measured.call_s >= 0.9 * measured.time_s
            )  # each of the rank that took longest
            assert ("+ moving" in str(report)) == (measured.moving_s > 0)
        return moving

    moving, errors = on_ranks(ranks, 1, body)
    assert not any(errors), errors
    assert all(m == moving[0] for m in moving)  # the slowest rank's, everywhere


@tw.nest
def gauss_seidel(u, f, i, j):
    u[i, j] = 0.25 * (u[i-1, j] + u[i, j-1] + u[i+1, j] + u[i, j+1] - f[i, j])


@tw.nest
def residual(r, u, f, i, j):
    r[i, j] = f[i, j] - (u[i-1, j] + u[i, j-1] + u[i+1, j] + u[i, j+1] - 4 * u[i, j])


@pytest.fixture
def eager(monkeypatch):
    """Any moving is worth a plan, and any layout for all is better."""
    monkeypatch.setattr(turns, "LEAST_MOVED_S", 0.0)
    monkeypatch.setattr(turns, "LEAST_MOVING_PART", 0.0)
    monkeypatch.setattr(turns, "WORTH", 1e9)


@pytest.mark.parametrize("ranks", [1, 2])
def test_nests_that_take_turns_have_one_layout(ranks, eager):
    def body(context):
        start = np.random.default_rng(4).random((90, 70))
        u, f, r = (tw.field(start.shape, "f8", init=k * start, context=context) for k in (1.0, 0.5, 0.0))
        moving = []
        for _ in range(6):
            reports = tw.run(gauss_seidel, u=u, f=f, context=context), tw.run(residual, r=r, u=u, f=f, context=context)
            moving.append([report.measured.moving_s for report in reports])
        notes = [report.plan.notes.get("turns") for report in reports]
        if any(moving[2]):  # fields moved until all were weighed
            assert moving[-1] == [0.0, 0.0] and notes[0] and notes[0] == notes[1], (moving, notes)
            assert notes[0]["nests"] == ["gauss_seidel", "residual"] and "take turns" in str(reports[1])
            assert "which use the same fields in turn" in reports[1].plan.explain()
        return u.gather(), r.gather()

    results, errors = on_ranks(ranks, 1, body)
    assert not any(errors), errors
    u, f = np.random.default_rng(4).random((90, 70)), 0.5 * np.random.default_rng(4).random((90, 70))
    for _ in range(6):
        for i in range(1, 89):
            for j in range(1, 69):
                u[i, j] = 0.25 * (u[i-1, j] + u[i, j-1] + u[i+1, j] + u[i, j+1] - f[i, j])
    np.testing.assert_array_equal(results[0][0], u)
    inner = f[1:-1, 1:-1] - (u[:-2, 1:-1] + u[1:-1, :-2] + u[2:, 1:-1] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
    np.testing.assert_array_equal(results[0][1][1:-1, 1:-1], inner)


class Prepared:
    """A prepared call of a nest over i, j on one rank that wants a row, as the planner leaves it."""

    def __init__(self, name, time_s, row=()):
        nest = types.SimpleNamespace(indices=("i", "j"))
        core = types.SimpleNamespace(loops=((1, 0), (0, 1)))
        spread = (View("u", ("i", "j"), (0, 0)),)
        self.problem = types.SimpleNamespace(nest=nest, core=core, spread=spread, in_time=frozenset())
        self.plan = types.SimpleNamespace(
            storage="skewed" if row else "plain",
            row=row,
            grid=(1, 1),
            notes={"nest": name},
            predicted=types.SimpleNamespace(time_s=time_s),
        )
        self.on_one_rank, self.context = False, types.SimpleNamespace(size=1)
        self.turn = turns.Turn(self)


def weigh(all_turns, others):
    """What prepare() does at the next call of each; `others`: seconds by nest and layout."""
    for turn in all_turns:
        name = turn.plan.notes["nest"]
        for layout in turn.wanted:
            other = Prepared(name, others.get((name, layout[0]), 1e9))
            turn.times[layout] = (
                (turn.predicted_s, None) if layout == turn.own else (other.plan.predicted.time_s, other)
            )
        turn.wanted = ()
        for one in turn.cycle:
            one.decide()


@pytest.mark.parametrize("plain_s,skewed_s,taken", [(0.014, 0.008, "skewed"), (0.011, 0.5, "plain"), (0.2, 0.5, None)])
def test_the_layout_that_is_least_for_all_is_taken(plain_s, skewed_s, taken):
    """One nest wants skewed rows and takes 10 ms, one wants row-major fields and takes 8; moving takes 12 each time."""
    order, fields = turns.Turns(), frozenset({1})
    sweep, after = Prepared("sweep", 0.010, (1, -1)), Prepared("after", 0.008)
    unrelated = Prepared("unrelated", 0.001)
    for _ in range(2):
        for prepared in (sweep, after):
            prepared.turn.ran(order, fields, prepared.plan.predicted.time_s, 0.012)
            unrelated.turn.ran(order, frozenset({2}), 0.001, 0.0)
    assert (
        sweep.turn.wanted == after.turn.wanted == (("plain", (), (1, 1)), ("skewed", (1, -1), (1, 1)))
        and not unrelated.turn.wanted
    )
    weigh((sweep.turn, after.turn), {("sweep", "plain"): plain_s, ("after", "skewed"): skewed_s})
    assert (sweep.turn.taken is not None) == (taken == "plain") and (after.turn.taken is not None) == (
        taken == "skewed"
    )
    if taken is None:
        return
    # A nest that no longer takes turns has its own plan again.
    changed = sweep if taken == "plain" else after
    for _ in range(turns.ENOUGH_UNDISTURBED + 1):
        running = changed.turn.taken or changed
        running.turn.ran(order, fields, 0.01, 0.0)
    assert changed.turn.taken is None
