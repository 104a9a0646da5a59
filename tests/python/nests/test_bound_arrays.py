"""Bound nests on NumPy arrays and tables; what cannot be bound; reports and plans of bound nests."""

import pickle

import numpy as np
import pytest

from bound_cases import RANKS, filled, heat, results, same, smooth
import tilewave as tw
from tilewave.errors import ConfigError

def test_numpy_arrays_in_place():
    A = np.arange(400.0).reshape(20, 20) % 7
    for given in (A, A[::-1, ::2], np.frombuffer(b"x" + A.tobytes(), "u1")[1:].view("f8").reshape(20, 20).copy()):
        given, f = given.copy() if given is A else given, np.ones((20, given.shape[1]))
        wanted = given.copy()
        bound = tw.bind(smooth, u=given, f=f)
        for k in range(3):
            bound.run()
            tw.run(smooth, u=wanted, f=f)
            assert given.tobytes() == wanted.tobytes()
            f += k


def test_a_numpy_array_that_is_not_aligned():
    room = np.zeros(8 * 400 + 1, "u1")
    A = room[1:].view("f8").reshape(20, 20)
    A[...] = np.arange(400.0).reshape(20, 20) % 7
    wanted, f = A.copy(), np.ones((20, 20))
    bound = tw.bind(smooth, u=A, f=f)
    for _ in range(3):
        bound.run()
        tw.run(smooth, u=wanted, f=f)
        assert A.tobytes() == wanted.tobytes()
        A += 1
        wanted += 1


def test_a_view_of_a_field_that_has_moved():
    context = tw.context()
    A, u = filled(context, (20, 20)), filled(context, (20, 20))
    bound = tw.bind(smooth, u=u, f=A.local)
    bound.run()
    tw.run(heat, u=A, steps=3)  # has time buffers now, elsewhere
    if A._storage.version == 1:
        pytest.skip("the field did not move")
    with pytest.raises(ConfigError, match="view of a field from before"):
        bound.run()


def test_tables_are_read_as_they_are():
    @tw.nest
    def score(H, a, S, i, j):
        H[i, j] = H[i - 1, j - 1] + S[a[i], a[j]]

    H, a, S = np.zeros((9, 9), "i8"), np.arange(9) % 4, np.arange(16).reshape(4, 4)
    wanted, bound = H.copy(), tw.bind(score, H=H, a=a, S=S)
    for _ in range(3):
        bound.run()
        tw.run(score, H=wanted, a=a, S=S)
        assert np.array_equal(H, wanted)
        S *= 2


factor = 2.0


@tw.nest
def scaled(A, i):
    A[i] = factor * A[i - 1]


def test_numbers_from_outside_the_body_are_those_when_it_runs():
    global factor
    factor = 2.0
    A = np.ones(5)
    bound = tw.bind(scaled, A=A)
    for value in (2.0, 3.0, 0.5):
        factor = value
        bound.run()
        assert np.array_equal(A, value ** np.arange(5))


def test_what_cannot_be_bound():
    A = np.ones((5, 5))
    for nest in ((smooth, "residual"), (), "smooth", None):
        with pytest.raises(ConfigError, match="allowed: a function under @tilewave.nest, or a tuple of them"):
            tw.bind(nest, u=A)
    with pytest.raises(ConfigError, match="needs its array 'f'"):
        tw.bind(smooth, u=A)
    with pytest.raises(ConfigError, match="no argument 'times'"):
        tw.bind(smooth, u=A, f=A.copy(), times=3)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_reports(ranks, threads):
    def body(context):
        u, f = filled(context, (40, 40)), filled(context, (40, 40))
        bound = tw.bind(smooth, u=u, f=f)
        plan = bound.plan
        assert "smooth(u: float64 (40, 40), f: float64 (40, 40), w=1.0)" in repr(bound)
        report = bound.run()
        again = pickle.loads(pickle.dumps(bound.run()))
        for each in (report, again):
            assert each.plan.choices() == plan.choices() and each.points == 38 * 38
            assert each.loops == {"i": (1, 39), "j": (1, 39)} and each.measured.time_s > 0
            assert not each.lanes and not len(each.timeline.events)
        bound.record = True
        recorded = bound.run()
        if context.rank == 0:
            assert recorded.lanes and len(recorded.timeline.events)
        bound.record = False
        assert not bound.run().lanes
        with pytest.raises(AttributeError):
            report.nothing_of_the_kind

    results(ranks, threads, body)


def test_a_plan_and_choices():
    def body(context):
        u, f = filled(context, (40, 40)), filled(context, (40, 40))
        v = u.copy()
        plan = tw.plan(smooth, u=u, f=f, plan={"tile": (8, 19)})
        bound = [
            tw.bind(smooth, u=u, f=f, plan=plan),
            tw.bind(smooth, u=u, f=f, plan={"tile": (5, 7), "storage": "plain"}),
        ]
        assert bound[0].plan.tile == (8, 19) and bound[1].plan.tile == (5, 7)
        for each in bound:
            each.run()
            tw.run(smooth, u=v, f=f)
            assert same(u, v)

    results(2, 1, body)
