"""Steps of time that go together: picked where arrays are larger than the caches, with the results of sweep after
sweep.
"""

import os

import numpy as np
import pytest

import tilewave as tw
from tilewave import _core
from tilewave.plan.plan import Plan, request_of
from tilewave.nest.bounds import Loops
from tilewave.nests.call.problem import make_problem

pytestmark = pytest.mark.ranks([1, 2, 3])


@tw.nest
def relax(u, f, t, i, j, *, w):
    mean = 0.25 * (u[t+1, i-1, j] + u[t+1, i, j-1] + u[t, i+1, j] + u[t, i, j+1] + f[i, j])
    u[t+1, i, j] = u[t, i, j] + w * (mean - u[t, i, j])


@tw.nest
def heat(u, t, i, j, *, w):
    u[t+1, i, j] = u[t, i, j] + w * (
        u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-2] + u[t, i, j+1] - 4 * u[t, i, j]
    )


@tw.nest
def box(u, v, t, i, j, k, *, w):
    v[t+1, i, j, k] = w * (u[t+1, i-1, j, k] + v[t, i+1, j, k-1]) + v[t+1, i, j-1, k]
    u[t+1, i, j, k] = u[t, i, j, k] - w * v[t+1, i, j, k]


CASES = {
    "relax": (relax, (700, 900), "uf", (1, 2)),
    "heat": (heat, (900, 720), "u", ()),
    "box": (box, (40, 30, 70), "uv", None),
}


@pytest.fixture
def small_caches():
    """A context whose machine has caches that the arrays here do not fit into."""

    def make(threads):
        context = tw.Context(threads=threads)
        machine = context._core.machine()
        machine.cache_bytes = machine.shared_cache_bytes = 16 << 20
        context._core.use_machine(machine)
        return context

    return make


@pytest.mark.ranks([1, 2, 3])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.sample(3)
def test_equal_to_sweep_after_sweep(name, threads, small_caches, mpi_ranks):
    nest, shape, arrays, skew = CASES[name]
    seed = int(os.environ.get("TILEWAVE_SEED", "311"))
    start = {a: np.random.default_rng([seed, k]).random(shape) for k, a in enumerate(arrays)}
    context = small_caches(threads)
    for steps in (10,) if mpi_ranks > 1 else (2, 11):
        found = []
        for choices in (
            {"temporal_block": 1}, {}, None, {"schedule": "blocking"}, {"temporal_block": 5}, {"lookahead": 3},
        ):
            given = {a: tw.field(shape, "f8", init=start[a], context=context) for a in arrays}
            plan = by_rules(nest, given, steps, context, threads) if choices is None else choices
            report = tw.run(nest, **given, w=0.2, steps=steps, context=context, plan=plan)
            found.append([field.gather() for field in given.values()])
            what = f"seed {seed}: {name}, {steps} steps, plan {report.plan}"
            if context.rank == 0:
                for ours, plain in zip(found[-1], found[0], strict=True):
                    np.testing.assert_array_equal(ours, plain, what)
            if choices is None and skew is not None and mpi_ranks * threads < 3 and steps > 2:
                assert report.plan.temporal_block > 1 and report.plan.skew == skew, what
                assert threads == 1 or report.plan.factors[0] == threads, what


def by_rules(nest, given, steps, context, threads):
    """The plan that is measured first: of arrays larger than the caches, with time steps together."""
    problem = make_problem(nest, given, Loops(steps=steps)).core
    ways = _core.alternatives(problem, context.size, request_of({}, threads), context._core.machine(), True)
    return Plan._from_core(ways[0].plan)


def test_wrong_choices_are_refused_everywhere():
    u = tw.field((20, 30), "f8")
    f = tw.field((20, 30), "f8")
    for choices, words in (
        ({"temporal_block": 0}, "temporal_block 0"),
        ({"temporal_block": "all"}, "temporal_block: given 'all'"),
        ({"skew": (2, 1)}, "skew (2, 1) was given"),
        ({"skew": (0, 1)}, "skew (0, 1) was given"),
        ({"skew": (1, 2, 3)}, "skew: given (1, 2, 3)"),
        ({"skew": 1}, "skew: given 1"),
    ):
        with pytest.raises(tw.ConfigError) as error:
            tw.run(relax, u=u, f=f, w=1.5, steps=3, plan=choices)
        assert words in str(error.value) and error.value.agreed, str(error.value)
    tw.run(relax, u=u, f=f, w=1.5, steps=3)


def test_messages_of_many_tiles_go_together(mpi_ranks):
    shape, seed = (240, 190), int(os.environ.get("TILEWAVE_SEED", "312"))
    start = {a: np.random.default_rng([seed, k]).random(shape) for k, a in enumerate("uf")}
    context = tw.Context(threads=1)
    block = -(-shape[0] // mpi_ranks) - (mpi_ranks == 1) * 2
    cut = {"grid": (1, mpi_ranks, 1), "mapping_dim": 2, "skew": (1, 2)}
    found = []
    for choices in (
        {},
        {**cut, "temporal_block": 4, "tile": (1, block - 1 if mpi_ranks == 2 else block, 5), "aggregate": 9},
        {
            **cut,
            "temporal_block": 11,
            "tile": (1, block - 1 if mpi_ranks == 2 else block, 40),
            "aggregate": 2,
            "chunk_bytes": 3000,
        },
    ):
        given = {a: tw.field(shape, "f8", init=start[a], context=context) for a in start}
        report = tw.run(relax, **given, w=0.9, steps=17, context=context, plan=choices)
        found.append(given["u"].gather())
        if context.rank == 0:
            np.testing.assert_array_equal(found[-1], found[0], f"seed {seed}: plan {report.plan}")
    if mpi_ranks > 1:
        with pytest.raises(tw.ConfigError, match="ranks read what later ones compute") as error:
            tw.run(
                relax,
                **given,
                w=0.9,
                steps=17,
                context=context,
                plan={"grid": (1, mpi_ranks, 1), "temporal_block": 1, "aggregate": 2},
            )
        assert error.value.agreed
    with pytest.raises(tw.ConfigError, match="aggregate 0"):
        tw.run(relax, **given, w=0.9, steps=17, context=context, plan={"aggregate": 0})


@tw.nest
def ahead(u, t, i):
    u[t+1, i] = u[t, i] - 3 * u[t, i+1]


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5])
def test_a_rank_that_only_keeps_what_its_neighbour_reads(steps):
    """The last rank has one element, which no point writes; the rank before it reads it at every time."""
    start = np.arange(1, 2 * max(tw.size, 2)) ** 2
    for schedule in ("blocking", "overlapping"):
        u = tw.field(start.shape, "i8", init=start)
        tw.run(ahead, u=u, steps=steps, plan={"grid": (1, tw.size), "schedule": schedule})
        wanted = start.copy()
        for _ in range(steps):
            wanted[:-1] -= 3 * wanted[1:]
        whole = u.gather()
        assert whole is None or np.array_equal(whole, wanted)
