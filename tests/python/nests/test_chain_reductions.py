"""Reductions of chains, and runs until they are met, on ranks that are threads."""

import numpy as np
import pytest

import tilewave as tw
from bound_cases import RANKS, filled, grow, residual, results, same, smooth
from tilewave.errors import ConfigError
from tilewave.nests.chain import body as chain_body


@tw.nest
def defect(u, f, i, j):
    d = f[i, j] - 4 * u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]  # noqa: F841


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_until(ranks, threads):
    def body(context):
        u, f, r = (tw.field((14, 17), "f8", init=value, context=context) for value in (0.0, 1.0, 0.0))
        reduce = {"most": tw.max("r"), "least": tw.min("r"), "where": tw.argmax("r"), "total": tw.sum("r")}
        cycle = tw.chain([tw.bind(smooth, u=u, f=f), tw.bind(residual, r=r, u=u, f=f, reduce=reduce)])
        report = cycle.run(times=500, until={"most": 1e-3, "total": 0.01})
        n = report.repetitions
        assert report.reached and 20 < n < 500 and len(report.history) == n
        assert report.history[-1]["most"] <= 1e-3 < max(report.history[-2]["most"], report.history[-2]["total"] * 0.1)
        assert report.reduced[0] == {} and report.results == report.history[-1]
        largest, ended = report.results["most"], u.gather()
        # As often, without looking.
        u.fill(0.0)
        assert cycle.run(times=n).results["most"] == largest
        again = u.gather()
        assert ended is None or ended.tobytes() == again.tobytes()
        # A function of the values, and looking now and then.
        u.fill(0.0)
        report = cycle.run(times=500, until=lambda values: values["most"] <= largest, every=7)
        assert report.repetitions == -(-n // 7) * 7 and len(report.history) == -(-n // 7)
        u.fill(0.0)
        report = cycle.run(times=10, until={"most": 0}, every=4)
        assert report.repetitions == 10 and not report.reached and len(report.history) == 3
        assert cycle.run(times=0, until={"most": 0}).history == []

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_a_norm_of_a_nest_that_writes_nothing(ranks, threads):
    def body(context):
        u, f = (tw.field((14, 17), "f8", init=value, context=context) for value in (0.0, 1.0))
        v, reduce = u.copy(), {"r": tw.norm("d")}
        cycle = tw.chain([tw.bind(smooth, u=u, f=f), tw.bind(defect, u=u, f=f, reduce=reduce)])
        report, norms = cycle.run(times=1000, until={"r": 1e-3}), [1.0]
        while norms[-1] > 1e-3:
            tw.run(smooth, u=v, f=f)
            norms.append(tw.run(defect, u=v, f=f, reduce=reduce).results["r"])
        assert [values["r"] for values in report.history] == norms[1:] and same(u, v)

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1)])
def test_reductions_are_those_of_the_last_repetition(ranks, threads):
    seed = 10 * ranks + threads
    print(f"seed {seed}")
    draw = np.random.default_rng(seed)
    first, shape = draw.random(24 * 18), (24, 18)
    reduce = {"s": tw.sum("u"), "m": tw.max("u"), "l": tw.min("u"), "at": tw.argmax("u")}
    counts = [int(times) for times in draw.permutation([1, 2, 3, 258])]

    def body(context):
        u, f = (tw.field(shape, "f8", init=lambda i, j: first[18 * i + j], context=context) for _ in range(2))
        v, norm = u.copy(), {"n": tw.norm("r")}
        r = tw.field(shape, "f8", init=0.0, context=context)
        sweep = tw.bind(smooth, u=u, f=f, w=0.7, reduce=reduce)
        cycle = tw.chain([sweep, tw.bind(residual, r=r, u=u, f=f, reduce=norm)])
        assert cycle.separate == ""
        for times in counts:
            for _ in range(times - 1):
                tw.run(smooth, u=v, f=f, w=0.7)
            want = tw.run(smooth, u=v, f=f, w=0.7, reduce=reduce).results
            want.update(tw.run(residual, r=r, u=v, f=f, reduce=norm).results)
            assert cycle.run(times=times).results == want and same(u, v), times

    results(ranks, threads, body)


@tw.nest
def over_land(u, f, m, i, j, *, w):
    if m[i, j] != 0:
        d = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j]) - u[i, j]
        u[i, j] = u[i, j] + w * d


@pytest.mark.parametrize("without", ["", "unreduced"])
@pytest.mark.parametrize("ranks, threads", [*RANKS, (4, 1)])
def test_repetitions_that_nobody_looks_at(ranks, threads, without, monkeypatch):
    monkeypatch.setattr(chain_body, "LEAST_UNSEEN_S", 0.0)
    seed = 10 * ranks + threads
    print(f"seed {seed}")
    draw = np.random.default_rng(seed)
    first, mask = draw.random((24, 18)), draw.integers(0, 2, (24, 18))
    times, every = (int(draw.integers(low, high)) for low, high in ((5, 40), (2, 9)))
    norms = {"d": tw.norm("d"), "most": tw.norm("d", np.inf), "where": tw.argmax("u")}
    rest = {"r": tw.norm("d"), "low": tw.min("d")}

    def body(context):
        u, v = (tw.field((24, 18), "f8", init=lambda i, j: first[i, j], context=context) for _ in range(2))
        f = tw.field((24, 18), "f8", init=0.3, context=context)
        m = tw.field((24, 18), "i1", init=lambda i, j: mask[i, j], context=context)
        sweep = tw.bind(over_land, u=u, f=f, m=m, w=1.3, reduce=norms)
        cycle = tw.chain([sweep, tw.bind(defect, u=u, f=f, reduce=rest)])
        assert cycle.separate == ""

        def alone():
            values = tw.run(over_land, u=v, f=f, m=m, w=1.3, reduce=norms).results
            return {**values, **tw.run(defect, u=v, f=f, reduce=rest).results}

        report = cycle.run(times=times, until={"d": -1.0}, every=every)
        every_value = [alone() for _ in range(times)]
        assert report.history == [*every_value[every - 1 :: every], *every_value[-1:] * (times % every > 0)]
        assert same(u, v) and bool(cycle._first._unreduced) == (not without)
        assert cycle.run(times=3).results == [alone() for _ in range(3)][-1] and same(u, v)

    results(ranks, threads, body, without=without)


def test_a_reduction_that_may_raise_is_of_each_repetition(monkeypatch):
    monkeypatch.setattr(chain_body, "LEAST_UNSEEN_S", 0.0)
    u, f = (tw.field((14, 17), "f8", init=1.0) for _ in range(2))
    cycle = tw.chain([tw.bind(smooth, u=u, f=f, reduce={"q": tw.sum("7 // (i + 1)")})])
    assert cycle.run(times=3).results["q"] == 15 * sum(7 // (i + 1) for i in range(1, 13))
    assert cycle._first._unreduced == []


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_condition_that_raises_or_differs(ranks):
    def body(context):
        A = filled(context, (20, 20), "i8")
        cycle = tw.chain([tw.bind(grow, A=A, reduce={"s": tw.sum("A")})])

        def raises(values):
            if context.rank == context.size - 1:
                raise ValueError("I will not")

        with pytest.raises((ConfigError, tw.InternalError, ValueError), match="I will not"):
            cycle.run(times=5, until=raises)
        if ranks > 1:
            with pytest.raises(ConfigError, match="until says"):
                cycle.run(times=5, until=lambda values: context.rank == 0)
        A.fill(1)
        B = A.copy()
        cycle.run()
        tw.run(grow, A=B)
        assert same(A, B)

    results(ranks, 1, body)
