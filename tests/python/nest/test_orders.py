"""Arrays that a body reads in several orders of their subscripts, or with one index at several of them."""

import numpy as np
import pytest
from local_ranks import on_ranks, results_of

import tilewave as tw
from tilewave.errors import ConfigError


RANKS = (1, 2, 3, 4, 6)


def on_all(ranks, body, threads=1, without=None):
    """Results by rank; the first error is raised."""
    results, errors = on_ranks(ranks, threads, body, without=without)
    if any(errors):
        raise next(filter(None, errors))
    return results


def same_bits(got, expected):
    return got.dtype == expected.dtype and got.shape == expected.shape and got.tobytes() == expected.tobytes()


# What is read from a body.


@tw.nest
def distances(D, V, i, j):
    D[i, j] = abs(V[i] - V[j-1])


@tw.nest
def symmetric(R, S, i, j):
    R[i, j] = 0.5 * (S[i, j] + S[j, i]) + S[i, i] * S[j, j+1]


def test_views_of_a_nest():
    assert distances.arrays == ("D", "V") and distances.written == ("D",)
    assert distances.axes == {"D": ("i", "j")} and symmetric.axes == {"R": ("i", "j")}
    assert [(view.array, view.axes) for view in distances.views] == [("D", ("i", "j")), ("V", ("i",)), ("V", ("j",))]
    assert [(view.axes, view.lags) for view in symmetric.views[1:]] == [
        (("i", "j"), (0, 0)),
        (("j", "i"), (0, 0)),
        (("i", "i"), (0, 0)),
        (("j", "j"), (0, 1)),
    ]
    assert distances.dependences == symmetric.dependences == ()
    assert "reads V[i], V[j-1]" in repr(distances)


def test_the_box_follows_from_all_orders():
    assert distances.iteration_box({"D": (9, 9), "V": (5,)}) == ((0, 5), (1, 6))
    assert symmetric.iteration_box({"R": (20, 20), "S": (9, 6)}) == ((0, 6), (0, 5))
    with pytest.raises(ConfigError, match=r"'V'.*shape \(3, 4\).*rank 1"):
        distances.iteration_box({"D": (9, 9), "V": (3, 4)})


def test_places_on_the_diagonals_of_strided_arrays():
    whole = np.random.default_rng(1).random((30, 60))
    for S in (
        whole[::-1, ::2][:9],
        whole[3:25:2, 50:4:-3],
        np.asfortranarray(whole[:8, :13]),
        np.broadcast_to(whole[0, :12], (14, 12)),
    ):
        R, expected = np.zeros((20, 20)), np.zeros((20, 20))
        symmetric.reference(symmetric.iteration_box({"R": R.shape, "S": S.shape}), {"R": expected, "S": S})
        tw.run(symmetric, R=R, S=S)
        assert same_bits(R, expected)


def test_one_index_at_every_subscript():
    @tw.nest
    def trace(r, A, i):
        r[i] = A[i, i-2, i+1, i] - A[i+1, i, i, i]

    A = np.random.default_rng(2).random((7, 9, 8, 10))
    for given in (A, tw.field(A)):
        r = np.zeros(11)
        report = tw.run(trace, r=r, A=given)
        assert report.loops == {"i": (2, 6)}
        assert r.tolist() == [0, 0, *(A[i, i-2, i+1, i] - A[i+1, i, i, i] for i in range(2, 6)), 0, 0, 0, 0, 0]


# Fields.


