"""Numbers of all points where ranks compute some of the points twice: each counts once, whatever the plan."""

import math

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw
from tilewave.nests.chain import in_blocks, several

SHAPE, STEPS = (25, 22), 9


@tw.nest
def heat(u, t, i, j, *, w):
    d = w * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])
    u[t+1, i, j] = u[t, i, j] + d


WANTED = {"sum": tw.sum("d"), "norm": tw.norm("u"), "most": tw.max("d"), "least": tw.min("u"), "at": tw.argmax("d")}


def start():
    return np.random.default_rng(11).random(SHAPE)


def plain(wraps, w=0.2):
    """The last time step, and by name the numbers."""
    u, seen = start(), []
    for t in range(STEPS):
        new = u.copy()
        for i in range(0 if wraps else 1, SHAPE[0] - (not wraps)):
            for j in range(1, SHAPE[1] - 1):
                d = w * (u[i - 1, j] + u[(i + 1) % SHAPE[0], j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
                new[i, j] = u[i, j] + d
                seen.append((d, new[i, j], (t, i, j)))
        u = new
    d, values, places = zip(*seen, strict=True)
    most = max(d)
    norm = math.sqrt(math.fsum(float(x) * float(x) for x in values))
    return u, {"sum": math.fsum(d), "norm": norm, "most": most, "least": min(values), "at": places[d.index(most)]}


@pytest.mark.parametrize("ranks", [2, 3, 4, 6])
@pytest.mark.parametrize("generator", ["sweep", "stencil"])
@pytest.mark.parametrize("wraps", [False, True])
def test_each_point_counts_once_in_deep_halos(ranks, generator, wraps):
    if wraps and generator == "sweep":
        pytest.skip("sweeps do not wrap")
    u_end, numbers = plain(wraps)
    grid = (1, ranks, 1) if ranks < 4 or generator == "sweep" else (1, 2, ranks // 2)
    plan = {"generator": generator, "grid": grid, "temporal_block": 3, "threads": 1}
    if generator == "sweep":
        cuts = [max(1, min(24, rank * SHAPE[0] // ranks)) for rank in range(ranks + 1)]
        plan |= {"mapping_dim": 2, "tile": (1, max(np.diff(cuts)), 5)}

    def body(context):
        u = tw.field(SHAPE, "f8", init=start(), context=context)
        loops = {"steps": STEPS, "periodic": ("i",) if wraps else (), "context": context, "plan": plan}
        report = tw.run(heat, u=u, w=0.2, reduce=WANTED, **loops)
        if not (generator == "sweep" and ranks == 6):  # whose blocks are too thin
            schedule = tw.schedule(heat, u=u, w=0.2, **loops)
            assert any(work.nest.own[0] for work in schedule._cores[context.rank].works)
            assert tw.check(schedule) is None
        whole = u.gather()
        if context.rank == 0:
            np.testing.assert_array_equal(whole, u_end)
        assert report.results == numbers, report.plan

    results_of(ranks, 1, body)


def test_the_checker_counts_each_point_once():
    plan = {"generator": "stencil", "grid": (1, 2, 1), "temporal_block": 3, "threads": 1}

    def body(context):
        u = tw.field(SHAPE, "f8", init=start(), context=context)
        return tw.schedule(heat, u=u, w=0.2, steps=STEPS, context=context, plan=plan)

    for by, text in ((-1, "no rank's own"), (1, "of two ranks")):
        schedule = results_of(2, 1, body)[0]
        nest = schedule._cores[0].works[0].nest
        low, high = nest.own
        nest.own = low, (high[0], high[1] + by, high[2])
        assert text in str(tw.check(schedule))


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 2)])
@pytest.mark.parametrize("every", [3, 4])
def test_until_looks_between_blocks(ranks, threads, every):
    """Numbers are of the last of some time steps; sources and receivers go on, and so do blocks."""
    steps, inside = 14, (9, 11)
    wavelet = np.sin(np.arange(steps) / 3)[:, None]
    u, rows, sums = start(), [], []
    for t in range(steps):
        d = 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        u[1:-1, 1:-1] += d
        u[inside] += wavelet[t, 0]
        rows.append(u[9, 12])
        sums.append(math.fsum(d.ravel()))
    looks = [sums[min(k, steps) - 1] for k in range(every, steps + every, every)]

    def body(context):
        plan = {"temporal_block": 2, "generator": "sweep", "threads": threads}
        v = tw.field(SHAPE, "f8", init=start(), context=context)
        more = {"inject": {"v": ([inside], wavelet)}, "record": {"v": [(9, 12)]}, "until": lambda values: False}
        for _ in range(2):  # the second finds what the first has prepared
            v[...] = start()
            report = tw.run((wave,), v=v, w=0.2, steps=steps, every=every, reduce={"d": tw.sum("d")}, plan=plan, **more)
        assert [each["d"] for each in report.history] == pytest.approx(looks, rel=1e-12)
        assert report.repetitions == steps and report.points == steps * 23 * 20
        assert report.by_nest[0].plan.temporal_block == 2 and not report.separate
        np.testing.assert_allclose(report.recorded["v"][:, 0], rows, rtol=1e-13)
        whole = v.gather()
        if context.rank == 0:
            np.testing.assert_allclose(whole, u, rtol=1e-13)

    results_of(ranks, threads, body)


@tw.nest
def wave(v, t, i, j, *, w):
    d = w * (v[t, i-1, j] + v[t, i+1, j] + v[t, i, j-1] + v[t, i, j+1] - 4 * v[t, i, j])
    v[t+1, i, j] = v[t, i, j] + d


@tw.nest
def velocity(a, b, p, t, i, j, *, w):
    a[t+1, i, j] = a[t, i, j] + w * (p[t, i+1, j] - p[t, i, j])
    b[t+1, i, j] = b[t, i, j] + w * (p[t, i, j+1] - p[t, i, j])


@tw.nest
def pressure(a, b, p, t, i, j, *, w):
    d = w * (a[t+1, i, j] - a[t+1, i-1, j] + b[t+1, i, j] - b[t+1, i, j-1])
    p[t+1, i, j] = p[t, i, j] + d


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 2)])
@pytest.mark.parametrize("fused", [False, True])
def test_sources_inside_chains(ranks, threads, fused, monkeypatch):
    """Time steps of several nests are one schedule with their sources, receivers and numbers."""
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", 0)
    steps, shape = 23, (600, 900) if fused else SHAPE
    at, draw = [(9, 11), (20, 4)], np.random.default_rng(5)
    wavelet, first = draw.random((steps, 2)), [draw.random(shape) for _ in range(3)]
    ears = tw.OffGrid([(10.5, 10.25), (4.0, 7.75)])

    def run(context):
        given = zip("abp", first, strict=True)
        arrays = {name: tw.field(shape, "f8", init=each, context=context) for name, each in given}
        more = {"inject": {"p": (at, wavelet)}, "record": {"p": ears, "a": at}, "until": lambda values: False}
        plan = {"threads": threads} | ({"grid": (1, ranks, 1)} if fused else {})
        wanted = {"d": tw.norm("d"), "at": tw.argmax("d")}
        report = tw.run((velocity, pressure), **arrays, w=0.3, steps=steps, every=5, reduce=wanted, plan=plan, **more)
        assert not report.separate, report.separate
        return [field.gather() for field in arrays.values()], report.history, report.recorded

    found = results_of(ranks, threads, run)
    monkeypatch.setattr(in_blocks, "may_be", lambda *_: (False, False))  # between time steps
    expected = results_of(ranks, threads, run)
    for rank, ((_, history, recorded), (_, history_too, recorded_too)) in enumerate(zip(found, expected, strict=True)):
        assert history == history_too and len(history) == 5, rank
        for name in "pa":
            np.testing.assert_array_equal(recorded[name], recorded_too[name], name)
    for ours, theirs in zip(found[0][0], expected[0][0], strict=True):
        np.testing.assert_array_equal(ours, theirs)
