"""Reductions of locals, elements and expressions, and of whole fields, against plain Python: math.fsum and NumPy.

A failure prints its seed; TILEWAVE_SEED=123 runs that case alone."""
# ruff: noqa: F841 - what is assigned is reduced

import math
import os
import random
import textwrap

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])

# Bodies with their locals and arrays of one value a point. `d` is assigned everywhere, `e` where there is one
# somewhere.
BODIES = {
    "sweep": """
        def sweep(A, B, i, j):
            d = A[i-1, j] + B[i, j] - A[i, j-1]
            A[i, j] = d
            if d > B[i, j-1]:
                e = d - B[i, j]
    """,
    "jacobi": """
        def jacobi(A, B, i, j):
            d = B[i-1, j] + B[i+1, j] - B[i, j+1]
            A[i, j] = d - B[i, j]
            if i % 3 == 1:
                e = A[i, j]
            else:
                if B[i, j] > B[i-1, j]:
                    e = B[i, j]
    """,
    "product": """
        def product(A, B, i, j):
            d = A[i, j] * B[i, j]
    """,
    "residual": """
        def residual(A, B, i, j):
            d = A[i, j] - (B[i-1, j] + B[i, j-2])
            if d > 0:
                e = A[i, j]
    """,
    "line": """
        def line(A, B, i):
            A[i] = B[i] - A[i-1]
            d = max(A[i], B[i-2])
    """,
    "space": """
        def space(A, B, i, j, k):
            d = B[i, j, k] - B[i-1, j, k]
            A[i, j, k] = A[i, j-1, k] + d
            if j > i:
                e = d
    """,
    "steps": """
        def steps(A, t, i, j):
            A[t+1, i, j] = A[t, i, j] - A[t+1, i-1, j]
            d = A[t+1, i, j] - A[t, i, j]
            if t % 2:
                e = d
    """,
}
NESTS = {name: tw.nest_from(text) for name, text in BODIES.items()}


def watched(text):
    """The body, which tells its locals at the end of each point."""
    names = {"np": np}
    lines = textwrap.dedent(text).rstrip() + "\n    SEEN(dict(locals()))\n"
    exec(lines, names)
    return next(value for value in names.values() if hasattr(value, "__code__")), names


def random_array(dice, generator, shape, dtype):
    """Values near each other, or of all sizes, or few different ones."""
    if np.dtype(dtype).kind != "f":
        span = dice.choice([(0, 3), (0, 120), (0, 250)]) if dtype[0] == "u" else dice.choice([(-2, 3), (-1000, 1000)])
        return generator.integers(*span, shape).astype(dtype)
    values = generator.standard_normal(shape)
    kind = dice.randrange(3)
    if kind == 1:
        values *= 10.0 ** generator.integers(-15, 15, shape)
    if kind == 2:
        values = np.round(values)
    return values.astype(dtype)


def exact_sum(values):
    """As documented: int64 modulo 2**64, or the exact sum rounded once."""
    if all(isinstance(v, int | np.integer | bool | np.bool_) for v in values):
        total = sum(map(int, values)) % 2**64
        return np.int64(total - 2**64 if total >= 2**63 else total)
    return floats_sum(map(float, values))


def floats_sum(values):
    """That of the infinite ones and NaN alone, where there are such."""
    values = [*values]
    odd = [v for v in values if not math.isfinite(v)]
    if odd:
        return np.float64(math.nan if any(v != odd[0] for v in odd) else odd[0])
    return np.float64(math.fsum(values))


def best(points, sign):
    """(value, where) of the largest or smallest, of equals the first."""
    nan = min((p for p, v in points if v != v), default=None)
    if nan is not None:
        return math.nan, nan
    at = min(points, key=lambda p: (-sign * np.asarray(p[1]).item(), p[0]))
    return at[1], at[0]


