"""dawson2000: multi-broadcasts and multi-reduces of strided matrices, broadcasts in a row, buffered sends."""

import itertools

import numpy as np
import tilewave as tw

from bench.runner import here, timed
from docs.papers.page import figure, table

TITLE = "Chunked, overlapped communication patterns on strided matrices."
SETTING = (
    "Its machine: `ap3000`, 8 nodes of a Fujitsu AP3000. Rates are MB/s of the whole M x N matrix of doubles on 1 x Q "
    "cells. A: messages go through buffers whole; B: in chunks of 32 KB, copied and sent at once. Here: two ranks of "
    "one host."
)
WHY = (
    "Predicted rates of the ring hardly depend on Q; the paper's fall from Q = 2 to Q = 4. Its count for a ring, Q - "
    "1 to 2 (Q - 1) messages, allows for cells that send and receive in turn; simulated cards do both at once.",
    "At Q = 2 predictions are low. Rows of 8 to 128 bytes are copied at 50 to 90 MB/s by the machine's file, after "
    "the paper's 100 to 180 MB/s and 'strided up to 3 times slower'. Its rates leave room only for about 100 MB/s: it "
    "copies short rows by a loop of its own, for which it gives no figure.",
    "In chunks (B) our trees gain only beyond four chunks: a message leaves when its sender polls, and the sender "
    "packs all four buffers before it polls for the first time. The paper's chunks leave as soon as they are copied.",
    "Our multi-broadcast by trees is Q broadcasts one after another in one lane. The paper goes over the chunks "
    "outside and over the cell's messages inside, so that its trees overlap each other.",
    "Combining is taken to cost as much as the copy that it replaces, so that rings of reduces are as fast as those "
    "of broadcasts. The paper's adds cost more than copies.",
    "Broadcasts in a row are compared with our own trees: the algorithm of the BLACS is not described. At Q = 8 a "
    "tree has more levels to lose than at Q = 2; the paper finds the opposite order.",
    "Here messages pass shared memory, whose rates are those of copies: chunks that stay in a core's cache gain more.",
)
LEFT_OUT = (
    "Q = 8 of the table: the paper's figures are not at hand. Predictions for 8 cells are in the figure.",
    "Buffered sends against the BLACS' sends: what returns earlier depends on the BLACS' own copies, which are not "
    "described. `tilewave bench patterns --case send` compares ours with MPI's.",
)
#: (operation, M, N / Q or None for N = 32): MB/s of tree A, tree B, ring A, ring B with Q = 2, then with Q = 4.
TABLE = {
    ("broadcast", 1000, 1): (26, 23, 36, 36, 11, 14, 19, 20),
    ("broadcast", 1000, 2): (24, 28, 33, 39, 10, 15, 19, 23),
    ("broadcast", 1000, None): (40, 34, 37, 45, 15, 20, 24, 29),
    ("broadcast", 4000, None): (28, 32, 44, 41, 19, 22, 25, 28),
    ("reduce", 1000, 1): (31, 21, 33, 32, 12, 11, 17, 18),
    ("reduce", 1000, 2): (20, 23, 29, 33, 11, 12, 17, 19),
    ("reduce", 1000, None): (27, 33, 29, 31, 15, 18, 20, 20),
    ("reduce", 4000, None): (24, 32, 31, 29, 17, 14, 24, 20),
}
COLUMNS = [(q, algorithm, way) for q in (2, 4) for algorithm in ("tree", "ring") for way in "AB"]
WAYS = {"A": {"chunk_bytes": 1 << 28, "buffers": 2}, "B": {"chunk_bytes": 32 << 10, "buffers": 4}}
WHOLE = {"broadcast": "spread", "reduce": "multi_reduce"}
#: Gains of the pipelined broadcast over the BLACS' one, of large messages; below 16 KB it gains little.
PIPELINED = {2: 2.0, 8: 1.27}
LARGE, SMALL = (1000, 128), (64, 16)


