"""Chains and bound nests over MPI: what their nests compute one after another, bit for bit; interrupts, failures.

A failure prints its seed; this runs that case alone, on every rank count:

    TILEWAVE_SEED=123 python -m pytest tests/mpi/test_chains_over_ranks.py -k random
"""

import itertools
import os
import random
import signal
import sys
import threading
import time

import numpy as np
import pytest

import tilewave as tw
from tilewave.context import interrupts
from tilewave.errors import ConfigError

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])
SEEDS = [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 12))]
if "TILEWAVE_SEED" in os.environ:
    SEEDS = [int(os.environ["TILEWAVE_SEED"])]


@tw.nest
def sweep(A, i, j, *, c=1):
    A[i, j] = c * A[i - 1, j] + A[i, j - 1]


@tw.nest
def back(A, i, j):
    A[i, j] = A[i + 1, j] - A[i, j + 1]


@tw.nest
def smooth(u, f, i, j):
    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


@tw.nest
def residual(r, u, f, i, j):
    r[i, j] = abs(f[i, j] - 4 * u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


def interrupted_inside():
    """Send this process SIGINT once its main thread is in a call of the library."""
    thread = threading.main_thread().ident

    def send():
        while not interrupts._inside(sys._current_frames()[thread]):
            time.sleep(0.01)
        time.sleep(0.1)
        signal.pthread_kill(thread, signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()


def field(context, shape=(40, 30), dtype="i8"):
    return tw.field(shape, dtype, init=lambda i, j: i * 3 - j, context=context)


def same(a, b):
    x, y = a.gather(), b.gather()
    return x is None or x.tobytes() == y.tobytes()


def test_forth_and_back(context):
    A = field(context)
    B = A.copy()
    cycle = tw.chain([tw.bind(sweep, A=A), tw.bind(back, A=A, reverse=("i", "j"))])
    for times, c in ((1, 1), (7, 2), (2, 1)):
        report = cycle.run(times=times, c=c)
        assert report.repetitions == times and report.points == times * 2 * 39 * 29
        for _ in range(times):
            tw.run(sweep, A=B, c=c)
            tw.run(back, A=B, reverse=("i", "j"))
        assert same(A, B)


@tw.nest
def up(u, v, i, j):
    u[i, j] = v[i, j] + 0.5 * u[i-1, j] - 0.25 * u[i, j-1]


@tw.nest
def down(u, v, i, j):
    u[i, j] = v[i, j] + 0.5 * u[i+1, j] - 0.25 * u[i, j+1]


@tw.nest
def up_and_down(u, v, i, j):
    u[i, j] = v[i, j] + 0.5 * u[i-1, j] - 0.25 * u[i, j+1]


@tw.nest
def down_and_up(u, v, i, j):
    u[i, j] = v[i, j] + 0.5 * u[i+1, j] - 0.25 * u[i, j-1]


@tw.nest
def up_3(u, v, i, j, k):
    u[i, j, k] = v[i, j, k] + 0.5 * u[i-1, j, k] - 0.25 * u[i, j-1, k] + 0.125 * u[i, j, k-1]


@tw.nest
def down_3(u, v, i, j, k):
    u[i, j, k] = v[i, j, k] + 0.5 * u[i+1, j, k] - 0.25 * u[i, j+1, k] + 0.125 * u[i, j, k+1]


#: Nests that can have one skewed storage, with the steps of their loops.
SOLVES = [
    [(up, (1, 1)), (down, (-1, -1))],
    [(up_and_down, (1, -1)), (down_and_up, (-1, 1))],
    [(up_3, (1, 1, 1)), (down_3, (-1, -1, -1))],
]


def plain_solve(u, v, steps):
    """The loops of one of these nests."""
    ranges = [range(1, n) if step > 0 else range(n - 2, -1, -1) for n, step in zip(u.shape, steps, strict=True)]
    for point in itertools.product(*ranges):
        value = v[point]
        for d, step in enumerate(steps):
            value += (0.5, -0.25, 0.125)[d] * u[(*point[:d], point[d] - step, *point[d + 1 :])]
        u[point] = value


@pytest.mark.parametrize("seed", SEEDS)
def test_nests_in_both_directions_share_skewed_storage(seed, context):
    pick = random.Random(f"solves {seed}")
    family = pick.choice(SOLVES)
    shape = tuple(pick.randint(20, 40) if len(family[0][1]) == 2 else pick.randint(9, 14) for _ in family[0][1])
    parts = [pick.choice(family) for _ in range(pick.randint(2, 4))]
    print(f"solves, seed {seed}: {shape} {[nest.name for nest, _ in parts]}", file=sys.__stderr__, flush=True)
    arrays = np.random.default_rng(seed).random((2, *shape))
    fields, bounds = [tw.field(array, context=context) for array in arrays], []
    for n, (nest, steps) in enumerate(parts):
        given = {"u": fields[n % 2], "v": fields[1 - n % 2], "plan": {"storage": "skewed"}}
        reverse = [index for index, step in zip(nest.indices, steps, strict=True) if step < 0]
        bounds.append(tw.bind(nest, **given, reverse=reverse, context=context))
    chain = tw.chain(bounds)
    assert not chain.separate
    assert {plan.storage for plan in chain.plans} == {"skewed"}
    assert tw.check(tw.schedule(chain, context=context)) is None
    for times in (1, 3):
        chain.run(times=times)
        for n, (_, steps) in enumerate(parts * times):
            n %= len(parts)
            plain_solve(arrays[n % 2], arrays[1 - n % 2], steps)
        for field, expected in zip(fields, arrays, strict=True):
            whole = field.gather()
            assert whole is None or np.array_equal(whole, expected)


def test_until(context):
    u, f, r = (tw.field((18, 15), "f8", init=value, context=context) for value in (0.0, 1.0, 0.0))
    v, g, s = (each.copy() for each in (u, f, r))
    norm = {"r": tw.max("r")}
    cycle = tw.chain([tw.bind(smooth, u=u, f=f), tw.bind(residual, r=r, u=u, f=f, reduce=norm)])
    report = cycle.run(times=1000, until={"r": 1e-3})
    values = []
    while not values or values[-1] > 1e-3:
        tw.run(smooth, u=v, f=g)
        values.append(tw.run(residual, r=s, u=v, f=g, reduce=norm).results["r"])
    assert report.reached and report.repetitions == len(values) > 20
    assert [each["r"] for each in report.history] == values and report.reduced == [{}, {"r": values[-1]}]
    assert same(u, v) and same(r, s)


@pytest.mark.mpi(ranks=[2, 3])
def test_an_interrupt_before_the_ranks_agree(context):
    A = field(context)
    cycle = tw.chain([tw.bind(sweep, A=A), tw.bind(back, A=A)])
    for rank in range(context.size):
        with pytest.raises(KeyboardInterrupt):
            if context.rank == rank:
                interrupts.keep(KeyboardInterrupt())
            cycle.run(times=3)
        A.fill(1)
        B = A.copy()
        cycle.run()
        tw.run(sweep, A=B)
        tw.run(back, A=B)
        assert same(A, B)


@pytest.mark.mpi(ranks=[1, 3])
def test_an_interrupt_in_a_long_run(context):
    A = field(context)
    cycle = tw.chain([tw.bind(sweep, A=A), tw.bind(back, A=A)])
    for rank in {0, context.size - 1}:
        with pytest.raises(KeyboardInterrupt):
            if context.rank == rank:
                interrupted_inside()
            cycle.run(times=2**40)  # it would take years
        A.fill(1)
        B = A.copy()
        cycle.run()
        tw.run(sweep, A=B)
        tw.run(back, A=B)
        assert same(A, B)


@pytest.mark.ranks([2, 3, 4])
def test_ranks_that_run_different_things(context):
    A = field(context)
    bounds = [tw.bind(sweep, A=A), tw.bind(back, A=A)]
    one, other = tw.chain(bounds), tw.chain(bounds[::-1])
    one.run()
    for rank in range(context.size):
        differs = context.rank == rank
        for call, text in (
            (other.run if differs else one.run, r"chain \d+ of back, sweep"),
            (A.gather if differs else one.run, "tw.Field.gather"),
            ((lambda: one.run(c=2)) if differs else one.run, "c=2"),
            ((lambda: one.run(times=2)) if differs else one.run, "times 2"),
            ((lambda: one.run(times=0)) if differs else one.run, "times 0"),
            ((lambda: one.run(times="x")) if differs else one.run, "times: given 'x'"),
            ((lambda: tw.chain(bounds)) if differs else (lambda: tw.chain(bounds[:1])), r"bound nests \d+"),
        ):
            with pytest.raises(ConfigError, match=text):
                call()
        with pytest.raises(ConfigError, match="until says"):
            one.run(times=5, until=lambda values, differs=differs: differs)
        one.run()


@tw.nest
def heat(u, t, i):
    u[t + 1, i] = u[t, i] + 0.25 * (u[t, i - 1] - 2 * u[t, i] + u[t, i + 1])


@pytest.mark.mpi(ranks=[1, 3])
def test_an_interrupt_before_the_ranks_agree_of_a_bound_nest(context):
    A = field(context)
    bound = tw.bind(sweep, A=A)
    for rank in range(context.size):
        for _ in range(2):
            bound.run()
        with pytest.raises(KeyboardInterrupt):
            if context.rank == rank:
                interrupts.keep(KeyboardInterrupt())
            bound.run()
        A.fill(1)
        B = A.copy()
        bound.run()
        tw.run(sweep, A=B)
        assert same(A, B)


@pytest.mark.mpi(ranks=[2, 3])
def test_an_interrupt_in_a_long_run_of_a_bound_nest(context):
    u = tw.field((200_000,), "f8", init=1.0, context=context)
    bound = tw.bind(heat, u=u, steps=20)
    for rank in {0, context.size - 1}:
        with pytest.raises(KeyboardInterrupt):
            if context.rank == rank:
                interrupted_inside()
            bound.run(steps=2**30)  # it would take days
        u.fill(1.0)
        assert bound.run(steps=3).points == 3 * 199_998
