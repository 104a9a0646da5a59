"""Arrays of other libraries as NumPy arrays: on the same memory where they may be written."""

import numpy as np

from tilewave.errors import ConfigError, shown
from tilewave.not_numpy import NotNumPy

PROTOCOLS = "__array_interface__", "__array__", "__dlpack__"
#: The number of a CPU in DLPack.
_CPU = 1


def is_array(value):
    """Return whether an object has elements in memory that NumPy can look at: no number, and no field."""
    if isinstance(value, np.ndarray):
        return True
    if isinstance(value, np.generic | NotNumPy | str | bytes | type):
        return False
    if any(hasattr(type(value), name) for name in PROTOCOLS):
        return True
    try:
        return memoryview(value).format is not None
    except TypeError:
        return False


def array_of(what, value, written):
    """The elements of an object as a NumPy array.

    Parameters
    ----------
    what : str
        It begins the message of an error.
    value : object
        A buffer (`memoryview`, `array.array`), an object with ``__array_interface__``, ``__array__`` or, on a CPU,
        ``__dlpack__``: of pandas, polars, xarray, torch, JAX; a list or tuple, nested or not, of numbers.
    written : bool
        The array has to have the object's own memory.

    Returns
    -------
    numpy.ndarray
        What is no array is returned as it is.

    Raises
    ------
    ConfigError
        Where elements are to be written and are a copy, or read-only; where they are not in this memory.
    """
    if isinstance(value, list | tuple):
        if written:
            raise ConfigError(f"{what}: given a {type(value).__name__}, whose elements are no memory; {_COPY}")
        return _numbers(what, value)
    if isinstance(value, np.ndarray) or not is_array(value):
        return value
    found = _looked_at(what, value)
    if written and not found.flags.writeable:
        raise ConfigError(f"{what}: given {shown(value)}, which is read-only; {_COPY}")
    if written and not np.may_share_memory(found, _looked_at(what, value)):
        raise ConfigError(f"{what}: given {shown(value)}, whose elements NumPy gets as a copy; {_COPY}")
    return found


_COPY = "allowed where elements are written: numpy.array(x), a copy"


def _looked_at(what, value):
    kind = type(value)
    try:
        if not hasattr(kind, "__array_interface__") and not hasattr(kind, "__array__") and hasattr(kind, "__dlpack__"):
            if value.__dlpack_device__()[0] != _CPU:
                raise ConfigError(
                    f"{what}: given {shown(value)}, which is not in a CPU's memory; allowed: a copy there"
                )
            return np.from_dlpack(value)
        return np.asarray(memoryview(value) if kind is bytearray else value)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"{what}: given {kind.__name__}: {type(error).__name__}: {error}; allowed: arrays") from None


def _numbers(what, value):
    try:
        found = np.array(value)
    except ValueError as error:
        raise ConfigError(f"{what}: given a {type(value).__name__}: {error}; allowed: one of numbers") from None
    if found.dtype.kind not in "biufc":
        text = f"{what}: given a {type(value).__name__} of {found.dtype}; allowed: one of numbers"
        raise ConfigError(f"{text}; bytes and str, where only read" if found.dtype.kind in "US" else text)
    return found
