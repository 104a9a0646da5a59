"""Several nests in one time step: each step is their plain loops one after another, over arrays with all of time."""

import numpy as np
import pytest
from local_ranks import on_ranks, results_of
from several_nests import SHAPE, height, meridional, plain, random, zonal

import tilewave as tw
from tilewave.nests.chain import several

@tw.nest
def magnetic(H, E, t, i, j, *, c=0.4):
    H[t+1, i, j] = H[t, i, j] + c * (E[t, i+1, j] - E[t, i, j]) + 0.01 * t


@tw.nest
def electric(E, H, source, trace, t, i, j, *, c=0.4):
    E[t+1, i, j] = E[t, i, j] + c * (H[t+1, i, j] - H[t+1, i-1, j]) + source[t, j]
    trace[t+1, i, j] = trace[t+1, i-1, j] + E[t+1, i, j]


@tw.nest
def red(u, t, i, j):
    if (i + j) % 2 == 0:
        u[t+1, i, j] = 0.25 * (u[t+1, i-1, j] + u[t+1, i+1, j] + u[t+1, i, j-1] + u[t+1, i, j+1])


@tw.nest
def black(u, t, i, j):
    if (i + j) % 2 == 1:
        u[t+1, i, j] = 0.25 * (u[t+1, i-1, j] + u[t+1, i+1, j] + u[t+1, i, j-1] + u[t+1, i, j+1])


@tw.nest
def wave(u, t, i, j, *, c=0.2):
    u[t+1, i, j] = (
        2 * u[t, i, j]
        - u[t-1, i, j]
        + c * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])
    )


@tw.nest
def left_side(u, t, i, j, *, a=0.3):
    u[t+1, i, j] = u[t, i+1, j] + a * (u[t+1, i+1, j] - u[t, i, j]) + 0.1 * u[t-1, i, j]


#: Nests, bounds of each, fields, histories, other arrays.
CASES = {
    "staggered": ((magnetic, electric), None, "HE", {}, {"source": (20, SHAPE[1]), "trace": (20, *SHAPE)}),
    "red and black": ((red, black), None, "u", {}, {}),
    "side after the inside": ((wave, left_side), [{"i": (1, 8)}, {"i": (0, 1)}], "u", {"u": 2}, {}),
    "history kept": ((red, black), None, "u", {"u": 1}, {}),
}


@pytest.mark.parametrize("ranks,threads", [(1, 1), (2, 1), (3, 2)])
def test_equal_to_plain_loops(ranks, threads):
    def body(context):
        for title, (nests, over, names, history, others) in CASES.items():
            expected = {
                name: random(k, shape)
                for k, (name, shape) in enumerate([*((name, SHAPE) for name in names), *others.items()])
            }
            before = {name: [random(50 + k) for k in range(count)] for name, count in history.items()}
            given = {
                name: tw.field(
                    array.shape,
                    "f8",
                    init=array.copy(),
                    history=[b.copy() for b in before.get(name, [])],
                    context=context,
                )
                for name, array in expected.items()
            }
            for steps in (0, 1, 4, 3):
                report = tw.run(nests, **given, steps=steps, over=over, context=context)
                assert len(report.by_nest) == len(nests) and f"{steps} time steps" in str(report)
                plain(nests, expected, before, steps, over or [None] * len(nests), given)
                for name, field in given.items():
                    for back, wanted in enumerate([expected[name], *before.get(name, [])]):
                        found = field.buffer(-back).gather()
                        if context.rank == 0:
                            np.testing.assert_array_equal(found, wanted, f"{title}: {name}, {back} back, {steps} steps")

    results_of(ranks, threads, body)


def test_numpy_arrays_on_one_rank():
    u, expected = random(3), random(3)
    tw.run((red, black), u=u, steps=3)
    plain((red, black), {"u": expected}, {}, 3, (None, None), {"u": expected})
    np.testing.assert_array_equal(u, expected)


def test_what_is_not_aligned_is_read_as_the_nest_before_left_it():
    @tw.nest
    def count(u, t, i):
        u[t+1, i] = u[t, i] + 1

    @tw.nest
    def take(v, u, t, i):
        v[t+1, i] = v[t, i] + u[t+1, i]

    @tw.nest
    def look_up(v, u, at, t, i):
        v[t+1, i] = v[t, i] + u[at[i]]

    u, v, w = np.zeros(6 * 8 + 1, "u1")[1:].view("i8"), np.zeros(6, "i8"), np.zeros(6, "i8")
    tw.run((count, take), u=u, v=v, steps=3)
    assert u.tolist() == [3] * 6 and v.tolist() == [1 + 2 + 3] * 6
    tw.run((count, look_up), u=u, v=w, at=np.arange(6), steps=3)
    assert u.tolist() == [6] * 6 and w.tolist() == [4 + 5 + 6] * 6


