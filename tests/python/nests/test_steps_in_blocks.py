"""Runs of many time steps: a block of steps is prepared once and runs again and again, with the results of the plain
loops.
"""

import functools

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw
from tilewave import _core
from tilewave.nests.call import step_blocks as steps
from tilewave.nest.bounds import loop_bounds
from tilewave.plan.plan import request_of
from tilewave.nest.bounds import Loops
from tilewave.nests.call.problem import check_steps, make_problem
from plain_loops import plain_loops

BLOCK = 6

@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    for name in ("FEWEST_STEPS", "MOST_STEPS"):
        monkeypatch.setattr(steps, name, BLOCK)


@tw.nest
def heat(u, source, t, i, j, *, w):
    u[t+1, i, j] = (
        u[t, i, j]
        + w * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-2] + u[t, i, j+1] - 4 * u[t, i, j])
        + source[t] * t
    )


@tw.nest
def relax(u, f, t, i, j, *, w):
    mean = 0.25 * (u[t+1, i-1, j] + u[t+1, i, j-1] + u[t, i+1, j] + u[t, i, j+1] + f[t+1, i, j])
    u[t+1, i, j] = u[t, i, j] + w * (mean - u[t, i, j])


@tw.nest
def two(u, v, g, t, i, j, *, w):
    v[t+1, i, j] = w * (u[t+1, i-1, j] + v[t, i+1, j-1]) + v[t+1, i, j-1] + g[t, j]
    if t % 3 > 0:
        u[t+1, i, j] = u[t, i, j] - w * v[t+1, i, j]


#: The nest, its written arrays, shape, other arrays with time as a dimension, scalars; whether the others may be
#: fields.
CASES = {
    "two buffers": (heat, "u", (17, 14), {"source": (60,)}, {"w": 0.2}),
    "one buffer": (relax, "u", (16, 13), {"f": (60, 16, 13)}, {"w": 0.3}),
    "kept values": (two, "uv", (15, 12), {"g": (60, 12)}, {"w": 0.2}),
}


@functools.cache
def plain(name, count, over=None):
    nest, written, shape, others, scalars = CASES[name]
    arrays = {a: start(k, shape) for k, a in enumerate(written)} | {a: start(10, s) for a, s in others.items()}
    box = check_steps(nest, arrays, count)
    plain_loops(nest, loop_bounds(nest.indices, box, dict(over) if over else None), arrays, scalars, (), count)
    return [arrays[a] for a in written]


def start(k, shape):
    return np.random.default_rng([5, k]).random(shape)


def compare(context, name, count, as_fields, over=None, plan=None):
    nest, written, shape, others, scalars = CASES[name]
    given = {a: tw.field(shape, "f8", init=start(k, shape), context=context) for k, a in enumerate(written)}
    seen = {a: start(10, s) for a, s in others.items()}
    if as_fields:
        seen = {a: tw.field(s.shape, "f8", init=s, context=context) for a, s in seen.items()}
    report = tw.run(
        nest, **given, **seen, **scalars, steps=count, over=dict(over) if over else None, context=context, plan=plan
    )
    for ours, expected in zip((field.gather() for field in given.values()), plain(name, count, over), strict=True):
        if context.rank == 0:
            np.testing.assert_array_equal(ours, expected, f"{name}, {count} steps, {report.plan}")
    return report


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ranks,threads", [(1, 2), (2, 1), (3, 2)])
def test_equal_to_plain_loops(name, ranks, threads):
    def body(context):
        for choices in ({}, {"schedule": "blocking"}, {"temporal_block": 4}, {"lookahead": 3, "temporal_block": 1}):
            for as_fields in (False, True) if name != "two buffers" and not choices else (False,):
                for count in (
                    (0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3, 5 * BLOCK)
                    if not choices
                    else (BLOCK + 1, 2 * BLOCK + 3)
                ):
                    report = compare(context, name, count, as_fields, plan=choices)
                    points = np.prod(
                        [
                            high - low
                            for low, high in check_steps(
                                CASES[name][0],
                                {a: plain(name, 1)[0] for a in CASES[name][1]}
                                | {a: np.empty(s) for a, s in CASES[name][3].items()},
                                count,
                            )
                        ]
                    )
                    assert report.points == points and ("block" in report.plan.notes) == (count > BLOCK)

    results_of(ranks, threads, body)


