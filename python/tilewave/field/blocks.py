"""Blocks of a field that lie together with those of a coarser or finer one."""

from dataclasses import dataclass

from tilewave import units
from tilewave.errors import ConfigError, is_integer, shown

#: Of scales: products with extents stay within 64 bits.
LARGEST_SCALE = 2**20


@dataclass(frozen=True)
class Blocks:
    """How a field is cut into the blocks of ranks, for `field`; otherwise blocks are even.

    Block c begins at element ``shift + ceil(scale * p / per)``, where p is the begin of block c of `points` in even
    blocks. Elements before the first point are in the first block that has some, those behind the last point in the
    last such block. Each entry is a number, or a tuple with one for each axis.

    Parameters
    ----------
    points : int or tuple of int
        That all grids have in common: the cells of a coarse grid.
    scale : int or tuple of int, optional
        Elements for each point, on a finer grid. Default: 1.
    per : int or tuple of int, optional
        Points for each element, on a coarser grid. Default: 1.
    shift : int or tuple of int, optional
        Elements in front of those of the points, such as a layer around the cells. Default: 0.
    every : int or tuple of int, optional
        The first of so many blocks has what all of them would have, the others nothing: ranks have no part in a grid
        with few points. At least as many as ranks: one block has all. Default: 1.

    Examples
    --------
    A coarse grid of n cells with one element around them, and one of twice as many cells along each axis::

        coarse = tw.field((n + 2, n + 2), blocks=tw.Blocks(n, shift=1))
        fine = tw.field((2 * n + 2, 2 * n + 2), blocks=tw.Blocks(n, scale=2, shift=1))
    """

    points: int | tuple[int, ...]
    scale: int | tuple[int, ...] = 1
    per: int | tuple[int, ...] = 1
    shift: int | tuple[int, ...] = 0
    every: int | tuple[int, ...] = 1

    def _cuts(self, ndim):
        """For each axis (points, scale, per, shift, every), checked."""
        limits = {
            "points": (0, 2**40),
            "scale": (1, LARGEST_SCALE),
            "per": (1, LARGEST_SCALE),
            "shift": (0, 2**40),
            "every": (1, 2**31),
        }
        return tuple(zip(*(self._by_axis(name, ndim, *ends) for name, ends in limits.items()), strict=True))

    def _by_axis(self, name, ndim, least, most):
        given = getattr(self, name)
        entries = (given,) * ndim if is_integer(given) else given
        if (
            not isinstance(entries, tuple | list)
            or len(entries) != ndim
            or not all(is_integer(entry, least, most) for entry in entries)
        ):
            raise ConfigError(
                f"field: blocks: {name}={shown(given)} was given for {units.count(ndim, 'dimension')}; allowed: an "
                f"integer from {least} to {most}, or one for each axis"
            )
        return [int(entry) for entry in entries]


def cuts_of(blocks, shape):
    """Return what `field` was given as ``blocks=``, for each axis; None where nothing was given."""
    if blocks is None:
        return None
    if not isinstance(blocks, Blocks):
        raise ConfigError(f"field: blocks: given {type(blocks).__name__}; allowed: a tilewave.Blocks")
    return blocks._cuts(len(shape))
