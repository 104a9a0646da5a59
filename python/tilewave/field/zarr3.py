"""Arrays in folders of Zarr, format 3: the metadata, and reading. Nothing here is collective.

https://zarr-specs.readthedocs.io/en/latest/v3/core/ has the format.
"""

import itertools
import json
import math
import os

import numpy as np

from tilewave import _core, files
from tilewave.errors import ConfigError, shown
from tilewave.field.npy import MOST_BYTES, named_path
from tilewave.field.values import whole_numbers
from tilewave.field.zarr_codecs import CODECS, UNDO, DamagedError, zstd_module

NODE = "zarr.json"
ENDING = ".zarr"
#: Names of dimensions that nobody has named: those of a nest's loops.
DIMENSIONS = ("i", "j", "k", "l")
#: Of a chunk, at most. A smaller one costs more files; a larger one leaves ranks without any. The choice depends on
#: shape and dtype alone, so any number of ranks writes the same files.
CHUNK_BYTES = 8 << 20
#: Chunks of an array, at most, or of 4 KB each: an array of 8 bytes a chunk takes a second for each 100,000 of them.
MOST_CHUNKS, CHUNK_OF_MANY_BYTES = 1 << 20, 4096
#: Bytes of a chunk that is decompressed, at most, where the whole array has fewer.
MOST_CHUNK_BYTES = 256 << 20
MOST_CODECS = 16


def split(path):
    """(folder of the store, name of the array in it) of a path with a part that ends in .zarr: "run.zarr/u" has the
    array u, and "u.zarr", too. None for other paths.
    """
    parts = os.path.normpath(path).split(os.sep)
    for at, part in enumerate(parts):
        if part.endswith(ENDING) and part != ENDING:
            name = "/".join(parts[at + 1 :]) or part.removesuffix(ENDING)
            return os.sep.join(parts[: at + 1]), name
    return None


