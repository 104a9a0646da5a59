"""Which MPI library this process uses, and the launch that the process belongs to."""

import contextlib
import ctypes
import importlib.util
import os
import sys
from pathlib import Path

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.launch import launchers, which_mpi
from tilewave.launch.variables import SIZE_VARIABLES, number

# A process started by some mpiexec carries one of these; without any, one rank needs no MPI.
LAUNCH_VARIABLES = ("PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")


def launched():
    """Return whether a launcher started this process; a program that one of its processes started is none."""
    if not (_core.mpi_started() or _mpi4py_has_started()):
        launchers.leave_launch_of_parent()
    return any(name in os.environ for name in LAUNCH_VARIABLES) or _core.mpi_started() or _mpi4py_has_started()


def _mpi4py_has_started():
    return "mpi4py.MPI" in sys.modules and sys.modules["mpi4py.MPI"].Is_initialized()


def load_mpi():
    """Load the MPI that this process holds or will hold, and the transport for it; more than once is fine.

    Raises
    ------
    ConfigError
        Where none fits what started this process, the same on every rank; or what the user asks for cannot be had.
    """
    global _transport
    if _transport is None:
        _transport = _load()
    _core.load_mpi(_transport)


_transport = None  # path of the library that was loaded for the MPI of this process


def _load():
    system = Path(_core.__file__).with_name("_mpi_system.so")
    path = None if system.exists() else _choose()
    if not (_core.mpi_started() or _mpi4py_has_started()):
        if path:
            launchers.refuse_others(path)
        launchers.refuse_copies()
        launchers.mark_rank()
        for call in launchers.before_start:
            call()
    if path is None:
        return str(system)
    return str(system.with_name(f"_mpi_{_abi_of(which_mpi.load_all(path), path)}.so"))


def _choose():
    """Path of the MPI that this process holds, or will: it can hold only one."""
    given, held = which_mpi.given(), which_mpi.loaded_mpi()
    if held:
        if given and not os.path.samefile(given, held):
            raise ConfigError(
                f"{which_mpi.SETTING} asks for {given}, and this process has loaded {held}; set MPI4PY_LIBMPI to the "
                "same path, or import tilewave and make a context before mpi4py.MPI is imported"
            )
        return held
    if given:
        return given
    by, its = launchers.connected_by(), which_mpi.of_mpi4py()
    if its and (by is None or (by == "PMIx") == which_mpi.is_open(its)):
        return its
    if by == "PMIx" and (path := which_mpi.of_launcher()):
        return path
    # Wheels of mpi4py take MPICH's own interface; those that take the standard's, too.
    names = which_mpi.KINDS["mpich"][0]
    # tilewave/_core.so -> site-packages -> python3.x -> lib, of this user for example: there the wheel puts its MPI.
    lib = list(Path(_core.__file__).parents)[3:4]
    if path := which_mpi.brought(names[1:] if importlib.util.find_spec("mpi4py") else names, lib):
        return path
    raise ConfigError(
        f"there is no MPI in {sys.prefix} or where the system looks for libraries; install the Python package 'mpich', "
        f"or set {which_mpi.SETTING} to the path of an MPI library"
    )


def _abi_of(library, path):
    """The binary interface of a loaded MPI: abi, mpich or openmpi."""
    with contextlib.suppress(AttributeError):
        major, minor = ctypes.c_int(0), ctypes.c_int(0)
        if library.MPI_Abi_get_version(ctypes.byref(major), ctypes.byref(minor)) == 0 and major.value > 0:
            return "abi"
    if hasattr(library, "ompi_mpi_comm_world"):
        return "openmpi"
    if hasattr(library, "MPI_Ibarrier") and hasattr(library, "MPIR_Dup_fn"):  # MPICH's header has named it since 1.2
        return "mpich"
    raise ConfigError(
        f"{path} is no MPI library that Tilewave knows: allowed are Open MPI 4 and 5, MPICH 3.2 and newer and what has "
        "its interface, and those with the standard ABI of MPI 5; others need a build with "
        "--config-settings=cmake.define.TILEWAVE_MPI=system"
    )


def check_launch_size(comm):
    if comm is not None:
        return
    size = _core.mpi_info()["size"]
    for name in SIZE_VARIABLES:
        ranks = os.environ.get(name, "")
        if (number(ranks) or 1) > 1 and size == 1:
            raise ConfigError(
                f"this process was launched as one of {ranks} ({name}), but the MPI library "
                f"{_core.mpi_info()['path']} sees a world of 1: its mpiexec is another; use `tilewave run`, that "
                f"MPI's own mpiexec, or {which_mpi.SETTING}=PATH with the library of the mpiexec that you use"
            )


def launch_size():
    return max(number(os.environ.get(name, "1")) or 1 for name in ("", *SIZE_VARIABLES))
