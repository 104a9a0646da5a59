"""Communication patterns against the calls of the MPI library, in the same run.

``tilewave bench patterns [--where NAME,...] [--case NAME,...] [--size NAME] [--json FILE] [--quick]``;
places: 2x1 (ranks x threads here), or HOSTS@RATE as in 4@1gbit (hosts in a box; needs root). The limit is the rate of
the line, or a copy in memory.
"""

import itertools
import math
import time

import numpy as np
import tilewave as tw

from bench.dense import RATES
from bench.runner import LINE_BYTES_S, Turn, benchmark, compared, places, race, row

PATTERNS = ("broadcast", "reduce", "spread", "multi_reduce", "send")
PARTS = ("spread", "multi_reduce")  # of which each rank has a part of the matrix
SIZES = {"1KB": 1 << 10, "8KB": 8 << 10, "64KB": 64 << 10, "1MB": 10**6, "8MB": 8 * 10**6, "64MB": 64 * 10**6}
OURS, CHECKED, DATATYPE, PACKED, BUFFERED = (
    "tilewave",
    "tilewave, arguments compared",
    "MPI, derived datatype",
    "MPI, packed by hand",
    "MPI, buffered",
)
ATTACHED = []  # the memory for MPI's buffered sends


# --- on the ranks ---------------------------------------------------------------------------------


def worker(cases, budget_s, rest_s):
    """{contender: seconds} of each case, interleaved, after one turn that is checked."""
    context, found = tw.Context(threads=1), []
    for pattern, rows, cols, strided in cases:
        turns = (_sends if pattern == "send" else _turns)(context, pattern, rows, cols, strided)
        left = race(context, turns, 0, budget_s=budget_s, rest_s=rest_s)
        found.append({one.name: one.seconds for one in left})
    return found if context.rank == 0 else None


def _matrix(rows, cols, strided, fill):
    big = np.full((rows, cols * (2 if strided else 1)), -1.0)
    big[:, :cols] = fill
    return big[:, :cols]


