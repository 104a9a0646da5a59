"""One process without a launch: NumPy arrays in place, threads, the timeline's files."""

import gc
import json
import math
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tilewave as tw
from tilewave import _core


@tw.nest
def add(A, B, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1] + B[i, j]


@tw.nest
def recurrence(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1] - A[i-1, j-1]


@pytest.fixture(scope="module")
def context():
    return tw.Context(threads=2)


@pytest.mark.parametrize("order", ["C", "F", "slice", "reversed"])
def test_numpy_in_place(context, order):
    rng = np.random.default_rng(1)
    values = rng.random((11, 14))
    A = {
        "C": values.copy(),
        "F": np.asfortranarray(values),
        "slice": np.zeros((22, 30))[::2, 1:15],
        "reversed": values[::-1, ::-1].copy()[::-1, ::-1],
    }[order]
    A[...] = values
    B = np.asfortranarray(rng.random((11, 14)))
    plain = values.copy()
    add.reference(add.iteration_box(plain.shape), {"A": plain, "B": B})
    report = tw.run(add, A=A, B=B, context=context, plan={"threads": 2})
    assert np.array_equal(A, plain) and report.threads == 2


@pytest.mark.parametrize("kind", ["NumPy array", "field"])
@pytest.mark.parametrize("shape", [(400, 500), (60, 1100)])
def test_arrays_row_major_or_in_another_order(context, shape, kind):
    """Whichever takes less is picked, by measuring: the numbers are told, the results are the same, and a choice is
    obeyed.
    """
    values = np.random.default_rng(2).random(shape)
    plain = values.copy()
    recurrence.reference(recurrence.iteration_box(shape), {"A": plain})
    plans = {}
    for storage in (None, "plain", "skewed"):
        A = values.copy() if kind == "NumPy array" else tw.field(shape, "f8", init=values, context=context)
        report = tw.run(recurrence, A=A, context=context, plan={"storage": storage} if storage else {})
        assert np.array_equal(A if kind == "NumPy array" else A.gather(), plain), storage
        plans[storage] = report.plan
    assert plans[None].storage in ("plain", "skewed")
    assert plans["plain"].storage == "plain" and plans["skewed"].storage == "skewed"
    text = plans[None].explain()
    assert "are row-major" in text and ("to bring NumPy arrays into that order and back" in text) == (
        kind == "NumPy array"
    )
    assert ("are row-major: taken" in text) == (plans[None].storage == "plain")
    assert "row-major" not in plans["skewed"].explain() + plans["plain"].explain()


def test_what_bringing_costs_is_measured_without_changing_anything(context):
    values = np.random.default_rng(3).random((700, 900))
    A = np.asfortranarray(values)
    made = {}
    for storage in ("plain", "skewed"):
        tw.run(recurrence, A=A.copy(order="K"), context=context, plan={"storage": storage, "row": (1, -1)})
        sweep = list(context._prepared.values())[-1].sweep
        operands = [tw._core.RunArray(A.ctypes.data, A.strides)]
        made[storage] = sweep.conversion_s(operands)
        with pytest.raises(tw.ConfigError, match="2 arrays given, the nest has 1"):
            sweep.conversion_s(operands * 2)
    assert made["plain"] == 0 < made["skewed"]
    assert np.array_equal(A, values)


@pytest.mark.parametrize("dtype", ["i1", "i2", "u1"])
def test_fields_of_small_ints(context, dtype):
    @tw.nest
    def wrapping(A, B, i, j, *, c=3):
        A[i, j] = A[i-1, j] * c - A[i, j-1] + np.maximum(A[i-1, j-1], B[i, j])

    rng = np.random.default_rng(2)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b = (rng.integers(low, high, (33, 47), dtype, endpoint=True) for _ in range(2))
    A, B = (tw.field(a.shape, dtype, init=values, context=context) for values in (a, b))
    tw.run(wrapping, A=A, B=B, context=context, plan={"tile": (7, 11)})
    wrapping.reference(wrapping.iteration_box(a.shape), {"A": a, "B": b})
    assert A.dtype == dtype and np.array_equal(A.gather(), a)


def test_read_only_and_shared_memory_are_refused(context):
    A = np.ones((5, 5))
    with pytest.raises(tw.ConfigError, match="share memory"):
        tw.run(add, A=A, B=A[:, :], context=context)
    frozen = np.ones((5, 5))
    frozen.flags.writeable = False
    with pytest.raises(tw.ConfigError, match="read-only"):
        tw.run(add, A=frozen, B=A, context=context)


def test_a_field_that_is_gone_leaves_its_views_alive(context):
    A = tw.field((4, 4), init=lambda i, j: i + j, context=context)
    view = A.local
    del A
    assert view.sum() == 48


