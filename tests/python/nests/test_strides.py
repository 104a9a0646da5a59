"""Strides in over=: plain loops over every k-th index, bit for bit."""

import itertools

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of

import tilewave as tw

@pytest.mark.parametrize("ranks, threads", [(1, 2), (2, 1), (3, 1), (4, 1), (6, 1)])
def test_red_and_black_in_a_chain(ranks, threads):
    relax = tw.nest_from(
        "def relax(u, i, j):\n    u[i, j] = u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] - 3 * u[i, j] + i\n"
    )
    n, start = 14, np.random.default_rng(5).integers(-9, 9, (14, 14))
    colours = [{"i": (1 + a, n - 1, 2), "j": (1 + b, n - 1, 2)} for a, b in ((0, 0), (1, 1), (0, 1), (1, 0))]
    expected = start.copy()
    for over in colours * 3:
        for i, j in itertools.product(range(*over["i"]), range(*over["j"])):
            relax.function(expected, i, j)

    def body(context):
        u = tw.field((n, n), "i8", start, context=context)
        chain = tw.chain([tw.bind(relax, u=u, over=over, context=context) for over in colours])
        chain.run(times=3)
        return u.gather()

    assert np.array_equal(results_of(ranks, threads, body)[0], expected)


@pytest.mark.parametrize("ranks, threads", [(1, 2), (2, 1), (3, 1), (4, 1), (6, 1)])
@pytest.mark.parametrize("back", [False, True])
def test_time_steps_and_periodic_loops(ranks, threads, back):
    sign = -1 if back else 1
    heat = tw.nest_from(f"def heat(u, t, i, j):\n    u[t{sign:+d}, i, j] = u[t, i-1, j] + u[t, i+1, j] + t * j\n")
    start, steps, over = np.random.default_rng(6).integers(-9, 9, (11, 9)), 5, {"i": (1, 9, 2), "j": (2, 9, 3)}
    expected, wrapped, added, all_added = (start.copy() for _ in range(4))
    points, values = np.array([(3, 5), (2, 2), (8, 5)]), np.arange(15).reshape(5, 3)  # the last one is behind all loops
    for number, t in enumerate(range(steps, 0, -1) if back else range(steps)):
        for periodic, u in ((False, expected), (True, wrapped), (False, added), (False, all_added)):
            old = u.copy()
            for i, j in itertools.product(range(*over["i"]), range(0 if periodic else 2, 9, 3)):
                u[i, j] = old[i - 1, j] + old[i + 1, j] + t * j
        for u, count in ((added, 2), (all_added, 3)):
            np.add.at(u, tuple(points[:count].T), values[number, :count])

    def body(context):
        how = {"steps": steps, "context": context, "reverse": ("t",) if back else ()}
        u, v = (tw.field((11, 9), "i8", start, context=context) for _ in "uv")
        report = tw.run(heat, u=u, over=over, record={"u": [(3, 5), (2, 2)]}, **how)
        tw.run(heat, u=v, over={"i": (1, 9, 2), "j": (0, 9, 3)}, periodic=("j",), **how)
        for nests, (wanted, count) in itertools.product((heat, (heat,)), ((added, 2), (all_added, 3))):
            w = tw.field((11, 9), "i8", start, context=context)
            given = {"inject": {"u": (points[:count], values[:, :count])}, "record": {"u": points}}
            seen = tw.run(nests, u=w, over=over, **given, **how).recorded["u"]
            assert np.array_equal(w[...], wanted) and np.array_equal(seen[-1], wanted[tuple(points.T)])
        return u.gather(), v.gather(), report.recorded["u"][-1]

    found = results_of(ranks, threads, body)[0]
    assert np.array_equal(found[0], expected) and np.array_equal(found[1], wrapped)
    assert np.array_equal(found[2], expected[[3, 2], [5, 2]])


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_is_said(ranks):
    half = tw.nest_from("def half(A, i):\n    A[i] = A[i] / 2\n    assert i != 7\n")

    def run(context, over, **more):
        return tw.run(half, A=tw.field((10,), "f8", context=context), over=over, context=context, **more)

    refused_on_all(ranks, lambda c: run(c, {"i": (1, 9, 0)}), "have the stride 0; allowed: an int from 1")
    refused_on_all(ranks, lambda c: run(c, {"i": (1, 9, -1)}), "with reverse= the same points come last first")
    refused_on_all(ranks, lambda c: run(c, {"i": (1, 12, 2)}), "(1, 12) of index 'i' reach outside")
    refused_on_all(ranks, lambda c: run(c, {"k": (1, 9, 2)}), "no index 'k'")

    def body(context):
        assert "i in range(0, 9, 2)" in str(run(context, {"i": (0, 10, 2)}))
        with pytest.raises(tw.KernelError, match="at i=7 on"):
            run(context, {"i": (1, 10, 2)})

    results_of(ranks, 1, body)


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_what_is_reduced_is_of_the_points_that_run(ranks, threads):
    """Of arrays, which count at every point, of locals, and of expressions of what is only read, and of indices."""
    nest = tw.nest_from(
        "def body(A, B, i, j):\n    d = A[i, j] - B[i-1, j] + 0 * B[i, j]\n    if d > 0:\n        e = d\n"
        "    A[i, j] = d + j\n"
    )
    A, B = np.random.default_rng(8).integers(-9, 9, (2, 12, 9))
    at = [(i, j) for i in range(1, 12, 3) for j in range(1, 9, 2)]
    d = {(i, j): int(A[i, j] - B[i - 1, j]) for i, j in at}
    after = {(i, j): d[i, j] + j for i, j in at}
    expected = {
        "sum": sum(after.values()), "most": max(after.values()), "where": min(at, key=lambda x: (after[x], x)),
        "e": min(at, key=lambda x: (-d[x], x)), "positive": sum(x for x in d.values() if x > 0),
        "read": max(int(B[i, j]) * i for i, j in at), "dot": sum(after[x] * int(B[x]) for x in at), "count": len(at),
    }  # fmt: skip
    reduce = {
        "sum": tw.sum("A"), "most": tw.max("A"), "where": tw.argmin("A"), "e": tw.argmax("e"), "positive": tw.sum("e"),
        "read": tw.max("B * i"), "dot": tw.dot("A", "B"), "count": tw.sum("1"),
    }  # fmt: skip

    def body(context):
        given = {name: tw.field(value, context=context) for name, value in (("A", A), ("B", B))}
        over = {"i": (1, 12, 3), "j": (1, 9, 2)}
        return tw.run(nest, **given, over=over, reduce=reduce, context=context).results

    for found in results_of(ranks, threads, body):
        assert found == expected


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("door", ["bind", "chain"])
def test_what_is_bound_is_the_nest_with_strides(ranks, door):
    """Arrays that every rank gets whole are those of its views; errors name the indices as they were given."""
    nest = tw.nest_from(
        "def some(E, F, A, i, j, *, bad=-1):\n"
        "    if i == bad:\n        raise ValueError('here')\n"
        "    A[i, j] = E[i-1] * F[i] + E[i]\n"
    )
    E, F, start = np.arange(6.0), np.arange(6.0) + 1, np.arange(66.0).reshape(6, 11)
    expected = start.copy()
    for point in ((i, j) for i in range(2, 6, 3) for j in range(4, 11, 2)):
        nest.function(E, F, expected, *point)

    def body(context):
        A, field = tw.field(start, context=context), tw.field(F, context=context)
        over = {"i": (2, 6, 3), "j": (4, 11, 2)}
        bound = tw.bind(nest, E=E, F=field, A=A, over=over, context=context)
        run = tw.chain([bound]).run if door == "chain" else bound.run
        run()
        whole = A.gather()
        with pytest.raises(tw.KernelError, match=r"at i=5, j=4 on rank"):
            run(bad=5)
        return whole

    assert np.array_equal(results_of(ranks, 1, body)[0], expected)
