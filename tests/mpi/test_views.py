"""Views of a field's memory: right after runs of any number of steps, refused where its values moved; two grids."""

import gc

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2])


@tw.nest
def heat(u, t, i, j):
    u[t+1, i, j] = u[t, i-1, j] + 0.5 * u[t, i+1, j] - u[t, i, j-1]


@tw.nest
def forced(u, f, t, i, j):
    u[t+1, i, j] = u[t, i-1, j] + 0.5 * u[t, i+1, j] + f[i, j]


@tw.nest
def add(A, B, i, j):
    A[i, j] = A[i-1, j] + B[i, j]


@tw.nest
def back(u, i, j):
    u[i, j] = u[i+1, j] + u[i, j-1] + u[i+1, j-1]


def stepped(u, steps):
    for _ in range(steps):
        now = u.copy()
        now[1:-1, 1:] = u[:-2, 1:] + 0.5 * u[2:, 1:] - u[1:-1, :-1]
        u = now
    return u


def make(context, shape=(12, 10), seed=1):
    values = np.random.default_rng(seed).random(shape)
    return tw.field(shape, init=values), values


# One generator and block of steps, as plans of other numbers of steps may lay fields out with other halos.
SWEEP, STENCIL = ({"generator": name, "temporal_block": 1} for name in ("sweep", "stencil"))


@pytest.mark.ranks([1, 2])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize(
    "choices", [SWEEP, STENCIL, {**SWEEP, "schedule": "blocking", "tile": (1, 2, 3), "mapping_dim": 2}]
)
def test_a_view_shows_the_present_values_after_any_number_of_steps(context, choices):
    u, values = make(context)
    choices = {**choices, "grid": (1, context.size, 1)}
    tw.run(heat, u=u, steps=1, plan=choices)  # now there is room for time buffers
    values, view, version = stepped(values, 1), u.local, u._storage.version
    for steps in (1, 2, 3, 1, 0, 5):
        tw.run(heat, u=u, steps=steps, plan=choices)
        values = stepped(values, steps)
        assert u._storage.version == version and np.shares_memory(view, u.local)
        assert view.size and np.array_equal(view, values[u.owned]), steps
        whole = u.gather()
        assert whole is None or np.array_equal(whole, values)
        view *= 0.5  # what is written through it counts, on every rank
        values *= 0.5


def test_numpy_arrays_in_time(context):
    if context.size > 1:
        return
    for steps in (0, 1, 2, 3, 7):
        values = np.random.default_rng(2).random((9, 8))
        given = values.copy()
        tw.run(heat, u=given, steps=steps)
        assert np.array_equal(given, stepped(values, steps)), steps


def test_a_view_of_what_a_field_was_is_refused(context):
    u, values = make(context)
    A, _ = make(context, seed=2)
    before, owned = u.local, u.owned
    part, through = before[1:], np.asarray(memoryview(before))
    tw.run(heat, u=u, steps=1)
    assert not np.shares_memory(before, u.local)
    assert np.array_equal(before, values[owned])  # it keeps what it showed
    inputs = np.zeros(u.shape)
    tw.run(forced, u=u, f=inputs, steps=1)
    for view in (before, part, before.T, before.reshape(-1).view()):
        with pytest.raises(tw.ConfigError, match=r"view of a field from before .* copy\(\)"):
            tw.run(forced, u=u, f=view, steps=1)
        with pytest.raises(tw.ConfigError, match=r"view of a field from before .* copy\(\)"):
            tw.run(add, A=A, B=view)
    for view in (through, u.local, u.local[:, ::-1]):
        with pytest.raises(tw.ConfigError, match="share memory"):
            tw.run(forced, u=u, f=view, steps=1)
    if context.size == 1:
        tw.run(add, A=A, B=before.copy())


def test_a_view_that_was_right_when_it_was_given_before(context):
    if context.size > 1:
        return
    u, values = make(context)
    A, view = np.zeros(u.shape), u.local
    for _ in range(3):
        A[...] = 0
        tw.run(add, A=A, B=view)
        assert np.array_equal(A[1:], np.cumsum(values[1:], axis=0))
    tw.run(heat, u=u, steps=2)
    with pytest.raises(tw.ConfigError, match="view of a field from before"):
        tw.run(add, A=A, B=view)


def test_memory_that_nobody_sees_is_not_kept(context):
    u, _ = make(context)
    for k in range(6):
        view = u.local
        tw.run(back, u=u, plan={"storage": "skewed", "row": (1, -1)} if k % 2 else {"storage": "plain", "row": ()})
        assert view is not None
    del view
    gc.collect()
    assert len(u._views) <= 1
    kept = [u.local for _ in range(100)]
    assert len(u._views) == 1 and len(kept) == 100
    del kept
    gc.collect()
    assert not len(u._views)


@tw.nest
def restrict(C, F, i, j):
    C[i, j] = 0.5 * F[2 * i + 1, 3 * j] + 0.25 * (F[2 * i, 3 * j + 1] + F[2 * i + 2, 3 * j + 2])


@tw.nest
def interpolate(F, C, i, j):
    F[2 * i, 3 * j + 1] += C[i, j]
    F[2 * i + 1, 3 * j] += 0.5 * (C[i, j] + C[i + 1, j])


@pytest.mark.ranks([1, 2, 3, 4, 6])
def test_two_grids():
    for shape in ((15, 20), (4, 61)):
        arrays = {
            "F": np.random.default_rng(1).random(shape),
            "C": np.random.default_rng(2).random((-(-shape[0] // 2), -(-shape[1] // 3))),
        }
        fields = {name: tw.field(array.shape, "f8", array) for name, array in arrays.items()}
        for nest in (restrict, interpolate, restrict):
            tw.run(nest, **fields)
            nest.reference(nest.iteration_box({name: array.shape for name, array in arrays.items()}), arrays)
        for name, array in arrays.items():
            whole = fields[name].gather()
            assert whole is None or np.array_equal(whole, array)


