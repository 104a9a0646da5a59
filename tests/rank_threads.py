"""pytest plugin: ``@pytest.mark.ranks([1, 2, 3])`` runs a test on ranks that are threads of pytest's process.

Such a test is written as one under ``@pytest.mark.mpi``: `tw.Context()`, `tw.rank` and calls that are given no context
mean the rank of the thread. There is one item for each rank count. Contexts talk through memory, wait without spinning,
and share compiled kernels, so a test takes a fraction of its time under mpiexec. What is about MPI, processes, signals,
the environment, standard output or warnings belongs under mpiexec.

A test that has both marks, say the module's `ranks` and `mpi` of its own, runs both ways.

Fixtures of test modules, and `context`, run once for each rank, in its thread; those of scope "module" live as long as
the tests of one module and rank count. Other fixtures, such as `tmp_path`, and the test's parameters are shared by the
ranks.
"""

from __future__ import annotations

import faulthandler
import inspect
import sys
import threading
import time

import pytest

TIMEOUT_S = 300.0
GRACE_S = 30.0  # how long ranks may wait for a rank that has failed already


class ThreadRanks(int):
    """A number of ranks that are threads; the parameter of an item."""


class _Here(threading.local):
    rank = None  # the `_Rank` that this thread is
    without = None  # names of the fast paths that contexts do without


here = _Here()


class _Rank:
    """What a rank has from one test to the next: its contexts' fabrics in the order made, its fixtures' values."""

    def __init__(self, group, number):
        self.group, self.number, self.made = group, number, 0
        self.default, self.values, self.generators = None, {}, []

    def core(self, threads):
        from tilewave import _core

        fabric = self.group.fabric(self.made)
        self.made += 1
        return _core.Context.local(fabric, self.number, threads or 1, here.without)


class _Group:
    """The ranks of one module and rank count."""

    def __init__(self, size):
        self.size, self.lock, self.fabrics = size, threading.Lock(), []
        self.ranks = [_Rank(self, number) for number in range(size)]

    def fabric(self, number):
        """The n-th that each rank asks for is the same one."""
        from tilewave import _core

        with self.lock:
            while len(self.fabrics) <= number:
                self.fabrics.append(_core.LocalFabric(self.size))
            return self.fabrics[number]


def threads_of(item):
    """The number of ranks of an item that runs on threads; None for any other."""
    ranks = getattr(item, "callspec", None) and item.callspec.params.get("mpi_ranks")
    return ranks if isinstance(ranks, ThreadRanks) else None


def _seams():
    """Make contexts of rank threads local ones, once in a process."""
    from tilewave import errors
    from tilewave.context import context as module

    from tilewave.context import interrupts

    make, default, making = module.Context._make, module._default, module._making
    if make.__name__ == "make_of_thread":
        return

    @interrupts.keeps
    def make_of_thread(self, comm, threads, _call):
        if here.rank is None or comm is not None:
            return make(self, comm, threads, _call)
        self._doing, problem = _call, None
        try:
            threads = module._threads(threads)
        except errors.ConfigError as error:
            problem, threads = error, 1
        return self._set_up(here.rank.core(threads), problem)

    # As the package's own, for warnings that look for the program's line.
    make_of_thread.__code__ = make_of_thread.__code__.replace(co_filename=module.__file__)

    class Default:
        """The default context of this thread's rank, else of the process."""

        @property
        def context(self):
            return here.rank.default if here.rank else default.context

        @context.setter
        def context(self, value):
            if here.rank:
                here.rank.default = value
            else:
                default.context = value

    class Making:
        """Held while a thread of no rank makes a context: ranks make theirs together."""

        def __enter__(self):
            if here.rank is None:
                making.acquire()

        def __exit__(self, *_):
            if here.rank is None:
                making.release()

    module.Context._make, module._default, module._making = make_of_thread, Default(), Making()


class Plugin:
    """Sets fixtures up and calls tests in the threads of the ranks."""

    def __init__(self):
        self.path, self.groups = None, {}  # of one module, by rank count

    def group_of(self, item, size):
        if self.path != item.path:
            self.drop()
            self.path = item.path
        return self.groups.setdefault(int(size), _Group(size))

    def drop(self):
        """Leave the ranks of the tests before."""
        groups, self.groups = self.groups, {}
        for rank in (rank for group in groups.values() for rank in group.ranks):
            for generator in rank.generators:
                next(generator, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if threads_of(request._pyfuncitem) is None or not _of_ranks(fixturedef):
            return None
        fixturedef.cached_result = (None, fixturedef.cache_key(request), None)
        return fixturedef.cached_result  # anything but None: nobody else sets it up

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        size = threads_of(pyfuncitem)
        if size is None:
            return None
        _seams()
        group = self.group_of(pyfuncitem, size)
        errors = [None] * size
        threads = [
            threading.Thread(target=_work, args=(pyfuncitem, rank, errors), daemon=True, name=f"rank {rank.number}")
            for rank in group.ranks
        ]
        for thread in threads:
            thread.start()
        begin, failed_at = time.monotonic(), None
        while any(thread.is_alive() for thread in threads):
            now = time.monotonic()
            failed_at = failed_at or (any(map(_failed, errors)) and now) or None
            if now > begin + TIMEOUT_S or (failed_at and now > failed_at + GRACE_S):
                break
            next(thread for thread in threads if thread.is_alive()).join(0.1)
        if stuck := [rank for rank, thread in enumerate(threads) if thread.is_alive()]:
            faulthandler.dump_traceback(file=sys.__stderr__)
            self.groups.pop(int(size))
            if not any(map(_failed, errors)):
                pytest.fail(f"ranks {stuck} of {size} still run after {TIMEOUT_S:g} s")
        for error in sorted(filter(None, errors), key=lambda error: not _failed(error)):
            if _failed(error):
                self.groups.pop(int(size), None)  # messages left over cannot reach another test
            raise error
        return True

    def pytest_sessionfinish(self):
        self.drop()


def _failed(error):
    return error is not None and not isinstance(error, pytest.skip.Exception)


def _of_ranks(fixturedef):
    """Whether a fixture is a test module's or the contexts', that each rank has for itself."""
    of_ranks = "test_" in fixturedef.func.__module__ or fixturedef.argname == "context"
    return of_ranks and fixturedef.params is None


def _work(item, rank, errors):
    here.rank = rank
    finish = []
    try:
        names = inspect.signature(item.obj).parameters
        item.obj(**{name: _value(item, rank, name, finish) for name in names})
        for generator in finish:
            next(generator, None)
    except BaseException as error:
        errors[rank.number] = error


def _value(item, rank, name, finish):
    """A test's or fixture's argument for one rank."""
    fixtures = item._fixtureinfo.name2fixturedefs.get(name)
    if name in item.callspec.params or not fixtures or not _of_ranks(fixtures[-1]):
        return item._request if name == "request" else item.funcargs[name]
    fixture = fixtures[-1]
    shared = fixture.scope != "function"
    if shared and fixture in rank.values:
        return rank.values[fixture]
    names = inspect.signature(fixture.func).parameters
    value = fixture.func(**{each: _value(item, rank, each, finish) for each in names})
    if inspect.isgenerator(value):
        (rank.generators if shared else finish).append(value)
        value = next(value)
    if shared:
        rank.values[fixture] = value
    return value
