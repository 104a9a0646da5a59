"""Arrays with a row for several time steps that a nest writes, `w[t // k, i]`: plain loops, bit for bit."""

import math

import numpy as np
import pytest
from local_ranks import on_ranks, refused_on_all, results_of

import tilewave as tw

@tw.nest
def kept(u, w, t, i, j):
    u[t + 1, i, j] = 0.5 * u[t, i, j] + 0.25 * (u[t, i - 1, j] + u[t, i, j + 1])
    if t % 3 == 0:
        w[t // 3, i, j] = u[t, i, j]


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
@pytest.mark.parametrize("off_grid", [False, True])
def test_sources_and_receivers(ranks, off_grid):
    """The same as runs of three steps, one after another."""
    points = tw.OffGrid([(3.5, 4.25), (7.0, 2.5)]) if off_grid else [(3, 4), (7, 2)]
    wavelet = np.random.default_rng(5).standard_normal((14, 2))

    def body(context):
        u = tw.field((12, 9), "f8", lambda i, j: 1.0 * i - j, context=context)
        w = tw.field((5, 12, 9), "f8", lambda b, i, j: 100.0 + b, context=context)
        report = tw.run(
            kept, u=u, w=w, steps=14, inject={"u": (points, wavelet)}, record={"u": points}, context=context
        )
        v = tw.field((12, 9), "f8", lambda i, j: 1.0 * i - j, context=context)
        rows, records = [], []
        for first in range(0, 14, 3):
            steps = min(3, 14 - first)
            row = tw.field((1, 12, 9), "f8", 100.0 + first // 3, context=context)
            given = {"inject": {"u": (points, wavelet[first : first + steps])}, "record": {"u": points}}
            records.append(tw.run(kept, u=v, w=row, steps=steps, **given, context=context).recorded["u"])
            rows.append(row.gather())
        return u.gather(), v.gather(), w.gather(), rows, report.recorded["u"], np.concatenate(records)

    u, v, w, rows, record, records = results_of(ranks, 1, body)[0]
    assert np.array_equal(u, v) and np.array_equal(w, np.concatenate(rows)) and np.array_equal(record, records)


@tw.nest
def sums(u, w, t, i):
    d = u[t, i] - u[t, i - 1]
    u[t + 1, i] = 0.5 * d
    w[t + 1, i] = w[t, i] + d


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("door", [tw.run, lambda nest, **given: tw.bind(nest, **given).run()])
def test_points_beside_and_of_an_array_that_keeps_all_steps(ranks, door):
    start, points, rows = np.arange(8.0), [(3,), (5,)], [(2, 3), (1, 6), (4, 1)]
    added, of_rows = np.arange(8.0).reshape(4, 2), np.arange(12.0).reshape(4, 3)
    u, w, records = start.copy(), np.zeros((5, 8)), []
    for t in range(4):
        d = u[1:] - u[:-1]
        u[1:], w[t + 1, 1:] = 0.5 * d, w[t, 1:] + d
        np.add.at(u, tuple(np.transpose(points)), added[t])
        np.add.at(w, tuple(np.transpose(rows)), of_rows[t])
        records.append([w[at] for at in rows])

    def body(context):
        U, W = tw.field((8,), "f8", start, context=context), tw.field((5, 8), context=context)
        inject = {"u": (points, added), "w": (rows, of_rows)}
        report = door(sums, u=U, w=W, steps=4, inject=inject, record={"w": rows}, context=context)
        return U.gather(), W.gather(), report.recorded["w"]

    for got, wanted in zip(results_of(ranks, 1, body)[0], (u, w, records), strict=True):
        assert np.array_equal(got, wanted)


def test_points_of_an_array_that_keeps_all_steps_with_fewer_loops():
    nest = tw.nest_from("def last(u, w, t, i, j):\n    u[t+1, i, j] = 2 * u[t, i, j]\n    w[t+1, j] = u[t, i, j]\n")
    u, w, added = tw.field((3, 4), init=1.0), tw.field((4, 4)), np.ones((3, 1))
    tw.run(nest, u=u, w=w, steps=3, inject={"w": ([(1, 2)], added)})
    assert w.gather().tolist() == [[0] * 4, [1, 1, 4, 1], [2] * 4, [4] * 4]


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize("ranks", [1, 3])
def test_all_steps_of_a_periodic_nest(ranks, steps):
    """In whichever order the points of a step run."""
    nest = tw.nest_from("def film(u, w, t, i):\n    u[t+1, i] = u[t, i-1] - u[t, i]\n    w[t+1, i] = 2 * u[t, i]\n")
    u, w = np.arange(7.0) ** 2, np.full((6, 7), 5.0)
    start = u
    for t in range(steps):
        w[t + 1], u = 2 * u, np.roll(u, 1) - u

    def body(context):
        U, W = tw.field((7,), "f8", start, context=context), tw.field((6, 7), "f8", 5.0, context=context)
        tw.run(nest, u=U, w=W, steps=steps, periodic=("i",), reverse=("i",), context=context)
        return U.gather(), W.gather()

    found = results_of(ranks, 1, body)[0]
    assert np.array_equal(found[0], u) and np.array_equal(found[1], w)


@pytest.mark.parametrize("axes", [("i",), ("i", "j")])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_periodic(ranks, axes):
    steps, shape = 10, (7, 8)
    start = np.random.default_rng(3).standard_normal(shape)
    whole, rows = np.stack([start] * (steps + 1)), np.zeros((4, *shape))
    for t in range(steps):
        whole[t + 1] = whole[t]
        i, j = np.arange(7), np.arange(8 if "j" in axes else 7)
        at = np.ix_(i, j)
        beside = whole[t][np.ix_((i - 1) % 7, j)] + whole[t][np.ix_(i, (j + 1) % 8)]
        whole[t + 1][at] = 0.5 * whole[t][at] + 0.25 * beside
        if t % 3 == 0:
            rows[t // 3][at] = whole[t][at]

    def body(context):
        u, w = tw.field(shape, "f8", start, context=context), tw.field((4, *shape), context=context)
        tw.run(kept, u=u, w=w, steps=steps, periodic=axes, context=context)
        return u.gather(), w.gather()

    u, w = results_of(ranks, 1, body)[0]
    assert np.array_equal(u, whole[steps]) and np.array_equal(w, rows)


@pytest.mark.parametrize("ranks", [1, 3])
def test_refused_on_every_rank(ranks):
    def refused(text, call=tw.run, nest=kept, rows=5, **more):
        def body(context):
            shape = (rows, 6, 6) if rows else (6, 6)
            arrays = {"u": tw.field((6, 6), context=context), "w": tw.field(shape, context=context)}
            arrays |= {"context": context} | more
            for name in [name for name, value in arrays.items() if value is None]:
                del arrays[name]
            call(nest, **arrays)

        refused_on_all(ranks, body, text)

    refused("`t // 3` is 5 at t=15, which array 'w' of shape (5, 6, 6) has no row for; allowed: -5 to 4", steps=16)
    refused("steps= was not given", steps=None)
    refused("where: argmax('w') is a place in 'w'", steps=9, reduce={"where": tw.argmax("w")})
    refused("array 'w' has shape (6, 6), the nest gives it 3 subscripts", steps=3, rows=0)
    refused("5 at t=15, which array 'w' of shape (5, 6, 6) has no row", tw.run, nest=(kept, kept), steps=16)
    scaled = tw.nest_from("def scaled(u, w, t, i, j, *, k):\n    w[t // k, i, j] = u[t, i, j]\n")
    refused("k is 2.5; allowed: an int", nest=scaled, u=np.ones((3, 6, 6)), steps=3, k=2.5)
    refused("allowed: a divisor that is not 0", nest=scaled, u=np.ones((3, 6, 6)), steps=3, k=0)


def test_ranks_that_were_given_other_rows():
    def body(context):
        u, w = tw.field((6, 6), context=context), tw.field((5, 6, 6), context=context)
        other = tw.field((5, 6, 6), context=context)
        tw.run(kept, u=u, w=other if context.rank else w, steps=3, context=context)

    _, errors = on_ranks(2, 1, body)
    assert all(isinstance(error, tw.ConfigError) for error in errors), errors


def test_the_plan_is_of_all_steps():
    u, w = np.zeros((40, 40)), np.zeros((5, 40, 40))
    report, plan = tw.run(kept, u=u, w=w, steps=15), tw.plan(kept, u=u, w=w, steps=15)
    assert plan.notes["extents"][0] == 15 and report.plan.choices() == plan.choices()
    assert report.points == 15 * 39 * 39 and "time steps" in str(report)
    assert report.measured.call_s >= report.measured.time_s + report.measured.moving_s > 0


def test_a_constant_from_outside_may_change():
    nest = tw.nest_from("K = 2\ndef body(u, w, t, i):\n    u[t+1, i] = u[t, i] + 1\n    w[t // K, i] = u[t+1, i]\n")
    for nest.function.__globals__["K"], rows in ((2, [2, 4, 6]), (3, [3, 6, 0])):
        u, w = np.zeros(3), np.zeros((3, 3))
        tw.run(nest, u=u, w=w, steps=6)
        assert w[:, 0].tolist() == rows


@pytest.mark.parametrize("back", [False, True])
def test_strides_whose_first_element_follows_time(back):
    nest = tw.nest_from("def body(R, t, j):\n    R[(t + 1) // 2, j] += t + 1\n")
    if back:
        nest = tw.nest_from("def body(u, R, t, j):\n    u[t-1, j] = u[t, j]\n    R[(t + 1) // 2, j] += t + 1\n")
    R, right, steps = np.zeros((5, 14), "i8"), np.zeros((5, 14), "i8"), 5
    for t in range(steps, 0, -1) if back else range(steps):
        right[(t + 1) // 2, t + 4 : 14 : 3] += t + 1
    u = {"u": np.zeros(14)} if back else {}
    tw.run(nest, R=R, over={"j": ("t + 4", 14, 3)}, steps=steps, reverse=("t",) * back, **u)
    assert np.array_equal(R, right)


@tw.nest
def every_second(A, R, t, l, *, n):
    A[t+1, l] = A[t, l] * 0.5
    R[t % 3, l] = tw.sum(A[t, q] + t for q in range(n) if t % 2 == 0)


def test_loops_in_the_body_that_compute_with_time():
    start, expected = np.random.default_rng(2).random(5), np.zeros((3, 5))
    A, R, now = tw.field(start), tw.field((3, 5)), start.copy()
    tw.run(every_second, A=A, R=R, n=5, steps=3)
    for t in range(3):
        expected[t] = sum(now[q] + t for q in range(5) if t % 2 == 0)
        now *= 0.5
    assert np.array_equal(R.gather(), expected)


summed = tw.nest_from(
    "def summed(u, w, t, i, *, k, c=0.5):\n"
    "    d = c * u[t, i] + 0.25 * u[t, i-1]\n    u[t+1, i] = d\n    w[t // k, i] += d\n"
)
beside = tw.nest_from("def beside(v, u, w, t, i, *, k):\n    v[t+1, i] = v[t, i] + u[t+1, i] * w[t // k, i]\n")
N = 12


def plain(u, w, steps, k, c=0.5, v=None, first=0):
    """The loops of `summed`, and of `beside` where it has an array."""
    seen = []
    for t in range(first, first + steps):
        d = c * u[1:] + 0.25 * u[:-1]
        u[1:], seen = d, [*seen, *d]
        w[t // k, 1:] += d
        if v is not None:
            v[...] = v + u * w[t // k]
    return {"total": math.fsum(seen), "most": max(seen)}


def start(rows=6):
    rng = np.random.default_rng(2)
    return rng.standard_normal(N), rng.standard_normal((rows, N))


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("without", ["", "step_rows"])
def test_bound_and_in_a_chain(ranks, without):
    """Other steps and scalars in each run: the rows are other ones, too."""
    reduce = {"total": tw.sum("d"), "most": tw.max("d")}

    def body(context):
        u, w = start()
        expected = u.copy(), w.copy()
        given = {"u": tw.field((N,), "f8", u, context=context), "w": tw.field(w.shape, "f8", w, context=context)}
        bound = tw.bind(summed, **given, steps=10, k=3, reduce=reduce, context=context)
        for steps, scalars in ((None, {}), (7, {}), (None, {"k": 2, "c": 0.125}), (0, {}), (4, {"k": 4})):
            results = bound.run(steps=steps, **scalars).results
            right = plain(*expected, 10 if steps is None else steps, **{"k": 3, **scalars}) if steps != 0 else results
            assert results == right, (steps, scalars)
        v = tw.field((N,), "f8", 1.0, context=context)
        tw.chain([bound, tw.bind(tw.nest_from("def add(v, u, i):\n    v[i] += u[i]\n"), v=v, u=given["u"])]).run(3)
        for _ in range(3):
            plain(*expected, 10, 3)
        return [given[name].gather() for name in "uw"], expected

    found, expected = results_of(ranks, 1, body, without=without)[0]
    assert all(map(np.array_equal, found, expected))


@pytest.mark.parametrize("ranks", [1, 2])
def test_beside_another_nest(ranks):
    """Which reads the rows in the time step that has written them."""

    def body(context):
        u, w = start()
        v = np.ones(N)
        given = {name: tw.field(array.shape, "f8", array, context=context) for name, array in zip("uwv", (u, w, v))}
        for steps in (7, 7, 4):
            tw.run((summed, beside), **given, k=3, steps=steps, context=context)
            plain(u, w, steps, 3, v=v)
        return [given[name].gather() for name in "uwv"], (u, w, v)

    found, expected = results_of(ranks, 1, body)[0]
    assert all(map(np.array_equal, found, expected))


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_window_lasts_over_all_rows(ranks):
    def body(context):
        u, w = tw.scratch("f8", lambda i: 1.0 * i), tw.field((3, N), context=context)
        bound = tw.bind(summed, u=u, w=w, steps=8, k=3, context=context)
        for _ in range(2):  # each run begins anew
            w.local[...] = 0
            bound.run()
        return w.gather()

    right = np.zeros((3, N))
    plain(np.arange(N) * 1.0, right, 8, 3)
    assert np.array_equal(results_of(ranks, 1, body)[0], right)


@pytest.mark.parametrize("steps", [1, 3, 7])
def test_time_runs_backwards_along_all_arrays_that_have_it(steps):
    nest = tw.nest_from("def body(A, D, R, t, i):\n    A[t-1, i] = A[t, i] + D[t, i]\n    R[t // 3, i] = D[t, i]")
    A, D, R = np.zeros(4), np.random.default_rng(steps).integers(0, 99, (steps + 1, 4)) * 1.0, np.zeros((3, 4))
    tw.run(nest, A=A, D=D, R=R, reverse=("t",), steps=steps)
    assert (A == D[1:].sum(axis=0)).all()
    for row in range(steps // 3 + 1):
        assert (R[row] == D[max(3 * row, 1)]).all()
    with pytest.raises(tw.ConfigError, match=f"with steps [+] 1 elements there, {steps + 1}"):
        tw.run(nest, A=A, D=np.zeros((steps + 2, 4)), R=R, reverse=("t",), steps=steps)


@tw.nest
def late(w, v, r, i, j):
    v[r, i, j] = v[r, i, j] + w[r, i, j-1]


@tw.nest
def last_rows(u, w, z, t, i, j):
    z[t + 1, i, j] = 0.5 * z[t, i, j] + u[t + 1, i, j]
    w[t % 2, i, j] = z[t + 1, i, j] + w[t % 2, i, j]


def several_rows(start, steps, times):
    """What `kept`, `late` and `last_rows` leave, one after another."""
    u, z = start.copy(), np.zeros_like(start)
    w, v = np.zeros((2, 5, *start.shape))
    for _ in range(times):
        for t in range(steps):
            new, inside = u.copy(), np.s_[1:, :-1]
            new[inside] = 0.5 * u[inside] + 0.25 * (u[:-1, :-1] + u[1:, 1:])
            if t % 3 == 0:
                w[t // 3][inside] = u[inside]
            u = new
        v[:, :, 1:] += w[:, :, :-1]
        for t in range(steps):
            z = 0.5 * z + u
            w[t % 2] += z
    return u, v, w, z


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("grid", [None, "rows"])
def test_chains_with_nests_that_use_the_rows(ranks, grid):
    start, steps, times = np.random.default_rng(9).standard_normal((9, 8)), 11, 3
    wanted = several_rows(start, steps, times)

    def body(context):
        u, w = tw.field(start, context=context), tw.field((5, *start.shape), context=context)
        v, z = tw.field(w.shape, context=context), tw.field(start.shape, context=context)
        # Another nest may divide the larger array otherwise: it is brought there and back.
        fixed = {"plan": {"grid": (ranks, 1, 1)}} if grid else {}
        nests = [
            tw.bind(kept, u=u, w=w, steps=steps),
            tw.bind(late, w=w, v=v, **fixed),
            tw.bind(last_rows, u=u, w=w, z=z, steps=steps),
        ]
        chain = tw.chain(nests)
        assert chain.separate == "" and "one after another on each rank" in chain.explain()
        report = chain.run(times=times)
        assert report.by_nest[0].points == times * steps * 8 * 7
        assert chain.plans[0].notes["extents"][0] == nests[0].plan.notes["extents"][0]
        return [array.gather() for array in (u, v, w, z)]

    for found, right in zip(results_of(ranks, 1, body)[0], wanted, strict=True):
        assert np.array_equal(found, right)


def test_rows_of_numpy_arrays_and_of_other_divisors():
    nest = tw.nest_from(
        "def body(u, w, t, i, *, k):\n    d = u[t, i] + i\n    u[t+1, i] = d\n    w[t // k, i] = w[t // k, i] + d\n"
    )
    u, w = np.zeros(6), np.zeros((8, 6))
    chain = tw.chain([tw.bind(nest, u=u, w=w, k=2, steps=7, reduce={"all": tw.sum("d")})])
    assert chain.separate == ""
    right_u, right_w = u.copy(), w.copy()
    for k in (2, 3, 1, 2):
        found = chain.run(k=k).results["all"]
        total = 0.0
        for t in range(7):
            right_u += np.arange(6)
            right_w[t // k] += right_u
            total += right_u.sum()
        assert np.array_equal(u, right_u) and np.array_equal(w, right_w) and found == total


@pytest.mark.parametrize("ranks", [1, 2])
def test_windows_begin_anew_in_each_repetition(ranks):
    start = np.random.default_rng(4).standard_normal((9, 8))
    rows = several_rows(start, 8, 1)[2]

    def body(context):
        u = tw.field((9, 8), "f8", start, keep="window", context=context)
        w = tw.field((5, 9, 8), context=context)
        chain = tw.chain([tw.bind(kept, u=u, w=w, steps=8)])
        assert chain.separate == ""
        chain.run(times=2)
        return w.gather()

    found = results_of(ranks, 1, body)[0]
    assert np.array_equal(found[2:], rows[2:])


def test_why_nests_run_apart():
    u = tw.field((6, 6))
    w = tw.field((5, 6, 6), keep="window")
    assert "rows of a rolling window" in tw.chain([tw.bind(kept, u=u, w=w, steps=6)]).separate
