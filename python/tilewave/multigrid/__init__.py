"""Multigrid solvers of elliptic problems on boxes."""

from tilewave.multigrid.history import History
from tilewave.multigrid.poisson import Poisson

__all__ = ["History", "Poisson"]
