"""Arrays with a row for every k steps, `w[t // k, i]`, and for every step of a period, `w[t % k, i]`: plain loops, bit
for bit."""

import random

import numpy as np
import pytest
from local_ranks import on_ranks, results_of

import tilewave as tw


def given(context, arrays, as_fields):
    """The arrays of a run: those that are read as fields or NumPy arrays."""
    return {name: tw.field(a.shape, "f8", a, context=context) if as_fields else a for name, a in arrays.items()}


def somewhere(rng, w):
    """The same values, with other distances in memory."""
    if rng.random() < 0.5:
        return w
    room = np.zeros((*w.shape[:-1], 2 * w.shape[-1] + 3))
    view = room[..., 2 : 2 + 2 * w.shape[-1] : 2] if rng.random() < 0.5 else room[..., w.shape[-1] : 0 : -1]
    view[...] = w
    return view


def forcing(rng, lowest, highest, names):
    """A random subscript of time between `lowest` and `highest`, as text, and how many rows it needs."""
    k, c = rng.randint(1, 7), rng.randint(-2, 4)
    if rng.random() < 0.3:
        return f"(t + {c}) % {k}", k
    if rng.random() < 0.5:
        c = 0
    first, last = (lowest + c) // k, (highest + c) // k  # what is negative counts from the end
    return (f"(t + {c}) // {k}" if c else f"t // {k}"), max(last + 1, -first, 1)


@pytest.mark.parametrize("number", range(24))
def test_time_steps(number, seed):
    rng, numbers = random.Random(seed + number), np.random.default_rng(seed + number)
    names, steps, back = "ij"[: rng.choice((1, 2))], rng.choice((0, 1, 5, 17, 80)), rng.random() < 0.4
    shape = tuple(rng.randint(4, 40) for _ in names)
    row, rows = forcing(rng, 1 if back else 0, steps if back else steps - 1, names)
    at, beside = ", ".join(names), ", ".join([f"{names[0]}-1", *names[1:]])
    sign = -1 if back else 1
    earlier = f" - 0.25 * u[t-{sign}, {at}]".replace("--", "+") if rng.random() < 0.4 else ""
    text = (
        f"def body(u, w, t, {at}):\n"
        f"    u[t{sign:+d}, {at}] = 0.3 * u[t, {at}] + 0.4 * u[t, {beside}]{earlier} + w[{row}, {at}] * 1.1\n"
    )
    nest = tw.nest_from(text)
    w, start = somewhere(rng, numbers.standard_normal((rows, *shape))), numbers.standard_normal(shape)
    rest = 2  # the steps before the first
    whole = np.stack([start] * (steps + 1 + rest))
    times = range(steps, 0, -1) if back else range(steps)
    expected = whole if back else np.roll(whole, -1, 0)  # u[-1] is a copy of the start
    for t in times:
        expected[t + sign] = expected[t]
        for point in np.ndindex(shape):
            if point[0] > 0:
                nest.function(expected, w, t, *point)
    ranks, threads, as_fields = rng.choice((1, 2, 3, 4, 6)), rng.choice((1, 2)), rng.random() < 0.5

    def body(context):
        u = tw.field(shape, "f8", start, context=context, history=1 if earlier else 0)
        forces = given(context, {"w": w}, as_fields)
        tw.run(nest, u=u, **forces, steps=steps, reverse=("t",) if back else (), context=context)
        return u.gather()

    found = results_of(ranks, threads, body)[0]
    last = expected[0 if back else steps]
    assert np.array_equal(found, last), f"{text}steps {steps}, shape {shape}, {ranks} ranks, fields {as_fields}"


@pytest.mark.parametrize("number", range(24))
def test_time_as_an_ordinary_loop(number, seed):
    rng, numbers = random.Random(seed + number), np.random.default_rng(seed + number)
    shape = rng.randint(2, 40), rng.randint(4, 60)
    row, rows = forcing(rng, 1, shape[0] - 1, "i")
    column = rng.choice(["i", "i-1", "i // 2", "(i + 1) // 3"])
    text = f"def body(A, w, t, i):\n    A[t, i] = 0.5 * A[t-1, i-1] + 0.25 * A[t-1, i] + w[{row}, {column}]\n"
    nest = tw.nest_from(text)
    start, w = numbers.standard_normal(shape), somewhere(rng, numbers.standard_normal((rows, shape[1])))
    over = {"t": (1, shape[0], rng.randint(1, 3))} if rng.random() < 0.4 else {}
    down = rng.random() < 0.3
    expected = start.copy()
    columns = range(1, shape[1])
    for t in range(*over.get("t", (1, shape[0]))):
        for i in columns[::-1] if down else columns:
            nest.function(expected, w, t, i)
    ranks, as_fields = rng.choice((1, 2, 3, 4, 6)), rng.random() < 0.5

    def body(context):
        A = tw.field(shape, "f8", start, context=context)
        forces = given(context, {"w": w}, as_fields)
        tw.run(nest, A=A, **forces, over=over, reverse=("i",) if down else (), context=context)
        return A.gather()

    found = results_of(ranks, rng.choice((1, 2)), body)[0]
    assert np.array_equal(found, expected), f"{text}{over}, {down=}, {ranks} ranks, fields {as_fields}"


@pytest.mark.parametrize("ranks", [1, 3])
def test_several_nests_in_each_step(ranks):
    first = tw.nest_from("def first(u, w, t, i):\n    u[t+1, i] = u[t, i] + w[t // 3, i]\n")
    second = tw.nest_from("def second(u, v, t, i):\n    v[t+1, i] = v[t, i] - u[t+1, i-1]\n")
    w = np.arange(40.0).reshape(4, 10)
    U, V = np.zeros((11, 10)), np.zeros((11, 10))
    for t in range(10):
        V[t + 1] = V[t]
        for i in range(10):
            first.function(U, w, t, i)
        for i in range(1, 10):
            second.function(U, V, t, i)

    def body(context):
        u, v = tw.field((10,), context=context), tw.field((10,), context=context)
        tw.run((first, second), u=u, v=v, **given(context, {"w": w}, ranks == 3), steps=10, context=context)
        return u.gather(), v.gather()

    u, v = results_of(ranks, 1, body)[0]
    assert np.array_equal(u, U[10]) and np.array_equal(v, V[10])


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_bound_nest_sees_a_field_that_has_changed(ranks):
    nest = tw.nest_from("def body(u, w, t, i):\n    u[t+1, i] = u[t, i] + w[t // 3, i]\n")
    rows = np.arange(40.0).reshape(4, 10)

    def body(context):
        u, w = tw.field((10,), context=context), tw.field((4, 10), "f8", rows, context=context)
        bound = tw.bind(nest, u=u, w=w, steps=10, context=context)
        bound.run()
        w[...] = w + 1.0
        bound.run()
        return u.gather()

    assert np.array_equal(results_of(ranks, 1, body)[0], 2 * (3 * rows[:3].sum(0) + rows[3]) + 10)


@pytest.mark.parametrize("ranks", [1, 2])
def test_too_few_rows(ranks):
    nest = tw.nest_from("def body(u, w, t, i):\n    u[t+1, i] = u[t, i] + w[t // 5, i]\n")

    def body(context):
        u = tw.field((30,), context=context)
        tw.run(nest, u=u, w=np.ones((2, 30)), steps=10, context=context)
        tw.run(nest, u=u, w=np.ones((2, 30)), steps=11, context=context)

    _, errors = on_ranks(ranks, 1, body)
    assert all(isinstance(error, tw.KernelError) for error in errors), errors
    assert all("axis 0 of w') at t=10, i=" in str(error) for error in errors), errors