def wanted_of(kind, first, second=None):
    """The definition; `first` and `second` are lists of (point, value)."""
    values = [v for _, v in first]
    if kind == "sum":
        return exact_sum(values)
    if kind == "dot":
        other = dict(second)
        pairs = [(v, other[p]) for p, v in first if p in other]
        if all(isinstance(x, int | np.integer) for pair in pairs for x in pair):
            return exact_sum([int(x) * int(y) for x, y in pairs])
        return exact_sum([float(x) * float(y) for x, y in pairs])
    if kind == "norm1":
        return floats_sum(abs(float(v)) for v in values)
    if kind == "norm2":
        return np.sqrt(floats_sum(float(v) * float(v) for v in values))
    if kind == "norminf":
        return best([(0, 0.0), *((1, abs(float(v))) for v in values)], 1)[0]
    if not first:
        return None
    value, at = best(first, 1 if kind.endswith("max") else -1)
    return at if kind.startswith("arg") else value


MADE = {
    "sum": tw.sum,
    "norm1": lambda text: tw.norm(text, 1),
    "norm2": tw.norm,
    "norminf": lambda text: tw.norm(text, ord=np.inf),
    **{kind: getattr(tw, kind) for kind in ("max", "min", "argmax", "argmin")},
}
SEEDS = [*range(16), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(16, 60))]
if "TILEWAVE_SEED" in os.environ:
    SEEDS = [int(os.environ["TILEWAVE_SEED"])]


def same(found, wanted):
    """Down to the bits, None and tuples among them."""
    if isinstance(wanted, tuple) or wanted is None:
        return found == wanted
    return found == wanted or (found != found and wanted != wanted)


def random_case(seed):
    """One nest, its arrays, and all reductions of its values; what differs, as texts."""
    dice, generator = random.Random(seed), np.random.default_rng(seed)
    name = dice.choice([*BODIES])
    nest, dtype = NESTS[name], dice.choice(["f4", "f8", "i4", "i8", "u1", "u2", "u4", "u8"])
    dims = len(nest.indices) - (name == "steps")
    shape = tuple(dice.choice([1, 2, 3, 5, 9, 17, 40] if dims < 3 else [2, 3, 7, 12]) for _ in range(dims))
    start = {array: random_array(dice, generator, shape, dtype) for array in nest.arrays}
    steps = dice.choice([0, 1, 3, 4]) if name == "steps" else None
    reverse = tuple(index for index in nest.indices if index != "t" and dice.random() < 0.2)
    choices = {"threads": dice.choice([1, 1, 2, 3])}
    context = tw.context()
    if dice.random() < 0.5 and name in ("jacobi", "product", "residual"):
        grid = dice.choice([(context.size, 1), (1, context.size)])
        choices["grid"] = grid
    fields = {array: tw.field(value) for array, value in start.items()}
    if name == "sweep" and dice.random() < 0.5:
        fields["A"] = tw.field(shape, dtype, init=start["A"], keep="window")

    # The definition.
    seen, body = [], watched(BODIES[name])
    body[1]["SEEN"] = seen.append
    box = nest.iteration_box(dict.fromkeys(nest.arrays, shape if steps is None else (2, *shape)))
    if steps is not None:
        box = ((0, steps), *box[1:])
    plain = {array: value.copy() for array, value in start.items()}
    if steps is not None:
        plain["A"] = np.concatenate([plain["A"][None]] * (steps + 1))
    ranges = [
        range(lo, hi)[:: -1 if index in reverse else 1] for index, (lo, hi) in zip(nest.indices, box, strict=True)
    ]
    with np.errstate(all="ignore"):
        for number, point in enumerate(np.ndindex(*map(len, ranges))):
            at = [r[k] for r, k in zip(ranges, point, strict=True)]
            if steps is not None and number and not any(point[1:]):
                plain["A"][at[0] + 1] = np.where(False, 0, plain["A"][at[0]])
            body[0](*plain.values(), *at)
    points = [(tuple(each[index] for index in nest.indices), each) for each in seen]
    locals_ = {
        local: [(p, each[local]) for p, each in points if local in each]
        for local in ("d", "e")
        if f"{local} =" in BODIES[name]
    }
    reduce, wanted = {}, {}
    for local, values in locals_.items():
        for kind, make in MADE.items():
            reduce[f"{kind} {local}"] = make(local)
            wanted[f"{kind} {local}"] = wanted_of(kind, values)
        reduce[f"dot {local}"] = tw.dot("d", local)
        wanted[f"dot {local}"] = wanted_of("dot", locals_["d"], values)
    with np.errstate(all="ignore"):
        reduce["sum i*d"] = tw.sum(" i * d")
        wanted["sum i*d"] = wanted_of("sum", [(p, p[nest.indices.index("i")] * v) for p, v in locals_["d"]])
    if name in ("product", "residual"):
        for kind in ("sum", "argmin", "norm2"):
            reduce[f"{kind} A"] = MADE[kind]("A")
            wanted[f"{kind} A"] = wanted_of(kind, [(p, start["A"][p]) for p, _ in points])
        reduce["dot A d"] = tw.dot("A", "d")
        wanted["dot A d"] = wanted_of("dot", [(p, start["A"][p]) for p, _ in points], locals_["d"])

    what = f"seed {seed}: {name} {dtype} {shape} reverse {reverse} steps {steps} {choices} on {context.size} ranks"
    extra = {"steps": steps} if steps is not None else {}
    report = tw.run(nest, **fields, **extra, reverse=reverse, reduce=reduce, plan=choices)
    wrong = [
        f"{what}: {key} is {report.results[key]!r}, plain Python has {wanted[key]!r}"
        for key in wanted
        if not same(report.results[key], wanted[key])
    ]
    if seen:
        kind = np.asarray(locals_["d"][0][1]).dtype
        if report.results["max d"].dtype != kind:
            wrong.append(f"{what}: max d is {report.results['max d'].dtype}, d is {kind}")
    return wrong


