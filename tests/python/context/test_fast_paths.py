"""TILEWAVE_WITHOUT: a fast path that is off is not taken, and what the user asks for is obeyed.

Paths of messages and of the executor: tests/cpp/patterns/fast_paths_test.cpp.
"""

import contextlib
import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from local_ranks import on_ranks

import tilewave as tw
from tilewave import _core
from tilewave.plan.plan import CHOICES, request_of
from tilewave.nest.bounds import Loops
from tilewave.nests.call.problem import make_problem
from tilewave.context.context import Context


@tw.nest
def in_order(A, i, j):
    A[i, j] = 0.25 * (A[i-1, j] + A[i, j-1]) + 1.0


@tw.nest
def independent(B, A, i, j):
    B[i, j] = A[i-1, j] + A[i+1, j]


@tw.nest
def looked_up(H, S, a, b, i, j):
    H[i, j] = H[i-1, j-1] + S[a[i-1], b[j-1]]


@tw.nest
def relax(u, t, i, j):
    mean = 0.25 * (u[t+1, i-1, j] + u[t+1, i, j-1] + u[t, i+1, j] + u[t, i, j+1])
    u[t+1, i, j] = u[t, i, j] + 0.9 * (mean - u[t, i, j])


@tw.nest
def heat(u, t, i, j):
    u[t+1, i, j] = u[t, i, j] + 0.2 * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])


@tw.nest
def residual(r, A, i, j):
    r[i, j] = A[i, j] - A[i-1, j] - A[i, j-1]


def context(without=""):
    return Context._of(_core.Context.local(_core.LocalFabric(1), 0, 1, without))


def ran(without, nest, shape=(40, 400), dtype="f8", keep="all", tables=None, plan=None, reduce=None):
    """What was prepared for a run, and its report; the result does not depend on what is off."""
    there, rng = context(without), np.random.default_rng(3)
    given = {
        name: tw.field(shape, dtype, rng.integers(0, 9, shape).astype(dtype), context=there, keep=keep)
        for name in nest.arrays
        if name not in (tables or {})
    }
    report = tw.run(nest, **given, **(tables or {}), context=there, plan=plan, reduce=reduce)
    if keep == "all":
        same = tuple(field.gather().tobytes() for field in given.values())
        assert same == results.setdefault((nest.name, shape, dtype, str(tables)), same)
    return list(there._prepared.values())[-1], report


results = {}


def code(*given, **more):
    """The code of the kernel that ran, before LLVM changes it."""
    return str(ran(*given, **more)[0].kernel._recipe.build().module)


def test_the_environment_switches_off_what_it_names(monkeypatch):
    monkeypatch.setenv("TILEWAVE_WITHOUT", "chain_layouts,windows")
    there = tw.Context()
    monkeypatch.delenv("TILEWAVE_WITHOUT")
    assert there.without == there.solo().without == ("windows", "chain_layouts")  # for good
    assert tw.Context().without == ()
    monkeypatch.setenv("TILEWAVE_WITHOUT", "window")
    with pytest.raises(tw.ConfigError, match="no fast path is called 'window'; allowed, .*: windows, rows_together"):
        tw.Context()


def test_rewrites_that_are_off():
    """Each call is refused, or runs in a plainer way, bit for bit."""
    adjoint = tw.nest_from("def adjoint(u, t, i):\n    u[t-1, i] = 0.5 * u[t, i+1]\n")
    for name, nest, more in (
        ("backwards", adjoint, {"steps": 3, "reverse": ("t",)}),
        ("reductions", heat, {"steps": 3, "reduce": {"most": tw.max("u")}}),
    ):
        for without in ("", name):
            there = context(without)
            u = tw.field((9,) * (len(nest.indices) - 1), context=there)
            with pytest.raises(tw.ConfigError, match=f"leave '{name}' out") if without else contextlib.nullcontext():
                tw.run(nest, u=u, **more, context=there)
    A, B = np.arange(21.0), np.zeros(21)
    every = tw.nest_from("def every(B, A, i):\n    B[i] = 2.0 * A[i]\n")
    for without, points in (("", 7), ("strides", 19)):
        assert tw.run(every, A=A, B=B, over={"i": (1, 20, 3)}, context=context(without)).points == points
        assert B.tolist() == [2.0 * i * (i % 3 == 1) for i in range(21)]


def test_plans_say_what_is_off():
    plan = ran("skewed,shared", in_order)[1].plan
    assert "Fast paths that TILEWAVE_WITHOUT switches off: skewed, shared" in plan.explain()
    assert "TILEWAVE_WITHOUT" not in ran("", in_order)[1].plan.explain()


