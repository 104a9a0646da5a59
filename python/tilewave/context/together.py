"""This file has what programs ask of the ranks themselves: to meet, and one of them to print."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from tilewave.context.collective import collective
from tilewave.context.context import context as default_context

if TYPE_CHECKING:
    from tilewave.annotations import Collective
    from tilewave.context.context import Context


@collective("tw.barrier")
def barrier(*, context: Context | None = None) -> Collective[None]:
    """Wait until every rank is here.

    Parameters
    ----------
    context : Context, optional
        Default: all ranks of the launch.

    Raises
    ------
    ConfigError
        On every rank: when some rank calls another function.

    Notes
    -----
    Collective; ceil(log2 ranks) small messages a rank. No other function needs it: it is for what programs time or do
    to files.
    """
    yield ""


def print(*values: object, **keywords: Any) -> None:
    """Python's `print`, on rank 0 of the launch only.

    Parameters
    ----------
    *values, **keywords
        As of Python's `print`; every rank evaluates them.

    Notes
    -----
    Not collective, once the default context has been made; the first call makes it.
    """
    if default_context().rank == 0:
        builtins.print(*values, **keywords)
