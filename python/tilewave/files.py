"""Files: read without hanging or filling the memory, written as a whole or not at all.

A file or folder is written under another name, ``.tilewave-`` and 32 digits, in the folder where it will be, and then
renamed: others see the old one, the new one or none. What a killed process leaves there is removed by a later one that
writes into the folder.
"""

import contextlib
import errno
import io
import os
import re
import shutil
import stat
import time

from tilewave.errors import ConfigError, shown

MOST_BYTES = 256 << 20  # of a kernel, a schedule, a timeline; what Tilewave writes is far below
MOST_TEXT_BYTES = 32 << 20  # of metadata, plans, machines, hosts: Python's objects take up to 20 times as much

ABANDONED_S = 86400  # an unfinished folder that is older belongs to no running process

_looked_through = set()  # folders in which this process has looked for unfinished files


def read(path, most=MOST_BYTES):
    """Return a regular file's bytes.

    Parameters
    ----------
    path : path of the file
    most : int
        Bytes that it may have.

    Raises
    ------
    ConfigError
        For what is no path.
    OSError
        When it cannot be read, is no regular file (a FIFO would wait for a writer, a device may never end), or is
        larger; ``strerror`` says which.
    """
    with opened(path, most) as file:
        size = max(os.fstat(file.fileno()).st_size, 65536)  # a file of /proc has none
        data = file.read(size + 1)
        if len(data) > size:
            raise OSError(errno.EFBIG, "it grows while it is read", os.fspath(path))
        return data


@contextlib.contextmanager
def opened(path, most=None):
    """Open a regular file to read its bytes; errors are those of `read`."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise ConfigError(f"given {shown(path)}; allowed: a path")
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
        if most is not None and status.st_size > most:
            raise OSError(errno.EFBIG, f"it has {status.st_size} bytes, allowed: {most}", os.fspath(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(handle)


def save(what, path, data, folder=False):
    """Write what the user has asked for; an old file stays as it is until the new one is whole.

    Parameters
    ----------
    what : str
        How errors begin.
    path : str or path
    data : bytes or str
    folder : bool
        Make the folder, too, where there is none.

    Raises
    ------
    ConfigError
        Where that fails: no folder, no right, no room.
    """
    if not isinstance(path, str | os.PathLike):
        raise ConfigError(f"{what}: given {shown(path)}; allowed: a path")
    try:
        if folder:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        write(path, data)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in it
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{what}: {os.fspath(path)!r} cannot be written: {why}") from None


def drawn(figure, path="", dpi=120):
    """A Matplotlib figure as bytes, in the format that the ending of a path says; without one as PNG."""
    out = io.BytesIO()
    figure.savefig(out, format=os.path.splitext(os.fspath(path))[1][1:] or "png", dpi=dpi)
    return out.getvalue()


def write(path, data):
    """Write a file as a whole or not at all, through links, with the rights of an old one.

    Parameters
    ----------
    path : str or path
    data : bytes or str

    Raises
    ------
    OSError
    """
    data = data.encode() if isinstance(data, str) else data
    path = os.path.realpath(path)
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):  # a device or a pipe has no old content, and stays what it is
            with open(path, "wb") as file:
                file.write(data)
            return
    part = begin(path)
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # a disk that is over its quota, or gone, says so here
        os.replace(part, path)
    except BaseException:  # an interrupt, too, leaves nothing behind
        remove(part)
        raise


def begin(path):
    """Make an empty file in the folder of ``path``, under another name, with an old one's rights; give its name."""
    folder = os.path.dirname(path)
    part = os.path.join(folder, f".tilewave-{os.urandom(16).hex()}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with contextlib.suppress(OSError):
            os.fchmod(handle, stat.S_IMODE(os.stat(path).st_mode))
    finally:
        os.close(handle)
    if (where := os.path.realpath(folder or ".")) not in _looked_through:
        from tilewave._core import file_cache  # launches read files without the compiled core

        _looked_through.add(where)
        file_cache.remove_unfinished(where)
    return part


def begin_folder(path, abandoned_s=ABANDONED_S):
    """Make an empty folder in that of ``path``, under another name; give its name. Older unfinished ones are removed.

    Raises
    ------
    OSError
    """
    folder = os.path.dirname(path) or "."
    for entry in os.scandir(folder):
        if re.fullmatch(r"\.tilewave-[0-9a-f]{32}\.part", entry.name) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):  # another program has just given it its name
                if time.time() - entry.stat().st_mtime >= abandoned_s:
                    remove(entry.path)
    part = os.path.join(folder, f".tilewave-{os.urandom(16).hex()}.part")
    os.mkdir(part)
    return part


def write_new(path, *parts):
    """Write a file that is not there yet, to the disk.

    Parameters
    ----------
    path : str
    *parts : bytes or array of bytes
        One behind the other.

    Raises
    ------
    OSError
    """
    with open(path, "xb", buffering=0) as file:
        for part in map(memoryview, parts):
            while len(part):
                part = part[file.write(part) :]
        os.fsync(file.fileno())  # a disk that is over its quota, or gone, says so here


def sync_folder(folder):
    """The names in a folder, to the disk.

    Raises
    ------
    OSError
    """
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # a disk that has no such call
            raise
    finally:
        os.close(number)


def rename_folder(made, path):
    """Give a folder its name, in place of one that may be there.

    Raises
    ------
    OSError
    """
    old = None
    if os.path.lexists(path):
        old = os.path.join(os.path.dirname(made), f".tilewave-{os.urandom(16).hex()}.part")
        os.rename(path, old)
    try:
        os.rename(made, path)
        sync_folder(os.path.dirname(path) or ".")
    except OSError:
        if old is not None and not os.path.lexists(path):
            os.rename(old, path)
        raise
    if old is not None:
        remove(old)


def remove(part):
    """Remove a file or folder that did not become whole; it may be gone."""
    with contextlib.suppress(OSError):
        os.unlink(part)
        return
    shutil.rmtree(part, ignore_errors=True)
