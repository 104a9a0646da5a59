"""Drives compiled kernels over boxes and compares them with plain loops."""

import ctypes
import itertools
import random

import numpy as np

from tilewave.kernel.compile import ROW, compile_kernel


#: Parts of the messages with which a kernel refuses, in a point, what plain Python would compute.
LIMITS = ("is complex: not supported", "beyond 64 bits", "beyond 2**53")


class Raised(Exception):
    """What a kernel reported: the site's exception and the global point."""

    def __init__(self, name, message, point):
        super().__init__(f"{name}: {message} at {point}")
        self.name, self.message, self.point = name, message, point


def shapes_of(nest, extents):
    """Shapes of the arrays that are no tables, from one extent a loop index."""
    extent = dict(zip(nest.indices, extents, strict=True))
    found = {}
    for view in nest.views:
        shape = [extent[index] for index in view.axes]
        found[view.array] = tuple(map(max, shape, found.get(view.array, shape)))
    return found


def byte_steps(nest, arrays, direction):
    """Bytes from point to point of a row, for each place."""
    change = dict(zip(nest.indices, direction, strict=True))
    return [
        sum(change[index] * stride for index, stride in zip(place.axes, arrays[place.array].strides, strict=True))
        for place in nest.places
    ]


def constant_steps(nest, arrays, direction):
    """The same in elements, to compile in."""
    sizes = [arrays[place.array].itemsize for place in nest.places]
    steps = byte_steps(nest, arrays, direction)
    return tuple(step // size if step % size == 0 else None for step, size in zip(steps, sizes))


class Runner:
    """Calls a kernel for rows of points of some arrays."""

    def __init__(self, kernel, arrays, scalars=None):
        self.kernel, self.nest, self.arrays = kernel, kernel.nest, arrays
        self.row = ROW(kernel.address)
        self.env = kernel.pack(scalars, {name: arrays[name] for name in self.nest.tables})

    def __call__(self, point, direction, count):
        nest, places = self.nest, self.nest.places
        pointers = (ctypes.c_void_p * (len(places) + len(nest.tables)))()
        steps = byte_steps(nest, self.arrays, direction)
        at = dict(zip(nest.indices, point, strict=True))
        for k, place in enumerate(places):
            array, axes = self.arrays[place.array], place.axes
            subscripts = [at[index] + offset for index, offset in zip(axes, place.offsets)]
            if count > 0:
                assert all(0 <= n < extent for n, extent in zip(subscripts, array.shape))
            pointers[k] = array.ctypes.data + sum(n * s for n, s in zip(subscripts, array.strides))
            known = self.kernel.steps[k]
            assert known is None or known * array.itemsize == steps[k]
        for k, table in enumerate(nest.tables):
            pointers[len(places)+k] = self.arrays[table].ctypes.data
        numbers = [(ctypes.c_int64 * len(values))(*values) for values in (steps, point, direction)]
        code = self.row(
            ctypes.addressof(pointers),
            ctypes.addressof(numbers[0]),
            count,
            ctypes.addressof(numbers[1]),
            ctypes.addressof(numbers[2]),
            self.env.ctypes.data,
        )
        if code:
            name, message, _ = self.kernel.sites[code%4096-1]
            raise Raised(name, message, tuple(p + code // 4096 * d for p, d in zip(point, direction)))


def rows_in_order(box, cut=None):
    """(first point, direction, count) of rows along the last index, in the order of the loops."""
    low, high = box[-1]
    direction = (0,) * (len(box) - 1) + (1,)
    for outer in itertools.product(*(range(first, end) for first, end in box[:-1])):
        for start in range(low, high, cut or max(1, high - low)):
            yield (*outer, start), direction, min(high - start, cut or high - low)


def rows_reversed(box):
    """Rows along the last index, each from its end to its beginning."""
    for point, direction, count in rows_in_order(box):
        yield (*point[:-1], point[-1] + count - 1), tuple(-part for part in direction), count


def rows_of_hyperplanes(box, sign=1):
    """Rows of points with equal sum of the last two indices, in increasing order of the sum."""
    (first, end), (low, high) = box[-2:]
    direction = (0,) * (len(box) - 2) + (sign, -sign)
    for outer in itertools.product(*(range(a, b) for a, b in box[:-2])):
        for total in range(first + low, end + high - 1):
            start, stop = max(first, total - high + 1), min(end, total - low + 1)
            if start < stop:
                i = start if sign > 0 else stop - 1
                yield (*outer, i, total - i), direction, stop - start


def last_is_independent(nest):
    """Whether no dependence stays within a row along the last index."""
    return not any(all(entry in (0, None) for entry in each.vector[:-1]) for each in nest.dependences)


def hyperplanes_are_legal(nest):
    """Whether every dependence within a plane of the last two indices grows their sum."""
    inside = [each.vector[-2:] for each in nest.dependences if all(entry in (0, None) for entry in each.vector[:-2])]
    return nest.rank > 1 and all(None not in pair and sum(pair) > 0 for pair in inside)


def run_box(kernel, box, arrays, scalars=None, cut=None):
    """Run a kernel over a box row by row, first index outermost.

    ``cut`` splits rows into pieces of at most that many points.
    """
    run = Runner(kernel, arrays, scalars)
    for row in rows_in_order(box, cut):
        run(*row)


def bits(array):
    """Bit patterns, with all NaNs alike."""
    if array.dtype.kind != "f":
        return array.copy()
    view = array.view({4: np.uint32, 8: np.uint64}[array.itemsize]).copy()
    view[np.isnan(array)] = 1
    return view


def random_array(rng, shape, dtype, special=0.08):
    """Random numbers of mixed sizes; floats with some NaNs, infinities and zeros of both signs."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        small = rng.integers(-9 if dtype.kind == "i" else 0, 10, shape, dtype)
        info = np.iinfo(dtype)
        large = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.3, large, small)
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    values = np.where(rng.random(shape) < 0.3, np.round(values), values)
    odd = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], shape)
    with np.errstate(all="ignore"):
        return np.where(rng.random(shape) < special, odd, values).astype(dtype)


def relaid(array, rng):
    """The same elements in another layout: reversed, transposed, strided or skewed."""
    kind = rng.integers(0, 5)
    if kind == 1:
        return array.copy("F")
    if kind == 2:
        return array[..., ::-1].copy()[..., ::-1]
    if kind == 3:
        wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if kind == 4 and array.ndim > 1:
        return skewed(array, array.shape[-2] + rng.integers(0, 3))
    return array.copy()


def skewed(array, width):
    """The same elements with those of equal sum of the last two indices side by side."""
    *outer, rows, columns = array.shape
    memory = np.zeros((*outer, rows + columns, width), array.dtype)
    step = memory.strides
    laid = np.ndarray(array.shape, array.dtype, memory, 0, (*step[:-2], step[-2] + step[-1], step[-2]))
    laid[...] = array
    return laid


def ways(nest):
    """The ways of running a nest that its dependences allow: name -> (rows, independent)."""
    found = {"in order": (rows_in_order, False)}
    if last_is_independent(nest):
        found["independent"] = (rows_in_order, True)
        found["reversed"] = (rows_reversed, True)
    if hyperplanes_are_legal(nest):
        found["hyperplanes"] = (rows_of_hyperplanes, True)
        found["hyperplanes back"] = (lambda box: rows_of_hyperplanes(box, -1), True)
        found["hyperplanes in order"] = (rows_of_hyperplanes, False)
    return found


def compare(nest, dtypes, shape, scalars=None, seed=0, special=0.08, arrays=None, cut=None, kernel=None, box=None):
    """Run a nest both ways on random arrays: same bits, same exception, same points before it.

    ``shape`` has an extent for each loop index; tables are given in ``arrays``. ``arrays``,
    ``kernel`` and ``box`` stand for random arrays, a compiled kernel and the whole box.
    """
    rng = np.random.default_rng(seed)
    shapes = shapes_of(nest, shape) if shape else {}
    drawn = {
        name: random_array(rng, shapes[name], dtypes[name], special)
        for name in nest.arrays
        if name in shapes and name not in (arrays or {})
    }
    arrays = {**drawn, **(arrays or {})}
    steps = constant_steps(nest, arrays, (0,) * (nest.rank - 1) + (1,)) if seed % 2 else None
    kernel = kernel or compile_kernel(nest, dtypes, scalars, steps=steps)
    check(
        kernel,
        box or nest.iteration_box(shapes),
        arrays,
        scalars,
        lambda box: rows_in_order(box, cut),
        f"nest {nest.name}, dtypes {dtypes}, scalars {scalars}, seed {seed}",
    )
    return kernel


def compare_all_ways(nest, dtypes, shape, scalars=None, seed=0, special=0.08, arrays=None):
    """`compare` in every order that the dependences allow, with random layouts and steps."""
    rng = np.random.default_rng(seed)
    shapes = shapes_of(nest, shape)
    drawn = {name: random_array(rng, shapes[name], dtypes[name], special) for name in shapes}
    arrays = {**drawn, **(arrays or {})}
    for way, (rows, independent) in ways(nest).items():
        laid = {name: relaid(array, rng) for name, array in arrays.items()}
        box = nest.iteration_box(shapes)
        first = next(iter(rows(box)), None)
        known = constant_steps(nest, laid, first[1]) if first else (None,) * len(nest.places)
        steps = [step if rng.random() < 0.7 else None for step in known]
        separate = bool(rng.integers(2))
        kernel = compile_kernel(nest, dtypes, scalars, steps=steps, independent=independent, separate=separate)
        check(
            kernel,
            box,
            laid,
            scalars,
            rows,
            f"nest {nest.name}, dtypes {dtypes}, scalars {scalars}, seed {seed}, {way}, steps {steps}, {separate=}",
            sequential=way == "in order",
        )


def check(kernel, box, arrays, scalars, rows, context, sequential=True):
    """Run a kernel by rows and its nest as plain loops, and compare."""
    nest = kernel.nest
    expected = {name: array.copy() for name, array in arrays.items()}
    got = {name: _copied(array) for name, array in arrays.items()}
    expected_error = got_error = None
    try:
        nest.reference(box, expected, scalars)
    except Exception as error:  # the body's own
        expected_error = error
    try:
        run = Runner(kernel, got, scalars)
        for row in rows(box):
            run(*row)
    except Raised as error:
        got_error = error
        if any(limit in error.message for limit in LIMITS):
            return
    if expected_error is None or got_error is None:
        assert expected_error is None and got_error is None, f"{context}: loops {expected_error!r}, kernel {got_error}"
    elif not sequential:
        return
    else:
        assert type(expected_error).__name__ == got_error.name, (
            f"{context}: loops {expected_error!r}, kernel {got_error}"
        )
    for name in nest.arrays:
        left, right = bits(expected[name]), bits(np.ascontiguousarray(got[name]))
        if not np.array_equal(left, right):
            at = tuple(np.argwhere(left != right)[0])
            raise AssertionError(
                f"{context}: {name}{list(map(int, at))}: loops {expected[name][at]!r}, "
                f"kernel {got[name][at]!r}; {len(np.argwhere(left != right))} differ"
            )


def _copied(array):
    """A copy with the same strides."""
    reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides)]
    low = -sum(part for part in reach if part < 0)
    high = sum(part for part in reach if part > 0)
    if array.size == 0:
        return array.copy()
    memory = np.zeros(low + high + array.itemsize, np.uint8)
    copy = np.ndarray(array.shape, array.dtype, memory, low, array.strides)
    copy[...] = array
    return copy


def seeds(count, base):
    """Some seeds, told in the test's name."""
    return [random.Random(base).randrange(10**6) + k for k in range(count)]
