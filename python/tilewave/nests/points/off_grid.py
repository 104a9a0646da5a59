"""Sources and receivers between the points of the grid: neighbours, weights, and sums over ranks."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING

import numpy as np

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.field.field import Field
from tilewave.field.values import digest, require_no_mask
from tilewave.patterns.allreduces import allreduce

if TYPE_CHECKING:
    import numpy.typing as npt

#: The parameter of the Kaiser window for each radius: Hicks, Geophysics 67 (2002), table 1, for up to half of the
#: Nyquist wavenumber; also Devito's.
KAISER = {2: 2.94, 3: 4.53, 4: 4.14, 5: 5.26, 6: 6.40, 7: 7.51, 8: 8.56, 9: 9.56, 10: 10.64}
#: As ``ProductOfSum`` of src/nests/off_grid.hpp.
PRODUCT = np.dtype([("sum", "i8"), ("neighbour", "i8"), ("product", "c16")])
#: Products of a rank that are exchanged at once, 4 MB.
EXCHANGED = 1 << 17
#: Bytes of values of neighbours, of all time steps, that lanes note at most.
MOST_NOTED_BYTES = 1 << 26


class OffGrid:
    """Points between those of the grid, for `inject` and `record` of `run`.

    Parameters
    ----------
    coordinates : array_like
        Of shape (points, dimensions), or (steps, points, dimensions): points that move, a row for each time step.
    interpolation : str
        ``"linear"``: each point has two neighbours along each axis; ``"sinc"``: ``2 * radius``, with a sinc function in
        a Kaiser window (Hicks 2002), as in Devito.
    radius : int
        Of ``"sinc"``: 2 to 10.
    origin, spacing : float or sequence of float
        A coordinate x is ``(x - origin) / spacing`` in subscripts, along each axis. By default it is x.

    Notes
    -----
    With x in subscripts, ``i = floor(x)`` and ``f = x - i``, the neighbour ``i + k`` has along its axis the weight
    ``1 - f`` (k = 0) or ``f`` (k = 1) of ``"linear"``. Of ``"sinc"`` it has, for k from ``1 - radius`` to `radius`,
    ``sinc(k - f) * i0(b * sqrt(1 - ((k - f) / radius)**2)) / i0(b)``, with Hicks' b for the radius; where f is 0, the
    weights are 1 and 0. A neighbour's weight is the product of its axes' weights, the first axis first. Neighbours
    with a weight of 0, and those outside of the array, are left out. The points themselves must be inside.

    The meaning is that of these loops after each time step, with neighbours in row-major order and weights of float64::

        for k in range(points):                  # inject
            for index, weight in neighbours(k):
                u[index] = u[index] + weight * values[t, k]
        for k in range(points):                  # record
            total = 0.0
            for index, weight in neighbours(k):
                total = total + weight * u[index]
            recorded[t, k] = total

    Sums and products are of float64 (of complex numbers by parts), rounded where they are stored. The weights of both
    are the same: `record` is the transpose of `inject`.

    Examples
    --------
    >>> import tilewave as tw
    >>> receivers = tw.OffGrid([(12.5, 40.0), (17.5, 40.0)], "sinc", radius=4, spacing=5.0)
    """

    def __init__(
        self,
        coordinates: npt.ArrayLike,
        interpolation: str = "linear",
        *,
        radius: int = 4,
        origin: npt.ArrayLike = 0.0,
        spacing: npt.ArrayLike = 1.0,
    ) -> None:
        kept = (
            copy.deepcopy(each) if isinstance(each, np.ndarray | list) else each
            for each in (coordinates, origin, spacing)
        )
        coordinates, origin, spacing = kept
        self._given = coordinates, interpolation, radius, origin, spacing

    def _first(self, steps):
        """The same points; of those that move the rows of the first time steps."""
        coordinates, *others = self._given
        at = coordinates if isinstance(coordinates, np.ndarray) else np.asarray(coordinates, object)
        first = copy.copy(self)
        first._given = at[:steps] if at.ndim == 3 else coordinates, *others
        return first

    def _neighbours(self, shape, steps):
        """First neighbours and weights of an array's axes: (..., points, dims), (..., points, dims, width)."""
        coordinates, interpolation, radius, origin, spacing = self._given
        if interpolation not in ("linear", "sinc"):
            raise ConfigError(f"OffGrid: interpolation={shown(interpolation)}; allowed: 'linear' or 'sinc'")
        if not isinstance(radius, int) or radius not in KAISER:
            raise ConfigError(f"OffGrid: radius={shown(radius)}; allowed: an integer from 2 to 10")
        dims = len(shape)
        for each in (coordinates, origin, spacing):
            require_no_mask("OffGrid", each)
        try:
            origin, spacing = (np.broadcast_to(np.asarray(each, float), (dims,)) for each in (origin, spacing))
            at = np.asarray(coordinates, float)
            if not (at.shape[-1:] == (dims,) and (at.ndim == 2 or at.ndim == 3 and len(at) == steps)):
                raise ValueError(f"coordinates of shape {at.shape}")
            if not spacing.all():
                raise ValueError("a spacing of 0")
            at = (at - origin) / spacing
        except (TypeError, ValueError) as problem:
            raise ConfigError(
                f"OffGrid: {problem}; allowed: real coordinates of shape (points, {dims}) or ({steps} steps, points, "
                f"{dims}), and for origin and spacing a number or {dims}"
            ) from None
        inside = ((at >= 0) & (at <= np.array(shape) - 1)).all(axis=-1)
        if not inside.all():
            where = tuple(int(axis[0]) for axis in np.nonzero(~inside))
            raise ConfigError(
                f"OffGrid: point {where[-1]}"
                + (f" of time step {where[0]}" if len(where) > 1 else "")
                + f" is at subscripts {tuple(at[where].tolist())}; allowed: inside the array, of shape {tuple(shape)}"
            )
        below = np.floor(at)
        fraction, back = at - below, 0 if interpolation == "linear" else radius - 1
        distance = np.arange(-back, back + 2) - fraction[..., None]
        if interpolation == "linear":
            weights = np.stack([1 - fraction, fraction], axis=-1)
        else:
            b = KAISER[radius]
            weights = np.sinc(distance) * np.i0(b * np.sqrt(1 - (distance / radius) ** 2)) / np.i0(b)
        weights = np.where(fraction[..., None] == 0, distance == 0, weights)
        first = below.astype(np.int64) - back
        here = first[..., None] + np.arange(weights.shape[-1])
        weights[(here < 0) | (here >= np.array(shape)[:, None])] = 0
        return tuple(np.require(each, None, ["C", "A"]) for each in (first, weights))


