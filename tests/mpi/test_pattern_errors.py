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
        (A.astype("f2"), "dtype float16; allowed: bool, int8, int16"),
        (2**64, "a number of 65 bits was given; allowed: 64"),
        (np.float16(1), "dtype float16"),
        (PAIRS, "dtype .*x"),
    ],
)
@pytest.mark.exhaustive
def test_matrices(context, matrix, words):
    on_each_rank(f"broadcast: .*{words}", "broadcast", A.copy(), matrix)
    for pattern in ("reduce", "spread", "multi_reduce"):
        refused(f"{pattern}: .*{words}", pattern, matrix)


def test_what_is_fine(context):
    """Strides that nothing depends on, and a matrix that is only read."""
    wide = np.zeros((1, 8))[:, ::2][:, :1]
    for matrix in (
        wide, np.zeros((1, 6))[::-1], np.zeros((0, 5))[:, ::2], np.zeros((5, 0)), np.matrix(np.zeros((2, 2))),
        A.astype("q"),
    ):
        patterns.broadcast(matrix, 0)
    patterns.broadcast(READ_ONLY if tw.rank == 0 else A.copy(), 0)
    patterns.reduce(READ_ONLY, 0)
    patterns.reduce(A, np.int64(tw.size - 1), "sum", None if tw.rank == tw.size - 1 else "not used here")


def test_memory_that_may_not_be_written(context):
    p = tw.size
    for r in range(1, p):
        refused(
            "broadcast: M is written, but its memory is read-only",
            "broadcast",
            READ_ONLY if tw.rank == r else A.copy(),
        )
    for root in range(p):
        refused("out is written, but", "reduce", A, root, "sum", READ_ONLY)
    wide = np.zeros((4, 6 * p))
    locked = wide.copy()
    locked.flags.writeable = False
    for r in range(p):
        refused("spread: out is written", "spread", A, locked if tw.rank == r else wide)
        refused("multi_reduce: out is written", "multi_reduce", wide, READ_ONLY if tw.rank == r else A.copy())


def test_roots(context):
    p = tw.size
    for pattern in ("broadcast", "reduce"):
        for root in (-1, p, 1 << 30):
            refused(f"{pattern}: root {root} was given; allowed: 0 to {p - 1}", pattern, A, root)
        for root in ("a", 1.0, None, True, np.float64(0)):
            refused("root .* was given; allowed: an integer", pattern, A, root)
        refused("less than", pattern, A, 1 << 40 if tw.rank == p - 1 else 0)
        if p > 1:
            text = refused("different arguments", pattern, A, 1 if tw.rank else 0)
            assert "root 0" in text and "root 1" in text


def test_choices(context):
    last = tw.rank == tw.size - 1
    for pattern in ("broadcast", "reduce", "spread", "multi_reduce"):
        for chunk_bytes, words in (
            (0, "chunk_bytes 0 was given; at least 1"),
            (-1, "chunk_bytes -1"),
            ("a", "chunk_bytes 'a' was given; allowed: an integer"),
            (1.5, "chunk_bytes 1.5"),
            (1 << 40, "chunk_bytes 1099511627776 .* 1 to"),
            (1 << 70, "chunk_bytes 1180591620717411303424"),
        ):
            refused(f"{pattern}: {words}", pattern, A, chunk_bytes=chunk_bytes)
        for buffers, words in (
            (0, "buffers 0"),
            (1, "buffers 1 was given; 2 to 64 are allowed"),
            (65, "buffers 65"),
            (-3, "buffers -3"),
            ([2], "buffers"),
        ):
            refused(f"{pattern}: {words}", pattern, A, buffers=buffers)
        for algorithm in ("star", "", "native", None, 5):
            refused(f"{pattern}: .*algorithm.*{algorithm}.* was given; allowed: ", pattern, A, algorithm=algorithm)
        refused("chunk_bytes -1", pattern, A, chunk_bytes=-1 if last else None)
        refused("2\\*\\*63", pattern, A, chunk_bytes=1 << 70 if last else None)
        if tw.size > 1:
            refused("different arguments.*chunk_bytes auto.*chunk_bytes 8", pattern, A, chunk_bytes=8 if last else None)
            refused("different arguments.*buffers 2.*buffers 3", pattern, A, buffers=3 if last else 2)
            refused(
                "different arguments.*algorithm auto.*algorithm ring",
                pattern,
                A,
                algorithm="ring" if last else "auto",
            )


