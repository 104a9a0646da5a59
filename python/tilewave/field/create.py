"""Making fields: from shapes, values, functions and files."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave import _core, units
from tilewave.context.checksum import checksum
from tilewave.context.collective import collective
from tilewave.dtypes import ALL
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.field import npy, zarr3
from tilewave.field.blocks import cuts_of
from tilewave.field.boundary import checked
from tilewave.field.exchange import halo_of
from tilewave.field.field import Field
from tilewave.field.part import Part
from tilewave.field.time_buffer import TimeBuffer
from tilewave.field.values import array_for_shape, dtype_of, fill, named, problem_of, require_no_mask, shape_of
from tilewave.nest.dependences import MOST_HISTORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tilewave.annotations import Collective, FilePath, Init, Shape
    from tilewave.context.context import Context
    from tilewave.field.blocks import Blocks


#: Kinds of initial values.
NOTHING, FUNCTION, ARRAY, FIELD = range(4)
SAME = object()  # as the current time step


@collective("tw.field")
def field(
    shape: Shape | np.ndarray,
    dtype: npt.DTypeLike = None,
    init: Init = None,
    *,
    keep: str = "all",
    history: int | Sequence[Init] = 0,
    halo: int | Sequence[int | tuple[int, int]] | None = None,
    periodic: Sequence[int | str] | None = None,
    boundary: str | complex | None = None,
    grid: Sequence[int] | None = None,
    blocks: Blocks | None = None,
    context: Context | None = None,
) -> Collective[Field]:
    """Make a distributed array; collective.

    Parameters
    ----------
    shape : sequence of int, or array
        One to six integers. An array without `init`, on every rank, or on rank 0 with None on the others, or a field:
        the new field gets its shape, dtype and values. So it does of what NumPy takes for an array, but for lists.
    dtype : dtype, optional
        Default: float64, or the array's. Allowed: bool, float32/64, complex64/128, (u)int8/16/32/64.
    init : function, array, field, number or None
        A function of the global indices, called with index arrays where it takes them, else point
        by point; or the whole array, on every rank, or on rank 0 with None on the others; or a field of this shape, or
        what `Field.buffer` gives of one; or one number for all. None everywhere: zeros.
    keep : str
        "all", or "window": a run that writes the field keeps no more of it than later points read, so a table
        of a dynamic programme takes the memory of its border. Before each run its elements are `init`
        (not an array on rank 0 only); after it they are gone: ask for what is wanted of them by `run`'s
        ``reduce=``, or write it to another array. Where a body reads values ahead of the loops, or
        keeps elements on some path, the run has to store the field whole, and its report names it.
    history : int or list
        How many time steps before the current one the field keeps, which nests read at ``u[t-1]``, ``u[t-2]``, ...: a
        number, at most 6, and all are what `init` says; or a list of what they are, the latest first, each as `init`.
        Every run with ``steps=`` leaves them to the next. A run of a nest that reads more of them than the field has so
        far takes copies of the current time step, and the field keeps as many from then on.
    halo : int or tuple
        For user-written kernels: how many points of the neighbours `Field.local` holds around this rank's. One width,
        or for each axis a width or a pair of them, before and after the block. They are zero until `exchange` brings
        their values. At the ends of an axis that is not periodic there is no halo.
    periodic : tuple of int or str
        The axes along which the halo wraps around: their numbers, or "i", "j", "k", "l". No width is larger than the
        axis.
    boundary : "reflect", "edge" or number
        The halo reaches beyond the ends of the other axes, too: `exchange` fills it as `numpy.pad` does, reflected,
        with the outermost element, or with the number.
    grid : tuple of int
        Ranks along each axis of a field with a halo. Default: the blocks with the least surface.
    blocks : Blocks, optional
        Which points of the process grid's blocks nests give a rank, so that blocks of a coarse and a fine grid end
        at the same cells. Nests without time steps or periodic loops compute the points of such blocks. Default: even
        blocks.
    context : Context, optional

    Returns
    -------
    Field

    Raises
    ------
    ConfigError
        On every rank: for a wrong shape, dtype or init on any, or when ranks differ.

    Notes
    -----
    Collective: one allreduce, and moving the array where only rank 0 gives it. Arrays that every rank gives are
    compared by a checksum, which reads the whole array (0.1 s a GB).
    """
    made, kind, before, starts, cuts, error = None, NOTHING, [], [], None, None
    require_no_mask("field", shape)
    shape = array_for_shape(shape) if init is None else shape
    if init is None and (shape is None or isinstance(shape, np.ndarray)) and context.size > 1:
        yield "a whole array for a shape"
        shape, dtype, init = _as_on_rank_0(shape, dtype, context)
    try:
        if init is None and isinstance(shape, np.ndarray | Field | TimeBuffer):
            shape, dtype, init = shape.shape, shape.dtype.newbyteorder("=") if dtype is None else dtype, shape
        shape, dtype = shape_of(shape), dtype_of("f8" if dtype is None else dtype)
        if not isinstance(keep, str) or keep not in ("all", "window"):
            raise ConfigError(f"field: keep={shown(keep)} was given; allowed: 'all', 'window'")
        before = _history(history, keep)
        cuts = cuts_of(blocks, shape)
        if cuts and (keep == "window" or before or halo is not None):
            raise ConfigError(
                "field: blocks= was given together with keep='window', history= or halo=; allowed: a field without"
            )
        around = halo_of(halo, periodic, grid, shape)
        if boundary is not None:
            if halo is None:
                raise ConfigError(f"field: boundary={shown(boundary)} was given without halo=; allowed: with it")
            ends = tuple(axis for axis, wraps in enumerate(around[2]) if not wraps)
            around = (*around[:2], (1,) * len(shape), around[3])
        if around and (keep == "window" or before):
            raise ConfigError(
                "field: halo= or grid= was given together with keep='window' or history=; allowed: another field "
                "for user-written kernels"
            )
        init, kind = _init(init, shape, dtype, context)
        starts = [_init(start, shape, dtype, context) for start in before if start is not SAME]
        if kind == FIELD and keep == "window":
            raise ConfigError(
                "field: a field was given as init with keep='window'; allowed: a number, a function, an array"
            )
        if kind == ARRAY and keep == "window" and any(init.strides):
            init = init.copy()  # for runs to come
        made = Field(context, shape, dtype, keep, init) if keep == "window" else make(context, shape, dtype, around)
        made._cuts = cuts
        if boundary is not None:
            made._ends = ends
            made._boundary = checked("field", boundary, made)
        if kind == FUNCTION and keep == "all" and context._ranks.fills(made):
            fill(made._view(0), made.owned, init)
        copies = [one.prepare(made) for one, what in [(init, kind), *starts] if what == FIELD]
    except Exception as problem:
        error = problem
        if not isinstance(problem, ConfigError | MemoryError):
            error = named("field: init raised", problem)
            error.__cause__ = problem
    if error is not None:
        yield error
    of_window = f", init {kind} {_number_of(init) if kind == ARRAY and context.size > 1 else ''}"
    yield (
        f"shape {shape}, dtype {dtype}, keep {keep}, history {len(before)} {len(starts)}"
        + (of_window if keep == "window" else "")
        + (", halo {} {}, periodic {}, grid {}".format(*around) if around else "")
        + ("" if boundary is None else f", boundary {made._boundary!r} {made._ends}")
        + (f", blocks {cuts}" if cuts else "")
        + (f", of fields {copies}" if copies else "")
    )
    made._count()
    if keep == "all":
        _spread(made, init, kind)
    if before:
        _give_history(made, len(before), starts)
    return made


Part._field = staticmethod(field)


def _give_history(made, count, starts):
    """Give a field so many earlier time steps: copies of it, or what each of `starts` says; collective."""
    error = None
    made.context._moves(made._storage.keep_history, count)
    buffers = [(made.buffer(-1 - number), init, kind) for number, (init, kind) in enumerate(starts)]
    try:
        for buffer, init, kind in buffers:
            if kind == FUNCTION:
                fill(buffer.local, buffer.owned, init)
    except Exception as problem:
        error = named("field: history raised", problem)
    made.context.agree(error)
    for buffer, init, kind in buffers:
        _spread(buffer, init, kind)


def _history(history, keep):
    """Return what earlier time steps begin as, the latest first."""
    number = is_integer(history)
    count = int(history) if number else len(history) if isinstance(history, list | tuple) else -1
    if not 0 <= count <= MOST_HISTORY:
        raise ConfigError(
            f"field: history={shown(history)} was given; allowed: a number from 0 to {MOST_HISTORY}, or a list of so "
            "many, each as init"
        )
    if count and keep == "window":
        raise ConfigError(
            "field: history= was given for a field with keep='window', which has no values outside a run; allowed: "
            "keep='all'"
        )
    return [SAME] * count if number else list(history)


def _as_on_rank_0(whole, dtype, context):
    """(shape, dtype, init) of a field that is given an array in place of a shape, or None where rank 0 has the array;
    part of a collective call.
    """
    given = None if whole is None else [whole.shape, whole.dtype.str]
    there = json.loads(context._core.broadcast(json.dumps(given).encode()))
    if whole is not None:
        return whole, dtype, None
    if there is None:
        return None, dtype, None
    return tuple(there[0]), np.dtype(there[1]).newbyteorder("=") if dtype is None else dtype, None


def make(context, shape, dtype, halo=None):
    """A field that has no number yet. `halo`: widths before and after the blocks, 1 for each axis that wraps, and the
    process grid.
    """
    size = math.prod(max(n, 1) for n in shape) * dtype.itemsize
    if size > 2**60:
        raise ConfigError(f"field: shape {shape} was given, {size} bytes; allowed: at most 2**60")
    try:
        storage = halo and _core.FieldStorage(context._core, shape, dtype.itemsize, *halo)
        return Field(context, shape, dtype, storage=storage)
    except MemoryError:
        raise MemoryError(
            f"field: no memory for this rank's part of shape {shape}, {size} bytes over "
            f"{units.count(context.size, 'rank')}"
        ) from None


class _Source:
    """A field, or one of its time buffers, whose values another field begins with."""

    def __init__(self, given, shape, context):
        self._field, self._back = (given, 0) if isinstance(given, Field) else (given.field, given.back)
        if self._field.context is not context:
            raise ConfigError("field: a field of another context was given; allowed: of the same")
        if self._field.shape != shape:
            raise ConfigError(
                f"field: a field of shape {self._field.shape} was given for shape {shape}; they must be equal"
            )
        self._layout = self._field._whole("field").layout

    def prepare(self, made):
        """Return what is equal on all ranks; local, with all memory that the copy needs."""
        if not self._layout.same_blocks(made._storage.layout):
            self._moved = Field(made.context, made.shape, self._field.dtype, storage=self._field._storage.copy())
        else:
            self._moved = None
        return f"{self._field._number} {-self._back}"

    def give(self, made, target):
        """Copy the values to this rank's part of `made`; collective."""
        source = self._field if self._moved is None else self._moved
        if self._moved is not None:
            made.context._moves(source._storage.relayout, made._storage.layout)
        target[...] = source._view(self._back)
        self._moved = None


