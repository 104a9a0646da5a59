"""What a kernel is given beside pointers: scalars, and the extents and strides of its tables."""

import numpy as np

from . import scalars
from ..errors import ConfigError


def pack(nest, slots, dtypes, values, tables):
    """An int64 array: one element a scalar, then extents and byte strides of each table."""
    numbers = [scalars.pack(nest, slots, values)[:len(slots)]]
    for name in tables:
        if name not in nest.tables:
            allowed = ", ".join(nest.tables) or "none, the nest has no tables"
            raise ConfigError(f"nest {nest.name!r} has no table {name!r}; allowed: {allowed}")
    for name in nest.tables:
        if name not in tables:
            raise ConfigError(f"nest {nest.name!r} needs its table {name!r}")
        table = _checked(nest, name, tables[name], dtypes[name])
        numbers += [np.array(table.shape, np.int64), np.array(table.strides, np.int64)]
    packed = np.concatenate(numbers)
    return packed if packed.size else np.zeros(1, np.int64)


def _checked(nest, name, table, dtype):
    what = f"table {name!r} of nest {nest.name!r}"
    if not isinstance(table, np.ndarray):
        raise ConfigError(f"{what}: given {type(table).__name__}; allowed: a NumPy array")
    if table.dtype != dtype:
        raise ConfigError(f"{what}: the kernel was compiled for {dtype.name}, given {table.dtype}; "
                          "compile again for this type")
    rank = nest.table_rank(name)
    if table.ndim != rank:
        raise ConfigError(f"{what} is looked up by {rank} subscript(s), given shape {table.shape}; "
                          f"allowed: rank {rank}")
    if not table.flags.aligned:
        raise ConfigError(f"{what} is not aligned in memory; allowed: an aligned array (np.array(x))")
    return table