def test_what_is_refused():
    @tw.nest
    def early(H, E, t, i, j):
        H[t+1, i, j] = H[t, i, j] + E[t+1, i, j]

    @tw.nest
    def late(E, H, t, i, j):
        E[t+1, i, j] = E[t, i, j] + H[t, i, j]

    @tw.nest
    def still(E, i, j):
        E[i, j] = 1.0

    @tw.nest
    def old(u, t, i, j):
        u[t+1, i, j] = 0.5 * u[t, i, j]

    E, H = tw.field(SHAPE), tw.field(SHAPE)
    for nests, keywords, message in [
        ((early, late), {}, r"`E\[t\+1, i, j\]` is read before a nest of the time step has written it"),
        ((magnetic, late), {}, r"`H\[t, i, j\]` is a time step that 'H' no longer has"),
        ((magnetic, still), {}, "'still' has no time"),
        ((magnetic, 3), {}, "given int; allowed: functions under"),
        ((magnetic,), {"steps": -1}, "allowed for several nests, and with inject= or record=: an integer >= 0"),
        ((magnetic,), {"wrong": 3}, "has an argument 'wrong'"),
        ((magnetic,), {"over": [None, None]}, "list of another length"),
        ((magnetic,), {"over": {"i": (0, "80-t")}}, "outside the points"),
        ((magnetic,), {"reduce": [None, None]}, "a list of 2 for 1 nests"),
        ((), {}, "allowed: one nest or more"),
    ]:
        with pytest.raises(tw.ConfigError, match=message):
            tw.run(nests, H=H, E=E, **{"steps": 2, **keywords})
    with pytest.raises(tw.ConfigError, match="is a NumPy array.*a time step that has been replaced"):
        tw.run((red, old), u=np.zeros(SHAPE), steps=2)


@pytest.mark.parametrize("ranks", [1, 2])
def test_fields_have_one_layout_where_there_are_many_steps(ranks, monkeypatch):
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", 0)

    def body(context):
        E, H, trace = (tw.field(shape, context=context) for shape in (SHAPE, SHAPE, (20, *SHAPE)))
        given = {"E": E, "H": H, "trace": trace, "source": np.ones((20, SHAPE[1]))}
        tw.run((magnetic, electric), **given, steps=2)
        return tw.run((magnetic, electric), **given, steps=2).measured.moving_s

    moving_s, errors = on_ranks(ranks, 1, body)
    assert not any(errors), errors
    assert not any(moving_s)


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_shallow_water_is_one_schedule(ranks, threads, monkeypatch):
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", 0)
    nests, start = (height, zonal, meridional), {name: random(k) for k, name in enumerate("huv")}
    expected = {name: array.copy() for name, array in start.items()}
    plain(nests, expected, {}, 7, [None] * 3, {name: tw.field(SHAPE) for name in "huv"})

    def body(context):
        given = {name: tw.field(array.copy(), context=context) for name, array in start.items()}
        reports = [tw.run(nests, **given, steps=steps, context=context) for steps in (3, 4)]
        assert [report.separate for report in reports] == ["", ""], reports[0].separate
        assert reports[1].points == sum(each.points for each in reports[1].by_nest) == 4 * (8 * 10 + 8 * 11 + 9 * 9)
        for name, field in given.items():
            whole = field.gather()
            assert whole is None or np.array_equal(whole, expected[name]), name

    _, errors = on_ranks(ranks, threads, body)
    assert not any(errors), next(error for error in errors if error)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("history", [0, 2])
def test_a_nest_on_one_rank_changes_what_another_has_written(ranks, history):
    """It reads the time step before, which is kept beside what the other nest has written."""
    shift = tw.nest_from("def shift(u, t, i): u[t+1, i] = u[t, i-1]")
    join = tw.nest_from("def join(u, T, t, i): u[t+1, i] = max(u[t, q] * T[i, q] for q in range(5)) + u[t+1, i]")
    T, start = np.random.default_rng(7).integers(-2, 3, (5, 5)), np.arange(5.0)
    times = np.array([start] * 5)
    for t in range(4):
        times[t + 1] = times[t]
        for i in range(1, 5):
            shift.function(times, t, i)
        for i in range(5):
            join.function(times, T, t, i)

    def body(context):
        u = tw.field((5,), "f8", start, context=context)
        if history:
            tw.run(tw.nest_from("def still(u, t, i): u[t+1, i] = u[t-2, i]"), u=u, steps=1, context=context)
        tw.run((shift, join), u=u, T=T, steps=4, context=context)
        return [u.gather(), *(u.buffer(-1 - back).gather() for back in range(history))]

    for back, value in enumerate(results_of(ranks, 1, body)[0]):
        assert np.array_equal(value, times[4 - back]), back


