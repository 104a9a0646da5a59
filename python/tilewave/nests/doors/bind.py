"""Nests that are agreed on, planned and compiled once, and run many times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tilewave.context.collective import collective
from tilewave.errors import ConfigError
from tilewave.nest.bounds import Loops
from tilewave.nest.nest import Nest
from tilewave.nest.reserved import takes_nests
from tilewave.nests.call.run_call import RunCall
from tilewave.nests.doors.bound_steps import BoundSteps
from tilewave.nests.points.points import in_time_steps
from tilewave.nests.run.bound import Bound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from tilewave.annotations import Choices, Collective, Over
    from tilewave.context.context import Context
    from tilewave.nests.call.reduce_functions import Reduction
    from tilewave.nests.points.off_grid import OffGrid
    from tilewave.plan.plan import Plan


@overload
def bind(
    nest: Nest,
    *,
    context: Context | None = None,
    over: Over | None = None,
    reverse: Sequence[str] = (),
    steps: int | None = None,
    periodic: Sequence[str] = (),
    plan: Plan | Choices | None = None,
    planning: str = "auto",
    fastmath: bool = False,
    reduce: Mapping[str, Reduction] | None = None,
    inject: Mapping[str, tuple[npt.ArrayLike | OffGrid, npt.ArrayLike]] | None = None,
    record: Mapping[str, npt.ArrayLike | OffGrid] | None = None,
    **arguments: Any,
) -> Bound: ...


@overload
def bind(nest: Sequence[Nest], **given: Any) -> BoundSteps: ...


@takes_nests
@collective("tw.bind")
def bind(
    nest: Nest | Sequence[Nest],
    *,
    context: Context | None = None,
    over: Over | Sequence[Over | None] | None = None,
    reverse: Sequence[Any] = (),
    steps: int | None = None,
    periodic: Sequence[Any] = (),
    plan: Plan | Choices | Sequence[Plan | Choices | None] | None = None,
    planning: str = "auto",
    fastmath: bool = False,
    reduce: Mapping[str, Reduction] | Sequence[Mapping[str, Reduction] | None] | None = None,
    inject: Mapping[str, tuple[npt.ArrayLike | OffGrid, npt.ArrayLike]] | None = None,
    record: Mapping[str, npt.ArrayLike | OffGrid] | None = None,
    **arguments: Any,
) -> Collective[Bound | BoundSteps]:
    """Agree on a nest's arguments, plan and compile once, to run it many times; collective.

    Parameters
    ----------
    nest : Nest, or tuple of Nest
        Made with ``@tilewave.nest``.
    context, over, reverse, steps, periodic, plan, planning, fastmath, reduce, inject, record, **arguments
        As `tilewave.run` takes them. Scalars may be others in each run; so may `steps`, but for `inject` and `record`,
        which have values for each of the time steps.

    Returns
    -------
    Bound
        ``bound.run()`` computes what ``tilewave.run`` with the same arguments would, bit for bit. A `BoundSteps` of
        several nests, and where `tilewave.run` with `inject` or `record` gives a `ChainReport`.

    Raises
    ------
    ConfigError
        On every rank: as `tilewave.run`.

    Notes
    -----
    Collective; costs what the first call of `tilewave.run` costs, without the work. The bound nest keeps its arrays
    alive. A NumPy array must stay where it is in memory now.
    """
    nests = tuple(nest) if isinstance(nest, tuple | list) else (nest,)
    if not nests or not all(isinstance(each, Nest) for each in nests):
        raise ConfigError(
            f"bind: given {type(nest).__name__}; allowed: a function under @tilewave.nest, or a tuple of them"
        )
    arrays = {name for each in nests for name in each.arrays}
    arguments = {
        name: value.view() if name in arrays and type(value) is np.ndarray else value
        for name, value in arguments.items()
    }
    loops = Loops(over, reverse, steps, periodic=periodic)
    call = RunCall(nest, context, loops, arguments, plan, planning, fastmath, reduce, inject, record)
    call = in_time_steps(call)
    bound = Bound(call) if isinstance(call.nests, Nest) else BoundSteps(call)
    yield from bound._prepare_first()
    return bound
