"""Communication patterns against the calls of the MPI library, in the same run."""

import math
import random
import statistics
import sys
import time

import numpy as np
import tilewave as tw

from bench.cluster import LINE_BYTES_S, cluster_tool, on_hosts
from bench.dense import slowest_s
from bench.results import on_ranks, parser_of, publish, row

PATTERNS = ("broadcast", "reduce", "spread", "multi_reduce", "send")
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
    """Seconds of each contender of each case, interleaved, after one turn that is checked."""
    context = tw.Context(threads=1)
    found = []
    for case in cases:
        runs = _contenders(context, **case)
        times = {name: [] for name in runs}
        turns, turn = 3, 0
        while turn <= turns:
            for name in random.Random(turn).sample(list(runs), len(runs)):  # caches are as the one before leaves them
                prepare, run, check = runs[name]
                prepare()
                context._core.barrier()
                if rest_s:  # let the links' token buckets fill
                    time.sleep(rest_s)
                    context._core.barrier()
                begin = time.perf_counter()
                run()
                slowest = slowest_s(context, time.perf_counter() - begin)
                if turn:
                    times[name].append(slowest)
                else:
                    check()
            if turn == 1:
                once = sum(t[0] for t in times.values())
                turns = int(np.clip(budget_s / max(once, 1e-6), 3, 41))
                turns = context._core.allreduce_min([turns])[0]
            turn += 1
        found.append(times)
        if context.rank == 0:
            print(".", end="", flush=True, file=sys.stderr)
    return found if context.rank == 0 else None


def _matrix(rows, cols, strided, fill):
    big = np.full((rows, cols * (2 if strided else 1)), -1.0)
    big[:, :cols] = fill
    return big[:, :cols]