def test_no_steps_leave_arrays_with_time_as_they_are():
    one = tw.nest_from("def one(A, H, t, i):\n    A[t+1, i] = A[t, i-1]\n    H[t+1, i] = A[t, i]")
    two = tw.nest_from("def two(A, t, i): A[t+1, i] = A[t, i] + 1")
    A, H = tw.field((9,), init=1.0), np.ones((1, 9))
    tw.run((one, two), A=A, H=H, steps=0)
    assert (A.gather() == 1).all() and (H == 1).all()


@pytest.mark.parametrize("least", [0, 1 << 23])
def test_the_place_of_a_value_has_the_time_of_the_last_step(monkeypatch, least):
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", least)
    nest = tw.nest_from("def body(u, f, t, i):\n    d = f[i]\n    u[t+1, i] = d\n")
    given = {"u": tw.field((3,)), "f": tw.field((3,), init=lambda i: (i - 1) ** 2)}
    report = tw.run((nest,), **given, steps=4, reduce={"where": tw.argmin("d")})
    assert report.results == {"where": (3, 1)}


@pytest.mark.parametrize("ranks,threads", [(1, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("back", [False, True])
def test_bodies_of_one_schedule_know_the_time(ranks, threads, back, monkeypatch):
    """Also in tables, in places of values, beside points, and where all steps of an array are updated in any order."""
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", 0)
    text = (
        "def fill(u, S, L, w, t, b, i, j):\n    d = u[t, b, i, j] + w[t // 2] * i - t\n    u[t+1, b, i, j] = d\n"
        "    S[t+1, j] = S[t+1, j] + d\n    L[t+1, b] = d\n"
    )
    other = "def move(v, u, t, b, i, j): v[t+1, b, i, j] = v[t, b, i, j] + t * u[t+1, b, i-1, j]"
    nests = tuple(tw.nest_from(each.replace("t+1", "t-1") if back else each) for each in (text, other))
    start, w, steps = np.random.default_rng(5).integers(-9, 9, (4, 6, 5)), np.arange(9) * 3, 9
    shapes = {"u": start.shape, "v": start.shape, "S": (10, 5), "L": (10, 4)}
    expected = {name: np.zeros(shape, "i8") for name, shape in shapes.items()} | {"u": start.copy()}
    recorded = []
    for t in range(steps, 0, -1) if back else range(steps):
        after = t - 1 if back else t + 1
        u = expected["u"] = expected["u"] + w[t // 2] * np.arange(6)[:, None] - t
        expected["S"][after] += u.sum(axis=(0, 1))
        expected["L"][after] = u[:, -1, -1]
        expected["v"][:, 1:] += t * u[:, :-1]
        u[1, 2, 3] += t
        recorded.append(u[1, 2, 3])
    values = np.arange(steps, 0, -1)[:, None] if back else np.arange(steps)[:, None]

    def body(context):
        given = {name: tw.field(shape, "i8", context=context) for name, shape in shapes.items()}
        given["u"] = tw.field(start, context=context)
        points = {"inject": {"u": ([(1, 2, 3)], values)}, "record": {"u": [(1, 2, 3)]}}
        more = {"reverse": ("t",) * back, "steps": steps, "context": context}
        report = tw.run(nests, **given, w=w, **points, **more)
        assert not report.separate and report.recorded["u"][:, 0].tolist() == recorded
        for name, value in given.items():
            assert np.array_equal(value.gather(), expected[name]) or context.rank, name
        for least in 0, 1 << 40, 1 << 40:
            monkeypatch.setattr(several, "LEAST_MOVED_BYTES", least)
            report = tw.run(nests, **given, w=w, **more)
            L, u = given["L"].gather(), given["u"].gather()
            assert bool(report.separate) == bool(least)
            assert context.rank or np.array_equal(L[0 if back else -1], u[:, -1, -1])

    results_of(ranks, threads, body)


def test_bounds_with_time_are_conditions():
    """Other bounds beside them stay bounds; only points that are inside count."""
    grow = tw.nest_from("def grow(u, t, i, j):\n    d = u[t, i, j] + 1.0\n    u[t+1, i, j] = d")
    over, expected, total = {"i": ((1, "t"), (8, "9-t")), "j": ("i-t", [9, "i+2"])}, np.zeros((9, 9)), 0.0
    for t in range(4):
        total = 0.0
        for i in range(max(1, t), min(8, 9 - t)):
            for j in range(i - t, min(9, i + 2)):
                expected[i, j] += 1.0
                total += expected[i, j]

    def body(context):
        u = tw.field((9, 9), "f8", init=0.0, context=context)
        report = tw.run((grow,), u=u, steps=4, over=over, reduce={"total": tw.sum("d")}, context=context)
        assert report.results["total"] == total
        return u.gather()

    assert np.array_equal(results_of(2, 1, body)[0], expected)
