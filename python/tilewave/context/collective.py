"""The one shape of functions that all ranks of a context call together.

A new one is a generator under `collective`::

    @collective("tw.fill") def fill(field, value, *, context=None):
        \"\"\"...\"\"\"
        value = checked(value)                            # local: what raises here is raised on every rank
        memory = np.empty(...)                            # what the rest needs is made here
        yield f"field {field._number}, value {value!r}"   # agrees: the same call, the same text on every rank
        field._storage.fill(...)                          # communicates: must not fail on one rank only
        return memory

The text need not name the function. What `yield` gives back is whether all ranks have the same ready, where it was
given ``(text, number)``. A later ``yield`` is one more agreement; what a later local part raises, the function
catches and yields itself: ``yield error``. A function that makes other collective calls behind its first agreement is
``@collective(name, whole=True)``: it agrees once more at its end, and an error between the calls is one of all ranks.
A helper that agrees is a generator, too: ``ready = yield from prepare(...)``. The context is that of ``context=``, else
that of the first field among the arguments, else the default one; a function that has the parameter ``context`` is
given it. What an argument holds is checked before the first ``yield``, never in the decorator's call: so no argument
raises on one rank only.

Around all of that, Ctrl-C is held back until the ranks agree, and then raised on all of them
(`tilewave.context.interrupts`), and calls from other threads wait. Costs less than 2 us in addition to the agreement.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tilewave import notices
from tilewave.context import interrupts
from tilewave.errors import ERRORS, ConfigError, MpiError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    P = ParamSpec("P")
    R = TypeVar("R")
    C = TypeVar("C", bound=type)
    F = TypeVar("F", bound=Callable[..., Any])

_WRONG_ARGUMENTS = (TypeError, ValueError, OverflowError)  # of a local part: what checks did not foresee
_default = None  # gives the context of calls that are given none
_holders = set()  # classes whose `context` says where their calls happen


def holds_context(cls: C) -> C:
    """Class decorator: a call that is given one happens in its `context`."""
    _holders.add(cls)
    return cls


def without_context(function: F) -> F:
    """Decorator of the function that gives the context of calls that are given none, and no field."""
    global _default
    _default = function
    return function


def collective(name: str, *, whole: bool = False) -> Callable[[Callable[P, Generator[Any, Any, R]]], Callable[P, R]]:
    """Make a collective function of a generator; see the module's text.

    Parameters
    ----------
    name : str
        As users write it, "tw.field": it must be the same on every rank, and errors show it.
    whole : bool
        Its parts, behind its first agreement, are other collective calls and what is local between them.
    """

    def decorate(function):
        place = _place_of_context(function)

        @functools.wraps(function)
        @interrupts.keeps
        def call(*arguments, **keywords):
            return _call(name, function, place, whole, arguments, keywords)

        call.__signature__ = inspect.signature(function)
        return call

    return decorate


def _place_of_context(function):
    """Where the parameter `context` stands among those given by place; -1: by name only; None: there is none."""
    parameters = inspect.signature(function).parameters
    if "context" not in parameters:
        return None
    by_name = parameters["context"].kind is inspect.Parameter.KEYWORD_ONLY
    return -1 if by_name else list(parameters).index("context")


@interrupts.keeps
def _call(name, function, place, whole, arguments, keywords):
    given = keywords.get("context") if place is not None else None
    if place is not None and 0 <= place < len(arguments):
        given, arguments = arguments[place], list(arguments)
    context, error = find(given, arguments, keywords)
    if place is not None:
        if 0 <= place < len(arguments):
            arguments[place] = context
        else:
            keywords["context"] = context
    return context._ranks.call(name, context, error, function, whole, arguments, keywords)


@interrupts.keeps
def call_here(
    name: str, context: Any, error: Any, function: Callable[..., Any], whole: bool, arguments: Any, keywords: Any
) -> Any:
    """Make a collective call of a generator in a context; `error`: what this rank knows to be wrong with it."""
    lock = context._lock
    if not lock.acquire(False):
        error = wait_for_turn(context, name) or error
    outer, context._doing = context._doing, name
    try:
        steps = None
        if error is None:
            try:
                steps = function(*arguments, **keywords)
            except TypeError as problem:
                refuse(context, problem)
        return _steps(name, context, whole, steps, error)
    except KeyboardInterrupt as interrupt:
        raise context._interrupt(interrupt) from None
    finally:
        context._doing = outer
        lock.release()
        context._heart.done()


def _steps(name, context, whole, steps, error):
    """Return what the generator returns, from agreement to agreement; None for one that an error of this rank leaves
    out."""
    step, same, begun = None if steps is None else steps.send, None, False
    while True:
        if error is None:
            try:
                given = step(same)
            except StopIteration as done:
                if whole:
                    context.agree()
                return done.value
            except BaseException as problem:
                if begun and not (whole and _of_this_rank(problem)):
                    raise
                error = problem
        try:
            if error is not None:
                context.agree(_wrong(name, error), _call="" if begun else None)
            if given.__class__ is str:
                same = context.agree(None, given)
            elif given.__class__ is tuple:
                same = context.agree(None, *given)
            else:
                same = context.agree(_wrong(name, given))
            step = steps.send
        except BaseException as problem:
            if error is not None:
                raise
            step, same = steps.throw, problem  # a later agreement: the function may know what to do
        begun = True


def _of_this_rank(error):
    """Return whether only this rank knows of it, and the others can be notified."""
    known = getattr(error, "agreed", False) or getattr(error, "at_once", False)
    return not known and not isinstance(error, MpiError)


def find(given, arguments, keywords):
    """(context, error) of a call: never raises for what was given, so that this rank takes part where the others
    are.
    """
    if given is not None and given.__class__ in _holders and given.context is given:
        return given, None  # a Context, not a field
    error = None if given is None else ConfigError(f"context: given {type(given).__name__}; allowed: tilewave.Context")
    for value in (*arguments, *keywords.values()):
        if value.__class__ in _holders and (context := getattr(value, "context", None)) is not None:
            return context, error  # one that is being made has none yet
    return _default(), error


def refuse(context, problem):
    """Arguments that the function does not take: as Python says it here, and ConfigError on the ranks that gave
    others.
    """
    try:
        context.agree(problem)
    except ConfigError as error:
        problem.agreed, problem.quiet, problem.partial = error.agreed, error.quiet, error.partial
        raise problem from None


def wait_for_turn(context, name):
    """Another thread is at a call: wait. Of several ranks each may see another order, so that is an error of all."""
    other = context._doing
    context._lock.acquire()
    if context.size == 1:
        return None
    return ConfigError(
        f"{name} was called in thread {threading.current_thread().name!r} while another thread was in "
        f"{other or 'a call'} on the same context of {context.size} ranks, whose order may differ between ranks; "
        "allowed: calls from one thread at a time"
    )


def _wrong(name, problem):
    """Return what a local part has raised, or None, as all ranks raise it."""
    if isinstance(problem, ERRORS) or not (isinstance(problem, _WRONG_ARGUMENTS) or _of_program(problem)):
        return problem
    error = ConfigError(
        f"{name}: {type(problem).__name__}: {text_of(problem)}; allowed: arguments as its documentation says"
    )
    error.__cause__ = problem
    return error


def _of_program(problem):
    """Return whether the caller's Python code has raised it."""
    at = problem.__traceback__ if isinstance(problem, Exception) and not isinstance(problem, MemoryError) else None
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and not at.tb_frame.f_code.co_filename.startswith(notices.HERE)


