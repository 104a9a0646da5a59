"""Chunks of a field in files, each written whole by one rank."""

import itertools
import math
import os

import numpy as np

from tilewave import _core, files
from tilewave.field import zarr3
from tilewave.field.npy import named_path
from tilewave.field.values import problem_of


class Chunks:
    """Hold what it takes to write a field's chunks; making it is local, and takes the memory of a chunk or two.

    Ranks that have points of one chunk send them to the rank which writes it: that whose blocks it lies in when they
    are moved to begin at chunks. So the files are the same for any number of ranks.
    """

    def __init__(self, field, back=0):
        self._field, self._back = field, back
        storage = field._whole("save")
        self._chunk = zarr3.chunk_of(field.shape, field.dtype.itemsize)
        self._room = np.empty(math.prod(self._chunk), field.dtype)
        self._whole = np.zeros(self._chunk, field.dtype)  # a chunk at an end of the array is filled up
        layout, rank = storage.in_whole_parts(self._chunk), field.context.rank
        self._mine = []
        if rank < layout.ranks:
            parts = [
                range(low // c, -(-high // c)) if high > low else range(0)
                for low, high, c in zip(*layout.owned(rank), self._chunk)
            ]
            self._mine = list(itertools.product(*parts))
        counts = [-(-n // c) for n, c in zip(field.shape, self._chunk)]
        self._rounds = math.prod(-(-count // parts) for count, parts in zip(counts, layout.grid))  # of who has most

    def write(self, folder):
        """Write them; collective, after an agreement.

        Returns
        -------
        (Exception or None, dict)
            What went wrong on this rank, which then writes no more; of each file of this rank, by name, its bytes and
            their checksum.
        """
        problem, written, field = None, {}, self._field
        for number in range(self._rounds):
            index = self._mine[number] if number < len(self._mine) else None
            field.context._moves(field._storage.collect, self._chunk, number, self._room.ctypes.data, self._back)
            if index is not None and problem is None:
                problem = problem_of(lambda at=index: written.update([self._write_one(folder, at)]))
        return problem, written

    def _write_one(self, folder, index):
        extents = [min(c, n - at * c) for at, c, n in zip(index, self._chunk, self._field.shape)]
        part = self._room[: math.prod(extents)].reshape(extents)
        if part.shape == self._whole.shape:
            whole = part
        else:
            whole = self._whole
            whole[...] = 0
            whole[tuple(map(slice, extents))] = part
        name = zarr3.chunk_name(index)
        values = whole.astype(self._field.dtype.newbyteorder("<"), copy=False)
        return name, write_new(os.path.join(folder, name), values)


def write_new(path, data):
    """Write a file that is not there yet, to the disk.

    Returns
    -------
    (int, str)
        Its bytes, and their checksum.

    Raises
    ------
    ConfigError
    """
    values = data if isinstance(data, bytes) else data.reshape(-1).view(np.uint8)
    with named_path("save", path):
        files.write_new(path, values)
    return len(values), checksum_of(values)


def checksum_of(data):
    """Return the checksum of bytes as text."""
    values = np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)
    return f"{_core.checksum(values.__array_interface__['data'][0], len(values)):016x}"
