"""How a solution came about: the norms of its residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewave import files, units

if TYPE_CHECKING:
    from tilewave.annotations import FilePath


@dataclass
class History:
    """How a solution came about.

    Attributes
    ----------
    norms : list of float
        Of the residual (2-norm over all cells): before the first cycle, then after each.
    converged : bool
    time_s : float
        Of the cycles.
    cells : int
        Of the finest grid, one unknown each.
    coarse : str
        What the coarse grids were, ``"average"`` or ``"galerkin"``.
    """

    norms: list[float]
    converged: bool
    time_s: float
    cells: int
    coarse: str = "average"

    @property
    def cycles(self) -> int:
        """How many ran: of conjugate gradients, iterations."""
        return len(self.norms) - 1

    @property
    def factor(self) -> float:
        """Return by what a cycle reduced the residual, on average; NaN without cycles."""
        if self.cycles < 1 or not self.norms[0]:
            return math.nan
        return (self.norms[-1] / self.norms[0]) ** (1 / self.cycles)

    @property
    def dof_per_s(self) -> float:
        """Unknowns solved for in a second; NaN without cycles."""
        return self.cells / self.time_s if self.time_s else math.nan

    def save(self, path: FilePath) -> None:
        """Write a picture of the norms, by the ending of `path` (.png, .svg, .pdf).

        Raises
        ------
        ConfigError
            Where that fails; an old file is then as it was.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        axes.semilogy(range(len(self.norms)), self.norms, "o-")
        axes.set(
            xlabel="cycles",
            ylabel="norm of the residual",
            title=f"Residuals of {self.cycles} cycles: {self.factor:.3f} a cycle",
        )
        axes.grid(True, which="both", alpha=0.3)
        files.save("save", path, files.drawn(figure, path))

    def __str__(self) -> str:
        end = "converged" if self.converged else "not converged"
        took = units.seconds(self.time_s)
        speed = f"{self.dof_per_s / 1e6:.3g} M unknowns/s" if self.time_s else "no cycle timed"
        found = f"{self.cycles} cycles, {end}, norm {self.norms[-1]:.3g}, {self.factor:.3f} a cycle, {took}, {speed}"
        return found + (", coarse grids follow k" if self.coarse == "galerkin" else "")