def test_timeline_files(context, tmp_path):
    A = np.ones((40, 40))
    report = tw.run(add, A=A, B=A.copy(), context=context, plan={"tile": (5, 10)})
    for ending in ("json", "png", "html"):
        report.timeline.save(tmp_path / f"deep/er/t.{ending}")
    trace = json.loads((tmp_path / "deep/er/t.json").read_text())["traceEvents"]
    computes = [e for e in trace if e["ph"] == "X" and e["name"].startswith("compute")]
    # 39 x 39 points in tiles of 5 x 10.
    assert len(computes) == 8 * 4 and all(e["dur"] >= 0 for e in computes)
    assert (tmp_path / "deep/er/t.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(tw.ConfigError, match="allowed endings"):
        report.timeline.save(tmp_path / "t.gif")


def test_more_threads_than_cpus_is_a_warning():
    with pytest.warns(RuntimeWarning, match="more than the"):
        context = tw.Context(threads=64)
    A = np.ones((30, 30))
    assert tw.run(add, A=A, B=A.copy(), context=context, plan={"factors": (64, 1)}).threads == 64


@pytest.mark.parametrize("threads", [0, -1, 1.5, "many"])
def test_bad_thread_counts(threads):
    with pytest.raises(tw.ConfigError, match="threads"):
        tw.Context(threads=threads)


def test_choices_that_would_divide_by_zero_or_never_end():
    @tw.nest
    def add(A, i, j):
        A[i, j] = A[i-1, j] + 1.0

    A = np.ones((8, 8))
    for name, value in (
        ("factors", (0, 1)), ("factors", (-1, 1)), ("factors", (2**40, 1)), ("grid", (2**40, 1)), ("grid", (0, 1)),
        ("threads", 10**6), ("over", [(0, 1)]),
    ):
        with pytest.raises(tw.ConfigError, match=name if name != "threads" else "1024"):
            tw.run(add, A=A, **({name: value} if name == "over" else {"plan": {name: value}}))
    assert (A == 1).all()
    tw.run(add, A=A, plan={"lookahead": 2**30})
    assert A[7, 7] == 8


@pytest.mark.parametrize("shape", ["34", (float("inf"), 3), (2**33, 2**31), (2**63,), (2**62,)])
def test_shapes_that_are_none_or_overflow(shape):
    with pytest.raises(tw.ConfigError, match="shape"):
        tw.field(shape)


def test_a_dtype_that_is_none_of_numpys():
    with pytest.raises(tw.ConfigError, match="'rubbish' was given; allowed: bool, int8"):
        tw.field((3,), "rubbish")


def test_an_init_without_return():
    with pytest.raises(tw.ConfigError, match="returned None at"):
        tw.field((3,), init=lambda i: None)


def test_a_forked_child_makes_threads_of_its_own(tmp_path):
    (tmp_path / "forks.py").write_text(
        "import os, numpy as np, tilewave as tw\n"
        "@tw.nest\ndef add(A, i, j):\n    A[i, j] = A[i-1, j] + 1.0\n"
        "context = tw.Context(threads=2)\n"
        "A = np.ones((9, 9))\ntw.run(add, A=A, context=context)\n"
        "child = os.fork()\n"
        "A[:] = 1\ntw.run(add, A=A, context=context)\n"
        "assert (A[8] == 9).all()\n"
        "assert not child or os.waitpid(child, 0)[1] == 0\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", tmp_path / "forks.py"], timeout=300, check=False)
    assert done.returncode == 0


def test_a_scalar_of_another_kind_is_another_kernel(context):
    @tw.nest
    def scale(A, i, *, c):
        A[i] = A[i-1] * c

    for c in (3, 0.5, np.float32(0.1), True, -2):
        A = np.arange(1, 9, dtype="f4")
        plain = A.copy()
        scale.reference(scale.iteration_box((8,)), {"A": plain}, {"c": c})
        tw.run(scale, A=A, c=c, context=context)
        assert np.array_equal(A.view("u4"), plain.view("u4")), c
    B = np.ones(8, "i4")
    tw.run(scale, A=B, c=3, context=context)
    with pytest.raises((tw.ConfigError, tw.KernelError), match="2199023255552|int32"):
        tw.run(scale, A=np.ones(8, "i4"), c=2**41, context=context)


STEP = 2


