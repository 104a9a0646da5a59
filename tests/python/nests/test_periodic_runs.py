"""Periodic loops: what they mean, with whatever arrays are given, and what is refused."""

import numpy as np
import pytest
from local_ranks import on_ranks, results_of

import tilewave as tw
from tilewave import _core
from tilewave.errors import ConfigError


@tw.nest
def drift(u, w, V, t, i, j):
    u[t+1, i, j] = u[t, i-1, j] + V[i+2] * u[t, i, j+1] + w[i, j-1] + i - 2 * j


def plain(u, w, V, steps, rows=slice(None)):
    i, j = np.ogrid[: u.shape[0], : u.shape[1]]
    for _ in range(steps):
        new = np.roll(u, 1, 0) + np.roll(V, -2)[:, None] * np.roll(u, -1, 1) + np.roll(w, 1, 1) + i - 2 * j
        u = u.copy()
        u[rows] = new[rows]
    return u


def arrays(shape=(7, 6)):
    rng = np.random.default_rng(4)
    return rng.integers(-9, 9, shape), rng.integers(-9, 9, shape), rng.integers(-2, 3, shape[0])


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (2, 1), (3, 1), (6, 1)])
def test_a_nest_that_writes_nothing(ranks, threads):
    """Points are cut where the elements are that they are named for, whatever the body reads first."""
    nest = tw.nest_from("def body(u, i, j):\n    d = u[i-1, j] - 3 * u[i+2, j-1]\n")
    u = arrays()[0]
    d = np.roll(u, 1, 0) - 3 * np.roll(np.roll(u, -2, 0), 1, 1)

    def body(context):
        reduce = {"sum": tw.sum("d"), "most": tw.max("d"), "where": tw.argmax("d"), "count": tw.sum("1")}
        given = {"u": tw.field(u, context=context), "periodic": ("i", "j"), "context": context}
        return tw.run(nest, **given, reduce=reduce).results

    where = np.unravel_index(d.argmax(), d.shape)
    for found in results_of(ranks, threads, body):
        assert found == {"sum": d.sum(), "most": d.max(), "where": where, "count": d.size}


@tw.nest
def on_faces(f, p, i, j):
    f[i, j] = f[i, j] + p[i, j] - p[i-1, j]


@tw.nest
def on_cells(p, f, i, j):
    p[i, j] = p[i, j] + f[i+1, j] - 2 * f[i, j]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_cells_and_their_faces(ranks, seed):
    """n faces do as n + 1 of which the last is a copy of the first."""
    rng = np.random.default_rng(seed + ranks)
    n, m, rounds = *rng.integers(1, 12, 2), 5
    p, f = rng.integers(-9, 9, (n, m)), rng.integers(-9, 9, (n, m))
    cells, faces = p.copy(), np.concatenate([f, f[:1]])
    for _ in range(rounds):
        faces[:n] += cells - np.roll(cells, 1, 0)
        faces[n] = faces[0]
        for i in range(n):
            cells[i] += faces[i + 1] - 2 * faces[i]

    def body(context):
        given = {name: tw.field(a.shape, "i8", a, context=context) for name, a in (("p", p), ("f", f))}
        for _ in range(rounds):
            for nest in (on_faces, on_cells):
                tw.run(nest, **given, periodic=("i",), context=context)
        assert np.array_equal(given["p"][...], cells) and np.array_equal(given["f"][...], faces[:n])

    results_of(ranks, 1, body)


def test_numpy_arrays_in_place():
    u, w, V = arrays()
    expected = plain(u, w, V, 5)
    tw.run(drift, u=u, w=w, V=V, steps=5, periodic=("i", "j"))
    assert np.array_equal(u, expected)


