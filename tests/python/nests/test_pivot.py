"""Nests with a pivot: row k and column k of what a step writes. Plain loops, bit for bit, on ranks of one process."""

import numpy as np
import pytest

import tilewave as tw
from local_ranks import refused_on_all, results_of


@tw.nest
def paths(D, k, i, j):
    D[i, j] = min(D[i, j], D[i, k] + D[k, j])


def test_numpy_arrays_in_any_order_of_memory(seed):
    values = np.random.default_rng(seed).random((75, 65)) - 0.01
    expected = values.copy()
    paths.reference([(0, 65), (0, 75), (0, 65)], {"D": expected})
    for order in ("C", "F", "reversed", "unaligned"):
        D = values.copy()
        given = np.asfortranarray(D) if order == "F" else D[::-1, ::-1].copy()[::-1, ::-1] if order == "reversed" else D
        if order == "unaligned":
            given = np.frombuffer(bytearray(D.nbytes + 1), np.uint8)[1:].view("f8").reshape(D.shape)
            given[...] = D
        tw.run(paths, D=given)
        assert np.array_equal(given, expected), order


def test_rows_that_lie_backwards_are_timed_as_they_lie():
    """A kernel that goes down in memory, on memory of its size, which it may not leave."""

    @tw.nest
    def scattered(A, k, i, j):
        z = A[k, k]  # noqa: F841
        A[i, j] = i + j

    for shape in ((6, 17), (9, 32)):
        A = np.ones(shape, "c8")[::-1, ::-1]
        tw.run(scattered, A=A)
        assert np.array_equal(A, np.add.outer(*map(np.arange, shape)))


def test_old_and_new_rows_differ():
    """A negative cycle changes row and column k in step k itself."""
    D = np.array([[1.0, 5.0, 9.0], [2.0, -3.0, 4.0], [7.0, 1.0, -2.0]])
    expected = D.copy()
    paths.reference([(0, 3)] * 3, {"D": expected})
    once = np.minimum.reduce([D, *(D[:, [k]] + D[[k], :] for k in range(3))])
    assert not np.array_equal(expected, once)
    tw.run(paths, D=D)
    assert np.array_equal(D, expected)


@pytest.mark.parametrize("ranks,lanes", [(1, 2), (3, 1)])
def test_values_are_reduced_at_each_visit(ranks, lanes):
    start = np.random.default_rng(ranks).integers(-2, 40, (20, 20)).astype("f8")
    D, seen = start.copy(), np.empty((20, 20, 20))
    for k, i, j in np.ndindex(seen.shape):
        seen[k, i, j] = D[i, k] + D[k, j]
        D[i, j] = min(D[i, j], seen[k, i, j])
    wanted = {"sum": tw.sum("d"), "least": tw.min("d"), "where": tw.argmin("d")}
    with_local = tw.nest_from("def paths(D, k, i, j):\n    d = D[i, k] + D[k, j]\n    D[i, j] = min(D[i, j], d)")

    def body(context):
        field = tw.field(start, context=context)
        report = tw.run(with_local, D=field, reduce=wanted, context=context)
        return field.gather(), report.results

    found, results = results_of(ranks, lanes, body)[0]
    assert np.array_equal(found, D) and results["sum"] == seen.sum() and results["least"] == seen.min()
    assert results["where"] == np.unravel_index(seen.argmin(), seen.shape)


def test_rows_that_bounds_leave_alone_are_kept_once():
    call = {"over": {"i": ("k+1", 64), "j": ("k+1", 64)}}
    kept = [tw.run(paths, D=np.ones((64, 64)), **more).buffer_bytes for more in ({}, call)]
    assert kept[1] == kept[0] // 2


def test_errors_name_the_point():
    @tw.nest
    def strict(A, k, i, j):
        if A[k, k] == 0.0:
            raise ZeroDivisionError("singular")
        A[i, j] = A[i, j] - A[i, k] / A[k, k] * A[k, j]

    def body(context):
        A = tw.field(
            (9, 9),
            "f8",
            init=np.diag([1.0] * 4 + [0.0] * 5),
            context=context,
        )
        with pytest.raises(
            tw.KernelError, match=r"'strict' raised ZeroDivisionError\('singular'\) at k=\d+, i=\d+, j="
        ):
            tw.run(strict, A=A, over={"i": ("k+1", 9), "j": ("k+1", 9)})

    results_of(3, 1, body)


@pytest.mark.parametrize(
    "text",
    [
        "A[i, j] = 1.0\n    A[i, j] = A[i, k]",
        "if A[i, j] > 0.0:\n        A[i, j] = 1.0\n    x = A[k, j]\n    A[i, j] = x",
    ],
)
def test_pivots_are_read_before_the_element_is_written(text):
    with pytest.raises(tw.ConfigError, match="is read behind an assignment to 'A'"):
        tw.nest_from(f"def late(A, k, i, j):\n    {text}")


