"""Ctrl-C on one rank inside a call of any family: raised on every rank at one call, and the next call is right."""

import os
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest

import tilewave as tw
from families import calls
from tilewave import tracebacks
from tilewave.context import interrupts

PACKAGE = os.path.dirname(tw.__file__)


class At:
    """Does `act` at one moment of a call: before the n-th Python frame or built-in function that begins or ends.

    Attributes
    ----------
    moments : int
    holes : set
        Functions of the package, inside the call, where an interrupt would be raised at once.
    """

    def __init__(self, moment=None, act=None):
        self.moments, self.holes, self._moment, self._act = 0, set(), moment, act

    def _event(self, frame, event, _):
        if not interrupts._inside(frame):
            called = event == "c_call" or event == "call" and _ours(frame.f_back)
            if called and _ours(frame) and "<lambda>" not in frame.f_code.co_qualname:  # which memory's end calls
                self.holes.add(frame.f_code.co_qualname)
            return
        if self.moments == self._moment:
            self._act()
        self.moments += 1

    def __enter__(self):
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)


def _ours(frame):
    """Whether a frame is the package's; a door's is as its caller's."""
    if frame is not None and frame.f_code.co_filename == tracebacks.__file__:
        return _ours(frame.f_back)
    return frame is not None and frame.f_code.co_filename.startswith(PACKAGE)


def interrupted(call):
    try:
        call()
    except KeyboardInterrupt:
        return True
    return False


def same(a, b):
    return type(a) is type(b) and (np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b)


@pytest.fixture(scope="module")
def table(context, tmp_path_factory):
    folder = context._core.broadcast(os.fsencode(tmp_path_factory.mktemp("families")))  # rank 0's
    return calls(context, os.fsdecode(folder))


@pytest.fixture(scope="module")
def rng(context):
    """Draws the same on every rank."""
    seed = random.randrange(2**31)
    seed = int(context._core.broadcast(str(seed).encode()))
    print(f"seed {seed}")
    return random.Random(seed)


def check_one_end(context, case, ended, came):
    """All ranks have raised it in the call, which has `ended` by it, or all in the next one, once, if it `came`."""
    told = [ended, interrupted(lambda: tw.barrier(context=context))]
    assert interrupts.take() is None, case
    *least, some_came = context._core.allreduce_min([*map(int, told), -int(came)])
    most = [-n for n in context._core.allreduce_min([-int(n) for n in told])]
    assert least == most, f"{case}: the ranks end differently, this one {told}"
    assert sum(told) == -some_came, f"{case}: {told}"


@pytest.mark.ranks([1, 3])
def test_every_family(context, table, rng):
    holes = {}
    for name, (call, value) in table.items():
        value(call())
        expected = value(call())
        victim = rng.randrange(context.size)
        with At() as at:
            call()
        moments = int(context._core.broadcast(str(at.moments).encode()))
        moment = rng.choice((0, rng.randrange(moments), moments - 1))
        here = moment if context.rank == victim else None
        with At(here, lambda: interrupts.keep(KeyboardInterrupt())) as at:
            ended = interrupted(call)
        case = f"{name}, moment {moment} of {moments} on rank {victim}"
        check_one_end(context, case, ended, here is not None and at.moments > moment)
        assert same(value(call()), expected), case
        holes[name] = at.holes
    assert not any(holes.values()), {name: found for name, found in holes.items() if found}


def raises(*_):
    raise KeyboardInterrupt


@pytest.mark.ranks([1, 2, 3])
def test_functions_of_the_program_that_are_interrupted(context):
    field = tw.field((60, 70), context=context)
    made = tw.chain([tw.bind(doubles, A=field)])
    for victim in range(context.size):
        function = raises if context.rank == victim else lambda *_: 1.0
        for call in (
            lambda f=function: tw.field((60, 70), init=f, context=context),
            lambda f=function: field.fill(f),
            lambda f=function: made.run(times=3, until=lambda values: f() < 0),
            lambda f=function: tw.multigrid.Poisson((5, 4), k=f, context=context),
        ):
            assert interrupted(call)
            tw.barrier(context=context)


@tw.nest
def doubles(A, i, j):
    A[i, j] = 2 * A[i, j]


@pytest.mark.ranks([2, 3])
@pytest.mark.parametrize("error", [MemoryError, ValueError, KeyboardInterrupt])
def test_an_error_between_the_parts_of_a_call(context, monkeypatch, error):
    """What one rank raises by itself between collective calls is an error of all: the others are at the next part."""
    solver = tw.multigrid.Poisson((6, 5), context=context)
    victim = context.size - 1
    for name in ("_take", "_residual_norm", "_handed_over"):
        method = getattr(solver, name)

        def fails(*given, method=method):
            if context.rank == victim:
                raise error("here")
            return method(*given)

        monkeypatch.setattr(solver, name, fails)
        with pytest.raises(error) as caught:
            solver.solve(np.ones((6, 5)))
        assert caught.value.agreed
        monkeypatch.undo()
        tw.barrier(context=context)
    assert solver.solve(np.ones((6, 5)))[...].shape == (6, 5)


@pytest.mark.mpi(ranks=[2, 3])
def test_signals_at_random_moments(context, table, rng, monkeypatch):
    """SIGINT on one rank, anywhere in a call; what comes between calls is the program's, here ignored."""
    came = []

    def handler(number, frame):
        if interrupts._inside(frame):
            came.append(number)
            raise KeyboardInterrupt

    monkeypatch.setattr(interrupts._State, "handler", staticmethod(handler))
    monkeypatch.setattr(interrupts, "AGAIN_S", 60.0)
    assert signal.getsignal(signal.SIGINT) is interrupts.received
    for name in rng.sample(sorted(table), 25):
        call, value = table[name]
        value(call())
        expected = value(call())
        begun = time.perf_counter()
        call()
        took_s = time.perf_counter() - begun
        victim, part = rng.randrange(context.size), rng.random()
        came.clear()
        timer = threading.Timer(part * took_s, os.kill, (os.getpid(), signal.SIGINT))
        if context.rank == victim:
            timer.start()
        ended = interrupted(call)
        if context.rank == victim:
            timer.join()
        check_one_end(context, f"{name}, {part} of it on rank {victim}", ended, bool(came))
        assert same(value(call()), expected), name
