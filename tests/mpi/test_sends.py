"""Buffered sends: order, sizes around the pieces they travel in, limits, and the end of a program."""

import random
import time

import numpy as np
import pytest
from pattern_cases import DTYPES, Guarded, same_bits, values

import tilewave as tw

ranks = pytest.mark.ranks([1, 2, 3])
patterns = tw.patterns
HEAD = 24  # bytes of the first message that are not the matrix
FIRST, PIECE = 4096, 256 << 10  # where the first message and a piece end


@pytest.fixture(scope="module")
def everywhere():
    return tw.Context()


@pytest.fixture
def context(everywhere):
    """A rank that has nothing more to call must still hand over what it has sent."""
    yield everywhere
    everywhere.close()
    everywhere._core.barrier()  # until then the others keep calling: a send may need it to end


def ring(context):
    return (context.rank + 1) % context.size, (context.rank - 1) % context.size


def bytes_of(rank, tag, n):
    return np.arange(rank + tag, rank + tag + n).astype("u1").reshape(1, n)


@pytest.mark.ranks([1, 2, 3])
@pytest.mark.mpi(ranks=[2, 3])
@ranks
def test_sizes_around_the_pieces(context):
    to, source = ring(context)
    sizes = [
        0,
        1,
        *(edge + d for edge in (FIRST, FIRST + PIECE, FIRST + 2 * PIECE, FIRST + 9 * PIECE) for d in (-1, 0, 1)),
    ]
    for tag, n in enumerate(sizes):
        patterns.send(bytes_of(context.rank, tag, n), to, tag, context=context)
    for tag, n in reversed(list(enumerate(sizes))):
        got = Guarded(np.zeros((1, n), "u1"))
        assert patterns.receive(got.matrix, source, tag, context=context) is got.matrix
        assert same_bits(got.matrix, bytes_of(source, tag, n)) and got.intact(), n


@ranks
@pytest.mark.parametrize("seed", range(3))
def test_random_matrices_among_all_ranks(context, seed):
    """Many tags, order within one, any strides; each rank receives in an order of its own."""
    p, r = context.size, context.rank
    pick = random.Random(seed)
    messages = [
        (
            k,
            pick.randrange(p),
            pick.randrange(p),
            pick.choice((0, 1, 2, 2047)),
            pick.choice(DTYPES),
            (pick.choice((0, 1, pick.randint(2, 90))), pick.choice((0, 1, pick.randint(2, 90)))),
        )
        for k in range(60)
    ]

    def matrix(k, dtype, shape):
        return values(np.random.default_rng([seed, k]), shape, dtype)

    own = random.Random(f"{seed}, {r}")
    waiting = []
    if own.random() < 0.5:
        time.sleep(0.005)
    for k, source, target, tag, dtype, shape in messages:
        if source == r:
            M = Guarded(matrix(k, dtype, shape), own.randrange(4))
            patterns.send(M.matrix, target, tag, context=context)
            M.matrix[...] = 1  # it has been copied
            assert M.intact()
        if target == r:
            got = Guarded(np.zeros(shape, dtype), own.randrange(4))
            waiting.append(
                (k, dtype, shape, got, patterns.receive(got.matrix, source, tag, wait=False, context=context))
            )
    own.shuffle(waiting)
    for k, dtype, shape, got, handle in waiting:
        while own.random() < 0.3 and not handle.test():
            pass
        assert handle.wait() is got.matrix and handle.test()
        assert same_bits(got.matrix, matrix(k, dtype, shape)) and got.intact(), f"seed {seed}, message {k}"


@ranks
def test_receivers_that_come_first_or_late(context):
    to, source = ring(context)
    for n in (10, 600, 30_000):
        rooms = [np.zeros((2, n)) for _ in range(4)]
        early = [patterns.receive(room, source, 5, wait=False, context=context) for room in rooms[:2]]
        context.agree()  # now all are posted
        for k in range(4):
            patterns.send(np.full((2, n), 10.0 * k + context.rank), to, 5, context=context)
        for handle in reversed(early):
            handle.wait()
        for room in rooms[2:]:
            patterns.receive(room, source, 5, context=context)
        assert all((room == 10 * k + source).all() for k, room in enumerate(rooms))


@ranks
def test_to_itself(context):
    for n in (3, 5000):
        patterns.send(np.full((n, 2), 4.0), context.rank, context=context)
        patterns.send(np.full((n, 2), 5.0), context.rank, context=context)
        assert (patterns.receive(np.zeros((n, 2)), context.rank, context=context) == 4).all()
        assert (patterns.receive(np.zeros((n, 3))[:, :2], context.rank, context=context) == 5).all()


@pytest.mark.ranks([2])
def test_it_returns_before_the_receiver_asks(context):
    big = np.ones((1000, 500))
    if context.rank == 0:
        for _ in range(3):
            patterns.send(big, 1, context=context)
        context.agree()
    else:
        context.agree()
        for _ in range(3):
            assert (patterns.receive(np.zeros_like(big), 0, context=context) == 1).all()
    context.close()