@pytest.mark.parametrize("ranks", [1, 2])
def test_bounds(ranks):
    def body(context):
        for over in (
            (("i", (2, 9)),),
            (("i", (1, 7)), ("j", ("i", "i+5"))),
            (("i", (("t-8", 1), 12)),),
            (("t", (0, 17)),),
        ):
            report = compare(context, "one buffer", 17, False, over)
            assert ("block" in report.plan.notes) == ("t" not in str(over)), over
        with pytest.raises(tw.ConfigError, match="cannot be narrowed"):
            compare(context, "one buffer", 18, False, (("t", (0, 17)),))
        with pytest.raises(tw.ConfigError, match="steps=60: .* leaves array 'f'"):
            compare(context, "one buffer", 60, False)

    results_of(ranks, 1, body)


@pytest.mark.parametrize("ranks,threads", [(1, 1), (2, 2)])
def test_one_preparation_serves_all_numbers_of_steps(ranks, threads):
    def body(context):
        prepared = []
        for count in (20, 33, 20, 5000):
            u = tw.field((17, 14), "f8", init=start(0, (17, 14)), context=context)
            report = tw.run(
                heat,
                u=u,
                source=np.zeros(6000),
                w=0.1,
                steps=count,
                context=context,
                reduce={"most": tw.argmax("u"), "sum": tw.sum("u")},
            )
            prepared.append(len(context._prepared))
            assert report.predicted.time_s > 0 and report.plan.notes["extents"][0] == count
            assert report.predicted.parts.total_s == pytest.approx(report.predicted.time_s, rel=0.05)
        assert prepared == [1] * 4
        return report

    reports = results_of(ranks, threads, body)
    report = reports[0]
    assert report.results["most"][0] == 1  # values only fall
    compute = np.mean([lane.compute_s for lane in report.lanes])
    assert report.measured.parts.compute_s == pytest.approx(compute) and compute > 0
    # The timeline has the first blocks and the last ones.
    events = report.timeline.events
    tiles = events[events["op"] == 0]
    assert (
        len(tiles) < 5000
        and tiles["tile"][:, 0].min() == 0
        and tiles["tile"][:, 0].max() >= (5000 - BLOCK) // report.plan.tile[0]
    )
    # Its tiles are some of those that the parts are the sums of.
    assert (tiles["end_s"] - tiles["begin_s"]).sum() < compute * len(report.lanes)
    assert report.ranks == 1 or 0 <= report.overlap_ratio <= 1
    assert "prepared 6 at a time" in str(report)


@tw.nest
def wave(u, t, i, j, *, w):
    u[t+1, i, j] = 2 * u[t, i, j] - u[t-1, i, j] + w * (u[t, i-1, j] + u[t, i+1, j] - u[t, i, j-1] - u[t, i, j+2])


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1)])
def test_repetitions_of_bound_runs(ranks, threads, monkeypatch):
    """Blocks that are no multiple of the time buffers, with other arrays in time, by both generators: as step by step,
    whatever the number of steps of the runs before."""
    seed = 10 * ranks + threads
    print(f"seed {seed}")
    draw = np.random.default_rng(seed)
    counts = {name: [int(n) for n in draw.permutation([5, 11, 25, 27, 55])[:3]] for name in "abcde"}

    def runs(context):
        source, f = start(3, (60,)), tw.field((60, 14, 13), "f8", init=start(4, (60, 14, 13)), context=context)
        for name, nest, others, choices in (
            ("a", heat, {"source": source}, {"generator": "stencil"}),
            ("b", heat, {"source": source}, {"generator": "sweep"}),
            ("c", relax, {"f": f}, {}),
            ("d", wave, {}, {"generator": "stencil"}),
            ("e", wave, {}, {"generator": "sweep", "schedule": "blocking"}),
        ):
            u = tw.field((14, 13), "f8", init=start(1, (14, 13)), history=[start(2, (14, 13))], context=context)
            reduce = {"most": tw.argmax("u"), "sum": tw.sum("u")}
            bound = tw.bind(nest, u=u, steps=55, w=0.2, reduce=reduce, context=context, **others, plan=choices)
            for count in counts[name]:
                report = bound.run(steps=count)
                yield name, count, u.gather(), report.results, "block" in report.plan.notes

    def on(ranks, threads, block):
        for name in ("FEWEST_STEPS", "MOST_STEPS"):
            monkeypatch.setattr(steps, name, block)
        found = results_of(ranks, threads, lambda context: list(runs(context)))
        return found[0]

    for ours, whole in zip(on(ranks, threads, 5), on(1, 1, 64), strict=True):
        name, count, values, results, in_blocks = ours
        assert in_blocks and not whole[-1]
        assert values.tobytes() == whole[2].tobytes(), (name, count)
        assert results == whole[3], (name, count)


