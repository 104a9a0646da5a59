"""The random nests: every kind is among them, they run as plain Python, seeds mean the same everywhere."""

import collections
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from launches import PYTHON, ended

from nest_problems import make_problem, random_plan
from tilewave.nest.bounds import loop_bounds
from tilewave.errors import ConfigError
from tilewave.nest.reference import plain_loops

SEEDS = range(500)  # those that tests/mpi/test_random_nests.py runs without --long

KINDS = {
    *(f"{n} indices" for n in (1, 2, 3, 4)), *(f"{n} statements" for n in (1, 2, 3)),
    *(f"{n} written arrays" for n in (1, 2, 3)), "one dtype", "several dtypes",
    *(f"{what} {dtype}" for what in ("dtype", "written dtype") for dtype in "f4 f8 i4 i8 i1 i2 u1 u2 u4 u8".split()),
    "time: earlier time steps", "reads an earlier time step", "reads an earlier time step beside the point",
    "history given", "reads ahead", "reads behind with a positive component", "write at an offset",
    "written array of lower rank", "input of one axis", "input of lower rank", "transposed input",
    "input in several orders", "input both ways", "time: input in several orders",
    "input with an index at several subscripts", "arrays of different extents", "table", "table by an index",
    "table by a computed integer", "local", "if with else", "if without else", "condition on an index",
    "conditional expression", "augmented assignment", "abs", "min or max", "np.minimum or np.maximum", "np.where",
    "square root", "value of an index", "float scalar", "int scalar", "float into int", "NaN", "time",
    *(f"time with {n} space indices" for n in (1, 2, 3)), "time: in place", "time: from the old time step only",
    "time: no time step read", "time buffers kept as an axis", "reads the old time step",
    "reads the new time step behind", "reads the new time step ahead", "reverse", "reverse in time",
    "affine bounds in time", "over", "narrowed", "triangle", "band", "bounds as functions", "bounds as lists",
    "bounds with two indices", *(f"bounds with factor {n}" for n in (1, -1, 2, -2)), "no points", "run twice",
}


def function_of(problem):
    names = {"np": np}
    exec(problem.body.text, names)
    return names[problem.body.name]


def test_every_kind_is_among_the_usual_seeds(capsys):
    kinds = collections.Counter()
    plans = collections.Counter()
    for seed in SEEDS:
        problem = make_problem(seed)
        kinds.update(problem.kinds)
        plans.update([*random_plan(seed, seed % 4 + 1, len(problem.body.indices), problem.steps is not None)])
    print(*(f"{count:6} {kind}" for kind, count in sorted(kinds.items())), sep="\n")
    assert set(kinds) == KINDS, f"missing {KINDS - set(kinds)}, not listed {set(kinds) - KINDS}"
    assert set(plans) == {
        "threads", "tile", "grouping", "schedule", "lookahead", "grid", "temporal_block", "skew", "poll_period_s",
        "helper", "synchronous", "weights",
    }


@pytest.mark.filterwarnings("error")
def test_plain_loops_run_and_change_something():
    changed, points = 0, 0
    for seed in SEEDS:
        problem = make_problem(seed)
        after = problem.plain(function_of(problem))
        count = sum(1 for _ in problem.bounds.points())
        for name, array in after.items():
            start = problem.arrays[name]
            assert array.dtype.kind != "f" or "NaN" in problem.kinds or np.isfinite(array).all(), problem
            changed += not np.array_equal(array, start, equal_nan=array.dtype.kind == "f")
        points += count
        assert count <= 5000, problem
    assert changed > len(SEEDS) / 2 and points > 50 * len(SEEDS)


def test_a_seed_means_the_same_in_every_process():
    script = (
        "import hashlib; from nest_problems import make_problem; "
        "text = ''.join(f'{p}{p.arrays}{sorted(p.as_numpy)}' for p in map(make_problem, range(60))); "
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    path = os.pathsep.join([str(Path(__file__).resolve().parents[1] / "support"), *filter(None, sys.path)])
    variables = [{"PYTHONHASHSEED": seed, "PYTHONPATH": path} for seed in "12"]
    found = {ended(PYTHON, "-c", script, check=True, env=env).stdout for env in variables}
    assert len(found) == 1 and len(found.pop()) == 65


# The plain loops themselves, against loops written out.


def nest_of(function, indices, axes, time=None):
    places = [types.SimpleNamespace(array=name, axes=own, offsets=(0,) * len(own)) for name, own in axes.items()]
    return types.SimpleNamespace(function=function, indices=indices, time=time, scalars={"c": None}, places=places)


def test_plain_loops_keep_the_nesting_and_turn_directions():
    def body(A, i, j, *, c):
        A[i, j] = A[i, j-1] + c * A[i-1, j]

    nest = nest_of(body, ("i", "j"), {"A": ("i", "j")})
    start = np.arange(30.0).reshape(5, 6)
    got, expected = start.copy(), start.copy()
    plain_loops(nest, loop_bounds(("i", "j"), ((1, 5), (1, 6)), {"j": (1, "i+1")}), {"A": got}, {"c": 0.5}, ("i",))
    for i in range(4, 0, -1):
        for j in range(1, i + 1):
            expected[i, j] = expected[i, j-1] + 0.5 * expected[i-1, j]
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_plain_loops_in_time(steps):
    def body(u, f, t, i, *, c):
        if i % 3:
            u[t+1, i] = c * u[t+1, i-1] + u[t, i+1] + f[i] * t

    nest = nest_of(body, ("t", "i"), {"u": ("t", "i"), "f": ("i",)}, "t")
    u, f = np.arange(9.0), np.arange(9.0) ** 2
    expected = u.copy()
    plain_loops(nest, loop_bounds(("t", "i"), ((0, steps), (1, 8))), {"u": u, "f": f}, {"c": 0.5}, steps=steps)
    for t in range(steps):
        new = expected.copy()
        for i in range(1, 8):
            if i % 3:
                new[i] = 0.5 * new[i-1] + expected[i+1] + f[i] * t
        expected = new
    assert np.array_equal(u, expected)


def test_time_levels_are_kept_where_a_step_has_no_points():
    def body(u, t, i, *, c):
        u[t+1, i] = u[t, i] + c

    nest = nest_of(body, ("t", "i"), {"u": ("t", "i")}, "t")
    u = np.zeros(4)
    bounds = loop_bounds(("t", "i"), ((0, 5), (0, 4)), {"i": (0, ("4-2*t", 4))})
    plain_loops(nest, bounds, {"u": u}, {"c": 1.0}, steps=5)
    assert u.tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize("time, first, reverse", [(None, (0, 3), ()), ("t", (1, 3), ()), ("t", (0, 3), ("t",))])
def test_plain_loops_refuse_what_is_not_time(time, first, reverse):
    nest = nest_of(None, ("t", "i"), {"u": ("t", "i")}, time)
    with pytest.raises(ConfigError, match="first index is time"):
        plain_loops(nest, loop_bounds(("t", "i"), (first, (0, 4))), {"u": np.zeros(4)}, reverse=reverse, steps=3)