def text_of(error):
    """An exception's text, whatever its class does; it can be encoded."""
    try:
        text = str(error)
    except BaseException:  # its __str__ failed
        text = "(it has no text)"
    return plain(text)


def plain(text):
    """The same in characters that can be sent and printed."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\0")


def where():
    """The line of the caller's program, "script.py:7": the innermost that is not ours."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((notices.HERE, "<frozen ")):
            return plain(f"{os.path.basename(name)}:{frame.f_lineno}")
        frame = frame.f_back
    return ""


@interrupts.keeps
def agreed(name, context, make):
    """Return what `make` gives, before a collective call; what it raises on one rank is raised on all that come to the
    call.

    A function of collective calls checks its arguments so: ``axes = agreed("tw.Field.sum", context, check)``.
    """
    try:
        return make()
    except Exception as problem:
        with context._lock:
            context.agree(_wrong(name, problem), _call="")  # of no function: the others may be at any
        raise


def ready(text, make):
    """Make something on this rank, once all ranks have agreed on `text`; what `make` raises on one is raised on all.

    A later part of a collective call: ``found = yield from ready("ready", lambda: np.empty(n))``.
    """
    made = error = None
    try:
        made = make()
    except Exception as problem:
        error = problem
    yield error or text
    return made


def behind(steps):
    """Go on with a collective function's generator behind an agreement: what its local first part raises on one rank is
    raised on all.
    """
    step, value, begun = steps.send, None, False
    while True:
        try:
            given = step(value)
        except StopIteration as done:
            return done.value
        except Exception as problem:
            if begun:
                raise
            given = problem
        begun = True
        try:
            step, value = steps.send, (yield given)
        except BaseException as problem:
            step, value = steps.throw, problem
