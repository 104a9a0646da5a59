"""Arrays of bools, of unsigned integers, of letters and in other byte orders, against plain loops of NumPy."""

import itertools

import numpy as np
import pytest

import tilewave as tw
from tilewave.errors import ConfigError


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
    with pytest.raises(ConfigError, match="given a list of <U1; allowed: .*; bytes and str, where only read"):
        tw.run(matches, H=H, a=list("GATTACA"), b=letters)


@tw.nest
def counted(u, a, t, i):
    u[t + 1, i] = u[t, i] + a[i]


@tw.nest
def doubled(v, u, a, t, i):
    v[t + 1, i] = 2 * u[t + 1, i] + a[i]


@pytest.mark.parametrize("a", ["abc", b"abc", np.array([97, 98, 99], ">i4"), [97, 98, 99]])
def test_several_nests_read_letters_and_lists_too(a):
    u, v = np.zeros(3), np.zeros(3)
    for run in (
        lambda **given: tw.run((counted, doubled), **given),
        lambda **given: tw.bind((counted, doubled), **given).run(),
        lambda **given: tw.chain([tw.bind((counted, doubled), **given)]).run(),
    ):
        run(u=u, v=v, a=a, steps=2)
    assert np.array_equal(u, 6 * np.array([97, 98, 99])) and np.array_equal(v, 13 * np.array([97, 98, 99]))


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
