"""Tilewave: loop nests with dependences on clusters, the communication hidden."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tilewave import patterns
from tilewave.context.context import Context, context, set_default
from tilewave.context.together import barrier
from tilewave.context.together import print as print
from tilewave.errors import ConfigError, InternalError, KernelError, MpiError, RankError
from tilewave.field.blocks import Blocks
from tilewave.field.create import field, load, scratch
from tilewave.field.exchange import Exchange, exchange
from tilewave.field.expression import where
from tilewave.field.field import Field
from tilewave.launch.function import launch
from tilewave.machine.machine import Machine
from tilewave.machine.network import Network
from tilewave.nest.helpers import inline
from tilewave.nest.nest import Nest, nest, nest_from
from tilewave.nests.call.reduce_functions import argmax, argmin, dot, norm
from tilewave.nests.call.reduce_functions import max as max
from tilewave.nests.call.reduce_functions import min as min
from tilewave.nests.call.reduce_functions import sum as sum
from tilewave.nests.chain.report import ChainReport
from tilewave.nests.doors.bind import bind
from tilewave.nests.doors.bound_steps import BoundSteps
from tilewave.nests.doors.chain import Chain, chain
from tilewave.nests.doors.expressions import set_operators
from tilewave.nests.doors.measuring import measure
from tilewave.nests.doors.run import plan, run
from tilewave.nests.points.off_grid import OffGrid
from tilewave.nests.run.bound import Bound
from tilewave.nests.run.report import Report
from tilewave.plan.plan import Plan
from tilewave.timeline.timeline import Timeline
from tilewave.tracebacks import doors

if TYPE_CHECKING:
    from tilewave import linalg, multigrid, recipes
    from tilewave.checkpoints.checkpoint import checkpoint
    from tilewave.checkpoints.report import CheckpointReport
    from tilewave.checkpoints.resume import resume
    from tilewave.loops.function import Loops, loops
    from tilewave.schedule.builder import ScheduleBuilder
    from tilewave.schedule.calls import check, predict, schedule
    from tilewave.schedule.running import ScheduleRun
    from tilewave.schedule.schedule import Schedule
    from tilewave.timeline.pictures import save_timelines

__all__ = [
    "Blocks",
    "Bound",
    "BoundSteps",
    "Chain",
    "ChainReport",
    "CheckpointReport",
    "ConfigError",
    "Context",
    "Exchange",
    "Field",
    "InternalError",
    "KernelError",
    "Loops",
    "Machine",
    "MpiError",
    "Nest",
    "Network",
    "OffGrid",
    "Plan",
    "RankError",
    "Report",
    "Schedule",
    "ScheduleBuilder",
    "ScheduleRun",
    "Timeline",
    "argmax",
    "argmin",
    "barrier",
    "bind",
    "chain",
    "check",
    "checkpoint",
    "context",
    "dot",
    "exchange",
    "field",
    "inline",
    "launch",
    "linalg",
    "load",
    "loops",
    "measure",
    "multigrid",
    "nest",
    "nest_from",
    "norm",
    "patterns",
    "plan",
    "predict",
    "rank",
    "recipes",
    "resume",
    "run",
    "save_timelines",
    "schedule",
    "scratch",
    "set_default",
    "size",
    "where",
]  # max, min, print and sum would hide Python's

set_operators()
doors([sys.modules[__name__], patterns], more=["max", "min", "print", "sum"])

#: Loaded when they are first asked for: packages, whole functions, checkpoints, what builds and shows schedules.
_PACKAGES = ("linalg", "multigrid", "recipes")
_LOOPS = dict.fromkeys(("Loops", "loops"), "tilewave.loops.function")
_LATER = {
    "CheckpointReport": "tilewave.checkpoints.report",
    "ScheduleBuilder": "tilewave.schedule.builder",
    "check": "tilewave.schedule.calls",
    "checkpoint": "tilewave.checkpoints.checkpoint",
    "predict": "tilewave.schedule.calls",
    "resume": "tilewave.checkpoints.resume",
    "schedule": "tilewave.schedule.calls",
    "ScheduleRun": "tilewave.schedule.running",
    "Schedule": "tilewave.schedule.schedule",
    "save_timelines": "tilewave.timeline.pictures",
}
# A package and a function have these names. A package is bound when it is first imported: from now on they are free.
for _package in ("loops", "schedule"):
    importlib.import_module(f"{__name__}.{_package}")
    del globals()[_package]

__version__: str
rank: int
size: int


def __getattr__(name: str) -> Any:
    """Return what is not loaded yet; the version; `rank` and `size`: this rank's number and the number of ranks of the
    launch, from the default context, which the first look makes.
    """
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    for later in (_LOOPS, _LATER):
        if name in later:
            # All at once, as a schedule that `predict` is given or `schedule` returns has methods that are doors, too.
            globals().update({each: getattr(importlib.import_module(home), each) for each, home in later.items()})
            doors([sys.modules[__name__]])
            return globals()[name]
    if name == "__version__":
        from tilewave.version import version

        return version()
    if name in ("rank", "size"):
        return getattr(context(), name)
    raise AttributeError(f"module 'tilewave' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "max", "min", "print", "sum", "__doc__", "__version__"])
