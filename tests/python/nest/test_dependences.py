"""Dependences of a nest against all pairs of points of a small box, and how they are told."""

import itertools
import os

import numpy as np
import pytest

import tilewave
from bodies import HEADER, load
from random_programs.draw import plain_program
from tilewave.errors import ConfigError
from tilewave.nest.nest import nest, nest_from

FIRST_SEED = int(os.environ.get("TILEWAVE_SEED", "20260"))
RANDOM_BODIES = int(os.environ.get("TILEWAVE_RANDOM_BODIES", "60"))

#: Extent of the box of points in every index: the offsets of two accesses differ by up to 4.
EXTENT = 5


def later_pairs(touches):
    """Every pair of points that touch one element, as (kind, array, vector): the definition.

    ``touches`` has for each point the elements that it reads and those that it writes.
    """
    found = set()
    for (first, (reads, writes)), (later, (reads_later, writes_later)) in itertools.combinations(touches.items(), 2):
        vector = tuple(b - a for a, b in zip(first, later, strict=True))
        for kind, sources, sinks in (
            ("flow", writes, reads_later),
            ("anti", reads, writes_later),
            ("output", writes, writes_later),
        ):
            found.update((kind, array, vector) for array, _ in sources & sinks)
    return found


def is_told_by(pair, dependence, found):
    """Whether a listed dependence stands for a pair of points."""
    kind, array, vector = pair
    if (kind, array) != (dependence.kind, dependence.array):
        return False
    told = dependence.vector
    missing = [k for k, name in enumerate(found.indices) if name not in found.axes[array]]
    if len(missing) == 1 and told == tuple(int(k == missing[0]) for k in range(found.rank)):
        return all(part == 0 for k, part in enumerate(vector) if k != missing[0])
    return all(entry in (None, part) for entry, part in zip(told, vector, strict=True))


def points(found):
    return itertools.product(range(EXTENT), repeat=found.rank)


def element(found, place, point):
    at = dict(zip(found.indices, point, strict=True))
    return place.array, tuple(at[i] + o for i, o in zip(place.axes, place.offsets, strict=True))


def check_by_places(found):
    """Listed are exactly the pairs of points that follow from the places and their flags."""
    touches = {
        point: (
            {element(found, place, point) for place in found.places if place.read},
            {element(found, place, point) for place in found.places if place.written},
        )
        for point in points(found)
    }
    pairs = later_pairs(touches)
    for pair in pairs:
        assert any(is_told_by(pair, each, found) for each in found.dependences), f"not listed: {pair}"
    for each in found.dependences:
        assert any(is_told_by(pair, each, found) for pair in pairs), f"never happens: {each}"
        leading = next(entry for entry in each.vector if entry != 0)
        assert leading is None or leading > 0, each


class Watched:
    """An array that notes which elements a point reads before it writes them, and writes."""

    def __init__(self, name, values):
        self.name, self.values = name, values
        self.reads, self.writes = set(), set()

    def __getitem__(self, subscripts):
        place = subscripts if isinstance(subscripts, tuple) else (subscripts,)
        if (self.name, place) not in self.writes:
            self.reads.add((self.name, place))
        return self.values[tuple(part + 2 for part in place)]

    def __setitem__(self, subscripts, value):
        place = subscripts if isinstance(subscripts, tuple) else (subscripts,)
        self.writes.add((self.name, place))
        self.values[tuple(part + 2 for part in place)] = value


def check_by_running(found, seed):
    """No two points that a run lets touch one element are missing, and no flag is wrong."""
    rng, watched, scalars = np.random.default_rng(seed), {}, dict.fromkeys(found.scalars, 2)
    for name, rank in {view.array: len(view.axes) for view in found.views}.items():
        watched[name] = Watched(name, rng.integers(-3, 4, (EXTENT + 4,) * rank).astype("f8"))
    touches = {}
    for point in points(found):
        for array in watched.values():
            array.reads, array.writes = set(), set()
        try:
            with np.errstate(all="ignore"):
                found.function(*(watched[name] for name in found.arrays), *point, **scalars)
        except Exception:  # the body's own
            continue
        reads = set().union(*(array.reads for array in watched.values()))
        writes = set().union(*(array.writes for array in watched.values()))
        touches[point] = reads, writes
        for place in found.places:
            here = element(found, place, point)
            assert place.read or here not in reads, (place, point)
            assert place.written or here not in writes, (place, point)
            assert not place.always or here in writes, (place, point)
        known = {element(found, place, point) for place in found.places}
        assert reads | writes <= known, point
    for pair in later_pairs(touches):
        assert any(is_told_by(pair, each, found) for each in found.dependences), f"not listed: {pair}"


