"""Closed forms for tiles on nodes of several CPUs. Times in seconds.

athanasaki2002 has them for two dimensions and two CPUs a node, and one example of three dimensions; what is derived
here from its groups and schedules says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewave.errors import ConfigError


@dataclass(kw_only=True)
class TileGrid:
    """Tiles that read their neighbours one back along each dimension, on a grid of nodes.

    Parameters
    ----------
    tiles : n ints
        Of the node that has most, along each dimension.
    nodes : n ints
        Along each dimension.
    factors : n ints
        CPUs of a node along each dimension, 1 along the mapping dimension.
    mapping_dim : int
        Tiles along it stay on one CPU.
    """

    tiles: Sequence[int]
    nodes: Sequence[int]
    factors: Sequence[int]
    mapping_dim: int

    def __post_init__(self) -> None:
        numbers = (*self.tiles, *self.nodes, *self.factors)
        equal = len(self.tiles) == len(self.nodes) == len(self.factors) > self.mapping_dim >= 0
        if not equal or min(numbers) < 1 or self.factors[self.mapping_dim] != 1:
            raise ConfigError(
                f"{self} was given; as many tiles, nodes and factors are allowed, each 1 or more, and a factor of 1 at "
                "the mapping dimension"
            )

    @property
    def columns(self) -> int:
        """Tiles that a CPU has in one step: 1 in the paper, the product of ceil(tiles_x / m_x) (derived)."""
        pairs = zip(self.tiles, self.factors, strict=True)
        return math.prod(-(-t // m) for k, (t, m) in enumerate(pairs) if k != self.mapping_dim)

    @property
    def depth(self) -> int:
        """Hand-overs from the first CPU of a vertical group to its last: 1 for two CPUs, sum of m_x - 1 (derived)."""
        return sum(m - 1 for m in self.factors)


@dataclass(kw_only=True)
class StepCosts:
    """The costs of one step on one node, in seconds.

    Parameters
    ----------
    alpha_s : float
        One tile on one CPU.
    t_sync_in_s : float
        One hand-over between the CPUs of a node.
    t_comm_s : float
        Blocking: all communication of a step.
    t_comm_dma_s : float
        Overlapping: the transfers, overlapped with the computation.
    t_start_dma_s : float
        Overlapping: starting them, not hidden.
    t_synchro_s : float
        Overlapping: synchronisation with the neighbours, not hidden.
    """

    alpha_s: float = 0.0
    t_sync_in_s: float = 0.0
    t_comm_s: float = 0.0
    t_comm_dma_s: float = 0.0
    t_start_dma_s: float = 0.0
    t_synchro_s: float = 0.0


def vertical_group_s(alpha_s: float, t_sync_in_s: float, slices: float, depth: int = 1) -> float:
    """beta(N) = alpha (N + d)/N + (N + d - 1) t_sync_in: a vertical group of tiles in N slices, pipelined over CPUs of
    which the last is d hand-overs behind the first; d = 1 in the paper, the rest derived.
    """
    if depth == 0:
        return alpha_s
    return alpha_s * (slices + depth) / slices + (slices + depth - 1) * t_sync_in_s


def best_slices(alpha_s: float, t_sync_in_s: float, depth: int = 1) -> float:
    """The N of the least beta(N), sqrt(d alpha / t_sync_in): not rounded, and below 1 where slicing does not pay."""
    return math.sqrt(depth * alpha_s / t_sync_in_s)


def least_vertical_group_s(alpha_s: float, t_sync_in_s: float, depth: int = 1) -> float:
    """beta_min = alpha + 2 sqrt(d alpha t_sync_in) + (d - 1) t_sync_in; alpha for d = 0."""
    if depth == 0:
        return alpha_s
    return alpha_s + 2 * math.sqrt(depth * alpha_s * t_sync_in_s) + (depth - 1) * t_sync_in_s


def pipeline_steps(schedule: str, grouping: str, grid: TileGrid) -> int:
    """P, the time steps from the first tile to the last.

    With t_k tiles along k over all nodes, g_k = ceil(t_k / m_k) groups, i the mapping dimension and sums over the other
    dimensions x, P is t_i + sum(g_x - 1) for blocking and t_i + 2 sum(g_x - 1) for overlapping vertical groups,
    t_i + sum(t_x - 1) and t_i + sum(t_x - 1 + g_x - 1) for hyperplane groups. The paper has 2-D with m = 2, and
    3X/(2x) + 2Y/y + Z/z - 4 in 3-D; the rest is derived: each Pi is a sum over dimensions, greatest at the last tile.
    """
    steps = 1
    for k, (tiles, nodes, m) in enumerate(zip(grid.tiles, grid.nodes, grid.factors, strict=True)):
        last = (nodes - 1) * -(-tiles // m) * m + tiles - 1  # nodes begin at whole groups
        if k == grid.mapping_dim:
            steps += last
        elif grouping == "vertical":
            steps += (2 if schedule == "overlapping" else 1) * (last // m)
        else:
            steps += last + (last // m if schedule == "overlapping" else 0)
    return steps


def step_s(schedule: str, grouping: str, grid: TileGrid, costs: StepCosts) -> float:
    """One step: blocking c + t_comm, overlapping t_start_dma + max(c, t_comm_dma) + t_synchro.

    c is beta_min for vertical groups and alpha for hyperplane groups, for each of `grid.columns` (derived).
    """
    vertical = least_vertical_group_s(costs.alpha_s, costs.t_sync_in_s, grid.depth)
    compute_s = grid.columns * (vertical if grouping == "vertical" else costs.alpha_s)
    if schedule == "blocking":
        return compute_s + costs.t_comm_s
    return costs.t_start_dma_s + max(compute_s, costs.t_comm_dma_s) + costs.t_synchro_s


def run_s(schedule: str, grouping: str, grid: TileGrid, costs: StepCosts) -> float:
    """T, the steps times the time of one; an upper bound for several columns, as the first and last are not full."""
    return pipeline_steps(schedule, grouping, grid) * step_s(schedule, grouping, grid, costs)


def overlapping_beats_blocking(lam: float, costs: StepCosts) -> bool:
    """Both vertical, two CPUs a node, lam = (Y/y)/(X/x) << 1: t_comm > lam/2 (t_start_dma + beta_min + t_synchro)."""
    beta_min_s = least_vertical_group_s(costs.alpha_s, costs.t_sync_in_s)
    return costs.t_comm_s > lam / 2 * (costs.t_start_dma_s + beta_min_s + costs.t_synchro_s)


def hyperplane_beats_vertical(lam: float, costs: StepCosts) -> bool:
    """Both overlapping, two CPUs a node, lam = (Y/y)/(X/x) << 1: t_sync_in > alpha (lam/4)^2."""
    return costs.t_sync_in_s > costs.alpha_s * (lam / 4) ** 2