@tw.nest
def meets_zero(u, t, i, *, at):
    u[t+1, i] = u[t, i-1] + 1 // (t - at)


@pytest.mark.parametrize("ranks", [1, 3])
def test_errors_say_the_step(ranks):
    def body(context):
        for at in (2, 3 * BLOCK, 20 * BLOCK + 1):
            u = tw.field((30,), "i8", init=lambda i: i, context=context)
            with pytest.raises(tw.KernelError, match=f"at t={at}, i="):
                tw.run(meets_zero, u=u, at=at, steps=30 * BLOCK, context=context)

    results_of(ranks, 1, body)


@tw.nest
def smooth(u, t, i, j):
    u[t+1, i, j] = 0.25 * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1])


@pytest.mark.parametrize("ranks,grid", [(1, (1, 1, 1)), (2, (1, 2, 1)), (3, (1, 3, 1)), (2, (1, 1, 1))])
def test_an_interrupt_stops_all_blocks(ranks, grid):
    """The last rank is interrupted: while it computes or, in a grid of one rank, while it waits for rank 0.

    The blocks that are left are so many that their messages alone, without bytes, would take hours."""

    def body(context):
        u = tw.field((30, 30), "f8", context=context)
        seen = []

        def interrupt(fraction):
            seen.append(fraction)
            return context.rank == ranks - 1 and len(seen) > 2

        def run(steps):
            tw.run(smooth, u=u, steps=steps, plan={"grid": grid}, context=context)

        run(2 * BLOCK)
        context._core.on_heartbeat(interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(2_000_000_000)
        seen = [fraction for fraction in seen if fraction >= 0]  # the last look, after the run, has none
        assert seen == sorted(seen) and all(0 <= fraction <= 1 for fraction in seen)

    results_of(ranks, 1, body)


def test_numpy_arrays_in_place():
    for count in (BLOCK + 1, 3 * BLOCK):
        u = start(0, (17, 14))
        tw.run(heat, u=u, source=start(10, (60,)), w=0.2, steps=count, plan={"threads": 1})
        np.testing.assert_array_equal(u, plain("two buffers", count)[0])


@pytest.mark.parametrize("schedule", ["blocking", "overlapping"])
@pytest.mark.parametrize("name", ["two buffers", "one buffer", "kept values"])
def test_repeated_blocks_check(name, schedule):
    nest, written, shape, others, _ = CASES[name]
    arrays = {a: np.empty(shape) for a in written} | {a: np.empty(s) for a, s in others.items()}
    problem = make_problem(nest, arrays, Loops(steps=4)).core
    for ranks, lanes, extra in (
        (1, 1, {}),
        (1, 2, {}),
        (2, 1, {}),
        (3, 2, {}),
        (2, 1, {"temporal_block": 2}),
        (2, 2, {"temporal_block": 2, "helper": True}),
    ):
        plan = _core.make_plan(
            problem,
            ranks,
            request_of({"schedule": schedule, "tile": (1, 4, 4), "synchronous": True, **extra}, lanes),
            _core.Machine(),
        )
        blocks = [_core.sweep(problem, plan, rank) for rank in range(ranks)]
        repeated = [_core.repeated_block(problem, block) for block in blocks]
        assert _core.check(blocks) is None
        # Once and twice, by itself; three times in case.
        for violation in (_core.check(repeated), _core.check(_core.unrolled(repeated, 3))):
            assert violation is None, f"{violation}; {plan}"
