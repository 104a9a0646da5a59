"""Bound nests: what `tilewave.run` computes, bit for bit, however often, on ranks that are threads."""

import pickle

import numpy as np
import pytest

import tilewave as tw
from local_ranks import on_ranks
from tilewave.errors import ConfigError, KernelError

RANKS = [(1, 1), (2, 1), (3, 2)]


@tw.nest
def smooth(u, f, i, j, *, w=1.0):
    u[i, j] = (1 - w) * u[i, j] + w * 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


@tw.nest
def residual(r, u, f, i, j):
    r[i, j] = f[i, j] - 4 * u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]


@tw.nest
def heat(u, t, i, j):
    u[t + 1, i, j] = u[t, i, j] + 0.125 * (u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1])


@tw.nest
def wave(u, t, i):
    u[t + 1, i] = 2 * u[t, i] - u[t - 1, i] + 0.25 * (u[t, i - 1] - 2 * u[t, i] + u[t, i + 1])


@tw.nest
def align(H, a, b, i, j, *, gap=2):
    H[i, j] = max(0, H[i - 1, j - 1] + (3 if a[i] == b[j] else -1), H[i - 1, j] - gap, H[i, j - 1] - gap)


@tw.nest
def grow(A, i, j):
    A[i, j] = A[i - 1, j] + 2 * A[i, j - 1]


@tw.nest
def across(A, i, j):
    A[i, j] = A[i, j + 1] + A[i - 1, j] - 3


@tw.nest
def divide(A, d, i, *, limit=0):
    if d[i] == limit:
        raise ValueError("no divisor")
    A[i] = A[i - 1] // (d[i] - limit)


def filled(context, shape, dtype="f8", history=0):
    return tw.field(
        shape,
        dtype,
        init=lambda *at: sum((k + 2) * x for k, x in enumerate(at)) % 11 + 1,
        history=history,
        context=context,
    )


def results(ranks, threads, body, timeout_s=120):
    """What body gives on each rank; raises the first error."""
    found, errors = on_ranks(ranks, threads, body, timeout_s)
    for error in errors:
        if error is not None:
            raise error
    return found


def same(a, b):
    """Whether two fields have the same bits; True on other ranks than 0."""
    x, y = a.gather(), b.gather()
    return x is None or x.tobytes() == y.tobytes()


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_two_bound_nests_that_alternate(ranks, threads):
    def body(context):
        u, f, r = (filled(context, (37, 29)) for _ in range(3))
        v, g, s = (field.copy() for field in (u, f, r))
        sweep, rest = tw.bind(smooth, u=u, f=f, w=0.75), tw.bind(residual, r=r, u=u, f=f)
        assert sweep.run().points == rest.run().points == 35 * 27
        tw.run(smooth, u=v, f=g, w=0.75)
        tw.run(residual, r=s, u=v, f=g)
        for weight in (0.75, 1.0, 0.5, 0.75):
            sweep.run(w=weight)
            rest.run()
            tw.run(smooth, u=v, f=g, w=weight)
            tw.run(residual, r=s, u=v, f=g)
            assert same(u, v) and same(r, s)

    results(ranks, threads, body)


@tw.nest
def weighted(u, i, *, c=1, d=2):
    u[i] = c * u[i - 1] + d * u[i]


def test_a_run_with_other_scalars_leaves_the_bound_ones():
    u, v = tw.field((40,), "i8", init=1), tw.field((40,), "i8", init=1)
    bound = tw.bind(weighted, u=u)
    for scalars in ({}, {"c": -3, "d": 5}, {"c": -2}, {}, {"d": -1}, {"c": 3, "d": -4}, {}):
        bound.run(**scalars)
        tw.run(weighted, u=v, **scalars)
        assert np.array_equal(u.gather(), v.gather()), scalars


def test_a_way_that_was_prepared_for_other_scalars_runs_the_bound_ones():
    """Layouts that are weighed anew make a run prepare again, also one whose scalars are others of the same types."""
    u, v = tw.field((40,), "i8", init=1), tw.field((40,), "i8", init=1)
    bound = tw.bind(weighted, u=u)
    bound._ways.forget(lambda _: True)
    for scalars in ({"c": 3}, {}, {"d": 1}, {}):
        bound.run(**scalars)
        tw.run(weighted, u=v, **scalars)
        assert np.array_equal(u.gather(), v.gather()), scalars



