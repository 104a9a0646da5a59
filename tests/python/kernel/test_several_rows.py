"""Rows of dependent points that are computed several at a time equal plain loops, bit for bit."""

import ctypes
import os
import random

import numpy as np
import pytest

import tilewave as tw
from bodies import access, load
from tilewave.kernel import processor
from tilewave.kernel.compile import ROWS
from tilewave.nests.plan import kernel_maker
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops

HEADER = "import numpy as np\nimport tilewave as tw\n\n\n"
SEED = int(os.environ.get("TILEWAVE_SEED", "20261"))

def write(rng, name, dims):
    """A body whose rows depend on themselves, with a few other accesses, before and ahead; its source."""
    indices = ("i", "j", "k")[3-dims :]

    def place(array, offsets):
        return access(array, indices, offsets)

    def offsets():
        first = rng.choice((-1, -1, 0, -2, 1))
        return (*(rng.randint(-1, 1) for _ in range(dims - 2)), first, rng.randint(-2, 2))

    def here(array):
        return place(array, (0,) * dims)

    along = (0,) * (dims - 1) + (-rng.randint(1, rng.choice((1, 2, 5))),)
    terms = [
        place("A", along),
        place("B", offsets()),
        *(place(rng.choice("AB"), offsets()) for _ in range(rng.randint(0, 3))),
    ]
    terms += [
        f"{array}[{index}{rng.choice(('', '-1', '+1'))}]"
        for array, index in zip("PQ", indices[-2:], strict=True)
        if rng.random() < 0.3
    ]
    rng.shuffle(terms)
    whole = rng.random() < 0.3  # all arrays of integers
    if whole:
        lines = [f"x = {terms[0]} + " + " - ".join(terms[1:])]
        ends = ("min(max(x, -9), 9)", "x if -9 < x < 9 else 1", "max(min(x, 9) // 3, -5)")
    else:
        lines = [f"x = 0.25 * {terms[0]} + " + " - ".join(f"0.5 * {t}" for t in terms[1:])]
        ends = ("x", "min(x, 3)", "max(x, -2.0) + c", "np.where(x > 1, x, c)", "np.sqrt(abs(x))", "1 / (2 + abs(x))")
    if rng.random() < 0.4:
        lines.append(f"if x < {here('B')}:\n        x = {'-' if whole else ''}x + {place('B', offsets())}")
    store = f"{here('A')} = {rng.choice(ends)}"
    lines.append(f"if {here('B')} > 0:\n        {store}" if rng.random() < 0.15 else store)
    if rng.random() < 0.15:
        lines.append(f"{place('A', (0,) * (dims - 2) + (-1, 0))} = {here('A')}")  # a second element of the point
    if rng.random() < 0.3:
        lines.append(
            f"{here('B')} = "
            + (f"min({place('B', along)}, {here('A')})" if whole else f"{place('B', along)} * 0.5 + {here('A')}")
        )
    arrays = ", ".join(array for array in "ABPQ" if f"{array}[" in "".join(lines))
    return f"@tw.nest\ndef {name}({arrays}, {', '.join(indices)}, *, c=0.75):\n    " + "\n    ".join(
        lines
    ) + "\n", whole


def make_arrays(nest, whole, rng):
    """The nest's arrays for a box of random extents."""
    dims = len(nest.indices)
    shape = (*(rng.randint(4, 7) for _ in range(dims - 2)), rng.randint(7, 34), rng.randint(6, 90))
    values = np.random.default_rng(rng.randrange(2**32))
    dtypes = ("i2", "i4", "i8") if whole else ("f4", "f8")
    one = rng.choice(dtypes) if rng.random() < 0.6 else None
    extents = {"P": shape[-2:-1], "Q": shape[-1:]}
    arrays = {}
    for name in nest.arrays:
        part = extents.get(name, shape)
        arrays[name] = (values.integers(-4, 5, part) if whole else values.random(part) * 8 - 4).astype(
            one or rng.choice(dtypes)
        )
    return arrays


