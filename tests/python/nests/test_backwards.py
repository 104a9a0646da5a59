"""Time that runs backwards: plain loops over arrays with all time steps, the last first, bit for bit."""


import numpy as np
import pytest
from local_ranks import refused_on_all, results_of

import tilewave as tw

RANKS = pytest.mark.parametrize("ranks, threads", [(1, 2), (2, 1), (3, 1), (4, 1), (6, 1)])


@tw.nest
def adjoint(v, u, image, t, i, j, *, c=0.2):
    v[t-1, i, j] = 2 * v[t, i, j] - v[t+1, i, j] + c * (v[t, i-1, j] + v[t, i, j+1] - 2 * v[t, i, j]) + 0.01 * t
    image[t-1, i, j] = image[t, i, j] + u[t-1, i, j] * v[t, i, j]


@RANKS
def test_what_is_reduced(ranks, threads):
    """Of arrays with and without a dimension for time, of locals, and of time and elements in an expression."""
    back = tw.nest_from(
        "def back(u, w, t, i):\n    d = w[t, i] - u[t, i-1]\n    u[t-1, i] = d\n    w[t-1, i] = 2 * d\n"
    )
    steps, (u, *w) = 4, np.random.default_rng(3).integers(-9, 9, (6, 9))
    U, W = np.array([u] * 5), np.array(w)
    points = {(t, i): 0 for t in range(steps, 0, -1) for i in range(1, 9)}
    for t, i in points:
        if i == 1:
            U[t - 1] = U[t]
        points[t, i] = int(W[t, i] - U[t, i - 1])
        U[t - 1, i], W[t - 1, i] = points[t, i], 2 * points[t, i]
    expected = {
        "u": sum(points.values()), "w": max(2 * d for d in points.values()), "d": min(points.values()),
        "t": sum(d * t + i for (t, i), d in points.items()), "read": max(int(W[t, i]) - t for t, i in points),
    }  # fmt: skip
    reduce = {"u": tw.sum("u"), "w": tw.max("w"), "d": tw.min("d"), "t": tw.sum("d * t + i")}
    reduce["read"] = tw.max("w[t, i] - t")
    smallest, largest = min(points.values()), max(points.values())
    expected["at"] = min((t, i) for (t, i), d in points.items() if d == smallest)
    expected["element"] = min((t - 1, i) for (t, i), d in points.items() if d == largest)
    reduce |= {"at": tw.argmin("d"), "element": tw.argmax("w")}

    def body(context):
        given = {"u": tw.field(u, context=context), "w": tw.field(np.array(w), context=context)}
        return tw.run(back, **given, steps=steps, reverse=("t",), reduce=reduce, context=context).results

    for found in results_of(ranks, threads, body):
        assert found == expected


@RANKS
@pytest.mark.parametrize("steps", [1, 4, 70])
def test_adjoint_with_a_forward_wave(ranks, threads, steps):
    numbers = np.random.default_rng(2)
    shape = (9, 8)
    v, later, u = numbers.random(shape), numbers.random(shape), numbers.random((steps + 1, *shape))
    V, images = np.empty((steps + 2, *shape)), np.zeros((steps + 1, *shape))
    V[steps:] = v, later
    for t in range(steps, 0, -1):
        V[t - 1] = V[t]
        for i in range(1, 9):
            for j in range(7):
                adjoint.function(V, u, images, t, i, j)

    def body(context):
        fields = [tw.field(a.shape, "f8", a, context=context) for a in (u, np.zeros_like(u))]
        waves = tw.field(shape, "f8", v, history=[later], context=context)
        given = {"v": waves, "u": fields[0], "image": fields[1]}
        report = tw.run(adjoint, **given, steps=steps, reverse=("t",), context=context, plan={"threads": threads})
        assert f"t in range(1, {steps + 1})" in str(report)
        return waves.gather(), waves.buffer(-1).gather(), fields[1].gather()

    found = results_of(ranks, threads, body)[0]
    for one, other in zip(found, (V[0], V[1], images), strict=True):
        assert one.tobytes() == other.tobytes()


@RANKS
def test_sources_and_receivers_in_the_order_of_the_run(ranks, threads):
    back = tw.nest_from("def back(u, t, i):\n    u[t-1, i] = u[t, i-1] + u[t, i+1] + 2 * u[t+1, i] + t\n")
    start, steps = np.random.default_rng(3).integers(-9, 9, 17), 6
    values = np.arange(12).reshape(6, 2)
    u, later, recorded = start.copy(), start.copy(), []
    for row, t in enumerate(range(steps, 0, -1)):
        new = u.copy()
        new[1:-1] = u[:-2] + u[2:] + 2 * later[1:-1] + t
        np.add.at(new, [3, 0], values[row])
        u, later = new, u
        recorded.append(new[[3, 8]])

    def body(context):
        f = tw.field((17,), "i8", start, context=context)
        how = {"steps": steps, "reverse": ("t",), "context": context}
        report = tw.run(back, u=f, **how, inject={"u": ([3, 0], values)}, record={"u": [3, 8]})
        g = tw.field((17,), "i8", start, context=context)
        tw.run(back, u=g, **how)
        bound = tw.bind(back, u=tw.field((17,), "i8", start, context=context), **how)
        bound.run()
        assert np.array_equal(bound._arguments["u"][...], g[...])
        return f.gather(), report.recorded["u"]

    for whole, rows in results_of(ranks, threads, body):
        assert whole is None or np.array_equal(whole, u)
        assert np.array_equal(rows, recorded)


