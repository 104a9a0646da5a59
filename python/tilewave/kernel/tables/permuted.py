"""Tables small enough for a processor's permutations: how a kernel is given them, and their lookup by vectors.

Elements are looked up byte by byte, all dtypes by the same instructions: byte ``k`` of all elements is a byte table.
A permutation picks one byte of it for each of `LANES` points. Within a byte table all axes but the first are padded
to a power of two, so that an element's number in it is made of shifted subscripts.
"""

import dataclasses
import math

import numpy as np
from llvmlite import ir

from tilewave.kernel.rows.transpose import shuffle
from tilewave.kernel.types.values import I8, I32, ir_type

#: Points that are looked up together: the bytes of the longest vector.
LANES = 64

#: Elements by which byte tables grow.
BYTE_TABLE = 128

#: Elements of a table of which the environment has byte tables, at most.
MOST_ELEMENTS = 2048

#: What an environment says of a table: not to permute it; that byte 0 with its sign is all of each element; or to
#: take every byte.
UNFIT, NARROW, WHOLE = range(3)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where the elements of a table lie in its byte tables: room for ``elements``, later axes ``bits`` long."""

    elements: int
    bits: tuple

    @classmethod
    def of(cls, shape):
        """The least layout for a table, of few kinds so that a kernel serves many shapes; None if it is too large."""
        if 0 in shape:
            return None
        bits = tuple((extent - 1).bit_length() for extent in shape[1:])
        elements = shape[0] << sum(bits)
        rounded = next((size for size in (16, 32, 64) if elements <= size), -(-elements // BYTE_TABLE) * BYTE_TABLE)
        return cls(rounded, bits) if elements <= MOST_ELEMENTS else None

    @property
    def byte_table_bytes(self):
        """Bytes of a byte table."""
        return -(-self.elements // BYTE_TABLE) * BYTE_TABLE

    def shifts(self):
        """Return by how much the subscript of each axis is shifted, and the bits that it has."""
        shifts = [sum(self.bits[axis:]) for axis in range(len(self.bits) + 1)]
        first = max((self.elements - 1).bit_length() - shifts[0], 0)
        return list(zip(shifts, (first, *self.bits), strict=True))

    def fits(self, shape):
        extents = all(extent <= 1 << bits for extent, bits in zip(shape[1:], self.bits, strict=True))
        return 0 not in shape and extents and shape[0] << sum(self.bits) <= self.elements

    def byte_tables(self, table):
        """Return what a kernel gets to know of a table, and its byte tables one after the other."""
        byte_tables = np.zeros((table.itemsize, self.byte_table_bytes), np.uint8)
        if not self.fits(table.shape):
            return UNFIT, byte_tables.ravel()
        padded = np.zeros((table.shape[0], *(1 << bits for bits in self.bits)), table.dtype)
        padded[tuple(map(slice, table.shape))] = table
        byte_tables[:, : padded.size] = padded.reshape(-1, 1).view(np.uint8).T
        small = table.dtype.kind == "i" and table.itemsize > 1 and -128 <= table.min() and table.max() <= 127
        return NARROW if small else WHOLE, byte_tables.ravel()


@dataclasses.dataclass(frozen=True)
class Permutation:
    """How a processor permutes bytes: of so many elements by one instruction; ``most``: permutations that pay."""

    name: str
    elements: int
    most: int

    def suits(self, layout, dtype):
        return layout is not None and self.steps(layout) * dtype.itemsize <= self.most

    def steps(self, layout):
        return -(-layout.elements // self.elements)


#: By feature of the processor, the best first. A load takes about two cycles a point, a permutation and a choice one
#: for all lanes.
PERMUTATIONS = {"avx512vbmi": Permutation("avx512vbmi", 128, 64), "avx2": Permutation("avx2", 16, 16)}


def best_permutation(features):
    """The best one of a processor, None where it has none."""
    return next((permutation for name, permutation in PERMUTATIONS.items() if features.get(name)), None)


def number_of(build, permutation, layout, subscripts):
    """(number within a step, step) of each lane's element, as bytes, from vectors of subscripts within extents."""
    within, step = None, None
    inside = int(math.log2(permutation.elements))
    for subscript, (shift, bits) in zip(subscripts, layout.shifts(), strict=True):
        narrow = _integers(build, subscript, 8)
        if shift < inside:
            within = _join(build, within, _shifted(build, narrow, shift))
        if shift + bits > inside:
            wide = narrow if bits <= 8 else _integers(build, subscript, 16)
            step = _join(build, step, _integers(build, _shifted(build, wide, shift - inside), 8))
    return build.and_(within, _splat(I8, permutation.elements - 1)), step


