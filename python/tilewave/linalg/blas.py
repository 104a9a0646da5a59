"""Which BLAS and LAPACK the tasks of matrices call, and how fast it is."""

import functools
import math
import os
import sys
import sysconfig
from pathlib import Path

from tilewave import _core
from tilewave.errors import ConfigError

#: Names the library: a path, "openblas" or "mkl".
VARIABLE = "TILEWAVE_BLAS"
#: Times of a copy are the best of so many.
TIMES = 3
#: A product of more is measured with fewer rows or columns: so many flops take less than 10 ms.
MOST_FLOPS = 4e8
#: Of each operand of a product that is measured: more than the caches hold.
MOST_BYTES = 48 << 20

_chosen = None  # what use_blas() was given


def use_blas(library=None):
    """Choose the library that products and factorizations call from now on in this process.

    Parameters
    ----------
    library : str, optional
        "openblas": that of the package scipy-openblas32; "mkl": that of the package mkl; or the path of a shared
        library whose integers have 32 bits. Default: the environment variable TILEWAVE_BLAS, else "openblas".

    Returns
    -------
    str
        The path of the library.

    Raises
    ------
    ConfigError
        When there is none, or it lacks a function.

    Notes
    -----
    Not collective. The library runs one thread in each lane. NumPy's and SciPy's own libraries and their threads stay
    as they are.
    """
    global _chosen
    if library is not None and not isinstance(library, str | os.PathLike):
        raise ConfigError(f"use_blas: given {type(library).__name__}; allowed: a path, 'openblas', 'mkl' or None")
    found = _load(_path(None if library is None else os.fspath(library)))
    _chosen = None if library is None else os.fspath(library)
    return found.path


def blas():
    """The library, loaded at first use."""
    return _load(_path(_chosen))


def _path(given):
    name = given or os.environ.get(VARIABLE) or "openblas"
    if name == "openblas":
        return _openblas()
    if name == "mkl":
        return _mkl()
    return name


def _openblas():
    try:
        import scipy_openblas32
    except ImportError:
        raise ConfigError(
            f"BLAS: the package scipy-openblas32 is missing; allowed: pip install scipy-openblas32, or a library by "
            f"{VARIABLE}=PATH"
        ) from None
    return str(Path(scipy_openblas32.__file__).parent / "lib" / "libscipy_openblas.so")


def _mkl():
    folders = [Path(sys.prefix) / "lib", Path(sysconfig.get_path("purelib")).parent.parent]
    found = [path for folder in folders for path in sorted(folder.glob("libmkl_rt.so*"))]
    if not found:
        raise ConfigError(
            f"BLAS: no libmkl_rt.so in {', '.join(map(str, folders))}; allowed: pip install mkl, or {VARIABLE}=PATH"
        )
    return str(found[-1])


@functools.cache
def _load(path):
    return _core.linalg.Blas.load(path)


@functools.cache
def _product_rate(path, dtype, piece, whole, by_rows, adds):
    seconds = _load(path).time_piece(dtype, piece, whole, by_rows, adds)
    return seconds / (2.0 * math.prod(piece))


def product_rate(dtype, rows, columns, depth, whole=None, by_rows=False, adds=False):
    """The rate of products of this shape on one lane, measured at first use.

    Parameters
    ----------
    dtype : numpy.dtype
    rows, columns, depth : int
        Of a product of rows x depth by depth x columns.
    whole : (int, int), optional
        Rows and columns of the product that this one is a piece of: what it reads lies in memory as far apart as there.
        Default: it is no piece.
    by_rows : bool
        How the second operand lies.
    adds : bool
        To what the result holds.

    Returns
    -------
    OperationRate
        Of the core: seconds a call, and a flop.

    Notes
    -----
    Pieces that follow each other are measured, one call each. A piece that is repeated finds its operands in the cache:
    pieces of 62 x 128 x 3000 out of 1500 x 128 x 3000 ran at 34 GFlop/s where that said 42.
    """
    shape = [max(1, _rounded(n)) for n in (rows, columns, depth)]
    whole = shape[:2] if whole is None else [max(1, _rounded(n)) for n in whole]
    while 2.0 * math.prod(shape) > MOST_FLOPS and max(shape) > 1:
        longest = shape.index(max(shape))
        shape[longest] = max(1, shape[longest] // 2)
    # The operands in memory: fewer rows and columns than the whole has where they would be too many.
    most = max(1, MOST_BYTES // (dtype.itemsize * shape[2]))
    whole = [max(n, min(many, most)) for n, many in zip(shape[:2], whole, strict=True)]
    if math.prod(whole) * dtype.itemsize > MOST_BYTES:
        whole[1] = max(shape[1], MOST_BYTES // (dtype.itemsize * whole[0]))
    key = tuple(shape), tuple(whole), by_rows, adds
    return _core.OperationRate(1e-6, _product_rate(_path(_chosen), dtype.name, *key))


def _rounded(n):
    """To two binary digits behind the first: shapes that are nearly alike share a measurement."""
    step = 1 << max(0, n.bit_length() - 3)
    return (n + step // 2) // step * step


@functools.cache
def _copy_rate(dtype):
    rows = columns = 512
    bytes_moved = rows * columns * dtype.itemsize
    return _core.linalg.time_copy(dtype.name, rows, columns, TIMES) / bytes_moved


def copy_rate(dtype):
    """The rate of copies that turn a block of a matrix: seconds a call, and a byte."""
    return _core.OperationRate(1e-6, _copy_rate(dtype))
