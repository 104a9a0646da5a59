"""A repeated call skips the checks of its arguments only where they are the very same."""

import gc
import weakref

import numpy as np
import pytest

import tilewave as tw
from tilewave.nests.plan import choosing
from tilewave.nests.plan import prepare
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops

FACTOR = 2.0


@tw.nest
def mixed(A, B, i, j, *, c=0.0):
    A[i, j] = 0.25 * A[i-1, j] + FACTOR * B[i, j] / c


@pytest.fixture
def checks(monkeypatch):
    """How often arguments were checked."""
    made, check = [], prepare.checked_call
    monkeypatch.setattr(prepare, "checked_call", lambda *given: made.append(1) or check(*given))
    return made


def arrays(seed=1):
    random = np.random.default_rng(seed)
    return random.random((6, 7)), random.random((6, 7))


def expected(A, B, c, over=None):
    result = A.copy()
    box = mixed.iteration_box({"A": A.shape, "B": B.shape})
    with np.errstate(divide="ignore"):
        plain_loops(mixed, loop_bounds(mixed.indices, box, over), {"A": result, "B": B}, {"c": c})
    return result


def same(a, b):
    return (a.view("u8") == b.view("u8")).all()


@pytest.mark.parametrize("fields", [False, True])
def test_equal_calls_are_checked_once(checks, fields):
    context = tw.Context(threads=1)
    A, B = arrays()
    given = [tw.field(x.shape, x.dtype, init=x, context=context) for x in (A, B)] if fields else [A.copy(), B]
    for n in range(4):
        before = given[0].gather() if fields else given[0].copy()
        tw.run(mixed, A=given[0], B=given[1], context=context, c=3.0)
        assert same(given[0].gather() if fields else given[0], expected(before, B, 3.0))
        assert len(checks) == 1, n


def test_an_integer_of_another_size_takes_another_kernel_and_the_same_plan(monkeypatch):
    """Kernels are compiled for ranges of integers; the rate is measured once."""
    measured, decide = [], choosing.decide
    monkeypatch.setattr(choosing, "decide", lambda *given: measured.append(1) or decide(*given))
    context = tw.Context(threads=1)
    A, B = arrays()
    for c in (3, 5, -3, 300, 70_000, 2**40, 200, 4):
        given = A.copy()
        tw.run(mixed, A=given, B=B, context=context, c=c)
        assert same(given, expected(A, B, c)), c
    assert len(measured) == 1 and len(context._plans) == 1


@pytest.mark.parametrize("scalars", [(0.0, -0.0), (1, 1.0), (2.0, np.float32(2)), (1e-3, 2e-3), (3, 300)])
def test_scalars_count_by_type_and_every_bit(scalars):
    context = tw.Context(threads=1)
    start, B = arrays()
    A = start.copy()
    for c in (*scalars, *scalars):
        A[...] = start
        with np.errstate(all="ignore"):
            try:
                tw.run(mixed, A=A, B=B, context=context, c=c)
            except tw.KernelError:
                continue
        assert same(A, expected(start, B, c)), c


def test_an_array_that_changes_is_checked_again(checks):
    context = tw.Context(threads=1)
    start, B = arrays()
    A = start.copy()
    tw.run(mixed, A=A, B=B, context=context, c=3.0)
    A.flags.writeable = False
    with pytest.raises(tw.ConfigError, match="read-only"):
        tw.run(mixed, A=A, B=B, context=context, c=3.0)
    A.flags.writeable = True
    A.shape = (7, 6)
    with pytest.raises(tw.ConfigError):
        tw.run(mixed, A=A, B=B.reshape(-1)[:3], context=context, c=3.0)
    B.shape = (7, 6)
    before = A.copy()
    tw.run(mixed, A=A, B=B, context=context, c=3.0)
    assert same(A, expected(before, B, 3.0))
    with pytest.raises(tw.ConfigError, match="share memory"):
        tw.run(mixed, A=A, B=A, context=context, c=3.0)
    A.dtype = np.int64
    with pytest.raises(tw.ConfigError):
        tw.run(mixed, A=A, B=B, context=context, c=3.0, plan={"tile": (99, 99)})
    assert len(checks) == 6


