"""Tilewave: loop nests with dependences on clusters, the communication hidden."""
from importlib.metadata import PackageNotFoundError, version

from tilewave.errors import ConfigError, InternalError, KernelError, MpiError
from tilewave import patterns
from tilewave._core import Grouping, LinearSchedule, Space, Tiling
from tilewave.context import Context
from tilewave.field import Field, field, scratch
from tilewave.machine import Machine
from tilewave.measure import measure
from tilewave.nest import Nest, nest
from tilewave.plan import Plan
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
    "argmax", "argmin", "field", "measure", "nest", "patterns", "plan", "run", "scratch",
]  # max, min and sum would hide Python's own