def test_a_bound_nest_looks_at_its_arrays_anew():
    u, w, V = arrays()
    bound = tw.bind(drift, u=u, w=w, V=V, steps=2, periodic=["i", "j"])
    for _ in range(2):
        expected = plain(u, w, V, 2)
        bound.run()
        assert np.array_equal(u, expected)
        w += 3
        V[2] = 5


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("as_fields", [True, False])
@pytest.mark.parametrize("together", [1, 3])
def test_indices_and_narrowed_loops(ranks, as_fields, together):
    u, w, V = arrays()
    expected = plain(u, w, V, 6, slice(1, 6))

    def body(context):
        field = tw.field(u.shape, "i8", u, context=context)
        others = {"w": w, "V": V}
        if as_fields:
            others = {name: tw.field(a.shape, "i8", a, context=context) for name, a in others.items()}
        choices = {"grid": (1, ranks, 1), "temporal_block": together} if together > 1 else {}
        tw.run(
            drift, u=field, **others, steps=6, periodic=("i", "j"), over={"i": (1, 6)}, context=context, plan=choices
        )
        return field.gather()

    results = results_of(ranks, 2, body)
    assert np.array_equal(results[0], expected)


@pytest.mark.parametrize("ranks", [1, 2])
def test_bound_fields(ranks):
    @tw.nest
    def blur(u, t, i, j):
        u[t+1, i, j] = u[t, i-3, j] + u[t, i, j+1]

    def body(context):
        u = tw.field((5, 7), "i8", lambda i, j: i - 3 * j, context=context)
        bound = tw.bind(blur, u=u, steps=2, periodic=("i", "j"), context=context)
        bound.run()
        bound.run(steps=5)
        return u.gather()

    results = results_of(ranks, 1, body)
    u = np.arange(5)[:, None] - 3 * np.arange(7)
    for _ in range(7):
        u = np.roll(u, 3, 0) + np.roll(u, -1, 1)
    assert np.array_equal(results[0], u)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_bodies_that_reach_further_than_the_axis_is_long(ranks):
    far = tw.nest_from("def far(u, t, i):\n    u[t+1, i] = u[t, i] + u[t, i-5] + 2 * u[t, i+7]\n")
    expected = start = np.array([1, 2, 4])
    for _ in range(3):
        expected = expected + np.roll(expected, 5) + 2 * np.roll(expected, -7)

    def body(context):
        u = tw.field((3,), "i8", start, context=context)
        tw.run(far, u=u, steps=3, periodic=("i",), context=context)
        return u.gather()

    results = results_of(ranks, 1, body)
    assert np.array_equal(results[0], expected)


@pytest.mark.parametrize("periodic", [(), ("i",)])
def test_halos_wider_than_blocks(periodic):
    wide = tw.nest_from("def wide(u, t, i, j):\n    u[t+1, i, j] = u[t, i, j] + u[t, i-4, j] - 3 * u[t, i+4, j]\n")
    start = np.random.default_rng(2).integers(-9, 9, (13, 3))

    def run(context, plan=None):
        u = tw.field(start.shape, "i8", start, context=context)
        tw.run(wide, u=u, steps=5, periodic=periodic, context=context, plan=plan)
        return u.gather()

    alone, _ = on_ranks(1, 1, run)
    for choices in ({}, {"temporal_block": 2}):  # 3, 2 and 2 rows a rank
        plan = {"grid": (1, 6, 1), "generator": "stencil", **choices}
        results = results_of(6, 1, lambda c: run(c, plan))
        assert np.array_equal(results[0], alone[0])


@pytest.mark.parametrize("ranks", [1, 4])
def test_heat_converges_at_second_order(ranks):
    @tw.nest
    def heat(u, t, i, j, *, r=0.2):
        u[t+1, i, j] = u[t, i, j] + r * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1] - 4 * u[t, i, j])

    def error(n):
        x, y = np.meshgrid(*[np.arange(n) / n] * 2, indexing="ij")
        start, steps = np.sin(2 * np.pi * x) * np.cos(2 * np.pi * (y + 0.1)), n * n // 16

        def body(context):
            u = tw.field((n, n), "f8", start, context=context)
            tw.run(heat, u=u, steps=steps, periodic=("i", "j"), context=context)
            return u.gather()

        results = results_of(ranks, 1, body)
        exact = np.exp(-8 * np.pi**2 * 0.2 * steps / n**2) * start
        return abs(results[0] - exact).max()

    errors = [error(n) for n in (16, 32)]
    assert errors[0] / errors[1] > 3.7, errors


