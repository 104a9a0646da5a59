"""Updates whose order does not matter, against the plain loops."""

import os

import numpy as np
import pytest

import tilewave as tw
from tests.python.support.local_ranks import results_of
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops

SEED = int(os.environ.get("TILEWAVE_SEED", "20611"))
pytestmark = pytest.mark.filterwarnings("ignore:.*more than the:RuntimeWarning")

OPERATIONS = {
    "max": "max({old}, {value})",
    "max behind": "max({value}, {old}, {other})",
    "min": "min({old}, {value}, {other})",
    "maximum": "np.maximum({old}, {value})",
    "minimum": "np.minimum({value}, {old})",
    "add": "{old} + {value}",
    "add behind": "{value} + {old}",
    "subtract": "{old} - {value}",
    "and": "{old} & ({value} | -8)",
    "or": "{value} | {old}",
    "xor": "{old} ^ {value}",
    "last": "{value}",
}
SUBSCRIPTS = {3: ("b", "i", "j", "b+1", "j+2"), 2: ("b, i", "b, j", "i, j+1", "b", "j")}
SHAPES = {"S": (5,), "w": (3, 6, 5)}  # of the test with step rows


def _statements(random, name, subscript, local):
    """One or two updates of one array, some of them under a condition."""
    kind = random.choice([*OPERATIONS])
    form = OPERATIONS[kind]
    old = f"{name}[{subscript}]"
    text = f"{old} = " + form.format(old=old, value=local, other="P")
    lines = ["    " + text]
    if kind != "last" and random.random() < 0.4:
        lines = [f"    if {local} > {random.integers(-3, 9)}:", "        " + text]
        if random.random() < 0.5:
            lines += ["    else:", f"        {old} = " + form.format(old=old, value="P", other=local)]
    return "\n".join(lines)


def _body(random, loops):
    """A nest with some updates; sometimes a recurrence, too, or nothing else that is written."""
    indices = ", ".join("bkij" if loops == 4 else "bij")
    here, back, before = (
        ("b, k, i, j", "b, k, i-1, j", "b, k, i, j-1") if loops == 4 else ("b, i, j", "b, i-1, j", "b, i, j-1")
    )
    lines = [f"    P = X[{here}]"]
    if random.random() < 0.7:
        lines += [f"    h = np.maximum(np.maximum(H[{back}], H[{before}]) - X[{here}], P)", f"    H[{here}] = h"]
    else:
        lines += [f"    h = H[{here}] + P"]
    names = ["S", "R"][: random.integers(1, 3)]
    axes = {}
    for name in names:
        choices = [each for each in SUBSCRIPTS[3] if loops == 3] or [*SUBSCRIPTS[2]]
        axes[name] = random.choice(choices)
        lines.append(_statements(random, name, axes[name], random.choice(["h", "P"])))
    return f"def body(H, X, {', '.join(names)}, {indices}):\n" + "\n".join(lines), axes


def _arrays(random, nest, axes, loops):
    dtype = random.choice(["i1", "i2", "i4", "i8"])
    extents = dict(zip("bij", random.integers(2, 12, 3), strict=True)) | {"k": 3}
    shape = [extents[name] for name in ("bkij" if loops == 4 else "bij")]
    arrays = {name: random.integers(-50, 50, shape).astype(dtype) for name in "HX"}
    for name, subscript in axes.items():
        room = [extents[part.strip()[0]] + 2 for part in subscript.split(",")]
        kind = dtype if random.random() < 0.7 else random.choice(["i1", "i4", "u1", "f8"])
        arrays[name] = random.integers(-50, 50, room).astype(kind)
        if random.random() < 0.3:
            arrays[name] = np.repeat(arrays[name], 2, axis=0)[::2]  # with a stride
    return {name: arrays[name] for name in nest.arrays}


def _over(random, box):
    """Bounds of some loops; sometimes one that depends on an outer index."""
    if random.random() < 0.6:
        return None
    (low, high), (least, most) = box[-2], box[-1]
    if random.random() < 0.5 or high - low < 3 or most - least < 3:
        return {"i": (low, max(low, high - 1))}
    return {"j": ([least, f"i-{low}+{least}-1"], most)}


