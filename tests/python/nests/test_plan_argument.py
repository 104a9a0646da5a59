"""plan=: a plan, or the choices that are fixed, whose names are free for the arrays and scalars of nests."""

import types

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of
from tilewave.nests.plan import choosing
from tilewave.nests.plan import kernel_maker

START = np.random.default_rng(4).random((9, 12))


@tw.nest
def named(grid, row, i, j, *, helper, skew=2, tile=0.5, threads=1, times=3):
    grid[i, j] = tile * grid[i-1, j] + helper * row[i, j] + skew * threads * times


@tw.nest
def stepped(grid, t, i, j, *, helper):
    grid[t+1, i, j] = helper * grid[t, i-1, j]


@tw.nest
def plain(A, i, j):
    A[i, j] = 0.5 * A[i-1, j] + A[i, j-1]


def results(ranks, body):
    return results_of(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 2])
def test_names_of_choices_are_free_for_nests(ranks):
    expected, again = START.copy(), START.copy()
    for i in range(1, 9):
        expected[i] = 0.25 * expected[i-1] + 1.5 * START[i] + 6
        again[i] = 1.5 * START[i-1]

    def body(context):
        found, row, numbers = [], tw.field(START, context=context), {"helper": 1.5, "tile": 0.25}
        for plan in (None, {"helper": True, "tile": (3, 4), "grid": (1, ranks)}):
            grid = tw.field(START, context=context)
            report = tw.run(named, grid=grid, row=row, **numbers, plan=plan)
            found.append(grid.gather())
            assert all(getattr(report.plan, name) == value for name, value in (plan or {}).items())
            grid[...] = START
            bound = tw.bind(named, grid=grid, row=row, **numbers, plan=plan)
            tw.chain([bound]).run()
            found.append(grid.gather())
            assert tw.check(tw.schedule(named, grid=grid, row=row, **numbers, plan=plan)) is None
            assert tw.plan(named, grid=grid, row=row, **numbers, plan=plan) == bound.plan
            grid[...] = START
            tw.run((stepped,), grid=grid, helper=1.5, steps=1, plan=plan and {"schedule": "blocking"})
            found.append(grid.gather())
        return found

    for k, whole in enumerate(results(ranks, body)[0]):
        assert np.array_equal(whole, again if k % 3 == 2 else expected), k


CALLS = {
    "run": tw.run,
    "plan": tw.plan,
    "bind": tw.bind,
    "schedule": tw.schedule,
    "run of several": lambda nest, A, **given: tw.run((stepped,), grid=A, helper=1.0, steps=1, **given),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    "given, words",
    [
        ({"tile": (1, 8)}, r'tile=\(1, 8\): choices are given in plan=; write plan=\{"tile": \(1, 8\)\}'),
        ({"threads": 1, "plan": {}}, r'threads=1: choices are given in plan=; write plan=\{"threads": 1\}'),
        ({"plan": "fast"}, r"plan: given str; allowed: a tilewave.Plan, or a dict of the choices that are fixed"),
        ({"plan": [("threads", 1)]}, r"plan: given (list|tuple)"),
        ({"plan": {"temporal_blok": 2}}, r"no choice 'temporal_blok'; allowed: temporal_block, .*meant\?"),
        ({"plan": {("tile",): 2}}, r"a dict with the key \('tile',\); allowed: grid, mapping_dim"),
        ({"plan": {"threads": 0}}, r"threads: given 0"),
        ({"plan": {"lookahead": None}}, r"lookahead: given None"),
    ],
)
def test_refused(call, given, words):
    with pytest.raises(tw.ConfigError, match=words):
        call(plain, A=tw.field((9, 12)), **given)


def test_of_several_nests_a_plan_for_each():
    nests, given = (stepped, stepped), {"grid": tw.field((9, 12), init=1.0), "helper": 1.0, "steps": 1}
    plans = tw.plan(nests, **given)
    for plan in (plans, [{"tile": (1, 2, 3)}, None], [plans[0], {"tile": (1, 4, 5)}]):
        found = tw.bind(nests, **given, plan=plan).plans
        for each, wanted in zip(found, plan, strict=True):
            if isinstance(wanted, tw.Plan):
                assert each == wanted
            else:
                assert all(getattr(each, name) == value for name, value in (wanted or {}).items())
        tw.run(nests, **given, plan=plan)
    for plan in (plans[0], plans[:1], [plans[0], None, None]):
        with pytest.raises(tw.ConfigError, match="for 2 nests; allowed: a dict for all of them, or a list"):
            tw.run(nests, **given, plan=plan)
    with pytest.raises(tw.ConfigError, match="no choice 'tle'"):
        tw.run(nests, **given, plan=[{"tle": 1}, None])


