"""Arrays in .npy files, each rank's blocks written and read by itself. Nothing here is collective."""

import ast
import contextlib
import errno
import io
import math
import os

import numpy as np

from tilewave import _core, files
from tilewave.errors import ConfigError, shown
from tilewave.field.values import problem_of
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
        os.fsencode(text)
    except (TypeError, UnicodeEncodeError):
        raise ConfigError(
            f"{what}: path {shown(path)} was given; allowed: the name of a .npy file, or of a .zarr folder"
        ) from None
    return text


class Writer:
    """Writes a field as one file: each rank its block, at its place, without messages. As `tilewave.field.saving` asks
    for it.
    """

    def __init__(self, path, field, back):
        self._path, self._field, self._back = path, field, back
        self._head = _header(field.shape, field.dtype)

    def begin(self):
        """Make a file with the header and room for all values."""
        with named_path("save", self._path):
            if os.path.exists(self._path) and not os.path.isfile(self._path):
                raise OSError("it is a folder" if os.path.isdir(self._path) else "it is no ordinary file")
            made = files.begin(self._path)
            number = os.open(made, os.O_WRONLY)
            try:
                os.write(number, self._head)
                size = len(self._head) + math.prod(self._field.shape) * self._field.dtype.itemsize
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

    def write(self, made):
        return problem_of(lambda: self._write_block(made))

    def _write_block(self, made):
        field, local = self._field, self._field._view(self._back)
        if local.size == 0:
            return
        with named_path("save", self._path):
            number = os.open(made, os.O_WRONLY)
            try:
                for at, values in _runs(field.shape, field.owned, local):
                    offset, data = len(self._head) + at * values.itemsize, memoryview(values).cast("B")
                    while data:
                        done = os.pwrite(number, data, offset)
                        data, offset = data[done:], offset + done
                os.fsync(number)  # a disk that is over its quota, or gone, says so here
            finally:
                os.close(number)

    def finish(self, made):
        with named_path("save", self._path):
            os.replace(made, self._path)


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
    with named_path("load", path), files.opened(path) as file:
        try:
            shape, fortran, dtype = read_header(file)
        except ValueError as problem:
            raise ConfigError(f"load: {path!r} is no .npy file that can be read: {problem}") from None
        if dtype.newbyteorder("=") not in dtypes:
            raise ConfigError(f"load: {path!r} holds {dtype}; allowed: {', '.join(each.name for each in dtypes)}")
        if not 1 <= len(shape) <= _core.limits["dims"]:
            raise ConfigError(f"load: {path!r} holds an array of shape {shape}; allowed: one to six extents >= 0")
        first, size = file.tell(), os.fstat(file.fileno()).st_size
        wanted = first + math.prod(shape) * dtype.itemsize
        if size < wanted:
            raise ConfigError(
                f"load: {path!r} is cut short: it has {size} bytes, an array of shape {shape} and dtype {dtype} needs "
                f"{wanted}"
            )
        if 0 in shape:
            return np.empty(shape, dtype)
        return np.memmap(file, dtype, "r", first, shape, "F" if fortran else "C")


def read_header(file):
    """Read the header of a .npy file, which is open at its beginning.

    Returns
    -------
    (tuple of int, bool, numpy.dtype)
        The shape, whether the order of elements is Fortran's, and the dtype.

    Raises
    ------
    OSError
    ValueError
        Where these are none of an array.
    """
    try:
        version = np.lib.format.read_magic(file)
        if version == (3, 0):  # names of structured dtypes in UTF-8; NumPy has no public function for it
            length = int.from_bytes(file.read(4), "little")
            if length > MOST_HEADER_BYTES:
                raise ValueError(f"its header has {length} bytes; allowed: {MOST_HEADER_BYTES}")
            with one_at_a_time:
                found = ast.literal_eval(file.read(length).decode())
            shape, fortran = found["shape"], found["fortran_order"]
            dtype = np.lib.format.descr_to_dtype(found["descr"])
        else:
            with one_at_a_time:  # NumPy parses it
                shape, fortran, dtype = _HEADERS[version](file)
    except OSError:
        raise
    except KeyError as problem:
        raise ValueError(f"its header or format has {problem}; allowed: format 1.0 to 3.0") from None
    except Exception as problem:  # of Python's parser, of NumPy, of any kind
        raise ValueError(str(problem)) from None
    right = type(shape) is tuple and all(type(n) is int and n >= 0 for n in shape)
    if not right or math.prod(max(n, 1) for n in shape) * max(dtype.itemsize, 1) > MOST_BYTES:
        raise ValueError(f"its shape is {shown(shape)} of {dtype}")
    return shape, bool(fortran), dtype


MOST_HEADER_BYTES = 10_000  # as NumPy has it
MOST_BYTES = 1 << 60  # of an array: products of its extents stay within 64 bits
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


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


@contextlib.contextmanager
def named_path(what, path):
    """Turns an OSError into an error that all ranks may raise: with the path and what failed."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError(f"{what}: {path!r}: {error.strerror}") from None
        hint = ""
        if isinstance(error, FileNotFoundError):
            gone = "/.tilewave-" in str(path)  # in a folder that this call has made
            hint = "; every rank must see the same disk" + ", and no other program may save to this path" * gone
        raise ConfigError(f"{what}: {path!r}: {error.strerror or error}{hint}") from None