@pytest.mark.parametrize(
    ("head", "text"),
    [
        ("A, i, k, j", "A[i, j] = A[i, k] + A[k, j]"),  # k is not the outermost loop
        ("A, k, i, j", "A[i, j] = A[i, k+1] + A[k, j]"),
        ("A, k, i, j", "A[i, k] = A[i, j]"),
        ("A, k, i, j", "A[i, j] = A[j, i] + A[k, j]"),
    ],
)
def test_others_are_no_pivots(head, text):
    with pytest.raises(tw.ConfigError, match="transposed access"):
        tw.nest_from(f"def other({head}):\n    {text}")


def test_what_a_pivot_is_not_run_with():
    def refused(text, **given):
        refused_on_all(2, lambda c: tw.run(paths, D=tw.field((5, 5), "f8", context=c), context=c, **given), text)

    refused("lacks index 'k'", reduce={"x": tw.max("D")})
    refused("periodic= was given", periodic=("i",))
    refused("steps= was given", steps=0)
    refused("lookahead 2 was given for a nest with a pivot", plan={"lookahead": 2})
    refused("generator sweep was given; allowed for this nest: pivot", plan={"generator": "sweep"})
    refused("tile (1, 2) has 2 entries", plan={"tile": (1, 2)})
    refused("factors (1, 1, 2) were given for a nest with a pivot", plan={"factors": (1, 1, 2)})
    refused("grid (1, 1, 2) cuts dimension 2", plan={"grid": (1, 1, 2)})


def test_the_pivot_is_part_of_both_axes():
    @tw.nest
    def columns(A, k, i, j):
        A[i, j] = A[i, j] + A[i, k]

    with pytest.raises(tw.ConfigError, match=r"runs over \(0, 7\), .* over={'k': \(0, 4\)}"):
        tw.run(columns, A=np.ones((4, 7)))


def test_plan_and_schedule():
    D = np.ones((70, 70))
    plan = tw.plan(paths, D=D)
    report = tw.run(paths, D=D, plan=plan)
    assert report.plan == plan and report.points == 70**3 and report.loops["k"] == (0, 70)
    assert "kept for 32 steps" in str(report) and "kept for 32 steps" in plan.explain()
    assert plan.generator == "pivot" and plan.predicted.time_s > 0 and len(plan.predicted.timeline.events)
    schedule = tw.schedule(paths, D=D, plan=plan)
    assert schedule.functions == ("panel", "update") and tw.check(schedule) is None
    assert schedule.arrays == ("D", "kept rows of D")
    assert tw.predict(schedule).time_s == pytest.approx(plan.predicted.time_s, rel=0.5)
    assert tw.measure(True, nest=paths, D=D).kernels["paths"]["point_s"] > 0


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_bound_and_chained(seed, ranks):
    """As other nests: runs again, beside others, on fewer ranks and rows."""
    double = tw.nest_from("def double(D, i, j): D[i, j] = D[i, j] * 2")
    D = np.random.default_rng(seed).integers(1, 99, (37, 37))
    expected = [D.copy()]
    for _ in range(3):
        after = 2 * expected[-1]
        paths.reference([(0, 37)] * 3, {"D": after})
        expected.append(after)

    def body(context):
        field, given = tw.field(D.shape, D.dtype, D, context=context), {"context": context}
        nests = [tw.bind(double, D=field, **given), tw.bind(paths, D=field, **given)]
        for bound in nests:
            bound.run()
        found = [field.gather()]
        report = tw.chain(nests).run(times=2)
        assert report.points == 2 * (37**2 + 37**3)
        found.append(field.gather())
        fewer = {"grid": (1, (ranks + 1) // 2, 1), "tile": (5, 3, 11)}
        again = tw.field(D.shape, D.dtype, D, context=context)
        tw.run(paths, D=again, plan=fewer, **given)
        return [*found, again.gather()]

    one, three, again = results_of(ranks, 2, body)[0]
    assert np.array_equal(one, expected[1]) and np.array_equal(three, expected[3])
    paths.reference([(0, 37)] * 3, {"D": D})
    assert np.array_equal(again, D)


TABLES = [
    "sum(T[k, q] for q in range(2))",
    "max(T[i, q] for q in range(len(T))) + S[k]",
    "sum(T[q, j] for q in range(3))",
]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("table", TABLES)
def test_loops_in_bodies_and_strides(ranks, table):
    used = "T, S" if "S" in table else "T"
    nest = tw.nest_from(f"def closure(R, {used}, k, i, j): R[i, j] = R[i, j] + R[i, k] - R[k, j] + {table}")
    rng = np.random.default_rng(len(table))
    R, T, S = (rng.integers(-3, 4, shape) for shape in ((7, 7), (7, 7), (7,)))
    others, expected = {"T": T, "S": S} if "S" in used else {"T": T}, R.copy()
    loops = [range(0, 7, 2), range(1, 7, 3), range(7)[::-1]]
    for point in ((k, i, j) for k in loops[0] for i in loops[1] for j in loops[2]):
        nest.function(expected, *others.values(), *point)

    def body(context):
        field = tw.field((7, 7), R.dtype, R, context=context)
        over = {"k": (0, 7, 2), "i": (1, 7, 3)}
        tw.run(nest, R=field, **others, over=over, reverse=("j",), context=context)
        return field.gather()

    assert np.array_equal(results_of(ranks, 1, body)[0], expected)
