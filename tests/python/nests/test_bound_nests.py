"""Bound nests: what `tilewave.run` computes, bit for bit, however often, on ranks that are threads."""


import numpy as np
import pytest

from bound_cases import RANKS, across, align, divide, filled, grow, heat, residual, results, same, smooth, wave
import tilewave as tw
from tilewave.errors import ConfigError, KernelError
from tilewave.nests.call import step_blocks

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


def test_a_variant_that_was_prepared_for_other_scalars_runs_the_bound_ones():
    """It may have been dropped, and prepared again for a run with scalars of the same types."""
    u, v = tw.field((40,), "i8", init=1), tw.field((40,), "i8", init=1)
    bound = tw.bind(weighted, u=u)
    bound._variants.clear()
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


@tw.nest
def mixed(u, i, *, a=0.5, b=1.0, c=2):
    u[i] = a * u[i - 1] + b * u[i] + c


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_floats_of_any_kind_from_run_to_run(ranks, threads, seed):
    """Runs that differ in floats alone share what was prepared; others do not."""

    def body(context):
        pick = np.random.default_rng(seed)
        u = filled(context, (41,))
        v = u.copy()
        bound = tw.bind(mixed, u=u, b=0.25)
        for _ in range(40):
            kinds = {"a": (float, np.float64, np.float32), "b": (float, np.float64), "c": (int, float)}
            scalars = {
                name: pick.choice(np.array(kind, object))(pick.integers(-2, 3) / (1 if name == "c" else 8))
                for name, kind in kinds.items()
                if pick.random() < 0.6
            }
            bound.run(**scalars)
            tw.run(mixed, u=v, **{"b": 0.25, **scalars})
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
        bound = tw.bind(heat, u=u, steps=90, plan={"grid": (1, ranks, 1)})
        assert bound._first.ready.steps == 90  # prepared for a block of them
        if alone and context.rank == 0:
            bound._prepare_run = lambda *given: None  # as where its memory has run out
        for steps in (90, 203, 12, 0, 90):
            report = bound.run(steps=steps)
            tw.run(heat, u=v, steps=steps)
            assert same(u, v) and report.loops["t"] == (0, steps) and report.points == steps * 398 * 298

    results(ranks, threads, body)


def test_many_steps_prepare_as_few(monkeypatch):
    made = []
    from tilewave.nests.run import bound as module

    real = module.prepare
    monkeypatch.setattr(module, "prepare", lambda *given: made.append(given) or real(*given))

    def body(context):
        u = filled(context, (6, 6))
        bound = tw.bind(heat, u=u, steps=100)
        bytes_before = bound._first.ready.sweep.bytes
        bound.run(steps=100_000)
        assert bound._first.ready.sweep.bytes == bytes_before

    results(1, 1, body)


@tw.nest
def forced(u, f, t, i):
    u[t + 1, i] = u[t, i] + 0.125 * (u[t, i - 1] + u[t, i + 1]) + f[i]


def test_blocks_of_steps_where_one_rank_copies_an_array(monkeypatch):
    monkeypatch.setattr(step_blocks, "MOST_STEPS", step_blocks.FEWEST_STEPS)

    def body(context):
        u, memory = filled(context, (50,)), np.zeros(50 * 8 + 1, "u1")
        v, f = u.copy(), memory[context.rank > 0 :][:400].view("f8")  # not aligned on rank 1
        bound = tw.bind(forced, u=u, f=f, steps=300)
        for count in (300, 200, 190):
            bound.run(steps=count)
            tw.run(forced, u=v, f=np.zeros(50), steps=count)
            assert same(u, v)

    results(2, 1, body)


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
                tw.run(across, A=A, plan={"grid": grid, "storage": "plain"})
                tw.run(across, A=B, plan={"grid": grid, "storage": "plain"})
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
        for this_rank, others, text in (
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
                (this_rank if last else others)()
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