def test_a_kernel_in_use_serves_other_tiles_and_shapes():
    """And other numbers from outside; but no other body, nor numbers of another type."""
    global STEP

    @tw.nest
    def count(A, i, j):
        A[i, j] = A[i-1, j] + A[i, j-1] + STEP

    context = tw.Context(threads=1)

    def kernel(shape=(9, 8), **choices):
        A = np.ones(shape)
        plain = A.copy()
        count.reference(count.iteration_box(shape), {"A": plain})
        tw.run(count, A=A, context=context, plan={"storage": "plain", "row": (), **choices})  # noqa: F821
        assert np.array_equal(A, plain)
        return list(context._prepared.values())[-1].kernel  # noqa: F821

    first = kernel()
    assert kernel(tile=(2, 3)) is kernel(tile=(4, 7)) is first
    assert kernel((20, 8), tile=(4, 7)) is first
    try:
        STEP = 5
        assert kernel() is first
        STEP = 2.5
        assert kernel() is not first
    finally:
        STEP = 2
    assert kernel(tile=(3, 3)) is first
    held = weakref.ref(first)
    del first, context
    gc.collect()
    assert held() is None


def test_threads_beyond_the_cpus_warn(context):
    A = np.ones((40, 40))
    with pytest.warns(RuntimeWarning, match="97 threads"):
        tw.run(add, A=A, B=A.copy(), context=context, plan={"factors": (97, 1), "tile": (1, 5)})


def test_masked_and_unaligned_arrays(context):
    with pytest.raises(tw.ConfigError, match="MaskedArray"):
        tw.run(add, A=np.ma.ones((5, 5)), B=np.ones((5, 5)), context=context)
    raw = np.zeros(8 * 25 + 1, "u1")[1:].view("f8").reshape(5, 5)
    raw[...] = 1
    plain = np.ones((5, 5))
    add.reference(add.iteration_box((5, 5)), {"A": plain, "B": np.ones((5, 5))})
    tw.run(add, A=raw, B=np.ones((5, 5)), context=context)
    assert np.array_equal(raw, plain)


def test_an_unaligned_array_that_is_only_read(context):
    shape = (1500, 1500)  # its aligned copy is memory that goes back to the system when nobody has it
    raw = np.zeros(8 * math.prod(shape) + 1, "u1")[1:].view("f8").reshape(shape)
    raw[...] = np.random.default_rng(1).random(shape)
    A, plain = np.ones(shape), np.ones(shape)
    add.reference([(1, 4), (1, 4)], {"A": plain[:4, :4], "B": raw[:4, :4]})
    tw.run(add, A=A, B=raw, context=context)
    assert np.array_equal(A[:4, :4], plain[:4, :4])


@tw.nest
def in_time(A, t, x):
    A[t, x] = 0.25 * A[t-1, x-1] + 0.5 * A[t-1, x] + 0.25 * A[t-1, x+1]


def history(steps, points):
    A = np.zeros((steps, points))
    A[0], A[:, 0] = np.random.default_rng(1).random(points), 0.5
    expected = A.copy()
    for t in range(1, steps):
        expected[t, 1:-1] = 0.25 * expected[t-1, :-2] + 0.5 * expected[t-1, 1:-1] + 0.25 * expected[t-1, 2:]
    return A, expected


@pytest.mark.parametrize("keep", ["NumPy", "field"])
@pytest.mark.parametrize("choices", [{}, {"tile": (7, 50)}, {"tile": (40, 3), "mapping_dim": 0}])
@pytest.mark.parametrize("shape", [(300, 5), (3000, 12), (50, 400)])
def test_a_long_loop_added_to_a_short_one(context, shape, choices, keep):
    A, expected = history(*shape)
    given = A if keep == "NumPy" else tw.field(shape, "f8", init=A, context=context)
    report = tw.run(in_time, A=given, context=context, plan=choices)
    assert np.array_equal(given if keep == "NumPy" else given.gather(), expected)
    assert report.plan.memory_bytes < 1.5 * A.nbytes + 4096  # not the box of t and x + t


def test_storage_that_would_be_mostly_padding_is_refused(context):
    with pytest.raises(tw.ConfigError, match="storage skewed was given: .* MiB .* allowed here: plain"):
        tw.run(in_time, A=np.ones((20000, 50)), context=context, plan={"row": (0, 1), "storage": "skewed"})


def test_boxes_that_are_mostly_padding_are_not_made(context):
    shape, reads = (20000, 50), [(0, (-1, by), False, False) for by in (-1, 0, 1)]
    p = _core.SweepProblem(
        shape,
        ((1, 1), (20000, 49)),
        [(8, False, shape, (0, 1), 0, False)],
        [(0, (0, 0), True, False), *reads],
        [],
        [False, False],
        False,
    )
    one, two = (_core.make_plan(p, ranks, _core.PlanRequest(), _core.Machine()) for ranks in (1, 2))
    assert _core.mostly_padding(p, two) and not _core.mostly_padding(p, one)
