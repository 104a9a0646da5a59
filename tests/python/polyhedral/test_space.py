"""Spaces, tilings, groupings and schedules.

The worked examples are those of athanasaki2002; everything random is compared with isl or with
plain loops. A failing random case names its seed in the test id, as in test_points[seed7].
"""

import itertools
import math
from fractions import Fraction

import polyhedral_oracle as oracle
import pytest

from tilewave import _core as core
from tilewave.errors import ConfigError


def seeds(count):
    return pytest.mark.parametrize("seed", range(count), ids=lambda s: f"seed{s}")


def columns(matrix):
    return set(zip(*matrix, strict=True))


def unit(n):
    return [[int(x == k) for x in range(n)] for k in range(n)]


def grid(*extents):
    return itertools.product(*(range(e) for e in extents))


def minus(a, b):
    return tuple(x - y for x, y in zip(a, b, strict=True))


def dims_of(seed):
    return 2 + seed % 2


# --- spaces ---------------------------------------------------------------------------------


def test_box_and_triangle():
    box = core.Space.box([1, -1], [3, 0])
    assert box.is_box and box.count() == 6
    assert box.points() == [(1, -1), (1, 0), (2, -1), (2, 0), (3, -1), (3, 0)]
    triangle = core.Space.loops([[[0]], [[0, 0]]], [[[3]], [[1, 0], [0, 2]]])  # j1 <= min(j0, 2)
    assert triangle.points() == [(i, j) for i in range(4) for j in range(min(i, 2) + 1)]
    assert triangle.bounds(1, [1]) == (0, 1) and triangle.bounds(1, [3]) == (0, 2)
    assert (3, 2) in triangle and (3, 3) not in triangle and not triangle.is_box


def test_constraints_are_reduced():
    box = [[1, 0, 0], [-1, 0, 9], [0, 1, 0], [0, -1, 9]]
    s = core.Space(2, [*box, [2, 0, 1], [-3, 0, 40], [1, 1, 5], [-2, -2, 37]])
    # 2 j0 + 2 j1 <= 37 is j0 + j1 <= 18, which the box implies.
    assert sorted(s.constraints) == sorted(box)


def test_large_box_is_counted_without_a_loop():
    assert core.Space.box([0] * 3, [10**6 - 1] * 3).count() == 10**18


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 0, 0], [-1, 0, -1], [0, 1, 0], [0, -1, 5]],  # 0 <= j0 <= -1
        [[2, -2, -1], [-2, 2, 1], [1, 0, 0], [-1, 0, 9]],  # 2 j0 - 2 j1 = 1
        [[3, -2, -1], [-3, 2, 1], [1, 0, 0], [-1, 0, 0], [0, 1, 5], [0, -1, 5]],  # 2 j1 = -1
    ],
)
def test_empty_spaces(rows):
    s = core.Space(2, rows)
    assert s.empty() and s.count() == 0 and s.points() == [] and s.prefixes(1) == []


@seeds(60)
def test_points(seed):
    rng = oracle.seeded(seed)
    n = dims_of(seed)
    rows = oracle.random_rows(rng, n)
    s, expected = core.Space(n, rows), oracle.isl_points(oracle.isl_space(rows))
    assert s.points() == sorted(expected), rows
    assert s.count() == len(expected) and s.empty() == (not expected)
    for _ in range(30):
        j = tuple(rng.randint(-5, 10) for _ in range(n))
        assert s.contains(j) == (j in expected), (rows, j)


@seeds(40)
def test_projection_lies_between_the_exact_and_the_rational_one(seed):
    rng = oracle.seeded(seed)
    n = dims_of(seed)
    rows = oracle.random_rows(rng, n)
    s = core.Space(n, rows)
    for k in range(1, n):
        exact = {p[:k] for p in oracle.isl_points(oracle.isl_space(rows))}
        assert set(s.prefixes(k)) == exact, rows
        shadow = set(s.project(k).points())
        assert exact <= shadow, rows
        for p in shadow - exact:
            fibre = [[*r[k:-1], r[-1] + sum(a * x for a, x in zip(r, p))] for r in rows]
            assert not oracle.rationally_empty(fibre), (rows, p)


@seeds(20)
def test_no_constraint_is_redundant(seed):
    rng = oracle.seeded(seed)
    n = dims_of(seed)
    s = core.Space(n, oracle.random_rows(rng, n))
    if s.empty():
        return
    for k in range(1, n + 1):
        kept = s.project(k).constraints
        for i, row in enumerate(kept):
            # With s the common denominator of a point, a.x + c < 0 is s (a.x + c) <= -1.
            others = [[*r, 0] for r in kept[:i] + kept[i + 1 :]]
            violated = [[-v for v in row] + [-1], [0] * k + [1, -1]]
            assert not oracle.isl_space(others + violated).is_empty(), (kept, row)