def _init(init, shape, dtype, context):
    """Return what was given as init, an array of the field's shape and dtype where it is none or a number; and its
    kind."""
    if isinstance(init, Field | TimeBuffer):
        return _Source(init, shape, context), FIELD
    kind = NOTHING if init is None else FUNCTION if callable(init) else ARRAY
    if kind == ARRAY:
        require_no_mask("field: init", init)
        init = array_for_shape(init)
        init = np.ascontiguousarray(init, dtype=dtype) if np.ndim(init) else np.asarray(init, dtype=dtype)
        if init.ndim and init.shape != shape:
            raise ConfigError(
                f"field: init has shape {init.shape}, the field {shape}; they must be equal, or init a number"
            )
        init = np.broadcast_to(init, shape)  # a number: strides of 0
    return init, kind


@dataclasses.dataclass(frozen=True)
class Scratch:
    """An array that a nest needs for itself; made by `scratch`."""

    dtype: np.dtype[Any]
    init: Any


def scratch(dtype: npt.DTypeLike = "f8", init: Any = 0) -> Scratch:
    """An array that a nest needs for itself: given to `run`, it keeps a rolling window only, as `field` says.

    Parameters
    ----------
    dtype : dtype
        As in `field`.
    init : number or function of the indices
        What its elements are before the run.

    Returns
    -------
    Scratch
        Each run makes the field: along each loop index as long as the longest other array.

    Raises
    ------
    ConfigError
        For a wrong dtype or init.
    """
    if not callable(init) and (isinstance(init, list | tuple) or np.ndim(init) != 0):
        raise ConfigError(f"scratch: init: given {shown(init)}; allowed: a number, or a function of the indices")
    dtype = dtype_of(dtype)
    if not callable(init):
        try:
            np.asarray(init, dtype)
        except (TypeError, ValueError, OverflowError) as problem:
            raise ConfigError(f"scratch: init {shown(init)} was given for {dtype}: {problem}") from None
    return Scratch(dtype, init)


