"""Reading files that others may have put in place: nothing that hangs, nothing that fills the memory."""

import errno
import os
import stat

MOST_BYTES = 256 << 20  # of a kernel, a plan or a machine; what Tilewave writes is far below


def read(path):
    """A regular file's bytes, and what the system says of it.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    tuple of bytes and os.stat_result

    Raises
    ------
    OSError
        When it cannot be read, is no regular file (a FIFO would wait for a writer, a device may never end), or is
        larger than 256 MB; ``strerror`` says which.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
        if status.st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it has {status.st_size} bytes, allowed: {MOST_BYTES}", os.fspath(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(), status
    finally:
        os.close(handle)
