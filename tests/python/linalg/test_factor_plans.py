"""Plans of factors: what is compared, memory that is capped, and the same refusal on every rank."""

import random

import numpy as np
import pytest
import tilewave as tw
from local_ranks import on_ranks, results_of
from tilewave import _core
from tilewave.linalg.blas import blas

KINDS = ("cholesky", "lu", "qr")
linalg = _core.linalg


def options(**given):
    made = linalg.FactorOptions()
    for name, value in given.items():
        setattr(made, name, value)
    return made


def dominant(i, j):
    return np.cos(np.minimum(i, j) * 3.0 + np.maximum(i, j)) + 100.0 * (i == j)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_plans_compare_ways_depths_and_blocks(kind, ranks):
    def body(context):
        a = tw.linalg.matrix((150, 150), init=dominant, context=context)
        return getattr(tw.linalg, kind)(a, context=context).report.plan

    results = results_of(ranks, 1, body)
    plan = results[0]
    assert all(other == plan for other in results)
    texts = [text for _, _, text in plan.compared]
    assert next(time for time, _, _ in plan.compared) == plan.predicted_s + plan.moving_s
    assert plan.predicted_s > 0 and (plan.moving_s > 0) == (ranks > 1)  # by rows before
    assert len(set(texts)) == len(texts) and texts[0] in plan.explain() and texts[0] == str(plan).split(";")[0]
    first = plan.explain().splitlines()[0]
    assert first.endswith(f", because this is predicted to be the fastest of {len(texts)} plans.")
    assert first.startswith("One rank computes all") == (ranks == 1)
    assert any("on 2 x 2 ranks" in text for text in texts) == (ranks == 4)
    texts = [text.removesuffix(", redistributed first") for text in texts]
    if ranks > 1:
        assert {text.split()[0].strip(",") for text in texts} == {"broadcast", "wavefront"}
        assert {text.split(", ")[-1] for text in texts} == {"1 ahead", "2 ahead", "3 ahead"}
    assert any("least_rounds" in text for text in texts) == (ranks > 2)
    assert {text.split(" in ")[1].split(",")[0] for text in texts} == (
        {"chunks of 256 KiB", "chunks of 64 KiB"} if ranks > 1 else {"chunks of 256 KiB"}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_are_compared_unless_all_is_chosen(kind):
    def body(context):
        a = tw.linalg.matrix((130, 130), init=dominant, context=context)
        problem = linalg.PanelProblem(kind, a._blocks, 8, context.size, 1)
        plans = problem.plans("test", options(lookahead=1, block=16))
        assert {plan.chunk_bytes for plan in plans} == {256 << 10, 64 << 10}
        for algorithm in ("broadcast", "wavefront"):
            given = options(algorithm=algorithm, tree="ring", lookahead=1, block=16)
            (chosen,) = problem.plans("test", given)
            assert chosen.chunk_bytes == 256 << 10
        return True

    results, errors = on_ranks(2, 1, body)
    assert not any(errors) and all(results), errors


@pytest.mark.parametrize("shape", [(1, 30), (1, 1), (3, 40), (30, 1), (0, 5), (5, 0)])
def test_plans_of_flat_matrices(shape):
    """Panels of fewer rows than columns are timed and played, too."""

    def body(context):
        a = tw.linalg.matrix(shape, init=dominant, context=context)
        return tw.linalg.qr(a, context=context).report.plan

    results = results_of(2, 1, body)
    assert results[0] == results[1] and all(time >= 0 for time, _, _ in results[0].compared)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_capped_before_it_is_allocated(kind):
    """The least that is named is enough, one byte less is not; what a run uses is what the plan says."""

    def body(context):
        a = tw.linalg.matrix((90, 90), init=dominant, context=context)
        call = getattr(tw.linalg, kind)
        with pytest.raises(tw.ConfigError, match=r"memory: given 0 bytes; allowed: at least \d+, what") as refused:
            call(a, memory=0, context=context)
        least = int(str(refused.value).split("at least ")[1].split(",")[0])
        with pytest.raises(tw.ConfigError, match=f"{kind}: memory: given {least - 1} bytes"):
            call(a, memory=least - 1, context=context)
        report = call(a, memory=least, context=context).report
        free = call(a, context=context).report
        assert report.memory_bytes == report.plan.memory_bytes == least <= free.memory_bytes == free.plan.memory_bytes
        return str(refused.value)

    results = results_of(3, 1, body)
    assert len(set(results)) == 1


@pytest.mark.parametrize("seed", range(2))
def test_random_problems_are_timed_and_played(seed):
    """Of every kind, shape and dtype: no plan takes less than nothing."""
    rng, library = random.Random(seed), blas()
    for number in range(40):
        n, sides, block, ranks = rng.randint(0, 40), rng.randint(0, 9), rng.randint(1, 12), rng.choice([1, 2, 3, 4, 6])
        work, dtype = rng.choice([*KINDS, "solve"]), np.dtype(rng.choice(["f4", "f8", "c8", "c16"]))
        rows = rng.randint(0, 40) if work == "qr" else n
        given = linalg.BlockCyclic(linalg.Axis(rows, 1, 0), linalg.Axis(n, ranks, block))
        right = linalg.BlockCyclic(linalg.Axis(n, 1, 0), linalg.Axis(sides, ranks, max(1, -(-sides // ranks))))
        system = linalg.TriangularSystem(rng.random() < 0.5, rng.choice("NTC"), rng.random() < 0.5)
        problem = linalg.PanelProblem(work, given, dtype.itemsize, ranks, rng.choice([1, 2]), right, system)
        plans = problem.plans("test", options(block=rng.choice([None, block])))
        played = problem.played(library, dtype.name, plans, _core.Machine())
        times = [plan.predicted_s for plan in played if plan.predicted_s is not None]
        assert all(time >= 0 for time in times), (seed, number, work, rows, n)
        assert len(times) == len(plans) or len(played) == 1


def test_solutions_say_the_memory_of_their_copies():
    """Right-hand sides by even columns are solved where the solution lies; others in a copy, which is counted."""
    n, count = 24, 10
    rng = np.random.default_rng(1)
    whole, given = rng.normal(size=(n, n)) + n * np.eye(n), rng.normal(size=(n, count))

    def body(context):
        a = tw.linalg.matrix(whole, layout="columns", block=4, context=context)
        found = []
        for layout in ("columns", "rows"):
            b = tw.linalg.matrix(given, layout=layout, context=context)
            lu, qr = tw.linalg.lu(a), tw.linalg.qr(a)
            calls = {
                "lu": lu.solve(b).report[1],
                "qr": qr.apply(b).report,
                "triangle": tw.linalg.solve_triangular(a, b, block=4).report,
            }
            found.append({name: report.memory_bytes for name, report in calls.items()})
            x = lu.solve(b).gather()
            assert x is None or np.allclose(whole @ x, given)
        inverse = tw.linalg.inv(a).report
        held = lu.local.nbytes
        return [found[1][name] - found[0][name] for name in found[0]], inverse[1].memory_bytes - held, found[0]["lu"]

    results = results_of(2, 1, body)
    for copies, of_inverse, panels in results:
        assert copies == [n * count // 2 * 8] * 3 and of_inverse == panels


def test_block_columns_that_are_narrow_and_many_do_not_stay():
    """Each would cost a message to all and a task on every other one."""

    def body(context):
        found = []
        for n, block in ((129, 1), (128, 1), (400, 32)):
            a = tw.linalg.matrix((n, n), init=dominant, layout="columns", block=block, context=context)
            factor = tw.linalg.lu(a)
            found.append((factor.report.plan.block == block, factor.report.moved))
            r = tw.linalg.matmul(a, factor.solve(tw.linalg.matrix((n, 1), init=1.0, context=context))).gather()
            assert r is None or np.allclose(r, 1)
        return found

    results = results_of(2, 1, body)
    assert results == [[(False, ("a",)), (True, ()), (True, ())]] * 2


@pytest.mark.parametrize("kind", KINDS)
def test_of_plans_with_many_steps_those_of_the_best_kind_are_all_played(kind):
    """One of each grid, algorithm and block first; their times are samples'."""
    axis = linalg.Axis
    layout = linalg.BlockCyclic(axis(16000, 64, 250), axis(16000, 1, 16000))
    problem = linalg.PanelProblem(kind, layout, 8, 64, 1)
    plans = problem.plans(kind, options(lookahead=1))
    played = problem.played(blas(), "float64", plans, _core.Machine())

    def key(plan):
        return plan.grid, plan.algorithm, plan.block

    assert {key(plan) for plan in played} <= {key(plan) for plan in plans} and len(played) < len(plans)
    assert {plan.grid for plan in played} == {(1, 64), (2, 32), (4, 16), (8, 8)}
    counts = {k: sum(key(plan) == k for plan in played) for k in map(key, played)}
    best = max(counts, key=counts.get)
    assert counts.pop(best) == sum(key(plan) == best for plan in plans) > 1 and set(counts.values()) == {1}
    assert all(plan.predicted_s > 0 for plan in played)
