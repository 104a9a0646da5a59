"""Distributed arrays."""
import dataclasses
import itertools
import math

import numpy as np

from tilewave import _core
from tilewave.context import resolve
from tilewave.errors import ConfigError

DTYPES = tuple(np.dtype(name) for name in ("f4", "f8", "i1", "i2", "i4", "i8", "u1"))
NOTHING, FUNCTION, ARRAY = 0, 1, 2


class Field:
    """An array spread over the ranks in even blocks; make it with `field`.

    Attributes
    ----------
    shape : tuple of int
        Of the whole array.
    dtype : numpy.dtype
    ndim : int
    keep : str
        "all", or "frontier": it has no values outside a run.
    """

    def __init__(self, context, shape, dtype, keep="all", init=None):
        self.context = context
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self.keep = keep
        self._init = init  # of a frontier: what elements are before each run
        self._number = 0   # of those that a context's ranks made together, from 1; 0: one rank's own
        self._storage = _core.FieldStorage(context._core, shape, dtype.itemsize) if keep == "all" else None

    def _whole(self, what):
        """The storage, for what asks for all values."""
        if self._storage is None:
            raise ConfigError(f"{what}: this field of shape {self.shape} keeps its frontier only, so it has no values outside a "
                              "run; allowed: reduce= in the run, or a field with keep='all'")
        return self._storage

    @property
    def owned(self):
        """The global index ranges of this rank's points, as a tuple of slices."""
        low, high = self._whole("owned").owned
        return tuple(slice(a, max(a, b)) for a, b in zip(low, high, strict=True))

    @property
    def local(self):
        """This rank's points as a NumPy array: a view, with the strides of the storage that the last run
        wanted, until a run moves the blocks."""
        # The bytes belong to the storage; the view keeps them alive after it is gone.
        address, strides, owner = self._whole("local").view()
        shape = tuple(s.stop - s.start for s in self.owned)
        return np.asarray(_Memory(address, shape, strides, self.dtype, owner))

    def gather(self):
        """The whole array on rank 0, None elsewhere.

        Returns
        -------
        numpy.ndarray or None

        Notes
        -----
        Collective. Rank 0 needs memory for the whole array; staging is a few MB.
        """
        self._whole("gather")
        whole = np.empty(self.shape, self.dtype) if self.context.rank == 0 else None
        self._storage.gather(0 if whole is None else whole.ctypes.data)
        return whole

    def __repr__(self):
        what = f"rank {self.context.rank} holds {self.owned}" if self.keep == "all" else "the frontier only"
        return f"<tilewave.Field {self.shape} {self.dtype}, {what}>"


class _Memory:
    """Someone else's elements, for NumPy to view."""

    def __init__(self, address, shape, strides, dtype, owner):
        self.__array_interface__ = {"data": (address, False), "shape": shape, "strides": strides,
                                    "typestr": dtype.str, "version": 3}
        self._owner = owner


def field(shape, dtype="f8", init=None, *, keep="all", context=None):
    """Make a distributed array; collective.

    Parameters
    ----------
    shape : sequence of int
        One to four extents.
    dtype : dtype
        float32, float64, int8, int16, int32, int64 or uint8.
    init : function, array, number or None
        A function of the global indices, called with index arrays where it takes them, else point
        by point; or the whole array, on every rank, or on rank 0 with None on the others; or one number
        for all. None everywhere: zeros.
    keep : str
        "all", or "frontier": a run that writes the field keeps no more of it than later points read, so a table
        of a dynamic programme takes the memory of its border. Before each run its elements are `init`
        (not an array on rank 0 alone); after it they are gone: ask for what is wanted of them by `run`'s
        ``reduce=``, or write it to another array. Where a body reads values ahead of the loops, or
        keeps elements on some path, the run has to store the field whole, and its report says so.
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
    Collective: one allreduce, and moving the array where only rank 0 gives it.
    """
    context = resolve(context)
    error, made, kind = None, None, NOTHING
    try:
        shape, dtype = _shape(shape), _dtype(dtype)
        if keep not in ("all", "frontier"):
            raise ConfigError(f"field: keep={keep!r} was given; allowed: 'all', 'frontier'")
        kind = NOTHING if init is None else FUNCTION if callable(init) else ARRAY
        if kind == ARRAY:
            init = np.ascontiguousarray(init, dtype=dtype) if np.ndim(init) else np.asarray(init, dtype=dtype)
            if init.ndim and init.shape != shape:
                raise ConfigError(f"field: init has shape {init.shape}, the field {shape}; "
                                  "they must be equal, or init a number")
            init = np.broadcast_to(init, shape)  # a number: strides of 0
        if kind == ARRAY and keep == "frontier" and any(init.strides):
            init = init.copy()  # for runs to come
        made = Field(context, shape, dtype, keep, init) if keep == "frontier" else _make(context, shape, dtype)
        if kind == FUNCTION and keep == "all":
            _fill(made, init)
    except Exception as problem:
        error = problem if isinstance(problem, ConfigError) else _named("field: init raised", problem)
    context.agree(error, f"a field of shape {shape}, dtype {dtype}, keep {keep}" + (f", init {kind}" if keep == "frontier" else ""))
    context._fields += 1
    made._number = context._fields
    if keep == "all":
        _spread(made, init, kind)
    return made


