"""Fields that change their layout between runs: what that takes is reported, and it does not happen without need."""

import numpy as np
import pytest
from local_ranks import results_of, steady_rates

import tilewave as tw


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

    results_of(ranks, threads, body)


@pytest.mark.parametrize("ranks", [1, 2])
def test_moving_is_reported(ranks):
    def body(context):
        A, B = (tw.field((64, 64), "f8", init=1.0, context=context) for _ in range(2))
        reports = [
            tw.run(smooth, A=A, B=B, context=context, plan={"grid": grid})
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

    moving = results_of(ranks, 1, body)
    assert all(m == moving[0] for m in moving)  # the slowest rank's, everywhere


@tw.nest
def gauss_seidel(u, f, i, j):
    u[i, j] = 0.25 * (u[i-1, j] + u[i, j-1] + u[i+1, j] + u[i, j+1] - f[i, j])


@tw.nest
def residual(r, u, f, i, j):
    r[i, j] = f[i, j] - (u[i-1, j] + u[i, j-1] + u[i+1, j] + u[i, j+1] - 4 * u[i, j])


@pytest.mark.parametrize("ranks", [1, 2])
def test_each_nest_has_one_plan_however_fields_move(ranks):
    def body(context):
        start = np.random.default_rng(4).random((90, 70))
        u, f, r = (tw.field(start.shape, "f8", init=k * start, context=context) for k in (1.0, 0.5, 0.0))
        plans = []
        for _ in range(6):
            reports = tw.run(gauss_seidel, u=u, f=f, context=context), tw.run(residual, r=r, u=u, f=f, context=context)
            plans.append([report.plan for report in reports])
        assert all(each == plans[0] for each in plans)
        return u.gather(), r.gather()

    results = results_of(ranks, 1, body)
    u, f = np.random.default_rng(4).random((90, 70)), 0.5 * np.random.default_rng(4).random((90, 70))
    for _ in range(6):
        for i in range(1, 89):
            for j in range(1, 69):
                u[i, j] = 0.25 * (u[i-1, j] + u[i, j-1] + u[i+1, j] + u[i, j+1] - f[i, j])
    np.testing.assert_array_equal(results[0][0], u)
    inner = f[1:-1, 1:-1] - (u[:-2, 1:-1] + u[1:-1, :-2] + u[2:, 1:-1] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
    np.testing.assert_array_equal(results[0][1][1:-1, 1:-1], inner)


@tw.nest
def height(h, u, v, i, j, *, c=0.1):
    h[i, j] = h[i, j] - c * (u[i + 1, j] - u[i, j] + v[i, j + 1] - v[i, j])


@tw.nest
def zonal(u, h, i, j):
    u[i, j] = u[i, j] - 0.1 * (h[i, j] - h[i - 2, j])


@tw.nest
def around(v, h, i, j):
    v[i, j] = v[i, j] - 0.1 * (h[i, j] - h[i, j - 1] + h[i + 1, j])


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 2), (6, 1)])
@pytest.mark.parametrize("periodic", [(), ("i",), ("i", "j")])
def test_halos_stay_for_nests_in_turn(ranks, threads, periodic):
    """The first round gives fields the halos that all nests need; from then on none moves, bound or not."""

    def body(context):
        start = np.random.default_rng(5).random((24, 17))
        h, u, v = (tw.field(start.shape, "f8", init=start + k, context=context) for k in range(3))
        shared = {"plan": {"grid": (ranks, 1)}, "context": context}
        others = [(zonal, {"u": u, "h": h, "periodic": periodic[:1]}), (around, {"v": v, "h": h, "periodic": periodic})]
        bound, where, moving = tw.bind(height, h=h, u=u, v=v, periodic=periodic, **shared), [], []
        for turn in range(4):
            reports = [bound.run(c=0.1 + turn), *(tw.run(nest, **given, **shared) for nest, given in others)]
            moving.append(sum(report.measured.moving_s for report in reports))
            where.append(places(h, u, v))
        return [field.gather() for field in (h, u, v)], where[2:] == [where[1]] * 2 and moving[2:] == [0, 0]

    ours, stays = results_of(ranks, threads, body)[0]
    assert stays
    theirs, stays = results_of(ranks, threads, body, without="halos_stay")[0]
    assert stays == (not periodic and ranks == 1)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(300, 200), (200, 300), (600, 600)])