def test_nests_in_turn():
    @tw.nest
    def forth(a, b, t, i):
        a[t+1, i] = a[t, i] + b[t, i+1]

    @tw.nest
    def back(a, b, t, i):
        b[t+1, i] = b[t, i] - a[t+1, i-1]

    a, b = np.arange(5), np.arange(5)[::-1].copy()
    fields = [tw.field((5,), "i8", x) for x in (a, b)]
    tw.run((forth, back), a=fields[0], b=fields[1], steps=3, periodic=("i",))
    for _ in range(3):
        a = a + np.roll(b, -1)
        b = b - np.roll(a, 1)
    assert np.array_equal(fields[0].gather(), a) and np.array_equal(fields[1].gather(), b)


def test_without_time():
    @tw.nest
    def laplacian(d, u, i, j):
        d[i, j] = u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] - 4 * u[i, j]

    u = arrays()[0]
    d = tw.field(u.shape, "i8")
    report = tw.run(laplacian, d=d, u=tw.field(u.shape, "i8", u), periodic=("i", "j"), reduce={"sum": tw.sum("d")})
    assert np.array_equal(d.gather(), sum(np.roll(u, s, k) for s in (1, -1) for k in (0, 1)) - 4 * u)
    assert report.results["sum"] == 0


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 1), (5, 1)])
@pytest.mark.parametrize("given", [{}, {"temporal_block": 2}])
def test_bounds_of_other_loops(ranks, threads, given):
    """They say which points are computed; what these read wraps around."""
    inner = tw.nest_from("def inner(d, u, i, j):\n    e = u[i-1, j] - 2 * u[i, j+2]\n    d[i, j] = e\n")
    moved = tw.nest_from("def moved(u, t, i, j):\n    e = u[t, i-1, j] + 3 * u[t, i, j+1]\n    u[t+1, i, j] = e\n")
    start, steps = np.random.default_rng(4).integers(-9, 9, (11, 9)), 5
    over = {"i": (0, 11, 2), "j": ([0, "i - 2"], [9, lambda i: i + 4])}
    at = tuple(np.array([(i, j) for i in range(0, 11, 2) for j in range(max(0, i - 2), min(9, i + 4))]).T)
    e = np.roll(start, 1, 0) - 2 * np.roll(start, -2, 1)
    written, total, last, sums = np.zeros_like(start), e[at].sum(), start.copy(), 0
    written[at] = e[at]
    for t in range(steps):
        e = np.roll(last, 1, 0) + 3 * np.roll(last, -1, 1)
        later = tuple(index[at[1] >= t] for index in at)
        last[later], sums = e[later], sums + e[later].sum()

    def body(context):
        d, u, v = (tw.field(x, context=context) for x in (written * 0, start, start))
        how = {"over": over, "periodic": ("i", "j"), "context": context, "reduce": {"sum": tw.sum("e")}}
        assert tw.run(inner, d=d, u=u, **how).results["sum"] == total
        how["over"] = {**over, "j": ([*over["j"][0], "t"], over["j"][1])}
        assert tw.run(moved, u=v, steps=steps, plan=given, **how).results["sum"] == sums
        return d[...], v[...]

    for found in results_of(ranks, threads, body):
        assert np.array_equal(found[0], written) and np.array_equal(found[1], last)


