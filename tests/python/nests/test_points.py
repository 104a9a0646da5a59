"""Sources added and receivers recorded at points in each time step: equal plain loops, bit for bit."""

import numpy as np
import pytest
from local_ranks import on_ranks, results_of

import tilewave as tw
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops


@tw.nest
def wave(u, m, t, i, j):
    u[t + 1, i, j] = (
        2 * u[t, i, j]
        - u[t - 1, i, j]
        + m[i, j] * (u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1] - 4 * u[t, i, j])
    )


def looped(nests, arrays, steps, points, values, receivers):
    """The meaning: each step, then what is added, then what is recorded."""
    u, recorded = arrays["u"].copy(), np.zeros((steps, len(receivers)), arrays["u"].dtype)
    before = [u.copy()]
    for step in range(steps):
        former = u.copy()
        for nest in nests:
            box = ((0, 1), *nest.iteration_box({"u": (2, *u.shape), "m": u.shape})[1:])
            given = {"u": u, "m": arrays["m"]}
            plain_loops(nest, loop_bounds(nest.indices, box), given, steps=1, history={"u": [before[0].copy()]})
        before = [former]
        for k, point in enumerate(points):
            u[tuple(point)] += values[step, k]
        recorded[step] = u[tuple(np.array(receivers).T)]
    return u, recorded


@pytest.mark.parametrize("dtype", ["f4", "c16"])
@pytest.mark.parametrize("ranks, threads", [(1, 2), (2, 1), (3, 1), (4, 1), (6, 1)])
def test_waves(ranks, threads, dtype):
    rng = np.random.default_rng(4)
    shape, steps = (12, 15), 5
    arrays = {"u": rng.standard_normal(shape).astype(dtype), "m": rng.random(shape).astype(dtype)}
    points = [(3, 4), (11, 14), (3, 4), (0, 7), (6, 6)]  # one twice, two on the edge
    values = rng.standard_normal((steps, len(points))).astype(dtype)
    receivers = [(i, 7) for i in range(12)] + [(3, 4), (3, 4)]
    expected = looped([wave], arrays, steps, points, values, receivers)

    def body(context):
        u = tw.field(shape, dtype, arrays["u"], history=1, context=context)
        m = tw.field(shape, dtype, arrays["m"], context=context) if dtype == "f4" else arrays["m"]
        report = tw.run(
            wave,
            u=u,
            m=m,
            steps=steps,
            plan={"threads": threads},
            inject={"u": (points, values)},
            record={"u": receivers, "m": [(3, 3), (11, 0)]},
        )
        assert (report.recorded["m"] == arrays["m"][[3, 11], [3, 0]]).all()
        more = tw.run(wave, u=u, m=m, steps=0, record={"u": [], "m": [(1, 1)]})
        assert more.recorded["u"].shape == (0, 0) and more.recorded["m"].shape == (0, 1)
        return u.gather(), report.recorded["u"]

    found = results_of(ranks, threads, body)
    assert found[0][0].tobytes() == expected[0].tobytes()
    assert all(recorded.tobytes() == expected[1].tobytes() for _, recorded in found)


def test_numpy_arrays_and_one_dimension():
    heat = tw.nest_from("def heat(u, t, i):\n    u[t+1, i] = 0.25 * (u[t, i-1] + 2 * u[t, i] + u[t, i+1])\n")
    u, expected = np.zeros(20), np.zeros(20)
    report = tw.run(heat, u=u, steps=6, inject={"u": ([5, 9], np.ones((6, 2)))}, record={"u": [5, 6]})
    rows = []
    for _ in range(6):
        expected[1:-1] = 0.25 * (expected[:-2] + 2 * expected[1:-1] + expected[2:])
        expected[[5, 9]] += 1
        rows.append(expected[[5, 6]])
    assert np.array_equal(u, expected) and np.array_equal(report.recorded["u"], rows)