def local_part(array, rank):
    """The part of an array that a rank has, as a view, and its ranges; of a NumPy array rank 0 has all."""
    if isinstance(array, Field):
        return array._view(0), array.owned
    return array, tuple(slice(0, n if rank == 0 else 0) for n in array.shape)


class OffGridRun:
    """`OffGrid` points of an array in a run: (steps, points) values that are added, or recorded in `rows`."""

    def __init__(self, what, name, array, given, steps):
        if array.dtype.kind not in "fc":
            raise ConfigError(
                f"{what}: {name!r} has dtype {array.dtype}; allowed with OffGrid: real or complex numbers"
            )
        self.name, self._array, self.adds = name, array, what == "inject"
        self._first, self._weights = given._neighbours(array.shape, steps)
        self._noted = None
        self.shape = steps, self._first.shape[-2]

    def __str__(self):
        values = digest(self.rows) if self.adds else "recorded"
        return f"{self.name} off grid {self._first.shape} {digest(self._first)} {digest(self._weights)} {values}"

    def begin(self, rows):
        """Rows of the dtype that is recorded; what is added is added as float64, or complex numbers of them."""
        dims, width = self._weights.shape[-2:]
        if self.adds:
            rows = rows.astype("c16" if self._array.dtype.kind == "c" else "f8", copy=False)
        self.rows, self._noted, moves = rows, None, self._first.ndim == 3
        pointers = self._first.ctypes.data, self._weights.ctypes.data, moves, rows.ctypes.data
        self._core = _core.OffGrid(self._array.dtype.name, dims, width, self.shape[1], *pointers, self.adds)

    def is_inside(self, box):
        """Whether no point moves, and all neighbours that have a weight are in a box, a list of half-open ranges."""
        if self._first.ndim == 3:
            return False
        here = self._first[..., None] + np.arange(self._weights.shape[-1])
        low, high = (np.array(ends, np.int64)[:, None] for ends in zip(*box, strict=True))
        return bool(((here >= low) & (here < high) | (self._weights == 0)).all())

    def may_be_noted(self):
        """Whether lanes may note the neighbours of receivers: these do not move, and there is room."""
        neighbours = self._weights.shape[-1] ** self._weights.shape[-2] * self.shape[1]
        return self._first.ndim == 2 and neighbours * self.shape[0] * self._array.dtype.itemsize <= MOST_NOTED_BYTES

    @functools.cached_property
    def _neighbours(self):
        """Of points that do not move, point after point, in row-major order: (points, subscripts, weights)."""
        weights, dims = self._weights[:, 0], self._weights.shape[-2]
        for d in range(1, dims):
            weights = weights[..., None] * self._weights[:, d].reshape(-1, *[1] * d, self._weights.shape[-1])
        point, *offsets = np.nonzero(weights)
        at = self._first[point] + np.stack(offsets, axis=-1)
        return point, np.require(at, np.int64, ["C", "A"]), weights[(point, *offsets)]

    def of(self, array, by_lanes):
        """The core's points of a nest's array."""
        if by_lanes and not self.adds:
            _, at, _ = self._neighbours
            if self._noted is None:
                self._noted = np.zeros((self.shape[0], len(at)), self._array.dtype)
            noted = self._noted
            return _core.StepPoints(array, at.ctypes.data, at.size, noted.ctypes.data, noted.itemsize, None, True)
        return _core.StepPoints(array, 0, 0, 0, 0, None, by_lanes, self._core)

    def visit(self, step, rank):
        """Add or record after a time step, while nothing runs; local."""
        local, ranges = local_part(self._array, rank)
        low, high = (tuple(getattr(s, end) for s in ranges) for end in ("start", "stop"))
        self._core.visit(step, local.ctypes.data, local.strides, (low, high))

    def finish(self, context):
        """Add up sums of noted neighbours, or that have products of several ranks, in their order; collective."""
        if self._noted is not None:
            self._add_up(context)
        elif context.size > 1 and self.rows.size:
            self._join_products(context)

    def _join_products(self, context):
        products = np.frombuffer(self._core.products(), PRODUCT)
        (most,) = context._core.allreduce_min([-products.size])
        parts = -(most // EXCHANGED)
        of_step = products["sum"] // max(self.shape[1], 1)
        for part in range(parts):
            begin, end = np.searchsorted(of_step, [self.shape[0] * k // parts for k in (part, part + 1)])
            given = _core.measure.allgather(context._core, products[begin:end].tobytes())
            found = np.concatenate([np.frombuffer(some, PRODUCT) for some, ranks in given for _ in range(ranks)])
            found = found[np.lexsort((found["neighbour"], found["sum"]))]
            sums, place = np.unique(found["sum"], return_inverse=True)
            totals = np.zeros(len(sums), "c16")
            np.add.at(totals, place, found["product"])
            self.rows.reshape(-1)[sums] = totals if self.rows.dtype.kind == "c" else totals.real

    def _add_up(self, context):
        """Add up the sums of the neighbours that lanes have noted, in their order; collective."""
        noted, (point, _, weights) = self._noted, self._neighbours
        if context.size > 1 and noted.size:  # of one rank, 0 elsewhere: sums are exact
            bits = noted.view(f"i{min(noted.itemsize, 8)}")
            allreduce(bits, out=bits, context=context)
        kind = "c16" if noted.dtype.kind == "c" else "f8"
        values = noted.astype(kind).view("f8").reshape(*noted.shape, 1 + (kind == "c16"))
        totals = np.zeros((*self.shape, values.shape[-1]))
        place = np.arange(len(point)) - np.searchsorted(point, point)  # of a neighbour among those of its point
        for k in range(place.max(initial=-1) + 1):
            (here,) = np.nonzero(place == k)
            totals[:, point[here]] += weights[here, None] * values[:, here]
        self.rows[...] = totals.view(kind).reshape(self.shape)