def run_one(nest, whole, rng, context):
    """Whether rows were allowed to go together, and whether as lanes; fails where the result is not that of plain
    loops.
    """
    start = make_arrays(nest, whole, rng)
    shape = start["A"].shape
    last, row = nest.indices[-1], nest.indices[-2]
    over = rng.choice((None, None, {last: (f"{row} - 4", f"{row} + 30")}, {last: (rng.randint(0, 5), shape[-1] - 2)}))
    box = nest.iteration_box({name: array.shape for name, array in start.items()})
    if over:  # inside the arrays
        lo, hi = box[-1]
        low, high = over[last]
        over = {last: ([low, lo], [high, hi])}
    reverse = tuple(index for index in nest.indices if rng.random() < 0.2)
    choices = {"storage": "plain", "row": ()} if rng.random() < 0.8 else {}
    threads = rng.choice((1, 1, 2))
    expected = {name: array.copy() for name, array in start.items()}
    plain_loops(nest, loop_bounds(nest.indices, box, over), expected, {"c": 0.75}, reverse)
    numpy = rng.random() < 0.5
    given = {
        name: array.copy()
        if numpy or array.ndim == 1
        else tw.field(array.shape, array.dtype, init=array, context=context)
        for name, array in start.items()
    }
    try:
        tw.run(nest, **given, c=0.75, over=over, reverse=reverse, context=context, plan={"threads": threads, **choices})
    except tw.ConfigError:
        if not choices:
            raise
        choices = {}  # not this storage or row for this nest
        tw.run(nest, **given, c=0.75, over=over, reverse=reverse, context=context, plan={"threads": threads})
    kernel = list(context._prepared.values())[-1].kernel
    for name in "AB":
        found = given[name] if isinstance(given[name], np.ndarray) else given[name].gather()
        same = found.view(f"u{found.itemsize}") == expected[name].view(f"u{found.itemsize}")
        types = {name: array.dtype.name for name, array in start.items()}
        assert same.all(), (
            f"{(~same).sum()} elements of {name} differ, the first at {np.argwhere(~same)[0]}: "
            f"shape {shape}, {types}, over {over}, "
            f"reverse {reverse}, threads {threads}, {choices}, NumPy {numpy}\n{kernel.nest.name}"
        )
    return kernel.rows_address != 0 and not kernel.independent, 0 < kernel.simd_rows_from <= shape[-1] - 4


@pytest.mark.parametrize("part", [0, 1, 2, *(pytest.param(part, marks=pytest.mark.long) for part in range(3, 80))])
def test_random_bodies(part, tmp_path):
    rng = random.Random(f"{SEED} {part}")
    bodies = {f"body_{n}": write(rng, f"body_{n}", rng.choice((2, 2, 3))) for n in range(8)}
    module = load(tmp_path, f"rows_{part}", HEADER + "\n\n".join(text for text, _ in bodies.values()))
    context = tw.Context(threads=2)
    together, as_lanes = 0, 0
    for name, (text, whole) in bodies.items():
        for _ in range(2):
            try:
                several, lanes = run_one(getattr(module, name), whole, rng, context)
            except AssertionError as error:
                raise AssertionError(f"TILEWAVE_SEED={SEED}, part {part}\n{text}\n{error}") from error
            together, as_lanes = together + several, as_lanes + lanes
    print(f"part {part}: of 16, {together} together, {as_lanes} as lanes")
    assert together > 1 and as_lanes > 0, "few of the bodies had rows that go together"


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 30))])
def test_reductions_of_random_bodies(part, tmp_path, monkeypatch):
    """Largest, smallest and counted values are those of rows that go one by one."""
    rng = random.Random(f"{SEED} reduced {part}")
    bodies = {f"body_{n}": write(rng, f"body_{n}", rng.choice((2, 2, 3))) for n in range(6)}
    texts = [text + "    if x > 0.5:\n        y = x\n" for text, _ in bodies.values()]
    module = load(tmp_path, f"reduced_rows_{part}", HEADER + "\n\n".join(texts))
    threads, as_lanes = rng.choice((1, 2)), 0
    wanted = {"large": tw.max("x"), "small": tw.min("x"), "some": tw.max("y"), "size": tw.norm("x", ord=np.inf)}
    for name, (text, whole) in bodies.items():
        for _ in range(2):
            start = make_arrays(getattr(module, name), whole, rng)
            if rng.random() < 0.2 and not whole:
                start["A"].flat[rng.randrange(start["A"].size)] = np.nan
            asked = {key: wanted[key] for key in rng.sample(sorted(wanted), rng.randint(1, 3))}
            found = []
            for one_by_one in (False, True):
                with monkeypatch.context() as patch:
                    if one_by_one:
                        patch.setattr(kernel_maker, "_staggered", lambda sweep, values: None)
                    kernel_maker.kernels.clear()
                    context = tw.Context(threads=threads)
                    given = {key: array.copy() for key, array in start.items()}
                    more = {"c": 0.75, "reduce": asked, "context": context, "plan": {"storage": "plain", "row": ()}}
                    report = tw.run(getattr(module, name), **given, **more)
                kernel = list(context._prepared.values())[-1].kernel
                as_lanes += not one_by_one and 0 < kernel.simd_rows_from <= start["A"].shape[-1] - 4
                found.append((repr(report.results), *(array.tobytes() for array in given.values())))
            assert found[0] == found[1], f"TILEWAVE_SEED={SEED}, part {part}, {asked}\n{text}"
    assert as_lanes > 0, "none of the bodies had rows that go together"


