"""Layouts of arrays over ranks, against the plain definition: which element is whose, and what a rank stores."""

import itertools
import math
import random
import re

import pytest

from tilewave import _core
from tilewave.errors import ConfigError


def box(ranges):
    return set(itertools.product(*(range(low, high) for low, high in ranges)))


def points_of(found):
    return box(zip(*found, strict=True))


def case(pick):
    """A random layout, its shape, grid, halos and cuts; few points and many blocks among them."""
    dims = pick.choice((1, 1, 2, 3))
    shape = tuple(pick.randrange(0, 9) for _ in range(dims))
    grid = tuple(pick.choice((1, 2, 3, 5)) for _ in range(dims))
    below, above = (tuple(pick.randrange(3) for _ in range(dims)) for _ in range(2))
    layout = _core.Layout(shape, grid, below, above)
    cuts = None
    if pick.random() < 0.6:
        cuts = [(pick.randrange(1, 9), *(pick.choice((1, 1, 2, 3)) for _ in range(2)), pick.randrange(3),
                 pick.choice((1, 1, 2, 3))) for _ in shape]
        layout = layout.cut_as(cuts)
    return layout, shape, grid, below, above, cuts


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_blocks_cover_an_array_once_and_name_their_owners(first):
    for seed in range(first, first + 100):
        pick = random.Random(seed)
        layout, shape, grid, below, above, cuts = case(pick)
        owned = [points_of(layout.owned(rank)) for rank in range(layout.ranks)]
        assert layout.ranks == math.prod(grid)
        assert sum(map(len, owned)) == math.prod(shape) and set().union(*owned) == box((0, n) for n in shape), seed
        assert points_of(layout.owned(layout.ranks)) == set(), seed  # a rank beyond the grid
        whole = [(0, n) for n in shape]
        for _ in range(4):
            region = [tuple(sorted((pick.randrange(-2, n + 3), pick.randrange(-2, n + 3)))) for n in shape]
            inside = box((max(low, 0), min(high, n)) for (low, high), n in zip(region, shape, strict=True))
            wanted = [rank for rank, mine in enumerate(owned) if mine & inside]
            assert layout.owners(tuple(zip(*region, strict=True))) == wanted, (seed, shape, grid, cuts, region)
        assert layout.owners(tuple(zip(*whole, strict=True))) == [r for r, mine in enumerate(owned) if mine], seed


@pytest.mark.parametrize("wraps", [False, True])
def test_a_rank_stores_its_block_and_the_halo_within_the_array(wraps):
    for seed in range(200):
        layout, shape, _, below, above, _ = case(random.Random(seed))
        periodic = tuple(int(wraps and k % 2 == 0) for k in range(len(shape)))
        if wraps:
            layout.wraps = periodic
        for rank in range(layout.ranks):
            owned, stored = (list(zip(*f, strict=True)) for f in (layout.owned(rank), layout.storage(rank)))
            if not box(owned):
                assert not box(stored), seed
                continue
            for k, ((low, high), n) in enumerate(zip(owned, shape, strict=True)):
                low, high = low - below[k], high + above[k]
                assert stored[k] == ((low, high) if periodic[k] else (max(low, 0), min(high, n))), (seed, rank, k)


def test_even_blocks_differ_by_one_and_the_larger_ones_come_first():
    for extent, parts in itertools.product(range(14), range(1, 7)):
        layout = _core.Layout((extent,), (parts,))
        starts = [layout.start(0, c) for c in range(parts + 1)]
        sizes = [b - a for a, b in itertools.pairwise(starts)]
        assert starts[0] == 0 and starts[-1] == extent
        assert sizes == sorted(sizes, reverse=True) and max(sizes) - min(sizes) <= 1
        assert [layout.block_at(0, at) for at in range(extent)] == [c for c, n in enumerate(sizes) for _ in range(n)]


def test_blocks_that_follow_those_of_a_coarser_array():
    for points, factor, parts in itertools.product(range(1, 8), (1, 2, 3), (1, 2, 3)):
        for extent in (factor * points, factor * points + 1, max(factor * points - 1, 0)):
            fine = _core.Layout((extent,), (parts,)).following((points,), (factor,))
            coarse = _core.Layout((points,), (parts,))
            for c in range(1, parts):
                wanted = extent if coarse.start(0, c) == points else min(factor * coarse.start(0, c), extent)
                assert fine.start(0, c) == wanted, (points, factor, parts, extent)


def test_equal_blocks_are_equal_whatever_they_follow():
    one = _core.Layout((8,), (2,))
    assert one.same_blocks(one.cut_as([(4, 2, 1, 0, 1)])) and one.same_blocks(one.following((4,), (2,)))
    assert not one.same_blocks(one.cut_as([(4, 2, 1, 1, 1)]))
    assert not one.same_blocks(_core.Layout((8,), (4,))) and not one.same_blocks(_core.Layout((9,), (2,)))
    assert one.same_blocks(_core.Layout((8,), (2,), (3,), (1,)))  # halos do not matter


def surface(shape, grid):
    """Points on a largest block's faces, one for each dimension that is cut; idle ranks are worse than any."""
    blocks = [-(-n // g) for n, g in zip(shape, grid, strict=True)]
    total = sum(math.prod(blocks[:k] + blocks[k + 1 :]) for k, g in enumerate(grid) if g > 1)
    return total + 10**18 * sum(g > max(n, 1) for n, g in zip(shape, grid, strict=True))


@pytest.mark.parametrize("fixed", [-1, 0, 1, 2])
def test_the_default_grid_has_the_least_surface(fixed):
    for seed in range(60):
        pick = random.Random(seed)
        dims = pick.randrange(max(fixed + 1, 1), 4)
        shape, ranks = tuple(pick.randrange(1, 40) for _ in range(dims)), pick.choice((1, 2, 3, 4, 6, 7, 8, 12, 30))
        grids = [
            grid
            for grid in itertools.product(range(1, ranks + 1), repeat=dims)
            if math.prod(grid) == ranks and (dims == 1 or fixed < 0 or grid[fixed] == 1)
        ]
        found = _core.default_grid(shape, ranks, fixed)
        assert found in grids and surface(shape, found) == min(surface(shape, grid) for grid in grids), (seed, shape)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: _core.Layout((), ()), "must have equal dimensions, 1 to 6"),
        (lambda: _core.Layout((2, 3), (1,)), "shape (2, 3), grid (1) and halo widths must have equal dimensions"),
        (lambda: _core.Layout((2,), (1,), (0, 0), (0,)), "must have equal dimensions"),
        (lambda: _core.Layout((-1,), (1,)), "layout: shape (-1) and halo widths must be >= 0"),
        (lambda: _core.Layout((2,), (0,)), "grid (0) >= 1"),
        (lambda: _core.Layout((2,), (1,), (-1,), (0,)), "halo widths must be >= 0"),
        (lambda: _core.Layout((8,), (2,)).following((4, 4), (2,)), "blocks of shape (8) cannot follow those of (4, 4)"),
        (lambda: _core.Layout((8,), (2,)).following((4,), (0,)), "cannot follow those of (4) points, (0) to 1"),
        (lambda: _core.Layout((8,), (2,)).following((-4,), (1,)), "cannot follow"),
    ],
)
def test_layouts_that_are_none(call, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        call()
