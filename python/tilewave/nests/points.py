"""Sources that are added at points after each time step, and receivers that are recorded there."""

import numpy as np

from tilewave.errors import ConfigError
from tilewave.field.field import Field
from tilewave.field.values import digest, require_no_mask
from tilewave.patterns.allreduces import allreduce


class Points:
    """What a run adds and records at points in each time step.

    Parameters
    ----------
    inject : dict or None
        From names of written arrays to (points, values).
    record : dict or None
        From names of arrays to points.
    nests : tuple of Nest
    arguments : dict
        Arrays by name, among others.
    steps : int

    Raises
    ------
    ConfigError
        For names, points or values that are none.
    """

    def __init__(self, inject, record, nests, arguments, steps):
        self._sources, self._receivers, self.recorded = [], [], {}
        written = {name for nest in nests for name in nest.written}
        for name, given in _checked_dict("inject", inject, "(points, values)").items():
            array = _array_of("inject", name, arguments, nests)
            if name not in written:
                raise ConfigError(f"inject: array {name!r} is not written by the nest; allowed: one that is")
            if not isinstance(given, tuple | list) or len(given) != 2:
                raise ConfigError(f"inject: {name!r} was given {type(given).__name__}; allowed: (points, values)")
            places = _Places("inject", name, array, given[0])
            self._sources.append((places, _checked_values(name, array, given[1], (steps, len(places)))))
        for name, points in _checked_dict("record", record, "points").items():
            array = _array_of("record", name, arguments, nests)
            places = _Places("record", name, array, points)
            self.recorded[name] = np.zeros((steps, len(places)), array.dtype)
            self._receivers.append((places, self.recorded[name]))

    def __str__(self):
        """What must be equal on all ranks."""
        sources = [f"{places} {digest(values)}" for places, values in self._sources]
        return f"inject {sources}, record {[str(places) for places, _ in self._receivers]}"

    def after(self, step):
        """Add and record at this rank's points; local."""
        for places, values in self._sources:
            here, at = places.mine()
            np.add.at(places.local, at, values[step, here])
        for places, rows in self._receivers:
            here, at = places.mine()
            rows[step, here] = places.local[at]

    def finish(self, context):
        """Give every rank what all have recorded; collective."""
        for places, rows in self._receivers:
            if context.size > 1 and rows.size and isinstance(places.array, Field):
                bits = rows.view(f"i{min(rows.itemsize, 8)}")  # each is of one rank, and 0 elsewhere: sums are exact
                allreduce(bits, out=bits, context=context)


class _Places:
    """Points of an array, and those that this rank has."""

    def __init__(self, what, name, array, points):
        self.name, self.array, self._owned, self._mine = name, array, None, None
        try:
            found = np.asarray(points)
            if found.size == 0:
                found = np.zeros((0, array.ndim), np.int64)
            if found.ndim == 1 and array.ndim == 1:
                found = found[:, None]
            right = found.dtype.kind in "iu" and found.ndim == 2 and found.shape[1] == array.ndim
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ConfigError(
                f"{what}: the points of {name!r} are no integers of shape (points, {array.ndim}); allowed: the "
                "subscripts of elements, one row a point"
            )
        self.points = found.astype(np.int64)
        outside = ((self.points < 0) | (self.points >= np.array(array.shape))).any(axis=1)
        if outside.any():
            raise ConfigError(
                f"{what}: point {tuple(self.points[outside][0].tolist())} is outside array {name!r} of shape "
                f"{tuple(array.shape)}"
            )

    def __len__(self):
        return len(self.points)

    def __str__(self):
        return f"{self.name} {self.points.shape} {digest(self.points)}"

    @property
    def local(self):
        """The array's part of this rank, without a halo."""
        return self.array._view(0) if isinstance(self.array, Field) else self.array

    def mine(self):
        """(numbers of the points that this rank has, their subscripts in `local`); anew where the field has moved."""
        owned = self.array.owned if isinstance(self.array, Field) else tuple(slice(0, n) for n in self.array.shape)
        if owned != self._owned:
            low, high = (np.array([getattr(s, end) for s in owned], np.int64) for end in ("start", "stop"))
            here = np.flatnonzero(((self.points >= low) & (self.points < high)).all(axis=1))
            self._owned, self._mine = owned, (here, tuple((self.points[here] - low).T))
        return self._mine


def _checked_dict(what, given, value):
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise ConfigError(f"{what}: given {type(given).__name__}; allowed: a dict from names of arrays to {value}")
    return given


def _array_of(what, name, arguments, nests):
    if not any(name in nest.arrays for nest in nests):
        raise ConfigError(f"{what}: {name!r} is no array of the nest; allowed: {', '.join(nests[0].arrays)}")
    array = arguments.get(name)
    if not isinstance(array, Field | np.ndarray):
        raise ConfigError(f"{what}: array {name!r} is given {type(array).__name__}; allowed: a field or a NumPy array")
    return array


def _checked_values(name, array, values, shape):
    require_no_mask(f"inject: {name!r}", values)
    values = np.asarray(values)
    if values.shape != shape or not np.can_cast(values.dtype, array.dtype, "same_kind"):
        raise ConfigError(
            f"inject: the values of {name!r} have shape {values.shape} and dtype {values.dtype}; allowed: {shape}, a "
            f"row a time step and a column a point, of numbers for {array.dtype}"
        )
    return values.astype(array.dtype)
