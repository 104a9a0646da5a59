"""This file has what kernels use of the processor: its vectors, its permutation of bytes, how far ahead it fetches; its
code."""

import contextlib
import ctypes
import functools
import threading

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from tilewave.kernel.emit.instructions import features
from tilewave.kernel.tables.permuted import best_permutation

_ASKING = threading.Lock()  # LLVM takes an option once


def target_machine():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features().flatten(), opt=3, jit=True)


@functools.cache
def _ask_for_sums_in_order():
    """Have LLVM make vectors of loops with a sum in the order of the points, too: of all but the additions."""
    llvm.set_option("", "-force-ordered-reductions")


def _without_lock(name):
    """A function of LLVM for several threads at once, which llvmlite lets in one by one: each has a context of its own,
    so that LLVM shares nothing between them.
    """
    locked, function = getattr(ffi.lib, name), getattr(ctypes.CDLL(ffi.lib._name, handle=ffi.lib._handle), name)
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


def object_code(text):
    """The object code of an LLVM module, from its text. Threads may call it at the same time."""
    machine = target_machine()
    module = optimised(text, machine)
    with contextlib.closing(module), ffi.OutputString() as error:
        code = _without_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, error)
        if not code:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(code), ffi.lib.LLVMPY_GetBufferSize(code))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(code)


def optimised(text, machine):
    """An LLVM module from its text, optimised for a target machine."""
    with _ASKING:
        _ask_for_sums_in_order()
    parsed = llvm.parse_assembly(text, llvm.create_context())
    try:
        parsed.verify()
        tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        tuning.loop_vectorization = True
        tuning.slp_vectorization = True
        passes = llvm.create_pass_builder(machine, tuning)
        _without_lock("LLVMPY_RunNewModulePassManager")(passes.getModulePassManager(), parsed, passes)
    except BaseException:
        parsed.close()  # before its context: an error's traceback would keep both until the garbage collector comes
        raise
    return parsed


@functools.cache
def vector_bytes():
    """Size of a vector register; of AVX-512's, LLVM prefers the half."""
    return 32 if features().get("avx2") else 16


@functools.cache
def in_place_bytes():
    """Size of the vectors of rows that stay in registers (`rows_in_place`): AVX-512's own."""
    return 64 if features().get("avx512f") else vector_bytes()


@functools.cache
def permutation():
    """The processor's permutation of bytes; None where no instruction for it is known here."""
    return best_permutation(features())


@functools.cache
def lane_bytes():
    """Size of the vectors that rows of dependent points become the lanes of.

    Zen 5 works on 64 bytes at once: 8x64x256 doubles of one, two and four arrays 0.36, 0.52 and 0.93 ns a point, with
    these 0.32, 0.46 and 0.77. A Xeon has one port to shuffle them: two vectors of 32 bytes are quicker
    (decisions/0006).
    """
    long = llvm.get_host_cpu_name() == "znver5" and features().get("avx512f")
    return 64 if long else vector_bytes()


@functools.cache
def ahead_bytes():
    """How far ahead rows of dependent points ask for the memory that they write; 0: they do not.

    Stores to eight rows with a page or more between them wait for their lines. Measured on processors with AVX-512 only
    (Xeon, 48 KB of 12-way cache; 64x64x16384 floats 0.38 and 0.34 ns a point, 2048x2048 doubles 0.36 and 0.31, the same
    with 128 to 512 bytes)."""
    return 256 if features().get("avx512f") else 0
