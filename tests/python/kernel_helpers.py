"""Drives compiled kernels over boxes and compares them with plain loops."""

import ctypes
import itertools
import random

import numpy as np

from tilewave.compile import ROW, compile_kernel


#: Parts of the messages with which a kernel refuses, in a point, what plain Python would compute.
LIMITS = ("is complex: not supported", "beyond 64 bits", "beyond 2**53")


class Raised(Exception):
    """What a kernel reported: the site's exception and the global point."""

    def __init__(self, name, message, point):
        super().__init__(f"{name}: {message} at {point}")
        self.name, self.message, self.point = name, message, point


def run_box(kernel, box, arrays, scalars=None, cut=None):
    """Run a kernel over a box row by row, first index outermost.

    ``cut`` splits rows into pieces of at most that many points.
    """
    nest = kernel.nest
    row = ROW(kernel.address)
    packed = kernel.pack_scalars(scalars)
    low, high = box[-1]
    written = arrays[nest.written]
    targets = [(written, (0,) * nest.rank)]
    targets += [(arrays[name], offsets) for name, offsets in kernel.accesses]
    pointers = (ctypes.c_void_p * len(targets))()
    index = (ctypes.c_int64 * nest.rank)()
    for outer in itertools.product(*(range(first, end) for first, end in box[:-1])):
        for start in range(low, high, cut or max(1, high - low)):
            count = min(high - start, cut or high - low)
            point = (*outer, start)
            for k, (array, offsets) in enumerate(targets):
                assert array.strides[-1] == array.itemsize
                place = sum((p + o) * s for p, o, s in zip(point, offsets, array.strides))
                pointers[k] = array.ctypes.data + place
            index[:] = point
            code = row(ctypes.addressof(pointers), count, ctypes.addressof(index),
                       packed.ctypes.data)
            if code:
                name, message, _ = kernel.sites[code % 4096 - 1]
                raise Raised(name, message, (*outer, start + code // 4096))


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
    if dtype.kind == "i":
        small = rng.integers(-9, 10, shape)
        info = np.iinfo(dtype)
        large = rng.integers(info.min, info.max, shape, endpoint=True)
        return np.where(rng.random(shape) < 0.3, large, small).astype(dtype)
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    values = np.where(rng.random(shape) < 0.3, np.round(values), values)
    odd = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], shape)
    with np.errstate(all="ignore"):
        return np.where(rng.random(shape) < special, odd, values).astype(dtype)


def compare(nest, dtypes, shape, scalars=None, seed=0, special=0.08, arrays=None, cut=None):
    """Run a nest both ways on random arrays: same bits, same exception, same points before it."""
    rng = np.random.default_rng(seed)
    if arrays is None:
        arrays = {name: random_array(rng, shape, dtypes[name], special) for name in nest.arrays}
    expected = {name: array.copy() for name, array in arrays.items()}
    got = {name: array.copy() for name, array in arrays.items()}
    box = nest.iteration_box(shape)
    context = f"nest {nest.name}, dtypes {dtypes}, scalars {scalars}, seed {seed}"
    kernel = compile_kernel(nest, dtypes, scalars)
    expected_error = got_error = None
    try:
        nest.reference(box, expected, scalars)
    except Exception as error:  # the body's own
        expected_error = error
    try:
        run_box(kernel, box, got, scalars, cut)
    except Raised as error:
        got_error = error
        if any(limit in error.message for limit in LIMITS):
            return kernel
    if expected_error is None or got_error is None:
        assert expected_error is None and got_error is None, \
            f"{context}: loops {expected_error!r}, kernel {got_error}"
    else:
        assert type(expected_error).__name__ == got_error.name, \
            f"{context}: loops {expected_error!r}, kernel {got_error}"
    for name in nest.arrays:
        left, right = bits(expected[name]), bits(got[name])
        if not np.array_equal(left, right):
            where = np.argwhere(left != right)[0]
            at = tuple(where)
            raise AssertionError(
                f"{context}: {name}{list(map(int, at))}: loops {expected[name][at]!r}, "
                f"kernel {got[name][at]!r}; {len(np.argwhere(left != right))} differ"
            )
    return kernel


def seeds(count, base):
    """Some seeds, told in the test's name."""
    return [random.Random(base).randrange(10**6) + k for k in range(count)]
