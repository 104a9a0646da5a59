"""Planning over MPI: the same plan on every rank, predictions beside measurements, and what may go wrong."""

import json

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])
PARTS = ("fill_s", "compute_s", "pack_s", "post_s", "wait_s", "hand_over_s", "drain_s")


@tw.nest
def roots(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i - 1, j, k]) + np.sqrt(A[i, j - 1, k]) + np.sqrt(A[i, j, k - 1])


@tw.nest
def counts(A, i, j):
    if A[i - 1, j] > 1e30:
        raise ValueError("too large")
    A[i, j] = 1.0 / (A[i - 1, j] - A[i, j - 1] + 1.0)


@tw.nest
def inverses(A, i, j):
    A[i, j] = 0.5 + 1.0 / (A[i - 1, j] + A[i, j - 1])


@tw.nest
def adds(A, B, i, j):
    A[i, j] = 0.5 * A[i - 1, j] + 0.25 * A[i, j - 1] + B[i, j]


@tw.nest
def sums(s, A, i, j):
    s[i] = s[i - 1] + A[i, j]


@tw.nest
def relaxes(u, f, t, i, j):
    u[t + 1, i, j] = 0.25 * (u[t + 1, i - 1, j] + u[t + 1, i, j - 1] + u[t, i + 1, j] + u[t, i, j + 1]) + f[i, j]


@pytest.fixture(scope="module")
def context():
    return tw.Context(threads=2)


def cube(context, n=20):
    return tw.field((n, n, n), "f4", init=lambda i, j, k: 1.0 + 0 * i, context=context)


def forget(context):
    """What this rank has prepared and planned."""
    context._prepared.clear()
    context._plans.clear()


def everywhere(context, value):
    """Whether a value, plain data, is the same on all ranks."""
    text = json.dumps(value, sort_keys=True)
    return context._core.broadcast(text.encode()).decode() == text


def test_ranks_plan_alike_and_runs_take_the_plan(context):
    A = cube(context)
    plan = tw.plan(roots, A=A, context=context)
    assert everywhere(context, [plan.choices(), plan.predicted.time_s, plan.memory_bytes, plan.ranked])
    assert plan.predicted.time_s > 0 and plan.ranked[0]["choices"]["tile"] == plan.tile
    times = [getattr(plan.predicted.parts, name) for name in PARTS]
    assert sum(times) == pytest.approx(plan.predicted.parts.total_s, rel=1e-6)
    report = tw.run(roots, A=A, context=context)
    assert report.plan == plan and report.predicted.time_s == plan.predicted.time_s
    assert (
        "predicted time" in str(report) and "predicted | measured" in report._repr_html_()
        if context.rank == 0
        else True
    )
    assert (report.measured.parts is not None) == (context.rank == 0)


def test_explain_says_what_was_chosen_from(context):
    plan = tw.plan(roots, A=cube(context), context=context, plan={"lookahead": 2})
    text = plan.explain()
    for words in (
        "tile",
        "memory",
        "on one lane while all compute",
        "hand-over",
        "lookahead = 2",
        "the best first",
        "Not tried",
    ):
        assert words in text, words
    assert all(record["reason"] in text for record in plan.ranked)


def test_fewer_ranks_compute_and_all_have_the_result(context):
    """A nest on part of the ranks and one on all, in turn over the same fields, which move between them."""
    start = np.random.default_rng(7).random((9, 7, 11))
    A, plain = tw.field(start.shape, "f8", init=start, context=context), start.copy()
    for few in range(1, context.size + 1):
        for grid in ((few, 1, 1), (1, few, 1), (1, 1, context.size)):
            report = tw.run(roots, A=A, context=context, plan={"grid": grid, "mapping_dim": 0 if grid[0] == 1 else 2})
            assert report.plan.grid == grid and report.ranks == np.prod(grid)
            for i, j, k in np.ndindex(8, 6, 10):
                i, j, k = i + 1, j + 1, k + 1
                plain[i, j, k] = np.sqrt(plain[i - 1, j, k]) + np.sqrt(plain[i, j - 1, k]) + np.sqrt(plain[i, j, k - 1])
            whole = A.gather()
            assert context.rank or (whole == plain).all(), grid
    # A body that would divide by 0 in memory that is left empty is still measured.
    B = tw.field((6, 40), "f8", init=lambda i, j: 1.0 + i + j, context=context)
    for grid in ((1, 1), (1, context.size)):
        tw.run(inverses, A=B, context=context, plan={"grid": grid, "mapping_dim": 0})
        assert "raised" not in tw.plan(inverses, A=B, context=context).notes["rate"]["note"]