@ranks
def test_limits(context):
    to, source = ring(context)
    M = np.full((700, 700), 1.0 + context.rank)  # more than is on its way while nobody receives
    one = M.nbytes + HEAD
    with pytest.raises(
        tw.ConfigError,
        match=f"{M.nbytes} bytes was given; the limit of what is buffered is {one - 1} bytes, 24 of them for its head",
    ) as caught:
        patterns.send(M, to, limit_bytes=one - 1, context=context)
    assert not caught.value.agreed  # of this rank alone
    for on_full in ("raise", "wait"):  # the limit itself is allowed
        patterns.send(M, to, limit_bytes=one, on_full=on_full, context=context)
        if on_full == "raise":
            with pytest.raises(
                tw.ConfigError,
                match=f"finds {one} bytes buffered that nobody has received yet; "
                f"the limit is {2 * one - 1}.*receive first",
            ):
                patterns.send(M, to, limit_bytes=2 * one - 1, on_full="raise", context=context)
        context._core.barrier()  # nobody receives before all have met the limit
        got = patterns.receive(np.zeros_like(M), source, context=context)
        assert (got == 1 + source).all()
        context.close()  # received by all: there is room again


@pytest.mark.ranks([2])
def test_it_waits_at_the_limit(context):
    """64 messages through room for two: the sender is held back and nothing is lost."""
    M = np.zeros((50, 100))
    if context.rank == 0:
        for k in range(64):
            M[...] = k
            patterns.send(M, 1, limit_bytes=2 * M.nbytes + 2 * HEAD, context=context)
        done = time.perf_counter()
    else:
        time.sleep(0.2)
        woke = time.perf_counter()
        for k in range(64):
            assert (patterns.receive(M, 0, context=context) == k).all()
    context.close()
    if context.rank == 1:
        patterns.send(np.array([[woke]]), 0, context=context)
    else:
        assert done > patterns.receive(np.zeros((1, 1)), 1, context=context)[0, 0]


@ranks
def test_a_receiver_with_another_matrix_in_mind(context):
    to, source = ring(context)
    for shape in ((3, 4), (200, 300)):
        for wrong in (np.zeros(shape, "f4"), np.zeros(shape[::-1]), np.zeros((shape[0], shape[1] + 1))[:, 1:-1]):
            for k in range(2):
                patterns.send(np.full(shape, k + 1.0), to, 9, context=context)
            with pytest.raises(
                tw.ConfigError,
                match=f"receive: rank {source} sent {shape[0]}x{shape[1]} float64 with tag 9, the matrix given is "
                f"{wrong.shape[0]}x{wrong.shape[1]} {wrong.dtype}; they must be equal",
            ) as caught:
                patterns.receive(wrong, source, 9, context=context)
            assert not caught.value.agreed and not wrong.any()
            assert (patterns.receive(np.zeros(shape), source, 9, context=context) == 2).all()  # the next is fine


@ranks
@pytest.mark.parametrize(
    "keywords, words",
    [
        (dict(M=[[1.0]]), "send: M is list"),
        (dict(M=np.zeros(6)[::2]), "send: M of one dimension has a stride of 16"),
        (dict(M=np.zeros((3, 4))[:, ::2]), "column stride"),
        (dict(M=np.zeros((3, 4), "f2")), "dtype float16"),
        (dict(M=np.zeros((3, 4))[::-1]), "row stride of -32"),
        (dict(dest=-1), "send: rank -1 was given; allowed: 0 to"),
        (dict(dest=99), "send: rank 99"),
        (dict(dest="a"), "send: dest 'a'"),
        (dict(tag=-1), "send: tag -1 was given; allowed: 0 to 2047"),
        (dict(tag=2048), "send: tag 2048"),
        (dict(tag=1.0), "send: tag 1.0"),
        (dict(limit_bytes=0), "limit"),
        (dict(limit_bytes=-5), "limit"),
        (dict(limit_bytes=1 << 70), "limit_bytes .* allowed"),
        (dict(limit_bytes="x"), "limit_bytes 'x'"),
        (dict(on_full="drop"), "on_full 'drop' was given; allowed: 'wait', 'raise'"),
        (dict(on_full=None), "on_full None"),
    ],
)
def test_bad_sends(context, keywords, words):
    with pytest.raises(tw.ConfigError, match=words):
        patterns.send(**{"M": np.zeros((3, 4)), "dest": 0, "context": context, **keywords})


@ranks
@pytest.mark.parametrize(
    "keywords, words",
    [
        (dict(M=[[1.0]]), "receive: M is list"),
        (dict(M=np.zeros((3, 4)).T), "column stride"),
        (dict(M=np.broadcast_to(np.zeros(4), (3, 4))), "row stride of 0"),
        (dict(M=np.frombuffer(bytes(96)).reshape(3, 4)), "read-only"),
        (dict(source=-1), "receive: rank -1 was given; allowed"),
        (dict(source=None), "receive: source None"),
        (dict(source=99), "rank 99"),
        (dict(tag=2048), "receive: tag 2048 was given; allowed: 0 to 2047"),
        (dict(tag="a"), "tag 'a'"),
    ],
)
def test_bad_receives(context, keywords, words):
    with pytest.raises(tw.ConfigError, match=words):
        patterns.receive(**{"M": np.zeros((3, 4)), "source": 0, "context": context, **keywords})
