"""Which BLAS and LAPACK the tasks of matrices call, and how fast it is."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
from pathlib import Path

from tilewave import _core
from tilewave.errors import ConfigError

#: Names the library: a path, "openblas" or "mkl".
VARIABLE = "TILEWAVE_BLAS"

_chosen = None  # what use_blas() was given


def use_blas(library: str | None = None) -> str:
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
    Not collective. The library runs one thread in each lane. NumPy's and SciPy's libraries and their threads stay as
    they are.
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


@functools.cache
def _openblas():
    package = importlib.util.find_spec("scipy_openblas32")  # to import it would load the library, with threads
    if package is None or package.origin is None:
        raise ConfigError(
            f"BLAS: the package scipy-openblas32 is missing; allowed: pip install scipy-openblas32, or a library by "
            f"{VARIABLE}=PATH"
        )
    return str(Path(package.origin).parent / "lib" / "libscipy_openblas.so")


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