def test_what_else_a_call_says_counts(checks):
    global FACTOR
    context = tw.Context(threads=1)
    start, B = arrays()
    A = start.copy()
    kept = FACTOR
    try:
        for factor in (2.0, 3.0, 2.0):
            FACTOR = factor
            for over in (None, {"i": (2, 5)}, {"i": (2, "4")}, {"j": (0, 3)}):
                A[...] = start
                tw.run(mixed, A=A, B=B, context=context, c=3.0, over=over)
                assert same(A, expected(start, B, 3.0, over)), (factor, over)
    finally:
        FACTOR = kept
    for choices in ({"tile": (2, 2)}, {"tile": (3, 2)}, {"tile": (3, 2), "row": (1, 0)}):
        assert tw.run(mixed, A=A, B=B, context=context, c=3.0, plan=choices).plan.tile == choices["tile"]
    with pytest.raises(tw.ConfigError, match="no argument 'd'"):
        tw.run(mixed, A=A, B=B, context=context, c=3.0, plan={"tile": (3, 2), "row": (1, 0)}, d=3)


def test_arrays_are_not_kept_alive():
    context = tw.Context(threads=1)
    A, B = arrays()
    fields = [tw.field(x.shape, x.dtype, init=x, context=context) for x in (A, B)]
    tw.run(mixed, A=A, B=B, context=context, c=3.0)
    alive = [weakref.ref(A), weakref.ref(B)]
    del A, B
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    tw.run(mixed, A=fields[0], B=fields[1], context=context, c=3.0)
    alive = [weakref.ref(x) for x in fields]
    del fields
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


@tw.nest
def looked_up(A, S, T, i, *, c=0.0):
    A[i] = A[i-1] + S[T[i], 0] * c


def test_tables_are_those_of_the_call(checks):
    """Their values may change in place; their extents and strides go to the kernel, and so must be those of the array.
    """
    context = tw.Context(threads=1)
    A, T = np.zeros(9), np.arange(9) % 3
    for turn, S in enumerate(
        [np.arange(6.0).reshape(3, 2), np.arange(40.0).reshape(20, 2)[::5], np.arange(8.0).reshape(2, 4).T]
    ):
        for again in range(3):
            A[:] = 0
            S[1, 0] = again + 1.5
            tw.run(looked_up, A=A, S=S, T=T, context=context, c=2.0)
            assert (A[1:] == np.cumsum(S[T, 0][1:] * 2.0)).all(), (turn, again)
        assert len(checks) == turn + 1


@pytest.mark.parametrize("values", [(np.array(1.0), np.array(1 + 1e-12)), (np.float64(1), np.float64(1 + 1e-12))])
def test_scalars_that_print_alike(values):
    context = tw.Context(threads=1)
    start, B = arrays()
    A = start.copy()
    for c in values:
        A[...] = start
        try:
            tw.run(mixed, A=A, B=B, context=context, c=c)
        except tw.ConfigError:  # an array is no scalar
            assert isinstance(c, np.ndarray)
        else:
            assert same(A, expected(start, B, float(c))), c


@pytest.mark.parametrize("kind", [np.array, tw.field])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_equal_calls_of_one_nest_in_a_tuple(kind, steps):
    """Their time steps run in blocks, and the later calls hold nothing but the core's part."""
    v = np.arange(10.0) ** 2
    u = kind(v)
    for _ in range(4):
        tw.run((diffuse,), u=u, steps=steps)
        for _ in range(steps):
            v[1:-1] = v[1:-1] + 0.25 * (v[:-2] - 2 * v[1:-1] + v[2:])
        np.testing.assert_array_equal(u if kind is np.array else u.gather(), v)


@tw.nest
def diffuse(u, t, i):
    u[t+1, i] = u[t, i] + 0.25 * (u[t, i-1] - 2 * u[t, i] + u[t, i+1])
