"""Compiled kernels on disk, so that a program that runs again need not compile again.

A kernel is found by the whole text that it was compiled from: its LLVM module, the processor, and the versions of all
that takes part. The core reads and writes the files (src/data/file_cache.hpp), so a file gives either exactly this
kernel or none. No cache is ever needed: where a folder or file cannot be used, the kernel is compiled.
"""

import os
import threading
from pathlib import Path

from tilewave._core import file_cache

#: Files that are stored; beyond, those go that were not used for the longest time.
FILES = file_cache.MOST_FILES

SUFFIX = ".kernel"
#: By the key's hash: held while a kernel is compiled. LLVM compiles one at a time anyway.
_BUILDING = [threading.Lock() for _ in range(16)]


def folder():
    """Where files are stored, as a Path; None if nowhere."""
    where = file_cache.folder()
    return Path(os.fsdecode(where)) if where else None


def find(key):
    """Return what is stored for a key, or None."""
    return file_cache.find(key, SUFFIX)


def object_code(key, build):
    """The object code of a kernel, from the cache or else from ``build``.

    Parameters
    ----------
    key : str
        All that the object code depends on.
    build : callable
        Without arguments; returns the object code as bytes, which is then stored.

    Returns
    -------
    bytes
    """
    found = find(key)
    if found is None:
        with _BUILDING[hash(key) % len(_BUILDING)]:  # threads that want one kernel: the first compiles it
            found = find(key)
            if found is None:
                found = build()
                file_cache.store(key, SUFFIX, found, FILES)
    return found