def test_any_mapping_as_it_is_at_the_call():
    A, choices = tw.field((9, 12), init=1.0), {"tile": [4, 4], "threads": 1}
    bound = tw.bind(plain, A=A, plan=choices)
    choices["tile"] = [9, 9]
    assert bound.plan.tile == (4, 4) == tw.plan(plain, A=A, plan=types.MappingProxyType({"tile": (4, 4)})).tile
    assert bound.run().plan.tile == (4, 4)


def test_a_whole_plan_is_predicted():
    A = tw.field((9, 12), init=1.0)
    plan = tw.Plan(grid=(1, 1), mapping_dim=1, tile=(8, 3), factors=(1, 1))
    found = tw.plan(plain, A=A, plan=plan)
    assert found == plan and found.predicted.time_s > 0 and plan.predicted is None


def test_ranks_must_be_given_the_same():
    def body(context):
        A, found = tw.field((9, 12), context=context), []
        given = [({"tile": (2, 2)}, None), ({"lookahead": 2}, {"lookahead": 3}), ({"threads": 1}, {"a": 1})]
        for mine, theirs in given:
            with pytest.raises(tw.ConfigError) as error:
                tw.run(plain, A=A, plan=theirs if context.rank else mine)
            found.append(str(error.value))
        return found

    one, other = results(2, body)
    assert one == other and all("different arguments" in text for text in one[:2]) and "no choice 'a'" in one[2]


@pytest.mark.parametrize("ranks", [1, 2])
def test_planning_is_taken_wherever_plan_is(ranks, monkeypatch):
    """Another size measures nothing in quick planning, a budget is that of all ranks, and results are the same."""
    count, sampled = [], kernel_maker.sampled

    def spy(context, given, prepared, budget_s):
        count.append(budget_s)
        return sampled(context, given, prepared, budget_s)

    monkeypatch.setattr(kernel_maker, "sampled", spy)

    def body(context):
        found = []
        for n, planning in ((30, "quick"), (33, "quick"), (31, "auto"), (32, "thorough")):
            A, B = (tw.field((n, 40), init=1.0, context=context) for _ in range(2))
            plan = tw.plan(plain, A=A, planning=planning, context=context)
            report = tw.run(plain, A=A, planning=planning, context=context)
            bound = tw.bind(plain, A=B, planning=planning, context=context)
            bound.run()
            assert plan == report.plan == bound.plan
            assert tw.check(tw.schedule(plain, A=A, planning=planning, context=context)) is None
            assert np.array_equal(A.gather(), B.gather())
            spent = plan.notes["planning"]
            assert spent["planning"] == planning and (planning != "thorough" or spent["settled"])
            assert f"beyond compiling ({planning})" in plan.explain()
            found.append((plan.choices(), spent))
            if n == 30:
                assert spent["samples"] > 0 and max(count) <= 0.01
        grid = tw.field(START, context=context)
        tw.run((stepped,), grid=grid, helper=1.5, steps=2, planning="quick", context=context)
        return found

    one, *others = results(ranks, body)
    assert all(each == one for each in others)
    assert one[1][1]["samples"] == 0


def test_planning_of_another_name():
    A = tw.field((9, 12), init=1.0)
    for wrong in ("slow", 1, None):
        with pytest.raises(tw.ConfigError, match="planning.*'quick', 'auto', 'thorough'"):
            tw.run(plain, A=A, planning=wrong)


def test_runs_that_add_up_pay_for_more_planning(monkeypatch):
    context = tw.Context(threads=1)
    H = tw.field((500, 700), init=1.0, context=context)
    tw.run(plain, A=H, plan={"threads": 1}, planning="quick", context=context)
    planned, keys, decide = [], [], choosing.decide

    def spy(context, given, before):
        planned.append(before.runs.ran_s if before else 0.0)
        keys.append(given.key)
        return decide(context, given, before)

    monkeypatch.setattr(choosing, "decide", spy)
    first = tw.run(plain, A=H, context=context).plan
    runs = context._prepared.get(keys[-1]).runs
    for _ in range(3):
        assert tw.run(plain, A=H, context=context).plan == first
    assert planned == [0.0] and runs.ran_s > 0
    runs.enough_s, runs.ran_s = 1.0, 2.0
    later = tw.run(plain, A=H, context=context).plan
    assert len(planned) == 2 and planned[1] >= 2.0
    assert "planned once more after runs of" in later.explain()
    tw.run(plain, A=H, context=context)
    assert len(planned) == 2
