"""Arrays with a row for several time steps that a nest writes, `w[t // k, i]`: plain loops, bit for bit."""

import random

import numpy as np
import pytest
from local_ranks import on_ranks, refused_on_all, results_of

import tilewave as tw

BEFORE = 3  # time steps before the first


def row_of(rng, times):
    """A random subscript of time as text, its scalars, and the rows that an array needs for it."""
    k, c = rng.choice((1, 2, 3, 5, 5, 7, 30, 80)), rng.choice((0, 0, 0, 1, 4, -2))
    shifted = f"(t{c:+d})" if c else "t"
    text = rng.choice((f"{shifted} // k", f"{shifted} // {k}", f"{shifted} // {k}", f"{shifted} % {k}", "3 - t // k"))
    rows = [eval(text, {"t": t, "k": k}) for t in times]
    return text, {"k": k} if "k" in text else {}, max([0, *rows]) + 1, max([0, *(-row for row in rows)])


def body_of(rng, names, back, row, sign, history, numbers):
    """The text of a body, and what it needs beside u and w."""
    at, one = ", ".join(names), names[0]
    step = f"t{sign:+d}"
    ahead, behind = (", ".join([f"{one}{by}", *names[1:]]) for by in ("+1", "-1"))
    terms = [
        f"0.3 * u[t, {at}]",
        rng.choice((f"0.4 * u[t, {behind}]", f"0.4 * u[t, {ahead}]", f"0.2 * u[{step}, {behind}]")),
    ]
    terms += [f"0.25 * u[t{-sign:+d}, {at}]"] * history
    extra = rng.choice(("", "data", "force", "number"))
    now = "t-1" if back else "t"
    terms += {"data": [f"data[{now}, {at}]"], "force": [f"force[({now}) // 4, {one}]"], "number": ["0.01 * t"], "": []}[
        extra
    ]
    lines = [f"u[{step}, {at}] = {' + '.join(terms)}"]
    value = rng.choice((f"u[t, {at}]", f"u[{step}, {at}]", f"u[t, {behind}] + t"))
    stored = rng.choice(
        (
            [f"w[{row}, {at}] = {value}"],
            [f"if t % {rng.choice((2, 5))} == 0:", f"    w[{row}, {at}] = {value}"],
            [f"w[{row}, {at}] += 0.5 * {value}"],
            [f"w[{row}, {at}] = max(w[{row}, {at}], {value})"],
            [f"w[{row}, {at}] = 0.5 * w[{row}, {behind}] + {value}"],
        )
    )
    lines = lines + stored if rng.random() < 0.7 else stored + lines
    return lines, extra