@pytest.mark.parametrize("number", range(60))
def test_random_updates_are_those_of_the_plain_loops(number):
    seed = SEED + number
    print(f"seed {seed}")
    ranks = (1, 2, 3, 4, 6, 1)[number % 6]
    random = np.random.default_rng(seed)
    loops = int(random.integers(3, 5))
    text, axes = _body(random, loops)
    nest = tw.nest_from(text)
    arrays = _arrays(random, nest, axes, loops)
    expected = {name: array.copy() for name, array in arrays.items()}
    reverse = tuple(name for name in "bij" if random.random() < 0.2)
    box = nest.iteration_box({name: array.shape for name, array in arrays.items()})
    over = _over(random, box)
    try:
        with np.errstate(all="ignore"):
            plain_loops(nest, loop_bounds(nest.indices, box, over), expected, reverse=reverse)
    except (OverflowError, TypeError):  # of integers of other types
        return
    threads, fields = int(random.integers(1, 4)), ranks > 1 or random.random() < 0.3
    points = [arrays["X"][point] for point in loop_bounds(nest.indices, box, over).points()]
    reduced = {"sum": np.sum(points, dtype="i8"), "most": max(points)} if points and number % 3 == 0 else {}
    reduce = {"sum": tw.sum("P"), "most": tw.max("P")} if reduced else None

    def body(context):
        given = {name: _with_strides_of(array) for name, array in arrays.items()}
        if fields:
            given = {
                name: tw.field(array.shape, array.dtype, array, context=context) if name in nest.written else array
                for name, array in given.items()
            }
        for _ in range(2):
            for name in given:
                given[name][...] = arrays[name]
            more = {"plan": {"threads": threads}, "reduce": reduce, "context": context}
            report = tw.run(nest, **given, reverse=reverse, over=over, **more)
            assert report.results == reduced
        found = {name: value if isinstance(value, np.ndarray) else value.gather() for name, value in given.items()}
        return found, report.sequential

    for without in ("", "order_free"):
        found, sequential = results_of(ranks, threads, body, without=without)[0]
        for name in nest.written:
            assert np.array_equal(found[name], expected[name]), (text, name, without)
        same = len({array.dtype for array in arrays.values()}) == 1
        assert without or not sequential or over is not None or not same


@pytest.mark.parametrize("ranks, threads", [(1, 2), (2, 1), (3, 2), (4, 1)])
@pytest.mark.parametrize("steps", [0, 1, 5, 80])
def test_time_steps(ranks, threads, steps):
    """Arrays that keep all time steps are updated in any order; bound nests take other numbers of them."""
    nest = tw.nest_from(
        "def body(u, S, L, x, t, b, i, j):\n    u[t+1, b, i, j] = x[b, i, j] + u[t, b, i-1, j] - t\n"
        "    S[t+1, i] += u[t, b, i, j]\n    L[t+1, b] = u[t, b, i, j]\n"
    )
    numbers = np.random.default_rng(SEED)
    shapes = {"u": (3, 5, 6), "S": (82, 5), "L": (82, 3), "x": (3, 5, 6)}
    start = {name: numbers.integers(-9, 9, shape) for name, shape in shapes.items()}

    def loops(steps):
        found = {name: value.copy() for name, value in start.items()}
        plain_loops(nest, loop_bounds(nest.indices, ((0, steps), (0, 3), (1, 5), (0, 6))), found, steps=steps)
        return found

    def body(context):
        given = {name: tw.field(value, context=context) for name, value in start.items()}
        report = tw.run(nest, **given, steps=steps, context=context)
        first = {name: value.gather() for name, value in given.items()}
        bound = tw.bind(nest, **given, steps=steps, context=context)
        for name, value in given.items():
            value[...] = start[name]
        bound.run(steps=81)
        with pytest.raises(tw.ConfigError, match="leaves array 'S'"):
            bound.run(steps=82)
        return report.sequential, first, {name: value.gather() for name, value in given.items()}

    sequential, *found = results_of(ranks, threads, body)[0]
    assert not sequential
    for one, count in zip(found, (steps, 81), strict=True):
        for name, value in loops(count).items():
            assert np.array_equal(one[name], value), (name, count)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("back", [False, True])
