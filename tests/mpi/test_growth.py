"""What contexts keep for calls to come has a bound: entries are counted; memory and descriptors only in the long run.
"""

import gc
import os

import numpy as np
import pytest

import tilewave as tw
from tilewave.context import context as contexts
from tilewave.nests.plan import kernel_maker
from tilewave.nests.plan import prepare
from tilewave.context.lru_cache import LruCache

pytestmark = pytest.mark.mpi(ranks=[1, 2])

SHAPE = (400, 12)


@tw.nest
def add(A, i, j):
    A[i, j] = A[i-1, j] + 0.5 * A[i, j-1]


@tw.nest
def heat(u, t, i, j):
    u[t+1, i, j] = 0.25 * u[t, i-1, j] + 0.5 * u[t, i+1, j]


@pytest.fixture
def counted(monkeypatch):
    """How often ranks planned together, and how often a body was compiled."""
    plans, kernels = [], []
    decide, compiled = prepare._decide, kernel_maker.compile_kernel
    monkeypatch.setattr(prepare, "_decide", lambda *given, **named: plans.append(1) or decide(*given, **named))
    counted = lambda *given, **named: kernels.append(1) or compiled(*given, **named)
    monkeypatch.setattr(kernel_maker, "compile_kernel", counted)
    return plans, kernels


def start(seed=1, shape=SHAPE):
    return np.random.default_rng(seed).random(shape)


def added(values, low, high):
    for i in range(low, high):
        for j in range(1, values.shape[1]):
            values[i, j] = values[i-1, j] + 0.5 * values[i, j-1]


def test_windows_that_move_share_a_plan(counted):
    context, values = tw.Context(), start()
    A = tw.field(SHAPE, init=values, context=context)
    for k in range(1, 101):
        report = tw.run(add, A=A, over={"i": (k, k + 9)}, context=context)
        added(values, k, k + 9)
        assert report.plan.notes["extents"] == [9, 11] and report.predicted.time_s > 0
        assert ("chosen_for" in report.plan.notes) == (k > 1)
    whole = A.gather()
    assert whole is None or np.array_equal(whole, values)
    assert len(counted[0]) == 1
    assert len(context._prepared) <= contexts.MOST_PREPARED and len(context._rates) <= 2 and len(context._plans) == 1
    assert "the plan of an earlier run over 9 x 11 points was fitted" in report.plan.explain()


def test_windows_of_other_sizes_are_planned_when_they_have_doubled(counted):
    context, values = tw.Context(), start()
    A = tw.field(SHAPE, init=values, context=context)
    for rows in [*range(1, 90), *range(89, 0, -1)]:
        tw.run(add, A=A, over={"i": (5, 5 + rows), "j": (1, 12)}, context=context)
        added(values, 5, 5 + rows)
    whole = A.gather()
    assert whole is None or np.array_equal(whole, values)
    assert len(counted[0]) <= 20


def test_steps_that_change_share_a_plan(counted):
    context, values = tw.Context(), start(2, (30, 12))
    u = tw.field(values.shape, init=values, context=context)
    for steps in (10, 11, 9, 16, 12, 60, 8, 40, 13):
        assert tw.run(heat, u=u, steps=steps, context=context).plan.notes["extents"][0] == steps
        for _ in range(steps):
            values[1:-1] = 0.25 * values[:-2] + 0.5 * values[2:]
    whole = u.gather()
    assert whole is None or np.array_equal(whole, values)
    assert len(counted[0]) <= 2


@pytest.mark.parametrize("choices", [{"tile": (2, 3)}, {"tile": (9, 11)}, {"schedule": "blocking", "factors": (1, 1)}])
def test_what_is_fixed_stays_fixed(choices):
    context, values = tw.Context(), start(3)
    A = tw.field(SHAPE, init=values, context=context)
    for low, rows in ((3, 12), (4, 12), (3, 20), (40, 11), (3, 12)):
        report = tw.run(add, A=A, over={"i": (low, low + rows)}, context=context, plan={"grid": (1, 1), **choices})
        added(values, low, low + rows)
        assert all(getattr(report.plan, name) == value for name, value in choices.items())
    for rows in (8, 12):  # a plan that is given is obeyed or refused, never fitted
        over, tile = {"i": (9, 9 + rows)}, report.plan.tile
        if tile[0] > rows:
            with pytest.raises(tw.ConfigError, match=f"entry {tile[0]} of dimension 0 is outside 1 to {rows}"):
                tw.run(add, A=A, over=over, context=context, plan=report.plan)
        else:
            assert tw.run(add, A=A, over=over, context=context, plan=report.plan).plan.tile == tile
            added(values, 9, 9 + rows)
    whole = A.gather()
    assert whole is None or np.array_equal(whole, values)


