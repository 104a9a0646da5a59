"""This file has what a kernel gets in addition to pointers: scalars, extents and strides of its tables, byte tables of
some."""

import numpy as np

from tilewave import units
from tilewave.errors import ConfigError
from tilewave.kernel import scalars

#: Elements of an environment in a cache line.
LINE = 8


class ByteTables:
    """Where an environment has byte tables, in units of 8 bytes: ``kinds`` says what a table allows, ``first`` where
    its byte tables begin."""

    def __init__(self, nest, slots, dtypes, layouts):
        self.layouts = {table: layout for table, layout in layouts.items() if layout is not None}
        at = scalars.room_of(slots) + 2 * sum(map(nest.table_rank, nest.tables))
        self.kinds = {table: at + k for k, table in enumerate(self.layouts)}
        at = -(-(at + len(self.kinds)) // LINE) * LINE
        self.first = {}
        for table, layout in self.layouts.items():
            self.first[table] = at
            at += layout.byte_table_bytes * dtypes[table].itemsize // 8
        self.end = at

    def fill(self, packed, tables):
        """Put them behind what is packed, with byte tables at the beginning of a cache line."""
        room = np.zeros(self.end + LINE, np.int64)
        room = room[-room.ctypes.data // 8 % LINE :][: self.end]
        room[: packed.size] = packed
        for table, layout in self.layouts.items():
            kind, byte_tables = layout.byte_tables(tables[table])
            room[self.kinds[table]] = kind
            room[self.first[table] :][: byte_tables.size // 8] = byte_tables.view(np.int64)
        return room


def pack(nest, slots, dtypes, values, tables, byte_tables):
    """An int64 array: an element for each scalar, then extents and byte strides of each table, then `byte_tables`."""
    numbers = [scalars.pack(nest, slots, values)[: scalars.room_of(slots)]]
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
    if byte_tables.layouts:
        return byte_tables.fill(packed, tables)
    return packed if packed.size else np.zeros(1, np.int64)


def _checked(nest, name, table, dtype):
    what = f"table {name!r} of nest {nest.name!r}"
    if not isinstance(table, np.ndarray):
        raise ConfigError(f"{what}: given {type(table).__name__}; allowed: a NumPy array")
    if table.dtype != dtype:
        raise ConfigError(
            f"{what}: the kernel was compiled for {dtype.name}, given {table.dtype}; compile again for this type"
        )
    rank = nest.table_rank(name)
    if table.ndim != rank:
        raise ConfigError(
            f"{what} is looked up by {units.count(rank, 'subscript')}, given shape {table.shape}; allowed: rank {rank}"
        )
    if not table.flags.aligned:
        raise ConfigError(f"{what} is not aligned in memory; allowed: an aligned array (np.array(x))")
    return table