@pytest.mark.ranks([1, 2, 3, 4, 6])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_reductions(seed):
    wrong = random_case(seed)
    assert not wrong, "\n".join(wrong[:5])


@tw.nest
def damped(A, B, i, j):
    d = 0.5 * A[i-1, j] + B[i, j] - 0.25 * A[i, j-1]
    A[i, j] = d


@pytest.mark.parametrize("shape", [(3, 1030), (2, 5000), (1100, 1060)])
@pytest.mark.parametrize("name", ["sweep", "product"])
def test_rows_that_are_longer_than_the_memory_of_their_values(name, shape):
    """Which is for 1024: they are computed in parts. Also of rows across two loops."""
    A, B = (np.random.default_rng(k).random(shape) for k in range(2))
    if name == "product":
        given, found = {"A": A, "B": B}, A * B
    else:
        given = {"A": (u := tw.field(A)), "B": tw.field(B)}
    nest = damped if name == "sweep" else NESTS[name]
    report = tw.run(nest, **given, reduce={"sum": tw.sum("d"), "most": tw.max("d"), "at": tw.argmax("d")})
    if name == "sweep":
        inner = u.gather()
        found = np.frombuffer(tw.context()._core.broadcast(b"" if inner is None else inner.tobytes())).reshape(shape)
        found = np.pad(found[1:, 1:], ((1, 0), (1, 0)), constant_values=-np.inf)
    counted = found[np.isfinite(found)]
    assert report.results["sum"] == math.fsum(counted) and report.results["most"] == counted.max()
    assert report.results["at"] == np.unravel_index(found.argmax(), shape)