def look_up(build, permutation, layout, byte_table, number):
    """The byte of each lane, of a byte table at some address."""
    within, step = number
    steps = permutation.steps(layout)
    found = [
        _permuted(
            build,
            permutation,
            build.gep(byte_table, [I32(k * permutation.elements)], source_etype=I8),
            within,
        )
        for k in range(steps)
    ]
    bit = 1
    while len(found) > 1:
        odd = build.icmp_unsigned("!=", build.and_(step, _splat(I8, bit)), _splat(I8, 0))
        pairs = [build.select(odd, found[k + 1], found[k]) for k in range(0, len(found) - 1, 2)]
        found = pairs + found[2 * len(pairs) :]
        bit *= 2
    return found[0]


def widened(build, dtype, byte):
    """Integers of a dtype, of bytes with a sign."""
    return build.sext(byte, ir.VectorType(ir_type(dtype), LANES))


def joined(build, byte_tables):
    """The elements whose bytes are given, as integers."""
    bits = 8
    while len(byte_tables) > 1:
        bits *= 2
        order = [k + half for k in range(LANES) for half in (0, LANES)]
        byte_tables = [
            build.bitcast(shuffle(build, *byte_tables[k : k + 2], order), ir.VectorType(ir.IntType(bits), LANES))
            for k in range(0, len(byte_tables), 2)
        ]
    return byte_tables[0]


def _permuted(build, permutation, at, within):
    module, bytes_64, bytes_32 = build.module, ir.VectorType(I8, 64), ir.VectorType(I8, 32)

    def load(of):
        found = build.load(at, typ=of)
        found.align = 1
        return found

    if permutation.name == "avx512vbmi":
        low = load(bytes_64)
        at = build.gep(at, [I32(64)], source_etype=I8)
        return build.call(
            _intrinsic(module, "llvm.x86.avx512.vpermi2var.qi.512", bytes_64, 3), [low, within, load(bytes_64)]
        )
    bytes_16 = load(ir.VectorType(I8, 16))
    both = shuffle(build, bytes_16, bytes_16, [*range(16)] * 2)
    halves = [shuffle(build, within, within, range(begin, begin + 32)) for begin in (0, 32)]
    halves = [build.call(_intrinsic(module, "llvm.x86.avx2.pshuf.b", bytes_32, 2), [both, half]) for half in halves]
    return shuffle(build, *halves, range(64))


def _intrinsic(module, name, kind, operands):
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(kind, [kind] * operands), name)


def _splat(kind, value):
    return ir.Constant(ir.VectorType(kind, LANES), [ir.Constant(kind, value)] * LANES)


def _integers(build, vector, bits):
    kind = ir.VectorType(ir.IntType(bits), LANES)
    if vector.type == kind:
        return vector
    return build.trunc(vector, kind) if vector.type.element.width > bits else build.zext(vector, kind)


def _shifted(build, vector, by):
    shift = build.shl if by > 0 else build.lshr
    return shift(vector, _splat(vector.type.element, abs(by))) if by else vector


def _join(build, sum_, more):
    return more if sum_ is None else build.or_(sum_, more)
