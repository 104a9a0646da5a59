"""This file has what undoes the codecs of Zarr's chunks; each stops at so many bytes as a chunk may have."""

import importlib
import zlib

from tilewave import _core

CODECS = "bytes, transpose, gzip, zstd, crc32c"


class DamagedError(ValueError):
    """The stored bytes are not what they should be."""


def _with_standard_library(module, data, most):
    undo = module.ZstdDecompressor()
    return _whole(undo.decompress(data, most + 1), undo.eof, most)


def _with_zstandard(module, data, most):
    with module.ZstdDecompressor().stream_reader(data) as reader:
        return _whole(reader.read(most + 1), True, most)


def _with_numcodecs(module, data, most):
    """It has no limit: the frame's header is read first, and the library refuses a frame of another size."""
    size = _zstd_size(data)
    if size > most:
        raise ValueError(f"it has {size} bytes, allowed: {most}")
    return bytes(module.decompress(data))


#: Modules that know zstd, best first, and how each decompresses.
ZSTD = {
    "compression.zstd": _with_standard_library,
    "zstandard": _with_zstandard,
    "numcodecs.zstd": _with_numcodecs,
}


def _zstd_size(data):
    """Bytes of the content of a frame, which its header has (RFC 8878, 3.1.1.1)."""
    if data[:4] != b"\x28\xb5\x2f\xfd" or len(data) < 5:
        raise ValueError("it is no frame of zstd")
    flags = data[4]
    single, size_flag = flags >> 5 & 1, flags >> 6
    begin = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3]
    count = (single, 2, 4, 8)[size_flag]
    if count == 0 or len(data) < begin + count:
        raise ValueError("its size is not in its header; pip install zstandard reads such frames, too")
    return int.from_bytes(data[begin : begin + count], "little") + (256 if count == 2 else 0)


def zstd_module():
    """The module for zstd, and the function that decompresses with it.

    Raises
    ------
    DamagedError
        Where there is none.
    """
    for name, decompress in ZSTD.items():
        try:
            return importlib.import_module(name), decompress
        except ImportError:
            continue
    raise DamagedError("its codec is zstd, for which a library is missing: pip install zstandard")


def _of_zstd(data, most):
    module, decompress = zstd_module()
    return decompress(module, data, most)


def _of_gzip(data, most):
    undo = zlib.decompressobj(31)
    return _whole(undo.decompress(data, most + 1), undo.eof, most)


def _of_crc32c(data, most):
    body, sum_ = bytes(data[:-4]), bytes(data[-4:])
    if len(data) < 4 or _core.crc32c(body).to_bytes(4, "little") != sum_:
        raise ValueError("its checksum is another one")
    return _whole(body, True, most)


def _whole(found, ended, most):
    if len(found) > most:
        raise ValueError(f"it has more than {most} bytes")
    if not ended:
        raise ValueError("it is cut short")
    return found


#: By the codec's name: a function of bytes, and of how many bytes its result may have.
UNDO = {"gzip": _of_gzip, "zstd": _of_zstd, "crc32c": _of_crc32c}