def chunk_of(shape, item_bytes):
    """Extents of chunks: the array's, the longest halved until a chunk is small enough."""
    extents = [max(n, 1) for n in shape]
    while math.prod(extents) * item_bytes > CHUNK_BYTES:
        longest = extents.index(max(extents))
        extents[longest] = -(-extents[longest] // 2)
    return tuple(extents)


def array_node(shape, dtype, dimensions=None, attributes=None):
    """The metadata of an array, as the bytes of its file."""
    return _text(
        "array",
        attributes,
        shape=list(shape),
        data_type=dtype.name,
        chunk_grid={"name": "regular", "configuration": {"chunk_shape": list(chunk_of(shape, dtype.itemsize))}},
        chunk_key_encoding={"name": "default", "configuration": {"separator": "."}},  # all chunks in one folder
        fill_value=[0.0, 0.0] if dtype.kind == "c" else 0.0 if dtype.kind == "f" else 0,
        codecs=[{"name": "bytes", "configuration": {"endian": "little"}} if dtype.itemsize > 1 else {"name": "bytes"}],
        dimension_names=list(dimensions or DIMENSIONS[: len(shape)]),
    )


def group_node(members, attributes=None):
    """The metadata of a group.

    Parameters
    ----------
    members : dict
        The metadata of all that is in it, by path: who opens the group then needs no other file.
    """
    return _text(
        "group", attributes, consolidated_metadata={"kind": "inline", "must_understand": False, "metadata": members}
    )


def consolidate(folder):
    """Make the metadata of a group, new or old, those of all that is in it now.

    Raises
    ------
    DamagedError, OSError
    """
    path = os.path.join(folder, NODE)
    attributes = node_of(folder).get("attributes") if os.path.exists(path) else None
    members = {}
    for at, _, names in os.walk(folder):
        if NODE in names and at != folder:
            members[os.path.relpath(at, folder)] = node_of(at)
    files.write(path, group_node(members, attributes))


def chunk_name(index):
    """The file of a chunk that `array_node` describes."""
    return ".".join(("c", *map(str, index)))


def _text(kind, attributes, **more):
    node = {"zarr_format": 3, "node_type": kind, **more, "attributes": attributes or {}}
    return json.dumps(node, indent=2).encode()


def node_of(folder):
    """The metadata in a folder: a dict.

    Raises
    ------
    DamagedError
    """
    try:
        return checked_node(files.read(os.path.join(folder, NODE), files.MOST_TEXT_BYTES))
    except FileNotFoundError:
        old = any(os.path.exists(os.path.join(folder, name)) for name in (".zarray", ".zgroup"))
        raise DamagedError(
            "it is in Zarr format 2; allowed: format 3" if old else f"it is a folder without {NODE}: no Zarr array"
        ) from None


def checked_node(text):
    """The metadata that a file's bytes are: a dict.

    Raises
    ------
    DamagedError
    """
    try:
        node = json.loads(text)
    except (ValueError, RecursionError) as problem:  # of the bytes, too
        raise DamagedError(f"its {NODE} is no JSON: {problem}") from None
    if not isinstance(node, dict) or node.get("zarr_format") != 3 or node.get("node_type") not in ("array", "group"):
        raise DamagedError(f"its {NODE} is no array or group of Zarr format 3")
    return node


def arrays_in(folder):
    """Names of the arrays and groups in a group's folder."""
    found = (entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
    return sorted(name for name in found if os.path.exists(os.path.join(folder, name, NODE)))


def opened(path, dtypes):
    """An array of a folder, or the only one of a group.

    Parameters
    ----------
    path : str
    dtypes : sequence of numpy.dtype
        Those allowed.

    Returns
    -------
    Stored

    Raises
    ------
    ConfigError
        For what is no array of Zarr 3 with codecs that are known.
    """
    with named_path("load", path):
        try:
            node, folder = node_of(path), path
            while node["node_type"] == "group":
                names = arrays_in(folder)
                if len(names) != 1:
                    some = ", ".join(os.path.join(path, name) for name in names[:12]) or "a group with an array"
                    raise DamagedError(f"it is a group of {len(names)} arrays; allowed: one of them: {some}")
                folder = os.path.join(folder, names[0])
                node = node_of(folder)
            return Stored(folder, node, dtypes)
        except DamagedError as problem:
            raise ConfigError(f"load: {path!r} cannot be read: {problem}") from None


def read_into(target, whole, box, path):
    """Set an array to a box of what `opened` has opened.

    Raises
    ------
    ConfigError
    """
    try:
        with named_path("load", path):
            found = whole[box]
            # Of a bool a file may have any byte: NumPy takes all but 0 as true.
            target[...] = found.view(np.uint8) if found.dtype == bool else found
    except DamagedError as problem:
        raise ConfigError(f"load: {path!r} cannot be read: {problem}") from None


class Stored:
    """An array of chunks in files: ``stored[slices]`` reads what lies in a box.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    checked : callable or None
        Given a chunk's file name and bytes before they are decoded; raises `DamagedError`.
    """

    def __init__(self, folder, node, dtypes, checked=None):
        self.folder, self.checked = folder, checked
        try:
            self._take(node, dtypes)
        except (KeyError, TypeError, AttributeError, IndexError) as problem:
            raise DamagedError(f"its {NODE} lacks what an array has: {type(problem).__name__} {problem}") from None

    def _take(self, node, dtypes):
        names = {dtype.name: dtype for dtype in dtypes}
        if node["data_type"] not in names:
            raise DamagedError(f"it holds {shown(node['data_type'])}; allowed: {', '.join(names)}")
        self.dtype = names[node["data_type"]]
        self.shape = whole_numbers(node["shape"])
        if self.shape is None or not 1 <= len(self.shape) <= _core.limits["dims"] or not self._fits(self.shape):
            raise DamagedError(f"it holds an array of shape {shown(node['shape'])}; allowed: one to six extents >= 0")
        if node.get("storage_transformers"):
            raise DamagedError("it has storage transformers; allowed: none")
        self._take_keys(node["chunk_key_encoding"])
        self._fill = _fill_value(node["fill_value"], self.dtype)
        self._take_codecs(node["codecs"])
        self._take_chunks(node["chunk_grid"])

    def _fits(self, extents):
        return min(extents) >= 0 and math.prod(max(n, 1) for n in extents) * self.dtype.itemsize <= MOST_BYTES

    def _take_keys(self, key):
        if key["name"] not in ("default", "v2"):
            raise DamagedError(f"its chunk keys are {shown(key['name'])}; allowed: default, v2")
        self._prefix = ("c",) if key["name"] == "default" else ()
        self._separator = key.get("configuration", {}).get("separator", "/" if self._prefix else ".")
        if self._separator not in (".", "/"):
            raise DamagedError(f"the separator of its chunk keys is {shown(self._separator)}; allowed: '.', '/'")

    def _take_chunks(self, grid):
        """The extents of chunks; and how many bytes a chunk may have, and have on its way to that."""
        self._chunk = whole_numbers(grid["configuration"]["chunk_shape"])
        wrong = grid["name"] != "regular" or self._chunk is None or len(self._chunk) != len(self.shape)
        if wrong or min(self._chunk) < 1 or not self._fits(self._chunk):
            raise DamagedError(f"its chunks are {shown(grid)}; allowed: a regular grid")
        whole = math.prod(self.shape) * self.dtype.itemsize
        self.counts = tuple(-(-n // c) for n, c in zip(self.shape, self._chunk, strict=True))
        if (count := math.prod(self.counts)) > max(MOST_CHUNKS, whole // CHUNK_OF_MANY_BYTES):
            raise DamagedError(
                f"it has {count} chunks; allowed: {MOST_CHUNKS}, or chunks of at least {CHUNK_OF_MANY_BYTES} bytes"
            )
        self._chunk_bytes = math.prod(self._chunk) * self.dtype.itemsize
        if self._undo and self._chunk_bytes > max(MOST_CHUNK_BYTES, whole):
            raise DamagedError(
                f"its chunks have {self._chunk_bytes} bytes each, the whole array {whole}; allowed: as many as that, "
                f"or {MOST_CHUNK_BYTES}"
            )
        # What cannot be compressed grows by less.
        self._most_bytes = self._chunk_bytes + self._chunk_bytes // 8 + 65536 if self._undo else self._chunk_bytes

    def _take_codecs(self, codecs):
        """The order of axes in a chunk, the byte order, and what undoes the codecs of bytes."""
        if not isinstance(codecs, list) or len(codecs) > MOST_CODECS:
            raise DamagedError(f"its codecs are {shown(codecs)}; allowed: a list of at most {MOST_CODECS}")
        self._order, self._stored, self._undo = tuple(range(len(self.shape))), None, []
        for codec in codecs:
            codec = {"name": codec} if isinstance(codec, str) else codec
            name, settings = codec["name"], codec.get("configuration") or {}
            if name == "transpose" and self._stored is None:
                order = whole_numbers(settings["order"])
                if order is None or sorted(order) != list(range(len(self.shape))):
                    raise DamagedError(f"its transpose has the order {shown(settings['order'])}")
                self._order = tuple(self._order[k] for k in order)
            elif name == "bytes" and self._stored is None:
                kind = self.dtype if self.dtype != bool else np.dtype("u1")  # as of `read_into`
                self._stored = kind.newbyteorder({"big": ">", "little": "<"}[settings.get("endian", "little")])
            elif name in UNDO and self._stored is not None:
                if name == "zstd":
                    zstd_module()  # where there is none, that is an error before anything is read
                self._undo.insert(0, UNDO[name])
            else:
                raise DamagedError(f"its codec {shown(name)} is not known here; allowed: {CODECS}")
        if self._stored is None:
            raise DamagedError("it has no codec 'bytes'")

    def __getitem__(self, box):
        """The elements of a box, given as slices with a begin and an end."""
        found = np.empty([part.stop - part.start for part in box], self.dtype)
        if found.size == 0:
            return found
        for index in itertools.product(*(range(p.start // c, -(-p.stop // c)) for p, c in zip(box, self._chunk))):
            there, here = [], []
            for at, extent, part in zip(index, self._chunk, box):
                low, high = max(at * extent, part.start), min((at + 1) * extent, part.stop)
                there.append(slice(low - at * extent, high - at * extent))
                here.append(slice(low - part.start, high - part.start))
            chunk = self._chunk_at(index)
            found[tuple(here)] = self._fill if chunk is None else chunk[tuple(there)]
        return found

    def _chunk_at(self, index):
        """A chunk's elements; None: they are the fill value."""
        name = self._separator.join((*self._prefix, *map(str, index)))
        try:
            data = self._bytes_of(name)
        except FileNotFoundError:
            if self.checked:
                raise
            return None
        if len(data) != self._chunk_bytes:
            raise DamagedError(f"its chunk {name} has {len(data)} bytes; {self._chunk_bytes} are needed")
        chunk = np.frombuffer(data, self._stored).reshape([self._chunk[k] for k in self._order])
        return chunk.transpose(np.argsort(self._order))

    def _bytes_of(self, name):
        """A chunk's bytes; of a file that has them as they are, mapped."""
        path = os.path.join(self.folder, name)
        with files.opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > self._most_bytes:
                raise DamagedError(f"its chunk {name} has {size} bytes; {self._chunk_bytes} are needed")
            if not self._undo and not self.checked:
                return np.memmap(file, np.uint8, "r") if size else b""
            data = file.read(size)
        if self.checked:
            self.checked(name, data)
        try:
            for undo in self._undo:
                data = undo(data, self._most_bytes)
        except Exception as problem:  # of a library, of any kind
            raise DamagedError(f"its chunk {name} cannot be decoded: {problem}") from None
        return data


def _fill_value(given, dtype):
    if given is None:
        return dtype.type(0)
    try:
        if dtype.kind == "c":
            real, imag = (_fill_value(part, np.dtype("f8")) for part in list(given))
            return dtype.type(complex(real, imag))
        if dtype.kind in "iu":
            (given,) = whole_numbers((given,)) or (None,)
        if isinstance(given, str) and given.startswith("0x"):
            bits = int(given, 16).to_bytes(dtype.itemsize, "little")
            return np.frombuffer(bits, dtype.newbyteorder("<"))[0].astype(dtype)
        if type(given) not in (bool, int, float, str) or dtype.kind == "b" and given not in (False, True):
            raise TypeError
        return dtype.type(given)  # "NaN" and "-Infinity", too
    except (TypeError, ValueError, OverflowError):
        raise DamagedError(f"its fill value is {shown(given)}, which is no {dtype}") from None
