"""Rows of plain loops by machine code that computes one point after another, and that LLVM has not optimised."""

import itertools

import llvmlite.binding as llvm
import numpy as np

from tilewave.context.lru_cache import LruCache
from tilewave.errors import ConfigError
from tilewave.kernel import kernel_code
from tilewave.kernel.compile import ROW, compile_kernel, kernel_key
from tilewave.kernel.emit.emitter import SITES
from tilewave.nest.inner_loops import extents_of
from tilewave.nests.verify.arrays import TimeSteps

#: Fast paths that the code does without: all.
WITHOUT_ALL = (1 << 32) - 1
#: Kernels that were used last, with their code.
_compiled_before = LruCache(16)


def scalar_rows(nest, arrays, scalars, wraps):
    """The `ScalarRows` of a nest, or None where its body is not a row's: the arguments are as there."""
    in_time = any(isinstance(array, TimeSteps) for array in arrays.values())
    if nest.rows or nest.parameters.wholes or len(nest.indices) == in_time:
        return None
    if any(isinstance(arrays[name], TimeSteps) for name in nest.tables):
        return None
    try:
        return ScalarRows(nest, arrays, scalars, wraps)
    except ConfigError:  # a type that only a derived nest has
        return None


class ScalarRows:
    """The rows of one nest's loops.

    Parameters
    ----------
    nest : Nest
    arrays : dict
        By name: an ndarray, or `TimeSteps`.
    scalars : dict
    wraps : dict
        From names of arrays to the extent that each subscript wraps at, or 0.
    """

    def __init__(self, nest, arrays, scalars, wraps):
        self._nest, self._arrays = nest, arrays
        whole = {name: array.at[array.now] if isinstance(array, TimeSteps) else array for name, array in arrays.items()}
        captured = {**nest.captured().values, **extents_of(nest, whole)}
        dtypes = {name: array.dtype for name, array in whole.items()}
        self._kernel, self._engine = _compiled(nest, dtypes, scalars, captured)
        self._row = ROW(self._engine.get_function_address(kernel_code.ROW))
        tables = {name: whole[name] for name in nest.tables}
        self._environment = self._kernel.pack({**scalars, **captured}, tables)
        self._places = [_Place(place, whole[place.array], arrays[place.array], wraps) for place in nest.places]
        self._tables = [table.ctypes.data for table in tables.values()]
        last = nest.indices[-1]
        self._reach = [each.reach(last) for each in self._places if each.reach(last)]

    def run(self, outer, values):
        """Compute a row.

        Parameters
        ----------
        outer : dict
            The values of the loop indices but the last.
        values : range
            Those of the last.

        Raises
        ------
        ArithmeticError
            Where the body raises.
        """
        for part in self._parts(values):
            point = {**outer, self._nest.indices[-1]: part[0]}
            addresses = [place.address(point) for place in self._places] + self._tables
            steps = [place.step(self._nest.indices[-1]) * part.step for place in self._places]
            pointers = np.array(addresses, np.uintp)
            step, index = np.array([*steps, 0], np.int64), np.array([*point.values()], np.int64)
            direction = np.array([0] * len(outer) + [part.step], np.int64)
            ended = self._row(
                pointers.ctypes.data,
                step.ctypes.data,
                len(part),
                index.ctypes.data,
                direction.ctypes.data,
                self._environment.ctypes.data,
            )
            if ended:
                name, message, _ = self._kernel.sites[ended % SITES - 1]
                raise ArithmeticError(f"{name}({message!r}) in row {point}")

    def _parts(self, values):
        """The values in parts within which no subscript begins to wrap."""
        cuts = {0, len(values)}
        for end in {end for reach in self._reach for end in reach}:
            # Values on the near side of it, which come first.
            near = range(values.start, end if values.step > 0 else end - 1, values.step)
            cuts.add(min(len(near), len(values)))
        for begin, end in itertools.pairwise(sorted(cuts)):
            yield values[begin:end]


class _Place:
    """Where a place of the body is in memory."""

    def __init__(self, place, whole, array, wraps):
        first = len(place.axes) - whole.ndim
        phases = place.phases or ((1, 0),) * len(place.axes)
        around = wraps.get(place.array, (0,) * len(place.axes))
        self._subscripts = [
            (axis, offset, scale, start, extent, stride)
            for axis, offset, (scale, start), extent, stride in zip(
                place.axes[first:], place.offsets[first:], phases[first:], around[first:], whole.strides, strict=True
            )
        ]
        self._array, self._time = array, (place.axes[0], place.offsets[0]) if first else None

    def address(self, point):
        """That of its element at a point."""
        array = self._array
        if self._time is not None:
            array = array.at[point[self._time[0]] + self._time[1]]
        at = array.ctypes.data
        for axis, offset, scale, start, extent, stride in self._subscripts:
            x = scale * (point[axis] + offset) + start
            at += stride * (x % extent if extent else x)
        return at

    def step(self, index):
        """Bytes from one value of a loop index to the next."""
        return sum(scale * stride for axis, _, scale, _, _, stride in self._subscripts if axis == index)

    def reach(self, index):
        """The range of a loop index in which its subscript does not wrap; None where it never does."""
        for axis, offset, _, _, extent, _ in self._subscripts:
            if axis == index and extent:
                return -offset, extent - offset
        return None


def _compiled(nest, dtypes, scalars, captured):
    """The kernel of a body that computes one point after another, and LLVM's engine with its code."""
    key = kernel_key(nest, dtypes, scalars, captured=captured)
    if (found := _compiled_before.get(key)) is None:
        kernel = compile_kernel(nest, dtypes, scalars, captured=captured, off=WITHOUT_ALL)
        target = llvm.Target.from_triple(llvm.get_process_triple())
        machine = target.create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1, jit=True
        )
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(kernel._recipe.build().module)), machine)
        engine.finalize_object()
        found = _compiled_before[key] = kernel, engine
    return found
