"""Which element of a field with blocks of its own decides where a point is computed."""

import types

import pytest

from tilewave.nests import cuts


@pytest.mark.parametrize(
    "accesses, element",
    [
        ([(0, (1, -2), True), (0, (0, 0), False)], (1, -2)),  # what is written
        ([(0, (-1, 2), False), (0, (0, 1), False)], (0, 1)),  # or read nearest to it
        ([(1, (5, 5), True), (0, (-3, -1), False), (0, (2, -2), False)], (2, -1)),
    ],
)
def test_loops_follow_the_element_that_is_nearest_to_a_point(monkeypatch, accesses, element):
    told = []
    core = types.SimpleNamespace(
        align=lambda number: None, cut_as=lambda number, cuts: None, follow=lambda *what: told.append(what)
    )
    view = types.SimpleNamespace(array="A", axes=("i", "j"), indices=("i", "j"), all_phases=lambda: ((1, 0), (1, 0)))
    monkeypatch.setattr(cuts, "has_cuts", lambda value: True)
    field = types.SimpleNamespace(ndim=2, _cuts=())
    cuts.set_cuts(types.SimpleNamespace(views=[view]), [view], {"A": field}, accesses, core)
    assert told == [(0, element)]
