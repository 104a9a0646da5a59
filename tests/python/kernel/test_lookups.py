"""Lookups that are computed before a row's points, against plain loops and against lookups one by one."""

import ctypes
import random
import re

import llvmlite.binding as llvm
import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw
import tilewave.kernel.processor
from kernel_helpers import Raised, Runner, check, constant_steps, relaid, rows_in_order, ways
from kernel_bodies import DTYPES as NAMES
from tilewave.kernel.tables.permuted import MOST_ELEMENTS, NARROW, UNFIT, PERMUTATIONS, WHOLE, Layout
from tilewave.kernel.compile import ROW, ROWS, compile_kernel
from tilewave.kernel.rows.extremes import Best

DTYPES = [np.dtype(name) for name in NAMES]
FEATURES = llvm.get_host_cpu_features()
HERE = [name for name in PERMUTATIONS if FEATURES.get(name)]

#: Subscripts that are told before the points, `a` and `b` being integers that are only read.
TOLD = [
    "a[i-1]", "b[j-1]", "a[i]", "b[j]", "g[i, j]", "a[i-1] + 1", "3 * b[j] - a[i]", "a[i] & 3", "c", "1", "i % 3",
    "j - i + c", "j // 3", "(j - i) // 2", "(2*j + c - 1) // 4",
    "k", "m % 5", "min(a[i], b[j])", "a[i] if i > j else b[j]", "both(a[i], b[j])",
]

#: Others: each point checks them.
CHECKED = ["A[i-1, j-1] % 3", "U[b[j]]", "later", "a[i] // b[j]"]


def body(text, head):
    """A nest of some statements, which may call a function."""
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    return tw.nest_from(f"def both(x, y):\n    return x + y if x < 2 else x\n\ndef body({head}):\n{lines}")


@pytest.fixture(params=[*PERMUTATIONS, "none"])
def way(request, monkeypatch):
    """One way of permuting bytes that this processor has, or none."""
    if request.param in PERMUTATIONS and request.param not in HERE:
        pytest.skip("not on this processor")
    monkeypatch.setattr(tilewave.kernel.processor, "permutation", lambda: PERMUTATIONS.get(request.param))
    return request.param


def looked_up(dice):
    """A random body with one to three lookups, of a table of some rank each."""
    tables, statements, terms = {}, ["k = a[i]", "m, n = a[i-1] + 2, b[j]"], []
    told = dice.random() < 0.85
    for _ in range(dice.randint(1, 3)):
        name = dice.choice("ST")
        rank = tables.setdefault(name, dice.randint(1, 3))
        choices = TOLD if told else TOLD + CHECKED
        while True:
            parts = [dice.choice(choices) for _ in range(rank)]
            if any(re.search(r"[abgAU]\[|\b[ckm]\b|later", part) for part in parts):
                break
        term = f"{name}[{', '.join(parts)}]"
        terms.append(f"({term} if A[i-1, j] > 0 else 1)" if dice.random() < 0.2 else term)
    if "later" in " ".join(terms):
        statements += ["later = 0", "if i > 2: later = 1"]
    if "U[" in " ".join(terms):
        tables["U"] = 1
    stem = dice.choice(
        ["A[i-1, j]", "A[i-1, j-1] - 1", "max(A[i-1, j-1], A[i-1, j])", "B[i, j]", "A[i-1, j] + A[i, j-1]"]
    )
    statements.append(f"A[i, j] = {stem} + {' + '.join(terms)}")
    if dice.random() < 0.4:
        statements.append("B[i, j] = B[i, j] + A[i, j]")
    text = "\n".join(statements)
    arrays = "A, " + "".join(f"{name}, " for name in "BgabSTU" if re.search(rf"\b{name}\[", text))
    return body(text, f"{arrays}i, j, *, c=1"), tables


