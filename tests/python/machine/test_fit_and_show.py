"""Curves, fits and texts of machines' numbers, against plain definitions."""

import copy
import random

import numpy as np
import pytest

import tilewave as tw
from test_machine import some
from tilewave.machine import fit, machine, show
from tilewave.machine.numbers import FAR


@pytest.mark.parametrize(
    "row, text",
    [
        ({"progress": "polls", "poll_period_s": 5e-5}, "polled every 50 µs"),
        ({"progress": "none"}, "not polled"),
        ({"progress": "helper"}, "helper thread"),
        ({"progress": "other"}, "other"),
    ],
)
def test_kinds_of_progress(row, text):
    assert show._progress(row) == text


def heads(m):
    return [head[0] for _, head, _ in show.tables(m)]


def test_what_is_not_known_has_no_table():
    m = some()
    whole = heads(m)
    assert whole[0] == "a rank" and "a message to" in whole and "other host: bytes" in whole
    m.other_host = None
    assert not any("other host" in head for head in heads(m)) and "same host: bytes" in heads(m)
    m.same_host.overlap, m.memory, m.copy_byte_s = [], [], machine.Curve([], [])
    assert heads(m) == ["a rank", "a message to", "same host: bytes"]
    m.same_host = None
    assert heads(m) == ["a rank"]
    usual = {"point_s": 1e-9, "row_s": 1e-9, "tile_s": 1e-9}
    m.kernels = {"relax": {"point_s": 2e-9, "row_s": 1e-8, "tile_s": 0.0, "tile": [4, 5]}, "old": usual}
    *_, (_, head, rows) = show.tables(m)
    assert head == ("kernel", "a point", "a row", "a tile", "tiles")
    assert rows == [("relax", "2 ns", "10 ns", "0 ns", "4x5"), ("old", "1 ns", " 1 ns", "1 ns", "")]


def test_many_hosts_are_named_in_part():
    m = some()
    m.conditions = {"hosts": [f"h{k // 2}" for k in range(12)], "ranks": 12, "threads": 1, "cpu_models": ["x", "y"]}
    title = next(iter(show.tables(m)))[0]
    assert title == "12 ranks × 1 threads on 6 hosts (h0, h1, h2, h3, …); x, y; no MPI; "


def test_the_text_has_every_cell_in_columns():
    m = some()
    blocks = show.text(m).split("\n\n")
    for (title, head, rows), block in zip(show.tables(m), blocks, strict=True):
        lines = block.splitlines()
        assert lines.pop(0) == title if title else True
        widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
        for row, line in zip((head, *rows), lines, strict=True):
            at = 0
            for k, (cell, width) in enumerate(zip(row, widths, strict=True)):
                assert line[at : at + width].strip() == cell.strip()
                assert k == 0 or line[at - 2 : at].strip() == ""
                at += width + 2


# --- curves -----------------------------------------------------------------------------------------------------------


def curve(pick):
    x = sorted(pick.sample(range(1, 10**6), pick.randrange(1, 8)))
    return machine.Curve(x, [pick.uniform(1e-9, 1e-6) for _ in x])


def test_a_curve_is_straight_between_its_points_and_goes_on_as_at_its_ends(seed):
    pick = random.Random(seed)
    for _ in range(100):
        c = curve(pick)
        core = c._to_core()
        for at in (*c.x, *(pick.uniform(min(c.x), max(c.x)) for _ in range(5))):
            assert c.at(at) == pytest.approx(np.interp(at, c.x, c.y)), (seed, c, at)
        for at in (0.0, 1.0, 3e6, pick.uniform(0, 2e6)):
            assert core.at(at) == pytest.approx(c.at(at), rel=1e-9, abs=1e-15), (seed, c, at)
        if len(c.x) > 1:
            slope = (c.y[-1] - c.y[-2]) / (c.x[-1] - c.x[-2])
            assert c.at(c.x[-1] + 1000) == pytest.approx(c.y[-1] + 1000 * slope), (seed, c)
    assert machine.Curve([], []).at(5) == 0.0 and machine.Curve([7], [3.0]).at(1e9) == 3.0


def test_a_flat_curve_stays_at_its_ends(seed):
    pick = random.Random(seed)
    for _ in range(100):
        c = curve(pick)
        kept, flat = copy.deepcopy(c), c.flat()
        assert c == kept and flat.x == sorted(set(flat.x)) and (flat.x[0], flat.x[-1]) == (1, FAR)
        for at in (1, c.x[0], *c.x, pick.uniform(1, 2e6), 1e12, FAR):
            assert flat.at(at) == pytest.approx(np.interp(at, c.x, c.y)), (seed, c, at)
    assert machine.Curve([], []).flat() == machine.Curve([], [])


# --- fits -------------------------------------------------------------------------------------------------------------


def test_thinned_points_tell_all_others_within_the_tolerance(seed):
    pick = random.Random(seed)
    for _ in range(60):
        x = sorted(pick.sample(range(1, 10**5), pick.randrange(1, 30)))
        points = [(at, 1.0 + at * 1e-4 * pick.uniform(0.8, 1.2)) for at in x]
        kept = fit.thinned(points, 0.04)
        assert kept[0] == points[0] and kept[-1] == points[-1] and set(kept) <= set(points), seed
        for at, y in points:
            told = fit.interpolate(at, [p for p, _ in kept], [q for _, q in kept])
            assert abs(told - y) <= 0.04 * y + 1e-12, (seed, at)


