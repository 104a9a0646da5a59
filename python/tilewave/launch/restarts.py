"""Launching a program again, from its last checkpoint, on the ranks and hosts that are left after some have died.

Ranks note in a folder which checkpoints they have made, and who has raised an error: hosts share no more than a disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from tilewave import units
from tilewave.errors import MpiError
from tilewave.launch import allocations, processes
from tilewave.launch.hosts import in_blocks, shares, split_hosts
from tilewave.launch.launch import command_of, mpiexec_command, refuse_within_launch, run_command
from tilewave.launch.variables import LIVED, LaunchError

VARIABLE = "TILEWAVE_RESTART"  # environment variable: the folder of notes
CHECKPOINT, ERROR = "checkpoint", "error-{}"
TIMES = 3  # restarts, unless the user says otherwise
IN_VAIN = 3  # launches in a row without a new checkpoint after which there is no other one
ANSWER_S = 30.0  # so long a host may take to start a program: ssh to one that is off tries longer
# Exit codes of a launch that the user or the batch system has ended.
ENDED = {128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

_folder = None  # on ranks


def take_folder():
    """On a rank: notes go to the folder of this launch, if it has one; programs that the rank starts do not know it."""
    global _folder
    _folder = os.environ.pop(VARIABLE, None)


def note_checkpoint(path, step):
    """On rank 0: a checkpoint is complete, the folder `path`."""
    if _folder is not None:
        _note(CHECKPOINT, json.dumps([path, step]))


def note_error(error, rank):
    """On a rank: its script ends by an exception, which it would raise again; unless another rank's death is behind."""
    while error is not None:
        if isinstance(error, MpiError) and "has ended" not in str(error):  # that one has ended in order
            return
        error = error.__cause__ or error.__context__
    if _folder is not None:
        _note(ERROR.format(rank or 0), "")


def _note(name, text):
    path = os.path.join(_folder, name)
    with contextlib.suppress(OSError):  # the launching side has ended
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.part", path)


def launch(script, args=(), ranks=1, threads=None, hosts=None, times=TIMES, more=()):
    """`tilewave.launch.launch.launch`, and at most so many times again when a rank or host dies; the last exit code.

    Raises
    ------
    LaunchError
        For what cannot be started.
    """
    refuse_within_launch()
    if times < 1:
        raise LaunchError(f"{times} restarts; allowed: 1 or more")
    hosts, step, in_vain, began = split_hosts(hosts), None, 0, time.monotonic()
    for done in range(times + 1):
        named = hosts or _of_job()
        lived = {LIVED: f"{(time.monotonic() - began) / done:.3f}"} if done else {}
        with _folder_of_notes(named) as folder:
            variables = {**dict(more), **lived, VARIABLE: str(folder)}
            code = run_command(command_of(script, args, ranks, threads, hosts, more=variables), ranks)
            if code == 0 or code in ENDED:
                return code
            made = _last_checkpoint(folder)
            step, in_vain = (step, in_vain + 1) if made is None else (made, 0)
            why = _why_not(folder, done, times, in_vain)
        if why is None and len(named) > 1:
            there = answering(named)
            if len(there) < len(named):
                ranks, hosts = ranks_left(named, ranks, there), there
                why = None if hosts else "no host answers"
        if why is not None:
            _say(f"not launched again: {why}")
            return code
        gone = [host for host in named if hosts and host not in hosts]
        silent = f"{', '.join(gone)} {'do' if len(gone) > 1 else 'does'} not answer; " if gone else ""
        where = f" on {in_blocks(hosts, ranks)}" if hosts else ""
        since = "as it began" if step is None else f"from the checkpoint of step {step}"
        _say(
            f"{silent}launched again ({done + 1} of at most {times}), {since}, with {units.count(ranks, 'rank')}{where}"
        )
    return code


def _of_job():
    given = allocations.allocation()
    return [f"{host}:{count}" for host, count in given.hosts] if given is not None else []


@contextlib.contextmanager
def _folder_of_notes(hosts):
    """A new folder for each launch: what a disk's clients remember of an old one does not matter."""
    here = dict(prefix=".tilewave-restart-", dir=".") if hosts else dict(prefix="tilewave-restart-")
    folder = Path(tempfile.mkdtemp(**here)).absolute()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _why_not(folder, done, times, in_vain):
    """Why a launch that has failed is not repeated, or None."""
    errors = sorted(int(path.name[len(ERROR.format("")) :]) for path in folder.glob(ERROR.format("*[0-9]")))
    if errors:
        return f"rank {errors[0]} raised an error, and would raise it again"
    if done == times:
        return f"it was, {units.count(times, 'time')}; `--restarts {2 * times}` allows more"
    if in_vain == IN_VAIN:
        shared = f"; all hosts must share the disk of {folder.parent}" if folder.name.startswith(".") else ""
        return f"{IN_VAIN} launches in a row made no checkpoint, as the next would: save more often{shared}"
    return None


def _last_checkpoint(folder):
    """The step of the last checkpoint that a launch has made, or None."""
    try:
        return json.loads((folder / CHECKPOINT).read_bytes())[1]
    except FileNotFoundError:
        return None


def answering(hosts):
    """Return the hosts that start a program, by the means that start ranks there."""
    tag, end = uuid.uuid4().hex, time.monotonic() + ANSWER_S
    env = {**os.environ, processes.TAG: "/".join(filter(None, [os.environ.get(processes.TAG), tag]))}
    started = {}
    try:
        for host in hosts:
            started[host] = subprocess.Popen(
                mpiexec_command(1, [sys.executable, "-c", ""], [f"{host.partition(':')[0]}:1"]),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=processes.die_with_parent,  # noqa: PLW1509 - a system call, which takes no lock
            )
        while any(process.poll() is None for process in started.values()) and time.monotonic() < end:
            time.sleep(0.05)
        return [host for host, process in started.items() if process.poll() == 0]
    finally:
        if any(process.poll() != 0 for process in started.values()):
            processes.kill(tag)
        for process in started.values():
            process.wait()


def ranks_left(hosts, ranks, there):
    """How many ranks a launch goes on with: as many as before where there is room on the hosts that are left.

    A host has room for as many as it was given, or as it had.
    """
    slots = [(name, int(count or 1)) for name, _, count in (host.partition(":") for host in hosts)]
    had = dict(shares(slots, ranks))
    room = sum(max(count, had.get(name, 0)) for host, (name, count) in zip(hosts, slots) if host in there)
    return min(ranks, room)


def _say(text):
    print(f"tilewave: {text}", file=sys.stderr, flush=True)
