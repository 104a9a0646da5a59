"""Shared-memory files of MPI: killed jobs leave them behind, 2 MB and more each."""

from __future__ import annotations

import contextlib
import os
import re
import time

SHM = "/dev/shm"
# MPICH makes the first, UCX, which it may use, the second.
SHARED_FILES = re.compile(r"(mpich_shm|ucx_shm)_\w+")
YOUNG_S = 1.0  # a shared file's age below which its makers may be at it where this process does not see them


def present():
    """Names of this user's shared-memory files of MPICH; a job that is killed leaves them (2 MB and more each)."""
    found = set()
    with contextlib.suppress(OSError), os.scandir(SHM) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # gone meanwhile
                if (
                    SHARED_FILES.fullmatch(entry.name)
                    and entry.is_file(follow_symlinks=False)
                    and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
                ):
                    found.add(entry.name)
    return found


def orphans(before=()):
    """Paths of files that came since `before` and that no process uses: two looks, 0.2 s apart."""
    found = _unused(present() - set(before))
    if found:
        time.sleep(0.2)  # makers whom this process does not see may be at it
        found = _unused(found & present())
    return [os.path.join(SHM, name) for name in sorted(found)]


def _unused(names):
    """Those of these files that no living process has open or mapped."""
    # Who makes a file has it open from the beginning until it is mapped. So first what is open, then what is mapped.
    for pid in sorted(filter(str.isdigit, os.listdir("/proc")), key=int, reverse=True) if names else ():
        used = set()
        with contextlib.suppress(OSError):  # another user's process, or gone meanwhile
            for number in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    used.add(os.path.basename(os.readlink(f"/proc/{pid}/fd/{number}")))
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", errors="replace") as file:
            used.update(re.findall(rf"{SHM}/(\S+)", file.read()))
        names = names - used
        if not names:
            break
    return names


def remove_left_over():
    """Remove this user's shared-memory files that killed jobs have left: those that no process uses.

    Notes
    -----
    Not collective. Without such files it costs the reading of one folder, else about 0.1 ms a process of this system.
    """
    old = set()
    for name in present():
        with contextlib.suppress(OSError):
            if time.time() - os.stat(os.path.join(SHM, name)).st_mtime > YOUNG_S:
                old.add(name)
    _remove(os.path.join(SHM, name) for name in _unused(old))


def remove_orphans(before):
    """Remove the files that came since `before` and that no process uses."""
    _remove(orphans(before))


def _remove(paths):
    for path in paths:
        with contextlib.suppress(OSError):
            os.remove(path)