def test_last_values_beside_step_rows_and_points(ranks, back):
    """A run has a part for each row, and what follows it; strides and bounds of the other loops have one last point."""
    text = "def body(S, u, w, t, i, j):\n    u[t+1, i, j] = u[t, i, j] + i - j\n"
    text += "    S[t+1] = u[t, i, j]\n    w[t // 2, i, j] = u[t, i, j]\n"
    nest, times = tw.nest_from(text.replace("t+1", "t-1") if back else text), 4
    start = np.random.default_rng(SEED).integers(-9, 9, (6, 5))

    def body(context):
        given = {name: tw.field(shape, "i8", context=context) for name, shape in SHAPES.items()}
        given["u"] = tw.field(start, context=context)
        more = {"reverse": ("t",) * back, "over": {"i": (1, 6, 2), "j": (0, "i")}}
        report = tw.run(nest, **given, steps=times, record={"u": [(3, 1)]}, context=context, **more)
        return report.sequential, report.recorded["u"][:, 0], {n: value.gather() for n, value in given.items()}

    sequential, recorded, found = results_of(ranks, 2, body)[0]
    u, expected = start.copy(), {name: np.zeros(shape, "i8") for name, shape in SHAPES.items()}
    for t in range(times, 0, -1) if back else range(times):
        for i in range(1, 6, 2):
            for j in range(min(i, 5)):
                after = t - 1 if back else t + 1
                expected["S"][after] = expected["w"][t // 2, i, j] = u[i, j]
                u[i, j] += i - j
        assert recorded[times - t if back else t] == u[3, 1]
    assert not sequential
    assert all(np.array_equal(found[name], value) for name, value in {**expected, "u": u}.items())


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_periodic_loops(ranks):
    """Points are cut at the elements of what is read, also where no array is written in order."""
    x = np.random.default_rng(SEED).integers(-9, 9, (7, 5, 6))
    nest = tw.nest_from(
        "def body(S, x, b, i, j):\n    d = x[b-1, i, j] + 3 * x[b, i-2, j] + x[b+1, i, j+1]\n    S[j] += d\n"
    )
    d = np.roll(x, 1, 0) + 3 * np.roll(x, 2, 1) + np.roll(np.roll(x, -1, 0), -1, 2)

    def body(context):
        S, field = tw.field((6,), "i8", context=context), tw.field(x, context=context)
        reduce = {"sum": tw.sum("d"), "most": tw.max("d"), "where": tw.argmax("d")}
        report = tw.run(nest, S=S, x=field, periodic=("b", "i", "j"), reduce=reduce, context=context)
        return S.gather(), report.results

    for (found, results), rank in zip(results_of(ranks, 1, body), range(ranks), strict=True):
        assert rank or np.array_equal(found, d.sum(axis=(0, 1)))
        assert results == {"sum": d.sum(), "most": d.max(), "where": np.unravel_index(d.argmax(), d.shape)}


def _with_strides_of(array):
    """A copy that lies in memory as the array does."""
    room = np.zeros(array.base.shape if array.base is not None else array.shape, array.dtype)
    copy = room[::2] if array.base is not None and array.base.shape != array.shape else room
    copy[...] = array
    return copy


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_schedule_is_that_of_the_run(ranks):
    best = tw.nest_from("def best(S, H, b, i, j): S[b] = max(S[b], H[b, i, j])")

    def body(context):
        S, H = (tw.field(shape, "i4", context=context) for shape in ((5,), (5, 6, 7)))
        schedule = tw.schedule(best, S=S, H=H, context=context)
        report = tw.run(best, S=S, H=H, context=context)
        assert tw.check(schedule) is None
        assert schedule.ranks == ranks and all(schedule.steps.values())
        assert not report.on_one_rank and np.prod(report.plan.grid or 1) == ranks

    results_of(ranks, 1, body)