@pytest.mark.mpi(ranks=[2])
def test_algorithms_of_other_patterns(context):
    refused("reduce: algorithm 'rounds' was given; allowed: auto, tree, ring, mpi", "reduce", A, algorithm="rounds")
    refused("reduce: algorithm 'direct' was given; allowed: auto, tree, ring, mpi", "reduce", A, algorithm="direct")
    for pattern in ("spread", "multi_reduce"):
        for algorithm in ("tree", "rounds"):
            refused(
                f"{pattern}: algorithm '{algorithm}' was given; allowed: auto, ring, direct, mpi",
                pattern,
                A,
                algorithm=algorithm,
            )
        refused(
            f"{pattern}: algorithm 'mpi' was given with columns dealt in blocks; allowed: ring, direct",
            pattern,
            np.zeros((4, 3 if tw.rank == 0 else 0)) if pattern == "spread" else A,
            algorithm="mpi",
            block=3,
        )
    for pattern in ("reduce", "multi_reduce"):
        refused(f"{pattern}: algorithm 'mpi' was given with a function", pattern, A, op=np.add, algorithm="mpi")


def test_blocks(context):
    for pattern in ("spread", "multi_reduce"):
        for block in (0, -1, "a", 2.5):
            refused(f"{pattern}: block {block!r} was given", pattern, A, block=block)
        if tw.size > 1:
            refused("different arguments.*block 2.*block 3", pattern, A, block=2 + (tw.rank > 0))
    p, cols = tw.size, 7 if tw.rank == 0 else 1
    if p > 1:
        refused(
            "spread: rank 0 has 7 columns; .* columns dealt in blocks of 2 .* give it",
            "spread",
            np.zeros((4, cols)),
            block=2,
        )
        whole = np.zeros((4, 6 + p))
        part = whole[:, : 3 if tw.rank == 0 else 0]
        refused(
            "rank 0 the part lies in the whole matrix .*outside",
            "spread",
            part,
            whole[:, :3].copy() if tw.rank else whole[:, :3],
            block=3,
        )


def test_operations(context):
    C = A.astype("c16")
    for pattern in ("reduce", "multi_reduce"):
        for op in ("xor", None, 5, "user", A):
            refused(f"{pattern}: ", pattern, A, op=op)
        refused(
            "op 'xor' was given; allowed: sum, prod, min, max, or a function",
            pattern,
            A,
            op="xor" if tw.rank == 0 else "sum",
        )
        for op in ("min", "max"):
            refused(
                f"{pattern}: op '{op}' of complex128 was asked for; complex numbers have no order", pattern, C, op=op
            )
        if tw.size > 1:
            refused("different arguments.*op sum.*op user", pattern, A, op=np.add if tw.rank else "sum")


def test_matrices_that_differ_between_ranks(context):
    if tw.size == 1:
        return
    last = tw.rank == tw.size - 1
    for pattern in ("broadcast", "reduce", "multi_reduce"):
        text = refused("different arguments. Rank 0,", pattern, np.zeros((4, 7 if last else 6)))
        assert "4x6 float64" in text and "4x7 float64" in text
    refused("different arguments.*spread of 4 rows.*spread of 5 rows", "spread", np.zeros((5 if last else 4, 6)))
    for pattern in ("broadcast", "reduce", "spread", "multi_reduce"):
        refused("different arguments.*float64.*float32", pattern, A.astype("f4") if last else A)


def test_results_of_a_wrong_shape(context):
    p = tw.size
    for r in range(p):
        refused(
            "reduce: the matrix is 4x6 float64, out is 4x5 float64; they must be equal",
            "reduce",
            A,
            r,
            "sum",
            np.zeros((4, 5)),
        )
        refused("out is float32; they must be equal", "reduce", A, r, "sum", np.zeros((4, 6), "f4"))
        mine = tw.rank == r
        refused("spread: the ranks' parts have", "spread", A, np.zeros((4, 6 * p + mine)))
        refused("spread: .* they need equally many rows", "spread", A, np.zeros((4 + mine, 6 * p)))
        refused("multi_reduce: the ranks' parts have", "multi_reduce", np.zeros((4, 6 * p)), np.zeros((4, 6 + mine)))
        refused(
            "multi_reduce: .* they need equally many rows",
            "multi_reduce",
            np.zeros((4, 6 * p)),
            np.zeros((4 - mine, 6)),
        )
        refused("out is float32", "multi_reduce", np.zeros((4, 6 * p)), np.zeros((4, 6), "f4") if mine else A.copy())
        refused("out is list", "multi_reduce", np.zeros((4, 6 * p)), [1] if mine else A.copy())


