"""Groups of tiles, which the CPUs of a node compute in one wave, and linear schedules (athanasaki2002, section 4)."""

import math
from collections.abc import Iterable, Sequence

from tilewave.errors import ConfigError

from docs.theory.tilings.tiling import Point, Space, Tiling, exact, inverse


class Grouping(Tiling):
    """Groups of up to m_0 .. m_n-1 tiles, one for each CPU of a node: a tiling of the tile space.

    Parameters
    ----------
    kind : 'hyperplane' or 'vertical'
        P^G is diag(factors); for hyperplane groups its row mapping_dim is -m_x besides its 1.
    mapping_dim : int
        Tiles along this dimension stay on one CPU.
    factors : n ints
        CPUs of a node along each dimension; 1 at mapping_dim.

    Attributes
    ----------
    kind, mapping_dim, factors
        As given.
    h, p : list of n lists of fractions.Fraction
        H^G and P^G.

    Raises
    ------
    ConfigError
        A factor is below 1, or not 1 at mapping_dim.
    """

    def __init__(self, kind: str, mapping_dim: int, factors: Sequence[int]) -> None:
        if kind not in ("hyperplane", "vertical"):
            raise ConfigError(f"grouping {kind!r} was given; allowed: 'hyperplane', 'vertical'")
        factors = tuple(factors)
        if not 0 <= mapping_dim < len(factors) or min(factors) < 1 or factors[mapping_dim] != 1:
            raise ConfigError(
                f"factors {factors} and mapping dimension {mapping_dim} were given; allowed are factors of 1 or more, "
                "and 1 at the mapping dimension"
            )
        self.kind: str = kind
        self.mapping_dim: int = mapping_dim
        self.factors: Point = factors
        p = [[m if k == x else 0 for x in range(len(factors))] for k, m in enumerate(factors)]
        if kind == "hyperplane":
            p[mapping_dim] = [1 if x == mapping_dim else -m for x, m in enumerate(factors)]
        super().__init__(inverse(exact(p)))

    def group_of(self, tile: Sequence[int]) -> Point:
        """The group floor(H^G tile)."""
        return self.tile_of(tile)

    def node_of(self, tile: Sequence[int]) -> Point:
        """The node floor(t_x / m_x), x != mapping_dim: n - 1 ints."""
        return tuple(t // m for x, (t, m) in enumerate(zip(tile, self.factors, strict=True)) if x != self.mapping_dim)

    def cpu_of(self, tile: Sequence[int]) -> int:
        """The CPU in its node: t_x mod m_x, x != mapping_dim, in row-major order."""
        cpu = 0
        for t, m in zip(tile, self.factors, strict=True):
            cpu = cpu * m + t % m
        return cpu

    def cpus(self) -> int:
        """CPUs of a node: the product of the factors, and det(P^G)."""
        return math.prod(self.factors)


class LinearSchedule:
    """The wave of a tile or group v is pi.v.

    Parameters
    ----------
    pi : sequence of int
        The weights of the coordinates.
    """

    def __init__(self, pi: Sequence[int]) -> None:
        self.pi: Point = tuple(pi)

    @classmethod
    def for_tiles(cls, kind: str, n: int, mapping_dim: int) -> "LinearSchedule":
        """The schedule of n-D tiles on nodes of one CPU.

        Parameters
        ----------
        kind : 'blocking' or 'overlapping'
            Blocking: (1, .., 1). Overlapping: 1 at mapping_dim, 2 elsewhere.
        """
        return cls(_weights(n, mapping_dim, _elsewhere(kind, 1, 2)))

    @classmethod
    def for_groups(cls, kind: str, grouping: Grouping) -> "LinearSchedule":
        """The schedule of groups of tiles.

        Parameters
        ----------
        kind : 'blocking' or 'overlapping'
            Of vertical groups as of tiles. Of hyperplane groups overlapping (1, .., 1), as groups of neighbouring nodes
            already differ by (1, 1); blocking 1 at the mapping dimension and 0 elsewhere, so that the wave of a tile is
            the sum of its coordinates.
        """
        n, mapping_dim = len(grouping.factors), grouping.mapping_dim
        if grouping.kind == "vertical":
            return cls.for_tiles(kind, n, mapping_dim)
        return cls(_weights(n, mapping_dim, _elsewhere(kind, 0, 1)))

    def time(self, v: Sequence[int]) -> int:
        """The wave pi.v of a tile or group."""
        if len(v) != len(self.pi):
            raise ConfigError(f"{tuple(v)} was given to a schedule of {len(self.pi)} dimensions; as many are allowed")
        return sum(a * x for a, x in zip(self.pi, v))

    def wave_of(self, grouping: Grouping, tile: Sequence[int]) -> int:
        """The wave of the group that holds a tile."""
        return self.time(grouping.group_of(tile))

    def waves(self, tiles: Space | Iterable[Point], grouping: Grouping | None = None) -> int:
        """Number of waves from the first to the last of `tiles`, or of their groups; 0 where there is no tile."""
        listed = tiles.points() if isinstance(tiles, Space) else tiles
        times = [self.wave_of(grouping, tile) if grouping else self.time(tile) for tile in listed]
        return max(times) - min(times) + 1 if times else 0


def _elsewhere(kind: str, blocking: int, overlapping: int) -> int:
    if kind not in ("blocking", "overlapping"):
        raise ConfigError(f"schedule {kind!r} was given; allowed: 'blocking', 'overlapping'")
    return blocking if kind == "blocking" else overlapping


def _weights(n: int, mapping_dim: int, elsewhere: int) -> list[int]:
    if not 0 <= mapping_dim < n:
        raise ConfigError(f"mapping dimension {mapping_dim} was given; 0 to {n - 1} are allowed")
    return [1 if k == mapping_dim else elsewhere for k in range(n)]
