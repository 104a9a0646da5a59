"""Spaces, tilings, groupings and schedules of docs.theory.tilings.

The worked examples are those of athanasaki2002; everything random is compared with isl or with
plain loops. A failing random case names its seed in the test id, as in test_points[seed7].
"""

import itertools
import math
from fractions import Fraction

import tiling_oracle as oracle
import pytest

from docs.theory import tilings as theory
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
    box = theory.Space.box([1, -1], [3, 0])
    assert list(box.points()) == [(1, -1), (1, 0), (2, -1), (2, 0), (3, -1), (3, 0)]
    triangle = theory.Space([[[0]], [[0, 0]]], [[[3]], [[1, 0], [0, 2]]])  # j1 <= min(j0, 2)
    assert list(triangle.points()) == [(i, j) for i in range(4) for j in range(min(i, 2) + 1)]


@seeds(60)
def test_points(seed):
    rng = oracle.seeded(seed)
    bounds = oracle.random_bounds(rng, dims_of(seed))
    expected = oracle.isl_points(oracle.isl_loops(*bounds))
    assert list(theory.Space(*bounds).points()) == sorted(expected), bounds


# --- tilings --------------------------------------------------------------------------------


def test_rectangular_tiling():
    t = theory.Tiling.rectangular([4, 3])
    assert t.p == [[4, 0], [0, 3]] and t.h == [[Fraction(1, 4), 0], [0, Fraction(1, 3)]]
    assert t.tile_of([7, -1]) == (1, -1)
    assert t.legal(unit(2)) and t.dependences_fit(unit(2))
    assert not t.legal([[1], [-1]])
    assert t.legal([[4], [0]]) and not t.dependences_fit([[4], [0]])
    assert columns(t.tile_dependences(unit(2))) == {(1, 0), (0, 1)}
    assert t.tiles(theory.Space.box([0, 0], [9, 9])) == list(grid(3, 4))


