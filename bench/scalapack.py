"""ScaLAPACK libraries as contenders: MKL's and Debian's, found at run time and called through ctypes.

MKL's is that of the wheel `mkl`, Debian's of the packages `libscalapack-mpich2.2` and `libopenblas0-serial` (or
-pthread). Both call the MPI library of this process. They are looked for in the folders that TILEWAVE_CONTENDERS names
(separated by colons; roots of environments or of unpacked packages), in this Python's environment and in /usr.
"""

import contextlib
import ctypes
import os
import re
import tempfile
from pathlib import Path

import numpy as np

from bench.contenders import VARIABLE, roots, skipped

MKL, DEBIAN = "MKL", "ScaLAPACK with OpenBLAS"
#: In the order in which they are loaded: each finds what it lacks in those before and after it.
MKL_FILES = ("core", "sequential", "intel_lp64", "blacs_intelmpi_lp64", "scalapack_lp64")
#: The names by which Debian's libraries ask for each other, and where they are.
DEBIAN_FILES = {
    "libblas.so.3": "openblas-*/libblas.so.3",
    "liblapack.so.3": "openblas-*/liblapack.so.3",
    "libscalapack.so": "libscalapack-mpich.so.2*",
}
SEARCHED = "LD_LIBRARY_PATH"
DEEP = getattr(os, "RTLD_DEEPBIND", 0)


def _mkl_files():
    """Paths of MKL's libraries, whose versions are numbered by file; None where one is missing."""
    for root in roots():
        found = [sorted(root.glob(f"lib/libmkl_{name}.so.[0-9]*")) for name in MKL_FILES]
        if all(found):
            return [paths[0] for paths in found]
    return None


def _debian_files():
    """{name: path} of Debian's libraries; None where one is missing."""
    for root in roots():
        folder = root / "usr" / "lib" / "x86_64-linux-gnu"
        found = {name: path for name, where in DEBIAN_FILES.items() for path in sorted(folder.glob(where))[:1]}
        if len(found) == len(DEBIAN_FILES):
            return found
    return None


def _mpi_library():
    """Path of the MPI library that this process has loaded."""
    from mpi4py import MPI  # noqa: F401

    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if re.search(r"/libmpi(ch)?\.so\.12", path):
            return path
    raise OSError("the MPI library is no libmpi.so.12")


@contextlib.contextmanager
def environment():
    """Environment variables of ranks that call the libraries: the loader finds Debian's under their usual names."""
    from tilewave.launch.launch import find_mpiexec

    with tempfile.TemporaryDirectory(prefix="tilewave-bench.") as folder:
        found = _debian_files() or {}
        for name, path in found.items():
            (Path(folder) / name).symlink_to(path)
        mpi = Path(find_mpiexec()).resolve().parent.parent / "lib" / "libmpi.so.12"
        if found and mpi.exists():
            # Debian's MPICH has the same binary interface under this name. The ranks have loaded this file before.
            (Path(folder) / "libmpich.so.12").symlink_to(mpi)
        before = dict(os.environ)
        path = [folder, *{str(p.resolve().parent) for p in found.values()}, *filter(None, [before.get(SEARCHED)])]
        os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
        os.environ[SEARCHED] = ":".join(path)
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # a core type of the system's slows a current library
            os.environ.pop(name, None)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def here():
    """Names of the libraries that are there."""
    return [name for name, found in ((DEBIAN, _debian_files()), (MKL, _mkl_files())) if found]


def load(quiet=False):
    """The libraries that are there, by name; says why another one is not unless it is `quiet`."""
    found = {}
    for name, make in ((DEBIAN, _load_debian), (MKL, _load_mkl)):  # MKL's symbols are seen by all that comes later
        try:
            found[name] = make()
        except OSError as error:
            if not quiet:
                skipped(name, error)
    return found


def _load_mkl():
    files = _mkl_files()
    if files is None:
        raise OSError(f"no libmkl_scalapack_lp64.so (pip install mkl, anywhere; {VARIABLE}=FOLDER)")
    ctypes.CDLL(_mpi_library(), mode=ctypes.RTLD_GLOBAL)
    return Scalapack([ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL | os.RTLD_LAZY) for file in files])


def _load_debian():
    found = _debian_files()
    if found is None:
        raise OSError(f"no libscalapack-mpich.so (apt install libscalapack-mpich2.2 libopenblas0-serial; {VARIABLE})")
    return Scalapack([ctypes.CDLL(str(found["libscalapack.so"]), mode=os.RTLD_LAZY | os.RTLD_LOCAL | DEEP)])


class Scalapack:
    """A library's grids and functions, doubles only."""

    def __init__(self, files):
        self._files, self._grids = files, {}

    def _call(self, name, *arguments):
        """A Fortran subroutine: all arguments by reference, lengths of strings behind."""
        given, lengths = [], []
        for a in arguments:
            if isinstance(a, bytes):
                given.append(ctypes.c_char_p(a))
                lengths.append(ctypes.c_size_t(len(a)))
            elif isinstance(a, np.ndarray):
                given.append(ctypes.c_void_p(a.ctypes.data))
            else:
                given.append(a if hasattr(a, "_obj") else ctypes.byref(a))
        function = next(getattr(file, f"{name}_") for file in self._files if hasattr(file, f"{name}_"))
        function.restype = None
        function(*given, *lengths)

    def grid(self, rows, columns):
        """The BLACS context of a grid of all ranks, in row-major order."""
        if (rows, columns) not in self._grids:
            context = ctypes.c_int()
            self._call("blacs_get", ctypes.c_int(-1), ctypes.c_int(0), context)
            self._call("blacs_gridinit", context, b"R", ctypes.c_int(rows), ctypes.c_int(columns))
            self._grids[rows, columns] = context.value
        return self._grids[rows, columns]

    def pdgemm(self, n, a, b, c):
        """C = A B of three (descriptor, local part)."""
        size, one, zero, at = ctypes.c_int(n), ctypes.c_double(1.0), ctypes.c_double(0.0), ctypes.c_int(1)
        operands = [(local, at, at, descriptor) for descriptor, local in (a, b, c)]
        self._call("pdgemm", b"N", b"N", size, size, size, one, *operands[0], *operands[1], zero, *operands[2])

    def pdpotrf(self, n, a):
        """The lower Cholesky factor in place; LAPACK's info."""
        (descriptor, local), info, at = a, ctypes.c_int(), ctypes.c_int(1)
        self._call("pdpotrf", b"L", ctypes.c_int(n), local, at, at, descriptor, info)
        return info.value

    def pdgetrf(self, n, a):
        """LU factors in place; LAPACK's info."""
        (descriptor, local), info, at, size = a, ctypes.c_int(), ctypes.c_int(1), ctypes.c_int(n)
        pivots = np.zeros(local.shape[0] + int(descriptor[4]), np.int32)
        self._call("pdgetrf", size, size, local, at, at, descriptor, pivots, info)
        return info.value

    def pdgeqrf(self, n, a):
        """QR factors in place; LAPACK's info."""
        (descriptor, local), info, at, size = a, ctypes.c_int(), ctypes.c_int(1), ctypes.c_int(n)
        tau, work = np.zeros(local.shape[1] + int(descriptor[5])), np.zeros(1)
        for length in (-1, None):  # the first call says how much work space the second needs
            words = ctypes.c_int(int(work[0]) if length is None else length)
            work = work if length else np.zeros(max(1, words.value))
            self._call("pdgeqrf", size, size, local, at, at, descriptor, tau, work, words, info)
        return info.value