@pytest.mark.parametrize("ranks, threads", RANKS)
def test_scalars_of_one_run_and_of_another_type(ranks, threads):
    def body(context):
        u, f = filled(context, (20, 30)), filled(context, (20, 30))
        v = u.copy()
        bound = tw.bind(smooth, u=u, f=f, w=0.5)
        for scalars in ({}, {"w": 0.25}, {}, {"w": 1}, {"w": np.float32(0.1)}, {"w": 0.25}, {}):
            bound.run(**scalars)
            tw.run(smooth, u=v, f=f, **{"w": 0.5, **scalars})
            assert same(u, v), scalars

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
@pytest.mark.parametrize("bound_steps", [0, 1, 3, 50])
def test_steps_that_change(ranks, threads, bound_steps):
    def body(context):
        u = filled(context, (18, 23))
        v = u.copy()
        bound = tw.bind(heat, u=u, steps=bound_steps)
        for steps in (None, 50, 7, 0, 1, 1003, 2, 50, 1001, 1003, None):
            report = bound.run(steps=steps)
            steps = bound_steps if steps is None else steps
            tw.run(heat, u=v, steps=steps)
            assert same(u, v), steps
            assert report.loops["t"] == (0, steps) and report.points == steps * 16 * 21

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_earlier_time_steps(ranks, threads):
    def body(context):
        u = filled(context, (70,), history=1)
        v = u.copy()
        bound = tw.bind(wave, u=u, steps=9)
        for steps in (None, 40, 2, None, 1, 333, 40):
            bound.run(steps=steps)
            tw.run(wave, u=v, steps=9 if steps is None else steps)
            assert same(u, v) and same(u.buffer(-1), v.buffer(-1)), steps

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
@pytest.mark.parametrize("alone", [False, True])
def test_blocks_of_steps_also_where_a_rank_goes_the_longer_way(ranks, threads, alone):
    def body(context):
        u = filled(context, (400, 300))
        v = u.copy()
        bound = tw.bind(heat, u=u, steps=90, grid=(1, ranks, 1))
        assert bound._first.ready.steps == 90  # prepared for a block of them
        if alone and context.rank == 0:
            bound._prepare_call = lambda *given: None  # as where its memory has run out
        for steps in (90, 203, 12, 0, 90):
            report = bound.run(steps=steps)
            tw.run(heat, u=v, steps=steps)
            assert same(u, v) and report.loops["t"] == (0, steps) and report.points == steps * 398 * 298

    results(ranks, threads, body)


