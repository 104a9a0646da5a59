"""Multigrid solvers of elliptic problems on boxes."""

import sys

from tilewave.multigrid.history import History
from tilewave.multigrid.poisson import Poisson
from tilewave.tracebacks import doors

__all__ = ["History", "Poisson"]

doors([sys.modules[__name__]])
