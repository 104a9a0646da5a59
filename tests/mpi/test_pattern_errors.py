"""Patterns given what they cannot do: one clear error on every rank, no hang, and the next call is fine."""


import numpy as np
import pytest

import tilewave as tw
from refused_patterns import A, agreed, on_each_rank, patterns, refused, works

pytestmark = pytest.mark.ranks([1, 2, 3])


READ_ONLY = np.zeros((4, 6))
READ_ONLY.flags.writeable = False
MISALIGNED = np.frombuffer(bytearray(4 * 6 * 8 + 1), np.uint8)[1:].view("f8").reshape(4, 6)
PAIRS = np.zeros((4, 6), [("x", "f8")])


@pytest.mark.parametrize(
    "matrix, words",
    [
        (A.tolist(), "M is list; allowed: a NumPy array"),
        (None, "M is NoneType"),
        (np.ma.masked_array(A), "M is MaskedArray"),
        (A[0, ::2], "one dimension has a stride of 16 bytes; allowed: 8.*x\\[:, None\\]"),
        (A[::-1][None], "3 dimensions is not contiguous"),
        (A[:, ::2], "column stride of 16 bytes; allowed: 8"),
        (A[:, ::-1], "column stride of -8"),
        (A.T, "column stride of 48"),
        (A[::-1], "row stride of -48 bytes; allowed: a multiple of 8 that is at least the row's 48"),
        (np.broadcast_to(A[0], (4, 6)), "row stride of 0 bytes"),
        (np.lib.stride_tricks.as_strided(A, (3, 6), (40, 8)), "row stride of 40 bytes"),
        (np.lib.stride_tricks.as_strided(A, (2, 2), (20, 8)), "row stride of 20 bytes"),
        (MISALIGNED, "not aligned"),
        (A.astype("f2"), "dtype float16; allowed: .*float32"),
        (A.astype(object), "dtype object"),
        (A.astype(">f8"), "dtype >f8; .* native byte order"),
        (A.astype("u2"), "dtype uint16; allowed: bool, int8, int16"),
        (2**64, "a number of 65 bits was given; allowed: 64"),
        (np.float16(1), "dtype float16"),
        (PAIRS, "dtype .*x"),
    ],
)
@pytest.mark.exhaustive
def test_matrices(context, matrix, words):
    on_each_rank(context, f"broadcast: .*{words}", "broadcast", A.copy(), matrix)
    for pattern in ("reduce", "spread", "multi_reduce"):
        refused(context, f"{pattern}: .*{words}", pattern, matrix)


def test_what_is_fine(context):
    """Strides that nothing depends on, and a matrix that is only read."""
    wide = np.zeros((1, 8))[:, ::2][:, :1]
    for matrix in (
        wide, np.zeros((1, 6))[::-1], np.zeros((0, 5))[:, ::2], np.zeros((5, 0)), np.matrix(np.zeros((2, 2))),
        A.astype("q"),
    ):
        patterns.broadcast(matrix, 0, context=context)
    patterns.broadcast(READ_ONLY if context.rank == 0 else A.copy(), 0, context=context)
    patterns.reduce(READ_ONLY, 0, context=context)
    patterns.reduce(
        A,
        np.int64(context.size - 1),
        "sum",
        None if context.rank == context.size - 1 else "not used here",
        context=context,
    )


def test_memory_that_may_not_be_written(context):
    p = context.size
    for r in range(1, p):
        refused(
            context,
            "broadcast: M is written, but its memory is read-only",
            "broadcast",
            READ_ONLY if context.rank == r else A.copy(),
        )
    for root in range(p):
        refused(context, "out is written, but", "reduce", A, root, "sum", READ_ONLY)
    wide = np.zeros((4, 6 * p))
    locked = wide.copy()
    locked.flags.writeable = False
    for r in range(p):
        refused(context, "spread: out is written", "spread", A, locked if context.rank == r else wide)
        refused(
            context, "multi_reduce: out is written", "multi_reduce", wide, READ_ONLY if context.rank == r else A.copy()
        )