def test_rows_go_down_what_ranks_leave_longer(context):
    seed, steps, n = 11, 5, context.size
    random = np.random.default_rng(seed)
    u, f = random.random((2, 120, 120))
    fields = {
        "u": tw.field(u.shape, "f8", init=u, context=context),
        "f": tw.field(f.shape, "f8", init=f, context=context),
    }
    for grid, row in (((1, n, 1), (0, 1, -1)), ((1, 1, n), (0, -1, 1))):
        report = tw.run(relaxes, **fields, steps=steps, context=context, plan={"grid": grid, "storage": "skewed"})
        for _ in range(steps):
            for i, j in np.ndindex(118, 118):
                u[i + 1, j + 1] = (
                    0.25 * (u[i, j + 1] + u[i + 1, j] + u[i + 2, j + 1] + u[i + 1, j + 2]) + f[i + 1, j + 1]
                )
        whole = fields["u"].gather()
        assert context.rank or (whole == u).all(), (seed, grid)
        assert n == 1 or (report.plan.storage, report.plan.row) == ("skewed", row), (grid, report.plan.row)


def test_how_messages_go_is_the_plan_s(context):
    A = cube(context, 24)
    want = None
    for choices in (
        {},
        {"helper": True, "poll_period_s": 0.0},
        {"helper": True, "schedule": "blocking"},
        {"synchronous": True},
        {"poll_period_s": 1e-6},
        {"schedule": "blocking", "synchronous": False},
    ):
        A = cube(context, 24)
        report = tw.run(roots, A=A, context=context, plan={"grid": (1, context.size, 1), "mapping_dim": 2, **choices})
        for name, value in choices.items():
            assert getattr(report.plan, name) == value, choices
        assert report.plan.threads <= max(context.threads, 1 + report.plan.helper)
        whole = A.gather()
        want = whole if want is None else want
        assert context.rank or (whole == want).all(), choices


def test_a_plan_from_a_file_is_obeyed_and_predicted(context, tmp_path):
    A = cube(context)
    plan = tw.plan(roots, A=A, context=context)
    plan.save(tmp_path / "plan.json")
    again = tw.Plan.load(tmp_path / "plan.json")
    assert (
        again == plan
        and again.predicted.time_s == plan.predicted.time_s
        and again.predicted.parts == plan.predicted.parts
    )
    assert again.explain() == plan.explain() and again.ranked == plan.ranked
    again.schedule = "blocking"
    report = tw.run(roots, A=A, plan=again, context=context)
    assert report.plan == again and report.predicted.time_s > 0 and "given as a whole" in report.plan.explain()


def test_an_edited_plan_that_cannot_be_is_refused(context):
    plan = tw.plan(roots, A=cube(context), context=context)
    plan.tile = (999, 1, 1)
    with pytest.raises(tw.ConfigError, match="largest block") as caught:
        tw.run(roots, A=cube(context), plan=plan, context=context)
    assert caught.value.agreed


@pytest.mark.mpi(ranks=[2])
def test_the_picture_of_both(context, tmp_path):
    report = tw.run(roots, A=cube(context), context=context)
    report.save_timeline(tmp_path / f"both{context.rank}.png")
    assert (tmp_path / f"both{context.rank}.png").exists() == (context.rank == 0)


def test_a_repeated_run_agrees_once(context):
    A = cube(context)
    tw.run(roots, A=A, context=context)
    calls = []
    whole, context.agree = context.agree, lambda *given: calls.append(given) or whole(*given)
    try:
        tw.run(roots, A=A, context=context)
    finally:
        context.agree = whole
    # One rank has nobody to agree with, and may go to the core at once.
    assert len(calls) == 1 or context.size == 1 and not calls


def test_what_one_rank_has_forgotten_all_plan_again(context):
    A = cube(context)
    plan = tw.plan(roots, A=A, context=context)
    if context.rank == context.size - 1:
        forget(context)
    assert tw.plan(roots, A=A, context=context).predicted.time_s > 0
    if context.rank == 0:
        forget(context)
        context._rates.clear()
    again = tw.plan(roots, A=A, context=context)
    assert everywhere(context, again.choices()) and plan.memory_bytes > 0
    tw.run(roots, A=A, context=context)


