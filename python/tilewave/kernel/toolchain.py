"""This file has what object code depends on beside a body, its types and choices: files, libraries, the processor."""

import functools
import hashlib
import os
import sys
import time
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from tilewave.kernel.emit import loops
from tilewave.kernel.emit.instructions import features

_LOADED_S = time.time()


def _c_library():
    """Name and version of the C library, which computes what is known at compile time."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):  # another system's
        return sys.platform


@functools.cache
def _makers():
    """Hash of the files that kernels are made by; of a process that is older than one of them, no other's."""
    here, made = Path(__file__).parent, hashlib.sha256()
    paths = sorted([*here.rglob("*.py"), *(here.parent / "nest").glob("*.py")])
    for path in paths:
        made.update(path.read_bytes())
    changed = any(path.stat().st_ctime >= _LOADED_S for path in paths)
    return made.hexdigest() + (f" {os.urandom(8).hex()}" if changed else "")


@functools.cache
def toolchain():
    """All but the body, its types and choices that object code depends on, as text."""
    ties = [loops.zero_tie(name, dtype) for name in loops.TIES for dtype in ("float32", "float64")]
    weak = [
        str((np.dtype(name).type(1) + 1.0).dtype) for name in ("int8", "float32")
    ]  # NumPy's rules of promotion are a switch, too
    return (
        f"tilewave {_makers()}\n"
        f"Python {sys.implementation.cache_tag}, {_c_library()}\n"
        f"llvmlite {llvmlite.__version__}, LLVM {llvm.llvm_version_info}, NumPy {np.__version__} {ties} {weak}\n"
        f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {features().flatten()}\n"
    )