@dataclasses.dataclass(frozen=True)
class Scratch:
    """An array of a nest's own; made by `scratch`."""

    dtype: np.dtype
    init: object


def scratch(dtype="f8", init=0):
    """An array that a nest needs for itself: given to `run`, it keeps its frontier only, as `field` says.

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
    if not callable(init) and np.ndim(init) != 0:
        raise ConfigError(f"scratch: init of shape {np.shape(init)} was given; allowed: a number, or a function of the indices")
    return Scratch(_dtype(dtype), init)


def values_at(field, subscripts):
    """What elements of a frontier field are before a run.

    Parameters
    ----------
    field : Field
    subscripts : numpy.ndarray
        (count, ndim), int64.

    Returns
    -------
    numpy.ndarray
        Of the field's dtype: one value for all, or `count` values.

    Raises
    ------
    ConfigError
        For an init that raises.
    """
    try:
        return _values_at(field, subscripts)
    except Exception as problem:
        raise _named("field: init raised", problem) from problem


def _values_at(field, subscripts):
    init = field._init
    if init is None:
        return np.zeros(1, field.dtype)
    if not callable(init):
        if not any(init.strides):
            return init.reshape(-1)[:1].copy() if init.size else np.zeros(1, field.dtype)
        return np.ascontiguousarray(init[tuple(subscripts.T)])
    values = np.empty(len(subscripts), field.dtype)
    if len(subscripts):
        try:
            found = np.asarray(init(*subscripts.T))
            if found.dtype == object:
                raise TypeError("init made objects of index arrays")
            values[...] = found
        except Exception:
            # Not a function of arrays: point by point, as for other fields.
            for k, point in enumerate(subscripts.tolist()):
                value = init(*point)
                if value is None:
                    raise TypeError(f"init returned None at {tuple(point)}; allowed: a number") from None
                values[k] = value
    return values


def _make(context, shape, dtype):
    size = math.prod(max(n, 1) for n in shape) * dtype.itemsize
    if size > 2**60:
        raise ConfigError(f"field: shape {shape} was given, {size} bytes; allowed: at most 2**60")
    try:
        return Field(context, shape, dtype)
    except MemoryError:
        raise ConfigError(f"field: no memory for this rank's part of shape {shape}, {size} bytes "
                          f"over {context.size} rank(s)") from None


def _named(what, problem):
    error = ConfigError(f"{what} {type(problem).__name__}: {problem}")
    error.__cause__ = problem
    return error


def _shape(shape):
    try:
        if isinstance(shape, str):
            raise ValueError
        result = tuple(int(n) for n in shape)
        if any(float(n) != int(n) for n in shape):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"field: shape {shape!r} was given; allowed: one to four integers") from None
    if not 1 <= len(result) <= 4 or any(n < 0 for n in result):
        raise ConfigError(f"field: shape {result} was given; allowed: one to four extents >= 0")
    return result


def _dtype(dtype):
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = None
    if result is None or result not in DTYPES:  # NumPy finds None equal to float64
        raise ConfigError(f"field: dtype {dtype!r} was given; allowed: "
                          f"{', '.join(d.name for d in DTYPES)}")
    return result


def _spread(made, init, kind):
    """Give each rank its block of an init array; agree on which ranks gave one."""
    mine = kind if made.context.rank == 0 else NOTHING
    others = kind if made.context.rank else NOTHING
    least, most, on_zero, elsewhere = made.context._core.allreduce_min([kind, -kind, -mine, -others])
    if least == -most:
        if kind == NOTHING:
            made.local[...] = 0
        elif kind == ARRAY:
            made.local[...] = init[made.owned]
    elif -on_zero == ARRAY and elsewhere == 0:
        made._storage.scatter(init.ctypes.data if made.context.rank == 0 else 0)
    else:
        made.context.agree(ConfigError(
            "field: init differs between ranks; allowed: the same kind on every rank, or an array "
            "on rank 0 and None on the others"))


def _fill(made, init):
    """Set this rank's points to init(global indices)."""
    local = made.local
    if local.size == 0:
        return
    index = np.ogrid[made.owned]
    try:
        values = np.asarray(init(*index))
        if values.dtype == object:
            raise TypeError("init made objects of index arrays")
        local[...] = values
    except Exception:
        # Not a function of arrays (an `if`, math.sin): point by point. What still raises is its own.
        for point in itertools.product(*(range(s.start, s.stop) for s in made.owned)):
            value = init(*point)
            if value is None:  # NumPy would store NaN
                raise TypeError(f"init returned None at {point}; allowed: a number") from None
            local[tuple(p - s.start for p, s in zip(point, made.owned, strict=True))] = value