def test_roots(context):
    p = context.size
    for pattern in ("broadcast", "reduce"):
        for root in (-1, p, 1 << 30):
            refused(context, f"{pattern}: root {root} was given; allowed: 0 to {p - 1}", pattern, A, root)
        for root in ("a", 1.0, None, True, np.float64(0)):
            refused(context, "root .* was given; allowed: an integer", pattern, A, root)
        refused(context, "less than", pattern, A, 1 << 40 if context.rank == p - 1 else 0)
        if p > 1:
            text = refused(context, "different arguments", pattern, A, 1 if context.rank else 0)
            assert "root 0" in text and "root 1" in text


def test_choices(context):
    last = context.rank == context.size - 1
    for pattern in ("broadcast", "reduce", "spread", "multi_reduce"):
        for chunk_bytes, words in (
            (0, "chunk_bytes 0 was given; at least 1"),
            (-1, "chunk_bytes -1"),
            ("a", "chunk_bytes 'a' was given; allowed: an integer"),
            (1.5, "chunk_bytes 1.5"),
            (1 << 40, "chunk_bytes 1099511627776 .* 1 to"),
            (1 << 70, "chunk_bytes 1180591620717411303424"),
        ):
            refused(context, f"{pattern}: {words}", pattern, A, chunk_bytes=chunk_bytes)
        for buffers, words in (
            (0, "buffers 0"),
            (1, "buffers 1 was given; 2 to 64 are allowed"),
            (65, "buffers 65"),
            (-3, "buffers -3"),
            ([2], "buffers"),
        ):
            refused(context, f"{pattern}: {words}", pattern, A, buffers=buffers)
        for algorithm in ("star", "", "native", None, 5):
            refused(
                context, f"{pattern}: .*algorithm.*{algorithm}.* was given; allowed: ", pattern, A, algorithm=algorithm
            )
        refused(context, "chunk_bytes -1", pattern, A, chunk_bytes=-1 if last else None)
        refused(context, "2\\*\\*63", pattern, A, chunk_bytes=1 << 70 if last else None)
        if context.size > 1:
            refused(
                context,
                "different arguments.*chunk_bytes auto.*chunk_bytes 8",
                pattern,
                A,
                chunk_bytes=8 if last else None,
            )
            refused(context, "different arguments.*buffers 2.*buffers 3", pattern, A, buffers=3 if last else 2)
            refused(
                context,
                "different arguments.*algorithm auto.*algorithm ring",
                pattern,
                A,
                algorithm="ring" if last else "auto",
            )


@pytest.mark.mpi(ranks=[2])
def test_algorithms_of_other_patterns(context):
    refused(
        context, "reduce: algorithm 'rounds' was given; allowed: auto, tree, ring, mpi", "reduce", A, algorithm="rounds"
    )
    refused(
        context, "reduce: algorithm 'direct' was given; allowed: auto, tree, ring, mpi", "reduce", A, algorithm="direct"
    )
    for pattern in ("spread", "multi_reduce"):
        for algorithm in ("tree", "rounds"):
            refused(
                context,
                f"{pattern}: algorithm '{algorithm}' was given; allowed: auto, ring, direct, mpi",
                pattern,
                A,
                algorithm=algorithm,
            )
        refused(
            context,
            f"{pattern}: algorithm 'mpi' was given with columns dealt in blocks; allowed: ring, direct",
            pattern,
            np.zeros((4, 3 if context.rank == 0 else 0)) if pattern == "spread" else A,
            algorithm="mpi",
            block=3,
        )
    for pattern in ("reduce", "multi_reduce"):
        refused(
            context, f"{pattern}: algorithm 'mpi' was given with a function", pattern, A, op=np.add, algorithm="mpi"
        )


def test_blocks(context):
    for pattern in ("spread", "multi_reduce"):
        for block in (0, -1, "a", 2.5):
            refused(context, f"{pattern}: block {block!r} was given", pattern, A, block=block)
        if context.size > 1:
            refused(context, "different arguments.*block 2.*block 3", pattern, A, block=2 + (context.rank > 0))
    p, cols = context.size, 7 if context.rank == 0 else 1
    if p > 1:
        refused(
            context,
            "spread: rank 0 has 7 columns; .* columns dealt in blocks of 2 .* give it",
            "spread",
            np.zeros((4, cols)),
            block=2,
        )
        whole = np.zeros((4, 6 + p))
        part = whole[:, : 3 if context.rank == 0 else 0]
        refused(
            context,
            "rank 0 the part lies in the whole matrix .*outside",
            "spread",
            part,
            whole[:, :3].copy() if context.rank else whole[:, :3],
            block=3,
        )