def test_reductions_and_whole_plans_are_those_of_a_run_without_receivers():
    def body(context):
        found = []
        for more in ({}, {"record": {"u": [(1, 1), (5, 5)]}}):
            u, m = (tw.field((8, 9), init=lambda i, j: i * j, context=context) for _ in "um")
            plan = tw.plan(wave, u=u, m=m, steps=40)
            report = tw.run(wave, u=u, m=m, steps=40, plan=plan, reduce={"top": tw.max("u")}, **more)
            assert report.steps == 40 and report.points == 40 * 6 * 7
            found.append((report.results, u.gather()))
        return found

    found, errors = on_ranks(2, 1, body)
    assert not any(errors), errors
    for (results, whole), (others, other) in found:
        assert results == others and (whole is None or np.array_equal(whole, other))


@tw.nest
def relax(u, t, i, j):
    mean = 0.25 * (u[t+1, i-1, j] + u[t+1, i, j-1] + u[t, i+1, j] + u[t, i, j+1])
    u[t+1, i, j] = u[t, i, j] + 0.9 * (mean - u[t, i, j])


@tw.nest
def by_point(u, m, t, i, j):
    u[t+1, i, j] = 0.5 * u[t, i, j] + m[i-1, j+1]


@tw.nest
def partly(u, m, t, i, j):
    if m[i, j] > 0.3:
        u[t+1, i, j] = 0.5 * (u[t, i-2, j] + u[t, i, j+1])


@tw.nest
def pair(u, v, t, i, j):
    u[t+1, i, j] = 0.5 * (v[t, i-1, j] + u[t, i, j+1])
    v[t+1, i, j] = 0.25 * (u[t, i+1, j] - v[t, i, j-1])


@tw.nest
def line(u, t, i):
    u[t+1, i] = 0.25 * (u[t, i-1] + 2 * u[t, i] + u[t, i+1])


@tw.nest
def block(u, t, i, j, k):
    u[t+1, i, j, k] = u[t, i, j, k] + 0.1 * (u[t, i-1, j, k] + u[t, i+1, j, k] + u[t, i, j, k-1] - 3 * u[t, i, j+1, k])


#: Nests, and whether their loops may be periodic.
RECORDED = ((wave, True), (relax, False), (by_point, False), (partly, True), (pair, True), (line, True), (block, True))


class RandomRecord:
    """A run with receivers, whose values are recorded by the lanes, or between single time steps."""

    def __init__(self, seed, threads):
        draw = np.random.default_rng(seed)
        self.nest, wraps = RECORDED[draw.integers(len(RECORDED))]
        space = self.nest.indices[1:]
        self.shape = tuple(int(n) for n in draw.integers(7, 40, len(space)))
        self.steps = int(draw.choice([1, 2, 9, 33, 70]))
        self.dtype = str(draw.choice(["f4", "f8"]))
        self.first = {name: draw.random(self.shape).astype(self.dtype) for name in self.nest.arrays}
        self.periodic = tuple(name for name in space if wraps and draw.random() < 0.2)
        self.over = None
        if not self.periodic and draw.random() < 0.3:
            self.over = {space[0]: (2, self.shape[0] - 2)}
        self.reverse = (space[-1],) if draw.random() < 0.2 and self.nest is not relax else ()
        choices = ({}, {"temporal_block": int(draw.integers(1, 5))}, {"generator": "sweep"}, {"storage": "plain"})
        self.plan = {"threads": threads, **choices[draw.integers(len(choices))]}
        if draw.random() < 0.3:
            self.plan["tile"] = tuple(int(n) for n in draw.integers(1, 7, len(space) + 1))
        count = int(draw.choice([1, 5, 60]))
        self.points = np.stack([draw.integers(0, n, count) for n in self.shape], 1)

    def run(self, context, by_lanes):
        """What is recorded, and the written arrays at the end; None where the plan is refused."""
        history = {"history": 1} if self.nest is wave else {}
        fields = {
            name: tw.field(
                self.shape,
                self.dtype,
                lambda *index, name=name: self.first[name][index],
                context=context,
                **(history if name in self.nest.written else {}),
            )
            for name in self.nest.arrays
        }
        written = self.nest.written[0]
        nothing = {} if by_lanes else {"inject": {written: ([], np.zeros((self.steps, 0)))}}
        try:
            report = tw.run(
                self.nest,
                **fields,
                steps=self.steps,
                over=self.over,
                reverse=self.reverse,
                periodic=self.periodic,
                plan=self.plan if by_lanes else {"threads": 1},
                record=dict.fromkeys(self.nest.written, self.points),
                **nothing,
            )
        except tw.ConfigError as error:
            print(error)
            return None
        ends = [fields[name].gather() for name in self.nest.written]
        return [report.recorded[name].tobytes() for name in self.nest.written], ends


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1), (4, 1), (6, 1)])
@pytest.mark.parametrize("seed", [1])
def test_lanes_record_what_is_there_between_time_steps(ranks, threads, seed):
    def body(context):
        compared = 0
        for k in range(8 if ranks < 4 else 3):
            number = 1000 * seed + 100 * ranks + 10 * threads + k
            print(f"random record, seed {number}")
            case = RandomRecord(number, threads)
            found, wanted = case.run(context, True), case.run(context, False)
            if found is None:
                continue
            compared += 1
            assert found[0] == wanted[0], vars(case)
            assert all(a is None or np.array_equal(a, b) for a, b in zip(found[1], wanted[1], strict=True)), number
        assert compared

    results_of(ranks, threads, body)