def arguments(nest, tables, dice, rng):
    """Random arrays and dtypes of a body of `looked_up`: subscripts mostly within their tables."""
    extents = {"i": dice.choice((3, 5, 70, 90)), "j": dice.choice((40, 70, 97, 150, 200))}
    kind = dice.choice(("i1", "i2", "i4", "f4", "f8"))
    dtypes = {name: np.dtype(dice.choice((kind, *DTYPES)) if name in "ST" else kind) for name in nest.arrays}
    arrays = {}
    low, high = dice.choice(((0, 4), (0, 4), (0, 4), (-3, 4), (0, 11), (0, 25)))
    for name in nest.arrays:
        if name in tables:
            least = dice.choice((1, 4, 4, high))
            extent = [
                dice.randint(least, least + dice.choice((3, 30) if tables[name] < 3 else (2, 6)))
                for _ in range(tables[name])
            ]
            wide = rng.integers(0, 90 if dice.random() < 0.5 else 2**15, extent) - dice.choice((0, 40))
            with np.errstate(all="ignore"):
                arrays[name] = relaid(wide.astype(dtypes[name]), rng)
            if name == "U":
                arrays[name] = rng.integers(0, 3, extent[:1]).astype("i4")
                dtypes[name] = np.dtype("i4")
            continue
        shape = [extents[index] for index in nest.axes[name]]
        if name in "abg":
            dtypes[name] = np.dtype(dice.choice(("i1", "u1", "i2", "i4", "i8", "u2", "u4", "u8", "?")))
            arrays[name] = rng.integers(max(low, 0) if dtypes[name].kind == "u" else low, high, shape).astype(
                dtypes[name]
            )
        else:
            arrays[name] = rng.integers(-3, 4, shape).astype(dtypes[name])
        arrays[name] = relaid(arrays[name], rng)
    return dtypes, arrays, {"c": dice.choice((0, 1, 1, 2, np.int16(1), -1))}


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 60))])
def test_random_lookups(way, seed):
    """In every order of rows that is allowed, with vectors of a row's own or LLVM's, over any strides."""
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    nest, tables = looked_up(dice)
    dtypes, arrays, scalars = arguments(nest, tables, dice, rng)
    extents = {name: array.shape for name, array in arrays.items()}
    try:
        for name, (rows, independent) in ways(nest).items():
            box = nest.iteration_box(extents)
            direction = next(iter(rows(box)))[1]
            steps = [step if dice.random() < 0.8 else None for step in constant_steps(nest, arrays, direction)]
            shapes = {table: arrays[table].shape for table in nest.tables}
            kernel = compile_kernel(
                nest,
                dtypes,
                scalars,
                steps=steps,
                independent=independent,
                long_rows=dice.random() < 0.5,
                shapes=shapes,
            )
            check(
                kernel,
                box,
                arrays,
                scalars,
                rows,
                f"seed {seed}, {name}, steps {steps}, {dtypes}, {shapes}, {scalars}",
                sequential=name == "in order",
            )
    except tw.ConfigError as refusal:
        pytest.skip(f"refused: {refusal}")


@tw.nest
def by_letters(H, S, a, b, i, j):
    H[i, j] = H[i-1, j-1] + S[a[i-1], b[j-1]]


@tw.nest
def in_place(H, S, a, b, i, j):
    """Points that were computed twice would show it."""
    H[i, j] = H[i, j] + H[i-1, j] + S[a[i-1], b[j-1]]


SHAPES = [(1, 1), (4, 4), (24, 24), (5, 130), (300, 2), (40, 60)]


@pytest.mark.parametrize(
    "shape, dtype",
    [  # without --long each shape and dtype several times, but not each pair
        pytest.param(shape, dtype, marks=() if (s + d) % 3 == 0 else pytest.mark.long, id=f"{shape}-{dtype}")
        for s, shape in enumerate(SHAPES)
        for d, dtype in enumerate(DTYPES)
    ],
)
def test_tables_of_every_dtype_and_size(way, dtype, shape):
    """Small values and large ones, tables that the kernel was not made for, a subscript that is negative or wrong."""
    rng = np.random.default_rng(1)
    for large, long_rows, wrong in (
        (False, True, None), (True, False, None), (True, True, -1), (False, False, -1), (True, False, 7),
        (False, True, 7),
    ):
        limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
        values = (
            rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
            if large and dtype.kind in "iu"
            else rng.integers(0, 127, shape) * 0.5
        )
        S = values.astype(dtype) if dtype.kind in "iu" else rng.normal(size=shape).astype(dtype)
        for kind, count in (("i2", 300), ("u1", 65)):
            a, b = (rng.integers(0, min(extent, 256), count).astype(kind) for extent in shape)
            if wrong is not None:
                b[rng.integers(count)] = (
                    wrong if kind == "i2" and wrong < 0 else min(shape[1], 255) + wrong * (shape[1] < 240)
                )
            arrays = {"H": rng.integers(0, 9, (4, count + 1)).astype(dtype), "S": S, "a": a, "b": b}
            dtypes = {name: array.dtype for name, array in arrays.items()}
            for made_for in (shape, (3, 3)):
                kernel = compile_kernel(
                    in_place,
                    dtypes,
                    steps=constant_steps(in_place, arrays, (0, 1)),
                    independent=True,
                    long_rows=long_rows,
                    shapes={"S": made_for},
                )
                with np.errstate(all="ignore"):
                    check(
                        kernel,
                        ((1, 4), (1, count + 1)),
                        arrays,
                        {},
                        rows_in_order,
                        f"{dtype} {shape} {made_for} {large} {long_rows} {wrong} {kind}",
                    )


