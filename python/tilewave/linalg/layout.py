"""How a matrix is spread over the ranks: what users say of it, and the core's layout of that."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.field.values import whole_numbers

LAYOUTS = ("rows", "columns", "cyclic")
#: Rows and columns of a block of a two-dimensional layout where none is given: panels of so many columns run near the
#: full speed of a BLAS, and leave enough blocks for each rank of a matrix of 1000 rows.
BLOCK = 128
#: Blocks for each rank, on average, where rows or columns are in proportion and no block is given.
BLOCKS_IN_PROPORTION = 32
#: As in BLAS and ScaLAPACK, whose integers have 32 bits.
LARGEST_BLOCK = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Layout:
    """A matrix on a grid of ranks, in blocks that go round it.

    Attributes
    ----------
    name : str
        "rows", "columns" or "cyclic".
    block : tuple of int
        Rows and columns of a block.
    grid : tuple of int
        Ranks along the rows and along the columns; rank numbers go along the columns first.
    weights : tuple of int
        In proportion to which ranks have blocks; empty: they take turns.
    """

    name: str
    block: tuple[int, int]
    grid: tuple[int, int]
    weights: tuple[int, ...] = ()

    def __str__(self) -> str:
        weights = f", weights {self.weights}" if self.weights else ""
        return f"{self.name}, block {self.block}, grid {self.grid}{weights}"

    def _core(self, shape):
        turns = _core.linalg.BlockCyclic(*map(_core.linalg.Axis, shape, self.grid, self.block), False)
        return turns.in_proportion(self.weights)

    def _weights_of(self, ranks):
        """Weights where there is one for each of so many ranks, else None."""
        return self.weights if len(self.weights) == ranks else None


def layout_of(what, shape, ranks, name, block, grid, weights=None):
    """The layout that a call asks for; raises ConfigError."""
    if isinstance(name, Layout):
        if block is not None or grid is not None or weights is not None:
            raise ConfigError(f"{what}: block, grid or weights was given with a whole layout; allowed: one of them")
        if math.prod(name.grid) > ranks:
            raise ConfigError(f"{what}: a layout on a grid of {name.grid} was given; allowed: at most {ranks} ranks")
        # The default block of one-dimensional layouts depends on the shape: what is meant is one block a rank.
        return name
    if not isinstance(name, str) or name not in LAYOUTS:
        raise ConfigError(f"{what}: layout: given {name!r}; allowed: {', '.join(LAYOUTS)}")
    if grid is not None and name != "cyclic":
        raise ConfigError(f"{what}: grid: given for layout {name!r}, which has one dimension; allowed: layout='cyclic'")
    grid = {"rows": (ranks, 1), "columns": (1, ranks)}.get(name) or _grid(what, grid, ranks)
    weights = _weights(what, weights, ranks)
    each = BLOCKS_IN_PROPORTION if weights else 1
    one = [max(1, -(-n // (parts * each if parts > 1 else 1))) for n, parts in zip(shape, grid, strict=True)]
    if block is None:
        block = one if name != "cyclic" else [BLOCK, BLOCK]
    else:
        both = _block(what, block)
        block = {"rows": (both[0], one[1]), "columns": (one[0], both[1])}.get(name, both)
    return Layout(name, tuple(block), grid, weights)


def _weights(what, given, ranks):
    """Return the weights of unequal ranks; empty: ranks have as much."""
    if given is None:
        return ()
    found, most = whole_numbers(given), _core.limits["weight"]
    if found is None or len(found) not in (0, ranks) or any(not 1 <= weight <= most for weight in found):
        raise ConfigError(
            f"{what}: weights: given {shown(given)}; allowed: for each of {ranks} ranks an integer from 1 to {most}, "
            "or none"
        )
    return found if len(set(found)) > 1 else ()


def _block(what, block):
    pair = block if isinstance(block, tuple | list) else (block, block)
    if len(pair) != 2 or any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1 for n in pair):
        raise ConfigError(
            f"{what}: block: given {shown(block)}; allowed: an integer >= 1, or two of them, (rows, columns)"
        )
    if max(pair) > LARGEST_BLOCK:
        raise ConfigError(f"{what}: block: given {shown(block)}; allowed: integers from 1 to {LARGEST_BLOCK}")
    return tuple(int(n) for n in pair)


def _grid(what, grid, ranks):
    if grid is None:
        rows = max(d for d in range(1, math.isqrt(ranks) + 1) if ranks % d == 0)
        return rows, ranks // rows
    good = isinstance(grid, tuple | list) and len(grid) == 2
    if not good or any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1 for n in grid):
        raise ConfigError(f"{what}: grid: given {grid!r}; allowed: two integers >= 1, (rows, columns)")
    if math.prod(grid) > ranks:
        raise ConfigError(f"{what}: grid: given {tuple(grid)}; allowed: at most {ranks} ranks in all")
    return tuple(int(n) for n in grid)


def indices_of(axis, part):
    """The global indices of a part's elements along one dimension, in local order."""
    if part < 0:
        return np.zeros(0, dtype=np.int64)
    local = np.arange(axis.count(part))
    if axis.block == 0:
        return local + axis.first(part)
    block, blocks = local // axis.block, np.array(axis.blocks_of(part))
    period, at = np.divmod(block, len(blocks))
    return (period * axis.period + blocks[at]) * axis.block + local % axis.block


def by_block_columns(shape, block, ranks, weights=()):
    """Blocks of columns that go round the ranks."""
    return Layout("columns", (max(1, shape[0]), block), (1, ranks), weights)


def of_factor(shape, plan):
    """The layout of a factor."""
    rows, columns = plan.grid
    if rows == 1:
        return by_block_columns(shape, plan.block, columns, plan.weights)
    return Layout("cyclic", (plan.block,) * 2, plan.grid, plan.weights)