def _contenders(context, pattern, rows, cols, strided):
    """{name: (prepare, run, check)} of one case on this rank."""
    if pattern == "send":
        return _send_contenders(context, rows, cols, strided)
    p, rank = context.size, context.rank
    values = np.arange(rows * cols, dtype="f8").reshape(rows, cols) % 251
    part = slice(rank * (cols // p), (rank + 1) * (cols // p))
    whole = _matrix(rows, cols, strided, values)
    share = _matrix(rows, cols // p, strided, values[:, part])
    out = _matrix(rows, cols // p, strided, 0) if pattern == "multi_reduce" else _matrix(rows, cols, strided, 0)
    function = getattr(tw.patterns, pattern)
    gives, gets, expected = {
        "broadcast": (whole, None, values),
        "reduce": (whole, out if rank == 0 else None, values * p if rank == 0 else None),
        "spread": (share, out, values),
        "multi_reduce": (whole, out, values[:, part] * p),
    }[pattern]
    result = gives if pattern == "broadcast" else gets

    def prepare():
        if pattern == "broadcast" and rank:
            whole[...] = -2
        elif gets is not None:
            gets[...] = -2

    def check():
        if expected is not None and not np.array_equal(result, expected):
            raise SystemExit(f"{pattern}: wrong result on rank {rank}")

    arguments = {"context": context} if pattern == "broadcast" else {"context": context, "out": gets}
    handle = function(gives, start=False, **arguments)
    runs = {OURS: (prepare, handle._core.run, check)}
    runs[CHECKED] = (prepare, lambda: function(gives, **arguments), check)
    ways = {PACKED: True} if pattern in ("reduce", "multi_reduce") else {DATATYPE: False, PACKED: True}
    if not strided and pattern == "broadcast":
        ways = {"MPI": False}
    for name, packed in ways.items():
        native = _packed(pattern, gives, gets, p) if packed else _derived(pattern, gives, gets, p)
        runs[name] = (prepare, native, check)
    return runs


def _packed(pattern, gives, gets, ranks):
    """MPI's collective by mpi4py, on matrices without gaps: strided ones, and parts of whole ones, are copied."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD

    def without_gaps(matrix, whole):
        """Memory for the parts of a matrix one after another, and each part's beside where it lies in the matrix."""
        if matrix is None or not whole and matrix.flags.c_contiguous:
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


def _send_contenders(context, rows, cols, strided):
    """Until the matrix is at the other end: rank 0 to the last rank."""
    rank, last = context.rank, context.size - 1
    values = np.arange(rows * cols, dtype="f8").reshape(rows, cols)
    M = _matrix(rows, cols, strided, values)

    def prepare():
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

    runs = {OURS: (prepare, run, check)}
    # MPI's buffered send is the matching call; the others return when the matrix has left, not at once.
    for name in (DATATYPE, PACKED, BUFFERED):
        runs[name] = (prepare, _native_send(M, last, name), check)
    return runs


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


def _options(args):
    parser = parser_of("patterns", __doc__)
    parser.add_argument("--ranks", type=int, default=2, help="ranks, or hosts with --cluster (default 2)")
    parser.add_argument("--cluster", metavar="RATE", help="on hosts in a box joined at RATE, as 1gbit (needs root)")
    parser.add_argument("--pattern", action="append", choices=PATTERNS, help="only this one; may be repeated")
    parser.add_argument("--size", action="append", choices=list(SIZES), help="only this one; may be repeated")
    parser.add_argument("--seconds", type=float, default=4.0, help="about how long a case is repeated (default 4)")
    return parser.parse_args(list(args))


def _shape(pattern, size, ranks):
    cols = int(2 ** np.clip(np.round(np.log2(math.sqrt(size / 8))), 2, 9))
    if pattern in ("spread", "multi_reduce"):
        cols = max(cols // ranks, 1) * ranks
    return max(round(size / 8 / cols), 1), cols


def _cases(options, quick):
    """(label, case) of everything that is measured; a case is what `_contenders` takes."""
    p = options.ranks
    patterns = options.pattern or PATTERNS
    names = options.size or (["1KB", "64KB"] if quick else list(SIZES))
    found = []
    for pattern in patterns:
        for strided in (False, True):
            for name in names:
                m, n = _shape(pattern, SIZES[name], p)
                found.append(
                    (
                        f"{pattern} {name} {'strided' if strided else 'contiguous'}",
                        dict(pattern=pattern, rows=m, cols=n, strided=strided),
                    )
                )
    return found


def _bytes_moved(case, ranks):
    """What each link must carry at the least."""
    whole = 8 * case["rows"] * case["cols"]
    return whole * (ranks - 1) // ranks if case["pattern"] in ("spread", "multi_reduce") else whole


def _memory_bytes_s():
    a, b = np.ones(4 << 20), np.ones(4 << 20)
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        np.copyto(b, a)
        times.append(time.perf_counter() - begin)
    return a.nbytes / min(times)


def patterns(json_path=None, quick=False, args=()):
    """Every pattern, contiguous and strided, by size, against MPI's matching call."""
    options = _options(args)
    cases = _cases(options, quick)
    arguments = {
        "cases": [case for _, case in cases],
        "budget_s": 0.05 if quick else options.seconds,
        "rest_s": 0.005 if options.cluster else 0,
    }
    if options.cluster:
        with cluster_tool("patterns").Cluster(hosts=options.ranks, rate=options.cluster, name="twbench") as cluster:
            found = on_ranks("bench.patterns", options.ranks, arguments, runner=on_hosts(cluster))
        limit = LINE_BYTES_S * _gigabits(options.cluster)
    else:
        found = on_ranks("bench.patterns", options.ranks, arguments)
        limit = _memory_bytes_s()
    rows = []
    for (label, case), times in zip(cases, found, strict=True):
        rows += _rows(label, case, times, options.ranks, limit)
    publish("patterns", rows, json_path)


def _gigabits(rate):
    if rate == "none":
        return float("inf")
    return float(rate.rstrip("bitkmg")) * {"g": 1.0, "m": 1e-3, "k": 1e-6}[rate.removesuffix("bit")[-1]]


def _rows(label, case, times, ranks, limit_bytes_s):
    moved = _bytes_moved(case, ranks)
    theirs = [name for name in times if name.startswith("MPI")]
    rows = []
    for name, seconds in times.items():
        better = [min(times[t][i] for t in theirs) for i in range(len(seconds))]
        rows.append(
            row(
                label,
                name,
                [1e3 * s for s in seconds],
                "ms",
                ratio_to_contender=statistics.median(b / s for b, s in zip(better, seconds, strict=True)),
                fraction_of_limit=moved / limit_bytes_s / statistics.median(seconds),
            )
        )
        rows.append(row(label, name, [moved / s / 1e6 for s in seconds], "MB/s"))
    return rows
