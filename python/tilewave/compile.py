"""Turns the body of a nest into machine code for one row of points.

The C signature of a row function, which is all that the engine knows of a kernel::

    int64 row(char* const* pointers, int64 count, const int64* index, const void* scalars)

``pointers[0]`` is the written array at the row's first point and ``pointers[1 + a]`` the read
access ``kernel.accesses[a]`` there; all advance by one element a point. ``index`` is the first
point; ``scalars`` has one 8-byte slot for each scalar. The points are computed in increasing
order. The result is 0, or ``point * 4096 + site`` where the body raised: the points before are
stored, and ``kernel.sites[site - 1]`` says what was raised.

The result is that of nested Python loops over NumPy arrays, bit for bit (the sign and payload of
a NaN aside). The types of all values are inferred by NumPy's own rules, also where a value may have
one of several, as ``max(A[i, j], 0)`` has; LLVM computes exactly the operations that the body
names. NumPy's exponentials and their kin are called one element at a time from NumPy's own loops.

Four limits beside what is refused at compile time; each raises in the point where it is met, as
the body's own exceptions do. A Python int (an index, a scalar, ``int(x)``) has 64 bits; with a
Python float in a comparison, or in a quotient of two ints, 53. A loop index that is used as a
number is at most 2**30. A Python float to a fractional power that Python would make complex.

A body that assigns its element on some paths only writes the old value back on the others.
"""

import ctypes

import llvmlite.binding as llvm
import numpy as np

from .body.kernel_code import build_row
from .body.scalars import Slot, pack
from .body.typing import SUPPORTED
from .errors import ConfigError

DTYPES = tuple(dtype for dtype in SUPPORTED if dtype.kind != "b")

#: The C type of a row function, for ctypes.
ROW = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
)


class Kernel:
    """A compiled body.

    Attributes
    ----------
    address : int
        The row function, a C function pointer; valid as long as the kernel lives.
    accesses : tuple
        ``(array, offsets)`` of each pointer after the first; equals ``nest.accesses``.
    sites : tuple of (str, str, int)
        Exception name, message and source line of each place where the body may raise.
    slots : tuple of Slot
        Name and type of each scalar.
    """

    def __init__(self, nest, row, slots, fastmath):
        self.nest = nest
        self.accesses = nest.accesses
        self.sites = tuple(row.sites)
        self.slots = slots
        self.fastmath = fastmath
        self.address, self._engine, self._module = _machine_code(row.module, row.name)

    def pack_scalars(self, values=None):
        """The scalars as the row function wants them: pass the address, keep the array alive.

        Parameters
        ----------
        values : dict, optional
            Defaults of the nest stand for what is missing.

        Returns
        -------
        numpy.ndarray
            Of int64, one element for each scalar and at least one.

        Raises
        ------
        ConfigError
            For a value of another type than the kernel was compiled for.
        """
        return pack(self.nest, self.slots, values or {})

    def assembly(self):
        """The machine code as text, to look at."""
        return _target_machine().emit_assembly(self._module)


def compile_kernel(nest, dtype_of, scalars=None, fastmath=False):
    """Compile a nest's body for the given types.

    Parameters
    ----------
    nest : Nest
    dtype_of : dict
        From array name to dtype: float32, float64, int32 or int64.
    scalars : dict, optional
        Values of the scalars. Only their types are compiled in, and for a Python int whether it
        fits in 32 bits.
    fastmath : bool
        Allow reordering, fused operations and the C library's functions in place of NumPy's;
        results are then no longer those of plain loops to the last bit.

    Returns
    -------
    Kernel

    Raises
    ------
    ConfigError
        Naming file, line and column of an operation that has no exact translation for these types.
    """
    dtypes = _checked_dtypes(nest, dtype_of)
    slots = _slots(nest, scalars)
    row = build_row(nest, dtypes, slots, nest.constants(), bool(fastmath))
    return Kernel(nest, row, slots, bool(fastmath))


def kernel_key(nest, dtype_of, scalars=None, fastmath=False):
    """A hashable value that is equal exactly where a compiled kernel can be used again."""
    dtypes = _checked_dtypes(nest, dtype_of)
    names = tuple(dtypes[name].name for name in nest.arrays)
    return nest.signature(), names, _slots(nest, scalars), bool(fastmath)


def _slots(nest, scalars):
    values = nest.bind_scalars(scalars or {})
    return tuple(Slot.of(name, value) for name, value in values.items())


def _checked_dtypes(nest, dtype_of):
    checked = {}
    for name in nest.arrays:
        if name not in dtype_of:
            raise ConfigError(f"nest {nest.name!r} needs the dtype of its array {name!r}")
        dtype = np.dtype(dtype_of[name])
        if dtype not in DTYPES or not dtype.isnative:
            raise ConfigError(
                f"array {name!r} of nest {nest.name!r} has dtype {dtype}; "
                f"allowed: {', '.join(each.name for each in DTYPES)}"
            )
        checked[name] = dtype
    return checked


def _target_machine():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(),
        opt=3, jit=True,
    )


def _machine_code(module, name):
    """(address, engine, optimised module) of a function of an LLVM module."""
    machine = _target_machine()
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    tuning.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(parsed, passes)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return engine.get_function_address(name), engine, parsed