@collective("tw.load")
def load(path: FilePath, *, context: Context | None = None) -> Collective[Field]:
    """Make a distributed array of a .npy file or a Zarr folder, each rank reading its part; collective.

    Parameters
    ----------
    path : str or path
        On a disk that all ranks share, the same on every rank: written by `Field.save` on any number of ranks, by
        NumPy, or by any program in Zarr format 3. A group of Zarr has to have one array; "run.zarr/u" is one of
        several. Codecs that are known: bytes (of either order), transpose, gzip, crc32c; zstd where Python has it, or
        the package zstandard or numcodecs.
    context : Context, optional

    Returns
    -------
    Field
        Of the file's shape and dtype.

    Raises
    ------
    ConfigError
        On every rank: when any cannot read the file, or it holds no array of one to six dimensions and a field's
        dtype.

    Notes
    -----
    Collective: two rounds of small messages. A chunk that blocks of several ranks share is read by each of them.
    """
    path = npy.path_of("load", path)
    if path.endswith((".pvti", ".vti")):
        raise ConfigError(f"load: {path!r} is for ParaView; allowed: .npy files and Zarr folders")
    whole = zarr3.opened(path, ALL) if os.path.isdir(path) else npy.opened(path, ALL)
    made = make(context, whole.shape, whole.dtype.newbyteorder("="))
    yield f"path {path!r}, shape {whole.shape}, dtype {whole.dtype}"
    yield problem_of(lambda: zarr3.read_into(made._view(0), whole, made.owned, path)) or "read"
    made._count()
    return made


