"""Chains: what their nests compute one after another, bit for bit, on ranks that are threads."""

import pickle
import re

import numpy as np
import pytest

import tilewave as tw
from tilewave import _core
from bound_cases import RANKS, across, divide, filled, heat, residual, results, same, smooth
from tilewave.errors import ConfigError, KernelError
from tilewave.nests.call import step_blocks as steps


@tw.nest
def wave(u, t, i, j):
    u[t + 1, i, j] = u[t, i - 1, j] + u[t, i + 1, j] - u[t - 1, i, j]


@tw.nest
def grow(A, i, j, *, c=1):
    A[i, j] = A[i - 1, j] + c * A[i, j - 1]


@tw.nest
def far(B, A, i, j):
    B[i, j] = A[i - 3, j] + A[i, j + 2]


@tw.nest
def shifted(A, B, i, j):
    A[i, j] = B[i - 1, j] + B[i, j + 2]


@tw.nest
def spread(A, B, i, j):
    A[i, j] = A[i, j] - B[i + 1, j] + B[i, j - 1]


@tw.nest
def add(A, i):
    A[i] = A[i] + 1000


@tw.nest
def look_up(H, T, a, i):
    H[i] = T[a[i]]


@tw.nest
def count(S, L, u, f, w, b, i, j):
    d = u[b, i, j] + w[f[b, i, j]]
    u[b, i, j] = d
    S[j] += d
    L[b] = d


@tw.nest
def sums(u, b, i, j):
    u[b, i, j] = u[b, i - 1, j] + u[b - 1, i, j]


def test_a_periodic_halo_that_is_not_renewed_is_found():
    """Without one of the copies from an end to the halo beyond the other one, a point reads what is too old."""
    a, b = (tw.field((6, 7), "i8", init=1) for _ in "ab")
    periodic = {"periodic": ("i", "j")}
    made = tw.chain([tw.bind(shifted, A=b, B=a, **periodic), tw.bind(shifted, A=a, B=b, **periodic)])
    schedule = tw.schedule(made)._cores[0]
    assert _core.check([schedule]) is None
    steps = [[_core.Step(step.op, step.item, step.count) for step in lane] for lane in schedule.lanes]
    copies = [k for k, step in enumerate(steps[0]) if step.op == "unpack"]
    assert len(copies) >= 4
    for k in copies:
        schedule.lanes = [steps[0][:k] + steps[0][k + 1 :], *steps[1:]]
        schedule.repeated = [(0, len(lane)) for lane in schedule.lanes]
        assert "reads" in str(_core.check([schedule])), k