def test_matrices_that_overlap(context):
    p, r = tw.size, tw.rank
    whole = np.zeros((4, 6 * p + 6))
    for root in range(p):
        refused(
            "reduce: M and out overlap; allowed: the same matrix", "reduce", whole[:, :6], root, "sum", whole[:, 2:8]
        )
        refused("reduce: M and out overlap", "reduce", whole[:2, :6], root, "sum", whole[1:3, :6])
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
        refused(words, "spread", moved, total)
        refused(words, "multi_reduce", total, moved)
    lower = np.zeros((5, 6 * p))
    refused("overlap", "spread", lower[1:, 6 * r : 6 * r + 6], lower[:-1])


def test_different_patterns_on_different_ranks(context):
    if tw.size == 1:
        return
    for mine, other in (("broadcast", "reduce"), ("spread", "multi_reduce"), ("multi_reduce", "broadcast")):
        refused(
            f"different functions: rank 0 tw.patterns.{mine}.*rank 1 tw.patterns.{other}",
            other if tw.rank else mine,
            A,
        )

    def kept_on_one_rank():
        patterns.broadcast(A.copy(), start=tw.rank != 0)

    agreed("different arguments.*start=False", tw.ConfigError, kept_on_one_rank)
    works()


def test_a_call_that_was_fine_right_before(context):
    """What a call keeps for the next one like it says nothing of the other ranks' next call."""
    if tw.size == 1:
        return
    last = tw.rank == tw.size - 1
    M, out, total = np.ones((4, 6)), np.zeros((4, 6 * tw.size)), np.zeros((4, 6))
    for _ in range(3):
        assert (patterns.broadcast(M) == 1).all()
        assert (patterns.spread(M, out) == 1).all()
        patterns.reduce(M, 0, "sum", total)
        assert (total == (tw.size if tw.rank == 0 else 0)).all()
        different = "given different arguments"
        agreed(different, tw.ConfigError, lambda: patterns.broadcast(M[:3] if last else M))
        agreed(different, tw.ConfigError, lambda: patterns.broadcast(M.astype("f4") if last else M))
        agreed(different, tw.ConfigError, lambda: patterns.broadcast(M, int(last)))
        agreed("root True was given", tw.ConfigError, lambda: patterns.broadcast(M, last or 0))
        agreed("root 99 was given", tw.ConfigError, lambda: patterns.broadcast(M, 99 if last else 0))
        agreed("op 'user' was given", tw.ConfigError, lambda: patterns.reduce(M, 0, "user" if last else "sum", total))
        agreed("read-only", tw.ConfigError, lambda: patterns.broadcast(READ_ONLY if last else M))
        agreed("columns together", tw.ConfigError, lambda: patterns.spread(M, out[:, 1:] if last else out))
        agreed(
            "called different functions",
            tw.ConfigError,
            lambda: patterns.broadcast(M) if last else patterns.spread(M, out),
        )
        agreed(
            "the part lies in the whole matrix at column 1",
            tw.ConfigError,
            lambda: patterns.spread(out[:, 1:7] if last else M, out),
        )


def test_errors_among_patterns_in_flight(context):
    last = tw.rank == tw.size - 1
    M = np.full((30, 40), float(tw.rank == 0))
    first = patterns.broadcast(M, 0, chunk_bytes=100, wait=False)
    bad = patterns.spread(A[:, ::2] if last else A, wait=False)
    worse = patterns.reduce(A, 0, "xor" if last else "sum", wait=False)
    total = patterns.reduce(np.ones((30, 40)), 0, chunk_bytes=64, wait=False)
    agreed("op 'xor'", tw.ConfigError, worse.wait)
    result = total.wait()
    assert result is None or (result == tw.size).all()
    agreed("column stride", tw.ConfigError, bad.wait)
    assert (first.wait() == 1).all()
    works()


def test_handles_used_wrongly(context):
    once = patterns.broadcast(A.copy(), wait=False)
    once.wait()
    with pytest.raises(tw.ConfigError, match="not made with start=False"):
        once.start()
    kept = patterns.broadcast(np.zeros((50, 40)), algorithm="tree", start=False)
    assert kept.test() and kept.wait().shape == (50, 40)  # not started: there is nothing to wait for
    if tw.size > 1 and tw.rank:  # cannot be over before rank 0 starts it
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
    works()
