"""Iteration spaces and their tilings (athanasaki2002, section 2)."""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from numbers import Rational

from tilewave.errors import ConfigError

Point = tuple[int, ...]
Matrix = list[list[Fraction]]
Bounds = Sequence[Sequence[Sequence[int]]]


class Space:
    """The integer points of nested loops, whose bounds are affine in the outer indices.

    Parameters
    ----------
    lower, upper : for each loop k a sequence of rows of k + 1 ints
        Row (a_0, .., a_k-1, c) means a.(j_0, .., j_k-1) + c. A loop runs from the greatest of its lower bounds to the
        least of its upper bounds, both inclusive.

    Raises
    ------
    ConfigError
        A bound names an index that is not an outer one, or a loop has no bound.
    """

    def __init__(self, lower: Bounds, upper: Bounds) -> None:
        if len(lower) != len(upper):
            raise ConfigError(
                f"{len(lower)} loops were given lower and {len(upper)} upper bounds; as many of each are allowed"
            )
        for k, bounds in enumerate(zip(lower, upper)):
            if not all(bounds) or any(len(row) != k + 1 for rows in bounds for row in rows):
                raise ConfigError(
                    f"the bounds of loop {k} were given as {bounds}; lower and upper rows of {k + 1} numbers are "
                    "allowed: one for each outer index, and a constant"
                )
        self.lower: Bounds = lower
        self.upper: Bounds = upper

    @classmethod
    def box(cls, lo: Sequence[int], hi: Sequence[int]) -> "Space":
        """The box lo <= j <= hi, both ends inclusive."""
        lower, upper = ([[[0] * k + [end]] for k, end in enumerate(ends)] for ends in (lo, hi))
        return cls(lower, upper)

    def points(self, outer: Point = ()) -> Iterator[Point]:
        """The points in the order of the loops; with `outer`, those that begin so."""
        k = len(outer)
        if k == len(self.lower):
            yield outer
            return
        first, last = (
            [sum(a * x for a, x in zip(row, (*outer, 1), strict=True)) for row in bounds[k]]
            for bounds in (self.lower, self.upper)
        )
        for value in range(max(first), min(last) + 1):
            yield from self.points((*outer, value))


class Tiling:
    """The tiling j -> floor(H j) of an iteration space.

    Dependence matrices d have a row for each index and a column for each dependence vector.

    Parameters
    ----------
    h : n x n nested sequence of int or fractions.Fraction
        Regular. The columns of P = H^-1 are the edges of a tile.

    Attributes
    ----------
    h, p : list of n lists of fractions.Fraction

    Raises
    ------
    ConfigError
        H is singular or not square, or an entry is not exact.
    """

    def __init__(self, h: Sequence[Sequence[Rational | int]]) -> None:
        self.h: Matrix = exact(h)
        self.p: Matrix = inverse(self.h)

    @classmethod
    def from_p(cls, p: Sequence[Sequence[Rational | int]]) -> "Tiling":
        """The tiling with H = P^-1."""
        return cls(inverse(exact(p)))

    @classmethod
    def rectangular(cls, sizes: Sequence[int]) -> "Tiling":
        """The tiling with P = diag(sizes)."""
        if not sizes or min(sizes) < 1:
            raise ConfigError(f"tile sizes {tuple(sizes)} were given; one size of 1 or more for each index is allowed")
        return cls.from_p([[size if k == x else 0 for x in range(len(sizes))] for k, size in enumerate(sizes)])

    def tile_of(self, j: Sequence[int]) -> Point:
        """The tile floor(H j) of a point."""
        return tuple(math.floor(x) for x in product(self.h, j))

    def legal(self, d: Sequence[Sequence[int]]) -> bool:
        """Whether H d >= 0 elementwise: tiles can run one after another."""
        return all(x >= 0 for column in columns(d) for x in product(self.h, column))

    def dependences_fit(self, d: Sequence[Sequence[int]]) -> bool:
        """Whether 0 <= H d < 1 elementwise: a tile needs its nearest neighbours only."""
        return all(0 <= x < 1 for column in columns(d) for x in product(self.h, column))

    def tiles(self, space: Space) -> list[Point]:
        """The tiles that hold a point of `space`, sorted."""
        return sorted({self.tile_of(j) for j in space.points()})

    def tile_dependences(self, d: Sequence[Sequence[int]]) -> list[list[int]]:
        """D^S: a row for each index, a sorted column for each dependence between two tiles.

        The columns are every floor(H (j + d)) - floor(H j) over integer j, without the zero vector. Time and memory
        grow with the number of points of a tile.
        """
        moved = [product(self.h, column) for column in columns(d)]
        found = {
            tuple(math.floor(a + b) for a, b in zip(place, by, strict=True))
            for place, by in itertools.product(self._places(), moved)
        }
        return [list(row) for row in zip(*sorted(found - {(0,) * len(self.h)}), strict=True)] or [[] for _ in self.h]

    def _places(self) -> set[tuple[Fraction, ...]]:
        """Every H j mod 1 of integer j, where points lie in their tiles: sums of the columns of H, modulo 1."""
        found = new = {(Fraction(0),) * len(self.h)}
        while new:
            new = {
                tuple((a + b) % 1 for a, b in zip(place, column, strict=True))
                for place, column in itertools.product(new, columns(self.h))
            } - found
            found = found | new
        return found


def exact(m: Sequence[Sequence[Rational | int]]) -> Matrix:
    """A square matrix of fractions."""
    if not m or any(len(row) != len(m) for row in m):
        raise ConfigError(f"{[list(row) for row in m]} was given; a square matrix is allowed")
    for value in itertools.chain(*m):
        if not isinstance(value, Rational):
            raise ConfigError(
                f"{value!r} ({type(value).__name__}) was given in a matrix; an int or a fractions.Fraction is allowed"
            )
    return [[Fraction(int(value.numerator), int(value.denominator)) for value in row] for row in m]


def inverse(m: Matrix) -> Matrix:
    """M^-1, by Gauss and Jordan."""
    n = len(m)
    rows = [[*row, *(Fraction(k == x) for x in range(n))] for k, row in enumerate(m)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot is None:
            raise ConfigError(
                f"[{', '.join('[' + ', '.join(map(str, row)) + ']' for row in m)}] was given, which is singular; "
                "a matrix with an inverse is allowed"
            )
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n:] for row in rows]


def columns(m: Sequence[Sequence[Rational | int]]) -> list[tuple[Rational | int, ...]]:
    """The columns of a matrix given by rows."""
    return list(zip(*m, strict=True))


def product(h: Matrix, j: Sequence[Rational | int]) -> list[Fraction]:
    """H j."""
    if len(j) != len(h):
        raise ConfigError(f"{tuple(j)} was given to a tiling of {len(h)} dimensions; {len(h)} components are allowed")
    return [sum((a * x for a, x in zip(row, j)), Fraction(0)) for row in h]