def test_no_more_sizes_are_looked_at_than_allowed():
    looked = []

    def noisy(size):
        looked.append(size)
        return fit.Sample(1.0 + (len(looked) % 7) * size**0.5, 0.0)

    found = fit.find_points(noisy, [1, 100, 10**4, 10**6], most=12, looks=2)
    assert len(found) == 12 and max(looked.count(size) for size in found) <= 2
    assert found == {size: found[size] for size in sorted(set(looked), key=looked.index)}


@pytest.mark.parametrize("ends_after", range(9))
def test_an_end_of_the_time_at_any_moment_keeps_what_was_found(ends_after):
    left = iter(range(ends_after))
    sample = lambda size: None if next(left, None) is None else fit.Sample(float(size > 500) + size * 1e-3, 0.0)
    found = fit.find_points(sample, [1, 400, 600, 10**5])
    assert len(found) <= ends_after and list(found)[:4] == [1, 400, 600, 10**5][: len(found)]
    for size, one in found.items():
        assert one.value == float(size > 500) + size * 1e-3


def test_of_several_looks_the_shortest_counts():
    values = iter([5.0, 3.0, 4.0])
    points = fit.Points(lambda size: fit.Sample(next(values), 0.0))
    for best in (5.0, 3.0, 3.0):
        assert points.look(8) and points.found[8].value == best
    assert points.looks == {8: 3}


@pytest.mark.parametrize(
    "samples, value, spread",
    [
        ([4.0], 4.0, 1.0),  # of one nothing is known
        ([1.0, 3.0], 2.0, 1.0),
        ([2.0, 2.0], 2.0, 0.0),
        ([0.0], 0.0, 0.0),
        ([0.0, 0.0, 0.0], 0.0, 0.0),
        ([1.0, 2.0, 3.0], 2.0, 0.5),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 3.0, 2 / 3),
        ([-1.0, -2.0, -3.0], -2.0, 0.5),
    ],
)
def test_summaries(samples, value, spread):
    assert fit.summary(samples) == fit.Sample(value, pytest.approx(spread))
    assert fit.summary([]) is None


def test_a_machine_of_a_core_has_its_numbers():
    core = tw._core.Machine()
    core.latency_s, core.host_of = 7e-6, [0, 1]
    found = machine.Machine._from_core(core, {"hosts": [], "ranks": 2, "threads": 1})
    assert found.latency_s == 7e-6 and found.host_of == [0, 1] and found.memory == []
    assert found._to_core().latency_s == 7e-6 and found._to_core().step_s == core.step_s


# --- searches for breaks --------------------------------------------------------------------------------------------

def network(noise, rng, breaks=((8192, 6e-6, 0.0), (262144, 0.0, -4e-11))):
    """Times by size: latency, bytes, and at each break a step and a change of slope from there on."""

    def time_s(size):
        t = 2e-6 + size * 1.2e-10
        for at, step, slope in breaks:
            if size >= at:
                t += step + (size - at) * slope
        return t

    def sample(size):
        samples = [time_s(size) * (1 + abs(rng.gauss(0, noise))) for _ in range(31)]
        return fit.summary(samples)

    return time_s, sample


SIZES = [1, 8, *(8 * 4**k for k in range(1, 11)), 16 << 20]


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
def test_breaks_are_found_where_they_are(noise, seed):
    rng = random.Random(seed)
    for _ in range(20):
        at = round(2 ** rng.uniform(8.5, 17))
        time_s, sample = network(noise, rng, [(at, rng.uniform(0.5, 3) * (2e-6 + at * 1.2e-10), 0.0)])
        points = [(size, s.value) for size, s in sorted(fit.find_points(sample, SIZES).items())]
        found = fit.breaks(points)
        assert len(found) == 1 and at <= found[0] <= 1.1 * at + 8, (seed, at, found)
        curve = fit.thinned(points)
        for size in (3, 100, round(at / 1.15) - 9, round(1.15 * at) + 9, 5 << 20):
            if at <= size <= 1.1 * at + 8:
                continue
            told = fit.interpolate(size, [x for x, _ in curve], [y for _, y in curve])
            assert told == pytest.approx(time_s(size), rel=0.1 + 2 * noise), (seed, at, size)


def test_a_straight_line_has_no_breaks_and_two_points():
    _, sample = network(0.0, random.Random(1), [])
    points = [(size, s.value) for size, s in sorted(fit.find_points(sample, SIZES).items())]
    assert fit.breaks(points) == [] and len(fit.thinned(points)) == 2


def test_slope_is_free_of_what_both_have_in_common(seed):
    rng = random.Random(seed)

    def times(count):
        return [5e-3 + count * 2.1e-3 * (1 + abs(rng.gauss(0, 0.01))) for _ in range(9)]

    assert fit.slope((4, times(4)), (40, times(40))).value == pytest.approx(2.1e-3, rel=0.03), seed