@pytest.mark.parametrize("ranks", RANKS)
def test_a_field_stays_where_it_lies_and_is_read_anew(ranks):
    values = np.random.default_rng(3).random((23, 23))

    @tw.nest
    def relax(S, i, j):
        S[i, j] = 0.25 * (S[i-1, j] + S[i, j-1] + S[i+1, j] + S[i, j+1])

    @tw.nest
    def mix(R, S, i, j):
        R[i, j] = S[i, j] - S[j, i]

    def body(context):
        S, R = tw.field(values, context=context), tw.field((23, 23), "f8", context=context)
        for _ in range(3):
            tw.run(relax, S=S, context=context)
            where, version = S._storage.address, S._storage.version
            report = tw.run(mix, R=R, S=S, context=context)
            assert (S._storage.address, S._storage.version) == (where, version)
            plan = tw.plan(mix, R=R, S=S, context=context)
        return R.gather(), S.gather(), report, plan

    expected = values.copy()
    for _ in range(3):
        relax.reference(relax.iteration_box(expected.shape), {"S": expected})
    for rank, (R, S, report, plan) in enumerate(on_all(ranks, body)):
        if rank == 0:
            assert same_bits(S, expected) and same_bits(R, expected - expected.T)
        if ranks > 1:
            assert report.replicated == {"S": values.nbytes} and "copied whole     S (" in str(report)
            assert plan.memory_bytes > values.nbytes and "S whole (4.13 KiB)" in plan.explain()
            assert all(record["memory_bytes"] > values.nbytes for record in plan.ranked)


def test_a_field_in_c_order_on_one_rank_is_not_copied():
    V, D = tw.field(np.arange(50.0)), tw.field((50, 51), "f8")
    report = tw.run(distances, D=D, V=V)
    assert report.replicated == {} and "copied whole" not in str(report)
    assert same_bits(D.gather()[:, 1:], np.abs(np.arange(50.0)[:, None] - np.arange(50.0)))


def test_a_field_in_another_order_of_memory_is():
    @tw.nest
    def recurrence(A, i, j):
        A[i, j] = A[i-1, j] + A[i, j-1] - 0.5 * A[i-1, j-1]

    values = np.random.default_rng(4).random((40, 40))
    S, R = tw.field(values), tw.field((40, 39), "f8")
    tw.run(recurrence, A=S, plan={"row": (1, -1), "storage": "skewed"})
    recurrence.reference(recurrence.iteration_box(values.shape), {"A": values})
    report = tw.run(symmetric, R=R, S=S)
    expected = np.zeros((40, 39))
    symmetric.reference(symmetric.iteration_box({"R": expected.shape, "S": values.shape}), {"R": expected, "S": values})
    assert same_bits(R.gather(), expected) and report.replicated == {"S": values.nbytes}


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_sequence_against_itself(ranks):
    """Tables, reductions, scratch and windows beside an array in two orders."""

    @tw.nest
    def align(H, score, a, i, j):
        H[i, j] = max(H[i-1, j-1] + score[a[i-1], a[j-1]] * (i != j), H[i-1, j] - 2, H[i, j-1] - 2, 0)

    rng = np.random.default_rng(5)
    a, score = rng.integers(0, 4, 120, "i1"), np.where(np.eye(4), 3, -2).astype("i4")
    expected = np.zeros((121, 121), "i4")
    align.reference(((1, 121), (1, 121)), {"H": expected, "a": a, "score": score})

    def body(context):
        whole = tw.field((121, 121), "i4", context=context)
        given = a if context.rank % 2 == 0 and ranks == 1 else tw.field(a, context=context)
        wanted = {"best": tw.max("H"), "sum": tw.sum("H"), "where": tw.argmax("H")}
        reports = [
            tw.run(align, H=H, score=score, a=given, context=context, reduce=wanted)
            for H in (whole, tw.field((121, 121), "i4", keep="window", context=context), tw.scratch("i4"))
        ]
        return whole.gather(), [report.results for report in reports], [report.loops for report in reports]

    for rank, (whole, results, loops) in enumerate(on_all(ranks, body)):
        assert rank or same_bits(whole, expected)
        inside = {index: range(*bounds) for index, bounds in loops[2].items()}
        assert inside == {"i": range(1, 120), "j": range(1, 120)}  # scratch is as long as the sequence
        for found, part in zip(results, (expected, expected, expected[:120, :120])):
            assert found["best"] == part.max() and found["sum"] == part.sum()
            assert found["where"] == np.unravel_index(part.argmax(), part.shape)


