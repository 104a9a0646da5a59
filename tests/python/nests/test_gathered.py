"""Nests whose steps are gathered by all ranks. Plain loops, bit for bit, on ranks of one process."""

import random

import numpy as np
import pytest
from local_ranks import results_of, steady_rates

import tilewave as tw
from tilewave import _core
from tilewave.schedule.schedule import Schedule


@tw.nest
def viterbi(V, T, t, s):
    V[t + 1, s] = max(V[t, q] + T[q, s] for q in range(len(T)))


@tw.nest
def batch(V, T, t, b, s):
    V[t + 1, b, s] = sum(V[t, b, q] * T[q, s] for q in range(len(T)))


@tw.nest
def some(V, T, t, s):
    if T[s, s] > 0.5:
        V[t + 1, s] = max(V[t, q] + T[q, s] for q in range(len(T)))


@pytest.mark.parametrize("ranks", [2, 3])
def test_elements_that_a_step_does_not_write(ranks):
    numbers = np.random.default_rng(ranks)
    first, T = numbers.random(9), numbers.random((9, 9))

    def body(context):
        V = tw.field(first, context=context)
        report = tw.run(some, V=V, T=T, steps=5, plan={"grid": (1, ranks)}, context=context)
        assert report.plan.generator == "gather" and report.plan.grid == (1, ranks)
        return V.gather()

    V = first
    for _ in range(5):
        V = np.where(T.diagonal() > 0.5, (V[:, None] + T).max(axis=0), V)
    assert np.array_equal(results_of(ranks, 1, body)[0], V)


@pytest.mark.parametrize("ranks,lanes", [(1, 2), (2, 2), (3, 1)])
def test_what_is_asked_for_between_steps(ranks, lanes):
    """Earlier steps of elements that no point writes, sources, receivers, a number of all steps."""
    older = tw.nest_from(
        "def older(V, T, t, s):\n    d = max(V[t-1, q] + T[q, s] for q in range(len(T)))\n    V[t+1, s] = d - V[t, s]"
    )
    T, all_times = np.random.default_rng(ranks).random((9, 9)), [np.arange(9.0), np.arange(9.0) ** 2]
    values, best = np.arange(10.0).reshape(5, 2), []
    for t in range(5):
        before, now, new = all_times[-2], all_times[-1], all_times[-1].copy()
        d = (before[:, None] + T).max(axis=0)
        best.append(d[1:7].max())
        new[1:7] = (d - now)[1:7]
        new[[0, 3]] += values[t]
        all_times.append(new)

    def body(context):
        V = tw.field(all_times[1], history=[all_times[0]], context=context)
        given = {"V": V, "T": T, "steps": 5, "over": {"s": (1, 7)}, "plan": {"generator": "gather"}}
        points = {"inject": {"V": ([(0,), (3,)], values)}, "record": {"V": [(8,), (3,)]}}
        report = tw.run(older, **given, **points, reduce={"best": tw.max("d")}, context=context)
        assert report.plan.generator == "gather" and report.results["best"] == max(best)
        assert np.array_equal(report.recorded["V"], np.array(all_times[2:])[:, [8, 3]])
        return V.gather(), V.buffer(-1).gather()

    last, before = results_of(ranks, lanes, body)[0]
    assert np.array_equal(last, all_times[-1]) and np.array_equal(before[1:7], all_times[-2][1:7])


def test_schedules_in_rounds(seed):
    """Any number of ranks to send to at once: what each step reads is there."""
    rng = random.Random(f"rounds {seed}")
    for _ in range(30):
        ranks, extent = rng.randint(1, 11), rng.randint(1, 30)
        matrices = [(8, rng.randint(0, 3), rng.random() < 0.8) for _ in range(rng.randint(1, 3))]
        problem = rng.randint(1, 12), extent, [(8, 1, True), *matrices]
        plan = rng.randint(1, 8), rng.randint(1, 3), rng.randint(2, 5)
        cores = {rank: _core.gather_steps(*problem, *plan, rank, ranks) for rank in range(ranks)}
        kept = 1 + sum(depth > 0 for _, depth, _ in matrices)
        arrays = [(str(n), None, np.dtype("f8")) for n in range(1 + len(matrices) + kept)]
        schedule = Schedule(cores, arrays, ["load", "step"])
        text = f"{matrices} {ranks} ranks, {extent} elements, {seed}"
        assert tw.check(schedule) is None, text
        assert tw.predict(schedule, rates={"step": (1e-6, 1e-6)}).time_s > 0, text


