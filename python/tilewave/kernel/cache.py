"""Compiled kernels and their rates on disk, so that a program that runs again need not compile again.

A kernel is found by the whole text that it was compiled from: its LLVM module, the processor, and
the versions of all that takes part. The text is stored with the object code and compared, and a
checksum covers both, so a file gives either exactly this kernel or none. No cache is ever needed:
where a folder or file cannot be used, the kernel is compiled.

The folder is ``$TILEWAVE_CACHE_DIR``, else ``$XDG_CACHE_HOME/tilewave``, else
``~/.cache/tilewave``. An empty ``TILEWAVE_CACHE_DIR`` turns the cache off. As code from it is run,
it belongs to the user, and so do the files in it; others cannot write them. Only files that a cache
has written are ever removed, known by their names and first bytes; a folder of another user is left as it is.
"""

import contextlib
import hashlib
import os
import re
import stat
import struct
import threading
from pathlib import Path

from tilewave import files

#: Files in the folder, at most; those that were not used for the longest time are removed.
FILES = 1024

SUFFIX, SUFFIXES = ".kernel", (".kernel", ".rates")
_OUR_FILE = re.compile(rf"[0-9a-f]{{64}}({'|'.join(map(re.escape, SUFFIXES))})")
_MAGIC = b"tilewave kernel 1\n"
_SIZES = struct.Struct("<QQ")  # of the key and of the object code
#: By the first digit of a kernel's file: held while one is compiled. LLVM compiles one at a time anyway.
_BUILDING = {digit: threading.Lock() for digit in "0123456789abcdef"}
_HEAD = len(_MAGIC) + _SIZES.size + hashlib.sha256().digest_size


def folder():
    """The folder of the cache as a Path; None where there is none."""
    given = os.environ.get("TILEWAVE_CACHE_DIR")
    if given is not None:
        return Path(given).absolute() if given else None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification: ignore it
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "tilewave") if os.path.isabs(base) else None


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
    key = key.encode()
    where = folder()
    if where is None:
        return build()
    path = where / (hashlib.sha256(key).hexdigest() + SUFFIX)
    found = _read(path, key)
    if found is not None:
        return found
    with _BUILDING[path.name[0]]:  # threads that want one kernel: the first compiles it
        found = _read(path, key)
        if found is not None:
            return found
        code = build()
        with contextlib.suppress(OSError):  # without a cache the kernel is as good
            if _write(path, key, code):
                _remove_oldest(where)
    return code


def find(key, suffix):
    """The data stored for a key, as bytes, or None."""
    key, where = key.encode(), folder()
    return where and _read(where / (hashlib.sha256(key).hexdigest() + suffix), key)


def keep(key, data, suffix):
    """Keep data for a key, where a file can be written."""
    key, where = key.encode(), folder()
    with contextlib.suppress(OSError):
        if where is not None and _write(where / (hashlib.sha256(key).hexdigest() + suffix), key, data):
            _remove_oldest(where)


def _read(path, key):
    """The object code in a file; None unless it is whole, written by this user, and of this key."""
    try:
        data = files.read_private(path)
    except OSError:
        return None
    code = _unpacked(data, key)
    if code is not None:
        with contextlib.suppress(OSError):
            os.utime(path)  # used now: the oldest go first
    return code


def _packed(key, code):
    sizes = _SIZES.pack(len(key), len(code))
    return _MAGIC + sizes + hashlib.sha256(sizes + key + code).digest() + key + code


def _unpacked(data, key):
    if len(data) < _HEAD or not data.startswith(_MAGIC):
        return None
    sizes = data[len(_MAGIC) : len(_MAGIC) + _SIZES.size]
    of_key, of_code = _SIZES.unpack(sizes)
    content = data[_HEAD:]
    if len(content) != of_key + of_code or content[:of_key] != key:
        return None
    if hashlib.sha256(sizes + content).digest() != data[len(_MAGIC) + _SIZES.size : _HEAD]:
        return None
    return content[of_key:]


def _write(path, key, code):
    """Whether it was written: not in the folder of another user."""
    return files.write_private(path, _packed(key, code))


def _remove_oldest(where):
    """Keep the newest files."""
    ages = []
    with os.scandir(where) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process has removed it
                if _OUR_FILE.fullmatch(entry.name):
                    ages.append((entry.stat(follow_symlinks=False).st_mtime, entry.path))
    for _, path in sorted(ages)[: max(0, len(ages) - FILES)]:
        with contextlib.suppress(OSError):
            _remove(path)


def _remove(path):
    """Remove a file that a cache has begun to write; leave any other."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        return
    with open(path, "rb") as file:
        begin = file.read(len(_MAGIC))
    if _MAGIC.startswith(begin):  # an unfinished file may be shorter
        os.unlink(path)