@pytest.mark.parametrize("dtypes", ["f4", "f8", "i4", "i8", "u1", "f4 i8", "u1 f8", "u2", "u8", "?", "? f4"])
def test_fields(dtypes):
    """Whole fields, also where two are divided in different ways and lie in different orders."""
    one, other = (dtypes.split() * 2)[:2]
    dice, generator = random.Random(dtypes), np.random.default_rng(1)
    for shape in ((700,), (13, 50), (1, 1), (3, 4, 5)):
        x, y = random_array(dice, generator, shape, one), random_array(dice, generator, shape, other)
        u, v = tw.field(x), tw.field(y)
        if len(shape) == 2:
            turned = tw.nest_from("def turned(v, i, j): v[i, j] = v[i, j] + 0 * v[i, j]")
            tw.run(turned, v=v, plan={"grid": (1, tw.context().size)})
            y = v.gather()
            y = tw.context()._core.broadcast(b"" if y is None else y.tobytes())
            y = np.frombuffer(y, other).reshape(shape)
        pairs = [(k, each) for k, each in enumerate(x.ravel())]
        assert same(tw.sum(u), wanted_of("sum", pairs))
        assert same(tw.dot(u, v), wanted_of("dot", pairs, list(enumerate(y.ravel()))))
        assert same(tw.norm(u), wanted_of("norm2", pairs))
        assert same(tw.norm(u, 1), wanted_of("norm1", pairs))
        assert same(tw.norm(u, ord=np.inf), wanted_of("norminf", pairs))
        assert tw.max(u) == x.max() and tw.argmin(u) == np.unravel_index(x.argmin(), shape)
        kind = np.dtype("f8" if one[0] == "f" else "u8" if one == "u8" else "i8")
        assert tw.sum(u).dtype == tw.dot(u, u).dtype == kind


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_fields_in_skewed_storage(dtype):
    """Neighbours in memory lie across two dimensions there."""
    flat = tw.nest_from("def flat(A, i, j): A[i, j] = A[i-1, j] - A[i, j-1]")
    deep = tw.nest_from("def deep(A, i, j, k): A[i, j, k] = A[i, j-1, k] - A[i, j, k-1]")
    generator, context = np.random.default_rng(2), tw.context()
    for nest, shape, row in ((flat, (23, 31), (1, -1)), (flat, (40, 7), (1, -1)), (deep, (5, 9, 12), (0, 1, -1))):
        start = generator.integers(-3, 4, shape).astype(dtype)
        A, B = tw.field(start), tw.field(start)
        tw.run(nest, A=A, plan={"row": row, "storage": "skewed"})
        whole = A.gather()
        whole = np.frombuffer(context._core.broadcast(b"" if whole is None else whole.tobytes()), dtype).reshape(shape)
        pairs, other = [*np.ndenumerate(whole)], [*np.ndenumerate(start)]
        assert same(tw.sum(A), wanted_of("sum", pairs))
        assert same(tw.norm(A), wanted_of("norm2", pairs))
        assert same(tw.dot(A, B), wanted_of("dot", pairs, other)) and same(tw.dot(B, A), tw.dot(A, B))
        assert tw.max(A) == whole.max() and tw.argmin(A) == wanted_of("argmin", pairs)


def test_nothing_and_not_a_number():
    empty, ones, more = tw.field((0, 4), "f8"), tw.field((6, 4), "f8", init=1.0), tw.field((6, 4), "f8", init=1.0)
    assert tw.sum(empty) == 0.0 and tw.dot(empty, empty) == 0.0
    assert [tw.norm(empty, order) for order in (1, 2, np.inf)] == [0.0, 0.0, 0.0]
    with pytest.raises(tw.ConfigError, match=r"max: a field of shape \(0, 4\) has no elements"):
        tw.max(empty)
    asked = {
        "sum": tw.sum("d"), "dot": tw.dot("u", "d"), "norm": tw.norm("d", np.inf), "max": tw.max("d"),
        "argmin": tw.argmin("u"),
    }
    nothing = tw.run(NESTS["product"], A=ones, B=more, over={"i": (3, 3)}, reduce={"d": tw.max("d"), "n": tw.norm("d")})
    assert nothing.results == {"d": None, "n": 0.0}
    body = tw.nest_from("def body(u, i, j): d = u[i, j] / (i - 2) - u[i, j] / (i - 2)")
    asked["u"] = tw.sum("u")
    with np.errstate(all="ignore"):
        found = tw.run(body, u=ones, reduce=asked).results
    assert found["u"] == 24 and found["argmin"] == (0, 0)
    assert all(np.isnan(found[name]) for name in ("sum", "dot", "norm", "max"))
    huge = tw.field((3,), "i8", init=2**62)
    assert tw.sum(huge) == 3 * 2**62 - 2**64 and tw.dot(huge, huge) == 0