def test_triangles_and_directions_are_others(counted):
    context = tw.Context()
    values = start(4, (20, 20))
    for over, reverse in (
        ({"j": (1, "i+1")}, ()), ({"j": (2, "i+1")}, ()), ({"i": (3, 20), "j": (1, "i+1")}, ()),
        ({"j": (1, "i+1")}, ("i",)), ({"j": ("i", 20)}, ()), (None, ("i",)), (None, ()),
    ):
        A = tw.field(values.shape, init=values, context=context)
        tw.run(add, A=A, over=over, reverse=reverse, context=context)
        expected = values.copy()
        rows = range(1, 20)
        for i in reversed(rows) if reverse else rows:
            if over and "i" in over and i < over["i"][0]:
                continue
            low, high = (eval(str(bound), {"i": i}) for bound in over["j"]) if over else (1, 20)
            for j in range(low, min(high, 20)):
                expected[i, j] = expected[i-1, j] + 0.5 * expected[i, j-1]
        whole = A.gather()
        assert whole is None or np.array_equal(whole, expected), (over, reverse)


def test_a_rank_that_keeps_less_than_others_plans_with_them():
    context, values = tw.Context(), start(5)
    A = tw.field(SHAPE, init=values, context=context)
    for k in range(1, 30):
        if k % 5 == 0 and context.rank == context.size - 1:
            context._prepared.clear()
            context._plans.clear()
        if k % 7 == 0 and context.rank == 0:
            context._rates.clear()
            context._calls.clear()
        tw.run(add, A=A, over={"i": (k % 4 + 1, k % 4 + 9)}, context=context)
        added(values, k % 4 + 1, k % 4 + 9)
    whole = A.gather()
    assert whole is None or np.array_equal(whole, values)


def define():
    @tw.nest
    def again(A, i, j):
        A[i, j] = A[i-1, j] + 0.5 * A[i, j-1]

    return again


def test_nests_made_in_functions_share_all(counted):
    context, values = tw.Context(), start(6, (9, 8))
    A = tw.field(values.shape, init=values, context=context)
    for _ in range(contexts.MOST_CALLS + 10):
        tw.run(define(), A=A, context=context)
        added(values, 1, 9)
    whole = A.gather()
    assert whole is None or np.array_equal(whole, values)
    assert len(counted[0]) == len(context._prepared) == 1
    assert len(context._rates) == 1  # of any shape
    assert len(context._calls) <= contexts.MOST_CALLS


NUMBER = 0.5


@tw.nest
def scaled(A, i, j):
    A[i, j] = A[i-1, j] * NUMBER + NUMBER


def test_a_number_that_changes_costs_no_kernel(counted, monkeypatch):
    context, values = tw.Context(), start(8, (9, 8))
    A = tw.field(values.shape, init=values, context=context)
    for k in range(40):
        monkeypatch.setitem(globals(), "NUMBER", 0.25 + k / 64)
        tw.run(scaled, A=A, context=context)
        for i in range(1, 9):
            values[i] = values[i-1] * NUMBER + NUMBER
    whole = A.gather()
    assert whole is None or np.array_equal(whole, values)
    assert len(counted[0]) == len(context._prepared) == 1 and len(counted[1]) <= 2
    assert len(context._rates) == 1  # of any shape


def test_a_number_that_differs_between_ranks_is_an_error(monkeypatch):
    context = tw.Context()
    A = tw.field((9, 8), init=lambda i, j: 1.0, context=context)
    tw.run(scaled, A=A, context=context)
    monkeypatch.setitem(globals(), "NUMBER", 0.75 + context.rank)
    if context.size > 1:
        with pytest.raises(tw.ConfigError, match="differ"):
            tw.run(scaled, A=A, context=context)
    monkeypatch.setitem(globals(), "NUMBER", 0.75)
    tw.run(scaled, A=A, context=context)


def test_the_least_used_goes_first():
    kept = LruCache(3, most_bytes=10, bytes_of=len)
    for key in "abc":
        kept[key] = key
    assert kept.get("a") == "a" and kept.get("x") is None
    kept["d"] = "dd"
    assert list(kept) == ["c", "a", "d"] and list(kept.values()) == ["c", "a", "dd"]
    kept["e"] = 9 * "e"
    assert list(kept) == ["e"]  # the two before have three bytes
    kept["f"] = 99 * "f"
    assert list(kept) == ["f"]  # the last one always stays


@pytest.mark.long
def test_memory_and_descriptors_of_20000_calls():
    """Bounds, steps, arrays, nests and their numbers change; what is kept was there after the first thousands."""
    context = tw.Context()
    fields = [tw.field(SHAPE, init=start(k), context=context) for k in range(2)]
    u = tw.field((30, 12), init=start(2, (30, 12)), context=context)
    page, seen = os.sysconf("SC_PAGESIZE"), []
    for n in range(20000):
        A = fields[n%2]
        kind = n % 5
        if kind < 3:
            k = n * 7 % 350 + 1
            tw.run(add, A=A, over={"i": (k, k + 9 + n // 1000 % 5)}, context=context)
        elif kind == 3:
            tw.run(heat, u=u, steps=1 + n // 5 % 12, context=context)
        elif n % 25 == 4:
            tw.run(define(), A=tw.field((9, 8 + n % 3), context=context), context=context)
        else:
            A.gather()
        if n % 1000 == 999:
            gc.collect()
            resident = int(open("/proc/self/statm").read().split()[1]) * page
            seen.append((resident, len(os.listdir("/proc/self/fd"))))
    assert seen[-1][0] - seen[9][0] < 4 << 20, seen
    assert seen[-1][1] <= seen[4][1], seen
