"""Which MPI library this process uses, and the launch that the process belongs to."""

import importlib.util
import os
import re
import sys
from pathlib import Path

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.launch import launchers

# A process started by some mpiexec carries one of these; without any, one rank needs no MPI.
LAUNCH_VARIABLES = ("PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


def launched():
    return any(name in os.environ for name in LAUNCH_VARIABLES) or _core.mpi_started() or _mpi4py_has_started()


def _mpi4py_has_started():
    return "mpi4py.MPI" in sys.modules and sys.modules["mpi4py.MPI"].Is_initialized()


def _loaded_libraries():
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return set()
    return set(re.findall(r"/(libmpi[\w-]*\.so[.\d]*)$", maps, re.MULTILINE))


def _mpi_library():
    """The transport for the MPI that this process holds, or will: a process can hold only one."""
    here = Path(_core.__file__).parent
    found = {path.stem.removeprefix("_mpi_"): path for path in here.glob("_mpi_*.so")}
    if "system" in found:
        return found["system"]
    wanted = os.environ.get("TILEWAVE_MPI_ABI")
    if wanted is not None and wanted not in found:
        raise ConfigError(f"TILEWAVE_MPI_ABI is {wanted!r}; allowed: {', '.join(sorted(found))}")
    loaded = _loaded_libraries()
    if any(name.startswith("libmpi.so.12") for name in loaded):
        return found["mpich"]
    if any(name.startswith("libmpi_abi") for name in loaded):
        return found["abi"]
    if other := [name for name in loaded if name.startswith("libmpi.so")]:
        raise ConfigError(
            f"this process has loaded {other[0]}, an MPI of another ABI; Tilewave's own build uses "
            "MPICH's or the MPI-5 standard ABI: build it with --config-settings=cmake.define.TILEWAVE_MPI=system"
        )
    if wanted is not None:
        return found[wanted]
    # A later `import mpi4py.MPI` must find its own library in use, not a second MPI.
    return found["mpich" if importlib.util.find_spec("mpi4py") else "abi"]


def load_mpi():
    """Load the MPI that this process holds or will hold; more than once is fine."""
    library = _mpi_library()
    if not (_core.mpi_started() or _mpi4py_has_started()):
        if library.stem != "_mpi_system":
            launchers.refuse_others()
        launchers.look_around()
    _core.load_mpi(str(library))


def check_launch_size(comm):
    if comm is not None:
        return
    size = _core.mpi_info()["size"]
    for name in SIZE_VARIABLES:
        told = os.environ.get(name, "")
        if told.isdigit() and int(told) > 1 and size == 1:
            raise ConfigError(
                f"this process was launched as one of {told} ({name}), but the MPI library "
                f"{_core.mpi_info()['path']} sees a world of 1: its mpiexec is another; use "
                "`tilewave run`, or build with --config-settings=cmake.define.TILEWAVE_MPI=system"
            )


def launch_size():
    return max(int(told) for name in ("", *SIZE_VARIABLES) if (told := os.environ.get(name, "1")).isdigit())
