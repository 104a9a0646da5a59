"""Matrices with guarded gaps, and what the patterns must make of them by their documented order."""

import os
import random

import numpy as np

UNDER_MPIEXEC = "TILEWAVE_MPI_CHILD" in os.environ  # ranks that are threads have no MPI
DTYPES = ("f4", "f8", "c8", "c16", "i4", "i8", "u1", "i1", "i2", "?", "u2", "u4", "u8")
GUARD = 0xA5


class Guarded:
    """A matrix whose rows lie apart, inside memory of which no other byte may change."""

    def __init__(self, values, gap=0, margin=3):
        values = np.asarray(values)
        rows, cols = values.shape
        item, row = values.itemsize, (values.shape[1] + gap) * values.itemsize
        self._raw = np.full(2 * margin * item + max(rows, 1) * row, GUARD, np.uint8)
        self.matrix = np.ndarray((rows, cols), values.dtype, self._raw, margin * item, (row, item))
        self.matrix[...] = values

    def intact(self):
        """Whether all bytes outside the matrix are as they were."""
        now, inside = self._raw.copy(), self.matrix
        np.ndarray(inside.shape, inside.dtype, now, inside.ctypes.data - self._raw.ctypes.data, inside.strides).view(
            f"V{inside.itemsize}"
        )[...] = np.full(inside.itemsize, GUARD, np.uint8).view(f"V{inside.itemsize}")
        return bool((now == GUARD).all())


def same_bits(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def values(rng, shape, dtype, op="sum"):
    """Values on which the order of a reduction shows; NaN and both zeros for min and max."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return rng.integers(low, high, shape, dtype, endpoint=True)

    def real():
        x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
        if op in ("min", "max"):
            x = np.select(
                [rng.random(shape) < 0.1, rng.random(shape) < 0.2], [np.nan, rng.choice((0.0, -0.0), shape)], x
            )
        return x

    return (real() + 1j * real() if dtype.kind == "c" else real()).astype(dtype)


def mean_of_squares(a, b):
    return np.hypot(a, b)


FUNCTIONS = {
    "a + b": lambda a, b: a + b,
    "np.maximum": np.maximum,
    "hypot": mean_of_squares,
    "a + b - a * b": lambda a, b: a + b - a * b,
}


def _product(a, b):
    if a.dtype.kind != "c":
        return a * b
    c = np.empty_like(a)  # NumPy itself may fuse multiply and add
    c.real = a.real * b.real - a.imag * b.imag
    c.imag = a.real * b.imag + a.imag * b.real
    return c


JOINS = {"sum": np.add, "prod": _product, "min": np.minimum, "max": np.maximum, **FUNCTIONS}


def _fold(join, parts):
    total = parts[0]
    for part in parts[1:]:
        total = join(total, part)
    return total


def _tree(join, parts, first, size):
    total, width = parts[first], 1
    while width < size and first + width < len(parts):
        total = join(total, _tree(join, parts, first + width, width))
        width *= 2
    return total


def reduced(parts, op, root, order):
    """What the root has: order "tree" from the root on, "ring" from root + 1 on."""
    p = len(parts)
    with np.errstate(all="ignore"):
        if order == "tree":
            return _tree(JOINS[op], [parts[(root + v) % p] for v in range(p)], 0, p)
        return _fold(JOINS[op], [parts[(root + 1 + v) % p] for v in range(p)])


def dealt(columns, block, ranks, rank):
    """The columns that a rank has, in order."""
    return [c for c in range(columns) if c // block % ranks == rank]


def side_by_side(counts, rank):
    first = sum(counts[:rank])
    return list(range(first, first + counts[rank]))


class Case:
    """One random call of a pattern: equal on all ranks but for the gaps."""

    def __init__(self, seed, ranks, rank):
        self.seed, self.ranks, self.rank = seed, ranks, rank
        pick = random.Random(seed)
        apart = random.Random(f"{seed}, {rank}")
        self.rng = np.random.default_rng(seed)
        self.kind = pick.choice(("broadcast", "reduce", "spread", "multi_reduce"))
        self.rows, self.cols = (pick.choice((0, 1, pick.randint(2, 40))) for _ in range(2))
        self.dtype = pick.choice(DTYPES)
        self.root = pick.randrange(ranks)
        self.block = pick.choice((None, 1, 2, 5)) if self.parted else None
        self.op = self._op(pick)
        names = {
            "broadcast": ("auto", "tree", "ring", "rounds", "direct", "mpi"),
            "reduce": ("auto", "tree", "ring", "mpi"),
        }
        self.algorithm = pick.choice(names.get(self.kind, ("auto", "ring", "direct", "mpi")))
        if self.algorithm == "mpi" and (self.op in FUNCTIONS or self.block or not UNDER_MPIEXEC):
            self.algorithm = "ring"
        self.chunk_bytes = pick.choice((None, 1, pick.randint(2, 300), 1 << 20))
        self.buffers = pick.choice((None, 2, 3, 4, 5))
        self.out = pick.choice(("made", "given", "in place"))
        self.way = pick.choice(("call", "wait", "poll", "kept"))
        self.counts = [pick.choice((0, 1, pick.randint(2, 9))) for _ in range(ranks)]
        self.gaps = apart.choice((0, apart.randint(1, 5))), apart.choice((0, apart.randint(1, 5)))

    parted = property(lambda self: self.kind in ("spread", "multi_reduce"))

    def _op(self, pick):
        complex_ = np.dtype(self.dtype).kind == "c"
        if np.dtype(self.dtype).kind == "b":
            return pick.choice(("min", "max", "np.maximum"))
        names = ["sum", "prod", "a + b", "a + b - a * b"] + ([] if complex_ else ["min", "max", "np.maximum"])
        if np.dtype(self.dtype).kind == "f":
            names.append("hypot")
        return pick.choice(names)

    def __str__(self):
        shown = {k: v for k, v in vars(self).items() if k not in ("rng", "rank", "ranks")}
        return f"seed {self.seed} on rank {self.rank} of {self.ranks}: {shown}"

    def keywords(self):
        given = {"algorithm": self.algorithm, "chunk_bytes": self.chunk_bytes, "buffers": self.buffers}
        if self.kind in ("broadcast", "reduce"):
            given["root"] = self.root
        if self.kind in ("reduce", "multi_reduce"):
            given["op"] = FUNCTIONS.get(self.op, self.op)
        if self.parted:
            given["block"] = self.block
        return given

    def own_columns(self, total, rank):
        """Of the whole matrix; without counts of their own, even parts."""
        if self.block:
            return dealt(total, self.block, self.ranks, rank)
        if total == sum(self.counts):
            return side_by_side(self.counts, rank)
        return side_by_side([total // self.ranks + (r < total % self.ranks) for r in range(self.ranks)], rank)