def test_the_batch_is_divided_where_it_is_long():
    def body(context):
        T = np.ones((5, 5))
        for extent, cut in ((9, "b"), (3, "s")):
            V = tw.field((4, extent, 5), "f8", init=1.0, context=context)
            given = {"plan": {"grid": (1, 4, 1) if cut == "b" else (1, 1, 4)}, "context": context}
            long = tw.field((4, extent, 1500), "f8", context=context)
            plan = tw.plan(batch, V=long, T=np.ones((1500, 1500)), context=context, plan={"generator": "gather"})
            assert plan.grid["tbs".index(cut)] == 4
            schedule = tw.schedule(batch, V=V, T=T, **given)
            assert any(schedule.messages.values()) == (cut == "s")
            tw.run(batch, V=V, T=T, **given)
            whole = V.gather()
            assert whole is None or (whole[3] == 125).all()

    results_of(4, 1, body)


def test_steps_are_gathered_where_that_is_predicted_to_be_faster(monkeypatch):
    def body(context):
        V, T = tw.field((50,), "f8", init=0.0, context=context), np.ones((50, 50))
        report = tw.run(viterbi, V=V, T=T, steps=4, context=context)
        whole = V.gather()
        assert whole is None or (whole == 4).all()
        return report.on_one_rank, report.plan.explain()

    steady_rates(monkeypatch)
    for alone, text in results_of(2, 1, body):
        assert alone and "V[t, q] along a loop" in text and "each step gathered" in text
    steady_rates(monkeypatch, point_s=1e-3)
    for alone, text in results_of(2, 1, body):
        assert not alone and "s is divided in each step" in text and "rank 0 for all" in text


def test_what_is_not_gathered_runs_in_loop_order():
    update = tw.nest_from("def update(x, A, c, t, s): x[s] = c[t] * sum(A[s, q] * x[q] for q in range(len(A)))")
    A = np.random.default_rng(1).random((40, 40))
    x, c = np.ones(40), np.full(3, 0.025)
    update.reference(((0, 3), (0, 40)), {"x": x, "A": A, "c": c})

    def body(context):
        field = tw.field((40,), "f8", init=1.0, context=context)
        report = tw.run(update, x=field, A=A, c=c, context=context)
        assert report.on_one_rank
        whole = field.gather()
        assert whole is None or np.array_equal(whole, x)

    results_of(3, 1, body)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("door", ["run", "bind", "chain", "reduce"])
@pytest.mark.parametrize("over", [{"s": (0, 5, 2)}, {"s": ("t", 5)}, None])
def test_steps_that_skip_elements(ranks, door, over):
    """Each begins as a copy of the one before, also in the order of the loops."""
    if door != "run" and over and len(over["s"]) == 3:
        over = {"s": (1, 4)}
    some = tw.nest_from(
        "def some(V, T, t, s):\n    if s != 2:\n        V[t+1, s] = max(V[t, q] + T[q, s] for q in range(len(T)))\n"
    )
    T, start = np.random.default_rng(3).integers(-3, 4, (5, 5)).astype("f8"), np.arange(5.0)
    expected = np.array([start] * 5)
    for t in range(4):
        expected[t + 1] = expected[t]
        for s in range(*[t if end == "t" else end for end in over["s"]] if over else [5]):
            some.function(expected, T, t, s)

    def body(context):
        V = tw.field((5,), "f8", start, context=context)
        given = {"V": V, "T": T, "steps": 4, "over": over, "context": context}
        if door in ("run", "reduce"):
            tw.run(some, **given, **({"reduce": {"most": tw.max("V")}} if door == "reduce" else {}))
        else:
            bound = tw.bind(some, **given)
            (tw.chain([bound]) if door == "chain" else bound).run()
        return V.gather()

    assert np.array_equal(results_of(ranks, 1, body)[0], expected[4])


