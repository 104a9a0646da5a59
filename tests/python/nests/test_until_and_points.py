"""`reduce=`, `until=`, sources and receivers of several nests in a time step, of bound nests and of chains."""

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw

N = 40
HEIGHTS, START = np.random.default_rng(5).random(N), np.random.default_rng(6).random(N)
ADDED = np.arange(12.0)[:, None] / 100


@tw.nest
def heat(u, t, i, *, c=0.25):
    d = c * (u[t, i-1] - 2 * u[t, i] + u[t, i+1])
    u[t+1, i] = u[t, i] + d


@tw.nest
def decay(u, v, t, i):
    e = v[t, i] * 0.5 + u[t+1, i]
    v[t+1, i] = e


@tw.nest
def filmed(u, w, t, i):
    w[t // 2, i] = u[t, i]
    u[t+1, i] = u[t, i] - 0.25 * u[t, i-1]


def step(u, v):
    """The plain loops of one time step: (the largest change, the largest of v)."""
    d = 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    u[1:-1] += d
    v[...] = v * 0.5 + u
    return np.abs(d).max(), v.max()


def plain(u, v, steps):
    """What is recorded of v, and what is reduced in each step; u[5] is added to after each."""
    recorded, found = [], []
    for t in range(steps):
        found.append(step(u, v))
        u[5] += ADDED[t, 0]
        recorded.append(v[7])
    return np.array(recorded), found


GIVEN = {"inject": {"u": ([5], ADDED)}, "record": {"v": [7]}}
REDUCE = {"r": tw.max("abs(d)"), "m": tw.max("e")}


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 2), (5, 1)])
@pytest.mark.parametrize("limit,every", [(0.0, 5), (0.1, 1), (0.1, 4)])
def test_several_nests_until(ranks, threads, limit, every):
    u, v = HEIGHTS.copy(), START.copy()
    _, found = plain(u, v, 12)
    looked = [k for k in range(1, 13) if k % every == 0 or k == 12]
    steps = next((k for k in looked if found[k - 1][0] <= limit), 12)
    u, v = HEIGHTS.copy(), START.copy()
    recorded, found = plain(u, v, steps)

    def body(context):
        fields = {"u": tw.field(HEIGHTS.copy(), context=context), "v": tw.field(START.copy(), context=context)}
        report = tw.run(
            (heat, decay), **fields, **GIVEN, reduce=REDUCE, until={"r": limit}, every=every, steps=12, context=context
        )
        assert report.repetitions == steps and report.reached == (found[-1][0] <= limit)
        assert [(each["r"], each["m"]) for each in report.history] == [found[k - 1] for k in looked if k <= steps]
        assert report.recorded["v"][:, 0].tobytes() == recorded.tobytes()
        for name, wanted in (("u", u), ("v", v)):
            whole = fields[name].gather()
            assert whole is None or whole.tobytes() == wanted.tobytes(), name

    results_of(ranks, threads, body)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_one_nest_until(ranks):
    u, v, steps, largest = HEIGHTS.copy(), START.copy(), 0, 1.0
    while steps % 7 or largest >= 1e-2:
        largest, _ = step(u, v)
        steps += 1
    after = u.copy()
    for _ in range(6):
        step(after, v)

    def body(context):
        field = tw.field(HEIGHTS.copy(), context=context)
        until = lambda found: found["r"] < 1e-2
        report = tw.run(heat, u=field, steps=999, reduce={"r": REDUCE["r"]}, until=until, every=7, context=context)
        assert (report.repetitions, report.reached) == (steps, True) and "999" not in str(report)
        whole = field.gather()
        assert whole is None or whole.tobytes() == u.tobytes()
        field = tw.field(HEIGHTS.copy(), context=context)
        plan = tw.plan(heat, u=field, steps=7, plan={"temporal_block": 3, "generator": "stencil"})
        given = {"reduce": {"r": REDUCE["r"]}, "until": until, "every": 7, "plan": plan}
        assert tw.run(heat, u=field, steps=999, **given).repetitions == steps
        assert field[...].tobytes() == u.tobytes()
        for _ in range(2):
            tw.run((heat,), u=field, steps=3, plan=plan)
        assert field[...].tobytes() == after.tobytes()

    results_of(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_bound_nests_and_chains_with_points(ranks):
    u, v = HEIGHTS.copy(), START.copy()
    recorded = [plain(u, v, 4)[0] for _ in range(3)]

    def body(context):
        first, second = tw.field(HEIGHTS.copy(), context=context), tw.field(START.copy(), context=context)
        again = {"steps": 1, "context": context}
        chain = tw.chain([tw.bind(heat, u=first, **again), tw.bind(decay, u=first, v=second, **again)], **GIVEN)
        assert not chain.separate
        for wanted in recorded:
            assert chain.run(times=4).recorded["v"][:, 0].tobytes() == wanted.tobytes()
        whole = first.gather()
        assert whole is None or whole.tobytes() == u.tobytes()

        points = {"inject": {"u": ([5, 5], np.ones((3, 2)))}, "record": {"u": [[5], [30]]}}
        one, other = (tw.field(HEIGHTS.copy(), context=context) for _ in range(2))
        bound = tw.bind(heat, u=one, steps=3, context=context, **points)
        reports = [bound.run() for _ in range(2)]
        for report in reports:
            wanted = tw.run(heat, u=other, steps=3, context=context, **points).recorded["u"]
            assert report.recorded["u"].tobytes() == wanted.tobytes()
        mixed = tw.chain([bound, tw.bind(decay, u=one, v=second, **again)]).run(times=2)
        assert "bound with inject= or record=" in mixed.separate
        tw.run(heat, u=other, steps=3, context=context, **points)
        wanted = tw.run(heat, u=other, steps=3, context=context, **points).recorded["u"]
        assert mixed.recorded["u"].tobytes() == wanted.tobytes()
        with pytest.raises(tw.ConfigError, match="inject= or record= for 3 time steps"):
            bound.run(steps=2)

        one, other = (tw.field(HEIGHTS.copy(), context=context) for _ in range(2))
        rows, others = (tw.field((2, N), context=context) for _ in range(2))
        points = {"inject": {"u": ([5, 5], np.ones((3, 2)))}, "record": {"u": [[5], [30]]}}
        found = tw.chain([tw.bind(filmed, u=one, w=rows, steps=3, **points)]).run(times=2)
        wanted = [tw.run(filmed, u=other, w=others, steps=3, **points) for _ in range(2)][-1]
        assert found.recorded["u"].tobytes() == wanted.recorded["u"].tobytes()
        assert one[...].tobytes() == other[...].tobytes() and rows[...].tobytes() == others[...].tobytes()

    results_of(ranks, 1, body)


def test_a_reduction_is_of_the_last_nest_that_has_all_of_it():
    fields = {"u": tw.field(HEIGHTS.copy()), "v": tw.field(START.copy())}
    u, v = HEIGHTS.copy(), START.copy()
    steps = [step(u, v) for _ in range(2)]
    report = tw.run((heat, decay), **fields, steps=2, reduce={**REDUCE, "s": tw.max("u")})
    assert report.results == {"r": steps[1][0], "m": steps[1][1], "s": u.max()} and not report.reached
    assert [sorted(each) for each in report.reduced] == [["r", "s"], ["m"]]
    report = tw.run((heat, decay), **fields, steps=1, reduce=[None, {"s": tw.max("v")}])
    assert [sorted(each) for each in report.reduced] == [[], ["s"]]
    for wrong, text in [
        ({"reduce": {"x": tw.max("d * e")}}, "no nest has all of it"),
        ({"reduce": 3}, "allowed: a dict from names to"),
        ({"reduce": [None]}, "a list of 1 for 2 nests"),
        ({"reduce": REDUCE, "until": {"q": 1}}, "no nest has a reduction 'q'; allowed: r, m"),
        ({"reduce": REDUCE, "until": {"r": 1}, "every": 0}, "every: given 0"),
        ({"until": 3}, "until: given 3"),
    ]:
        with pytest.raises(tw.ConfigError, match=text):
            tw.run((heat, decay), **fields, steps=2, **wrong)