def test_diagonal_edges_give_floors_and_ceilings():
    t = theory.Tiling.rectangular([4, 3])
    for d in itertools.product(range(-7, 8), repeat=2):
        parts = [{x // p, -(-x // p)} for x, p in zip(d, (4, 3), strict=True)]
        expected = set(itertools.product(*parts)) - {(0, 0)}
        assert columns(t.tile_dependences([[d[0]], [d[1]]])) == expected, d


def random_case(seed):
    rng = oracle.seeded(seed)
    n = dims_of(seed)
    return rng, n, oracle.random_bounds(rng, n), oracle.random_tiling(rng, n)


@seeds(50)
def test_tiles(seed):
    _, _, bounds, t = random_case(seed)
    space = theory.Space(*bounds)
    expected = oracle.isl_points(oracle.isl_loops(*bounds).apply(oracle.isl_tile_map(t.h)))
    assert t.tiles(space) == sorted(expected), (bounds, t.h)
    for j in space.points():
        exact = tuple(math.floor(sum(a * x for a, x in zip(r, j, strict=True))) for r in t.h)
        assert exact == t.tile_of(j), (bounds, t.h, j)


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
    g = theory.Grouping("hyperplane", 0, [1, 2])
    assert g.p == [[1, -2], [0, 2]] and g.h == [[1, 1], [0, Fraction(1, 2)]] and g.cpus() == 2
    assert g.group_of([1, 0]) == g.group_of([0, 1]) == (1, 0)
    assert g.group_of([2, 0]) == g.group_of([1, 1]) == (2, 0)
    assert columns(g.tile_dependences(unit(2))) == {(1, 0), (1, 1)}


def test_step_table_2d():
    g = theory.Grouping("hyperplane", 0, [1, 2])
    schedule = theory.LinearSchedule.for_groups("overlapping", g)
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
    g = theory.Grouping("hyperplane", 2, [2, 1, 1])
    assert g.p == [[2, 0, 0], [0, 1, 0], [-2, -1, 1]]
    assert g.h == [[Fraction(1, 2), 0, 0], [0, 1, 0], [1, 1, 1]]
    schedule = theory.LinearSchedule.for_groups("overlapping", g)
    assert schedule.pi == (1, 1, 1)
    for j1, j2, j3 in [(2, 1, 1), (4, 3, 5), (8, 2, 7), (6, 6, 20)]:
        expected = 3 * j1 // 2 + 2 * j2 + j3 - 4
        assert schedule.waves(theory.Space.box([0] * 3, [j1 - 1, j2 - 1, j3 - 1]), g) == expected
        tiles = theory.cost.TileGrid(tiles=(2, 1, j3), nodes=(j1 // 2, j2, 1), factors=(2, 1, 1), mapping_dim=2)
        assert theory.cost.pipeline_steps("overlapping", "hyperplane", tiles) == expected


def random_grouping(rng, n, kind):
    x = rng.randrange(n)
    return theory.Grouping(kind, x, [1 if k == x else rng.randint(1, 3) for k in range(n)])


KINDS = pytest.mark.parametrize("kind", ["hyperplane", "vertical"])


@KINDS
@seeds(12)
def test_grouping_is_the_tiling_by_its_matrix(seed, kind):
    rng = oracle.seeded(seed)
    n = 1 + seed % 3
    g = random_grouping(rng, n, kind)
    as_tiling = theory.Tiling.from_p(g.p)
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
    assert columns(g.tile_dependences(ds)) == oracle.isl_tile_dependences(g.h, ds) - {(0,) * n}


def unit_group_dependences(n, x):
    """(0, .., 1, .., 0) at the mapping dimension x, and e_x + e_k for each other k."""
    return {tuple(int(k in (x, y)) for k in range(n)) for y in range(n)}


@pytest.mark.parametrize("n", [2, 3, 4])
def test_group_dependences_of_unit_tile_dependences(n):
    for x in range(n):
        g = theory.Grouping("hyperplane", x, [1 if k == x else 2 for k in range(n)])
        # e_k stays in the node for even t_k and leaves it for odd ones.
        assert columns(g.tile_dependences(unit(n))) == unit_group_dependences(n, x)


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
    vertical = theory.Grouping("vertical", 1, [2, 1, 2])
    hyperplane = theory.Grouping("hyperplane", 1, [2, 1, 2])
    assert theory.LinearSchedule.for_tiles("blocking", 3, 1).pi == (1, 1, 1)
    assert theory.LinearSchedule.for_tiles("overlapping", 3, 0).pi == (1, 2, 2)
    assert theory.LinearSchedule.for_groups("blocking", vertical).pi == (1, 1, 1)
    assert theory.LinearSchedule.for_groups("overlapping", vertical).pi == (2, 1, 2)
    assert theory.LinearSchedule.for_groups("blocking", hyperplane).pi == (0, 1, 0)
    assert theory.LinearSchedule.for_groups("overlapping", hyperplane).pi == (1, 1, 1)


def legal_tile_dependences(rng, n):
    """D^S of a random legal tiling of random dependences: non-negative and not empty."""
    while True:
        t, d = oracle.random_tiling(rng, n), oracle.random_dependences(rng, n)
        if t.legal(d) and columns(t.tile_dependences(d)):
            return columns(t.tile_dependences(d))


SCHEDULES = pytest.mark.parametrize("schedule", ["blocking", "overlapping"])


@SCHEDULES
@seeds(16)
def test_tiles_depend_on_earlier_steps(seed, schedule):
    rng = oracle.seeded(seed)
    n = dims_of(seed)
    x = rng.randrange(n)
    s = theory.LinearSchedule.for_tiles(schedule, n, x)
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
    s = theory.LinearSchedule.for_groups(schedule, g)
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
    assert all(s.time(v) >= 1 for v in columns(g.tile_dependences([list(r) for r in zip(*ds)])))


def test_waves_of_weights_of_both_signs():
    # Waves 0, -1, -2, -1 along the second index: the least is inside the box.
    g, s = theory.Grouping("hyperplane", 0, [1, 3]), theory.LinearSchedule([-1, 2])
    assert s.waves(theory.Space.box([0, 0], [0, 3]), g) == 3
    assert s.waves([]) == 0


# --- refusals -------------------------------------------------------------------------------

TILING = theory.Tiling.rectangular([2, 2])
GROUPING = theory.Grouping("hyperplane", 0, [1, 2])


@pytest.mark.parametrize(
    "call,message",
    [
        (lambda: theory.Tiling([[1, 2], [2, 4]]), r"\[\[1, 2\], \[2, 4\]\] was given, which is singular"),
        (lambda: theory.Tiling([[1, 2]]), "square"),
        (lambda: theory.Tiling([[0.5]]), r"0.5 \(float\)"),
        (lambda: theory.Tiling([]), "square"),
        (lambda: theory.Tiling.from_p([[0]]), "singular"),
        (lambda: theory.Tiling.rectangular([4, 0]), r"\(4, 0\)"),
        (lambda: TILING.tile_of([1]), "2 components"),
        (lambda: TILING.legal([[1, 0]]), "2 components"),
        (lambda: theory.Space([[[0, 1]]], [[[3]]]), "bounds of loop 0"),
        (lambda: theory.Space([[[0]]], [[]]), "bounds of loop 0"),
        (lambda: theory.Space.box([0], [1, 2]), "1 loops were given lower and 2 upper"),
        (lambda: theory.Grouping("diagonal", 0, [1]), "'diagonal'"),
        (lambda: theory.Grouping("vertical", 2, [1, 1]), "mapping dimension 2"),
        (lambda: theory.Grouping("vertical", 0, [2, 1]), r"factors \(2, 1\) and mapping dimension 0"),
        (lambda: theory.Grouping("vertical", 0, [1, 0]), r"factors \(1, 0\)"),
        (lambda: theory.Grouping("vertical", 0, []), r"factors \(\)"),
        (lambda: GROUPING.group_of([1]), "2 components"),
        (lambda: theory.LinearSchedule([1]).time([1, 2]), "1 dimensions"),
        (lambda: theory.LinearSchedule.for_tiles("eager", 2, 0), "'eager'"),
        (lambda: theory.LinearSchedule.for_tiles("blocking", 2, 2), "mapping dimension 2"),
    ],
)
@pytest.mark.exhaustive
def test_refusals_say_what_was_given(call, message):
    with pytest.raises(ConfigError, match=message) as error:
        call()
    assert "allowed" in str(error.value)