def test_schedules_prove_that_halos_wrap():
    u, w, V = arrays()
    schedule = tw.schedule(drift, u=tw.field(u.shape, "i8", u), w=w, V=V, steps=3, periodic=("i", "j"))
    assert tw.check(schedule) is None
    core = schedule._cores[0]
    copies = [m for m, message in enumerate(core.messages) if message.peer == 0 and not message.send]
    assert copies
    for kind in ("missing", "from elsewhere"):
        lane = [(s.op, s.item, s.count) for s in core.lanes[0]]
        messages = core.messages
        if kind == "missing":
            lane = [step for step in lane if step[:2] != ("unpack", copies[-1])]
        else:
            box = messages[copies[-1]].region
            lo, hi = (tuple(x + (k == 1) for k, x in enumerate(corner)) for corner in box)
            messages[copies[-1]].region = lo, hi
        broken = _core.Schedule()
        for name in ("rank", "ranks", "works", "arrays", "tiles", "buffers", "results"):
            setattr(broken, name, getattr(core, name))
        broken.messages, broken.lanes = messages, [[_core.Step(*step) for step in lane]]
        assert _core.check([broken]) is not None, kind


@tw.nest
def relax(u, t, i, j):
    u[t+1, i, j] = u[t+1, i-1, j] + u[t, i, j+1]


@tw.nest
def prefix(A, i):
    A[i] = A[i-1] + 1


@tw.nest
def whole(A, V, i, j):
    A[i, j] = V[i+1, j] + sum(V[q, j] for q in range(2))


@tw.nest
def scaled(A, E, i, j):
    A[i, j] = A[i, j] * E[i, j-1]


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("field_read", [False, True])
def test_arrays_written_where_they_lie_beside_fields(order, field_read):
    values = np.arange(1.0, 61).reshape(12, 5)
    A = np.array(values, order=order)
    tw.run(scaled, A=A, E=tw.field(values) if field_read else values, periodic=("i", "j"))
    assert np.array_equal(A, values * np.roll(values, 1, 1))


@pytest.mark.parametrize(
    "nest, given, text",
    [
        (whole, {"periodic": ("i",), "A": np.zeros((3, 4)), "V": np.ones((3, 4))}, "inside the body, does not wrap"),
        (drift, {"periodic": ("k",)}, "'k' is no index of the nest"),
        (drift, {"periodic": ("t",)}, "'t' is the time"),
        (drift, {"periodic": "ij"}, "allowed: a tuple of index names"),
        (drift, {"periodic": ("i",), "V": np.zeros(9, "i8")}, "allowed: equal extents"),
        (relax, {"periodic": ("i",)}, "depend on each other"),
        (prefix, {"periodic": ("i",)}, "depend on each other"),
        (drift, {"periodic": ("i",), "over": {"i": (-1, 8)}}, "reach outside the points"),
        (drift, {"periodic": ("i",), "plan": {"generator": "sweep"}}, "allowed: stencil"),
        (relax, {"plan": {"generator": "stencil"}}, "depend on each other"),
    ],
)
def test_refused(nest, given, text):
    u, w, V = arrays()
    all_arrays = {"u": tw.field(u.shape, "i8", u), "w": w, "V": V, "A": tw.field((9,), "i8")}
    mine = {name: all_arrays[name] for name in nest.arrays} | given
    if nest.time:
        mine["steps"] = 2
    with pytest.raises(ConfigError, match=text):
        tw.run(nest, **mine)


@tw.nest
def neighbours(x, i, j):
    d = x[i-1, j] - 3 * x[i+2, j] + x[i, j-1]  # noqa: F841


@pytest.mark.parametrize("ranks,threads", [(1, 1), (1, 2), (2, 1), (3, 1), (5, 1)])
def test_a_nest_that_writes_nothing_reads_across_the_ends(ranks, threads):
    """Its points are cut by what it reads first, at any offset."""
    x = np.random.default_rng(8).integers(-99, 99, (11, 6))
    d = (np.roll(x, 1, 0) - 3 * np.roll(x, -2, 0))[:, 1:] + x[:, :-1]

    def body(context):
        field, reduce = tw.field(x, context=context), {"sum": tw.sum("d"), "least": tw.min("d")}
        found = tw.run(neighbours, x=field, periodic=("i",), reduce=reduce, context=context).results
        assert found == {"sum": d.sum(), "least": d.min()}

    results_of(ranks, threads, body)
