"""Arrays of bools, of unsigned integers, of letters and in other byte orders, against plain loops of NumPy."""

import itertools

import numpy as np
import pytest

import tilewave as tw
from local_ranks import results_of
from random_paths import random_paths
from tilewave.errors import ConfigError

SHAPE = (19, 61)


@tw.nest
def parity(P, A, B, i, j):
    P[i, j] = P[i-1, j] ^ (A[i, j] > B[i, j]) & ~P[i, j-1]


@tw.nest
def spreads(P, A, B, i, j):
    if B[i, j] and not P[i-1, j-1]:
        P[i, j] = A[i, j]
    elif P[i, j-1] | P[i-1, j]:
        P[i, j] |= B[i, j] == A[i, j]


@tw.nest
def counted(P, A, B, i, j):
    P[i, j] = (P[i-1, j] + A[i, j] * B[i, j]) % 101 + np.where(B[i, j] > A[i, j], 1, 2)


@tw.nest
def alone(P, A, B, i, j):
    x = A[i, j] if B[i, j] else A[i, j+1]
    P[i, j] = x != B[i, j]


@tw.nest
def shifts(P, A, B, i, j):
    P[i, j] = min(P[i-1, j], 50) + min(max(A[i, j] >> 1, B[i, j]), 50)


NESTS = {"parity": parity, "spreads": spreads, "counted": counted, "alone": alone, "shifts": shifts}
WRITTEN = {"parity": "?", "spreads": "?", "alone": "?", "counted": "u1 u2 u4 u8 i8", "shifts": "u1 u2 u4 u8"}


def drawn(draw, dtype):
    if dtype == "?":
        return draw.random(SHAPE) < 0.4
    most = min(np.iinfo(dtype).max, draw.choice([3, 2**31, 2**63 - 1]))
    return draw.integers(0, most, SHAPE, endpoint=True).astype(dtype)


def plain(nest, arrays):
    with np.errstate(all="ignore"):
        for i, j in itertools.product(range(1, SHAPE[0]), range(1, SHAPE[1] - (nest is alone))):
            nest.function(*(arrays[name] for name in "PAB"), i, j)
    return arrays["P"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("name", NESTS)
@pytest.mark.parametrize("seed", range(6))
def test_nests(name, ranks, seed):
    draw = np.random.default_rng([seed, ranks])
    kinds = draw.choice(WRITTEN[name].split()), *draw.choice("? u1 u2 u4 u8 i4".split(), 2)
    if name == "shifts":
        kinds = kinds[0], *draw.choice("u1 u2 u4".split(), 2)
    start = {each: drawn(draw, kind) for each, kind in zip("PAB", kinds, strict=True)}
    if kinds[0] != "?":
        start["P"] = start["P"] % 50
    nest, paths = NESTS[name], random_paths(f"{seed} {ranks}")
    try:
        wanted = plain(nest, {each: value.copy() for each, value in start.items()})
    except TypeError:
        pytest.skip("NumPy has no such operator")

    def on_rank(context):
        P = tw.field(start["P"], context=context)
        over = {"i": (1, SHAPE[0]), "j": (1, SHAPE[1] - (nest is alone))}
        tw.run(nest, P=P, A=start["A"], B=start["B"], context=context, over=over)
        return P.gather()

    found = results_of(ranks, 1, on_rank, without=paths)[0]
    assert found.dtype == wanted.dtype and np.array_equal(found, wanted), (seed, kinds, paths)


def test_reductions_of_bools():
    m = np.random.default_rng(3).random((40, 50)) < 0.5
    u = tw.field(m)
    assert tw.max(u) and not tw.min(u) and tw.sum(u) == m.sum()
    assert tw.argmax(u) == np.unravel_index(m.argmax(), m.shape)

    @tw.nest
    def both(v, u, i, j):
        v[i, j] = u[i, j] and u[i-1, j]

    v = tw.field(m.shape, bool)
    report = tw.run(both, v=v, u=u, reduce={"any": tw.max("v"), "all": tw.min("v"), "count": tw.sum("v")})
    wanted = m[1:] & m[:-1]
    assert report.results == {"any": wanted.any(), "all": wanted.all(), "count": wanted.sum()}
    assert np.array_equal(v.gather()[1:], wanted)


@tw.nest
def matches(H, a, b, i, j):
    H[i, j] = max(H[i-1, j], H[i, j-1], H[i-1, j-1] + (a[i] == b[j]))


def test_letters_are_read_as_their_numbers():
    a, b = b" GATTACAGATTACA", b" TACATACATTAGACAT"
    wanted = np.zeros((len(a), len(b)), "i4")
    for i, j in itertools.product(range(1, len(a)), range(1, len(b))):
        wanted[i, j] = max(wanted[i - 1, j], wanted[i, j - 1], wanted[i - 1, j - 1] + (a[i] == b[j]))
    letters = np.array(list(b.decode()))
    given = ((a, b), (bytearray(a), np.frombuffer(b, "S1")), (np.frombuffer(a, "S1"), b), (a.decode(), letters))
    for one, other in given:
        H = np.zeros(wanted.shape, "i4")
        tw.run(matches, H=H, a=one, b=other)
        assert np.array_equal(H, wanted)
    H = np.zeros(wanted.shape, "i4")
    tw.bind(matches, H=H, a=np.array(list(a.decode())), b=letters.astype(">U1").astype("U1")).run()
    assert np.array_equal(H, wanted)
    with pytest.raises(ConfigError, match="dtype <U2"):
        tw.run(matches, H=H, a=np.array(["GA", "TT"]), b=letters)
    with pytest.raises(ConfigError, match="given list; allowed: .*; bytes and str, where only read"):
        tw.run(matches, H=H, a=list("GATTACA"), b=letters)


@tw.nest
def adds(v, u, m, i):
    v[i] = v[i-1] + (u[i] if m[i] else 1)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "u4", "u8", "c16"])
def test_byte_orders(dtype):
    """What is changed in place between two runs counts; `bind` refuses what it would have to copy."""
    u, m = np.arange(9).astype(dtype).astype(np.dtype(dtype).newbyteorder(">")), np.arange(9) % 3 > 0
    for factor in (1, 3):
        u *= factor
        v = np.zeros(9, dtype)
        tw.run(adds, v=v, u=u, m=m)
        wanted = np.zeros(9, dtype)
        for i in range(1, 9):
            wanted[i] = wanted[i - 1] + (u[i] if m[i] else 1)
        assert np.array_equal(v, wanted)
    with pytest.raises(ConfigError, match="in native byte order"):
        tw.bind(adds, v=v, u=u, m=m)
    with pytest.raises(ConfigError, match="in native byte order"):
        tw.run(adds, v=u, u=v, m=m)
