"""Distributed arrays."""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave import _core
from tilewave.context import interrupts
from tilewave.context.collective import agreed, collective, holds_context
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.field.expression import Arithmetic
from tilewave.field.index import Selection, pack, require_all, unpack
from tilewave.field.part import Part
from tilewave.field.saving import labels, save
from tilewave.field.time_buffer import TimeBuffer
from tilewave.field.values import as_elements, as_index_error, digest, fill, fits, named
from tilewave.field.views import Memory
from tilewave.patterns.calls import spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tilewave.annotations import Array, Collective, FilePath, Number
    from tilewave.context.context import Context


@holds_context
class Field(Arithmetic):
    """An array spread over the ranks in blocks; make it with `field`.

    Attributes
    ----------
    shape : tuple of int
        Of the whole array.
    dtype : numpy.dtype
    ndim : int
    keep : str
        "all", or "window": it has no values outside a run.
    """

    context: Context
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    ndim: int
    keep: str

    def __init__(
        self,
        context: Context,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        keep: str = "all",
        init: Any = None,
        storage: Any = None,
    ) -> None:
        self.context = context
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.keep = keep
        self._init = init  # of a rolling window: what elements are before each run
        self._cuts = None  # for each axis how it is cut; None: into even blocks
        self._ends, self._boundary = (), None  # axes with a halo beyond the ends of the array, and what is there
        self._changes = 0  # by assignments and operators, for expressions that were written before
        self._number = 0  # of those that a context's ranks made together, from 1; 0: one rank's alone
        self._storage = storage or (_core.FieldStorage(context._core, shape, dtype.itemsize) if keep == "all" else None)
        self._views = weakref.WeakSet()  # the memory that someone sees through `local`, now or as it was before
        context._ranks.holds(self)

    def _count(self):
        """Number it among those that all ranks made together; after they have agreed on it."""
        self.context._fields += 1
        self._number = self.context._fields
        if self._storage is not None:
            self._storage.name = f"field {self._number}"

    def _whole(self, what):
        """The storage, for what asks for all values."""
        if self.closed:
            raise ConfigError(f"{what}: this field of shape {self.shape} was closed; allowed: a field that is not")
        if self._storage is None:
            raise ConfigError(
                f"{what}: this field of shape {self.shape} keeps a rolling window only, so it has no values outside a "
                "run; allowed: reduce= in the run, or a field with keep='all'"
            )
        return self._storage

    @property
    def closed(self) -> bool:
        """Return whether `close` has been called."""
        return self._storage is None and self.keep == "all"

    def close(self) -> None:
        """Give the memory back now, and not when nobody has the field any more: a bound nest has its fields.

        Notes
        -----
        Local; to be called on every rank, since a call that is given a field which any rank has closed raises
        ConfigError on all. Views that were taken of `local` keep their memory. More than once is fine.
        """
        if self._storage is not None:
            self._storage.release()
            self._storage = None

    @property
    def owned(self) -> tuple[slice, ...]:
        """The global index ranges of this rank's points, as a tuple of slices."""
        low, high = self._whole("owned").owned
        return tuple(slice(a, max(a, b)) for a, b in zip(low, high, strict=True))

    @property
    def local(self) -> Array:
        """This rank's points as a NumPy array: a view, with the strides of the storage that the last run wanted.

        The view shows the field's values, also after runs of any number of time steps, until a run moves them: to
        other blocks, into another order of memory, or to where time buffers have room. Then take `local` again. The
        former view keeps the former values; a run that is given it raises ConfigError.

        Of a field made with ``halo=`` the view has the halo, too, row-major; `origin` and `inside` say what of it is
        what. It raises ConfigError after a run has moved the field, until `tilewave.exchange` brings it back."""
        if self._storage is not None and self._storage.has_halo:
            self._must_be_home("local")
            return self._view(0, halo=True)
        return self._view(0)

    @property
    def origin(self) -> tuple[int, ...]:
        """The global index of the first element of `local`; below 0 in a halo before the begin of a periodic axis."""
        storage = self._whole("origin")
        if not storage.has_halo:
            return storage.owned[0]
        self._must_be_home("origin")
        return storage.storage[0]

    @property
    def inside(self) -> tuple[slice, ...]:
        """This rank's points in `local`, as a tuple of slices: ``u.local[u.inside]`` is without the halo."""
        first = self.origin
        return tuple(slice(s.start - at, s.stop - at) for s, at in zip(self.owned, first, strict=True))

    @property
    def halo(self) -> tuple[tuple[int, int], ...] | None:
        """Widths of the halo before and after the block along each axis, as pairs; None without a halo."""
        home = self._whole("halo").home
        return tuple(zip(home.halo_lo, home.halo_hi, strict=True)) if self._storage.has_halo else None

    @property
    def periodic(self) -> tuple[int, ...]:
        """The axes along which the halo wraps around, as numbers."""
        wraps = self._whole("periodic").home.wraps
        return tuple(axis for axis, wrap in enumerate(wraps) if wrap and axis not in self._ends)

    def _must_be_home(self, what):
        if not self._storage.at_home:
            raise ConfigError(
                f"{what}: a run has moved this field of shape {self.shape}, which was made with halo=; allowed: after "
                "tw.exchange of it, which brings it back"
            )

    def _view(self, back, halo=False):
        storage = self._whole("local")
        version = storage.version
        memory = next((m for m in self._views if m.version == version and m.what == (back, halo)), None)
        if memory is None:
            # The bytes belong to the storage; the view keeps them alive after it is gone.
            address, strides, owner = storage.view(back, halo)
            low, high = storage.storage if halo else storage.owned
            shape = tuple(max(b - a, 0) for a, b in zip(low, high, strict=True))
            memory = Memory(self, address, shape, strides, owner, (back, halo))
            self._views.add(memory)
        return np.asarray(memory)

    @property
    def history(self) -> int:
        """How many time steps before the current one the field keeps through runs with ``steps=``."""
        return self._storage.history if self._storage is not None else 0

    def buffer(self, number: int) -> TimeBuffer:
        """The values at a time step before the current one, as long as the field keeps them.

        Parameters
        ----------
        number : int
            0: the current values; -1: those one step before, which a nest reads at ``u[t-1]``; down to ``-history``.

        Returns
        -------
        TimeBuffer
            With ``local`` and ``gather()``, as the field has them: ``u.buffer(-1).local[...] = u.local``.

        Raises
        ------
        ConfigError
            For a time step that the field does not keep.
        """
        self._whole("buffer")
        if not is_integer(number, -self.history, 0):
            raise ConfigError(
                f"buffer: {shown(number)} was given; allowed: {-self.history} to 0, the time steps that this field "
                "keeps; more with field(..., history=), or after a run of a nest that reads them"
            )
        return TimeBuffer(self, -int(number))

    def _holds(self, array):
        """Return whether a NumPy array may lie in memory that is or was this field's, all its time buffers, on this
        rank."""
        if self._storage is None or not array.size:
            return False
        low = high = array.__array_interface__["data"][0]
        for step, extent in zip(array.strides, array.shape, strict=True):
            low, high = low + min(0, step * (extent - 1)), high + max(0, step * (extent - 1))
        now = self._storage.address, self._storage.address + self._storage.bytes
        return any(low < end and first < high + array.itemsize for first, end in (now, *(m.range for m in self._views)))

    @collective("tw.Field.gather")
    def gather(self) -> Collective[Array | None]:
        """The whole array on rank 0, None elsewhere.

        Returns
        -------
        numpy.ndarray or None

        Raises
        ------
        ConfigError
            On every rank: for a field that keeps a rolling window only; when the ranks gather different fields.
        MemoryError
            On every rank: when rank 0 has no memory for the whole array.

        Notes
        -----
        Collective. Rank 0 needs memory for the whole array; staging is a few MB.
        """
        return (yield from self._gathered(0))

    def _gathered(self, back):  # part of a collective call
        self._whole("gather")
        whole = np.empty(self.shape, self.dtype) if self.context.rank == 0 else None
        yield f"field {self._number}" + (f", time buffer {-back}" if back else "")
        self.context._moves(self._storage.gather, 0 if whole is None else whole.ctypes.data, back)
        return whole

    def _scatter(self, whole):
        self.context._moves(self._storage.scatter, whole)

    @property
    def size(self) -> int:
        """Number of elements of the whole array."""
        return math.prod(self.shape)

    @collective("tw.Field.__getitem__")
    def _get(self, given):
        self._whole("field[...]")
        selection = Selection(given, self.shape)
        return (
            yield from self.context._ranks.run(
                lambda: self._part(selection), lambda calls: self._unknown(selection, calls)
            )
        )

    def _unknown(self, selection, calls):
        yield ""
        if selection.scalar:
            return calls.unknown("field[...]")
        return calls.array(selection.shape, self.dtype, "field[...]")

    def _part(self, selection):
        part = pack(selection, self.owned, self._view(0))
        result = np.empty(selection.counts, self.dtype)
        yield f"field {self._number}, {selection.key}"
        found = unpack(selection, result, spread(part, context=self.context))
        if selection.scalar:
            return found[()]
        found = found.view(Part)
        found._context = self.context
        return found

    @collective("tw.Field.__setitem__")
    def _set(self, given, value):
        self._whole("field[...] = ")
        selection = Selection(given, self.shape)
        values = as_elements(value, self.dtype)
        fits(values.shape, selection.shape)
        yield f"field {self._number}, {selection.key}, value {values.shape} {digest(values)}"
        there, here = selection.inside(self.owned)
        # A dimension for each of the array's; those of integers have one element.
        whole = np.broadcast_to(
            values.reshape(values.shape[max(0, values.ndim - len(selection.shape)) :]), selection.shape
        ).reshape(selection.counts)
        self._view(0)[here] = whole[there]
        self._changes += 1

    @interrupts.keeps
    def __getitem__(self, given: Any) -> Any:
        """Elements by global index, on every rank; collective.

        Parameters
        ----------
        given : int, slice, Ellipsis or tuple of them
            NumPy's basic indexing, the same on every rank.

        Returns
        -------
        numpy.ndarray or NumPy scalar
            A copy, the same on every rank.

        Raises
        ------
        ConfigError
            On every rank, and an IndexError as well: for an index out of range or of another kind. For a field that
            keeps its window only.

        Notes
        -----
        Collective: two rounds of small messages, and every rank gets all that was asked for. For the whole array use
        `gather`, in a loop `local`.
        """
        return as_index_error(lambda: self._get(given))

    @interrupts.keeps
    def __setitem__(self, given: Any, value: Any) -> None:
        """Set elements by global index; collective.

        Parameters
        ----------
        given : int, slice, Ellipsis or tuple of them
            As in reading.
        value : number, array, field or expression of fields
            Equal on every rank; broadcast and converted as NumPy's assignment does. Fields and expressions of them, for
            ``u[...]``, are computed by one nest.

        Raises
        ------
        ConfigError
            On every rank: as in reading; for a value of another shape, or that differs between ranks.

        Notes
        -----
        Collective: one round of small messages; each rank sets what it owns.
        """
        if isinstance(value, Arithmetic):
            agreed("tw.Field.__setitem__", self.context, lambda: require_all(given))
            self._assigned(self, value)
        else:
            as_index_error(lambda: self._set(given, value))

    def _become(self, symbol, make):
        self._assigned(self, agreed(f"tw.Field {symbol}=", self.context, make), symbol)
        return self

    @collective("tw.Field.copy")
    def copy(self) -> Collective[Field]:
        """Another field with the same values, those of its history too.

        Returns
        -------
        Field
            In the same blocks, so that nothing moves between ranks.

        Raises
        ------
        ConfigError
            On every rank: for a field that keeps a rolling window only.
        MemoryError
            On every rank: where one has no memory for it.

        Notes
        -----
        Collective: one round of small messages, and a copy of each rank's part.
        """
        made = Field(self.context, self.shape, self.dtype, storage=self._whole("copy").copy())
        made._cuts, made._ends, made._boundary = self._cuts, self._ends, self._boundary
        yield f"field {self._number}"
        made._count()
        return made

    @collective("tw.Field.fill")
    def fill(self, value: Number) -> Collective[None]:
        """Set all elements of the current time step.

        Parameters
        ----------
        value : number or function
            One for all, or a function of the global indices as in `tilewave.field`.

        Raises
        ------
        ConfigError
            On every rank: for a value that is neither, for what the function raises; the field is then as it was.

        Notes
        -----
        Collective: one round of small messages. A function needs memory for a copy of each rank's part.
        """
        self._whole("fill")
        local = self._view(0)
        if callable(value):
            values = np.empty_like(local)
            try:
                fill(values, self.owned, value)
            except Exception as problem:
                raise named("fill: the function raised", problem) from problem
            text = "a function"
        else:
            values = as_elements(value, self.dtype)
            if values.ndim or value is None:  # of which NumPy would make NaN
                given = "None" if value is None else f"an array of shape {values.shape}"
                raise ConfigError(
                    f"fill: {given} was given; allowed: a number, or a function of the indices; field[...] = array "
                    "sets all elements"
                )
            text = digest(values)
        yield f"field {self._number}, {text}"
        local[...] = values
        self._changes += 1

    @interrupts.keeps
    def save(
        self,
        path: FilePath,
        *,
        dims: Sequence[str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        spacing: float | Sequence[float] | None = None,
        origin: float | Sequence[float] | None = None,
    ) -> None:
        """Write a file for NumPy, Zarr or ParaView, each rank its part; collective.

        Parameters
        ----------
        path : str or path
            On a disk that all ranks share, the same on every rank. "u.zarr" is a group of Zarr (format 3) with the
            array u, "run.zarr/u" an array in a group that may have others, "u.pvti" an image for ParaView, whose cells
            are the elements. Any other name is a .npy file.
        dims : sequence of str, optional
            Of Zarr: names of the dimensions. Default: "i", "j", "k", "l".
        attributes : dict, optional
            Of Zarr: texts, numbers and lists that the array carries.
        spacing, origin : float or sequence of float, optional
            Of ParaView, for each axis: from element to element, and where the first element is. Default: 1 and 0.

        Raises
        ------
        ConfigError
            On every rank: when any could not write its part. There is then no file of that name, or the one before.

        Notes
        -----
        Collective: a few rounds of small messages; each rank writes its part from 8 MB of memory. Of Zarr, chunks of up
        to 8 MB that several ranks share are sent to one of them; the files are the same for any number of ranks.
        A file has its name when all of it is on disk: until then the values are under a hidden name in the same folder.
        """
        save(self, path, 0, dims=dims, attributes=attributes, spacing=spacing, origin=origin)

    @collective("tw.Field.to_xarray")
    def to_xarray(
        self, *, dims: Sequence[str] | None = None, attributes: Mapping[str, Any] | None = None
    ) -> Collective[Any]:
        """The whole array on rank 0 as an `xarray.DataArray`, None elsewhere: as `gather` gives it.

        Parameters
        ----------
        dims, attributes
            As in `save`.

        Returns
        -------
        xarray.DataArray or None

        Raises
        ------
        ConfigError
            On every rank: where rank 0 has no package xarray, and as `gather`.

        Notes
        -----
        Collective. Rank 0 needs memory for the whole array.
        """
        marks, xarray = labels(self, "to_xarray", dims, attributes), None
        if self.context.rank == 0:
            try:
                import xarray
            except ImportError:
                raise ConfigError("to_xarray: the package xarray is missing; get it with: pip install xarray") from None
        whole = yield from self._gathered(0)
        return whole if xarray is None else xarray.DataArray(whole, dims=marks["dims"], attrs=marks["attributes"])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        if self.closed:
            return f"<tilewave.Field {self.shape} {self.dtype}, closed>"
        what = f"rank {self.context.rank} holds {self.owned}" if self.keep == "all" else "a rolling window only"
        return f"<tilewave.Field {self.shape} {self.dtype}, {what}>"
