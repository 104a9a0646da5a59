"""What the memory bounds a run by: bytes a point, from the problem; seconds, from the machine's curves."""

import copy
import math
import pickle

import numpy as np
import pytest

import tilewave as tw
from tilewave import _core
from tilewave.nests.run.memory_bound import bound_of


@tw.nest
def lagged(A, B, P, i, j):
    A[i, j] = 0.5 * A[i-1, j] + B[i, j] + P[i]


@tw.nest
def heat(u, f, t, i):
    u[t+1, i] = u[t, i] + 0.25 * (u[t, i-1] - 2 * u[t, i] + u[t, i+1]) + f[i]


@tw.nest
def recorded(u, trace, t, i):
    u[t+1, i] = 0.5 * u[t, i] + 0.5 * u[t, i-1]
    trace[t+1, i] = u[t, i]


@tw.nest
def looked_up(A, table, code, i):
    A[i] = A[i-1] + table[code[i]]


def arrays(**dtypes):
    return {name: np.ones((41, 30), dtype) for name, dtype in dtypes.items()}


def measured():
    """A context whose machine's memory is known."""
    context = tw.Context(threads=1)
    machine = context._core.machine()
    machine.memory = [_core.Curve([1000.0, 100000.0], [1e-11, 3e-11])]
    context._core.use_machine(machine)
    return context


def bound(*arguments, **keywords):
    return tw.run(*arguments, **keywords, context=measured()).bound


def test_bytes_of_read_and_written_arrays():
    found = bound(lagged, **arrays(A="f8", B="f4"), P=np.ones(41, "f4"))
    points = 40 * 30
    assert found.bytes_per_point == pytest.approx((2 * 8 * points + 4 * points + 4 * 40) / points)
    assert found.working_set_bytes == 8 * points + 4 * points + 4 * 40
    assert found.lanes == 1


def test_bounds_leave_points_out():
    found = bound(lagged, **arrays(A="f8", B="f8"), P=np.ones(41), over={"i": (1, 30), "j": (0, "i")})
    points = sum(range(1, 30))
    assert found.bytes_per_point == pytest.approx(24 + 8 * 29 / points)


@pytest.mark.parametrize("steps", [1, 7])
def test_each_step_of_time_moves_the_arrays(steps):
    found = bound(heat, u=np.ones(50), f=np.ones(50), steps=steps)
    assert found.bytes_per_point == pytest.approx(3 * 8)
    assert found.working_set_bytes == 2 * 8 * 48


def test_all_times_of_an_array_are_moved_once():
    found = bound(recorded, u=np.ones(50), trace=np.zeros((9, 50), "f4"), steps=8)
    assert found.bytes_per_point == pytest.approx(2 * 8 + 2 * 4)


def test_steps_that_go_together_move_the_arrays_once():
    found = bound(heat, u=np.ones(5000), f=np.ones(5000), steps=12, plan={"temporal_block": 4})
    assert found.bytes_per_point == pytest.approx(24 / 4)


def test_tables_and_windows_do_not_count():
    found = bound(looked_up, A=np.zeros(20), table=np.ones(1000), code=np.zeros(20, "i4"))
    assert found.bytes_per_point == pytest.approx(2 * 8 + 4)
    context = measured()
    kept = tw.field((40, 30), "f8", init=1.0, keep="window", context=context)

    @tw.nest
    def window(A, i, j):
        A[i, j] = A[i-1, j] + A[i, j-1]

    assert tw.run(window, A=kept, context=context).bound is None


def test_nothing_is_known():
    context = measured()
    report = tw.run(lagged, **arrays(A="f8", B="f4"), P=np.ones(41), context=context)
    assert "memory's bound" in str(report)
    empty = tw.run(lagged, **arrays(A="f8", B="f4"), P=np.ones(41), over={"i": (5, 5)}, context=context)
    assert empty.bound is None and "memory's bound" not in str(empty)
    other = tw.run(lagged, **arrays(A="f8", B="f4"), P=np.ones(41), context=tw.Context(threads=1))
    assert other.bound is None and "memory's bound" not in str(other)
    assert bound_of((100, 10), 10, 1, 1, _core.Machine(), 1.0) is None


def test_lanes_and_ranks_share_the_memory():
    machine = _core.Machine()
    machine.memory = [_core.Curve([1000.0, 100000.0], [1e-11, 3e-11]), _core.Curve([1000.0, 100000.0], [2e-11, 6e-11])]
    one = bound_of((1600, 100000), 100, 1, 1, machine, 1e-6)
    assert one.byte_s == pytest.approx(1.5e-11) and one.time_s == pytest.approx(2.4e-8)
    assert one.fraction == pytest.approx(0.024) and one.bytes_per_point == 16
    two = bound_of((1600, 2000), 100, 1, 2, machine, 1e-6)  # each lane has half of it
    assert two.lanes == 2 and two.byte_s == pytest.approx(2e-11 / 2 / 2)
    machine.host_of = [0, 1]
    apart = bound_of((1600, 2000), 100, 2, 1, machine, 1e-6)
    assert apart.lanes == 1 and apart.byte_s == pytest.approx(1e-11 / 2 / 2)
    more = bound_of((1600, 4000), 100, 1, 4, machine, 1e-6)  # as many lanes as were measured at most
    assert more.lanes == 4 and more.byte_s == pytest.approx(2e-11 / 2 / 4)
    beyond = bound_of((1600, 10**9), 100, 1, 1, machine, 1e-6)
    assert beyond.byte_s == pytest.approx(1.5e-11)


def test_it_goes_with_a_pickle():
    report = tw.run(lagged, **arrays(A="f8", B="f4"), P=np.ones(41), context=measured())
    again = pickle.loads(pickle.dumps(report))
    assert again.bound == report.bound and math.isfinite(again.bound.fraction)
    assert copy.copy(report.bound) == report.bound