@tw.nest
def recurrence(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1] - A[i-1, j-1]


@tw.nest
def ahead(A, i, j):
    A[i, j] = 0.5 * A[i-1, j+2] + 0.25 * A[i, j-1]


@tw.nest
def numbered(A, i, j):
    A[i, j] = A[i, j-1] + i


@pytest.mark.parametrize("ahead_bytes", [0, 256])
@pytest.mark.parametrize("nest", [recurrence, ahead], ids=lambda nest: nest.name)
def test_every_number_of_rows_and_points(nest, ahead_bytes, monkeypatch):
    """Also as on a processor that is not told which memory will be written, and on one that is."""
    monkeypatch.setattr(processor, "ahead_bytes", lambda: ahead_bytes)
    kernel_maker.kernels.clear()
    context = tw.Context(threads=1)
    for rows in (1, 2, 3, 4, 5, 8, 9, 11, 17):
        for points in (1, 21, 22, 23, 28, 29, 30, 36, 37, 38, 40, 41, 300):
            A = np.random.default_rng(rows * points).random((rows + 1, points + 3))
            expected = A.copy()
            nest.reference(nest.iteration_box(A.shape), {"A": expected})
            tw.run(nest, A=A, plan={"storage": "plain", "row": ()}, context=context)
            assert np.array_equal(A, expected), (rows, points)


def test_which_rows_may_go_together():
    """How far behind a row must stay, from the dependences; never where a body may raise (here: for a large i), which
    is in the order of plain loops.
    """
    context = tw.Context(threads=1)

    def prepared(nest, **arrays):
        tw.run(nest, context=context, plan={"storage": "plain", "row": ()}, **arrays)
        return list(context._prepared.values())[-1]

    found = prepared(recurrence, A=np.ones((30, 70)))
    assert found.sweep.stagger() == 1
    assert dict(zip((place.offsets for place in recurrence.places), found.sweep.neighbours(), strict=True)) == {
        (0, 0): (0, 0),
        (-1, 0): (-1, 0),
        (0, -1): (0, -1),
        (-1, -1): (-1, -1),
    }
    assert found.kernel.rows_address != 0
    assert (
        prepared(ahead, A=np.ones((30, 70))).sweep.stagger() == 1
    )  # its loops are skewed by the two that it reads ahead

    assert found.kernel.simd_rows_from > 0 and prepared(recurrence, A=np.ones((30, 512))).kernel is found.kernel
    assert prepared(numbered, A=np.ones((9, 70))).kernel.rows_address == 0


def test_long_rows_come_in_whole_groups():
    """Also rows of more points than there are between two polls."""
    context = tw.Context(threads=1)
    A = np.random.default_rng(3).random((25, 5000))
    expected = A.copy()
    for _ in range(2):
        recurrence.reference(recurrence.iteration_box(A.shape), {"A": expected})
    tw.run(recurrence, A=A, plan={"storage": "plain", "row": (), "tile": (24, 4999)}, context=context)
    kernel = list(context._prepared.values())[-1].kernel
    rows, counts, address = ROWS(kernel.rows_address), [], kernel.rows_address

    def counted(*arguments):
        counts.append(arguments[2])
        return rows(*arguments)

    callback = ROWS(counted)
    kernel.rows_address = ctypes.cast(callback, ctypes.c_void_p).value
    context._calls.clear()  # an equal call has the address already
    try:
        tw.run(recurrence, A=A, plan={"storage": "plain", "row": (), "tile": (24, 4999)}, context=context)
    finally:
        kernel.rows_address = address
    assert np.array_equal(A, expected)
    assert sum(counts) == 24 and all(count % 8 == 0 for count in counts), counts


@tw.nest
def solid(A, i, j, k):
    A[i, j, k] = 0.3 * A[i-1, j, k] + 0.3 * A[i, j-1, k] + 0.3 * A[i, j, k-1]


def test_slices_leave_whole_groups():
    """Lanes that hand a tile on in parts: not row by row, where eight rows are computed together."""
    context = tw.Context(threads=2)
    choices = {"storage": "plain", "row": (), "grouping": "vertical", "mapping_dim": 1, "factors": (2, 1, 1)}
    A = np.ones((65, 65, 1025), "f4")
    for height, most in ((8, 1), (32, 4)):
        plan = tw.plan(solid, A=A, context=context, plan={**choices, "tile": (16, height, 1024)})
        assert 1 <= plan.slices <= most, plan
    choices |= {"tile": (16, 8, 1024), "slices": 8}
    assert tw.plan(solid, A=A, context=context, plan=choices).slices == 8  # as told
