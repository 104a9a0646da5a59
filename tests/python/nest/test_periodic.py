"""Periodic loops: which indices may wrap, and over what."""

import re

import numpy as np
import pytest

import tilewave as tw
from tilewave.nest.periodic import periodic_ranges, read_periodic


@tw.nest
def heat(u, v, t, i, j):
    u[t+1, i, j] = u[t, i-1, j] + v[i, j+1]


@tw.nest
def ahead(u, i):
    u[i+1] = u[i] + 1.0


@tw.nest
def diagonal(u, v, i, j):
    u[i, j] = v[i, i] + v[j, i-1]


@tw.nest
def walls(u, v, w, i, j):
    u[i, j] = u[i, j] + v[i-1, j] * w[j]


@pytest.mark.parametrize(
    "nest, given, timed, found",
    [
        (heat, (), True, ()),
        (heat, ("j", "i"), True, ("i", "j")),  # in the order of the loops
        (heat, ["j", "j"], True, ("j",)),
        (heat, ("t", "j"), False, ("t", "j")),
    ],
)
def test_indices_that_wrap(nest, given, timed, found):
    assert read_periodic(nest, given, timed) == found


@pytest.mark.parametrize(
    "nest, given, timed, words",
    [
        (heat, "i", True, "periodic: given 'i'; allowed: a tuple of index names"),
        (heat, ("i", 1), True, "periodic: given ('i', 1)"),
        (heat, None, True, "periodic: given None"),
        (heat, {"i": True}, True, "periodic: given {'i': True}"),
        (heat, ("t",), True, "periodic: 't' is the time of nest 'heat'; allowed: i, j"),
        (heat, ("k",), True, "periodic: 'k' is no index of the nest 'heat'; allowed: i, j"),
        (ahead, ("k",), True, "allowed: none"),
    ],
)
def test_what_cannot_wrap(nest, given, timed, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        read_periodic(nest, given, timed)


def test_ranges_are_the_extents_of_the_arrays():
    shapes = {"u": (2, 5, 7), "v": (5, 7)}
    assert periodic_ranges(heat, shapes, ("i", "j")) == {"i": (0, 5), "j": (0, 7)}
    assert periodic_ranges(heat, shapes, ("j",)) == {"j": (0, 7)} and periodic_ranges(heat, shapes, ()) == {}
    assert periodic_ranges(walls, {"u": (5, 7), "v": (5, 7), "w": (7,)}, ("j",)) == {"j": (0, 7)}


@pytest.mark.parametrize(
    "nest, shapes, periodic, words",
    [
        (ahead, {"u": (5,)}, ("i",), "is written at offset 1 along the periodic index 'i'; allowed: 0"),
        (diagonal, {"u": (5, 5), "v": (5, 5)}, ("i",), "the periodic index 'i' is in two subscripts"),
        (heat, {"u": (2, 5, 7), "v": (6, 7)}, ("i",), "along 'i' array 'u' has 5 elements and 'v' has 6"),
        (heat, {"u": (2, 5, 7), "v": (6, 7)}, ("i",), "of n cells and their faces, n faces: face n is face 0"),
        (walls, {"u": (5, 7), "v": (5, 7), "w": (8,)}, ("j",), "array 'u' has 7 elements and 'w' has 8"),
    ],
)
def test_arrays_that_would_not_wrap_alike(nest, shapes, periodic, words):
    with pytest.raises(tw.ConfigError, match=re.escape(words)):
        periodic_ranges(nest, shapes, periodic)


@pytest.mark.parametrize("offset", [-7, -5, -1, 0, 1, 4, 5, 13])
def test_subscripts_wrap_as_numpys_roll(offset):
    """Also by more than the whole extent."""
    nest = tw.nest_from(f"def shift(u, v, i, j):\n    u[i, j] = v[i+{offset}, j]\n".replace("+-", "-"))
    v = np.random.default_rng(1).random((5, 4))
    u = np.zeros((5, 4))
    tw.run(nest, u=u, v=v, periodic=("i",))
    assert np.array_equal(u, np.roll(v, -offset, axis=0))
