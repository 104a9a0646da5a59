"""This file has what each rank of a launch runs, started by `tilewave.launch.start`: the script, and how it begins and
ends."""

import atexit
import contextlib
import os
import runpy
import sys
import time
import traceback

from tilewave import notices
from tilewave.launch import launchers, restarts
from tilewave.launch.launch import QUOTE, notes_here, rank
from tilewave.launch.processes import die_with_parent
from tilewave.nest.source import remember


def main():
    """Run ``sys.argv[1]`` as the main script of this rank; its arguments follow. Before each stands QUOTE."""
    if len(sys.argv) < 2 or not all(word.startswith(QUOTE) for word in sys.argv[1:]):
        raise SystemExit("`tilewave run` starts this on each rank: tilewave run -n 2 SCRIPT [ARGS]")
    sys.argv = [word[len(QUOTE) :] for word in sys.argv[1:]]
    _note_beginning_and_end()
    restarts.take_folder()
    script = os.path.abspath(sys.argv[0])  # __file__ is absolute, as after ``python SCRIPT``
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.path.dirname(script))
    my_rank = rank()
    if my_rank is not None:
        die_with_parent()
        # A pipe to mpiexec: show lines as they come, and whole ones (with PYTHONUNBUFFERED print
        # would write each of its arguments alone, between those of other ranks).
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(line_buffering=True, write_through=False)
    remember(script)
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        if code := error.code if isinstance(error.code, int) else int(error.code is not None):
            restarts.note_error(error, rank())
            _note(code & 255, "exit")
        raise
    except KeyboardInterrupt:
        _leave(130)
    except BaseException as error:
        restarts.note_error(error, my_rank)
        text = _traceback(error, script)
        if getattr(error, "agreed", False):  # every rank raises it: one voice, an orderly end
            quiet = getattr(error, "quiet", bool(my_rank))
            if not quiet:
                _say(text)
            if not getattr(error, "partial", False):
                _note(1, "exit")
                raise SystemExit(1) from None
            if quiet:  # leaving ends the job: let the one who speaks go first
                time.sleep(1)
            _leave(1)
        if my_rank is None:
            _say(text)
            raise SystemExit(1) from None
        if getattr(error, "of_program", False):
            if my_rank == 0:
                _say(text)
            if my_rank == 0 or _rank_0_has_left(within_s=1):  # it came to the same line
                _leave(1)
        # The other ranks may wait for this one; MPI_Finalize would wait for them.
        _say(f"rank {my_rank}:\n{text}")
        _leave(1)


def _traceback(error, script):
    """The traceback as ``python SCRIPT`` would print it."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename != script:
        step = step.tb_next
    if not hasattr(error, "agreed") or error.__cause__ is not None:
        return "".join(traceback.format_exception(type(error), error, step))
    # Tilewave's errors say it all: show where the script called, not what we called inside.
    inside = notices.HERE
    frames = [f for f in traceback.extract_tb(step) if not f.filename.startswith(inside)]
    return "".join(
        [
            "Traceback (most recent call last):\n",
            *traceback.format_list(frames),
            *traceback.format_exception_only(type(error), error),
        ]
    )


def _say(text):
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    sys.stderr.write(text)
    sys.stderr.flush()


def _leave(code):
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _note(code & 255, "gone")
    os._exit(code)


def _rank_0_has_left(within_s):
    """Return whether rank 0 notes within some seconds that it has failed."""
    end = time.monotonic() + within_s
    while _noting is not None and time.monotonic() < end:
        with contextlib.suppress(OSError), open(_noting[1]) as notes:
            if any(line.split()[1:] in (["0", "gone"], ["0", "exit"]) for line in notes):
                return True
        time.sleep(0.02)
    return False


_noting = None  # the process whose notes count, and where they go: children of a rank say nothing


def _note_beginning_and_end():
    """Note that this rank has begun; at its exit, after all else, that its script is over."""
    global _noting
    path = notes_here()
    if path is None:
        return
    _noting = os.getpid(), path
    launchers.mark_rank()
    _note(os.getpid(), "start")
    launchers.before_start.append(lambda: _note(0, "mpi"))
    atexit.register(lambda: _note(_has_mpi(), "over"))  # the first that is registered is the last that is called

    def replaced(event, _):
        if event == "os.exec":  # another program takes this process over: how it ends mpiexec knows
            _note(1, "over")

    sys.addaudithook(replaced)


def _has_mpi():
    """Return whether this process has loaded an MPI: 1 or 0."""
    with contextlib.suppress(OSError), open("/proc/self/maps", errors="replace") as maps:
        return int("/libmpi" in maps.read())
    return 1


def _note(number, how):
    """Tell the launching side how this rank begins or ends."""
    if _noting is None or _noting[0] != os.getpid():
        return
    with contextlib.suppress(OSError):  # the launching side has ended
        file = os.open(_noting[1], os.O_WRONLY | os.O_APPEND)
        os.write(file, f"{number} {rank() or 0} {how}\n".encode())
        os.close(file)
