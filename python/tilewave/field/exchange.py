"""Halos of fields for user-written kernels: their widths, and bringing the neighbours' values there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewave import _core, units
from tilewave.context import collective, interrupts
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.field.boundary import checked, fill_ends
from tilewave.field.field import Field
from tilewave.field.values import problem_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewave.context.context import Context

NAMES = "ijkl"  # of axes, as loop indices are called
MOST_AXES = _core.limits["dims"]


def halo_of(halo, periodic, grid, shape):
    """Return what `field` was given, as the core takes it: widths before and after blocks, 1 for axes that wrap,
    process grid.

    None where nothing was given."""
    if halo is None and periodic is None and grid is None:
        return None
    if halo is None and periodic is not None:
        raise ConfigError(f"field: periodic={periodic!r} was given without halo=; allowed: with it")
    widths = _widths(0 if halo is None else halo, len(shape))
    below, above = (tuple(side) for side in zip(*widths, strict=True))
    wraps = _wraps(periodic, len(shape))
    return below, above, wraps, _grid(grid, shape)


def _widths(halo, ndim):
    def pair(width):
        if is_integer(width):
            return int(width), int(width)
        if isinstance(width, tuple | list) and len(width) == 2 and all(map(is_integer, width)):
            return tuple(map(int, width))
        raise ValueError

    try:
        by_axis = (halo,) * ndim if is_integer(halo) else halo
        if not isinstance(by_axis, tuple | list) or len(by_axis) != ndim:
            raise ValueError
        widths = [pair(width) for width in by_axis]
        if any(not 0 <= width < 2**31 for width in sum(widths, ())):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"field: halo={halo!r} was given for {units.count(ndim, 'dimension')}; allowed: one width, or "
            "for each axis a width or a pair of widths before and after the block; all >= 0"
        ) from None
    return widths


def _wraps(periodic, ndim):
    axes = () if periodic is None else (periodic,) if isinstance(periodic, str) or is_integer(periodic) else periodic
    names = NAMES[:ndim]
    try:
        numbers = [names.index(axis) if isinstance(axis, str) and len(axis) == 1 else axis for axis in axes]
        if not all(is_integer(axis, 0, ndim - 1) for axis in numbers):
            raise ValueError
    except (TypeError, ValueError):
        allowed = ", ".join(f"{k} or {name!r}" for k, name in enumerate(names))
        raise ConfigError(f"field: periodic={periodic!r} was given; allowed: a tuple of axes, {allowed}") from None
    return tuple(int(k in numbers) for k in range(ndim))


def _grid(grid, shape):
    if grid is None:
        return ()
    if not isinstance(grid, tuple | list) or len(grid) != len(shape) or not all(is_integer(n, 1) for n in grid):
        raise ConfigError(
            f"field: grid={grid!r} was given for {units.count(len(shape), 'dimension')}; allowed: ranks along "
            "each axis, >= 1"
        )
    return tuple(min(int(n), 2**31) for n in grid)


class Exchange:
    """An update of halos in flight, or made with ``start=False`` and ready to go; made by `exchange`.

    It moves on in every call on its context, and in `test` and `wait`; in between only the message library moves. Until
    it is over the halos belong to it, and the points near them must not change.

    Attributes
    ----------
    buffer_bytes : int
        Staging memory on this rank.
    """

    def __init__(
        self, fields: Sequence[Field], context: Context, core: Any, boundary: str | complex | None, axes: int
    ) -> None:
        self._fields, self._context, self._core, self._axes = fields, context, core, axes
        self._ends = [(each, each._boundary if boundary is None else boundary) for each in fields if each._ends]
        self._run = core.run  # looked up once: of small halos that is much of the time

    @property
    def buffer_bytes(self) -> int:
        return self._core.buffer_bytes

    @interrupts.keeps
    def test(self) -> bool:
        """Move things on; True when it is over.

        Raises
        ------
        ConfigError, MpiError
            As `wait`.
        """
        over = self._context._together(self._core.test)
        if over:
            self._fill()
        return over

    @interrupts.keeps
    def wait(self) -> None:
        """Wait until it is over.

        Raises
        ------
        ConfigError, MpiError
            The same on every rank.
        """
        self._context._together(self._core.wait)
        self._fill()

    def _fill(self):
        for field, boundary in self._ends:
            fill_ends(field, boundary)

    @interrupts.keeps
    def start(self) -> None:
        """Go once more; made with ``start=False``.

        Notes
        -----
        Collective. The arguments are not compared again: it costs only the messages. A field that a run has moved is
        brought back first.
        """
        self._context._together(self._core.start)
        self._context._ranks.exchanges(self._fields, self._axes)
        return self

    @interrupts.keeps
    def run(self) -> None:
        """`start` and `wait` in one."""
        self._context._together(self._run)
        self._context._ranks.exchanges(self._fields, self._axes)
        if self._ends:
            self._fill()


@interrupts.keeps
def exchange(
    *fields: Field,
    corners: bool = True,
    wait: bool = True,
    start: bool = True,
    boundary: str | complex | None = None,
    context: Context | None = None,
) -> Exchange | None:
    """Give the halos of fields the values of the points' owners; collective.

    Parameters
    ----------
    *fields : Field
        Made with ``halo=``, on one context and one process grid. What goes to one rank goes in one message.
    corners : bool
        False: only the faces, halo points next to the block along one axis, as a star needs them. Edges and
        corners stay as they are.
    wait : bool
        False: return at once, for computing while messages travel.
    start : bool
        False: only prepare; `Exchange.run` and `Exchange.start` then cost no comparison of arguments.
    boundary : "reflect", "edge" or number, optional
        What the halo beyond the ends of the array gets, in place of what the fields were made with; of fields made with
        ``boundary=``.
    context : Context, optional
        Only that of the fields is allowed.

    Returns
    -------
    Exchange or None
        With ``wait=False`` or ``start=False``.

    Raises
    ------
    ConfigError
        On every rank: for no field, one without a halo, one that was closed or is given twice; for fields of several
        contexts or process grids; when the ranks give different fields. With ``wait=False`` from `Exchange.wait`.
    MemoryError
        On every rank, where one has not the memory for staging.

    Notes
    -----
    Collective: one round of small messages and the halos. What it needs is made once for fields that are given
    together, and used again. A field that a run has moved is brought back first. Fields in flight are waited for.
    """
    storages = [field._storage for field in fields if field.__class__ is Field]
    error = ""
    if (
        context is not None
        or not storages
        or len(storages) != len(fields)
        or None in storages
        or corners.__class__ is not bool
        or wait.__class__ is not bool
        or start.__class__ is not bool
        or boundary is not None
    ):
        context, error = _looked_at(fields, corners, wait, start, boundary, context)
        storages = [storage for storage in storages if storage is not None]
    else:
        context = fields[0].context
    lock = context._lock
    if not lock.acquire(False):
        error = str(collective.wait_for_turn(context, "tw.exchange") or "") or error
    axes = 1 if corners is False else MOST_AXES
    name = "tw.exchange" if boundary is None else f"tw.exchange, boundary={shown(boundary)}"  # ranks compare it
    try:
        if wait is not False and start is not False:  # whatever they are: all ranks get the error
            context._together(_core.run_exchange, context._core, storages, axes, error, name)
            context._ranks.exchanges(fields, axes)
            for field in fields:
                if field._ends:
                    fill_ends(field, field._boundary if boundary is None else boundary)
            return None
        given = context._core, storages, axes, error, name, start is False
        core = context._together(_core.start_exchange, *given)
    finally:
        lock.release()
    made = Exchange(fields, context, core, boundary, axes)
    if start is not False and not error:
        context._ranks.exchanges(fields, axes)
    return made


def _looked_at(fields, corners, wait, start, boundary, context):
    """The context of a call that is not as most are, and what is wrong with it as text, empty for nothing."""
    context, problem = collective.find(context, fields, {})
    text = str(problem) if problem else ""
    for name, value in (("corners", corners), ("wait", wait), ("start", start)):
        if value.__class__ is not bool:
            text = text or f"exchange: {name} was given {type(value).__name__}; allowed: True, False"
    for position, field in enumerate(fields):
        if field.__class__ is not Field:
            text = text or f"exchange: argument {position} is {type(field).__name__}; allowed: fields made with halo="
        elif field._storage is None:
            what = "was closed" if field.closed else "keeps a rolling window only"
            text = text or f"exchange: field {position} of shape {field.shape} {what}; allowed: fields with halos, open"
        elif boundary is not None and field._boundary is None:
            text = text or (
                f"exchange: field {position} of shape {field.shape} has no halo beyond its ends; allowed: fields "
                "made with halo= and boundary="
            )
        elif boundary is not None:
            problem = problem_of(lambda given=field: checked("exchange", boundary, given))
            text = text or str(problem or "")
    return context, collective.plain(text)