# --- tilings --------------------------------------------------------------------------------


def test_rectangular_tiling():
    t = core.Tiling.rectangular([4, 3])
    assert t.p == [[4, 0], [0, 3]] and t.h == [[Fraction(1, 4), 0], [0, Fraction(1, 3)]]
    assert t.tile_of([7, -1]) == (1, -1)
    assert t.legal(unit(2)) and t.dependences_fit(unit(2))
    assert not t.legal([[1], [-1]])
    assert t.legal([[4], [0]]) and not t.dependences_fit([[4], [0]])
    assert columns(t.tile_dependences(unit(2))) == {(1, 0), (0, 1)}
    space = core.Space.box([0, 0], [9, 9])
    assert t.tiles(space) == list(grid(3, 4)) == t.tile_space(space).points()
    assert t.points_of([2, 3], space).points() == [(8, 9), (9, 9)]


def test_diagonal_edges_give_floors_and_ceilings():
    t = core.Tiling.rectangular([4, 3])
    for d in itertools.product(range(-7, 8), repeat=2):
        parts = [{x // p, -(-x // p)} for x, p in zip(d, (4, 3), strict=True)]
        expected = set(itertools.product(*parts)) - {(0, 0)}
        assert columns(t.tile_dependences([[d[0]], [d[1]]])) == expected, d


def test_large_tiles_are_no_work():
    # 10^9 points a tile: neither case may depend on their number.
    d = unit(3)
    assert columns(core.Tiling.rectangular([1000] * 3).tile_dependences(d)) == columns(d)
    skewed = core.Tiling.from_p([[1000, 3, 7], [5, 999, 11], [-3, 2, 1001]])
    assert (1, 0, 0) in columns(skewed.tile_dependences(d))


def random_case(seed):
    rng = oracle.seeded(seed)
    n = dims_of(seed)
    return rng, n, oracle.random_rows(rng, n), oracle.random_tiling(rng, n, core)


@seeds(50)
def test_exact_tiles(seed):
    _, n, rows, t = random_case(seed)
    space, as_isl = core.Space(n, rows), oracle.isl_space(rows)
    expected = oracle.isl_points(as_isl.apply(oracle.isl_tile_map(t.h)))
    assert t.tiles(space) == sorted(expected), (rows, t.h)
    assert expected <= set(t.tile_space(space).points()), (rows, t.h)


@seeds(25)
def test_tile_space_is_the_rational_shadow(seed):
    _, n, rows, t = random_case(seed)
    space = core.Space(n, rows)
    for tile in set(t.tile_space(space).points()) - set(t.tiles(space)):
        inside = []
        for (g, row), x in zip(oracle.scaled_rows(t.h), tile, strict=True):
            inside += [[*row, -g * x], [*(-v for v in row), g * x + g - 1]]
        assert not oracle.rationally_empty(rows + inside), (rows, t.h, tile)


@seeds(30)
def test_each_point_is_in_one_tile(seed):
    _, n, rows, t = random_case(seed)
    space = core.Space(n, rows)
    found = [(j, tile) for tile in t.tiles(space) for j in t.points_of(tile, space).points()]
    assert sorted(j for j, _ in found) == space.points(), (rows, t.h)
    for j, tile in found:
        exact = tuple(math.floor(sum(a * x for a, x in zip(r, j, strict=True))) for r in t.h)
        assert tile == exact == t.tile_of(j), (rows, t.h, j)


@seeds(50)
def test_tile_dependences(seed):
    rng, n, _, t = random_case(seed)
    d = oracle.random_dependences(rng, n)
    expected = oracle.isl_tile_dependences(t.h, d)
    ds = t.tile_dependences(d)
    assert columns(ds) == expected - {(0,) * n}, (t.h, d)
    assert list(zip(*ds)) == sorted(columns(ds))
    # A dependence that points backward in some row of H does so between some tiles.
    assert t.legal(d) == all(x >= 0 for v in expected for x in v), (t.h, d)
    products = [sum(a * x for a, x in zip(r, v, strict=True)) for r in t.h for v in zip(*d)]
    assert t.dependences_fit(d) == all(0 <= x < 1 for x in products), (t.h, d)
    if t.dependences_fit(d):
        assert all(x in (0, 1) for v in columns(ds) for x in v)


# --- groupings ------------------------------------------------------------------------------


def test_worked_grouping_2d():
    g = core.Grouping("hyperplane", 0, [1, 2])
    assert g.p == [[1, -2], [0, 2]] and g.h == [[1, 1], [0, Fraction(1, 2)]] and g.cpus() == 2
    assert g.group_of([1, 0]) == g.group_of([0, 1]) == (1, 0)
    assert g.group_of([2, 0]) == g.group_of([1, 1]) == (2, 0)
    assert columns(g.group_dependences(unit(2))) == {(1, 0), (1, 1)}


def test_step_table_2d():
    g = core.Grouping("hyperplane", 0, [1, 2])
    schedule = core.LinearSchedule.for_groups("overlapping", g)
    table = {}
    for tile in grid(5, 4):
        table.setdefault(schedule.wave_of(g, tile), {})[(*g.node_of(tile), g.cpu_of(tile))] = tile
    assert [table[t] for t in range(5)] == [
        {(0, 0): (0, 0)},
        {(0, 0): (1, 0), (0, 1): (0, 1)},
        {(0, 0): (2, 0), (0, 1): (1, 1)},
        {(0, 0): (3, 0), (0, 1): (2, 1), (1, 0): (0, 2)},
        {(0, 0): (4, 0), (0, 1): (3, 1), (1, 0): (1, 2), (1, 1): (0, 3)},
    ]
    assert g.group_of([0, 2]) == (2, 1) and g.group_of([1, 2]) == g.group_of([0, 3]) == (3, 1)


def test_worked_grouping_3d():
    g = core.Grouping("hyperplane", 2, [2, 1, 1])
    assert g.p == [[2, 0, 0], [0, 1, 0], [-2, -1, 1]]
    assert g.h == [[Fraction(1, 2), 0, 0], [0, 1, 0], [1, 1, 1]]
    schedule = core.LinearSchedule.for_groups("overlapping", g)
    assert schedule.pi == (1, 1, 1)
    for j1, j2, j3 in [(2, 1, 1), (4, 3, 5), (8, 2, 7), (6, 6, 100)]:
        expected = 3 * j1 // 2 + 2 * j2 + j3 - 4
        space = core.Space.box([0] * 3, [j1 - 1, j2 - 1, j3 - 1])
        assert schedule.waves(space, g) == schedule.waves(space.points(), g) == expected
        tiles = core.cost.TileGrid(tiles=(2, 1, j3), nodes=(j1 // 2, j2, 1), factors=(2, 1, 1), mapping_dim=2)
        assert core.cost.pipeline_steps("overlapping", "hyperplane", tiles) == expected


def random_grouping(rng, n, kind):
    x = rng.randrange(n)
    return core.Grouping(kind, x, [1 if k == x else rng.randint(1, 3) for k in range(n)])


KINDS = pytest.mark.parametrize("kind", ["hyperplane", "vertical"])


@KINDS
@seeds(12)
def test_grouping_is_the_tiling_by_its_matrix(seed, kind):
    rng = oracle.seeded(seed)
    n = 1 + seed % 3
    g = random_grouping(rng, n, kind)
    as_tiling = core.Tiling.from_p(g.p)
    assert as_tiling.h == g.h and abs(oracle.det(g.p)) == g.cpus() == math.prod(g.factors)
    groups = {}
    for tile in itertools.product(range(-2, 5), repeat=n):
        assert g.group_of(tile) == as_tiling.tile_of(tile)
        others = [k for k in range(n) if k != g.mapping_dim]
        assert g.node_of(tile) == tuple(tile[k] // g.factors[k] for k in others)
        assert 0 <= g.cpu_of(tile) < g.cpus()
        groups.setdefault(g.group_of(tile), []).append(tile)
    for group in groups.values():  # one tile for each CPU of one node
        assert len({g.cpu_of(t) for t in group}) == len(group)
        assert len({g.node_of(t) for t in group}) == 1
    ds = oracle.random_dependences(rng, n, least=0, most=3)
    assert columns(g.group_dependences(ds)) == oracle.isl_tile_dependences(g.h, ds) - {(0,) * n}


def unit_group_dependences(n, x):
    """(0, .., 1, .., 0) at the mapping dimension x, and e_x + e_k for each other k."""
    return {tuple(int(k in (x, y)) for k in range(n)) for y in range(n)}


@pytest.mark.parametrize("n", [2, 3, 4])
def test_group_dependences_of_unit_tile_dependences(n):
    for x in range(n):
        g = core.Grouping("hyperplane", x, [1 if k == x else 2 for k in range(n)])
        # e_k stays in the node for even t_k and leaves it for odd ones.
        assert columns(g.group_dependences(unit(n))) == unit_group_dependences(n, x)


@seeds(40)
def test_no_dependence_inside_a_hyperplane_group(seed):
    rng = oracle.seeded(seed)
    n = dims_of(seed)
    g = random_grouping(rng, n, "hyperplane")
    ds = columns(oracle.random_dependences(rng, n, count=4, least=0, most=3)) - {(0,) * n}
    for tile in itertools.product(range(4), repeat=n):
        for d in ds:
            later = tuple(t + x for t, x in zip(tile, d, strict=True))
            assert g.group_of(tile) != g.group_of(later), (g.p, tile, d)


# --- schedules ------------------------------------------------------------------------------


def test_schedule_vectors():
    vertical = core.Grouping("vertical", 1, [2, 1, 2])
    hyperplane = core.Grouping("hyperplane", 1, [2, 1, 2])
    assert core.LinearSchedule.for_tiles("blocking", 3, 1).pi == (1, 1, 1)
    assert core.LinearSchedule.for_tiles("overlapping", 3, 0).pi == (1, 2, 2)
    assert core.LinearSchedule.for_groups("blocking", vertical).pi == (1, 1, 1)
    assert core.LinearSchedule.for_groups("overlapping", vertical).pi == (2, 1, 2)
    assert core.LinearSchedule.for_groups("blocking", hyperplane).pi == (0, 1, 0)
    assert core.LinearSchedule.for_groups("overlapping", hyperplane).pi == (1, 1, 1)


def legal_tile_dependences(rng, n):
    """D^S of a random legal tiling of random dependences: non-negative and not empty."""
    while True:
        t, d = oracle.random_tiling(rng, n, core), oracle.random_dependences(rng, n)
        if t.legal(d) and columns(t.tile_dependences(d)):
            return columns(t.tile_dependences(d))


SCHEDULES = pytest.mark.parametrize("schedule", ["blocking", "overlapping"])


@SCHEDULES
@seeds(16)
def test_tiles_depend_on_earlier_steps(seed, schedule):
    rng = oracle.seeded(seed)
    n = dims_of(seed)
    x = rng.randrange(n)
    s = core.LinearSchedule.for_tiles(schedule, n, x)
    for d in legal_tile_dependences(rng, n):
        leaves_node = any(v for k, v in enumerate(d) if k != x)
        assert s.time(d) >= (2 if schedule == "overlapping" and leaves_node else 1), (x, d)


@SCHEDULES
@KINDS
@seeds(12)
def test_groups_depend_on_earlier_steps(seed, kind, schedule):
    rng = oracle.seeded(seed)
    n = dims_of(seed)
    g = random_grouping(rng, n, kind)
    s = core.LinearSchedule.for_groups(schedule, g)
    ds = legal_tile_dependences(rng, n)
    for tile in itertools.product(range(4), repeat=n):
        for d in ds:
            later = tuple(t + x for t, x in zip(tile, d, strict=True))
            ahead = s.wave_of(g, later) - s.wave_of(g, tile)
            if g.node_of(later) != g.node_of(tile):
                least = 2 if schedule == "overlapping" else 1
            else:  # only a vertical group holds a tile and what it depends on
                least = 0 if g.group_of(later) == g.group_of(tile) else 1
                assert least == 1 or kind == "vertical"
            assert ahead >= least, (g.p, s.pi, tile, d)
    assert all(s.time(v) >= 1 for v in columns(g.group_dependences([list(r) for r in zip(*ds)])))


@SCHEDULES
@KINDS
@seeds(10)
def test_steps_are_counted_as_by_enumeration(seed, kind, schedule):
    rng, n, rows, t = random_case(seed)
    g = random_grouping(rng, n, kind)
    lo = [rng.randint(-4, 4) for _ in range(n)]
    box = core.Space.box(lo, [x + rng.randint(0, 6) for x in lo])
    weights = [rng.randint(-2, 2) for _ in range(n)]
    for s in (core.LinearSchedule.for_groups(schedule, g), core.LinearSchedule(weights)):
        for tiles in (box, core.Space(n, rows), t.tiles(core.Space(n, rows))):
            listed = tiles if isinstance(tiles, list) else tiles.points()
            steps = [s.wave_of(g, v) for v in listed]
            assert s.waves(tiles, g) == (max(steps) - min(steps) + 1 if steps else 0), (lo, s.pi)
            steps = [s.time(v) for v in listed]
            assert s.waves(tiles) == (max(steps) - min(steps) + 1 if steps else 0), (lo, s.pi)


def test_steps_of_weights_of_both_signs():
    # Steps 0, -1, -2, -1 along the second index: the least is inside the box.
    g, s = core.Grouping("hyperplane", 0, [1, 3]), core.LinearSchedule([-1, 2])
    assert s.waves(core.Space.box([0, 0], [0, 3]), g) == 3


# --- refusals -------------------------------------------------------------------------------

TILING = core.Tiling.rectangular([2, 2])
GROUPING = core.Grouping("hyperplane", 0, [1, 2])
SPACE = core.Space.box([0, 0], [1, 1])


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: core.Tiling([[1, 2], [2, 4]]), "singular"),
        (lambda: core.Tiling([[1, 2]]), "1 rows and 2 columns"),
        (lambda: core.Tiling([[1, 2], [3]]), "rows of equal length"),
        (lambda: core.Tiling([[0.5]]), r"h\[0\]\[0\] was given as 0.5 \(float\)"),
        (lambda: core.Tiling([]), "0 rows"),
        (lambda: core.Tiling.from_p([[0]]), "P of a tiling .* singular"),
        (lambda: core.Tiling.rectangular([4, 0]), "tile size 0 .* index 1"),
        (lambda: core.Tiling.rectangular([1.5]), "sizes.0. .* integer"),
        (lambda: TILING.tile_of([1]), "point of 1 dimensions"),
        (lambda: TILING.legal([[1, 0]]), "1 rows"),
        (lambda: TILING.legal([[1, 0], [1]]), "rows of 2 and 1"),
        (lambda: TILING.tile_dependences([[1], [Fraction(1, 2)]]), "integer"),
        (lambda: TILING.tiles(core.Space.box([0], [1])), "space of 1 dimensions"),
        (lambda: TILING.points_of([0], SPACE), "tile of 1 dimensions"),
        (lambda: core.Space(2, [[1, 0]]), "1 components"),
        (lambda: core.Space(0, []), "0 dimensions"),
        (lambda: core.Space(1, [[1, 0]]), "index 0 of the space has no upper bound"),
        (lambda: core.Space.box([0], [1, 2]), "1 lower and 2 upper"),
        (lambda: core.Space.box([0], [2**64]), "64 bits"),
        (lambda: core.Space.loops([[[0, 1]]], [[[3]]]), "bound of loop 0 has 1 coefficients"),
        (lambda: SPACE.bounds(2, []), "index number 2"),
        (lambda: SPACE.bounds(1, []), "0 outer values"),
        (lambda: SPACE.project(0), "0 was given; 1 to 2"),
        (lambda: SPACE.contains([1]), "point of 1 components"),
        (lambda: core.Space.box([0, 0], [2**62, 2**62]).count(), "64 bits"),
        (lambda: core.Grouping("diagonal", 0, [1]), "'diagonal'"),
        (lambda: core.Grouping("vertical", 2, [1, 1]), "mapping dimension 2"),
        (lambda: core.Grouping("vertical", 0, [2, 1]), "group factor 2 .* mapping dimension 0"),
        (lambda: core.Grouping("vertical", 0, [1, 0]), "group factor 0"),
        (lambda: core.Grouping("vertical", 0, []), "no group factors"),
        (lambda: GROUPING.group_of([1]), "tile of 1 components"),
        (lambda: GROUPING.group_dependences([[1]]), "1 rows"),
        (lambda: core.LinearSchedule([]), "empty"),
        (lambda: core.LinearSchedule([1]).time([1, 2]), "2 components"),
        (lambda: core.LinearSchedule([1]).wave_of(GROUPING, [0, 0]), "grouping of 2"),
        (lambda: core.LinearSchedule.for_tiles("eager", 2, 0), "'eager'"),
        (lambda: core.LinearSchedule.for_tiles("blocking", 2, 2), "mapping dimension 2"),
        (lambda: core.Space((1 << 32) + 1, [[1, 0], [-1, 9]]), "at most 32 bits is allowed"),
        (lambda: core.Space.box([0], [3]).project(-(1 << 32)), "at most 32 bits is allowed"),
    ],
)
@pytest.mark.exhaustive
def test_refusals_say_what_was_given(call, message):
    with pytest.raises(ConfigError, match=message) as error:
        call()
    assert isinstance(error.value, ValueError)
    assert "allowed" in str(error.value) or "64 bits" in str(error.value)