@pytest.mark.parametrize("seed", [FIRST_SEED + k for k in range(RANDOM_BODIES)])
def test_random_nest(seed):
    """TILEWAVE_SEED and TILEWAVE_RANDOM_BODIES choose other and more bodies."""
    drawn = plain_program(seed, ["tables"]).nests[0]
    try:
        found = nest_from(drawn.text(), {"np": np, "tw": tilewave})
    except ConfigError as refusal:
        pytest.skip(f"refused: {refusal}")
    print(f"seed {seed}\n{drawn.text()}", *found.dependences, sep="\n")
    accesses = {(access.array, tuple((at.index, at.offset) for at in access.at)) for access, _ in drawn.accesses()}
    assert {(place.array, tuple(zip(place.axes, place.offsets))) for place in found.places} == accesses
    assert set(found.written) == set(drawn.written()) and found.indices == drawn.indices
    if found.rank < 5:
        check_by_places(found)
        check_by_running(found, seed)


@nest
def sor(U, i, j, *, w=1.5):
    """Reads behind and ahead in place."""
    U[i, j] += w * (U[i-1, j] + U[i, j-1] + U[i+1, j] + U[i, j+1] - 4 * U[i, j])


@nest
def several(A, B, i, j):
    A[i, j] = B[i-1, j] + B[i+1, j+2]
    B[i, j] = A[i, j] * 2 + A[i, j-1]
    if A[i, j] > 0:
        A[i+1, j] = 0


@nest
def product(C, A, B, i, j, k):
    C[i, j] += A[i, k] * B[k, j]


@nest
def column(s, A, i, j):
    s[j] = s[j-1] + A[i, j]


@nest
def total(s, A, i, j, k):
    s[i] += A[i, j, k]


def told(found):
    return [(each.kind, each.array, each.vector) for each in found.dependences]


def test_reads_ahead_are_anti_dependences():
    assert told(sor) == [("flow", "U", (1, 0)), ("flow", "U", (0, 1)), ("anti", "U", (1, 0)), ("anti", "U", (0, 1))]
    assert all(each.line == sor.line + 2 for each in sor.dependences)
    assert str(sor.dependences[0]) == f"(1, 0) flow: U[i, j] -> U[i-1, j], line {sor.line + 2}"
    assert str(sor.dependences[2]) == f"(1, 0) anti: U[i+1, j] -> U[i, j], line {sor.line + 2}"


def test_several_written_arrays_and_offsets():
    assert told(several) == [
        ("flow", "A", (0, 1)),
        ("flow", "B", (1, 0)),
        ("flow", "A", (1, 1)),
        ("anti", "A", (1, 0)),  # keeps its old value where the condition fails
        ("anti", "B", (1, 2)),
        ("output", "A", (1, 0)),
    ]
    check_by_places(several)


def test_loop_indices_that_an_array_lacks():
    assert told(product) == [(kind, "C", (0, 0, 1)) for kind in ("flow", "anti", "output")]
    assert told(column) == [("flow", "s", (None, 1)), ("anti", "s", (None, -1)), ("output", "s", (1, 0))]
    assert told(total) == [(kind, "s", (0, None, None)) for kind in ("flow", "anti", "output")]
    assert str(column.dependences[0]) == f"(*, 1) flow: s[j] -> s[j-1], line {column.line + 1}"
    for found in (product, column, total):
        check_by_places(found)
        check_by_running(found, 1)


def test_an_assignment_that_may_be_skipped_reads_the_old_value(tmp_path):
    text = "@nest\ndef body(A, i):\n    if i > 2:\n        A[i] = 1\n    A[i+1] = 2\n"
    found = load(tmp_path, "skips", HEADER + text).body
    assert told(found) == [("flow", "A", (1,)), ("output", "A", (1,))]
    assert str(found.dependences[0]).startswith("(1,) flow: A[i+1] -> A[i], line")
    check_by_places(found)


def test_no_dependences(tmp_path):
    found = load(tmp_path, "none", HEADER + "@nest\ndef body(A, B, i):\n    A[i] = B[i-1]\n").body
    assert found.dependences == ()
