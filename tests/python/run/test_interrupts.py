"""Ctrl-C in collective calls is kept until their end, and the program's own handler stays in use."""

import signal
import threading

import pytest

import tilewave as tw
from tilewave.machine.measure import Session
from tilewave.run import choosing
from tilewave.runtime import interrupts


@pytest.fixture(autouse=True)
def handler():
    """As in a program whose first context has just been made, whatever tests before have made."""
    before = signal.getsignal(signal.SIGINT), interrupts._State.handler
    interrupts._State.handler = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.install()
    yield
    interrupts.take()
    signal.signal(signal.SIGINT, before[0])
    interrupts._State.handler = before[1]


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_outside_of_collective_calls_it_comes_at_once():
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert interrupts.pending() is None


def test_it_is_raised_at_the_outermost_end():
    reached = []
    with pytest.raises(KeyboardInterrupt), interrupts.held():
        with interrupts.held():
            interrupt()
            interrupt()  # a launcher may pass on what the terminal has sent
        reached.append(interrupts.pending())
    assert isinstance(reached[0], KeyboardInterrupt) and interrupts.pending() is None


def test_what_was_taken_is_not_raised():
    with interrupts.held():
        interrupt()
        assert isinstance(interrupts.take(), KeyboardInterrupt)
        assert interrupts.take() is None


def test_an_error_and_an_interrupt():
    with pytest.raises(KeyboardInterrupt) as caught, interrupts.held():
        interrupt()
        raise ValueError("beside it")
    assert isinstance(caught.value.__context__, ValueError)


def test_a_later_one_is_raised_at_once(monkeypatch):
    monkeypatch.setattr(interrupts, "AGAIN_S", 0.0)
    reached = []
    with pytest.raises(KeyboardInterrupt), interrupts.held():
        interrupt()
        reached.append(1)
        interrupt()
        reached.append(2)
    assert reached == [1] and interrupts.pending() is None


def test_other_threads_hold_nothing():
    found = []

    def work():
        with interrupts.held():
            found.append(interrupts._State.depth)
            found.append(interrupts.pending())

    with interrupts.held():
        interrupt()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert interrupts.take() is not None
    assert found == [1, None] and interrupts._State.depth == 0


@pytest.fixture
def fresh(handler):
    """As in a program that has made no context yet."""
    interrupts._State.handler = None
    signal.signal(signal.SIGINT, signal.default_int_handler)


def mine(number, frame):
    raise RuntimeError("mine")


def test_a_handler_that_raises_nothing_interrupts_nothing(fresh):
    seen = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    interrupts.install()
    with interrupts.held():
        interrupt()
    assert seen == [signal.SIGINT] and interrupts.pending() is None


def test_what_a_handler_of_the_program_raises_is_kept(fresh):
    signal.signal(signal.SIGINT, mine)
    interrupts.install()
    seen = []
    with pytest.raises(RuntimeError, match="mine"), interrupts.held():
        interrupt()
        seen.append(1)
    assert seen == [1]


def test_a_handler_that_is_set_later_is_left_alone(fresh):
    interrupts.install()
    signal.signal(signal.SIGINT, mine)
    interrupts.install()
    seen = []
    with pytest.raises(RuntimeError, match="mine"), interrupts.held():
        interrupt()
        seen.append(1)
    assert seen == []


def test_who_ignores_it_goes_on_doing_so(fresh):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupts.install()
    interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_install_nothing(fresh):
    thread = threading.Thread(target=interrupts.install)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@tw.nest
def averages(A, B, i, j):
    A[i, j] = 0.25 * A[i-1, j] + 0.5 * A[i, j-1] + B[i, j]


def interrupted_call(monkeypatch, module, name, call):
    """How often `name` is called, where the second time Ctrl-C comes; the call is interrupted."""
    calls, function = [], getattr(module, name)

    def counted(*arguments, **keywords):
        calls.append(1)
        if len(calls) == 2:
            interrupt()
        return function(*arguments, **keywords)

    monkeypatch.setattr(module, name, counted)
    with pytest.raises(KeyboardInterrupt):
        call()
    monkeypatch.undo()
    return len(calls)


def test_planning_ends_with_what_is_measured_at_the_moment(monkeypatch):
    context = tw.Context(threads=1)
    A, B = (tw.field((700, 800), "f8", init=1.0, context=context) for _ in range(2))
    tw.run(averages, A=tw.field((9, 9), context=context), B=tw.field((9, 9), context=context))  # makes what all use
    late = []
    sampled = choosing._sampled

    def noted(given, way, visits):
        before = context._interrupted()
        late.append(before)
        found = sampled(given, way, visits)
        assert not (before and found)
        return found

    monkeypatch.setattr(choosing, "_sampled", noted)
    rounds = []
    measure = choosing._measure

    def counted(*given):
        rounds.append(1)
        interrupt()
        return measure(*given)

    monkeypatch.setattr(choosing, "_measure", counted)
    with pytest.raises(KeyboardInterrupt):
        tw.run(averages, A=A, B=B)
    assert len(rounds) == 1 and all(late)
    monkeypatch.undo()
    report = tw.run(averages, A=A, B=B)
    assert "not measured" not in report.plan.notes["rate"]["note"]


def test_measuring_the_machine_ends_between_experiments(monkeypatch):
    context = tw.Context(threads=1)
    assert interrupted_call(monkeypatch, Session, "run", lambda: tw.measure(quick=True, context=context)) == 2
    assert tw.measure(quick=True, context=context).step_s > 0
