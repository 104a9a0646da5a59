"""Products of distributed matrices against NumPy: sizes, layouts, dtypes, transposes, algorithms, ranks."""

import dataclasses

import numpy as np
import pytest
import tilewave as tw
from local_ranks import results_of
from matrices import DTYPES, applied, close, layout, values
from products import product_rate


def random_product(seed, largest, sizes=None, repeats=1):
    """One launch of ranks with some random products."""
    rng = np.random.default_rng(seed)
    ranks, threads = int(rng.choice([1, 2, 3, 4, 6])), int(rng.choice([1, 1, 2]))
    cases = [random_case(rng, ranks, largest, sizes) for _ in range(repeats)]

    def body(context):
        return [run_case(context, case) for case in cases]

    results = results_of(ranks, threads, body)
    for case, found in zip(cases, results[0], strict=True):
        wanted = case["alpha"] * applied(case["a"], case["ta"]) @ applied(case["b"], case["tb"])
        wanted = (wanted + case["beta"] * case["c"]).astype(case["dtype"])
        choices = {k: v for k, v in case.items() if k not in "abc"}
        assert close(found, wanted, case["dtype"]), (seed, ranks, threads, choices)


def random_case(rng, ranks, largest, sizes):
    m, n, k = sizes or (int(x) for x in rng.integers(0, largest + 1, 3))
    dtype, ta, tb = (str(rng.choice(x)) for x in (DTYPES, list("NTC"), list("NTC")))
    options = {"algorithm": str(rng.choice(["auto", "broadcast", "wavefront", "summa"]))}
    if rng.random() < 0.7:
        options["panel"] = int(rng.integers(1, max(2, largest // 2)))
    if rng.random() < 0.5:
        options["lookahead"] = int(rng.integers(0, 4))
    if options["algorithm"] == "broadcast" and rng.random() < 0.5:
        options["tree"] = str(rng.choice(["ring", "least_rounds"]))
    if options["algorithm"] == "wavefront" and rng.random() < 0.5:
        options["pending"] = True
    return {
        "dtype": dtype,
        "ta": ta,
        "tb": tb,
        "a": values(rng, (m, k) if ta == "N" else (k, m), dtype),
        "b": values(rng, (k, n) if tb == "N" else (n, k), dtype),
        "c": values(rng, (m, n), dtype),
        "alpha": float(rng.choice([1.0, -0.5])),
        "beta": float(rng.choice([0.0, 1.0, 2.0])),
        "layouts": [layout(rng, ranks, max(5, largest // 4)) for _ in range(3)],
        "gives_c": bool(rng.random() < 0.6),
        "on_zero": bool(rng.random() < 0.5),
        "options": options,
    }


def run_case(context, case):
    def spread(x, given):
        init = x if context.rank == 0 or not case["on_zero"] else None
        return tw.linalg.matrix(x.shape, x.dtype, init, context=context, **given)

    a, b = (spread(case[name], given) for name, given in zip("ab", case["layouts"]))
    c = spread(case["c"], case["layouts"][2]) if case["gives_c"] or case["beta"] else None
    keys = {"alpha": case["alpha"], "beta": case["beta"], "trans_a": case["ta"], "trans_b": case["tb"]}
    return tw.linalg.matmul(a, b, c, **keys, **case["options"]).gather()


@pytest.mark.parametrize("n", range(13))
def test_square(n):
    random_product(1000 + n, 12, (n, n, n), repeats=3)


@pytest.mark.parametrize("seed", range(12))
def test_random(seed):
    random_product(seed, 12, repeats=3)


@pytest.mark.parametrize("seed", range(2))
def test_larger(seed):
    random_product(100 + seed, 300)


@pytest.mark.long
@pytest.mark.parametrize("n", range(41))
def test_every_size(n):
    for seed in range(10):
        random_product(seed, 40, (n, n, n), repeats=3)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_large(seed):
    random_product(200 + seed, 700)


@pytest.mark.parametrize("algorithm", ["broadcast", "wavefront", "summa"])
def test_nan_and_infinity_spread(algorithm):
    """As in BLAS: where a row of A or a column of B has them; and beta 0 does not read C."""
    a, b = np.ones((6, 6)), np.ones((6, 6))
    a[2, 3], b[4, 5] = np.nan, np.inf

    def body(context):
        x, y = (tw.linalg.matrix(v, context=context) for v in (a, b))
        c = tw.linalg.matrix((6, 6), init=np.nan, context=context)
        return tw.linalg.matmul(x, y, c, algorithm=algorithm).gather()

    results = results_of(2, 1, body)
    found = results[0]
    assert np.array_equal(np.isnan(found), np.isnan(a @ b)) and np.array_equal(np.isinf(found), np.isinf(a @ b))


def test_memory_is_stated_and_capped():
    """A smaller allowance gives a plan that keeps within it, and the same product."""
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((2, 96, 96))

    def body(context):
        x, y = (tw.linalg.matrix(v, context=context) for v in (a, b))
        free = tw.linalg.plan_matmul(x, y, algorithm="broadcast", panel=64)
        tight = tw.linalg.plan_matmul(x, y, memory=free.memory_bytes // 4)
        c = tw.linalg.matmul(x, y, memory=free.memory_bytes // 4)
        return free, tight, c.report.plan, c.gather()

    results = results_of(2, 1, body)
    free, tight, used, found = results[0]
    assert tight.memory_bytes <= free.memory_bytes // 4 and used == tight == results[1][1]
    assert close(found, a @ b, "f8")


def test_the_least_memory_is_said():
    """Too little is refused on every rank before anything is allocated; what the error says is enough."""

    def body(context):
        x, y = (tw.linalg.matrix((30, 30), init=1.0, context=context) for _ in range(2))
        with pytest.raises(tw.ConfigError, match=r"memory: given 3 bytes; allowed: at least \d+") as refused:
            tw.linalg.matmul(x, y, memory=3)
        least = int(str(refused.value).split("at least ")[1].split(",")[0])
        return least, tw.linalg.matmul(x, y, memory=least).report.plan.memory_bytes

    results = results_of(2, 1, body)
    assert results[0] == results[1] and results[0][0] == results[0][1] > 0


def test_a_plan_can_be_given_and_explained():
    def body(context):
        x, y = (tw.linalg.matrix((40, 40), init=1.0, context=context) for _ in range(2))
        plan = tw.linalg.plan_matmul(x, y)
        c = tw.linalg.matmul(x, y, plan=plan)
        return plan, plan.explain(), c.report, c.gather()

    results = results_of(2, 1, body)
    plan, text, report, found = results[0]
    assert "plans were simulated with the machine's numbers" in text and str(plan.panel) in text
    assert (report.plan.algorithm, report.plan.panel) == (plan.algorithm, plan.panel)
    assert report.time_s > 0 and report.parts is not None and np.all(found == 40)
    assert plan.predicted_s == min(seconds for seconds, _, _ in plan.compared) or plan.moved == ()


@pytest.mark.parametrize("mirrored", [False, True])
def test_auto_compares_panels_of_the_common_dimension(mirrored):
    """Also where one operand must move for them; where it lies so already, they are compared once."""

    def body(context):
        a, b = (tw.linalg.matrix((200, 200), layout=name, context=context) for name in ("rows", "columns"))
        c = tw.linalg.matrix((200, 200), layout="columns" if mirrored else "rows", context=context)
        moved = tw.linalg.plan_matmul(a, b, c)
        same = tw.linalg.plan_matmul(*[tw.linalg.matrix((200, 200), layout=c.layout, context=context) for _ in "ab"], c)
        return [{text.split()[0].strip(",") for _, _, text in plan.compared} for plan in (moved, same)]

    results = results_of(2, 1, body)
    moved, same = results[0]
    assert moved == {"broadcast", "wavefront", "summa"} and same == {"broadcast", "wavefront"}


@pytest.mark.parametrize("algorithm", ["broadcast", "wavefront", "summa"])
def test_tasks_of_any_size_give_the_same_product(algorithm):
    a, b = np.random.default_rng(8).standard_normal((2, 60, 60))

    def body(context):
        x, y = (tw.linalg.matrix(v, layout=name, context=context) for v, name in ((a, "rows"), (b, "columns")))
        plan = tw.linalg.plan_matmul(x, y, algorithm=algorithm, panel=16)
        made = [tw.linalg.matmul(x, y, plan=dataclasses.replace(plan, task_flops=f)) for f in (1e3, 1e5, 1e12)]
        return [c.report.plan.task_flops for c in made], [c.gather() for c in made]

    results = results_of(2, 1, body)
    tasks, found = results[0]
    assert tasks == [1e3, 1e5, 1e12] and all(close(c, a @ b, "f8") for c in found)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (32, 128, 3000), (1, 100000, 3), (5000, 4000, 3000)])
def test_products_are_measured_as_pieces_of_a_larger_one(shape):
    """Of any shape, with bounded memory; how the operands lie is a rate of its own."""
    rows, columns, _ = shape
    measured = [
        product_rate(np.dtype("f4"), *shape, whole, by_rows, adds).amount_s
        for whole in (None, (9 * rows, columns), (rows, 9 * columns), (rows, 10**9))
        for by_rows, adds in ((False, False), (True, True))
    ]
    assert all(0 < seconds < 1e-3 for seconds in measured)


@pytest.mark.parametrize("ranks, layout", [(4, "cyclic"), (2, "rows")])
def test_narrow_blocks_are_compared_with_wider_ones(ranks, layout):
    """By choice or by prediction; a memory for no copies keeps them as they are."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(20, 140)), rng.normal(size=(140, 30))

    def body(context):
        x, y = (tw.linalg.matrix(w, layout=layout, block=1, context=context) for w in (a, b))
        free = tw.linalg.plan_matmul(x, y, algorithm="summa")
        texts = [text for _, _, text in free.compared]
        assert 0 < sum("in wider blocks" in text for text in texts) < len(texts)
        for wide in (False, True):
            plan = dataclasses.replace(free, wide_blocks=wide)
            c = tw.linalg.matmul(x, y, plan=plan)
            used = c.report.plan
            assert used.wide_blocks == wide and ("B" in used.moved) == wide, used
            assert c.report.prediction is None or c.report.prediction.time_s > 0
            c = c.gather()
            assert c is None or np.allclose(c, a @ b)
        least = min(memory for _, memory, _ in free.compared)
        return tw.linalg.plan_matmul(x, y, algorithm="summa", memory=least).wide_blocks

    assert not any(results_of(ranks, 1, body))
