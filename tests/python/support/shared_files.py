"""Shared-memory files of MPI: a program that is killed before it has a context leaves them behind."""

from __future__ import annotations

import contextlib
import os
import re
import time

SHM = "/dev/shm"
# MPICH makes the first, UCX, which it may use, the second.
SHARED_FILES = re.compile(r"(mpich_shm|ucx_shm)_\w+")


def present():
    """Names of this user's shared-memory files of MPICH."""
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