def test_operations(context):
    C = A.astype("c16")
    for pattern in ("reduce", "multi_reduce"):
        for op in ("xor", None, 5, "user", A):
            refused(context, f"{pattern}: ", pattern, A, op=op)
        refused(
            context,
            "op 'xor' was given; allowed: sum, prod, min, max, or a function",
            pattern,
            A,
            op="xor" if context.rank == 0 else "sum",
        )
        for op in ("min", "max"):
            refused(
                context,
                f"{pattern}: op '{op}' of complex128 was asked for; complex numbers have no order",
                pattern,
                C,
                op=op,
            )
        if context.size > 1:
            refused(context, "different arguments.*op sum.*op user", pattern, A, op=np.add if context.rank else "sum")


def test_matrices_that_differ_between_ranks(context):
    if context.size == 1:
        return
    last = context.rank == context.size - 1
    for pattern in ("broadcast", "reduce", "multi_reduce"):
        text = refused(context, "different arguments. Rank 0,", pattern, np.zeros((4, 7 if last else 6)))
        assert "4x6 float64" in text and "4x7 float64" in text
    refused(
        context, "different arguments.*spread of 4 rows.*spread of 5 rows", "spread", np.zeros((5 if last else 4, 6))
    )
    for pattern in ("broadcast", "reduce", "spread", "multi_reduce"):
        refused(context, "different arguments.*float64.*float32", pattern, A.astype("f4") if last else A)


def test_results_of_a_wrong_shape(context):
    p = context.size
    for r in range(p):
        refused(
            context,
            "reduce: the matrix is 4x6 float64, out is 4x5 float64; they must be equal",
            "reduce",
            A,
            r,
            "sum",
            np.zeros((4, 5)),
        )
        refused(context, "out is float32; they must be equal", "reduce", A, r, "sum", np.zeros((4, 6), "f4"))
        mine = context.rank == r
        refused(context, "spread: the ranks' parts have", "spread", A, np.zeros((4, 6 * p + mine)))
        refused(context, "spread: .* they need equally many rows", "spread", A, np.zeros((4 + mine, 6 * p)))
        refused(
            context,
            "multi_reduce: the ranks' parts have",
            "multi_reduce",
            np.zeros((4, 6 * p)),
            np.zeros((4, 6 + mine)),
        )
        refused(
            context,
            "multi_reduce: .* they need equally many rows",
            "multi_reduce",
            np.zeros((4, 6 * p)),
            np.zeros((4 - mine, 6)),
        )
        refused(
            context,
            "out is float32",
            "multi_reduce",
            np.zeros((4, 6 * p)),
            np.zeros((4, 6), "f4") if mine else A.copy(),
        )
        refused(context, "out is list", "multi_reduce", np.zeros((4, 6 * p)), [1] if mine else A.copy())


def test_matrices_that_overlap(context):
    p, r = context.size, context.rank
    whole = np.zeros((4, 6 * p + 6))
    for root in range(p):
        refused(
            context,
            "reduce: M and out overlap; allowed: the same matrix",
            "reduce",
            whole[:, :6],
            root,
            "sum",
            whole[:, 2:8],
        )
        refused(context, "reduce: M and out overlap", "reduce", whole[:2, :6], root, "sum", whole[1:3, :6])
    for q in range(p):
        own, total = whole[:, 6 * r : 6 * r + 6], whole[:, : 6 * p]
        moved = whole[:, 6 * r + 1 : 6 * r + 7] if r == q else own
        inside = r == q and r == p - 1  # it sticks out at the right
        words = (
            "overlap; allowed"
            if q == p - 1
            else f"on rank {q} the part lies in the whole matrix at column {6 * q + 1}; .* or at column {6 * q}"
        )
        assert not inside or moved.base is not None
        refused(context, words, "spread", moved, total)
        refused(context, words, "multi_reduce", total, moved)
    lower = np.zeros((5, 6 * p))
    refused(context, "overlap", "spread", lower[1:, 6 * r : 6 * r + 6], lower[:-1])


