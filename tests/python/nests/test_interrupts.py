"""Ctrl-C in collective calls is kept until their end, and the program's own handler stays in use."""

import signal
import threading

import pytest

import tilewave as tw
from tilewave.machine.measure import Session
from tilewave.nests.plan import kernel_maker
from tilewave.context import interrupts


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


@interrupts.keeps
def together(call, *arguments):
    """As in a collective call."""
    return call(*arguments)


def test_outside_of_collective_calls_it_comes_at_once():
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert not interrupts.pending()


def test_inside_it_is_kept_and_later_ones_of_the_same_moment_are_dropped():
    together(interrupt)
    together(together, interrupt)  # a launcher may pass on what the terminal has sent
    interrupt()
    assert interrupts.pending()
    assert isinstance(interrupts.take(), KeyboardInterrupt)
    assert interrupts.take() is None and not interrupts.pending()


def test_it_is_kept_from_the_first_frame_of_a_collective_call_on():
    for function in (tw.run, tw.field, tw.barrier, tw.patterns.reduce, tw.linalg.matmul, tw.linalg.lu):
        assert function._door and function.__code__ in interrupts._codes, function
    for function in (tw.nest, tw.scratch, tw.Schedule.load):  # of one rank
        assert function._door and function.__code__ not in interrupts._codes, function


@pytest.mark.parametrize("inside", [True, False])
def test_a_later_one_is_raised_at_once(monkeypatch, inside):
    monkeypatch.setattr(interrupts, "AGAIN_S", 0.0)
    together(interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        together(interrupt) if inside else interrupt()
    assert caught.value.at_once and not interrupts.pending()


def test_the_next_agreement_raises_it_and_the_end_of_a_call_of_one_rank():
    context = tw.Context(threads=1)
    solo = context.solo()
    together(interrupt)
    with pytest.raises(KeyboardInterrupt, match="rank 0 was interrupted"):
        context.agree(None, "a text")
    context.agree(None, "a text")
    together(interrupt)
    with pytest.raises(KeyboardInterrupt):
        context._heart.done()
    assert not interrupts.pending()
    together(interrupt)
    solo._heart.done()  # a part of a call of several ranks
    assert interrupts.pending()


def test_an_error_comes_before_it():
    context = tw.Context(threads=1)
    together(interrupt)
    with pytest.raises(ValueError, match="beside it"):
        context.agree(tw.ConfigError("beside it"))
    assert interrupts.pending()


def test_of_other_threads_none_is_kept():
    found = []

    def work():
        found.append((interrupts.pending(), interrupts.take()))

    together(interrupt)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, None)] and interrupts.take() is not None


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
    together(interrupt)
    assert seen == [signal.SIGINT] and not interrupts.pending()


def test_what_a_handler_of_the_program_raises_is_raised_on_its_rank(fresh):
    context = tw.Context(threads=1)
    interrupts._State.handler = None
    signal.signal(signal.SIGINT, mine)
    interrupts.install()
    with pytest.raises(RuntimeError, match="mine"):
        together(lambda: (interrupt(), tw.barrier(context=context)))


def test_a_handler_that_is_set_later_is_left_alone(fresh):
    interrupts.install()
    signal.signal(signal.SIGINT, mine)
    interrupts.install()
    with pytest.raises(RuntimeError, match="mine"):
        together(interrupt)


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
    A[i, j] = 0.25 * A[i - 1, j] + 0.5 * A[i, j - 1] + B[i, j]


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
    sampled = kernel_maker.sampled

    def interrupted(*given):
        late.append(context._interrupted())
        interrupt()
        return sampled(*given)

    monkeypatch.setattr(kernel_maker, "sampled", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tw.run(averages, A=A, B=B)
    assert late == [False]
    monkeypatch.undo()
    report = tw.run(averages, A=A, B=B)
    assert "not measured" not in report.plan.notes["rate"]["note"]


@pytest.mark.parametrize("name", ["sampled", "with_plan"])
def test_what_is_raised_through_the_core_while_it_plans_ends_the_call(monkeypatch, name):
    context = tw.Context(threads=1)
    A, B = (tw.field((70, 80), "f8", init=1.0, context=context) for _ in range(2))

    def again(*given):
        raise KeyboardInterrupt("twice")

    monkeypatch.setattr(kernel_maker, name, again)
    with pytest.raises(KeyboardInterrupt, match="twice"):
        tw.run(averages, A=A, B=B)
    monkeypatch.undo()
    assert "not measured" not in tw.run(averages, A=A, B=B).plan.notes["rate"]["note"]


def test_measuring_the_machine_ends_between_experiments(monkeypatch):
    context = tw.Context(threads=1)
    assert interrupted_call(monkeypatch, Session, "run", lambda: tw.measure(quick=True, context=context)) == 2
    assert tw.measure(quick=True, context=context).step_s > 0
