"""Sweeps on ranks as threads equal plain loops, for random problems and plans."""

import ctypes

import numba
import numpy as np
import pytest
from general_runs import run_case as run_general_case
from general_sweeps import general_case
from local_ranks import results_of
from numba import types
from sweeps import describe, random_case

import tilewave as tw
from tilewave import _core

INTS = types.CPointer(types.int64)


@numba.cfunc(types.int64(types.CPointer(INTS), INTS, types.int64, INTS, INTS, INTS))
def mix(ptr, step, n, index, direction, env):
    """out = 1 + sum of (r + 2) * read r + a term of the index, in wrapping int64; env[0] reads."""
    for q in range(n):
        value = numba.int64(1)
        for r in range(env[0]):
            value += (r + 2) * ptr[1 + r][q * step[1 + r] // 8]
        for k in range(env[1]):
            value += (index[k] + q * direction[k]) * (k + 3)
        ptr[0][q * step[0] // 8] = value
    return 0


def plain_loops(problem, reads, arrays):
    """The same body as nested loops in C order."""
    low, high = problem.space
    return _plain(
        np.array(low),
        np.array(high),
        np.array([a for a, _ in reads]),
        np.array([o for _, o in reads]).reshape(len(reads), len(low)),
        [a.reshape(-1) for a in arrays],
        np.array(problem.shape),
    )


def _plain(low, high, which, offsets, flat, shape):
    stacked = np.stack(flat)
    _loops(low, high, which, offsets, stacked, shape)
    return stacked[0].reshape(shape)


@numba.njit
def _loops(low, high, which, offsets, flat, shape):
    dims = len(low)
    at = low.copy()
    if (high <= low).any():
        return
    while True:
        value = numba.int64(1)
        for r in range(len(which)):
            where = 0
            for k in range(dims):
                where = where * shape[k] + at[k] + offsets[r, k]
            value += (r + 2) * flat[which[r], where]
        own = 0
        for k in range(dims):
            own = own * shape[k] + at[k]
            value += at[k] * (k + 3)
        flat[0, own] = value
        k = dims - 1
        while k >= 0:
            at[k] += 1
            if at[k] < high[k]:
                break
            at[k] = low[k]
            k -= 1
        if k < 0:
            return


def run_case(seed, ranks=None):
    problem, plan, ranks, reads, replicated = random_case(seed, ranks, item_bytes=(8,), parts=True)
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-1000, 1000, problem.shape) for _ in replicated]
    expected = plain_loops(problem, reads, arrays)
    env = np.array([len(reads), len(problem.shape)])

    def body(context):
        fields = [
            a if whole else tw.field(problem.shape, "i8", init=a, context=context)
            for a, whole in zip(arrays, replicated)
        ]
        operands = [
            _core.RunArray(f.ctypes.data, f.strides) if whole else _core.RunArray(f._storage)
            for f, whole in zip(fields, replicated)
        ]
        sweep = _core.PreparedSweep(context._core, problem, plan)
        report = sweep.run(
            operands, _core.Kernel(ctypes.cast(mix.ctypes, ctypes.c_void_p).value, env.ctypes.data)
        )
        return fields[0].gather(), report

    results = results_of(ranks, plan.lanes, body)
    whole, report = results[0]
    assert np.array_equal(whole, expected), f"seed {seed}: {describe(problem, plan, ranks)}"
    return report


@pytest.mark.parametrize("first", range(0, 120, 10))
def test_random_sweeps_equal_plain_loops(first):
    for seed in range(first, first + 10):
        run_case(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(100_000, 104_000, 500))
def test_many_random_sweeps_equal_plain_loops(first):
    for seed in range(first, first + 500):
        run_case(seed)


@pytest.mark.parametrize("first", range(0, 90, 10))
def test_random_general_sweeps_equal_plain_loops(first):
    for seed in range(first, first + 10):
        general = general_case(seed, item_bytes=(8,))
        wrong = run_general_case(general)
        assert not wrong, f"{wrong}; {general}"


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 15_000, 500))
def test_many_random_general_sweeps_equal_plain_loops(first):
    for seed in range(first, first + 500):
        general = general_case(seed, item_bytes=(8,))
        wrong = run_general_case(general)
        assert not wrong, f"{wrong}; {general}"


@pytest.mark.parametrize("seed", range(12))
def test_general_sweeps_with_rolling_windows_in_panels(seed):
    check_long_rows(seed)


@pytest.mark.long
def test_many_general_sweeps_with_rolling_windows_in_panels():
    for seed in range(10_000, 11_000):
        check_long_rows(seed)


@pytest.mark.parametrize("first", range(0, 40, 5))
def test_sweeps_with_deep_halos(first):
    for seed in range(first, first + 5):
        check_deep_halos(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 12_000, 250))
def test_many_sweeps_with_deep_halos(first):
    for seed in range(first, first + 250):
        check_deep_halos(seed)


def check_deep_halos(seed):
    general = general_case(seed, item_bytes=(8,), deep_halo=True)
    wrong = run_general_case(general)
    assert not wrong, f"{wrong}; {general}"


def check_long_rows(seed):
    general = general_case(seed, item_bytes=(8,), long_rows=True)
    wrong = run_general_case(general)
    assert not wrong, f"{wrong}; {general}"
