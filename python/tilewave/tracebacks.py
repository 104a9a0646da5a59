"""Tracebacks of errors that say what the user has to change: the user's lines, without those of this package.

Every public function and method is a *door* (`doors`): a `ConfigError` or `KernelError` that leaves it loses the frames
of this package, in notebooks, scripts and consoles, and so do its causes. Functions of the user that were called
inside, such as an ``init=``, keep theirs. `InternalError` and whatever else was not foreseen keep all.
``TILEWAVE_TRACEBACKS=all`` keeps all frames of all errors.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from typing import TYPE_CHECKING, Any, TypeVar

from tilewave import notices
from tilewave.errors import ConfigError, InternalError, KernelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "TILEWAVE_TRACEBACKS"

#: Of public classes: what else users call, by the names that Python gives it.
_SPECIAL = ("__init__", "__call__", "__getitem__", "__setitem__", "__setattr__", "__matmul__")


def door(function: F) -> F:
    """Decorator of a public function: errors of its user leave it without the frames of this package."""

    @functools.wraps(function)
    def call(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except (ConfigError, KernelError) as error:
            trim(error)
            raise  # bare: this frame is not added, either
        except TypeError as error:
            # Arguments that the function does not take; as a collective call raises it, or as Python does.
            if hasattr(error, "agreed") or error.__traceback__.tb_next is None:
                trim(error)
            raise

    call._door = True
    if keeps := getattr(function, "_keeps", None):  # interrupts of a collective call are held back in its door, too
        call.__code__ = call.__code__.replace(co_name="collective_call")  # other doors keep none
        keeps(call)
    return call


def doors(modules: Iterable[types.ModuleType], more: Iterable[str] = ()) -> None:
    """Make doors of all public functions of these modules, and of the public methods of their public classes.

    Parameters
    ----------
    modules : iterable of module
    more : iterable of str
        Public names that the modules do not list in ``__all__``.
    """
    for module in modules:
        for name in (*module.__all__, *more):
            value = vars(module).get(name)
            if inspect.isclass(value):
                for cls in value.__mro__:
                    if cls.__module__.startswith(__package__) and not issubclass(cls, BaseException):
                        _class(cls)
            elif isinstance(value, types.FunctionType) and not hasattr(value, "_door"):
                made = door(value)
                setattr(module, name, made)
                home = sys.modules[value.__module__]
                if getattr(home, value.__name__, None) is value:
                    setattr(home, value.__name__, made)


def _class(cls):
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in _SPECIAL:
            continue
        if isinstance(value, classmethod | staticmethod):
            if isinstance(value.__func__, types.FunctionType) and not hasattr(value.__func__, "_door"):
                setattr(cls, name, type(value)(door(value.__func__)))
        elif isinstance(value, types.FunctionType) and not hasattr(value, "_door"):
            setattr(cls, name, door(value))


def trim(error: BaseException) -> None:
    """Take the frames of this package out of the tracebacks of an error and of what caused it.

    Parameters
    ----------
    error : BaseException
        One of the user's.
    """
    if os.environ.get(VARIABLE) == "all":
        return
    error.__traceback__ = _outside(error.__traceback__)
    seen = {id(error)}
    while (error := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
        if id(error) in seen or isinstance(error, InternalError):
            return
        seen.add(id(error))
        # Where all is ours, the innermost frame says where it was raised.
        error.__traceback__ = _outside(error.__traceback__) or _innermost(error.__traceback__)


def _outside(trace):
    """A traceback without the frames of this package."""
    frames = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(notices.HERE):
            frames.append(trace)
        trace = trace.tb_next
    last = None
    for frame in reversed(frames):
        last = types.TracebackType(last, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return last


def _innermost(trace):
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace
