"""Patterns on numbers and arrays of any number of dimensions, on small integers and bools; allreduce."""

import numpy as np
import pytest
from pattern_cases import JOINS, reduced, same_bits, values

import tilewave as tw
from tilewave.patterns.allreduces import ALLREDUCE_RING_BYTES

pytestmark = pytest.mark.ranks([1, 2, 3, 4])
patterns = tw.patterns
SHAPES = ((), (1,), (7,), (0,), (3, 5), (2, 3, 4), (1, 1, 1), (2, 0, 3), (2, 1, 3, 2))
DTYPES = ("f4", "c16", "i8", "i2", "i1", "?")


def parts_of(context, shape, dtype, op="sum"):
    return [values(np.random.default_rng([len(shape), rank]), shape, dtype, op) for rank in range(context.size)]


@pytest.mark.ranks([1, 2, 3, 4])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_any_dimensions(context, dtype):
    p, r = context.size, context.rank
    op = "max" if dtype == "?" else "sum"
    for shape in SHAPES:
        parts = parts_of(context, shape, dtype)
        root = p - 1
        M = np.array(parts[r])
        assert patterns.broadcast(M, root) is M and same_bits(M, np.asarray(parts[root])), shape
        M = np.array(parts[r])
        got = patterns.reduce(M, root, op)
        assert (got is None) == (r != root)
        if got is not None:
            orders = [
                reduced([np.asarray(part).reshape(-1) for part in parts], op, root, order) for order in ("tree", "ring")
            ]
            assert got.shape == shape and any(same_bits(got.reshape(-1), expected) for expected in orders), shape
        if shape:
            # The last dimension is spread and shared out; ranks may have unequal parts.
            mine = np.ascontiguousarray(np.repeat(parts[r], r + 1, axis=-1))
            got = patterns.spread(mine)
            assert same_bits(
                got, np.concatenate([np.repeat(part, k + 1, axis=-1) for k, part in enumerate(parts)], axis=-1)
            ), shape
            columns = [shape[-1] // p + (k < shape[-1] % p) for k in range(p)]
            got = patterns.multi_reduce(M, None, op)
            assert got.shape == (*shape[:-1], columns[r]) and got.dtype == M.dtype
            whole = patterns.spread(got)
            assert whole.shape == shape and (
                dtype[0] in "fc" or same_bits(whole, np.asarray(JOINS[op].reduce(parts), dtype))
            )


def test_numbers(context):
    p, r = context.size, context.rank
    for mine, of_all, kind in (
        (r + 1, sum(range(1, p + 1)), int),
        (0.5 * r, sum(0.5 * k for k in range(p)), float),
        (1j + r, p * 1j + sum(range(p)), complex),
        (np.float32(r), np.float32(sum(range(p))), np.float32),
        (np.int8(100), np.int64(100 * p).astype("i1"), np.int8),
    ):
        for got in (patterns.allreduce(mine), patterns.reduce(mine, 0)):
            assert got is None and r or type(got) is kind and got == of_all
        got = patterns.broadcast(mine, p - 1)
        assert type(got) is kind
        context.agree(None, repr(got))
        handle = patterns.allreduce(mine, wait=False)
        assert handle.wait() == of_all and type(handle.wait()) is kind
    assert (
        patterns.allreduce(r == p - 1, "max") is True
        and patterns.allreduce(r == p, "max") is False
    )
    assert patterns.broadcast(7 if r == 0 else 0) == 7
    assert same_bits(patterns.spread(r * 2), 2 * np.arange(p))
    biggest = patterns.allreduce(np.array([r, -r]), lambda a, b: np.maximum(a, b))
    assert biggest.tolist() == [p - 1, 0]
    assert patterns.allreduce(2.0 * r, lambda a, b: a + b) == p * (p - 1)
    patterns.send(r + 0.5, (r + 1) % p)
    got = np.zeros(())
    assert patterns.receive(got, (r - 1) % p) == (r - 1) % p + 0.5
    row = np.zeros(3, "i2")
    patterns.send(np.full(3, r, "i2"), (r + 1) % p)
    assert (patterns.receive(row, (r - 1) % p) == (r - 1) % p).all()


@pytest.mark.parametrize("algorithm", ["auto", "tree", "ring"])
def test_allreduce(context, algorithm):
    p, r = context.size, context.rank
    for number, (shape, dtype, op) in enumerate(
        [
            ((), "f8", "sum"), ((5,), "f4", "sum"), ((40000,), "f8", "sum"), ((3, 2), "i2", "prod"),
            ((50, 700), "c8", "sum"), ((2, 3, 5), "i1", "min"), ((9,), "?", "min"), ((30, 40), "f8", "hypot"),
            ((0, 4), "f8", "sum"), ((1, 1), "u1", "max"),
        ]
    ):
        parts = parts_of(context, shape, dtype, op)
        M, function = np.array(parts[r]), JOINS[op] if op == "hypot" else op
        got = patterns.allreduce(M, function, algorithm=algorithm)
        assert got.shape == shape and got.dtype == M.dtype and same_bits(M, np.asarray(parts[r]))
        context.agree(None, got.tobytes().hex()[:2000] + str(hash(got.tobytes()) if p == 1 else ""))
        same = patterns.spread(np.frombuffer(got.tobytes(), "u1")).reshape(p, -1)
        assert (same == same[0]).all(), "the same bits on every rank"
        plain = parts[0]
        with np.errstate(all="ignore"):
            for part in parts[1:]:
                plain = JOINS[op](plain, part)
        close = (
            np.array_equal
            if M.dtype.kind in "iub" or op in ("min", "max")
            else lambda a, b: np.allclose(a, b, rtol=1e-4, equal_nan=True)
        )
        assert close(got, np.asarray(plain, M.dtype).reshape(shape)), (shape, dtype, op)
        # In place, into a given array, in flight, and any number of times.
        out = np.empty(shape, dtype)
        assert patterns.allreduce(M, function, out, algorithm=algorithm) is out and same_bits(out, got)
        handle = patterns.allreduce(M, function, out, algorithm=algorithm, start=False)
        for _ in range(2):
            out[...] = 0
            assert handle.run() is out and same_bits(out, got)
        handles = [patterns.allreduce(np.array(part), function, algorithm=algorithm, wait=False) for part in (M, M)]
        while number % 2 and not all([handle.test() for handle in handles]):  # noqa: C419 - each is tested
            pass
        assert all(same_bits(handle.wait(), got) for handle in handles)
        patterns.allreduce(M, function, M, algorithm=algorithm)
        assert same_bits(M, got)


def test_large_arrays_go_by_parts(context):
    M = np.ones(ALLREDUCE_RING_BYTES // 8)
    handle = patterns.allreduce(M, start=False)
    assert ("ring" in handle.algorithm or "direct" in handle.algorithm) or context.size == 1
    assert patterns.allreduce(M[:-1], start=False).run().sum() == context.size * (len(M) - 1)


def refused(words, call):
    with pytest.raises(tw.ConfigError, match=words) as caught:
        call()
    assert caught.value.agreed
    tw.context().agree(None, str(caught.value))
    assert patterns.allreduce(1) == tw.size


def test_what_is_refused(context):
    r, last, A = context.rank, context.size - 1, np.zeros((2, 3, 4))
    one = lambda bad, good: bad if r == last else good
    refused("bool was asked for; allowed: 'max'", lambda: patterns.reduce(np.zeros(3, bool)))
    refused("bool was asked for; allowed: 'max'", lambda: patterns.allreduce(True))
    refused("M is one number, which has no columns", lambda: patterns.multi_reduce(1.0))
    refused(
        "allreduce: .*algorithm 'rounds'.*allowed: 'auto', 'tree', 'ring'",
        lambda: patterns.allreduce(A, algorithm="rounds"),
    )
    refused("allreduce: .*M is list", lambda: patterns.allreduce(one([1], A)))
    refused("out is \\(2, 3\\)", lambda: patterns.allreduce(A, out=one(np.zeros((2, 3)), np.zeros(A.shape))))
    refused("equal but for the last", lambda: patterns.spread(A, out=np.zeros((3, 2, 4 * context.size))))
    refused("overlap", lambda: patterns.allreduce(A[0], out=one(A.reshape(-1)[4:16].reshape(3, 4), np.zeros((3, 4)))))
    if last:
        refused("differ|than", lambda: patterns.allreduce(one(1, 1.0)))
        refused("differ|than", lambda: patterns.broadcast(np.zeros((2, 6, 4) if r == last else (3, 4, 4))))
        refused("differ|than", lambda: patterns.allreduce(np.zeros(5 if r == last else 40000)))
        with pytest.raises(tw.KernelError, match="failed on rank"):
            patterns.allreduce(A[0], lambda a, b: [])
