"""Problems and plans that make no sense: each is refused with what was given and what is allowed."""

import itertools
import re

import pytest

from tilewave import _core
from tilewave.errors import ConfigError

BOTH = ((1, 1), (6, 7))


def simple(shape=(6, 7), space=BOTH, arrays=((8, False),), reads=((0, (-1, 0)), (0, (0, -1)))):
    return _core.SweepProblem(shape, space, list(arrays), list(reads))


def array(shape=(6, 7), axes=(0, 1), time_buffers=0, replicated=False, window=False):
    return 8, replicated, shape, axes, time_buffers, window


def general(arrays, accesses, shape=(6, 7), space=BOTH, bounds=(), sequential=False, periodic=()):
    """Accesses as (array, offset, writes)."""
    return _core.SweepProblem(
        shape, space, list(arrays), [(*a, False) for a in accesses], list(bounds), [False] * len(shape), sequential,
        periodic,
    )


HERE, TABLE = (0, (0, 0), True), array((3, 4), replicated=True)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: simple(space=((1,), (6,))), "the space "),
        (lambda: simple(reads=[(1, (-1, 0))]), "names array 1 at offset (-1, 0); there are 1 arrays and 2 loops"),
        (lambda: simple(reads=[(0, (-1,))]), "an access names array 0 at offset (-1); there are 1 arrays and 2 loops"),
        (lambda: simple(reads=[(-1, (0, 0))]), "an access names array -1"),
        (lambda: simple(reads=[(0, (-2, 0))]), "the access at offset (-2, 0) leaves the array of shape (6, 7)"),
        (lambda: simple(space=((1, 1), (7, 7))), "the access at offset (0, 0) leaves the array of shape (6, 7)"),
        (
            lambda: general([array(), array()], [(1, (0, 0), False), HERE]),
            "a nest lists the places it writes before those it only reads",
        ),
        (lambda: general([TABLE], [HERE]), "array 0 is written and replicated; a written array is spread over"),
        (
            lambda: general([array(), array((7,), (1,))], [HERE, (1, (1, 0), False)]),
            "an access names offset (1, 0) along loop 0, which its array lacks",
        ),
        (
            lambda: general([array(), array()], [HERE] + [(1, (k // 14 - 1, k % 14 - 7), False) for k in range(300)]),
            "the nest reads and writes 301 places; at most",
        ),
        (
            lambda: general([array((7,), (1,))], [HERE, (0, (0, -1), False)]),
            "array 0 lacks 1 loop indices and is accessed at offsets (0, 0) and (0, -1); such a nest has no dependence",
        ),
        # Periodic loops.
        (lambda: general([array()], [HERE], periodic=(1,)), "periodic (1) was given; allowed: an entry for each of 2"),
        (
            lambda: general([array(), array((6, 8))], [HERE, (1, (0, 0), False)], periodic=(0, 7)),
            "loop 1 is periodic, and arrays have extents",
        ),
        (lambda: general([array()], [HERE], space=((0, -1), (6, 7)), periodic=(0, 1)), "leaves the period 7 of loop 1"),
        # Time.
        (
            lambda: general([array((7,), (1,), 1)], [(0, (0, 0), True)]),
            "an array with time buffers is written at offset (0, 0); allowed is (1, 0)",
        ),
        (
            lambda: general([array((7,), (1,), 1)], [(0, (1, 0), True), (0, (1, 1), False)], space=((0, 1), (4, 6))),
            "is read at offset (1, 1), a value that the loops have not computed yet",
        ),
        (
            lambda: general([array((7,), (1,), 1)], [(0, (1, 0), True), (0, (2, 0), False)], space=((0, 1), (4, 6))),
            "a value that the loops have not computed yet",
        ),
        (
            lambda: general([array((7,), (1,), 1)], [(0, (1, 0), True), (0, (0, -1), False)], space=((0, 1), (4, 6))),
            "keeps 1 time buffer comes after its value is overwritten; more time buffers are needed",
        ),
        (
            lambda: general([array((7,), (1,), 1)], [(0, (1, 0), True)], space=((0, 1), (4, 6)), periodic=(1, 0)),
            "loop 0 is periodic; it is time, which is not",
        ),
        (
            lambda: general([array((4,), (1,), 1)], [(0, (1, 0, 0), True)], (3, 4, 5), ((0, 0, 0), (3, 4, 5))),
            "array 0 has time buffers and lacks loop index 2; allowed are all loop indices but time",
        ),
    ],
)
def test_a_problem_that_makes_no_sense(make, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        make().validate()


def test_these_are_fine():
    simple().validate()
    general([array(), TABLE], [HERE, (1, (9, 9), False)]).validate()  # a table is read anywhere
    general([array()], [HERE, (0, (-3, 0), False)], space=((0, 0), (6, 7)), periodic=(1, 0)).validate()
    general([array((7,), (1,), 2)], [(0, (1, 0), True), (0, (0, -1), False)], space=((0, 1), (4, 6))).validate()
    general([array()], [HERE, (0, (2, 0), False)], space=((3, 3), (3, 7))).validate()  # no point reads beyond


def plan(**choices):
    made = _core.Plan()
    usual = dict(grid=(1, 1), mapping_dim=1, tile=(2, 3), factors=(1, 1))
    for name, value in (usual | choices).items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    "choices, words",
    [
        (dict(mapping_dim=2), "mapping_dim 2"),
        (dict(mapping_dim=-1), "mapping_dim -1"),
        (dict(grid=(1,)), "grid (1)"),
        (dict(grid=(0, 1)), "grid (0, 1)"),
        (dict(grid=(3, 1)), "grid (3, 1)"),
        (dict(tile=(2, 3, 4)), "tile (2, 3, 4)"),
        (dict(tile=(0, 3)), "tile (0, 3)"),
        (dict(factors=(1, 2)), "factors (1, 2) must be >= 1, and 1 at the mapping dimension 1"),
        (dict(factors=(-1, 1)), "factors (-1, 1) must be >= 1"),
        (dict(factors=(2**40, 1)), "ask for more lanes a rank than the"),
        (dict(factors=(_core.limits["lanes"], 1), helper=True), "that are allowed beside a helper"),
        (dict(row=(0, -1)), "row (0, -1)"),
        (dict(row=(1, 0, 0)), "row (1, 0, 0)"),
        (dict(lookahead=0), "lookahead 0 was given; allowed: an integer >= 1"),
        (dict(slices=-1), "slices -1 was given; allowed: an integer >= 1"),
        (dict(chunk_bytes=0), "chunk_bytes 0 was given; allowed: an integer >= 1"),
        (dict(temporal_block=0), "temporal_block 0 was given"),
        (dict(aggregate=0), "aggregate 0 was given"),
        (dict(poll_period_s=-1.0), "poll_period_s -1 was given; allowed: a number >= 0"),
        (dict(poll_period_s=float("nan")), "poll_period_s nan was given"),
        (dict(poll_period_s=float("inf")), "poll_period_s inf was given"),
        (dict(generator="stencil"), "generator stencil was given; allowed: sweep, as of this nest"),
    ],
)
@pytest.mark.exhaustive
def test_a_plan_that_makes_no_sense(choices, words):
    with pytest.raises(ConfigError, match=re.escape(words)):
        plan(**choices).validate(simple(), 2)


@pytest.mark.parametrize(
    "choices, words",
    [
        (dict(row=(-1, 1), tile=(1, 3)), "row (-1, 1) gives an order of points against the dependence (1, -1)"),
        (dict(row=(1, 0), tile=(1, 3)), "row (1, 0) gives an order of points against the dependence (1, -1)"),
        (dict(tile=(2, 3)), "tile (2, 3): entry 0 must be 1: a dependence along it goes back along another dimension"),
        (dict(tile=(1, 3)), ""),
        (dict(row=(1, -1), tile=(1, 3)), ""),
    ],
)
def test_a_dependence_that_goes_back_along_another_loop(choices, words):
    """Of (1, -1) only some rows and tiles go along."""
    back = simple(space=((1, 1), (6, 6)), reads=[(0, (-1, 1)), (0, (0, -1))])
    if not words:
        plan(**choices).validate(back, 1)
        return
    with pytest.raises(ConfigError, match=re.escape(words)):
        plan(**choices).validate(back, 1)


@pytest.mark.parametrize(
    "choices, words",
    [
        (dict(generator="sweep"), "generator sweep was given for a nest with periodic loops; allowed: stencil"),
        (dict(row=(1, 0)), "generator stencil was given; row (1, 0) was, too; allowed: rows along the last dimension"),
        (dict(storage="skewed"), "allowed: storage plain and no skew"),
        (dict(skew=(0, 1)), "allowed: storage plain and no skew"),
        (dict(slices=2), "allowed: slices 1 and aggregate 1"),
        (dict(aggregate=2), "allowed: slices 1 and aggregate 1"),
    ],
)
def test_a_plan_of_the_stencil_generator(choices, words):
    periodic = general(
        [array(), array()], [HERE, (1, (-1, 0), False), (1, (1, 0), False)], space=((0, 0), (6, 7)), periodic=(1, 1)
    )
    plan(generator="stencil").validate(periodic, 1)
    with pytest.raises(ConfigError, match=re.escape(words)):
        plan(**{"generator": "stencil", **choices}).validate(periodic, 1)


@pytest.mark.parametrize("name", ["grouping", "schedule", "storage", "generator"])
def test_kinds_have_names(name):
    with pytest.raises(ConfigError, match=f"{name} 'other' was given; allowed: '"):
        setattr(_core.Plan(), name, "other")


def test_storage_is_skewed_for_rows_whose_points_are_independent():
    """No dependence leads from a point to another one of its row; with two along axes rows are diagonals."""
    found, offsets = set(), [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (-1, 0, 1), (0, -1, -1), (-1, -1, 0)]
    for reads in itertools.product(offsets, repeat=3):
        p = _core.SweepProblem((40, 50, 60), ((1, 1, 1), (40, 50, 59)), [(4, False)], [(0, read) for read in reads])
        row = _core.skewed_row(p)
        found.add(tuple(row))
        for dependence in p.dependences if any(row) else ():
            assert not any(tuple(c * r for r in row) == tuple(dependence) for c in (-2, -1, 1, 2)), (reads, row)
    assert () in found and any(-1 in row for row in found), found
    p = _core.SweepProblem((64, 64), ((1, 1), (64, 64)), [(4, False)], [(0, (-1, 0)), (0, (0, -1))])
    assert tuple(_core.skewed_row(p)) in ((-1, 1), (1, -1))


@pytest.mark.parametrize(
    "reads, together", [([-1], True), ([-2, 0], True), ([1, -1], False), ([1], False), ([2], False)]
)
def test_faces_go_together_only_where_no_rank_reads_what_later_ones_compute(reads, together):
    """A rank would wait for the aggregate of the next one, which waits for its own."""
    accesses = [(0, (1, 0), True, False), *((0, (0, by), False, False) for by in reads)]
    arrays = [(4, False, (64,), (1,), 2, False)]
    p = _core.SweepProblem((10, 64), ((0, 2), (10, 62)), arrays, accesses, [], [False] * 2, False)
    wish = _core.PlanRequest()
    wish.threads, wish.grid, wish.generator = 1, (1, 2), "sweep"
    plan = _core.make_plan(p, 2, wish, _core.Machine())
    plan.aggregate = 2
    if together:
        plan.validate(p, 2)
    else:
        with pytest.raises(ConfigError, match="aggregate 2 was given; allowed here is 1: ranks read what later ones"):
            plan.validate(p, 2)