def test_one_rank_computes_for_all():
    @tw.nest
    def total(s, V, S, i, j):
        s[i] = s[i-1] + V[i] * V[j] + S[i, j] * S[j, i]

    rng = np.random.default_rng(6)
    V, S, expected = rng.random(13), rng.random((12, 14)), np.zeros(15)
    total.reference(total.iteration_box({"s": (15,), "V": (13,), "S": (12, 14)}), {"s": expected, "V": V, "S": S})

    def body(context):
        s = tw.field((15,), "f8", context=context)
        report = tw.run(total, s=s, V=tw.field(V, context=context), S=tw.field(S, context=context), context=context)
        assert report.on_one_rank and report.replicated == {} and report.plan.memory_bytes >= V.nbytes + S.nbytes
        return s.gather()

    assert same_bits(on_all(3, body)[0], expected)


# Time.


@tw.nest
def pulled(F, x, t, i, j):
    """Every body pulls every other one."""
    F[t+1, i, j] = 0.5 * F[t, i, j] + x[t, j] - x[t, i]


@tw.nest
def moved(x, F, t, i):
    """By the two beside it."""
    x[t+1, i] = x[t, i] + 0.1 * (F[t+1, i, i+1] + F[t+1, i, i-1])


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_nests_in_turn(ranks):
    """What one nest writes, the next one of the time step reads in two orders."""
    start, steps = np.random.default_rng(7).random(11), 6
    x, F = start.copy(), np.zeros((11, 12))
    for _ in range(steps):
        for i in range(11):
            for j in range(11):
                F[i, j] = 0.5 * F[i, j] + x[j] - x[i]
        for i in range(1, 11):
            x[i] = x[i] + 0.1 * (F[i, i+1] + F[i, i-1])

    def body(context):
        fields = tw.field(start, context=context), tw.field((11, 12), "f8", context=context)
        tw.run((pulled, moved), x=fields[0], F=fields[1], steps=steps, context=context)
        return fields[0].gather(), fields[1].gather()

    found = on_all(ranks, body)[0]
    assert same_bits(found[0], x) and same_bits(found[1], F)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("history", [False, True])
def test_coefficients_in_two_orders_in_time(ranks, history):
    """In many steps, run block by block, with earlier time steps; time is a dimension of some inputs."""
    body_text = (
        "def wave(u, c, g, t, i, j): u[t+1, i, j] = 0.5 * u[t, i, j] + c[i] * c[j-1] * u[t, i-1, j] "
        "+ 0.1 * g[t, i] * g[t+1, j]" + (" - 0.1 * u[t-1, i, j]" if history else "")
    )
    nest, rng, steps = tw.nest_from(body_text), np.random.default_rng(8), 150
    u, c, g = rng.random((7, 9)), rng.random(8), rng.random((steps + 1, 10))
    expected = np.stack([u] * (steps + 2))  # time step -1 first
    for t in range(steps):
        expected[t+2] = expected[t+1]
        for i in range(1, 7):
            for j in range(1, 9):
                value = (
                    0.5 * expected[t+1, i, j]
                    + c[i] * c[j-1] * expected[t+1, i-1, j]
                    + 0.1 * g[t, i] * g[t+1, j]
                )
                expected[t+2, i, j] = value - 0.1 * expected[t, i, j] if history else value

    def body(context):
        made = tw.field(u, context=context)
        given = {"c": c, "g": g}
        if context.size % 2 == 0:
            given = {name: tw.field(value, context=context) for name, value in given.items()}
        report = tw.run(nest, u=made, **given, steps=steps, context=context)
        assert nest.time == "t" and report.loops == {"t": (0, steps), "i": (1, 7), "j": (1, 9)}
        return made.gather()

    assert same_bits(on_all(ranks, body)[0], expected[-1])


# What is refused.


def test_time_must_be_first_in_all_orders_of_what_lacks_it():
    @tw.nest
    def heat(u, f, t, i, j):
        u[t+1, i, j] = u[t, i, j] + f[t, i] * f[j, i]

    u = np.zeros((4, 5))
    with pytest.raises(ConfigError, match=r"`f\[j, i\]`: array 'f' has no dimension for time index 't'.*first.*2 dim"):
        tw.run(heat, u=u, f=np.ones(5), steps=3)
    tw.run(heat, u=u, f=np.ones((6, 5)), steps=3)
    assert u.tolist() == [[3.0] * 5] * 4
    with pytest.raises(ConfigError, match=r"f\[t, i\] leaves array 'f' of shape \(6, 5\); allowed: up to 6"):
        tw.run(heat, u=u, f=np.ones((6, 5)), steps=7)


