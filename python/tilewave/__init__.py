"""Tilewave: loop nests with dependences on clusters, the communication hidden."""
from importlib.metadata import PackageNotFoundError, version

from tilewave.errors import ConfigError, InternalError, KernelError, MpiError
from tilewave import patterns
from tilewave._core import Grouping, LinearSchedule, Space, Tiling
from tilewave.context import Context, set_default
from tilewave.field import Field, field, load, scratch
from tilewave.machine import Machine
from tilewave.measure import measure
from tilewave.body.helpers import inline
from tilewave.nest import Nest, nest, nest_from
from tilewave.plan import Plan
from tilewave.ranks import barrier, print  # noqa: A004
from tilewave.reduction import argmax, argmin, max, min, sum  # noqa: A004
from tilewave.report import Report
from tilewave.run import plan, run
from tilewave.timeline import Timeline

try:
    __version__ = version("tilewave")
except PackageNotFoundError:  # run from a source tree
    __version__ = "0+unknown"

__all__ = [
    "ConfigError", "Context", "Field", "Grouping", "InternalError", "KernelError",
    "LinearSchedule", "Machine", "MpiError", "Nest", "Plan", "Report", "Space", "Tiling", "Timeline",
    "argmax", "argmin", "barrier", "field", "inline", "load", "measure", "nest", "nest_from", "patterns", "plan", "rank", "run", "scratch", "set_default",
    "size",
]  # max, min, print and sum would hide Python's own


def __getattr__(name):
    """`rank` and `size`: this rank's number and the number of ranks of the launch, from the default context, which the first look makes."""
    if name in ("rank", "size"):
        from tilewave.context import default_context

        return getattr(default_context(), name)
    raise AttributeError(f"module 'tilewave' has no attribute {name!r}")