@pytest.mark.parametrize(
    "given, wanted",
    [
        ({"inject": {"v": ([], [])}}, "'v' is no array"),
        ({"inject": {"m": ([(1, 1)], np.ones((3, 1)))}}, "'m' is not written"),
        ({"inject": {"u": [(1, 1)]}}, r"allowed: \(points, values\)"),
        ({"inject": {"u": ([(1, 1)], np.ones((2, 1)))}}, r"shape \(2, 1\).*allowed: \(3, 1\)"),
        ({"inject": {"u": ([(1, 1)], 1j * np.ones((3, 1)))}}, "numbers for float64"),
        ({"record": {"u": [(1, 8)]}}, r"point \(1, 8\) is outside"),
        ({"record": {"u": [(1.5, 2)]}}, "no integers"),
        ({"record": [(1, 2)]}, "a dict from names"),
        ({"record": {"u": [(1, 2)]}, "steps": None}, "steps: given None"),
    ],
)
def test_refused(given, wanted):
    u, m = tw.field((8, 8), history=1), tw.field((8, 8))
    with pytest.raises(tw.ConfigError, match=wanted):
        tw.run(wave, **{"u": u, "m": m, "steps": 3, **given})


@pytest.mark.parametrize("offsets", [(-2,), (-1, 0, 1), (1,)])
@pytest.mark.parametrize("made", [np.array, tw.field])
def test_sources_and_receivers_beside_periodic_loops(offsets, made):
    nest = tw.nest_from(f"def body(u, t, i, j): u[t+1, i, j] = {' + '.join(f'u[t, i+({o}), j]' for o in offsets)}")
    start, values = np.arange(20.0).reshape(5, 4), np.array([[100.0, 7.0], [200.0, -3.0]])
    at = np.array([[4, 1], [0, 3]])
    u, wanted, seen = made(start), start, []
    report = tw.run(nest, u=u, periodic=("i",), steps=2, inject={"u": (at, values)}, record={"u": at})
    for added in values:
        wanted = sum(np.roll(wanted, -o, axis=0) for o in offsets)
        np.add.at(wanted, tuple(at.T), added)
        seen.append(wanted[tuple(at.T)])
    np.testing.assert_array_equal(u if made is np.array else u.gather(), wanted)
    np.testing.assert_array_equal(report.recorded["u"], seen)