def drawn(number, seed):
    """A random run: all that its plain loops and its ranks need."""
    rng, numbers = random.Random(seed + number), np.random.default_rng(seed + number)
    back, steps = rng.random() < 0.3, rng.choice((0, 1, 4, 13, 40, 90, 170))
    sign, names = (-1 if back else 1), "ij"[: rng.choice((1, 2, 2))]
    times = range(steps, 0, -1) if back else range(steps)
    row, scalars, above, below = row_of(rng, times)
    history = int(rng.random() < 0.3)
    lines, extra = body_of(rng, names, back, row, sign, history, numbers)
    shape = tuple(rng.randint(4, 24) for _ in names)
    arrays = {
        "u": numbers.standard_normal(shape),
        "w": numbers.standard_normal((max(above, below), *shape)),
    }
    if extra == "data":
        arrays["data"] = numbers.standard_normal((steps + back, *shape))
    if extra == "force":
        arrays["force"] = numbers.standard_normal((steps // 4 + 1, shape[0]))
    if rng.random() < 0.3:  # another array with rows
        other, more, above, below = row_of(rng, times)
        if not (scalars and more):
            scalars |= more
            lines.append(f"x[{other}, {', '.join(names)}] = u[t, {', '.join(names)}] * 2.0")
            arrays["x"] = numbers.standard_normal((max(above, below), *shape))
    head = f"def body({', '.join(arrays)}, t, {', '.join(names)}{', *, k' if scalars else ''}):\n"
    text = head + "".join(f"    {line}\n" for line in lines)
    over = {}
    if rng.random() < 0.4:
        over = {"i": rng.choice([(1, shape[0] - 1), (1, ("t + 2", shape[0] - 1)), (1, shape[0] - 1, 2)])}
    down = rng.random() < 0.2
    if down and ("0.5 * w" in text or f"u[t{sign:+d}, i-1" in text):
        down = False
    reverse = (*(("t",) if back else ()), *(("i",) if down else ()))
    return rng, text, arrays, scalars, steps, history, over, reverse


def looped(nest, arrays, scalars, steps, over, reverse):
    """The arrays after the plain loops."""
    back, shape = "t" in reverse, arrays["u"].shape
    sign = -1 if back else 1
    arrays = {name: array.copy() for name, array in arrays.items()}
    u = np.stack([arrays["u"]] * (steps + 1 + BEFORE))  # from the end come the time steps before the first
    box = nest.iteration_box({name: (steps + 1, *a.shape) if name == "u" else a.shape for name, a in arrays.items()})
    for t in range(steps, 0, -1) if back else range(steps):
        u[t + sign] = u[t]
        ranges = [range(*bounds) for bounds in box[1:]]
        if over:
            low, high, *step = over["i"]
            high = min(eval(str(each), {"t": t}) for each in (high if isinstance(high, tuple) else (high,)))
            ranges[0] = range(low, high, *step)
        if "i" in reverse:
            ranges[0] = ranges[0][::-1]
        for point in np.ndindex(*map(len, ranges)):
            at = (r[p] for r, p in zip(ranges, point, strict=True))
            nest.function(*{**arrays, "u": u}.values(), t, *at, **scalars)
    assert shape == u.shape[1:]
    return {**arrays, "u": u[0 if back else steps]}


@pytest.mark.parametrize("number", range(60))
def test_random_nests(number, seed):
    rng, text, arrays, scalars, steps, history, over, reverse = drawn(number, seed)
    nest = tw.nest_from(text)
    expected = looped(nest, arrays, scalars, steps, over, reverse)
    ranks, threads = rng.choice((1, 1, 2, 3, 4, 6)), rng.choice((1, 2))
    read = {"data", "force"} if rng.random() < 0.5 else set()
    in_place = ranks == 1 and not history and rng.random() < 0.5
    tile = (rng.randint(1, 6), *(rng.randint(1, 12) for _ in arrays["u"].shape))
    plan = rng.choice([None, None, {"tile": tile}, {"threads": 1}, {"temporal_block": rng.choice((2, 3, 4))}])

    def body(context):
        given = {name: array.copy() for name, array in arrays.items()}
        if not in_place:
            given = {
                name: array
                if name in read
                else tw.field(
                    array.shape, "f8", array, context=context, **({"history": history} if name == "u" else {})
                )
                for name, array in given.items()
            }
        options = {"over": over or None, "reverse": reverse, "context": context}
        try:
            report = tw.run(nest, **given, **scalars, steps=steps, plan=plan, **options)
        except tw.ConfigError as error:  # a plan that its dependences exclude
            if plan is None or "temporal" not in str(error) and "tile" not in str(error):
                raise
            report = tw.run(nest, **given, **scalars, steps=steps, **options)
        written = {name: array for name, array in given.items() if name in nest.written}
        found = {name: array if in_place else array.gather() for name, array in written.items()}
        return found, report.steps, report.loops["t"]

    found, ran, loop = results_of(ranks, threads, body)[0]
    what = f"{text}{steps=}, {over=}, {reverse=}, {plan=}, {ranks} ranks, {threads} threads, {in_place=}"
    for name, array in found.items():
        assert np.array_equal(array, expected[name]), f"{name}: {what}"
    assert ran == steps and loop == ((1, steps + 1) if reverse[:1] == ("t",) else (0, steps)), what


@tw.nest
def kept(u, w, t, i, j):
    u[t + 1, i, j] = 0.5 * u[t, i, j] + 0.25 * (u[t, i - 1, j] + u[t, i, j + 1])
    if t % 3 == 0:
        w[t // 3, i, j] = u[t, i, j]


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
@pytest.mark.parametrize("off_grid", [False, True])
def test_sources_and_receivers(ranks, off_grid):
    """The same as runs of three steps, one after another."""
    points = tw.OffGrid([(3.5, 4.25), (7.0, 2.5)]) if off_grid else [(3, 4), (7, 2)]
    wavelet = np.random.default_rng(5).standard_normal((14, 2))

    def body(context):
        u = tw.field((12, 9), "f8", lambda i, j: 1.0 * i - j, context=context)
        w = tw.field((5, 12, 9), "f8", lambda b, i, j: 100.0 + b, context=context)
        report = tw.run(
            kept, u=u, w=w, steps=14, inject={"u": (points, wavelet)}, record={"u": points}, context=context
        )
        v = tw.field((12, 9), "f8", lambda i, j: 1.0 * i - j, context=context)
        rows, records = [], []
        for first in range(0, 14, 3):
            steps = min(3, 14 - first)
            row = tw.field((1, 12, 9), "f8", 100.0 + first // 3, context=context)
            given = {"inject": {"u": (points, wavelet[first : first + steps])}, "record": {"u": points}}
            records.append(tw.run(kept, u=v, w=row, steps=steps, **given, context=context).recorded["u"])
            rows.append(row.gather())
        return u.gather(), v.gather(), w.gather(), rows, report.recorded["u"], np.concatenate(records)

    u, v, w, rows, record, records = results_of(ranks, 1, body)[0]
    assert np.array_equal(u, v) and np.array_equal(w, np.concatenate(rows)) and np.array_equal(record, records)


@pytest.mark.parametrize("axes", [("i",), ("i", "j")])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_periodic(ranks, axes):
    steps, shape = 10, (7, 8)
    start = np.random.default_rng(3).standard_normal(shape)
    whole, rows = np.stack([start] * (steps + 1)), np.zeros((4, *shape))
    for t in range(steps):
        whole[t + 1] = whole[t]
        i, j = np.arange(7), np.arange(8 if "j" in axes else 7)
        at = np.ix_(i, j)
        beside = whole[t][np.ix_((i - 1) % 7, j)] + whole[t][np.ix_(i, (j + 1) % 8)]
        whole[t + 1][at] = 0.5 * whole[t][at] + 0.25 * beside
        if t % 3 == 0:
            rows[t // 3][at] = whole[t][at]

    def body(context):
        u, w = tw.field(shape, "f8", start, context=context), tw.field((4, *shape), context=context)
        tw.run(kept, u=u, w=w, steps=steps, periodic=axes, context=context)
        return u.gather(), w.gather()

    u, w = results_of(ranks, 1, body)[0]
    assert np.array_equal(u, whole[steps]) and np.array_equal(w, rows)


@pytest.mark.parametrize("ranks", [1, 3])
def test_refused_on_every_rank(ranks):
    def refused(text, call=tw.run, nest=kept, rows=5, **more):
        def body(context):
            shape = (rows, 6, 6) if rows else (6, 6)
            arrays = {"u": tw.field((6, 6), context=context), "w": tw.field(shape, context=context)}
            arrays |= {"context": context} | more
            for name in [name for name, value in arrays.items() if value is None]:
                del arrays[name]
            call(nest, **arrays)

        refused_on_all(ranks, body, text)

    refused("`t // 3` is 5 at t=15, which array 'w' of shape (5, 6, 6) has no row for; allowed: -5 to 4", steps=16)
    refused("steps= was not given", steps=None)
    refused("reduce= was given", steps=3, reduce={"most": tw.max("u")})
    refused("'u' keeps a rolling window only", steps=3, u=tw.scratch("f8"))
    refused("points of 'w' were given", steps=3, record={"w": [(0, 0, 0)]})
    refused("array 'w' has shape (6, 6), the nest gives it 3 subscripts", steps=3, rows=0)
    refused("tilewave.run of one nest, with steps=", tw.bind, steps=3)
    refused("tilewave.run of one nest, with steps=", tw.run, nest=(kept, kept), steps=3)
    scaled = tw.nest_from("def scaled(u, w, t, i, j, *, k):\n    w[t // k, i, j] = u[t, i, j]\n")
    refused("k is 2.5; allowed: an int", nest=scaled, u=np.ones((3, 6, 6)), steps=3, k=2.5)
    refused("allowed: a divisor that is not 0", nest=scaled, u=np.ones((3, 6, 6)), steps=3, k=0)


def test_ranks_that_were_given_other_rows():
    def body(context):
        u, w = tw.field((6, 6), context=context), tw.field((5, 6, 6), context=context)
        other = tw.field((5, 6, 6), context=context)
        tw.run(kept, u=u, w=other if context.rank else w, steps=3, context=context)

    _, errors = on_ranks(2, 1, body)
    assert all(isinstance(error, tw.ConfigError) for error in errors), errors


def test_the_plan_is_of_all_steps():
    u, w = np.zeros((40, 40)), np.zeros((5, 40, 40))
    report, plan = tw.run(kept, u=u, w=w, steps=15), tw.plan(kept, u=u, w=w, steps=15)
    assert plan.notes["extents"][0] == 15 and report.plan.choices() == plan.choices()
    assert report.points == 15 * 39 * 39 and "time steps" in str(report)
    assert report.measured.call_s >= report.measured.time_s + report.measured.moving_s > 0


def test_a_constant_from_outside_may_change():
    nest = tw.nest_from("K = 2\ndef body(u, w, t, i):\n    u[t+1, i] = u[t, i] + 1\n    w[t // K, i] = u[t+1, i]\n")
    for nest.function.__globals__["K"], rows in ((2, [2, 4, 6]), (3, [3, 6, 0])):
        u, w = np.zeros(3), np.zeros((3, 3))
        tw.run(nest, u=u, w=w, steps=6)
        assert w[:, 0].tolist() == rows


@pytest.mark.parametrize("back", [False, True])
def test_strides_whose_first_element_follows_time(back):
    nest = tw.nest_from("def body(R, t, j):\n    R[(t + 1) // 2, j] += t + 1\n")
    if back:
        nest = tw.nest_from("def body(u, R, t, j):\n    u[t-1, j] = u[t, j]\n    R[(t + 1) // 2, j] += t + 1\n")
    R, right, steps = np.zeros((5, 14), "i8"), np.zeros((5, 14), "i8"), 5
    for t in range(steps, 0, -1) if back else range(steps):
        right[(t + 1) // 2, t + 4 : 14 : 3] += t + 1
    u = {"u": np.zeros(14)} if back else {}
    tw.run(nest, R=R, over={"j": ("t + 4", 14, 3)}, steps=steps, reverse=("t",) * back, **u)
    assert np.array_equal(R, right)
