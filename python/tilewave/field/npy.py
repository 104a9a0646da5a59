"""Arrays in .npy files, each rank's blocks written and read by itself. Nothing here is collective."""

import errno
import io
import math
import os
import stat
import tokenize

import numpy as np

from tilewave import files
from tilewave.errors import ConfigError, shown
from tilewave.nest.parse import one_at_a_time

PIECE_BYTES = 8 << 20  # of a block, copied to memory in the order of the file before it is written


def path_of(what, path):
    """A path as text.

    Raises
    ------
    ConfigError
        For what is no path.
    """
    try:
        text = os.fspath(path)
        if not isinstance(text, str) or not text or "\0" in text:
            raise TypeError
    except TypeError:
        raise ConfigError(f"{what}: path {shown(path)} was given; allowed: the name of a .npy file") from None
    return text


def create(path, shape, dtype):
    """Make a file in the folder of `path`, under another name, with the header and room for all values.

    Returns
    -------
    str
        Its name.

    Raises
    ------
    ConfigError
        Where that fails: no folder, no right, no room.
    """
    with _named("save", path):
        if os.path.exists(path) and not os.path.isfile(path):
            raise OSError("it is a folder" if os.path.isdir(path) else "it is no ordinary file")
        made = files.begin(path)
        number = os.open(made, os.O_WRONLY)
        try:
            head = _header(shape, dtype)
            os.write(number, head)
            size = len(head) + math.prod(shape) * dtype.itemsize
            try:
                os.posix_fallocate(number, 0, size)  # a full disk is an error here, before anybody writes
            except OSError as problem:
                if problem.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
                os.truncate(number, size)  # a disk that reserves nothing
        except BaseException:
            files.remove(made)
            raise
        finally:
            os.close(number)
    return made


def write(path, made, shape, dtype, owned, local):
    """Write one block into the file that `create` made.

    Parameters
    ----------
    path : str
        What the file will be called.
    made : str
    shape : tuple of int
        Of the whole array.
    dtype : numpy.dtype
    owned : tuple of slice
        The block's global index ranges.
    local : numpy.ndarray
        Its values, with any strides.

    Raises
    ------
    ConfigError
        Where that fails; where the file is not here, since the ranks do not share the disk.
    """
    if local.size == 0:
        return
    with _named("save", path):
        number = os.open(made, os.O_WRONLY)
        try:
            first = len(_header(shape, dtype))
            for offset, values in _runs(shape, owned, local):
                _write_all(number, values, first + offset * dtype.itemsize)
            os.fsync(number)  # a disk that is over its quota, or gone, says so here
        finally:
            os.close(number)


def finish(path, made):
    """Give the file its name.

    Raises
    ------
    ConfigError
        Where that fails.
    """
    with _named("save", path):
        os.replace(made, path)


def opened(path, dtypes):
    """The array of a file, mapped.

    Parameters
    ----------
    path : str
    dtypes : sequence of numpy.dtype
        Those allowed, in any byte order.

    Returns
    -------
    numpy.ndarray
        Read-only; in the file's order of elements and bytes.

    Raises
    ------
    ConfigError
        For a file that cannot be read, is cut short, or holds another kind of array.
    """
    with _named("load", path):
        try:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("it is no ordinary file")
            with open(path, "rb") as file:
                version = np.lib.format.read_magic(file)
                read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(
                    version
                )
                if read is None:
                    raise ValueError(f"its format is {version}; allowed: 1.0 and 2.0")
                with one_at_a_time:  # NumPy parses it
                    shape, fortran, dtype = read(file)
                first = file.tell()
        except (ValueError, EOFError, SyntaxError, tokenize.TokenError) as problem:  # of a damaged header
            raise ConfigError(f"load: {path!r} is no .npy file that can be read: {problem}") from None
        if dtype.newbyteorder("=") not in dtypes:
            raise ConfigError(f"load: {path!r} holds {dtype}; allowed: {', '.join(each.name for each in dtypes)}")
        if not 1 <= len(shape) <= 4 or any(isinstance(n, bool) or n < 0 for n in shape):
            raise ConfigError(f"load: {path!r} holds an array of shape {shape}; allowed: one to four extents >= 0")
        wanted = first + math.prod(shape) * dtype.itemsize
        if status.st_size < wanted:
            raise ConfigError(
                f"load: {path!r} is cut short: it has {status.st_size} bytes, an array of shape {shape} and dtype "
                f"{dtype} needs {wanted}"
            )
        if 0 in shape:
            return np.empty(shape, dtype)
        return np.memmap(path, dtype, "r", first, shape, "F" if fortran else "C")


def _header(shape, dtype):
    text = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        text, {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    )
    return text.getvalue()


def _runs(shape, owned, local):
    """(position in the whole array, contiguous values) of a block, in runs that lie together in the file."""
    whole = 0  # trailing dimensions that the block has whole: their elements lie together
    while whole < len(shape) - 1 and local.shape[-1 - whole] == shape[-1 - whole]:
        whole += 1
    outer = len(shape) - 1 - whole  # subscripts before the dimension along which a run goes
    inner = math.prod(shape[outer + 1 :])
    starts = np.array([math.prod(shape[k + 1 :]) for k in range(len(shape))], np.int64)
    most = max(1, PIECE_BYTES // (inner * local.itemsize))
    for at in np.ndindex(*local.shape[:outer]):
        base = sum((owned[k].start + n) * int(starts[k]) for k, n in enumerate(at))
        for low in range(0, local.shape[outer], most):
            high = min(low + most, local.shape[outer])
            yield base + (owned[outer].start + low) * inner, np.ascontiguousarray(local[(*at, slice(low, high))])


def _write_all(number, values, offset):
    data = memoryview(values).cast("B")
    while data:
        done = os.pwrite(number, data, offset)
        data, offset = data[done:], offset + done


class _named:
    """Turns an OSError into an error that all ranks may raise: with the path and what failed."""

    def __init__(self, what, path):
        self.what, self.path = what, path

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            raise MemoryError(f"{self.what}: {self.path!r}: {error.strerror}") from None
        if isinstance(error, OSError):
            hint = "; every rank must see the same disk" if isinstance(error, FileNotFoundError) else ""
            raise ConfigError(f"{self.what}: {self.path!r}: {error.strerror or error}{hint}") from None