def regenerate(here):
    """(tables, figures), with what was measured here."""
    tables, lines, machine = [], [], tw.Machine.load("ap3000")
    for operation, q in ((operation, q) for operation in WHOLE for q in (2, 4)):
        rows = []
        for (what, m, share), rates in TABLE.items():
            if what != operation:
                continue
            n = 32 if share is None else share * q
            for (cells, algorithm, way), theirs in zip(COLUMNS, rates, strict=True):
                if cells == q:
                    ours = 8e-6 * m * n / predicted(machine, operation, m, n, q, algorithm, way)
                    found = here.get(f"{operation} {m} {n} {algorithm} {way}") if q == 2 else None
                    rows.append([f"{m} x {n}, {algorithm} {way}", theirs, ours, found and 8e-6 * m * n / found])
        tables.append(table(f"Row multi-{operation}, Q = {q}", "MB/s", rows))
    for algorithm, way in (("tree", "A"), ("tree", "B"), ("ring", "A"), ("ring", "B")):
        label, cells = f"{algorithm} {way}", [2, 4]
        at = [COLUMNS.index((q, algorithm, way)) for q in cells]
        lines.append((label, "theirs", cells, [TABLE["broadcast", 4000, None][k] for k in at]))
        cells = [2, 3, 4, 5, 6, 7, 8]
        rates = [1.024 / predicted(machine, "broadcast", 4000, 32, q, algorithm, way) for q in cells]
        lines.append((label, "predicted", cells, rates))
    tables.append(
        table(
            "Pipelined broadcasts in a row, whose root moves on",
            "",
            [
                [f"{8 * m * n >> 10} KB, Q = {q}", PIPELINED.get(q) if (m, n) == LARGE else None, gain(q, m, n), None]
                for m, n in (SMALL, LARGE)
                for q in (2, 4, 8)
            ],
            "Time of Q broadcasts by whole trees over that of the pipelined ring; the paper's is against the BLACS.",
        )
    )
    title = "row multi-broadcast of 4000 x 32 doubles by cells"
    return tables, [figure("broadcast", title, "cells Q", "MB/s of the whole matrix", lines)]


# --- on their machine -----------------------------------------------------------------------------


def predicted(machine, operation, m, n, q, algorithm, way):
    """Seconds of a multi-broadcast or multi-reduce of m x n doubles, simulated."""
    return tw.predict(tw.Schedule.build(_multi, q, operation, m, n, algorithm, way), machine).time_s


def _multi(b, operation, m, n, algorithm, way):
    """By ring as one pattern; by trees as a broadcast or reduce for each cell's columns."""
    q, into = b.ranks, None
    ends = [n * k // q for k in range(q + 1)]
    source = b.array("A", (m, 2 * n), separate=True, combine="sum")  # Lda > N: strided
    if operation == "reduce" or algorithm == "ring":
        into = b.array("R", (m, 2 * n), separate=True, combine="sum")
    if algorithm == "ring":
        widths = [high - low for low, high in itertools.pairwise(ends)]
        b.pattern(WHOLE[operation], source[:, :n], into, number=q, columns=widths, **WAYS[way])
        return
    for root, (low, high) in enumerate(itertools.pairwise(ends)):
        part, more = source[:, low:high], {"algorithm": "tree", **WAYS[way]}
        b.pattern(operation, part, into, number=q + root, root=root, tag=root, **more)


def gain(q, m, n):
    """Q broadcasts in a row by whole trees over the same by pipelined rings."""
    machine = tw.Machine.load("ap3000")
    times = [
        tw.predict(tw.Schedule.build(_in_a_row, q, m, n, algorithm, way), machine).time_s
        for algorithm, way in (("tree", "A"), ("ring", "B"))
    ]
    return times[0] / times[1]


def _in_a_row(b, m, n, algorithm, way):
    source = b.array("A", (m, 2 * n * b.ranks), separate=True)
    for root in range(b.ranks):
        part = source[:, n * root : n * (root + 1)]
        b.pattern("broadcast", part, number=b.ranks + root, root=root, tag=root, algorithm=algorithm, **WAYS[way])


# --- here -----------------------------------------------------------------------------------------


def measure():
    """Seconds of the operations of the table with Q = 2, by their names."""
    return here(2).call("docs.papers.dawson2000", repeats=101)


def worker(repeats):
    """The least of the slowest rank's seconds."""
    context, found = tw.Context(threads=1), {}
    q, rank = context.size, context.rank
    for operation, m, share in TABLE:
        n = 32 if share is None else share * q
        own = slice(rank * (n // q), (rank + 1) * (n // q))
        whole, out = np.ones((m, 2 * n))[:, :n], np.zeros((m, 2 * n))[:, :n]
        for algorithm in ("tree", "ring"):
            for way, choices in WAYS.items():
                more = {**choices, "algorithm": algorithm, "start": False, "context": context}
                if algorithm == "ring" and operation == "broadcast":
                    handles = [tw.patterns.spread(whole[:, own], out=out, **more)]
                elif algorithm == "ring":
                    handles = [tw.patterns.multi_reduce(whole, out=out[:, own], **more)]
                else:
                    handles = [_by_tree(operation, whole, out, n // q, root, rank, more) for root in range(q)]
                times = [timed(context, lambda handles=handles: [h.run() for h in handles]) for _ in range(repeats)]
                found[f"{operation} {m} {n} {algorithm} {way}"] = min(times)
    return found if rank == 0 else None


def _by_tree(operation, whole, out, width, root, rank, more):
    part = slice(root * width, (root + 1) * width)
    if operation == "broadcast":
        return tw.patterns.broadcast(whole[:, part], root, **more)
    return tw.patterns.reduce(whole[:, part], root, out=out[:, part] if rank == root else None, **more)