def test_memory_that_a_written_array_has():
    D = np.zeros((9, 9))
    with pytest.raises(ConfigError, match="arrays 'V' and 'D' share memory"):
        tw.run(distances, D=D, V=D[0])
    with pytest.raises(ConfigError, match="arrays 'S' and 'R' share memory"):
        tw.run(symmetric, R=D, S=D.T)
    field = tw.field((9, 9), "f8")
    with pytest.raises(ConfigError, match="'R' and 'S' share memory: they are one field"):
        tw.run(symmetric, R=field, S=field)


def test_inputs_that_differ_between_ranks():
    def body(context):
        D = tw.field((9, 9), "f8", context=context)
        with pytest.raises(ConfigError, match="differ"):
            tw.run(distances, D=D, V=np.full(9, float(context.rank)), context=context)

    on_all(2, body)


def test_kernels_differ_by_order_only():
    made = [
        tw.nest_from(f"def body(R, S, i, j): R[i, j] = {text}")
        for text in ("S[i, j] - S[j, i]", "S[j, i] - S[i, j]", "S[i, j] - S[i, i]")
    ]
    S = np.random.default_rng(9).random((6, 6))
    context = tw.Context()
    for nest, expected in zip(made * 2, [S - S.T, S.T - S, S - np.diag(S)[:, None]] * 2):
        R = np.zeros((6, 6))
        tw.run(nest, R=R, S=S, context=context)
        assert same_bits(R, expected)


def test_many_orders():
    """As many as a nest may have places."""
    reads = " + ".join(
        f"S[{a}{o:+d}, {b}{p:+d}]" for a, b in ("ij", "ji", "ii", "jj") for o in (1, 2) for p in (0, 1, 3, 4)
    )
    nest = tw.nest_from(f"def body(R, S, i, j): R[i, j] = {reads}")
    S = np.random.default_rng(10).random((12, 15))
    R, expected = np.zeros((8, 9)), np.zeros((8, 9))
    box = nest.iteration_box({"R": R.shape, "S": S.shape})
    nest.reference(box, {"R": expected, "S": S})
    tw.run(nest, R=R, S=S)
    assert same_bits(R, expected) and len(nest.views) == 1 + 2 + 2 * 8 - 2 * 2


@pytest.mark.parametrize("ranks", [1, 2])
def test_plans_for_numpy_arrays_and_for_fields_are_told_apart(ranks):
    def body(context):
        D = tw.field((30, 30), "f8", context=context)
        V = np.arange(30.0)
        moved = tw.field(V, context=context)
        found = [tw.run(distances, D=D, V=given, context=context).replicated for given in (V, moved, V, moved)]
        assert found == [{}, {"V": 240}] * 2 if ranks > 1 else found == [{}] * 4

    on_all(ranks, body)


def test_a_grid_that_cuts_what_stays_whole_names_the_array():
    transposed = tw.nest_from("def transposed(C, D, i, j):\n    C[i, j] = D[j, i]\n")
    diagonal = tw.nest_from("def diagonal(s, A, i, j):\n    s[i, j] = s[i, j-1] + A[j]\n    A[j] = s[i-1, j]\n")

    def body(context):
        C, D = (tw.field((6, 6), context=context) for _ in range(2))
        with pytest.raises(tw.ConfigError, match=r"grid \(1, 3\) cuts dimension 1, .* array 'D' has it before"):
            tw.run(transposed, C=C, D=D, plan={"grid": (1, 3)})
        A = tw.field((6,), context=context)
        with pytest.raises(tw.ConfigError, match=r"grid \(3, 1\) cuts dimension 0, which stays whole"):
            tw.run(diagonal, s=C, A=A, plan={"grid": (3, 1)})

    results_of(3, 1, body)