@pytest.mark.parametrize("ranks, threads", [(1, 1), (3, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("periodic", [(), ("i", "j")])
def test_nests_take_turns_over_repetitions(ranks, threads, periodic):
    """Arrays that no cache holds: slices of the nests in turn, as many repetitions as are asked for, or fewer."""

    def body(context):
        shape = 1200 * ranks, 500
        ours = [filled(context, shape) for _ in range(2)]
        theirs = [field.copy() for field in ours]
        given = {"periodic": periodic, "context": context}
        if threads > 1:
            given["plan"] = {"factors": (threads, 1), "mapping_dim": 1}

        def bound(a, b):
            return [tw.bind(shifted, A=b, B=a, **given), tw.bind(spread, A=a, B=b, **given)]

        chain, in_turn = tw.chain(bound(*ours)), bound(*theirs)
        problems, plans = zip(*((r.sweep.problem, r.sweep.plan) for r in chain._first.readies), strict=True)
        made = _core.fused_chain(problems, plans, chain._first.memories, context.rank, context.size)
        for times in (1, 13, 2):
            chain.run(times=times)
            for _ in range(times):
                for nest in in_turn:
                    nest.run()
            assert all(map(same, ours, theirs)), times
        return not chain.separate, len(made.works)

    (one_schedule, works), *_ = results(ranks, threads, body)
    assert one_schedule and works > 2
    without = results(ranks, threads, body, without="fused_nests")
    assert without[0][1] == 2


def test_one_rank_plans_nothing_anew():
    """A rank that has all of an array has one layout of it, whatever its nests read."""
    context = tw.Context(threads=1)
    A, B = (tw.field((40, 30), "f8", init=lambda i, j: 1.0 * i, context=context) for _ in range(2))
    plan = {"storage": "plain"}
    nests = [tw.bind(far, B=B, A=A, plan=plan, context=context), tw.bind(grow, A=A, plan=plan, context=context)]
    prepared = len(context._prepared)
    tw.chain(nests)
    assert len(context._prepared) == prepared


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_scalars_of_one_run_and_of_another_type(ranks, threads):
    def body(context):
        u, f, r = (filled(context, (20, 30)) for _ in range(3))
        v, g, s = (field.copy() for field in (u, f, r))
        sweep, back = tw.bind(smooth, u=u, f=f, w=0.5), tw.bind(smooth, u=u, f=f, reverse=("i", "j"))
        cycle = tw.chain([sweep, tw.bind(residual, r=r, u=u, f=f), back])
        for scalars in ({}, {"w": 0.25}, {}, {"w": 1}, {"w": np.float32(0.1)}, {"w": 0.25}, {}):
            cycle.run(times=2, scalars=scalars)
            for _ in range(2):
                tw.run(smooth, u=v, f=g, **{"w": 0.5, **scalars})
                tw.run(residual, r=s, u=v, f=g)
                tw.run(smooth, u=v, f=g, reverse=("i", "j"), **scalars)
            assert same(u, v) and same(r, s), scalars

    results(ranks, threads, body)


@tw.nest
def thirds(A, i):
    A[3 * i] = A[3 * i - 2]


@tw.nest
def halves(A, i):
    A[2 * i] = A[2 * i - 1] + 1


def test_multiples_of_loop_indices_in_place():
    """Elements that such subscripts reach are parts of an array, which lie apart."""
    A, expected = np.arange(5), np.array([0, 1, 2, 1, 4])
    chain = tw.chain([tw.bind(thirds, A=A)])
    assert not chain.separate and tw.check(tw.schedule(chain)) is None
    chain.run()
    assert np.array_equal(A, expected)
    both = tw.chain([tw.bind(thirds, A=A), tw.bind(halves, A=A)])
    both.run()
    assert np.array_equal(A, [0, 1, 2, 1, 2])


@tw.nest
def halved(A, t, i):
    A[t + 1, i] = 0.5 * A[t, i - 1]


@tw.nest
def stepped(A, B, t, i):
    A[t + 1, i] = A[t, i - 1]
    B[t + 1, i] = B[t, i + 2] + A[t, i]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_an_array_that_is_shorter_than_the_loops_of_one_nest(ranks):
    def body(context):
        A, B = (tw.field((n,), init=lambda i: 1.0 * i, context=context) for n in (6, 8))
        tw.chain([tw.bind(halved, A=A, steps=2), tw.bind(stepped, A=A, B=B, steps=2)]).run(times=2)
        return A.gather(), B.gather()

    A, B = np.arange(6.0), np.arange(8.0)
    for _ in range(2):
        for _ in range(2):
            A[1:] = 0.5 * A[:-1]
        for _ in range(2):
            B[1:6], A[1:] = B[3:] + A[1:], A[:-1].copy()
    found = results(ranks, 1, body)[0]
    assert np.array_equal(found[0], A) and np.array_equal(found[1], B)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_a_field_that_others_move_is_brought_back(ranks, threads):
    def body(context):
        A, B = filled(context, (48, 36), "i8"), filled(context, (48, 36), "i8")
        C, D = A.copy(), B.copy()
        cycle = tw.chain([tw.bind(grow, A=A), tw.bind(far, B=B, A=A), tw.bind(across, A=B)])
        for grid in ([(1, ranks), (ranks, 1)] if ranks > 1 else [(1, 1)]):
            for _ in range(2):
                tw.run(across, A=A, plan={"grid": grid, "storage": "plain"})
                tw.run(across, A=C, plan={"grid": grid, "storage": "plain"})
                A._storage.relayout(A._storage.layout)  # row-major
                assert cycle.run(times=2).measured.moving_s >= 0
                for _ in range(2):
                    tw.run(grow, A=C)
                    tw.run(far, B=D, A=C)
                    tw.run(across, A=D)
                assert same(A, C) and same(B, D)

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_nests_that_cannot_be_one_schedule_run_one_after_another(ranks, threads, monkeypatch):
    monkeypatch.setattr(steps, "MOST_STEPS", steps.FEWEST_STEPS)

    def body(context):
        u, f = filled(context, (20, 24)), filled(context, (20, 24))
        v, g = u.copy(), f.copy()
        cycle = tw.chain([tw.bind(heat, u=u, steps=3), tw.bind(wave, u=u, steps=1), tw.bind(smooth, u=u, f=f)])
        assert cycle.separate == "nests 1 and 2 keep 0 and 1 earlier time steps of 'u'"
        assert "one after another, because nests 1" in repr(cycle) and "one after another" in cycle.explain()
        report = cycle.run(times=3)
        assert report.separate == cycle.separate and report.points == 3 * (18 * 22 * 4 + 18 * 24)
        for _ in range(3):
            tw.run(heat, u=v, steps=3)
            tw.run(wave, u=v, steps=1)
            tw.run(smooth, u=v, f=g)
        assert same(u, v)
        assert tw.chain([tw.bind(heat, u=u, steps=0)]).separate == "nest 1, 'heat', runs no time step"
        several = tw.chain([tw.bind(heat, u=u, steps=100)])
        text = r"nest 1, 'heat', runs 100 time steps in blocks of (\d+); in one schedule: at most (\d+)"
        blocks, most = re.fullmatch(text, several.separate).groups()
        assert blocks == most

    results(ranks, threads, body)


@tw.nest
def nearest(D, k, i, j):
    D[i, j] = min(D[i, j], D[i, k] + D[k, j])


@tw.nest
def best(V, T, t, s, *, n):
    V[t + 1, s] = max(V[t, q] + T[q, s] for q in range(n))


@tw.nest
def by_row(R, x, i, j, *, limit=1 << 40):
    if x[i] > limit:
        raise ValueError("too large")
    R[i, j] = R[i, j - 1] + x[i]


def others(context):
    """Arrays, and nests with tasks, fields that all ranks need whole and another nest writes, and a rolling window."""
    made = {name: filled(context, (12, 12)) for name in "DTR"} | {name: filled(context, (12,)) for name in "Vx"}
    H = tw.field((20, 24), keep="window", init=lambda i, j: 0.5 * i + j, context=context)
    most = {"most": tw.max("A")}
    calls = [
        (nearest, {"D": made["D"]}), (add, {"A": made["x"]}), (by_row, {"R": made["R"], "x": made["x"]}),
        (best, {"V": made["V"], "T": made["T"], "n": 12, "steps": 4}), (grow, {"A": H, "c": 0.5, "reduce": most}),
    ]  # fmt: skip
    return made, calls


@pytest.mark.parametrize("ranks, threads", [*RANKS, (5, 2)])
def test_tasks_windows_and_whole_fields_run_in_a_chain(ranks, threads):
    def body(context):
        (one, calls), (other, plain) = others(context), others(context)
        bounds = [tw.bind(nest, **given) for nest, given in calls]
        cycle = tw.chain(bounds)
        assert cycle.separate == "" and "one after another on each rank" in cycle.explain()
        with pytest.raises(ConfigError, match="are several schedules"):
            tw.schedule(cycle)
        for times in (3, 1):
            report = cycle.run(times=times)
            for _ in range(times):
                for nest, given in plain:
                    wanted = tw.run(nest, **given)
            assert report.results == wanted.results
            assert all(same(one[name], other[name]) for name in one)
        with pytest.raises(KernelError, match="too large.*nest 3 of the chain"):
            cycle.run(times=4, limit=float(one["x"].max()) + 1500)
        assert bounds[2].run().points == 12 * 11
        cycle.run()

    results(ranks, threads, body)


@tw.nest
def by_layer(R, X, i, j, k):
    R[i, j, k] = R[i, j, k] + X[j, i]


@tw.nest
def twice(X, i, j):
    X[i, j] = 2 * X[i, j]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_a_large_field_is_whole_on_every_rank(ranks):
    start = np.random.default_rng(3).random((700, 601))  # 3.4 MB: in several messages

    def body(context):
        X, R = tw.field(start.shape, "f8", start, context=context), tw.field((601, 700, 2), "f8", context=context)
        cycle = tw.chain([tw.bind(by_layer, R=R, X=X), tw.bind(twice, X=X)])
        assert cycle.separate == ""
        cycle.run(times=3)
        found, at_once = R.gather(), tw.run(by_layer, R=R, X=X)
        if context.rank == 0:
            assert np.array_equal(found, np.repeat((start.T + 2 * start.T + 4 * start.T)[..., None], 2, axis=2))
        assert at_once.points == R.size

    results(ranks, 1, body)


@tw.nest
def forward(X, t, i, j):
    X[t + 1, i, j] = X[t, i - 1, j] + X[t, i, j + 1]


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_field_that_others_move_is_whole_on_every_rank_as_it_is_now(ranks):
    def body(context):
        X, R = filled(context, (9, 8)), tw.field((8, 9, 2), "f8", context=context)
        bound = tw.bind(by_layer, R=R, X=X)
        cycle, wanted = tw.chain([bound, tw.bind(twice, X=X)]), 0
        for k in range(4):
            if k % 2:
                tw.run(forward, X=X, steps=2, periodic=("i", "j"))  # with halos that wrap, and another buffer
            before = X.gather()
            (bound if k < 2 else cycle).run()
            if context.rank == 0:
                wanted = wanted + np.repeat(before.T[..., None], 2, axis=2)
            found = R.gather()
            assert context.rank or np.array_equal(found, wanted)

    results(ranks, 2, body)


@pytest.mark.parametrize("ranks", [1, 3])
def test_windows_that_are_stored_whole_begin_anew_in_each_repetition(ranks):
    def body(context):
        def given():
            X = tw.field((20, 24), keep="window", init=lambda i, j: 0.5 * i + j, context=context)
            return {"X": X, "steps": 3, "reduce": {"total": tw.sum("X")}, "plan": {"generator": "stencil"}}

        cycle, wanted = tw.chain([tw.bind(forward, **given())]), tw.run(forward, **given())
        assert wanted.stored == ("X",) and cycle.separate == ""
        for times in (3, 1):
            assert cycle.run(times=times).results == wanted.results

    results(ranks, 1, body)


@pytest.mark.parametrize("whole", [False, True])
def test_nests_whose_plans_are_fixed(whole):
    def body(context):
        u, f, r = (filled(context, (20, 24)) for _ in range(3))
        v, g, s = (field.copy() for field in (u, f, r))
        plan = {"grid": (2, 1)}
        one = tw.bind(smooth, u=u, f=f, plan=tw.plan(smooth, u=u, f=f, plan=plan) if whole else plan)
        same_grid, other_grid = (tw.bind(residual, r=r, u=u, f=f, plan={"grid": grid}) for grid in ((2, 1), (1, 2)))
        for rest, why in ((same_grid, ""), (other_grid, "is fixed"), (tw.bind(residual, r=r, u=u, f=f), "")):
            cycle = tw.chain([one, rest])
            assert why in cycle.separate and bool(why) == bool(cycle.separate)
            cycle.run(times=2)
            for _ in range(2):
                tw.run(smooth, u=v, f=g)
                tw.run(residual, r=s, u=v, f=g)
            assert same(u, v) and same(r, s)

    results(2, 1, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_bound_nests_run_between_runs_of_their_chain(ranks, threads):
    def body(context):
        A, B = filled(context, (40, 33), "i8"), filled(context, (40, 33), "i8")
        C, D = A.copy(), B.copy()
        bounds = [tw.bind(grow, A=A), tw.bind(far, B=B, A=A), tw.bind(across, A=B)]
        cycle, back = tw.chain(bounds), tw.chain(bounds[::-1])
        for _ in range(3):
            for run in (cycle.run, bounds[1].run, back.run, bounds[0].run):
                run()
            for nest in (0, 1, 2, 1, 2, 1, 0, 0):
                tw.run(*[(grow,), (far,), (across,)][nest], **[{"A": C}, {"B": D, "A": C}, {"A": D}][nest])
            assert same(A, C) and same(B, D)

    results(ranks, threads, body)


def test_a_table_that_the_chain_writes():
    T, H, a = np.zeros(9, "i8"), np.zeros(20, "i8"), np.arange(20) % 9
    cycle = tw.chain([tw.bind(add, A=T), tw.bind(look_up, H=H, T=T, a=a)])
    assert "looks up table 'T'" in cycle.separate
    for k in range(3):
        cycle.run()
        assert (H == 1000 * (k + 1)).all()


@pytest.mark.parametrize("ranks, threads", RANKS)
@pytest.mark.parametrize("memory", ["field", "array"])
def test_updates_in_any_order_and_small_tables(ranks, threads, memory):
    """Tables, and arrays that are updated, have other values in each run; the ranks combine updates after all."""

    def body(context):
        def of(value):
            return tw.field(value, context=context) if memory == "field" or ranks > 1 else value.copy()

        U = F = np.arange(210).reshape(7, 6, 5) % 4
        S, L, u, f, w = of(np.zeros(5, "i8")), of(np.zeros(7, "i8")), of(U), of(F), np.arange(4)
        bounds = [tw.bind(count, S=S, L=L, u=u, f=f, w=w), tw.bind(sums, u=u)]
        cycle = tw.chain([*bounds, bounds[0]])
        assert not cycle.separate
        for times, changed in ((1, 0), (3, 7), (2, -1)):
            w[2], S[...], s = changed, 100, 100
            cycle.run(times=times)
            for _ in range(times):
                U = U + w[F]
                s = s + U.sum(axis=(0, 1))
                for b, i in np.ndindex(6, 5):
                    U[b + 1, i + 1] = U[b + 1, i] + U[b, i + 1]
                U = U + w[F]
                s, last = s + U.sum(axis=(0, 1)), U[:, -1, -1]
            found = [value.gather() if isinstance(value, tw.Field) else value for value in (u, S, L)]
            assert context.rank or all(map(np.array_equal, found, (U, s, last)))
        other = tw.chain([bounds[0], tw.bind(add, A=S)])
        assert "updates 'S' in any order, which another nest uses" in other.separate

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_a_body_that_raises_on_one_rank(ranks, threads):
    def body(context):
        A, d = filled(context, (40,), "i8"), tw.field((40,), "i8", init=lambda i: 7 if i == 33 else 1, context=context)
        A.fill(5)
        cycle = tw.chain([tw.bind(add, A=A), tw.bind(divide, A=A, d=d), tw.bind(add, A=A)])
        cycle.run(times=2)
        first = A.gather()
        for _ in range(3):
            message = r"'divide' raised ValueError.* at i=33 .*nest 2 of the chain"
            with pytest.raises(KernelError, match=message) as caught:
                cycle.run(times=4, limit=7)
            assert caught.value.agreed
            A.fill(5)
            cycle.run(times=2)
            again = A.gather()
            assert first is None or np.array_equal(first, again)

    results(ranks, threads, body)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_a_closed_field(ranks, threads):
    def body(context):
        A, u, f = filled(context, (20, 20), "i8"), filled(context, (20, 20)), filled(context, (20, 20))
        one, other = tw.bind(grow, A=A), tw.bind(smooth, u=u, f=f)
        cycle = tw.chain([one, other])
        cycle.run()
        if context.rank == context.size - 1:  # one rank alone
            f.close()
        for call in (cycle.run, lambda: cycle.run(times=3), lambda: tw.chain([one, other])):
            with pytest.raises(ConfigError, match="'smooth' is a field that was closed") as caught:
                call()
            assert caught.value.agreed
        assert u.gather() is not None or context.rank > 0

    results(ranks, threads, body)


def test_arrays_that_share_memory_and_are_not_the_same():
    A = np.arange(400).reshape(20, 20)
    u, f = filled(tw.context(), (20, 20)), np.ones((20, 20))
    with pytest.raises(ConfigError, match="array 'A' of nest 1 and array 'A' of nest 2 share memory, and are not"):
        tw.chain([tw.bind(grow, A=A), tw.bind(grow, A=A[1:])])
    with pytest.raises(ConfigError, match="array 'u' of nest 1 and array 'f' of nest 2 share memory"):
        tw.chain([tw.bind(smooth, u=u, f=f), tw.bind(smooth, u=u.copy(), f=u.local)])
    tw.chain([tw.bind(grow, A=A), tw.bind(across, A=A)]).run()
    tw.chain([tw.bind(grow, A=A[:9]), tw.bind(grow, A=A[9:])]).run()


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_cannot_be_chained(ranks):
    def body(context):
        A = filled(context, (20, 20), "i8")
        bound = tw.bind(grow, A=A)
        other = tw.bind(grow, A=filled(context.solo(), (20, 20), "i8"))
        for given, text in (
            ([bound, other], "nest 2, bound nest 1, 'grow', was bound on"),
            ([], "empty list"),
            ([bound, grow], "nest 'grow', which is not bound, as nest 2"),
            ([bound, "x"], "given str, as nest 2"),
            (bound, "given Bound"),
        ):
            with pytest.raises(ConfigError, match=text):
                tw.chain(given, context=context)
        cycle = tw.chain([bound], context=context)
        for given, text in (
            ({"times": -1}, "times: given -1"),
            ({"times": True}, "times: given True"),
            ({"times": 1.5}, "times: given 1.5"),
            ({"times": [1]}, "times: given"),
            ({"every": 0}, "every: given 0"),
            ({"until": {"r": 1}}, "until= was given without times="),
            ({"times": 3, "until": {"r": 1}}, "no nest has a reduction 'r'"),
            ({"times": 3, "until": 7}, "until: given 7"),
            ({"times": 3, "until": {}}, "until: given {}"),
            ({"w": 3}, "no nest of the chain has a scalar 'w'; allowed: c"),
            ({"c": "x"}, "scalar 'c'"),
            ({"c": 3, "scalars": {"c": 3}}, "scalar 'c' was given twice"),
            ({"scalars": 3}, "scalars: given int"),
        ):
            with pytest.raises(ConfigError, match=text) as caught:
                cycle.run(**given)
            assert caught.value.agreed
        reduced = tw.chain([tw.bind(grow, A=A, reduce={"at": tw.argmax("A"), "s": tw.sum("A")})])
        refusals = (({"at": 3}, "is a place, argmax"), ({"s": "x"}, "allowed: a number"), ({"s": np.nan}, "nan"))
        for limits, text in refusals:
            with pytest.raises(ConfigError, match=text):
                reduced.run(times=3, until=limits)
        cycle.run()

    results(ranks, 1, body)


factor = 2


@tw.nest
def scaled(A, i):
    A[i] = factor * A[i - 1]


def test_numbers_from_outside_the_bodies_are_those_when_they_run():
    global factor
    factor = 2
    A, B = np.ones(7, "i8"), np.ones(7, "i8")
    cycle = tw.chain([tw.bind(scaled, A=A), tw.bind(add, A=A)])
    for value in (2, 3, 2, 5):
        factor = value
        for _ in range(2):
            cycle.run()
            tw.run(scaled, A=B)
            tw.run(add, A=B)
            assert np.array_equal(A, B), value


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_reports(ranks, threads):
    def body(context):
        u, f = filled(context, (40, 40)), filled(context, (40, 40))
        one = tw.bind(smooth, u=u, f=f, reduce={"m": tw.max("u")})
        cycle = tw.chain([one, one])
        assert len(cycle.plans) == 2 and cycle.nests == (one, one) and "smooth, smooth" in repr(cycle)
        report = cycle.run(times=3)
        again = pickle.loads(pickle.dumps(report))
        for each in (report, again):
            assert each.repetitions == 3 and each.points == 6 * 38 * 38 and each.nests == ("smooth", "smooth")
            assert each.measured.time_s > 0 and each.points_per_s > 0 and each.measured.call_s > 0
            assert len(each.reduced) == 2 and each.reduced[1]["m"] == each.results["m"]
            assert "repetitions      3" in str(each) and "m  " in str(each)
        assert not cycle.run(times=0).points

    results(ranks, threads, body)


@tw.nest
def back_one(A, t, i):
    A[t-1, i] = A[t, i]


@tw.nest
def back_two(A, t, i):
    A[t-1, i] = A[t+1, i+1]


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_nest_moves_on_the_past_that_one_behind_it_begins_to_read(ranks):
    """Also in the repetitions of the run in which that begins."""

    def body(context):
        A, B = (tw.field(np.array([9, 8, -2, -6], "i1"), context=context) for _ in range(2))
        given = {"reverse": ("t",), "steps": 1, "context": context}
        tw.chain([tw.bind(back_one, A=A, **given), tw.bind(back_two, A=A, **given)]).run(times=3)
        for _ in range(3):
            tw.run(back_one, A=B, **given)
            tw.run(back_two, A=B, **given)
        return A.gather(), B.gather()

    found, expected = results(ranks, 1, body)[0]
    assert found.tolist() == expected.tolist() == [-6] * 4
