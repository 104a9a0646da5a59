"""Numbers for people: three digits, one unit a column, sums that add up."""

import math

import pytest

from tilewave import units


@pytest.mark.parametrize(
    "value, text",
    [
        (2.5, "2.5 s"), (1, "1 s"), (0.99951, "1 s"), (0.99949, "999 ms"), (9.996e-4, "1 ms"), (0.0319611, "32 ms"),
        (5e-5, "50 µs"), (-3e-3, "-3 ms"), (3.21e-8, "32.1 ns"), (2.84e-16, "0 ns"), (0, "0 ns"), (2260, "2260 s"),
        (math.nan, "nan ns"),
    ],
)
def test_times(value, text):
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    "value, text",
    [(0, "0 bytes"), (8, "8 bytes"), (1023, "1023 bytes"), (1 << 10, "1 KiB"), (8300, "8.11 KiB"), (3 << 30, "3 GiB")],
)
def test_bytes(value, text):
    assert units.size(value) == text


@pytest.mark.parametrize("number, text", [(0, "0 ranks"), (1, "1 rank"), (2, "2 ranks")])
def test_counts(number, text):
    assert units.count(number, "rank") == text


@pytest.mark.parametrize(
    "value, text",
    [(1e-9, "1 GB/s"), (1.1e-9, "909 MB/s"), (1e-6, "1 MB/s"), (4e-11, "25 GB/s"), (0, "unlimited")],
)
def test_rates(value, text):
    assert units.rate(value) == text


def test_a_column_has_one_unit_and_its_points_below_each_other():
    unit, cells = units.column([0.912, 0.000164, 0.0123, 0], units.TIMES)
    assert unit == "ms" and cells == ["912    ", "  0.164", " 12.3  ", "  0    "]
    assert units.column([], units.TIMES) == ("ns", [])
    assert units.column([0, 5 << 20, 1 << 30], units.BYTES) == ("GiB", ["0    ", "0.005", "1    "])


def test_a_column_over_many_sizes_has_units_of_its_cells():
    assert units.cells([1e-6, 0.5], units.TIMES) == ["1 µs", "500 ms"]
    assert units.cells([1e-3, 0.5], units.TIMES) == ["  1 ms", "500 ms"]
    assert units.cells([1 / 3, 0, 2], units.TIMES) == ["0.333 s", "0     s", "2     s"]


@pytest.mark.parametrize("parts, total", [([1, 1, 1], 3), ([0.5, 0.6], 1), ([0, 0], 0), ([1, 2, 4], 9), ([-1, 2], 3)])
def test_shares_and_what_is_left_add_up(parts, total):
    found = units.shares(parts, total)
    assert len(found) == len(parts) + 1 and sum(round(10 * float(share)) for share in found) == 1000
    assert all(float(share) >= 0 for share in found)
    if total and sum(max(part, 0) for part in parts) <= total:
        assert all(abs(float(s) - 100 * max(p, 0) / total) < 0.2 for s, p in zip(found, parts, strict=False))


@pytest.mark.parametrize("parts", [[0.032, 0.0021, 2.226], [1e-6, 2e-9], [0.0, 0.0], [999.96, 0.04], [1 / 3, 1 / 3]])
def test_what_is_shown_of_a_sum_adds_up(parts):
    unit, shown, whole = units.total(parts, units.TIMES)
    assert round(sum(map(float, shown)), 6) == float(whole)
    assert abs(float(whole) * dict(units.TIMES)[unit] - sum(parts)) <= 0.001 * sum(parts)
