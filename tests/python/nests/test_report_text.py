"""What reports print: a sentence, one unit a column, sums and shares that add up."""

import re

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw


@tw.nest
def relax(A, i, j, k):
    A[i, j, k] = np.sqrt(A[i-1, j, k]) + np.sqrt(A[i, j-1, k]) + np.sqrt(A[i, j, k-1])


@tw.nest
def heat(u, t, i, j, *, c=0.2):
    u[t+1, i, j] = u[t, i, j] + c*(u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4*u[t, i, j])


def adds_up(text):
    """The line of the whole call."""
    (line,) = (line for line in text.splitlines() if line.startswith("whole call"))
    parts, whole = line.removeprefix("whole call").split("=")
    found = [float(re.search(r"[\d.]+$", part.strip())[0]) for part in parts.split(" + ")]
    return round(sum(found), 6) == float(whole.split()[0])


def shares(text):
    """Of each lane, in per cent."""
    lines = text.splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("% of the run"))
    assert lines[at].split("|")[-1].strip() == "idle"
    return [[float(cell.split()[-1]) for cell in line.split("|")] for line in lines[at + 1 :]]


@pytest.mark.parametrize(
    "ranks, threads, choices",
    [
        (1, 1, {}),
        (1, 2, {"factors": (1, 1, 2), "mapping_dim": 0, "tile": (31, 31, 64)}),  # lane 1 waits for lane 0
        (2, 1, {"grid": (2, 1, 1)}),
        (3, 1, {"grid": (1, 3, 1)}),
    ],
)
def test_a_sweep(ranks, threads, choices):
    def body(context):
        A = tw.field((32, 32, 129), "f4", init=1.0, context=context)
        return tw.run(relax, A=A, plan={"threads": threads, **choices}, context=context)

    reports = results_of(ranks, threads, body)
    text = str(reports[0])
    assert text.startswith(f"relax ran on {ranks} rank") and "e+" not in text and "e-" not in text
    assert f" in {reports[0].waves} wave" in text and reports[0].steps is None
    assert adds_up(text) and adds_up(str(reports[-1]))
    rows = shares(text)
    assert len(rows) == ranks * threads and all(round(10 * sum(row)) == 1000 for row in rows)
    for lane in reports[0].lanes:
        busy = lane.compute_s + lane.pack_s + lane.wait_s + lane.post_s
        assert lane.idle_s + busy == pytest.approx(max(reports[0].measured.parts.total_s, busy))
    for measured in (report.measured for report in reports):
        assert measured.time_s + measured.moving_s + measured.rest_s == pytest.approx(measured.call_s)
        assert measured.rest_s >= 0
    units = {line.split()[3] for line in text.splitlines() if re.match("(predicted|measured) time", line)}
    assert len(units) == 1


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_sources_and_receivers_give_a_report_like_any_other(ranks):
    def body(context):
        u = tw.field((24, 20), init=1.0, context=context)
        usual = tw.run(heat, u=u, steps=4, context=context)
        added, asked = {"u": ([(5, 5)], [[1.0]] * 4)}, {"u": [(3, 4)]}
        ours = tw.run(heat, u=u, steps=4, context=context, record=asked, inject=added)
        none = tw.run(heat, u=u, steps=0, context=context, record=asked)
        return usual, ours, none

    found = results_of(ranks, 1, body)
    for rank, (usual, ours, none) in enumerate(found):
        assert type(ours) is type(usual) is type(none) is tw.Report
        assert ours.points == usual.points and ours.loops == usual.loops and ours.ranks == usual.ranks
        assert ours.steps == usual.steps == 4 and none.steps == 0
        assert ours.recorded["u"].shape == (4, 1) and none.recorded["u"].shape == (0, 1) and usual.recorded == {}
        assert ours.measured.time_s > 0 and ours.predicted.time_s > 0 and ours.plan.tile and ours.waves > 0
        assert (len(ours.timeline.events) > 0) == (rank == 0)
        assert none.points == 0
        assert adds_up(str(ours)) and adds_up(str(none))
        if rank == 0:
            assert all(round(10 * sum(row)) == 1000 for row in shares(str(ours)))
            names = [line[:16].strip() for line in str(usual).splitlines() if not line.startswith("  ")]
            shown = {line[:16].strip() for line in str(ours).splitlines()[1:] if line[0] != " "}
            assert shown == {*names[1:]}