def _number_of(init):
    """Stands for the values of an init array, or of one number for all: positive, below 2**62."""
    values = init if any(init.strides) else init.reshape(-1)[:1]
    return int(checksum(values), 16) >> 2


def _spread(made, init, kind):
    """Give each rank its block of an init array; agree on which ranks gave one."""
    on_zero = kind if made.context.rank == 0 else NOTHING
    others = kind if made.context.rank else NOTHING
    values = _number_of(init) if kind == ARRAY and made.context.size > 1 else 0
    least, most, on_zero, elsewhere, low, high = made.context._core.allreduce_min(
        [kind, -kind, -on_zero, -others, values, -values]
    )
    if not made.context._ranks.fills(made):
        return
    if least == -most:
        if low != -high:
            made.context.agree(
                ConfigError(
                    "field: init has other values on some rank; allowed: the same on every rank, or an array on rank 0 "
                    "and None on the others"
                )
            )
        if kind == NOTHING:
            made._view(0)[...] = 0
        elif kind == ARRAY:
            made._view(0)[...] = init[made.owned]
        elif kind == FIELD:
            init.give(made if made.__class__ is Field else made.field, made._view(0))
    elif -on_zero == ARRAY and elsewhere == 0:
        made._scatter(init.ctypes.data if made.context.rank == 0 else 0)
    else:
        made.context.agree(
            ConfigError(
                "field: init differs between ranks; allowed: the same kind on every rank, or an array "
                "on rank 0 and None on the others"
            )
        )
