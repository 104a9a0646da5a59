"""Where a run happens: ranks, threads, and how ranks agree on errors."""

from __future__ import annotations

import operator
import os
import threading
from typing import TYPE_CHECKING, Any

from tilewave import _core, units
from tilewave.context import collective, dry_run, interrupts, variables
from tilewave.context.heartbeat import Heartbeat
from tilewave.context.lru_cache import LruCache
from tilewave.context.mpi_library import check_launch_size, launch_size, launched, load_mpi
from tilewave.context.program_end import meeting, open_contexts
from tilewave.context.ranks import RanksHere
from tilewave.errors import ERRORS, NO_MEMORY, ConfigError, KernelError, MpiError, shown
from tilewave.launch import launchers
from tilewave.machine import known

if TYPE_CHECKING:
    from types import TracebackType

#: Schedules with their kernels that a context caches, at most, and their bytes; calls that it knows.
MOST_PREPARED, MOST_PREPARED_BYTES, MOST_CALLS = _core.MOST_PREPARED_NESTS, _core.MOST_PREPARED_BYTES, 64
KINDS = {ConfigError: "config", KernelError: "kernel", MpiError: "mpi"}


@collective.holds_context
class Context:
    """A group of ranks with some threads each; collective to make.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        The ranks of this communicator (it is duplicated). Default: all ranks of the launch, or
        only this process when nothing launched it.
    threads : int, optional
        Lanes of each rank. Default: the environment variable TILEWAVE_THREADS, else as many CPUs as each rank has:
        those allowed here, no more than a control group's quota, shared by the ranks of the launch on this host
        (docs/guide/machines.md).

    Raises
    ------
    ConfigError
        When ``threads`` is no positive integer, ``comm`` belongs to another MPI library or is MPI.COMM_NULL.
    MpiError
        When MPI cannot be started.

    Notes
    -----
    Collective over the ranks; costs a gather of host names. More threads than CPUs is a warning. Calls from two threads
    of one process wait for each other on one rank; on several they are an error on all, as their order could differ.
    """

    @interrupts.keeps
    def __init__(self, comm: Any = None, threads: int | None = None, *, _call: str = "tw.Context") -> None:
        with _making:
            try:
                self._make(comm, threads, _call)
            except KeyboardInterrupt as error:
                raise interrupts.of_call(error) from None

    @interrupts.keeps
    def _make(self, comm, threads, _call):
        self._doing = _call
        interrupts.install()
        if comm is not None and hasattr(comm, "py2f") and not comm:  # nobody waits for this rank on it
            raise ConfigError(
                "comm: given MPI.COMM_NULL, as Split gives ranks without a color; allowed: a communicator that this "
                "rank is in, and no context on the others"
            )
        # An error on one rank must not leave the others waiting in a collective call.
        problem = None
        try:
            threads = _threads(threads)
            variables.check()
            if comm is not None and not hasattr(comm, "py2f"):
                raise ConfigError(f"comm: given {type(comm).__name__}; allowed: an mpi4py communicator or None")
        except Exception as error:  # also of an object that cannot be shown
            problem, threads, comm = error, 1, None
        if dry_run.launch is not None:
            self._set_up(dry_run.dry_core(threads), problem)
            return
        if comm is None and not launched():
            launchers.refuse_copies()
            self._set_up(_core.Context.local(_core.LocalFabric(1), 0, threads), problem)
            return
        load_mpi()
        _meet(comm, problem, _call)
        core = _core.Context.mpi(None if comm is None else comm.py2f(), threads, _call, collective.where())
        if comm is None and meeting.core is None and core.size > 1:
            meeting.core = core
        self._set_up(core, problem)
        if meeting.core is core:
            meeting.lock = self._lock
        check_launch_size(comm)

    @classmethod
    def _of(cls, core, part_of=None):
        """A context on a core context made elsewhere (ranks as threads, dry, or one rank of ``part_of``)."""
        self = cls.__new__(cls)
        self._doing = ""
        self._set_up(core, part_of=part_of)
        return self

    @interrupts.keeps
    def _set_up(self, core, problem=None, part_of=None):
        interrupts.install()
        self._core = core
        self._lock = core.call_lock()  # of the thread that makes a call
        core.on_where(collective.where)
        self._numbered = 0, 0
        self._verify = os.environ.get(variables.VERIFY) == "1" and dry_run.launch is None
        self._ranks = dry_run.launch.calls if dry_run.launch else RanksHere(core, quick=not self._verify)
        self.agree(problem, f"{variables.VERIFY}=1" if self._verify else "")
        self._doing = ""
        self._fields = self._bound = self._chains = 0  # numbered
        # What was prepared, checked, planned and measured for calls to come. Ranks need not keep the same: they agree
        # on what all have.
        self._prepared = LruCache(MOST_PREPARED, MOST_PREPARED_BYTES, lambda prepared: prepared.sweep.bytes)
        self._calls, self._plans, self._rates = LruCache(MOST_CALLS), LruCache(MOST_PREPARED), _core.known_rates(core)
        self._solo = None
        self._off = core.paths_off  # the fast paths that are switched off, a bit each
        self._machine_number = 0
        self._machine, self._startup_machine, self._part_of = None, None, part_of  # tilewave.machine
        self._warned = self._asked = self._assumed = False
        self._heart = Heartbeat(core, core.size == 1 and part_of is None)
        open_contexts.add(self)
        if core.oversubscribed:
            others = ", which other ranks of the launch share" if core.size < launch_size() else ""
            self._ranks.warn(
                f"{units.count(core.threads, 'thread')} on each of {units.count(core.size, 'rank')} are more than "
                f"the {cpus_here():g} CPUs allowed here{others}: nothing is pinned and runs are slower"
            )
        if part_of is None:
            known.adopt(self)
        self._heart.done()

    @property
    def context(self) -> Context:
        """Itself, as a field has the one that it lives on."""
        return self

    @property
    def rank(self) -> int:
        """Number of this rank."""
        return self._core.rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._core.size

    @property
    def threads(self) -> int:
        """Lanes of each rank."""
        return self._core.threads

    @property
    def share(self) -> int:
        """CPUs of each rank: those of its host, divided among the ranks there. The default number of lanes."""
        return self._core.share

    @property
    def without(self) -> tuple[str, ...]:
        """Names of the fast paths that are switched off here, by the environment variable TILEWAVE_WITHOUT when the
        context was made (docs/guide/running.md). The same on every rank."""
        return tuple(_core.names_of(self._off).split(", ")) if self._off else ()

    @property
    def cpus(self) -> int:
        """CPUs that this rank's lanes are pinned to while they run; empty where nothing is pinned.

        The environment variable TILEWAVE_PIN decides: ``on``, ``off``, or ``auto`` (the default), which pins where
        this context has all the ranks of a launch and several of their lanes are on this host. With more lanes than
        CPUs nothing is pinned."""
        return list(self._core.cpus)

    @property
    def _machine(self):
        """The machine that calls are planned with; `_machine_number` differs for each that there was."""
        return self._known_machine

    @_machine.setter
    def _machine(self, machine):
        self._known_machine = machine
        self._machine_number += 1

    def close(self) -> None:
        """Wait until nothing is in flight: patterns, buffered sends and receives of this rank.

        Notes
        -----
        Not collective, but what is in flight needs its other ranks: the receiver of a large matrix
        may have to call its context once more, or end, before the sender's close returns. ``with Context() as c:`` does
        it at the end; the end of the program does it for every context.
        """
        if 0 <= self._core.ended != self.rank:
            return  # what is in flight waits for a rank that has ended
        try:
            _core.complete(self._core)
        finally:
            self._heart.done()

    def solo(self) -> Context:
        """A context of only this rank, with as many threads; made at first use."""
        if self._solo is None:
            core = _core.Context.local(_core.LocalFabric(1), 0, self.threads, ",".join(self.without))
            self._solo = Context._of(core, part_of=self)
        return self._solo

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    @interrupts.keeps
    def agree(
        self, error: BaseException | None = None, description: str = "", prepared: int = 0, *, _call: str | None = None
    ) -> bool:
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
            The error of the lowest rank that has one, marked ``agreed``; ConfigError when the descriptions differ.
        KeyboardInterrupt
            On every rank, where one keeps an interrupt and has no error.

        Notes
        -----
        Collective; one small allreduce when all is well.
        """
        kind, text = _statement(error, self)
        try:
            return self._core.agree(
                kind,
                text,
                collective.plain(description) if not description.isascii() else description,
                prepared,
                (self._doing or "agree") if _call is None else _call,
            )
        except (*ERRORS, MemoryError) as agreed:
            # Errors of this package say it all; others, and what caused ours, keep their tracebacks on their rank.
            raise self._shared(agreed) from error.__cause__ if isinstance(error, ERRORS) else error
        except KeyboardInterrupt as agreed:
            raise self._interrupt(error if isinstance(error, KeyboardInterrupt) else agreed) from None

    def _next_number(self):
        """The number of something that all ranks make in a collective call, to know it by: calls so far, and those made
        since. What one rank alone could not make is forgotten with the next call, so that numbers are equal.
        """
        started = self._core.started
        before, count = self._numbered
        self._numbered = started, count + 1 if before == started else 1
        return ".".join(map(str, self._numbered))

    def _interrupted(self):
        """Return whether Ctrl-C is held back for the next agreement."""
        return interrupts.pending()

    def _interrupt(self, raised):
        """Return what a call ends with that `raised` has ended, an interrupt of some rank; marked, if every rank raises
        it."""
        return raised if getattr(raised, "at_once", False) else self._shared(interrupts.of_call(raised))

    def _finished(self, ran):
        """Return what a run was, where no rank has stopped it."""
        if ran.interrupted:
            raise self._interrupt(KeyboardInterrupt("a rank was interrupted"))
        return ran

    @interrupts.keeps
    def _together(self, call, *arguments):
        """A call of the core that ranks make together: its errors are marked, and interrupts end here."""
        try:
            return call(*arguments)
        except (*ERRORS, MemoryError) as error:
            raise self._of_all(error) from None
        except KeyboardInterrupt as error:
            raise self._interrupt(error) from None
        finally:
            self._heart.done()

    def _shared(self, error):
        """Mark an error that every rank of this context raises, and return it."""
        ended = self._core.ended
        error.agreed = True
        error.quiet = self.rank != 0 and ended != 0
        # A rank that has ended, and those outside this context, would be waited for at the end of the program.
        error.partial = self.size < launch_size() or ended >= 0
        return error

    def _moves(self, call, *arguments):
        """A call of the core that moves a field: where one rank lacks memory, all say so before anything moves."""
        try:
            return call(*arguments)
        except MemoryError as error:
            raise self._shared(error) from None

    def _of_all(self, error):
        """An error that the core has raised, marked if every rank raises it: MPI's may have happened only
        on this rank, and memory may have ended where no other rank is notified.
        """
        alone = isinstance(error, MpiError) and self._core.ended < 0
        alone = alone or isinstance(error, MemoryError) and str(error) == NO_MEMORY
        return error if alone else self._shared(error)

    def __repr__(self) -> str:
        return f"<tilewave.Context rank {self.rank} of {self.size}, {units.count(self.threads, 'thread')}>"


class _Default:
    context = None  # of calls that are given none; made when first needed


_default = _Default()  # the one piece of global state
_making = threading.RLock()  # held while a thread makes a context: MPI takes calls from one thread at a time


def _meet(comm, problem, call, description=""):
    """Before a context of all ranks of the launch is made: they must all be about to. Collective over them."""
    core = meeting.core
    if core is None or comm is not None and comm.Get_size() != core.size:
        return
    place = Context.__new__(Context)  # no more of one than agree() needs
    place._core, place._doing = core, call
    with meeting.lock:
        place.agree(problem, description)


@collective.without_context
@interrupts.keeps
def context() -> Context:
    """The default context, in which calls happen that are given none and no field: all ranks of the launch, or what
    `set_default` has chosen. It is made when it is first needed.

    Returns
    -------
    Context
    """
    if _default.context is None:
        with _making:
            if _default.context is None:  # no other thread has been quicker
                made = Context(_call="tw.Context()")
                meeting.move_to(made)
                _default.context = made
    return _default.context


def usual_threads() -> int:
    """Return the threads of the default context, or 1 where that would have to be made with other ranks; local."""
    return 1 if _default.context is None and launch_size() > 1 else context().threads


@interrupts.keeps
def set_default(context: Context | None = None, *, comm: Any = None, threads: int | None = None) -> None:
    """Choose the context of all calls that are given none and no field; collective.

    Parameters
    ----------
    context : Context, optional
        This one. Default: a new one, of `comm` and `threads` as `Context` takes them.
    comm, threads
        As `Context`.

    Returns
    -------
    Context

    Raises
    ------
    ConfigError
        On every rank, as `Context`; when both a context and what one is made of are given.

    Notes
    -----
    For notebooks, say: ``tw.set_default(threads=4)``. Fields stay on the context that they were made on. Costs making a
    context, a few milliseconds.
    """
    problem = None
    if context is not None and not isinstance(context, Context):
        problem = ConfigError(f"set_default: context: given {type(context).__name__}; allowed: tilewave.Context")
    elif context is not None and (comm is not None or threads is not None):
        problem = ConfigError("set_default: a context and comm or threads were given; allowed: one of them")
    _meet(None, problem, "tw.set_default", "a new one" if context is None else "a given one")
    if problem is not None:
        raise problem
    _default.context = Context(comm, threads, _call="tw.set_default") if context is None else context
    meeting.move_to(_default.context)
    return _default.context


def _statement(error, context):
    """Kind and text of what this rank says to the others."""
    if error is None:
        return "fine", ""
    for base, kind in KINDS.items():
        if isinstance(error, base):
            return kind, collective.text_of(error)
    if isinstance(error, KeyboardInterrupt):
        return "interrupt", f"rank {context.rank} was interrupted"
    kind = "config" if isinstance(error, TypeError) else "resources" if isinstance(error, MemoryError) else "internal"
    return kind, f"on rank {context.rank}: {type(error).__name__}: {collective.text_of(error)}"


def cpus_here() -> int:
    """CPUs that this process may use, or as much of their time as its control group allows."""
    return min(len(_core.allowed_cpus()), _core.cpu_quota())


def _threads(given):
    if given is None and dry_run.launch is not None:
        given = dry_run.launch.threads
    name = "threads" if given is not None else "TILEWAVE_THREADS"
    value = os.environ.get(name) if given is None else given
    if value is None:
        return 0  # the core knows who shares the CPUs
    try:
        number = int(value) if isinstance(value, str) else operator.index(value)
        if isinstance(value, bool) or not 1 <= number <= _core.limits["lanes"]:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(
            f"{name}: given {shown(value)}; allowed: an integer from 1 to {_core.limits['lanes']}"
        ) from None
    return number
