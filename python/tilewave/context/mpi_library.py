"""Which MPI library this process uses, and the launch that the process belongs to."""

import contextlib
import ctypes
import importlib.util
import os
import re
import sys
from pathlib import Path

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.launch import launchers
from tilewave.launch.variables import SIZE_VARIABLES

# A process started by some mpiexec carries one of these; without any, one rank needs no MPI.
LAUNCH_VARIABLES = ("PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")
# What MPICH's wheel brings: its MPI, and what that needs, each file after those that it needs.
MPI_OF = {"_mpi_abi": "libmpi_abi.so.1", "_mpi_mpich": "libmpi.so.12"}
BROUGHT = ("libucm.so.0", "libucs.so.0", "libuct.so.0", "libucp.so.0", "libfabric.so.1")


def launched():
    """Whether this process is one of those that a launcher started; a program that one of them started is none."""
    if not (_core.mpi_started() or _mpi4py_has_started()):
        launchers.leave_launch_of_parent()
    return any(name in os.environ for name in LAUNCH_VARIABLES) or _core.mpi_started() or _mpi4py_has_started()


def _mpi4py_has_started():
    return "mpi4py.MPI" in sys.modules and sys.modules["mpi4py.MPI"].Is_initialized()


def loaded_libraries(names):
    """Paths of the loaded libraries whose file names begin with this regular expression."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return set()
    return set(re.findall(rf"(/\S.*/(?:{names})[\w-]*\.so[.\d]*)$", maps, re.MULTILINE))


def _mpi_library():
    """The transport for the MPI that this process holds, or will: a process can hold only one."""
    here = Path(_core.__file__).parent
    found = {path.stem.removeprefix("_mpi_"): path for path in here.glob("_mpi_*.so")}
    if "system" in found:
        return found["system"]
    wanted = os.environ.get("TILEWAVE_MPI_ABI")
    if wanted is not None and wanted not in found:
        raise ConfigError(f"TILEWAVE_MPI_ABI is {wanted!r}; allowed: {', '.join(sorted(found))}")
    loaded = {os.path.basename(path) for path in loaded_libraries("libmpi")}
    if any(name.startswith("libmpi.so.12") for name in loaded):
        return found["mpich"]
    if any(name.startswith("libmpi_abi") for name in loaded):
        return found["abi"]
    if other := [name for name in loaded if name.startswith("libmpi.so")]:
        raise ConfigError(
            f"this process has loaded {other[0]}, an MPI of another ABI; this build of Tilewave uses "
            "MPICH's or the MPI-5 standard ABI: build it with --config-settings=cmake.define.TILEWAVE_MPI=system"
        )
    if wanted is not None:
        return found[wanted]
    # A later `import mpi4py.MPI` must find the library that it would load, not a second MPI.
    return found["mpich" if importlib.util.find_spec("mpi4py") else "abi"]


def load_mpi():
    """Load the MPI that this process holds or will hold; more than once is fine."""
    library = _mpi_library()
    if not (_core.mpi_started() or _mpi4py_has_started()):
        if library.stem != "_mpi_system":
            launchers.refuse_others()
            _load_brought(library)
        launchers.refuse_copies()
        launchers.mark_rank()
        for call in launchers.before_start:
            call()
    _core.load_mpi(str(library))


def _load_brought(library):
    """Load the environment's MPI and what it needs by their paths: in LD_LIBRARY_PATH there may be others, too old."""
    if loaded_libraries("libmpi"):
        return
    folder = library.parents[3]  # as the run path of `library` says
    for name in (*(f"mpich/{name}" for name in BROUGHT), MPI_OF[library.stem]):
        with contextlib.suppress(OSError):  # another build brings other files; what is missing, `library` says
            ctypes.CDLL(str(folder / name))


def check_launch_size(comm):
    if comm is not None:
        return
    size = _core.mpi_info()["size"]
    for name in SIZE_VARIABLES:
        ranks = os.environ.get(name, "")
        if ranks.isdigit() and int(ranks) > 1 and size == 1:
            raise ConfigError(
                f"this process was launched as one of {ranks} ({name}), but the MPI library "
                f"{_core.mpi_info()['path']} sees a world of 1: its mpiexec is another; use "
                "`tilewave run`, or build with --config-settings=cmake.define.TILEWAVE_MPI=system"
            )


def launch_size():
    return max(int(ranks) for name in ("", *SIZE_VARIABLES) if (ranks := os.environ.get(name, "1")).isdigit())