def test_elements_that_are_assigned_on_some_paths():
    """An array's name counts at every point, where the element is kept, too; in an expression where it was assigned."""
    some = tw.nest_from(
        """
        def some(A, B, i, j):
            if B[i, j] > A[i, j]:
                A[i, j] = B[i, j] + A[i-1, j]
        """
    )
    generator = np.random.default_rng(7)
    a, b = generator.random((30, 41)), generator.random((30, 41))
    A, B = tw.field(a), tw.field(b)
    wanted = {k: MADE[k]("A") for k in ("sum", "min", "argmin", "norm2")} | {"assigned": tw.sum("A * 1.0")}
    found = tw.run(some, A=A, B=B, reduce=wanted).results
    counted, assigned = [], []
    for i in range(1, 30):
        for j in range(41):
            if b[i, j] > a[i, j]:
                a[i, j] = b[i, j] + a[i - 1, j]
                assigned.append(((i, j), a[i, j]))
            counted.append(((i, j), a[i, j]))
    assert found.pop("assigned") == wanted_of("sum", assigned)
    assert found == {kind: wanted_of(kind, counted) for kind in found}


WRONG = {
    "unknown": (tw.sum("zz"), "'zz' is no name of nest 'residual'"),
    "beside": (tw.max("B"), r"array 'B' is read next to the point only \(B\[i-1, j\], B\[i, j-2\]\)"),
    "no element": (tw.max("B[i, j]"), "is no element that nest 'residual' writes or reads"),
    "no expression": (tw.norm("d +"), "is no expression"),
    "statement": (tw.norm("d = 1"), "is no expression"),
    "from outside": (tw.sum("d * WEIGHT"), "WEIGHT"),
    "a list": (tw.sum("[d]"), "a list is not supported"),
    "unknown function": (tw.sum("hash(d)"), "calling hash is not supported"),
    "in another": (tw.dot("d", "zz"), "'zz' is no name of nest 'residual'"),
    "type": (tw.sum, "allowed: a dict from names to tw.max"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case):
    """The same on every rank, which can then go on."""
    asked, message = WRONG[case]
    A, B = (tw.field((9, 9), "f8", init=1.0) for _ in range(2))
    with pytest.raises(tw.ConfigError, match=message) as error:
        tw.run(NESTS["residual"], A=A, B=B, reduce={"r": asked})
    assert "allowed" in str(error.value)
    assert tw.run(NESTS["residual"], A=A, B=B, reduce={"r": tw.sum("d")}).results == {"r": -56.0}


def test_wrong_calls():
    u, a, b = tw.field((4,), "f8", init=1.0), *(tw.field((3, 3), "f8") for _ in range(2))
    for call, message in (
        (lambda: tw.norm(u, 3), "norm: ord=3 was given; allowed: 1, 2, numpy.inf"),
        (lambda: tw.norm("d", ord="fro"), "norm: ord='fro' was given"),
        (lambda: tw.dot(u), "dot.* missing 1 required positional argument"),
        (lambda: tw.dot(u, np.ones(4)), "dot: given ndarray; allowed"),
        (lambda: tw.dot("u", u), "dot: given a name and Field; allowed: two names, or two fields"),
        (lambda: tw.dot(u, tw.field((5,), "f8")), r"fields of shapes \(4,\) and \(5,\); allowed: two of one shape"),
        (lambda: tw.sum(u, 2), "sum.* takes 1 positional argument"),
        (lambda: tw.run(NESTS["product"], A=a, B=b, steps=2, reduce={"r": tw.sum("d")}), "steps=2: .* writes no array"),
        (lambda: tw.run(NESTS["product"], A=a, B=b), "writes no array; allowed"),
    ):
        with pytest.raises(tw.ConfigError, match=message):
            call()
    assert tw.sum(u) == 4


def test_ranks_that_ask_for_different_reductions():
    context = tw.context()
    A, B = (tw.field((9, 9), "f8", init=1.0) for _ in range(2))
    asked = tw.sum("d") if context.rank == 0 else tw.norm("d")
    if context.size == 1:
        return
    with pytest.raises(tw.ConfigError, match="reductions"):
        tw.run(NESTS["residual"], A=A, B=B, reduce={"r": asked})
    with pytest.raises(tw.ConfigError):
        tw.norm(A, 1 if context.rank == 0 else 2)
    with pytest.raises(tw.ConfigError):
        tw.dot(A, B) if context.rank == 0 else tw.dot(A, A)
    assert tw.norm(A, 1) == 81


@tw.nest
def product(u, v, i, j):
    d = u[i, j] * v[i, j]


@tw.nest
def asymmetry(S, i, j):
    d = S[i, j] - S[j, i]


@tw.nest
def looked_up(T, a, i):
    x = T[a[i]]


def arrays():
    random = np.random.default_rng(3)
    return random.random((30, 40)), random.random((30, 40)), random.random((20, 20))


@pytest.mark.ranks([1, 2, 3])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("as_field", [False, True])
def test_every_kind(as_field):
    a, b, s = arrays()
    table, subscripts = np.random.default_rng(4).random(9), np.random.default_rng(5).integers(0, 9, 50)
    given = tw.field if as_field else np.array
    assert tw.run(product, u=given(a), v=given(b), reduce={"r": tw.sum("d")}).results["r"] == math.fsum((a * b).ravel())
    wanted = {"norm": tw.norm("d", np.inf), "other": tw.sum("S[j, i]"), "more": tw.sum("d > 0"), "any": tw.max("d > 0")}
    found = tw.run(asymmetry, S=given(s), reduce=wanted).results
    assert found["norm"] == abs(s - s.T).max() and found["other"] == math.fsum(s.ravel())
    assert found["more"] == (s > s.T).sum() and found["any"] == np.True_ and found["more"].dtype == np.int64
    found = tw.run(looked_up, T=table, a=given(subscripts), reduce={"x": tw.sum("x"), "at": tw.argmax("x")}).results
    assert found == {"x": math.fsum(table[subscripts]), "at": (table[subscripts].argmax(),)}


def test_plans_and_refusals():
    a, b, s = arrays()
    u, v = tw.field(a), tw.field(b)
    assert tw.plan(product, u=u, v=v, reduce={"r": tw.sum("d")}).grid
    for call, message in (
        (lambda: tw.plan(product, u=u, v=v), "writes no array; allowed"),
        (lambda: tw.run((product, product), u=u, v=v, steps=2), "steps=2: nest 'product' writes no array"),
        (lambda: tw.run(asymmetry, S=s, reduce={"r": tw.sum("S")}), "array 'S' is read in several orders"),
        (lambda: tw.run(looked_up, T=s[0], a=np.arange(3), reduce={"r": tw.sum("T")}), "array 'T' is a table"),
    ):
        with pytest.raises(tw.ConfigError, match=message):
            call()
    assert tw.run(product, u=u, v=v, reduce={"r": tw.dot("u", "v")}).results["r"] == tw.dot(u, v)


@tw.nest
def drifting(u, t, i):
    u[t+1, i] = i - t


def test_elements_whose_place_later_rows_take():
    u = tw.field((34,), "f4")
    for steps in (1, 2, 5):
        wanted = {"sum": tw.sum("u"), "max": tw.max("u"), "min": tw.min("u")}
        found = tw.run(drifting, u=u, steps=steps, reduce=wanted).results
        points = [i - t for t in range(steps) for i in range(34)]
        assert found == {"sum": sum(points), "max": max(points), "min": min(points)}


@tw.nest
def later(u, t, i, j):
    u[t+1, i, j] = 10 * t + i - j


@pytest.mark.parametrize("row", [(1, 0, 0), (1, -1, 0), (1, 0, -1), (0, 0, 1)])
def test_elements_whose_place_points_of_other_steps_take(row):
    u = tw.field((5, 4))
    wanted = {"sum": tw.sum("u"), "max": tw.max("u"), "min": tw.min("u")}
    found = tw.run(later, u=u, steps=3, reduce=wanted, plan={"row": row}).results
    points = [10 * t + i - j for t in range(3) for i in range(5) for j in range(4)]
    assert found == {"sum": sum(points), "max": max(points), "min": min(points)}