@pytest.mark.parametrize("long_rows", [False, True])
@pytest.mark.parametrize("wrong", [4, -5])
@pytest.mark.parametrize("at", [0, 1, 63, 64, 65, 500, 4095, 4096, 5000, 9998])
def test_a_row_stops_at_its_first_wrong_subscript(way, at, wrong, long_rows):
    """Points before it are stored, once; those after it are as they were."""
    rng = np.random.default_rng(at)
    arrays = {
        "H": rng.integers(0, 9, (2, 10_000)).astype("i2"),
        "S": rng.integers(0, 9, (4, 4)).astype("i1"),
        "a": np.array([3], "i1"),
        "b": rng.integers(0, 4, 9_999).astype("i1"),
    }
    arrays["b"][at] = wrong
    expected = arrays["H"].copy()
    expected[1, 1 : at+1] += arrays["H"][0, 1 : at+1] + arrays["S"][3, arrays["b"][:at]]
    kernel = compile_kernel(
        in_place,
        {name: array.dtype for name, array in arrays.items()},
        steps=constant_steps(in_place, arrays, (0, 1)),
        independent=True,
        long_rows=long_rows,
        shapes={"S": (4, 4)},
    )
    with pytest.raises(Raised) as error:
        Runner(kernel, arrays)((1, 1), (0, 1), 9_999)
    assert (error.value.name, error.value.point, error.value.message) == (
        "IndexError",
        (1, at + 1),
        "index out of bounds for axis 1 of S",
    )
    np.testing.assert_array_equal(arrays["H"], expected)


@pytest.mark.parametrize("long_rows", [False, True])
@pytest.mark.parametrize("negative", [None, 0, 200, 5000])
def test_bests_of_rows_that_go_on_by_the_usual_loop(way, negative, long_rows):
    rng = np.random.default_rng(2)
    arrays = {
        "H": rng.integers(-99, 99, (2, 6_001)).astype("i4"),
        "S": rng.integers(-999, 999, (7, 3)),
        "a": np.array([6]),
        "b": rng.integers(0, 3, 6_000),
    }
    if negative is not None:
        arrays["b"][negative] = -1
    expected = arrays["H"].copy()
    expected[1, 1:] += arrays["H"][0, 1:] + arrays["S"][6, arrays["b"]].astype("i4")
    written = [place.written for place in in_place.places].index(True)
    kernel = compile_kernel(
        in_place,
        {name: array.dtype for name, array in arrays.items()},
        steps=constant_steps(in_place, arrays, (0, 1)),
        independent=True,
        long_rows=long_rows,
        bests=(Best(written, "max"), Best(written, "min")),
        shapes={"S": (7, 3)},
    )
    most, least = np.zeros(1, "i4"), np.zeros(1, "i4")
    starts = [
        arrays[place.array].ctypes.data
        + sum((1 + offset) * arrays[place.array].strides[axis] for axis, offset in enumerate(place.offsets))
        for place in in_place.places
    ]
    pointers = (ctypes.c_void_p * (len(starts) + 3))(
        *starts, arrays["S"].ctypes.data, most.ctypes.data, least.ctypes.data
    )
    numbers = [(ctypes.c_int64 * len(values))(*values) for values in ([0] * len(starts), (1, 1), (0, 1))]
    assert (
        ROW(kernel.address)(
            pointers, numbers[0], 6_000, numbers[1], numbers[2], kernel.pack({}, {"S": arrays["S"]}).ctypes.data
        )
        == 0
    )
    np.testing.assert_array_equal(arrays["H"], expected)
    assert (most[0], least[0]) == (expected[1, 1:].max(), expected[1, 1:].min())