def test_many_steps_prepare_as_few(monkeypatch):
    made = []
    from tilewave.run import bind as module

    real = module.prepare
    monkeypatch.setattr(module, "prepare", lambda *given: made.append(given) or real(*given))

    def body(context):
        u = filled(context, (6, 6))
        bound = tw.bind(heat, u=u, steps=100)
        bytes_before = bound._first.ready.sweep.bytes
        bound.run(steps=100_000)
        assert bound._first.ready.sweep.bytes == bytes_before

    results(1, 1, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_reductions_and_a_rolling_window(ranks, threads):
    def body(context):
        a = filled(context, (40,), "i4")
        b = filled(context, (60,), "i4")
        H = tw.field((40, 60), "i4", keep="window", context=context)
        wanted = {"best": tw.max("H"), "where": tw.argmax("H"), "all": tw.sum("H")}
        bound = tw.bind(align, H=H, a=a, b=b, reduce=wanted)
        for gap in (2, 1, 2, 3):
            found = bound.run(gap=gap).results
            assert found == tw.run(align, H=H, a=a, b=b, reduce=wanted, gap=gap).results
        # Values change between runs.
        a.fill(lambda i: i % 3)
        assert bound.run().results == tw.run(align, H=H, a=a, b=b, reduce=wanted).results

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_scratch(ranks, threads):
    def body(context):
        a, b = filled(context, (30,), "i4"), filled(context, (31,), "i4")
        bound = tw.bind(align, H=tw.scratch("i4"), a=a, b=b, reduce={"best": tw.max("H")})
        once = tw.run(align, H=tw.scratch("i4"), a=a, b=b, reduce={"best": tw.max("H")})
        assert bound.run().results == bound.run().results == once.results

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_a_field_that_another_nest_moves_is_brought_back(ranks, threads):
    def body(context):
        A = filled(context, (48, 36), "i8")
        B = A.copy()
        bound = tw.bind(grow, A=A)
        bound.run()
        tw.run(grow, A=B)
        for grid in ([(1, ranks), (ranks, 1)] if ranks > 1 else [(1, 1)]):
            for _ in range(2):
                tw.run(across, A=A, grid=grid, storage="plain")
                tw.run(across, A=B, grid=grid, storage="plain")
                A._storage.relayout(A._storage.layout)  # row-major
                report = bound.run()
                tw.run(grow, A=B)
                assert same(A, B)
                assert report.measured.moving_s >= 0 and bound.run().measured.moving_s == 0
                tw.run(grow, A=B)
                assert same(A, B)

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_nests_that_fight_for_a_layout_end_with_the_right_values(ranks, threads):
    def body(context):
        A = filled(context, (300, 200), "i8")
        B = A.copy()
        one, other = tw.bind(grow, A=A), tw.bind(across, A=A)
        for _ in range(30):
            one.run()
            other.run()
            tw.run(grow, A=B)
            tw.run(across, A=B)
        assert same(A, B)

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_a_field_whose_values_are_set_between_runs(ranks, threads):
    def body(context):
        A = filled(context, (21, 17), "i8")
        B = A.copy()
        bound = tw.bind(grow, A=A)
        for k in range(4):
            for field in (A, B):
                field.fill(lambda i, j, k=k: i * j + k)
                field[3, 4] = k
            bound.run()
            tw.run(grow, A=B)
            assert same(A, B)

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_a_closed_field(ranks, threads):
    def body(context):
        A, u, f = filled(context, (20, 20), "i8"), filled(context, (20, 20)), filled(context, (20, 20))
        bound, other = tw.bind(grow, A=A), tw.bind(smooth, u=u, f=f)
        bound.run()
        A.close()
        A.close()
        assert A.closed and "closed" in repr(A)
        for call in (bound.run, lambda: tw.run(grow, A=A), A.gather, A.copy):
            with pytest.raises(ConfigError, match="was closed"):
                call()
        if context.rank == context.size - 1:  # one rank alone
            f.close()
        with pytest.raises(ConfigError, match="bound nest 2, 'smooth' is a field that was closed"):
            other.run()
        assert u.gather() is not None or context.rank > 0

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_a_body_that_raises_on_one_rank(ranks, threads):
    def body(context):
        A, d = filled(context, (40,), "i8"), tw.field((40,), "i8", init=lambda i: 7 if i == 33 else 1, context=context)
        A.fill(5)
        bound = tw.bind(divide, A=A, d=d)
        bound.run()
        first = A.gather()
        for _ in range(3):
            with pytest.raises(KernelError, match=r"nest 'divide' raised ValueError.* at i=33 on rank") as caught:
                bound.run(limit=7)
            assert caught.value.agreed
            A.fill(5)
            bound.run()
            again = A.gather()
            assert first is None or np.array_equal(first, again)

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_that_run_different_things(ranks):
    def body(context):
        u, f, r = (filled(context, (20, 20)) for _ in range(3))
        v, s = u.copy(), r.copy()
        sweep, rest = tw.bind(smooth, u=u, f=f), tw.bind(residual, r=r, u=u, f=f)
        steps = tw.bind(heat, u=r, steps=20)
        last = context.rank == context.size - 1
        sweep.run()
        for mine, others, text in (
            (rest.run, sweep.run, "bound nest 2, 'residual'"),
            (lambda: u.fill(1), sweep.run, "different functions"),
            (lambda: tw.run(smooth, u=u, f=f), sweep.run, "different functions"),
            (lambda: sweep.run(w=0.5), sweep.run, "w=0.5"),
            (lambda: steps.run(steps=21), steps.run, "steps 21"),
            (lambda: sweep.run(w="x"), sweep.run, "scalar 'w'"),
            (lambda: sweep.run(v=1), sweep.run, "no scalar 'v'"),
            (lambda: sweep.run(steps=3), sweep.run, "was bound without steps"),
            (lambda: steps.run(steps=-1), steps.run, "steps: given -1"),
        ):
            with pytest.raises(ConfigError) as caught:
                (mine if last else others)()
            assert text in str(caught.value) and caught.value.agreed
        sweep.record = last
        with pytest.raises(ConfigError, match="recorded"):
            sweep.run()
        sweep.record = False
        sweep.run()
        rest.run()
        for _ in range(2):
            tw.run(smooth, u=v, f=f)
        tw.run(residual, r=s, u=v, f=f)
        assert same(u, v) and same(r, s)

    results(ranks, 1, body)


@pytest.mark.parametrize("ranks", [1, 2])
def test_bound_on_one_context_and_run_with_another(ranks):
    def body(context):
        A = filled(context, (20, 20), "i8")
        bound = tw.bind(grow, A=A)
        bound.run(context=context)
        with pytest.raises(ConfigError, match="was bound on .*, and is run with context="):
            bound.run(context=context.solo())
        with pytest.raises(ConfigError, match="field of another context"):
            tw.bind(grow, A=filled(context.solo(), (20, 20), "i8"), context=context)
        bound.run()

    results(ranks, 1, body)


def test_numpy_arrays_in_place():
    A = np.arange(400.0).reshape(20, 20) % 7
    for given in (A, A[::-1, ::2], np.frombuffer(b"x" + A.tobytes(), "u1")[1:].view("f8").reshape(20, 20).copy()):
        given, f = given.copy() if given is A else given, np.ones((20, given.shape[1]))
        wanted = given.copy()
        bound = tw.bind(smooth, u=given, f=f)
        for k in range(3):
            bound.run()
            tw.run(smooth, u=wanted, f=f)
            assert given.tobytes() == wanted.tobytes()
            f += k


def test_a_numpy_array_that_is_not_aligned():
    room = np.zeros(8 * 400 + 1, "u1")
    A = room[1:].view("f8").reshape(20, 20)
    A[...] = np.arange(400.0).reshape(20, 20) % 7
    wanted, f = A.copy(), np.ones((20, 20))
    bound = tw.bind(smooth, u=A, f=f)
    for _ in range(3):
        bound.run()
        tw.run(smooth, u=wanted, f=f)
        assert A.tobytes() == wanted.tobytes()
        A += 1
        wanted += 1


def test_a_view_of_a_field_that_has_moved():
    context = tw.default_context()
    A, u = filled(context, (20, 20)), filled(context, (20, 20))
    bound = tw.bind(smooth, u=u, f=A.local)
    bound.run()
    tw.run(heat, u=A, steps=3)  # has time buffers now, elsewhere
    if A._storage.version == 1:
        pytest.skip("the field did not move")
    with pytest.raises(ConfigError, match="view of a field from before"):
        bound.run()


def test_tables_are_read_as_they_are():
    @tw.nest
    def score(H, a, S, i, j):
        H[i, j] = H[i - 1, j - 1] + S[a[i], a[j]]

    H, a, S = np.zeros((9, 9), "i8"), np.arange(9) % 4, np.arange(16).reshape(4, 4)
    wanted, bound = H.copy(), tw.bind(score, H=H, a=a, S=S)
    for _ in range(3):
        bound.run()
        tw.run(score, H=wanted, a=a, S=S)
        assert np.array_equal(H, wanted)
        S *= 2


factor = 2.0


@tw.nest
def scaled(A, i):
    A[i] = factor * A[i - 1]


def test_numbers_from_outside_the_body_are_those_when_it_runs():
    global factor
    factor = 2.0
    A = np.ones(5)
    bound = tw.bind(scaled, A=A)
    for value in (2.0, 3.0, 0.5):
        factor = value
        bound.run()
        assert np.array_equal(A, value ** np.arange(5))


def test_what_cannot_be_bound():
    A = np.ones((5, 5))
    for nest in ((smooth, residual), "smooth", None):
        with pytest.raises(ConfigError, match="allowed: one function under @tilewave.nest"):
            tw.bind(nest, u=A)
    with pytest.raises(ConfigError, match="needs its array 'f'"):
        tw.bind(smooth, u=A)
    with pytest.raises(ConfigError, match="is not supported by this version"):
        tw.bind(smooth, u=A, f=A.copy(), times=3)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_reports(ranks, threads):
    def body(context):
        u, f = filled(context, (40, 40)), filled(context, (40, 40))
        bound = tw.bind(smooth, u=u, f=f)
        plan = bound.plan
        assert "smooth(u: float64 (40, 40), f: float64 (40, 40), w=1.0)" in repr(bound)
        report = bound.run()
        again = pickle.loads(pickle.dumps(bound.run()))
        for each in (report, again):
            assert each.plan.choices() == plan.choices() and each.points == 38 * 38
            assert each.loops == {"i": (1, 39), "j": (1, 39)} and each.measured.time_s > 0
            assert "not recorded" in str(each) and not each.lanes and not len(each.timeline.events)
        bound.record = True
        recorded = bound.run()
        if context.rank == 0:
            assert recorded.lanes and len(recorded.timeline.events) and "not recorded" not in str(recorded)
        bound.record = False
        assert not bound.run().lanes
        with pytest.raises(AttributeError):
            report.nothing_of_the_kind

    results(ranks, threads, body)


def test_a_plan_and_choices():
    def body(context):
        u, f = filled(context, (40, 40)), filled(context, (40, 40))
        v = u.copy()
        plan = tw.plan(smooth, u=u, f=f, tile=(8, 19))
        bound = [tw.bind(smooth, u=u, f=f, plan=plan), tw.bind(smooth, u=u, f=f, tile=(5, 7), storage="plain")]
        assert bound[0].plan.tile == (8, 19) and bound[1].plan.tile == (5, 7)
        for each in bound:
            each.run()
            tw.run(smooth, u=v, f=f)
            assert same(u, v)

    results(2, 1, body)