@pytest.mark.parametrize("steps", [1, 3, 500])
def test_time_steps_are_those_of_the_problem(steps):
    u = np.ones((12, 12))
    assert tw.run(heat, u=u, steps=steps).steps == steps
    bound = tw.bind(heat, u=u, steps=4)
    assert bound.run().steps == 4 and bound.run(steps=steps).steps == steps


@tw.nest
def first(u, v, t, i):
    u[t+1, i] = u[t, i] + v[t, i]


@tw.nest
def second(u, v, t, i):
    v[t+1, i] = v[t, i] + u[t+1, i]


def test_several_nests():
    u, v = np.ones(50), np.ones(50)
    report = tw.run((first, second), u=u, v=v, steps=3)
    text = str(report)
    assert report.measured.time_s == sum(each.time_s for each in report.by_nest) and adds_up(text)
    assert "3 time steps" in text and report.points == sum(each.points for each in report.by_nest) == 300
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  ")] == ["first", "second"]


def test_a_chain():
    u, v = np.ones(50), np.ones(50)
    report = tw.chain([tw.bind(first, u=u, v=v, steps=1), tw.bind(second, u=u, v=v, steps=1)]).run(times=2)
    assert adds_up(str(report)) and "e-" not in str(report)
    assert str(report).splitlines()[0] == "first, second ran 2 times as one schedule."
    assert tw.chain([tw.bind(first, u=u, v=v, steps=1)] * 7).explain().startswith("7 nests run as one schedule, ")


def test_factors_and_products():
    A = np.eye(40) + 0.01
    M = tw.linalg.matrix(A)
    for report in (tw.linalg.lu(A).report, tw.linalg.cholesky(A).report, tw.linalg.matmul(M, M).report):
        sentence, plan, measured = str(report).splitlines()
        assert sentence.startswith("One rank computes all") and " beyond the matrices" in plan
        assert measured.startswith("measured ") and "e-" not in measured


@tw.nest
def add(A, B, c, i, j):
    A[i, j] = A[i-1, j] + B[i, j+1] + c[i]


@tw.nest
def driven(u, f, t, i):
    u[t+1, i] = u[t, i-1] + u[t, i+1] + f[i]


@pytest.mark.parametrize(
    "shape, length, over, ranges, cut",
    [
        ((9, 8), 9, None, ((1, 9), (0, 7)), ("j by B of shape (9, 8): the written arrays allow range(0, 8)",)),
        ((9, 9), 9, None, ((1, 9), (0, 8)), ()),
        ((20, 20), 20, None, ((1, 9), (0, 8)), ()),
        ((9, 9), 5, None, ((1, 5), (0, 8)), ("i by c of shape (5,): the written arrays allow range(1, 9)",)),
        (
            (7, 5),
            7,
            None,
            ((1, 7), (0, 4)),
            ("i by B of shape (7, 5)", "i by c of shape (7,)", "j by B of shape (7, 5)"),
        ),
        ((7, 5), 9, {"i": (2, 7)}, ((2, 7), (0, 4)), ("j by B of shape (7, 5)",)),
        ((9, 5), 9, {"j": (0, "i-1"), "i": (1, 5)}, ((1, 5), (0, 3)), ()),
    ],
)
def test_ranges(shape, length, over, ranges, cut):
    context = tw.Context(threads=1)
    A = np.zeros((9, 8))
    for _ in range(2):
        report = tw.run(add, A=A, B=np.ones(shape), c=np.ones(length), over=over, context=context)
        assert report.loops == dict(zip("ij", ranges, strict=True))
        assert len(report.cut) == len(cut) and all(
            ours.startswith(theirs) for ours, theirs in zip(report.cut, cut, strict=True)
        )
        text = str(report)
        assert f"loops            i in range{ranges[0]}, j in range{ranges[1]}" in text
        assert ("cut short" in text) == bool(cut)


@pytest.mark.parametrize("steps", [3, 5000])
def test_time(steps):
    context = tw.Context(threads=1)
    report = tw.run(driven, u=np.zeros(12), f=np.zeros(11), steps=steps, context=context)
    assert report.loops == {"t": (0, steps), "i": (1, 11)} and report.cut == ()
    report = tw.run(driven, u=np.zeros(12), f=np.zeros(10), steps=steps, context=context)
    assert report.loops["i"] == (1, 10) and report.cut == (
        "i by f of shape (10,): the written arrays allow range(1, 11)",
    )
