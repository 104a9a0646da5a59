"""What functions have as people write them: slices set to a value, small loops, recursion, arguments that are None."""

import numpy as np
import pytest
from test_loops import same, some

import tilewave as tw
from tilewave.context import context as contexts


def windows(z, out, e):
    n, m = z.shape
    for r in range(n):
        for c in range(m):
            e[:, :] = z[r, c]
            for dr in range(-1, 2):
                for dc in range(-1, 2):
                    if 0 <= r + dr < n and 0 <= c + dc < m:
                        e[dr + 1, dc + 1] = z[r + dr, c + dc]
            out[r, c] = e[0, 0] - e[2, 2] + e[0, 2] - e[2, 0]


def borders(u, v):
    for i in range(len(u)):
        v[i, 1:] = 2 * u[i, 0] - 1
        v[i, 2:-1] = np.inf
        u[i, :-1] = u[i, 1] + u[i, 2]
        v[:, 0] = 3


def rows(a, b):
    for i in range(len(a)):
        a[i, :] = b[i]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "c16", "?"])
def test_slices_of_one_value(dtype):
    u = (100 * some(6, 9)).astype(dtype)
    if dtype != "?":
        e = np.zeros((3, 3), dtype)
        assert "compiled" in same(windows, u, np.zeros(u.shape, dtype), e).explain()
    if dtype in ("f8", "f4", "c16"):
        assert "compiled" in same(borders, u, np.zeros((6, 5), dtype)).explain()
    assert "compiled" in same(rows, u, some(6).astype(dtype)).explain()


def test_a_value_that_is_a_row_stays_python():
    """Of one array `b[i]` is a number, of another one a row."""
    ours = same(rows, np.zeros((4, 3)), some(4, 3))
    assert "compiled" not in ours.explain()
    assert "compiled" in same(rows, np.zeros((4, 3)), some(4)).explain()


def test_what_is_set_is_computed_once():
    def doubled(a):
        for i in range(len(a)):
            a[i, :] = a[i, 1] + a[i, 2]

    same(doubled, some(5, 6))


def small(z, out, k):
    for r in range(len(z)):
        row = np.full(k, z[r, 0])  # an array: the loop stays Python
        for c in range(k):
            out[r, c] += z[r, c] * row[c]


def test_small_loops_go_back_to_python():
    """To begin what is compiled takes more time; loops that grow are compiled again."""
    z = some(60, 40)
    ours = same(small, z, np.zeros((60, 40)), 3)
    assert "takes less time" in ours.explain()
    out, wanted = np.zeros((60, 5000)), np.zeros((60, 5000))
    wide = some(60, 5000)
    ours(wide, out, 5000)
    small(wide, wanted, 5000)
    assert np.array_equal(out, wanted) and "takes less time" not in ours.explain()


def test_functions_that_call_themselves():
    @tw.loops
    def sorted_(a):
        if a.size > 1:
            middle = a.size // 2
            sorted_(a[:middle])
            sorted_(a[middle:])
            for i in range(middle, len(a)):
                value, j = a[i], i
                while j > 0 and a[j - 1] > value:
                    a[j] = a[j - 1]
                    j -= 1
                a[j] = value

    a = some(50)
    wanted = np.sort(a)
    sorted_(a)
    assert np.array_equal(a, wanted) and sorted_.__name__ == "sorted_"


def test_lanes_of_one_rank_of_several_ask_no_other_rank(monkeypatch):
    """A rank alone finds that its loops take long: it must not wait for others to make a context."""
    monkeypatch.setattr(contexts, "launch_size", lambda: 2)
    monkeypatch.setattr(contexts._default, "context", None)
    assert contexts.usual_threads() == 1 and contexts._default.context is None


def test_arguments_that_may_be_none():
    """Each way to call a function is read by itself."""

    def weighted(x, mask, w=None, *, k=None):
        for i in range(1, len(x)):
            if mask is not None and not mask[i]:
                continue
            v = 1.0 if w is None else w[i]
            if not (k is None or i < 3):
                v += k
            x[i] += v * x[i - 1]
        return None if mask is None else mask.sum()

    ours = tw.loops(weighted)
    for mask in (None, np.arange(9) % 2 == 0):
        for w in (None, some(9)):
            for k in (None, 2.5):
                x, wanted = np.arange(9.0), np.arange(9.0)
                assert ours(x, mask, w=w, k=k) == weighted(wanted, mask, w, k=k)
                assert np.array_equal(x, wanted)
                assert "compiled" in ours.explain()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'mask'"):
        ours(x)

    def replaced(x, w=None):
        if w is None:
            w = np.ones(len(x))
        for i in range(len(x)):
            x[i] += w[i]

    same(replaced, some(9))
    same(replaced, some(9), some(9, seed=2))


def test_extents_of_one_array_in_several_loops():
    def shares(given, table, labels):
        for i in range(len(given) - 1):
            table[labels[i], 0] += 1
        for i in range(3):
            for j in range(3):
                table[i, j] /= len(given)

    same(shares, some(9), some(3, 3), np.arange(9) % 3)


def test_elements_from_the_last_one_on():
    """As rivers flow: in the order of a sequence, and against it."""

    def flow(order, into, water):
        for k in order[::-1]:
            if into[k] != k:
                water[into[k]] += water[k]
        for k in reversed(order):
            water[k] *= 0.5
        return k

    into = np.maximum(np.arange(30) - np.random.default_rng(3).integers(1, 5, 30), 0)
    ours = same(flow, np.arange(30), into, some(30))
    assert ours.explain().count("compiled") == 2
    same(flow, np.random.default_rng(4).permutation(30), into, some(30, 30)[0])
    tw.loops(flow)(list(range(5)), into, some(30))  # a list stays Python


def test_random_numbers_are_drawn_before():
    def walk(x):
        for i in range(1, len(x)):
            x[i] = x[i - 1] + np.random.normal()

    with pytest.raises(tw.ConfigError, match=r"drawn before, r = rng.random\(n\) with r\[i\]"):
        tw.loops(walk)(some(5))
