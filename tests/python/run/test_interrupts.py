"""Ctrl-C in collective calls is kept until their end, and the program's own handler stays in use."""

import signal
import threading

import pytest

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
    with pytest.raises(KeyboardInterrupt):
        with interrupts.held():
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
    with pytest.raises(KeyboardInterrupt) as caught:
        with interrupts.held():
            interrupt()
            raise ValueError("beside it")
    assert isinstance(caught.value.__context__, ValueError)


def test_a_later_one_is_raised_at_once(monkeypatch):
    monkeypatch.setattr(interrupts, "AGAIN_S", 0.0)
    reached = []
    with pytest.raises(KeyboardInterrupt):
        with interrupts.held():
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
    with pytest.raises(RuntimeError, match="mine"):
        with interrupts.held():
            interrupt()
            seen.append(1)
    assert seen == [1]


def test_a_handler_that_is_set_later_is_left_alone(fresh):
    interrupts.install()
    signal.signal(signal.SIGINT, mine)
    interrupts.install()
    seen = []
    with pytest.raises(RuntimeError, match="mine"):
        with interrupts.held():
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
