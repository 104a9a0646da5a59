"""Runs over MPI equal plain loops, bit for bit."""

import itertools

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])
SCHEMES = list(itertools.product(("hyperplane", "vertical"), ("blocking", "overlapping")))


@tw.nest
def two(A, B, i, j, *, c=0.3):
    A[i, j] = c * A[i-1, j] + 0.5 * A[i, j-1] - A[i-1, j-1] * 0.25 + B[i+1, j]


@tw.nest
def three(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-2, k]) + np.sqrt(A[i, j, k-1])


@tw.nest
def four(A, i, j, k, l):
    A[i, j, k, l] = 0.4 * A[i-1, j, k, l] + 0.3 * A[i, j-1, k, l] + A[i, j, k-1, l-1] * 0.2 + A[i, j, k, l]


CASES = {2: (two, (13, 17)), 3: (three, (7, 9, 11)), 4: (four, (4, 5, 3, 7))}


@pytest.fixture(scope="module")
def contexts():
    return {threads: tw.Context(threads=threads) for threads in (1, 2, 3)}


@pytest.fixture(scope="module")
def plain():
    """Start values and plain-loop results, computed once."""
    made = {}
    for dims, (nest, shape) in CASES.items():
        rng = np.random.default_rng(dims)
        arrays = {name: (rng.random(shape) + 1).astype("f4") for name in nest.arrays}
        arrays[nest.arrays[0]][(1,)*dims] = np.nan  # propagates as in loops
        result = {name: a.copy() for name, a in arrays.items()}
        nest.reference(nest.iteration_box(shape), result, {"c": 0.3} if dims == 2 else {})
        made[dims] = arrays, result[nest.arrays[0]]
    return made


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dims", [2, 3, 4])
def test_every_scheme(contexts, plain, dims, threads):
    context = contexts[threads]
    nest, shape = CASES[dims]
    arrays, expected = plain[dims]
    for (grouping, schedule), lookahead in itertools.product(SCHEMES, (1, 2, 4)):
        fields = {name: tw.field(shape, "f4", init=a, context=context) for name, a in arrays.items()}
        report = tw.run(
            nest,
            context=context,
            plan={
                "grouping": grouping, "schedule": schedule, "threads": threads, "lookahead": lookahead,
                "chunk_bytes": 64,
            },
            **fields,
        )
        whole = fields[nest.arrays[0]].gather()
        if context.rank == 0:
            same = whole.view("u4") == expected.view("u4")
            assert same.all(), f"{(~same).sum()} points differ, first at {np.argwhere(~same)[0]}: {report.plan}"
            assert len(report.timeline.events) > 0
        else:
            assert whole is None and len(report.timeline.events) == 0