def test_different_patterns_on_different_ranks(context):
    if context.size == 1:
        return
    for mine, other in (("broadcast", "reduce"), ("spread", "multi_reduce"), ("multi_reduce", "broadcast")):
        refused(
            context,
            f"different functions: rank 0 tw.patterns.{mine}.*rank 1 tw.patterns.{other}",
            other if context.rank else mine,
            A,
        )

    def kept_on_one_rank():
        patterns.broadcast(A.copy(), start=context.rank != 0, context=context)

    agreed(context, "different arguments.*start=False", tw.ConfigError, kept_on_one_rank)
    works(context)


def test_a_call_that_was_fine_right_before(context):
    """What a call keeps for the next one like it says nothing of the other ranks' next call."""
    if context.size == 1:
        return
    last = context.rank == context.size - 1
    M, out, total = np.ones((4, 6)), np.zeros((4, 6 * context.size)), np.zeros((4, 6))
    for _ in range(3):
        assert (patterns.broadcast(M, context=context) == 1).all()
        assert (patterns.spread(M, out, context=context) == 1).all()
        patterns.reduce(M, 0, "sum", total, context=context)
        assert (total == (context.size if context.rank == 0 else 0)).all()
        different = "given different arguments"
        agreed(context, different, tw.ConfigError, lambda: patterns.broadcast(M[:3] if last else M, context=context))
        agreed(
            context,
            different,
            tw.ConfigError,
            lambda: patterns.broadcast(M.astype("f4") if last else M, context=context),
        )
        agreed(context, different, tw.ConfigError, lambda: patterns.broadcast(M, int(last), context=context))
        agreed(
            context, "root True was given", tw.ConfigError, lambda: patterns.broadcast(M, last or 0, context=context)
        )
        agreed(
            context,
            "root 99 was given",
            tw.ConfigError,
            lambda: patterns.broadcast(M, 99 if last else 0, context=context),
        )
        agreed(
            context,
            "op 'user' was given",
            tw.ConfigError,
            lambda: patterns.reduce(M, 0, "user" if last else "sum", total, context=context),
        )
        agreed(
            context, "read-only", tw.ConfigError, lambda: patterns.broadcast(READ_ONLY if last else M, context=context)
        )
        agreed(
            context,
            "columns together",
            tw.ConfigError,
            lambda: patterns.spread(M, out[:, 1:] if last else out, context=context),
        )
        agreed(
            context,
            "called different functions",
            tw.ConfigError,
            lambda: patterns.broadcast(M, context=context) if last else patterns.spread(M, out, context=context),
        )
        agreed(
            context,
            "the part lies in the whole matrix at column 1",
            tw.ConfigError,
            lambda: patterns.spread(out[:, 1:7] if last else M, out, context=context),
        )


def test_errors_among_patterns_in_flight(context):
    last = context.rank == context.size - 1
    M = np.full((30, 40), float(context.rank == 0))
    first = patterns.broadcast(M, 0, chunk_bytes=100, wait=False, context=context)
    bad = patterns.spread(A[:, ::2] if last else A, wait=False, context=context)
    worse = patterns.reduce(A, 0, "xor" if last else "sum", wait=False, context=context)
    total = patterns.reduce(np.ones((30, 40)), 0, chunk_bytes=64, wait=False, context=context)
    agreed(context, "op 'xor'", tw.ConfigError, worse.wait)
    result = total.wait()
    assert result is None or (result == context.size).all()
    agreed(context, "column stride", tw.ConfigError, bad.wait)
    assert (first.wait() == 1).all()
    works(context)


def test_handles_used_wrongly(context):
    once = patterns.broadcast(A.copy(), wait=False, context=context)
    once.wait()
    with pytest.raises(tw.ConfigError, match="not made with start=False"):
        once.start()
    kept = patterns.broadcast(np.zeros((50, 40)), algorithm="tree", start=False, context=context)
    assert kept.test() and kept.wait().shape == (50, 40)  # not started: there is nothing to wait for
    if context.size > 1 and context.rank:  # cannot be over before rank 0 starts it
        kept.start()
        with pytest.raises(tw.ConfigError, match="in flight; wait for it"):
            kept.start()
        context.agree()
    else:
        context.agree()
        kept.start()
    kept.wait()
    with pytest.raises(tw.ConfigError, match="allowed: tilewave.Context"):
        patterns.broadcast(A.copy(), context="world")
    works(context)
