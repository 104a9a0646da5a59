"""This file has what Tilewave reports without being asked: warnings, how far a long run is, and a log for programs that
want one."""

import contextlib
import os
import sys
import time
import warnings

#: "0": say nothing; "1": say it line by line; "line": on one line of a terminal that this process may not see, as
#: `tilewave run` asks for. Not set: one line where stderr is a terminal.
VARIABLE = "TILEWAVE_PROGRESS"

LEAST_S = 5.0  # runs that take less say nothing
QUARTER = 0.25  # of a run: how often progress is printed line by line

#: The folder of this package, with a separator at its end.
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(text):
    """Warn of ``text`` at the line of the user's program that called Tilewave; Python shows it once for each such line.

    Notes
    -----
    Not collective: call it on rank 0 only.
    """
    level, frame = 2, sys._getframe(1)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, RuntimeWarning, stacklevel=level)


def log(level, text, *values):
    """Write ``text % values`` to the logger ``tilewave``.

    Parameters
    ----------
    level : str
        "INFO": what all ranks decide together, on rank 0; "DEBUG": what a rank does alone, on that rank.

    Notes
    -----
    Not collective. A program that wants a log has imported `logging`; for others it is not imported.
    """
    if logging := sys.modules.get("logging"):
        logger, number = logging.getLogger("tilewave"), getattr(logging, level)
        if logger.isEnabledFor(number):
            logger.log(number, text, *(value() if callable(value) else value for value in values), stacklevel=2)


def style():
    """How to tell progress: "" (not at all), "lines", or "line"."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return "line" if _terminal() else ""
    return {"0": "", "": "", "line": "line"}.get(wanted, "line" if _terminal() else "lines")


def write(text):
    """On stderr, at once; a stderr that is closed is no error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


class Progress:
    """How far a long piece of work is: one line of a terminal that is written over, or a line for each quarter.

    Parameters
    ----------
    shown : bool
        On rank 0.
    verb : str
        How lines begin.
    after_s : float, optional
        Shorter work shows nothing. Default: `LEAST_S`.
    """

    def __init__(self, shown, verb="running", after_s=None):
        self._style, self._verb = style() if shown else "", verb
        self._after_s = LEAST_S if after_s is None else after_s
        self._since = self._part = self._width = 0
        self.of = ""  # the nest that runs; empty between runs

    def at(self, part):
        """``part`` of the work is over, 0 to 1; 0 where that is not known."""
        if not self._style or not self.of:
            return
        now = time.monotonic()
        if not self._since:
            self._since = now
        if now - self._since < self._after_s:
            return
        if self._style == "line":
            self._part = max(part, self._part)
            text = f"{self._verb} {self.of} {100 * self._part:3.0f} %"
            self._width = max(self._width, len(text))
            write("\r" + text)
        elif part >= self._part + QUARTER:
            self._part = part - part % QUARTER
            write(f"{self._verb} {self.of} {100 * self._part:.0f} %\n")

    def end(self):
        """The work is over: the line goes."""
        if self._width:
            write("\r" + " " * self._width + "\r")
        self._since = self._part = self._width = 0
        self.of = ""


def _terminal():
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # none, or closed
        return False