@pytest.mark.parametrize("offsets", [(-1, 1, -1), (0, -1, 1), (1, 0, 0)])
@pytest.mark.parametrize("direct", ["", " + A[i, j]"])
def test_loops_are_bounded_by_the_elements_at_the_point(offsets, direct):
    """What a loop inside the body reads along a whole axis does not end the loop around it."""
    i, j, other = offsets
    value = f"max(X[q] + A[i+{other}, q] for q in range(5)){direct}"
    whole = tw.nest_from(f"def whole(A, X, i, j): A[i+{i}, j+{j}] = {value}".replace("+-", "-"))
    A, X = np.random.default_rng(1).integers(0, 9, (4, 5)).astype("f8"), np.arange(5.0)
    expected = A.copy()
    for point in ((i, j) for i in range(-1, 5) for j in range(-1, 6)):
        rows, columns = [point[0] + i, point[0] + other], [point[1] + j]
        if direct:
            rows, columns = [*rows, point[0]], [*columns, point[1]]
        if all(0 <= row < 4 for row in rows) and all(0 <= column < 5 for column in columns):
            whole.function(expected, X, *point)
    tw.run(whole, A=A, X=X)
    assert np.array_equal(A, expected)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_bound_chained_measured(ranks):
    """As other nests: planned by rates, run again, beside others."""
    T = np.random.default_rng(ranks).integers(-3, 4, (60, 60)).astype("f8")
    half = tw.nest_from("def half(V, s): V[s] = V[s] * 0.5")
    expected = [np.arange(60.0)]
    for _ in range(3):
        found = [expected[-1]]
        for _ in range(5):
            found.append(np.array([max(found[-1][q] + T[q, s] for q in range(60)) for s in range(60)]))
        expected.append(found[-1] * 0.5)

    def body(context):
        V = tw.field((60,), "f8", np.arange(60.0), context=context)
        given = {"V": V, "T": T, "steps": 5, "context": context, "plan": {"generator": "gather"}}
        plan = tw.plan(viterbi, **given)
        assert plan.generator == "gather" and plan.predicted.time_s > 0 and "gathered" in plan._short()
        schedule = tw.schedule(viterbi, **given)
        assert tw.check(schedule) is None and schedule.functions == ("load", "step")
        assert schedule.arrays == ("V", "planes of V")
        rate = tw.measure(True, nest=viterbi, **given).kernels["viterbi"]
        assert rate["point_s"] + rate["row_s"] + rate["tile_s"] > 0
        nests = [tw.bind(viterbi, **given), tw.bind(half, V=V, context=context)]
        for bound in nests:
            bound.run()
        found = [V.gather()]
        tw.chain(nests).run(times=2)
        return [*found, V.gather()]

    one, three = results_of(ranks, 2, body)[0]
    assert np.array_equal(one, expected[1]) and np.array_equal(three, expected[3])


def test_errors_name_the_point():
    def body(context):
        V = tw.field((9, 8), "f8", init=1.0, context=context)
        strict = tw.nest_from(
            "def strict(V, T, t, s):\n"
            "    x = max(V[t-1, q] + T[q, s] for q in range(len(T)))\n"
            "    if t == 6 and s == 5:\n        raise ValueError('here')\n    V[t, s] = x\n"
        )
        with pytest.raises(tw.KernelError, match=r"'strict' raised ValueError\('here'\) at t=6, s=5 on rank 1"):
            tw.run(strict, V=V, T=np.ones((8, 8)), plan={"grid": (1, 3)}, context=context)

    results_of(3, 1, body)


@pytest.mark.parametrize("planning", ["auto", "thorough"])
def test_a_plan_serves_time_steps_without_points(planning):
    """Bounds that depend on time leave nothing to compute in the last step, which is no gathered one then."""
    noted = tw.nest_from(
        "def noted(V, R, T, t, b, s):\n"
        "    V[t+1, b, s] = max(V[t, b, q] + T[q, s] for q in range(len(T)))\n"
        "    R[(t+1) // 2, b, s] = sum(V[t, b, q] for q in range(len(T)))\n"
    )
    first, T = np.random.default_rng(7).random((2, 5)), np.eye(5)
    V, R, now, rows = first.copy(), np.zeros((4, 2, 5)), first.copy(), np.zeros((4, 2, 5))
    given = {"V": V, "R": R, "T": T, "steps": 7, "over": {"b": ("t // 6", 1)}, "planning": planning}
    plan = tw.plan(noted, **given, plan={"threads": 2, "generator": "gather"})
    tw.run(noted, **{**given, "plan": plan})
    for t in range(7):
        before, now = now, now.copy()
        for b in range(t // 6, 1):
            now[b] = (before[b][:, None] + T).max(axis=0)
            rows[(t + 1) // 2, b] = sum(before[b][q] for q in range(5))
    assert np.array_equal(V, now) and np.array_equal(R, rows)