def test_rows_of_one_call(way):
    """Rows of all lengths, some of which have a negative subscript."""
    rng = np.random.default_rng(3)
    arrays = {
        "H": rng.integers(0, 9, (9, 300)).astype("i2"),
        "S": rng.integers(-300, 300, (5, 5)).astype("i2"),
        "a": rng.integers(0, 5, 8).astype("i1"),
        "b": rng.integers(0, 5, 299).astype("i1"),
    }
    arrays["b"][250] = -2
    kernel = compile_kernel(
        in_place,
        {name: array.dtype for name, array in arrays.items()},
        steps=constant_steps(in_place, arrays, (0, 1)),
        independent=True,
        shapes={"S": (5, 5)},
    )
    expected = {name: array.copy() for name, array in arrays.items()}
    spans = [(0, 0, 299), (1, 3, 64), (2, 10, 63), (3, 0, 65), (4, 100, 150), (5, 200, 99), (6, 240, 1), (7, 7, 128)]
    for row, begin, points in spans:
        in_place.reference(((1 + row, 2 + row), (1 + begin, 1 + begin + points)), expected, {})
    starts, across = [], []
    for place in in_place.places:
        array, axes = arrays[place.array], in_place.axes[place.array]
        starts.append(
            array.ctypes.data + sum((1 + offset) * stride for offset, stride in zip(place.offsets, array.strides))
        )
        across.append(array.strides[0] if axes[0] == "i" else 0)
    pointers = (ctypes.c_void_p * (len(starts) + 1))(*starts, arrays["S"].ctypes.data)

    def words(values):
        return (ctypes.c_int64 * len(values))(*values)

    code = ROWS(kernel.rows_address)(
        pointers,
        words([0] * len(starts)),
        len(spans),
        words(sum(spans, ())),
        words(across),
        words((1, 1)),
        words((0, 1)),
        words((1, 0)),
        kernel.pack({}, {"S": arrays["S"]}).ctypes.data,
    )
    assert code == 0
    np.testing.assert_array_equal(arrays["H"], expected["H"])


@tw.nest
def align(H, E, F, S, a, b, i, j, *, start=5, extend=1):
    e = max(E[i, j-1] - extend, H[i, j-1] - start)
    f = max(F[i-1, j] - extend, H[i-1, j] - start)
    E[i, j] = e
    F[i, j] = f
    H[i, j] = max(H[i-1, j-1] + S[a[i-1], b[j-1]], e, f, 0)


@pytest.mark.parametrize("low", [0, -24])
def test_alignments_in_rows_across_both_loops(way, low):
    """As a field skewed, and with a rolling window only, of a table of proteins."""
    rng = np.random.default_rng(4)
    m, n = 150, 170
    S = rng.integers(-4, 12, (24, 24)).astype("i2")
    a, b = rng.integers(low, 24, m).astype("i1"), rng.integers(low, 24, n).astype("i1")
    expected = {**{name: np.zeros((m + 1, n + 1), "i2") for name in "HEF"}, "S": S, "a": a, "b": b}
    align.reference(((1, m + 1), (1, n + 1)), expected, {"start": 5, "extend": 1})
    for row in ((1, -1), (-1, 1)):
        fields = {name: tw.field((m + 1, n + 1), "i2") for name in "HEF"}
        tw.run(align, **fields, S=S, a=a, b=b, plan={"row": row, "storage": "skewed"})
        for name, field in fields.items():
            np.testing.assert_array_equal(field.gather(), expected[name])
    fields = {name: tw.field((m + 1, n + 1), "i2", keep="window") for name in "HEF"}
    report = tw.run(align, **fields, S=S, a=a, b=b, reduce={"best": tw.max("H"), "where": tw.argmax("H")})
    assert report.results["best"] == expected["H"].max()
    assert report.results["where"] == np.unravel_index(expected["H"].argmax(), (m + 1, n + 1))


