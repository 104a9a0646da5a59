"""The exceptions that Tilewave raises at its boundary.

Each carries ``agreed``: true when every rank of the run raises the same error, so that a caller may go on without
asking the other ranks. On an agreed error, ``quiet`` is true on all ranks but the one that prints it if nobody
catches it, and ``partial`` where the launch has ranks outside the run, which know nothing of it. ``of_program``: an
error that no rank was asked about, but that each meets when it comes to the same line of the program."""

import contextlib
import numbers
import reprlib

#: Characters of a value that was given, at most, in an error's text.
LONGEST_VALUE = 200


class ConfigError(ValueError):
    """The caller asks for what is not possible; the text says what was given and what is allowed."""

    agreed = False
    of_program = False


class KernelError(RuntimeError):
    """A nest's body raised while it ran, which says the exception and the point; or a verified run was wrong."""

    agreed = False


class MpiError(RuntimeError):
    """An MPI call failed."""

    agreed = False


class RankError(RuntimeError):
    """A function that `tilewave.launch` has called raised on some rank, or a rank has ended without a result.

    Attributes
    ----------
    rank : int
        The lowest rank that has raised by itself, or has no result.
    ranks : tuple of int
        All of them.
    traceback : str
        That of `rank`; empty where it has ended without a word.
    """

    rank: int = 0
    ranks: tuple[int, ...] = ()
    traceback: str = ""


class InternalError(RuntimeError):
    """Tilewave broke one of its invariants: please report it."""

    agreed = False


def is_integer(value, least=None, most=None):
    """Return whether a value is an integer, Python's or NumPy's but no bool, within bounds."""
    return (
        isinstance(value, numbers.Integral)
        and not isinstance(value, bool)
        and (least is None or value >= least)
        and (most is None or value <= most)
    )


def shown(value):
    """A value as an error's text shows it: an array by its type and shape, anything else in one short line."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape and dtype is not None:
        return f"{type(value).__name__} of shape {shape}, {dtype}"
    text = " ".join((repr(value) if isinstance(value, str | bytes) else _BRIEF.repr(value)).split())
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _brief():
    brief = reprlib.Repr()
    brief.maxdict = brief.maxlist = brief.maxtuple = brief.maxset = brief.maxfrozenset = brief.maxdeque = 12
    brief.maxstring = brief.maxother = brief.maxlong = LONGEST_VALUE
    return brief


_BRIEF = _brief()


@contextlib.contextmanager
def of_program():
    """A ConfigError is one of the program, which each rank meets at the same line."""
    try:
        yield
    except ConfigError as error:
        error.of_program = True
        raise


ERRORS = (ConfigError, KernelError, MpiError, InternalError)
#: The text of a MemoryError of which the core has notified no other rank.
NO_MEMORY = "std::bad_alloc"
