"""Runs the loops of a region for the arrays and numbers that a call has."""

import itertools

import numpy as np

from tilewave.dtypes import ALL
from tilewave.errors import ConfigError, shown
from tilewave.kernel.in_order import LoopsKernel, slot_of
from tilewave.nest.names import MISSING, is_constant


class RegionRun:
    """The loops of one place of a function.

    Parameters
    ----------
    found : Found
    """

    def __init__(self, found, name):
        self.found, self.region, self.name = found, found.region, name
        self._kernels = {}

    def takes(self, names):
        """Return whether the loops go over arrays; over lists and dicts they stay Python.

        Raises
        ------
        ConfigError
            Where they go over arrays, and cannot be compiled.
        """
        arrays = [name for name in self.found.arrays if hasattr(self._value(names, name), "dtype")]
        if arrays and self.region is None:
            raise self.found.refusal
        return bool(arrays)

    def run(self, names):
        """Run the loops on the local names of the function; returns those that the loops have assigned."""
        region = self.region
        arrays = {name: self._array(names, name) for name in region.tables}
        given, foreign = {}, {}
        for name in sorted({*region.reads, *region.assigned["all"]}):
            value = names.get(name, MISSING)
            if is_constant(value):
                given[name] = value
            elif value is not MISSING:
                foreign[name] = type(value).__name__
        return self._in_order(arrays, given, foreign)

    def _value(self, names, name):
        """The object that a name, perhaps a dotted one, of the function stands for."""
        first, *attributes = name.split(".")
        found = names[first] if first in names else self.found.scope.lookup(first)
        for attribute in attributes:
            found = getattr(found, attribute, MISSING)
        return found

    def _array(self, names, name):
        """The NumPy array of a name; ConfigError for what loops cannot take."""
        value, region = self._value(names, name), self.region
        what = f"{region.source.file}:{region.line}: loops over {name!r}"
        if not isinstance(value, np.ndarray):
            raise ConfigError(f"{what}: given {shown(value)}; allowed: a NumPy array (np.array(x))")
        if value.dtype not in ALL or not value.dtype.isnative:
            allowed = ", ".join(each.name for each in ALL)
            raise ConfigError(f"{what}: dtype {value.dtype}; allowed: {allowed}, in native byte order")
        if value.ndim != region.table_rank(name):
            raise ConfigError(
                f"{what} give it {region.table_rank(name)} subscripts, given shape {value.shape}; allowed: a subscript "
                "for each dimension"
            )
        if name in region.written_tables and not value.flags.writeable:
            raise ConfigError(f"{what} write it, given an array that is read-only; allowed: a copy (x.copy())")
        if not value.flags.aligned:
            raise ConfigError(f"{what}: its elements are not aligned in memory; allowed: np.array(x)")
        return value

    def _in_order(self, arrays, given, foreign):
        region = self.region
        region.outside()
        slots = tuple(slot_of(name, value) for name, value in given.items())
        dtypes = {name: array.dtype for name, array in arrays.items()}
        unit = frozenset(name for name, each in arrays.items() if each.strides[-1] == each.itemsize)
        separate = not any(
            np.may_share_memory(arrays[one], arrays[other])
            for one, other in itertools.combinations(arrays, 2)
            if one in region.written_tables or other in region.written_tables
        )
        key = slots, tuple(dtypes.items()), unit, separate, tuple(foreign.items()), region.signature()
        if key not in self._kernels:
            self._kernels[key] = LoopsKernel(region, dtypes, slots, unit, separate, foreign)
        return self._kernels[key].run(arrays, given)