def _turns(context, pattern, rows, cols, strided):
    """Contenders of a pattern on this rank."""
    p, rank = context.size, context.rank
    values = np.arange(rows * cols, dtype="f8").reshape(rows, cols) % 251
    part = slice(rank * (cols // p), (rank + 1) * (cols // p))
    whole = _matrix(rows, cols, strided, values)
    gives, gets, expected = {
        "broadcast": lambda: (whole, None, values),
        "reduce": lambda: (whole, _matrix(rows, cols, strided, 0), values * p) if rank == 0 else (whole, None, None),
        "spread": lambda: (_matrix(rows, cols // p, strided, values[:, part]), _matrix(rows, cols, strided, 0), values),
        "multi_reduce": lambda: (whole, _matrix(rows, cols // p, strided, 0), values[:, part] * p),
    }[pattern]()
    result = gives if pattern == "broadcast" else gets

    def ready():
        if result is not None and not (pattern == "broadcast" and rank == 0):
            result[...] = -2

    def check():
        if expected is not None and not np.array_equal(result, expected):
            raise SystemExit(f"{pattern}: wrong result on rank {rank}")

    function = getattr(tw.patterns, pattern)
    given = {"context": context} if pattern == "broadcast" else {"context": context, "out": gets}
    runs = {OURS: function(gives, start=False, **given)._core.run, CHECKED: lambda: function(gives, **given)}
    if not strided and pattern == "broadcast":
        runs["MPI"] = _derived(pattern, gives, gets, p)
    else:
        runs |= {DATATYPE: _derived(pattern, gives, gets, p)} if pattern in ("broadcast", "spread") else {}
        runs[PACKED] = _packed(pattern, gives, gets, p)
    return [Turn(name, run, ready, check) for name, run in runs.items()]


def _packed(pattern, gives, gets, ranks):
    """MPI's collective by mpi4py, on matrices without gaps: strided ones, and parts of whole ones, are copied."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD

    def without_gaps(matrix, whole):
        """Memory for the parts of a matrix one after another, and each part's beside where it lies in the matrix."""
        if matrix is None or (not whole and matrix.flags.c_contiguous):
            return matrix, []
        parts = np.split(matrix, ranks if whole else 1, axis=1)
        memory = np.empty((len(parts), *parts[0].shape))
        return memory, list(zip(memory, parts, strict=True))

    given, packs = without_gaps(gives, pattern == "multi_reduce")
    got, unpacks = without_gaps(gets, pattern == "spread")
    call = {
        "broadcast": lambda: world.Bcast(given, 0),
        "reduce": lambda: world.Reduce(given, got, MPI.SUM, 0),
        "spread": lambda: world.Allgather(given, got),
        "multi_reduce": lambda: world.Reduce_scatter_block(given, got, MPI.SUM),
    }[pattern]
    if pattern == "broadcast" and world.rank:
        packs, unpacks = [], packs

    def run():
        for memory, part in packs:
            np.copyto(memory, part)
        call()
        for memory, part in unpacks:
            np.copyto(part, memory)

    return run


def _columns(matrix, columns):
    """Some columns of a matrix for mpi4py: the memory, how many parts, and a derived datatype of one part."""
    from mpi4py import MPI

    kind = MPI.DOUBLE.Create_vector(matrix.shape[0], columns, matrix.strides[0] // matrix.itemsize)
    memory = matrix if matrix.flags.c_contiguous else matrix.base
    return [memory, matrix.shape[1] // columns, kind.Create_resized(0, matrix.itemsize * columns).Commit()]


def _derived(pattern, gives, gets, ranks):
    """The same straight from and to the matrices by derived datatypes."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if pattern == "broadcast":
        what = gives if gives.flags.c_contiguous else _columns(gives, gives.shape[1])
        return lambda: world.Bcast(what, 0)
    part, whole = _columns(gives, gives.shape[1]), _columns(gets, gets.shape[1] // ranks)
    return lambda: world.Allgather(part, [whole[0], 1, whole[2]])


def _sends(context, _pattern, rows, cols, strided):
    """Until the matrix is at the other end: rank 0 to the last rank."""
    rank, last = context.rank, context.size - 1
    values = np.arange(rows * cols, dtype="f8").reshape(rows, cols)
    M = _matrix(rows, cols, strided, values)

    def ready():
        if rank == last:
            M[...] = -2

    def run():
        if rank == 0:
            tw.patterns.send(M, last, context=context)
        if rank == last:
            tw.patterns.receive(M, 0, context=context)
        context.close()

    def check():
        if rank == last and not np.array_equal(M, values):
            raise SystemExit("send: wrong result")

    # MPI's buffered send is the matching call; the others return when the matrix has left, not at once.
    runs = {OURS: run, **{name: _native_send(M, last, name) for name in (DATATYPE, PACKED, BUFFERED)}}
    return [Turn(name, run, ready, check) for name, run in runs.items()]


def _native_send(M, last, name):
    """MPI's message by mpi4py from rank 0 to the last one."""
    from mpi4py import MPI

    world, what, copied = MPI.COMM_WORLD, M, np.empty(M.shape)
    if not M.flags.c_contiguous:
        what = copied if name == PACKED else _columns(M, M.shape[1])
    if name == BUFFERED and world.rank == 0:
        if ATTACHED:
            MPI.Detach_buffer()
        ATTACHED[:] = [np.empty(M.nbytes + MPI.BSEND_OVERHEAD + 4096, "u1")]
        MPI.Attach_buffer(ATTACHED[0])

    def run():
        if world.rank == 0:
            if what is copied:
                np.copyto(copied, M)
            (world.Bsend if name == BUFFERED else world.Send)(what, last)
        elif world.rank == last:
            world.Recv(what, 0)
            if what is copied:
                np.copyto(M, copied)

    return run


# --- what to run, and what came out ---------------------------------------------------------------


def _shape(pattern, size, ranks):
    cols = int(2 ** np.clip(np.round(np.log2(math.sqrt(size / 8))), 2, 9))
    cols = max(cols // ranks, 1) * ranks if pattern in PARTS else cols
    return max(round(size / 8 / cols), 1), cols


def _memory_bytes_s():
    a, b, times = np.ones(4 << 20), np.ones(4 << 20), []
    for _ in range(7):
        begin = time.perf_counter()
        np.copyto(b, a)
        times.append(time.perf_counter() - begin)
    return a.nbytes / min(times)


@benchmark(
    "patterns",
    __doc__,
    cases=PATTERNS,
    places=("2x1", "2@100mbit", "2@1gbit", "4@100mbit", "4@1gbit"),
    usual=("2x1",),
    options={
        "--size": {"action": "append", "choices": list(SIZES), "help": "only this one; may be repeated"},
        "--seconds": {"type": float, "default": 4.0, "help": "about how long a case is repeated (default 4)"},
    },
)
def patterns(options):
    sizes = options.size or (["1KB", "64KB"] if options.quick else list(SIZES))
    asked = list(itertools.product(options.case, (False, True), sizes))
    for place in places(options):
        cases = [(pattern, *_shape(pattern, SIZES[size], place.ranks), strided) for pattern, strided, size in asked]
        budget_s, rest_s = 0.05 if options.quick else options.seconds, 0.005 if place.cluster else 0.002
        found = place.call(__name__, cases=cases, budget_s=budget_s, rest_s=rest_s)
        limit = LINE_BYTES_S * RATES[place.cluster.rate] if place.cluster else _memory_bytes_s()
        for (pattern, strided, size), (_, rows, cols, _), times in zip(asked, cases, found, strict=True):
            case = f"{place.name}, {pattern} {size} {'strided' if strided else 'contiguous'}"
            # What each link must carry at the least.
            moved = 8 * rows * cols * ((place.ranks - 1) / place.ranks if pattern in PARTS else 1)
            for one in compared(case, times, "ms", limits={name: [moved / limit] for name in times}):
                rates = [moved / s / 1e6 for s in times[one.contender]]
                yield from (one, row(case, one.contender, rates, "MB/s"))