@RANKS
def test_several_nests_and_chains(ranks, threads):
    electric = tw.nest_from("def electric(E, H, t, i):\n    E[t-1, i] = E[t, i] + H[t, i] - H[t, i-1]\n")
    magnetic = tw.nest_from("def magnetic(H, E, w, t, i):\n    H[t-1, i] = H[t, i] + E[t-1, i+1] - w[t, i] * t\n")
    numbers, steps, n = np.random.default_rng(4), 5, 14
    E, H, w = numbers.integers(-9, 9, n), numbers.integers(-9, 9, n), numbers.integers(-9, 9, (steps + 1, n))
    e, h = E.copy(), H.copy()
    for t in range(steps, 0, -1):
        e[1:] = e[1:] + h[1:] - h[:-1]
        h[:-1] += e[1:] - w[t, :-1] * t

    def body(context):
        def fields():
            return [tw.field(a.shape, "i8", a, context=context) for a in (E, H, w)]

        first, second, third = fields()
        arrays = {"E": first, "H": second, "w": third}
        for _ in range(2):  # the second call is a cached one
            first[...], second[...] = E, H
            tw.run((electric, magnetic), **arrays, steps=steps, reverse=("t",), context=context)
        also, beside, saved = fields()
        how = {"reverse": ("t",), "context": context}
        with pytest.raises(tw.ConfigError, match="some nests only"):
            other = tw.nest_from("def other(E, s, i):\n    E[s+1, i] = E[s, i]\n")
            tw.run((electric, other), E=first, H=second, steps=2, **how)
        chain = tw.chain([tw.bind(electric, E=also, H=beside, steps=1, **how)] * 2)
        chain.run(times=2)
        del saved
        return first.gather(), second.gather(), also.gather()

    found = results_of(ranks, threads, body)[0]
    assert np.array_equal(found[0], e) and np.array_equal(found[1], h)
    assert np.array_equal(found[2][1:], E[1:] + 4 * (H[1:] - H[:-1])) and found[2][0] == E[0]


@tw.nest
def fades(u, t, i):
    u[t-1, i] = 0.5 * u[t, i] + t


@tw.nest
def follows(v, u, t, i):
    v[t-1, i] = 0.5 * v[t, i] + u[t-1, i] + 2 * t


@pytest.mark.parametrize("first, then", [(1, 3), (5, 2), (9, 300), (9000, 7000)])
def test_other_numbers_of_steps_of_the_same_arrays(first, then):
    """Time is counted from the last step of each run, also where blocks of steps or a time step are known."""
    start = np.arange(5.0)
    expected = {steps: after(start, steps) for steps in (first, then)}
    u, v = start.copy(), start.copy()
    given = {"u": u, "v": v, "reverse": ("t",)}

    def found(run, steps):
        u[:], v[:] = start, start
        run(steps=steps)
        return u.copy(), v.copy()

    one = tw.bind(fades, u=u, reverse=("t",), steps=first)
    both = tw.bind((fades, follows), steps=first, **given)
    for steps in (first, then, first):
        assert np.array_equal(found(one.run, steps)[0], expected[steps][0])
        alone = found(lambda **more: tw.run(fades, u=u, reverse=("t",), **more), steps)
        assert np.array_equal(alone[0], expected[steps][0])
        assert np.array_equal(found(both.run, steps), expected[steps])
        assert np.array_equal(found(lambda **more: tw.run((fades, follows), **given, **more), steps), expected[steps])


def after(start, steps):
    u, v = start.copy(), start.copy()
    for t in range(steps, 0, -1):
        u = 0.5 * u + t
        v = 0.5 * v + u + 2 * t
    return u, v


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_is_refused(ranks):
    forth = tw.nest_from("def forth(u, t, i):\n    u[t+1, i] = u[t, i-1]\n")
    back = tw.nest_from("def back(u, w, t, i):\n    u[t-1, i] = u[t, i] + w[t, i]\n")

    def given(context, steps=4):
        return {"w": tw.field((5, 7), "f8", context=context), "steps": steps, "context": context}

    def field(context):
        return tw.field((7,), "f8", context=context)

    refused_on_all(
        ranks, lambda c: tw.run(forth, u=field(c), steps=4, reverse=("t",), context=c), "no time that runs backwards"
    )
    refused_on_all(ranks, lambda c: tw.run(back, u=field(c), **given(c)), "for time that runs backwards")
    refused_on_all(ranks, lambda c: tw.run(back, u=field(c), reverse=["t"], **given(c, 3)), "elements there, 4")
    raising = tw.nest_from("def raising(u, t, i):\n    u[t-1, i] = u[t, i]\n    assert t != 2\n")
    with pytest.raises(tw.KernelError, match=r"t=2, i=0"):
        tw.run(raising, u=np.zeros(1), steps=4, reverse=("t",))
