"""Where a run happens: ranks, threads, and how ranks agree on errors."""
import atexit
import importlib.util
import os
import re
import signal
import sys
import threading
import warnings
import weakref
from pathlib import Path

from tilewave import _core, planning
from tilewave.errors import ConfigError, InternalError, KernelError, MpiError

# A process started by some mpiexec carries one of these; without any, one rank needs no MPI.
LAUNCH_VARIABLES = ("PMI_RANK", "PMI_SIZE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE")
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
ERRORS = (ConfigError, KernelError, MpiError, InternalError)
KINDS = {ConfigError: "config", KernelError: "kernel", MpiError: "mpi"}


class Context:
    """A group of ranks with some threads each; collective to make.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        The ranks of this communicator (it is duplicated). Default: all ranks of the launch, or
        this process alone when nothing launched it.
    threads : int, optional
        Lanes of each rank. Default: the environment variable TILEWAVE_THREADS, else 1.

    Raises
    ------
    ConfigError
        When ``threads`` is no positive integer or ``comm`` belongs to another MPI library.
    MpiError
        When MPI cannot be started.

    Notes
    -----
    Collective over the ranks; costs a gather of host names. More threads than CPUs is a warning.
    """

    def __init__(self, comm=None, threads=None):
        # On one rank alone it must not leave the others waiting in what is collective.
        problem = None
        try:
            threads = _threads(threads)
        except ConfigError as error:
            problem, threads = error, 1
        if planning.wanted is not None:
            self._set_up(planning.dry_core(threads), problem)
            return
        if comm is None and not _launched():
            self._set_up(_core.Context.local(_core.LocalFabric(1), 0, threads), problem)
            return
        load_mpi()
        handle = None
        if comm is not None:
            if not hasattr(comm, "py2f"):
                raise ConfigError(
                    f"comm: given {type(comm).__name__}; allowed: an mpi4py communicator or None"
                )
            handle = comm.py2f()
        self._set_up(_core.Context.mpi(handle, threads), problem)
        _check_launch_size(comm)

    @classmethod
    def _of(cls, core, part_of=None):
        """A context on a core context made elsewhere (ranks as threads, dry, or one rank of ``part_of``)."""
        self = cls.__new__(cls)
        self._set_up(core, part_of=part_of)
        return self

    def _set_up(self, core, problem=None, part_of=None):
        self._core = core
        self.agree(problem)
        self._prepared, self._calls, self._fields = {}, {}, 0
        self._rates = {}
        self._solo = None
        self._machine, self._own, self._part_of = None, None, part_of  # tilewave.machine
        self._warned = self._asked = False
        self._heart = Heartbeat(core)
        _open.add(self)
        if core.oversubscribed and core.rank == 0 and planning.wanted is None:
            warnings.warn(
                f"{core.threads} thread(s) on each of {core.size} rank(s) are more than the "
                f"{len(_core.allowed_cpus())} CPUs allowed here: nothing is pinned and runs are "
                "slower", RuntimeWarning, stacklevel=3,
            )
        if part_of is None:
            from tilewave import machine

            machine.adopt(self)

    @property
    def rank(self):
        """Number of this rank."""
        return self._core.rank

    @property
    def size(self):
        """Number of ranks."""
        return self._core.size

    @property
    def threads(self):
        """Lanes of each rank."""
        return self._core.threads

    @property
    def cpus(self):
        """CPUs that this rank's lanes are pinned to; empty when oversubscribed."""
        return list(self._core.cpus)

    def close(self):
        """Wait until nothing is in flight: patterns, buffered sends and receives of this rank.

        Notes
        -----
        Not collective, but what is in flight needs its other ranks: the receiver of a large matrix
        may have to call its context once more, or end, before the sender's close returns. ``with Context() as c:`` does
        it at the end; the end of the program does it for every context.
        """
        try:
            _core.complete(self._core)
        finally:
            self._heart.done()

    def solo(self):
        """A context of this rank alone, with as many threads; made at first use."""
        if self._solo is None:
            self._solo = Context._of(_core.Context.local(_core.LocalFabric(1), 0, self.threads), part_of=self)
        return self._solo

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.close()

    def agree(self, error=None, description="", prepared=0):
        """Go on together, or raise one error on every rank.

        Parameters
        ----------
        error : Exception, optional
            What went wrong on this rank.
        description : str
            Must be equal on all ranks.
        prepared : int
            Above 0: stands for what this rank has ready for it.

        Returns
        -------
        bool
            Whether all ranks have the same ready.

        Raises
        ------
        ConfigError, KernelError, MpiError, InternalError
            The error of the lowest rank that has one, marked ``agreed``; ConfigError when the
            descriptions differ.

        Notes
        -----
        Collective; one small allreduce when all is well.
        """
        kind, text = _statement(error)
        try:
            return self._core.agree(kind, text, description, prepared)
        except ERRORS as agreed:
            # Our own errors say it all; another's keeps its traceback on the rank that had it.
            raise self._shared(agreed) from None if isinstance(error, ERRORS) else error

    def _shared(self, error):
        """Mark an error that every rank of this context raises, and return it."""
        error.agreed = True
        error.quiet = self.rank != 0
        error.partial = self.size < _launch_size()
        return error

    def __repr__(self):
        return f"<tilewave.Context rank {self.rank} of {self.size}, {self.threads} thread(s)>"