def test_the_guide_has_all_paths():
    text = Path(__file__).parents[3].joinpath("docs/guide/running.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE)
    assert rows[-len(_core.fast_paths) :] == [*_core.fast_paths.items()]


def test_kernels_of_dependent_rows():
    for without, lanes in (("", True), ("simd_rows", False)):
        assert ("tilewave_lanes" in code(without, in_order, plan={"storage": "plain"})) == lanes
        kernel = ran(without, in_order, plan={"storage": "plain"})[0].kernel
        assert (kernel.simd_rows_from > 0) == (kernel.rows_address != 0) == lanes


def test_wide_rows():
    assert re.search(r"load <\d+ x double>", code("", independent))
    assert not re.search(r"load <\d+ x double>", code("wide_rows", independent))


def test_residues():
    """Rows of one colour are independent where they lie; else a row goes across two loops, or its points in turn."""
    one = tw.nest_from("def one_colour(A, i, j):\n    if (i + j) % 2 == 1: A[i, j] = A[i-1, j] + A[i, j-1]\n")
    assert ran("", one, plan={"storage": "plain"})[0].sweep.independent_rows
    assert not ran("residues", one, plan={"storage": "plain"})[0].sweep.independent_rows


def lookups(extent):
    rng = np.random.default_rng(5)
    table = rng.integers(0, 9, (extent, extent)).astype("i1")
    return {"S": table, "a": rng.integers(0, extent, 40).astype("i2"), "b": rng.integers(0, extent, 400).astype("i2")}


def test_lookups():
    small, large = ({"tables": lookups(extent), "dtype": "i2"} for extent in (4, 200))
    permutes = ran("", looked_up, **small)[0].kernel.copies_tables  # not every processor does
    assert ran("row_check", looked_up, **small)[0].kernel.copies_tables == permutes
    assert not ran("permuted", looked_up, **small)[0].kernel.copies_tables
    assert "look_done" in code("", looked_up, **large)
    assert "look_done" not in code("row_check", looked_up, **large)


def test_bests():
    best = {"reduce": {"most": tw.max("A")}, "dtype": "i4", "plan": {"storage": "plain"}}
    for without, told in (("", ((0, "max", False),)), ("bests", ())):
        prepared, report = ran(without, counted, **best)
        assert prepared.kernel.bests == told
        assert report.results["most"] == results.setdefault("most", report.results["most"])


@tw.nest
def counted(A, B, i, j):
    A[i, j] = B[i-1, j] + B[i+1, j]


def test_windows():
    for without, window in (("", True), ("windows", False)):
        prepared, report = ran(without, in_order, keep="window")
        assert prepared.sweep.in_window(0) == window
        assert report.stored == (() if window else ("A",))


def test_skewed():
    """Both layouts are measured; rates decide."""
    layouts = {without: ran(without, in_order, (300, 300))[1].plan.explain() for without in ("", "skewed")}
    assert "points of a row (-1, 1) are neighbours in memory" in layouts[""]
    assert "points of a row" not in layouts["skewed"]
    for without in layouts:
        assert ran(without, in_order, (300, 300), plan={"storage": "skewed"})[1].plan.storage == "skewed"
    assert ran("skewed", in_order, (300, 300), plan={"storage": "skewed", "row": (1, -1)})[1].plan.row == (1, -1)


def planned(nest, without, ranks, **choices):
    """Plans, by rules and chosen, of a nest whose arrays the caches do not hold, where messages are slow."""
    machine = _core.Machine()
    machine.cache_bytes = machine.shared_cache_bytes = 1 << 20
    slow = _core.Link()
    slow.latency_s, machine.same_host, machine.latency_s = 1e-3, slow, 1e-3
    machine.host_of = [0] * ranks
    u = np.broadcast_to(np.zeros(()), (4000, 4000))
    core = make_problem(nest, {"u": u}, Loops(steps=16), off=_core.paths_off(without)).core
    request = request_of(choices, 1)
    rate = _core.KernelRate(2e-9, 1e-8, 1e-7)
    chosen = _core.choose_plan(core, ranks, request, machine, rate)
    return [_core.make_plan(core, ranks, request, machine), *(candidate.plan for candidate in chosen.ranked)]


@pytest.mark.parametrize("nest, ranks", [*itertools.product((relax, heat), (1, 2))])
def test_temporal_blocks(nest, ranks):
    assert any(plan.temporal_block > 1 for plan in planned(nest, "", ranks))
    assert all(plan.temporal_block == 1 for plan in planned(nest, "temporal_blocks", ranks))
    assert all(plan.temporal_block == 2 for plan in planned(nest, "temporal_blocks", ranks, temporal_block=2))


def test_aggregate():
    usual = next(plan for plan in planned(relax, "", 2) if plan.aggregate > 1)
    assert all(plan.aggregate == 1 for plan in planned(relax, "aggregate", 2))
    asked = {name: getattr(usual, name) for name in CHOICES}
    assert {str(plan) for plan in planned(relax, "aggregate,temporal_blocks", 2, **asked)} == {str(usual)}


def test_chain_layouts():
    """Nests that want their arrays in two orders run one after another, and never look for one layout."""

    def body(there):
        A, r = (tw.field((300, 300), "f8", 1.0, context=there) for _ in range(2))
        chain = tw.chain([tw.bind(in_order, A=A, context=there), tw.bind(residual, r=r, A=A, context=there)])
        chain.run(times=3)
        return bool(chain.separate), r.gather()

    (together,), errors = on_ranks(1, 1, body)
    assert not any(errors), errors
    (separate,), errors = on_ranks(1, 1, body, without="chain_layouts")
    assert not any(errors), errors
    assert not together[0]
    if not separate[0]:
        pytest.skip("by the rates measured here both nests want one layout by themselves")
    np.testing.assert_array_equal(together[1], separate[1])