def test_any_grid_and_mapping_dimension(contexts, plain):
    context = contexts[2]
    nest, shape = CASES[3]
    arrays, expected = plain[3]
    p = context.size
    grids = {
        g
        for a in range(1, p + 1)
        if p % a == 0
        for b in range(1, p // a + 1)
        if (p // a) % b == 0
        for g in [(a, b, p // a // b)]
    }
    for grid, mapping_dim in itertools.product(sorted(grids), range(3)):
        A = tw.field(shape, "f4", init=arrays["A"], context=context)
        report = tw.run(nest, A=A, context=context, plan={"grid": grid, "mapping_dim": mapping_dim, "threads": 2})
        assert report.plan.grid == grid and report.plan.mapping_dim == mapping_dim
        whole = A.gather()
        if context.rank == 0:
            assert np.array_equal(whole.view("u4"), expected.view("u4")), f"{grid} {mapping_dim}"


def test_one_dimension_and_more_ranks_than_points(contexts):
    @tw.nest
    def chain(A, i):
        A[i] = A[i-1] * 3 + A[i-2] + i

    for n in (1, 2, 3, 5, 29):
        start = np.arange(n, dtype="i4")
        A = tw.field((n,), "i4", init=start, context=contexts[2])
        tw.run(chain, A=A, context=contexts[2])
        whole = A.gather()
        chain.reference(chain.iteration_box((n,)), {"A": start})
        assert whole is None or np.array_equal(whole, start)


def test_numpy_inputs_and_two_nests_on_one_field(contexts, plain):
    context = contexts[1]
    arrays, expected = plain[2]

    @tw.nest
    def add(A, B, i, j):
        A[i, j] = A[i, j-1] + B[i, j]

    A = tw.field((13, 17), "f4", init=arrays["A"], context=context)
    tw.run(two, A=A, B=arrays["B"], context=context)
    after = expected.copy()
    tw.run(add, A=A, B=arrays["B"], context=context, plan={"grid": (context.size, 1)})
    add.reference(add.iteration_box((13, 17)), {"A": after, "B": arrays["B"]})
    whole = A.gather()
    assert whole is None or np.array_equal(whole.view("u4"), after.view("u4"))


def test_over_narrows(contexts, plain):
    arrays, _ = plain[3]
    start = arrays["A"].copy()
    A = tw.field(start.shape, "f4", init=start, context=contexts[2])
    tw.run(CASES[3][0], A=A, over={"i": (2, 6), "k": (3, 4)}, context=contexts[2])
    i, j, k = three.iteration_box(start.shape)
    three.reference(((2, 6), j, (3, 4)), {"A": start})
    whole = A.gather()
    assert whole is None or np.array_equal(whole.view("u4"), start.view("u4"))


def test_plan_is_a_value(contexts, tmp_path, plain):
    context = contexts[1]
    A = tw.field((7, 9, 11), "f4", init=plain[3][0]["A"], context=context)
    plan = tw.plan(three, A=A, context=context)
    plan.save(tmp_path / "plan.json")
    again = tw.Plan.load(tmp_path / "plan.json")
    assert again == plan
    again.lookahead = 3
    report = tw.run(three, A=A, plan=again, context=context)
    assert report.plan == again and report.plan.lookahead == 3


def test_repeated_runs_continue_from_the_field(contexts, plain):
    start = plain[2][0]["A"].copy()
    B = plain[2][0]["B"]
    A = tw.field(start.shape, "f4", init=start, context=contexts[2])
    for _ in range(3):
        tw.run(two, A=A, B=B, c=0.1, context=contexts[2])
        two.reference(two.iteration_box(start.shape), {"A": start, "B": B}, {"c": 0.1})
    whole = A.gather()
    assert whole is None or np.array_equal(whole.view("u4"), start.view("u4"))


def test_report(contexts, plain, tmp_path):
    context = contexts[2]
    A = tw.field((7, 9, 11), "f4", init=plain[3][0]["A"], context=context)
    report = tw.run(three, A=A, context=context, plan={"grid": (1, context.size, 1), "mapping_dim": 0})
    assert report.points == 6 * 7 * 10 and report.measured.time_s > 0
    assert report.points_per_s == pytest.approx(report.points / report.measured.time_s)
    assert ("overlap ratio" in str(report)) == (context.size > 1) and "<table>" in report._repr_html_()
    assert np.isnan(report.overlap_ratio) == (context.size == 1)
    if context.size > 1:
        assert 0 <= report.overlap_ratio <= 1
    if context.rank == 0:
        events = report.timeline.events
        assert sorted(set(events["rank"])) == list(range(context.size))
        assert (events["end_s"] >= events["begin_s"]).all() and events["begin_s"].min() == 0
        assert len(report.lanes) == context.size * report.threads


@pytest.mark.mpi(ranks=[2, 3, 4])
def test_mpi4py_communicators():
    MPI = pytest.importorskip("mpi4py.MPI")
    world = MPI.COMM_WORLD
    half = world.Split(world.rank % 2, world.rank)
    context = tw.Context(comm=half, threads=1)
    assert (context.rank, context.size) == (half.rank, half.size)
    start = np.random.default_rng(world.rank % 2).random((9, 10))
    A = tw.field(start.shape, init=start, context=context)
    B = np.ones(start.shape)
    tw.run(two, A=A, B=B, context=context)
    two.reference(two.iteration_box(start.shape), {"A": start, "B": B}, {"c": 0.3})
    whole = A.gather()
    assert whole is None or np.array_equal(whole, start)
    half.Free()


@tw.nest
def in_time(A, t, x):
    A[t, x] = 0.25 * A[t-1, x-1] + 0.5 * A[t-1, x] + 0.25 * A[t-1, x+1]


def test_a_long_loop_added_to_a_short_one(contexts):
    """One rank computes: the box of t and x + t would be 100 times the array."""
    context, shape = contexts[1], (20000, 200)
    start = np.random.default_rng(1).random(shape[1])
    A = tw.field(shape, "f8", init=lambda t, x: np.where(t == 0, start[x], 0.5), context=context)
    report = tw.run(in_time, A=A, context=context)
    whole = A.gather()
    if context.rank == 0:
        expected = np.full(shape, 0.5)
        expected[0] = start
        for t in range(1, shape[0]):
            expected[t, 1:-1] = 0.25 * expected[t-1, :-2] + 0.5 * expected[t-1, 1:-1] + 0.25 * expected[t-1, 2:]
        assert np.array_equal(whole, expected)
    assert report.plan.memory_bytes < 1.5 * 8 * shape[0] * shape[1]
    wide = tw.field((300, 400), "f8", init=lambda t, x: np.where(t == 0, x, 0.5), context=context)
    again = tw.field((300, 400), "f8", init=lambda t, x: np.where(t == 0, x, 0.5), context=context)
    tw.run(in_time, A=wide, context=context)
    tw.run(
        in_time, A=again, context=context, plan={"grid": (1, 1) if context.size == 1 else (context.size, 1)}
    )  # as it was asked for
    assert np.array_equal(wide.gather(), again.gather())