def test_a_table_is_looked_up_as_it_is_when_a_run_begins(way):
    """Other values in a table, another shape, and a table that another nest of a time step writes."""
    rng = np.random.default_rng(5)
    S, a, b = rng.integers(0, 9, (4, 4)).astype("i4"), rng.integers(0, 4, 80), rng.integers(0, 4, 90)
    for _ in range(3):
        H = np.zeros((81, 91), "i4")
        tw.run(by_letters, H=H, S=S, a=a, b=b)
        known = np.zeros((81, 91), "i4")
        for i in range(1, 81):
            known[i, 1:] = known[i-1, :-1] + S[a[i-1], b]
        np.testing.assert_array_equal(H, known)
        S[:] = rng.integers(-9000, 9000, S.shape)
        S = S if rng.random() < 0.5 else np.pad(S, ((0, 1), (0, 2)))

    @tw.nest
    def change(T, t, k):
        T[t+1, k] = T[t, k] + 1

    @tw.nest
    def add(u, T, g, t, i):
        u[t+1, i] = u[t, i] + T[g[i]]

    for T in (np.arange(5), np.zeros(41, "u1")[1:].view("i8")):  # the other is not aligned
        T[:] = np.arange(5)
        u, g = np.zeros(200, "i8"), rng.integers(0, 5, 200)
        tw.run((change, add), T=T, u=u, g=g, steps=3)
        np.testing.assert_array_equal(u, 3 * g + 6)
        np.testing.assert_array_equal(T, np.arange(5) + 3)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_tables_that_are_fields(ranks):
    """They come to all ranks, or to the one that computes, before what a kernel copies of them is copied."""
    nest = body("A[i] = A[i] * T[g[i]]", "A, T, g, i")
    in_order = body("A[i] = A[i-1] * 0 + T[g[i]] * T[s]", "A, T, g, i, *, s")

    def run(context):
        T = tw.field(np.arange(2, 7, dtype="f4"), context=context)
        A, B = (tw.field((150,), "f4", init=1.0, context=context) for _ in range(2))
        given = {"T": T, "g": np.arange(150) % 5, "context": context}
        tw.run(nest, A=A, **given)
        tw.run(in_order, A=B, **given, s=1)
        return A.gather(), B.gather()

    for _ in range(2):
        A, B = results_of(ranks, 1, run)[0]
        assert np.array_equal(A, np.arange(150) % 5 + 2)
        assert B[0] == 1 and np.array_equal(B[1:], (np.arange(1, 150) % 5 + 2) * 3)


@pytest.mark.skipif("avx512vbmi" not in HERE, reason="looks for instructions of AVX-512")
@pytest.mark.parametrize("subscripts", ["a[i-1], b[j-1]", "a[i-1], 3 - b[j-1]", "k, b[j-1]", "a[i-1] & 3, b[j-1] % 4"])
def test_lookups_are_permutations(subscripts):
    nest = body(f"k = a[i-1]\nH[i, j] = H[i-1, j-1] + S[{subscripts}]", "H, S, a, b, i, j")
    for long_rows in (False, True):
        kernel = compile_kernel(
            nest,
            {"H": "i2", "S": "i2", "a": "i1", "b": "i1"},
            steps=[-1 if place.array == "a" else 1 for place in nest.places],
            independent=True,
            long_rows=long_rows,
            shapes={"S": (24, 24)},
        )
        assert kernel.vectors and re.search(r"vperm[it]2b\s.*%zmm", kernel.assembly())


@pytest.mark.parametrize("shape", [(1,), (17,), (2048,), (1, 1), (3, 9), (24, 24), (2, 1000), (7, 1, 5), (3, 4, 5, 6)])
def test_byte_tables(shape):
    rng = np.random.default_rng(6)
    layout = Layout.of(shape)
    for dtype in DTYPES:
        for small in (True, False):
            table = (rng.integers(0, 99, shape) if small else rng.integers(0, 2**31, shape)).astype(dtype)
            kind, byte_tables = layout.byte_tables(table)
            assert kind == (NARROW if dtype.kind == "i" and dtype.itemsize > 1 and table.max() < 128 else WHOLE)
            byte_tables = byte_tables.reshape(dtype.itemsize, -1)
            for at in np.ndindex(shape):
                number = sum(n << shift for n, (shift, _) in zip(at, layout.shifts(), strict=True))
                assert byte_tables[:, number].tobytes() == table[at].tobytes()
            larger = np.zeros((shape[0] + 2048, *shape[1:]), dtype)
            assert layout.byte_tables(larger)[0] == UNFIT and layout.byte_tables(table[:0])[0] == UNFIT
    assert Layout.of((0, 3)) is None and Layout.of((MOST_ELEMENTS + 1,)) is None