def test_ranks_whose_caches_hold_different_plans_plan_again(context):
    """One rank's array lies otherwise in the second call, so that in the third each finds a plan, and not the same
    one.
    """
    rows = np.ones((40, 40))
    columns = np.asfortranarray(rows) if context.rank == context.size - 1 else rows
    for turn, B in enumerate((rows, columns, rows)):
        A = tw.field((40, 40), "f8", init=lambda i, j: 1.0 + 0 * i, context=context)
        if turn == 1:
            context._rates.clear()
        report = tw.run(adds, A=A, B=B, context=context)
        assert everywhere(context, report.plan.choices())
        whole = A.gather()
        if whole is not None:
            plain = np.ones((40, 40))
            adds.reference(adds.iteration_box((40, 40)), {"A": plain, "B": rows})
            assert np.array_equal(whole, plain)


def test_a_body_that_raises_where_it_is_measured(context):
    A = tw.field((30, 30), "f8", init=lambda i, j: 1e31 + 0 * i, context=context)
    plan = tw.plan(counts, A=A, context=context)
    assert "not measured" in plan.notes["rate"]["note"] and "not measured" in plan.explain()
    assert everywhere(context, plan.choices())


@pytest.mark.mpi(ranks=[2, 3])
def test_one_rank_that_fails_while_planning(context, monkeypatch):
    """Wherever it fails, all raise, nobody waits, and the next call is fine."""
    from tilewave.nests.plan import choosing
    from tilewave.nests.plan import kernel_maker
    from tilewave.nests.plan import prepare

    places = ((choosing, "core_call"), (kernel_maker, "with_plan"), (choosing, "prepared_from"), (prepare, "bind_call"))
    for module, name in places:
        for rank in {0, context.size - 1}:
            forget(context)
            context._rates.clear()
            with monkeypatch.context() as patch:
                if context.rank == rank:

                    def fails(*given, **named):
                        raise ValueError("this rank alone")

                    patch.setattr(module, name, fails)
                with pytest.raises((tw.InternalError, ValueError), match="this rank alone"):
                    tw.plan(roots, A=cube(context), context=context)
            assert tw.plan(roots, A=cube(context), context=context).predicted.time_s > 0


@pytest.mark.mpi(ranks=[2, 3])
def test_a_rank_that_cannot_measure(context, monkeypatch):
    from tilewave.nests.plan import kernel_maker

    forget(context)
    context._rates.clear()
    with monkeypatch.context() as patch:
        if context.rank == 0:

            def fails(*given):
                raise MemoryError

            patch.setattr(kernel_maker, "sampled", fails)
        plan = tw.plan(roots, A=cube(context), context=context)
    assert everywhere(context, plan.choices()) and "not measured" in plan.notes["rate"]["note"]
    context._rates.clear()
    forget(context)


def test_ranks_that_plan_differently_are_told(context):
    if context.size == 1:
        return
    first = context.rank == 0
    for given in ({"lookahead": 1 + first}, {"threads": 1 + first}, {"schedule": "blocking"} if first else {}):
        with pytest.raises(tw.ConfigError, match="different arguments") as caught:
            tw.run(roots, A=cube(context), context=context, plan=given)
        assert caught.value.agreed and "Rank 0" in str(caught.value)
    plan = tw.plan(roots, A=cube(context), context=context)
    if first:
        plan.lookahead = 5
    with pytest.raises(tw.ConfigError, match="different arguments"):
        tw.run(roots, A=cube(context), plan=plan, context=context)


def test_what_one_rank_computes_for_all_is_predicted_too(context):
    s = tw.field((40,), "f8", init=lambda i: 0.0 * i, context=context)
    report = tw.run(sums, s=s, A=np.ones((40, 7)), context=context)
    assert report.predicted.time_s >= 0 and everywhere(context, report.predicted.time_s)


def test_a_wrong_machine_file(context, tmp_path, monkeypatch):
    if context.size == 1:
        return
    path = tmp_path / "machine.json"
    path.write_text('{"format": 2}')
    monkeypatch.setenv("TILEWAVE_MACHINE", str(path))
    other = tw.Context(threads=1)
    with pytest.raises(tw.ConfigError, match="machine.json") as caught:
        tw.run(roots, A=cube(other), context=other)
    assert caught.value.agreed