def test_nests_in_turn_want_one_grid(shape, monkeypatch):
    """One that has no messages where the second loop is cut does not move what others have cut along the first."""
    steady_rates(monkeypatch)

    def body(context):
        h, u, v = (tw.field(shape, "f8", init=k, context=context) for k in range(3))
        given = [(height, {"h": h, "u": u, "v": v}), (zonal, {"u": u, "h": h}), (along, {"v": v, "h": h})]
        bounds = [tw.bind(nest, **arrays, context=context) for nest, arrays in given]
        return {bound.plan.grid for bound in bounds} - {(1, 1)}

    assert len(results_of(2, 1, body)[0]) <= 1


@tw.nest
def along(v, h, i, j):
    v[i, j] = v[i, j] - 0.1 * (h[i, j + 1] - h[i, j])


@tw.nest
def two_before(A, E, i):
    A[i] = E[i - 2]


@tw.nest
def at_it(A, E, i):
    A[i] = E[i] + 1


@pytest.mark.parametrize("item", ["f4", "f8", "c8"])
@pytest.mark.parametrize("every", [-1, -2, 2, 3])
def test_halos_stay_beside_arrays_that_lie_otherwise(every, item):
    """An array that a wider halo makes a copy of is not written by the steps that it had in memory."""

    def body(context):
        start = np.arange(17).astype(item)
        E, A = tw.field(start.shape, item, init=start, context=context), np.zeros(17 * abs(every), item)[::every]
        for nest in (two_before, at_it):
            tw.run(nest, A=A, E=E, periodic=("i",), context=context)
        return A

    np.testing.assert_array_equal(results_of(1, 1, body)[0], np.arange(17) + 1)


@tw.nest
def product(q, p, c, i, j):
    q[i, j] = 4.0 * p[i, j] - c[i, j] * (p[i-1, j] + p[i+1, j] + p[i, j-1] + p[i, j+1])


@tw.nest
def forward(y, q, c, i, j):
    y[i, j] = 0.25 * (q[i, j] + c[i, j] * y[i-1, j] + y[i, j-1])


@tw.nest
def backward(p, y, c, i, j):
    p[i, j] = 0.25 * (y[i, j] + c[i+1, j] * p[i+1, j] + p[i, j+1])


def plain_product(q, p, c):
    inner = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    q[1:-1, 1:-1] = 4.0 * p[1:-1, 1:-1] - c[1:-1, 1:-1] * inner


def plain_solves(p, y, q, c):
    rows, columns = p.shape
    for i in range(1, rows - 1):
        for j in range(1, columns - 1):
            y[i, j] = 0.25 * (q[i, j] + c[i, j] * y[i-1, j] + y[i, j-1])
    for i in range(rows - 2, 0, -1):
        for j in range(columns - 2, 0, -1):
            p[i, j] = 0.25 * (y[i, j] + c[i+1, j] * p[i+1, j] + p[i, j+1])


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_chain_gives_one_layout_and_other_nests_do_not(ranks):
    """By itself a solve stores its rows across, and may run on fewer ranks."""
    start = dict(zip("pqcy", np.random.default_rng(6).random((4, 150, 130)), strict=True))

    def body(context):
        fields = {name: tw.field(a.shape, "f8", init=a, context=context) for name, a in start.items()}
        given = {"over": {"i": (1, 149), "j": (1, 129)}, "context": context}

        def bound(nest, names, **more):
            return tw.bind(nest, **{name: fields[name] for name in names}, **given, **more)

        alone = bound(forward, "yqc")
        alone.run()
        nests = [bound(product, "qpc"), bound(forward, "yqc"), bound(backward, "pyc", reverse=("i", "j"))]
        assert nests[1].plan == alone.plan
        step = tw.chain(nests)
        assert not step.separate
        moving = [step.run().measured.moving_s for _ in range(3)]
        return {name: field.gather() for name, field in fields.items()}, step.plans, moving

    (whole, plans, moving), *_ = results_of(ranks, 1, body)
    assert len({plan.grid for plan in plans}) == len({plan.storage for plan in plans}) == 1
    assert moving[1:] == [0, 0]
    plain_solves(start["p"].copy(), start["y"], start["q"], start["c"])
    for _ in range(3):
        plain_product(start["q"], start["p"], start["c"])
        plain_solves(start["p"], start["y"], start["q"], start["c"])
    for name, array in start.items():
        np.testing.assert_array_equal(whole[name], array)
