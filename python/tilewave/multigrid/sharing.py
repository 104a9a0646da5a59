"""How ranks share the grids of a solver: blocks of all grids lie together, and few ranks take part in small grids."""

import dataclasses
import itertools
import math

from tilewave.errors import ConfigError, shown
from tilewave.field.blocks import Blocks
from tilewave.multigrid.given import integer, sequence

#: Cells for each rank that takes part in a grid, at least: of fewer a sweep takes less than the messages of sharing.
LEAST_CELLS = 1024
#: By what part the largest block may be above an even one on the finest grid, so that its blocks are whole cells of
#: coarse grids.
MOST_UNEVEN = 1 / 16


def blocks_of(shapes, ranks, grid=None):
    """The blocks of each grid's fields, which have one element around the cells; None for one rank.

    Along each axis blocks follow the coarsest grid that ranks can share evenly enough: those of finer grids are then
    whole cells of it, and no value of a restriction comes from another rank. Coarser grids follow it as they can.

    Parameters
    ----------
    shapes : list of tuple of int
        Cells by axis, the finest first.
    ranks : int
    grid : tuple of int, optional
        Ranks along each axis, where that is known.
    """
    if ranks == 1:
        return [None] * len(shapes)
    parts = grid or (ranks,) * len(shapes[0])
    common = [_common(cells, p) for cells, p in zip(zip(*shapes, strict=True), parts, strict=True)]
    found, halved = [], _halvings(shapes)
    for cells, here in zip(shapes, halved, strict=True):
        finer = [max(halved[at][axis] - here[axis], 0) for axis, at in enumerate(common)]
        coarser = [max(here[axis] - halved[at][axis], 0) for axis, at in enumerate(common)]
        found.append(
            Blocks(
                tuple(shapes[at][axis] for axis, at in enumerate(common)),
                scale=tuple(2**n for n in finer),
                per=tuple(2**n for n in coarser),
                shift=1,
                every=_every(math.prod(cells), ranks, len(cells), grid),
            )
        )
    return found


def ends_of(blocks, axis, cells, elements):
    """The blocks of so many elements along an axis: half lies with those who have its first cell, half with the last.

    Parameters
    ----------
    blocks : Blocks
        Of the grid, from `blocks_of`.
    axis, cells, elements : int
    """
    last = (cells - 1) * blocks.per[axis] // blocks.scale[axis]
    along = {"scale": 1, "per": max(last, 1), "shift": elements // 2 - 1}
    dims = range(len(blocks.points))
    by_axis = {"scale": blocks.scale, "per": blocks.per, "shift": (blocks.shift,) * len(dims)}
    changed = {name: tuple(along[name] if d == axis else at[d] for d in dims) for name, at in by_axis.items()}
    return dataclasses.replace(blocks, **changed)


def _halvings(shapes):
    """How often each axis of each grid has been halved; an axis may stay as it is."""
    halved = [(0,) * len(shapes[0])]
    for fine, coarse in itertools.pairwise(shapes):
        halved.append(tuple(n + (a != b) for n, a, b in zip(halved[-1], fine, coarse, strict=True)))
    return halved


def _common(cells, parts):
    """Which of the grids' extents along an axis, the finest first, is the one that all follow."""
    return max(
        (level for level, n in enumerate(cells) if -(-n // parts) * parts <= (1 + MOST_UNEVEN) * n),
        default=0,
    )


def _every(cells, ranks, dims, grid):
    """Return of how many blocks along each axis one has the cells of all."""
    every = 1
    while every < ranks:
        taking_part = math.prod(-(-p // every) for p in grid) if grid else max(ranks / every**dims, 1)
        if cells >= LEAST_CELLS * taking_part:
            break
        every *= 2
    return every


def grid_of(grid, dims, ranks):
    """Return what was given as the process grid, checked."""
    if grid is None:
        return None
    given = sequence(grid)
    if not all(integer(g) and g >= 1 for g in given) or len(given) != dims or math.prod(given) > ranks:
        raise ConfigError(
            f"multigrid: grid: given {shown(grid)}; allowed: {dims} integers >= 1 whose product is at most {ranks}, "
            "the ranks"
        )
    return tuple(map(int, given))
