"""Distributed arrays."""
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
    """

    def __init__(self, context, shape, dtype):
        self.context = context
        self.shape = shape
        self.dtype = dtype
        self.ndim = len(shape)
        self._storage = _core.FieldStorage(context._core, shape, dtype.itemsize)

    @property
    def owned(self):
        """The global index ranges of this rank's points, as a tuple of slices."""
        low, high = self._storage.owned
        return tuple(slice(a, max(a, b)) for a, b in zip(low, high, strict=True))

    @property
    def local(self):
        """This rank's points as a NumPy array: a view, with the strides of the storage that the last run
        wanted, until a run moves the blocks."""
        # The bytes belong to the storage; the view keeps them alive after it is gone.
        address, strides, owner = self._storage.view()
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
        whole = np.empty(self.shape, self.dtype) if self.context.rank == 0 else None
        self._storage.gather(0 if whole is None else whole.ctypes.data)
        return whole

    def __repr__(self):
        return f"<tilewave.Field {self.shape} {self.dtype}, rank {self.context.rank} holds {self.owned}>"


class _Memory:
    """Someone else's elements, for NumPy to view."""

    def __init__(self, address, shape, strides, dtype, owner):
        self.__array_interface__ = {"data": (address, False), "shape": shape, "strides": strides,
                                    "typestr": dtype.str, "version": 3}
        self._owner = owner


def field(shape, dtype="f8", init=None, *, context=None):
    """Make a distributed array; collective.

    Parameters
    ----------
    shape : sequence of int
        One to four extents.
    dtype : dtype
        float32, float64, int8, int16, int32, int64 or uint8.
    init : function, array or None
        A function of the global indices, called with index arrays where it takes them, else point
        by point; or the whole array, on every rank, or on rank 0 with None on the others. None
        everywhere: zeros.
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
        kind = NOTHING if init is None else FUNCTION if callable(init) else ARRAY
        if kind == ARRAY:
            init = np.ascontiguousarray(init, dtype=dtype)
            if init.shape != shape:
                raise ConfigError(f"field: init has shape {init.shape}, the field {shape}; "
                                  "they must be equal")
        made = _make(context, shape, dtype)
        if kind == FUNCTION:
            _fill(made, init)
    except Exception as problem:
        error = problem if isinstance(problem, ConfigError) else _named("field: init raised", problem)
    context.agree(error, f"a field of shape {shape}, dtype {dtype}")
    _spread(made, init, kind)
    return made


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