class Heartbeat:
    """Called about every 50 ms during a run: signals, and progress on rank 0."""

    def __init__(self, core):
        self._rank = core.rank
        self._show = os.environ.get("TILEWAVE_PROGRESS") == "1" and core.rank == 0
        self._shown = 0
        self.pending = None
        core.on_heartbeat(self._beat)

    def _beat(self, fraction):
        try:
            if threading.current_thread() is threading.main_thread():
                signal.getsignal(signal.SIGINT)  # any bytecode lets pending signals be handled
            self._progress(fraction)
        except BaseException as error:  # KeyboardInterrupt, or what a handler raises
            self.pending = error
            return True
        return False

    def _progress(self, fraction):
        if not self._show:
            return
        if sys.stderr.isatty():
            sys.stderr.write(f"\rrunning {100 * fraction:3.0f} %")
            sys.stderr.flush()
        elif fraction >= self._shown + 0.25:
            self._shown = fraction - fraction % 0.25
            sys.stderr.write(f"running {100 * self._shown:.0f} %\n")
            sys.stderr.flush()

    def done(self):
        """End the progress line; raise what interrupted the run on this rank."""
        if self._show:
            if sys.stderr.isatty():
                sys.stderr.write("\r" + " " * 16 + "\r")
            self._shown = 0
        if self.pending is not None:
            pending, self.pending = self.pending, None
            raise pending


_default = None
_open = weakref.WeakSet()  # what is in flight at the end of the program is waited for


@atexit.register
def _close_all():
    if not _left_alone:
        for context in list(_open):
            context.close()



def default_context():
    """The context of all ranks of the launch, made when first needed."""
    global _default  # the one piece of global state, as DESIGN allows
    if _default is None:
        _default = Context()
    return _default


def resolve(context):
    """The given context, or the default one."""
    if context is None:
        return default_context()
    if not isinstance(context, Context):
        raise ConfigError(f"context: given {type(context).__name__}; allowed: tilewave.Context")
    return context


def _statement(error):
    if error is None:
        return "fine", ""
    for base, kind in KINDS.items():
        if isinstance(error, base):
            return kind, str(error)
    return "internal", f"{type(error).__name__}: {error}"


def _threads(given):
    if given is None and planning.wanted is not None:
        given = planning.wanted.threads
    value = os.environ.get("TILEWAVE_THREADS", "1") if given is None else given
    try:
        number = int(value)
        if isinstance(value, float) or number < 1:
            raise ValueError
    except (TypeError, ValueError):
        raise ConfigError(f"threads: given {value!r}; allowed: an integer >= 1") from None
    return number


def _launched():
    return any(name in os.environ for name in LAUNCH_VARIABLES) or _core.mpi_started() or (
        "mpi4py.MPI" in sys.modules and sys.modules["mpi4py.MPI"].Is_initialized())


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
    _core.load_mpi(str(_mpi_library()))


def _check_launch_size(comm):
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


def _launch_size():
    return max(int(told) for name in ("", *SIZE_VARIABLES)
               if (told := os.environ.get(name, "1")).isdigit())


def _leave_without_waiting(kind, value, trace):
    """A rank that ends by an error of its own must not wait for the others at exit; an error of
    all is said once."""
    agreed = getattr(value, "agreed", False)
    alone = not agreed or getattr(value, "partial", False)
    _left_alone.append(kind)
    if alone and _core.mpi_started() and _core.mpi_info()["size"] > 1:
        _core.abandon_mpi()
    if not (agreed and getattr(value, "quiet", False)):
        _next_hook(kind, value, trace)


_left_alone = []  # what the program ended with, if not well
_next_hook, sys.excepthook = sys.excepthook, _leave_without_waiting
