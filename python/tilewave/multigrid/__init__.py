"""Multigrid solvers of elliptic problems on boxes."""

from tilewave.multigrid.poisson import History, Poisson

__all__ = ["History", "Poisson"]
