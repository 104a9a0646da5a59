"""The best value of a row, found by its kernel, against a look at the values; reductions both ways."""

import ctypes
import os
import random

import numpy as np
import pytest

import tilewave as tw
from test_wide_rows import BODIES, addresses, change, words
from tilewave.nests.rewrites import reductions
from tilewave.kernel.compile import ROW, ROWS, compile_kernel
from tilewave.kernel.rows.extremes import Best
from tilewave.kernel.types.values import worst

SEED = int(os.environ.get("TILEWAVE_SEED", "20261"))

@pytest.mark.parametrize("long_rows", [False, True])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "f4", "f8"])
@pytest.mark.parametrize(
    "nest, scalars",
    [body for body in BODIES if body[0].name != "numbered"],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_kernel_tells_the_best_of_a_row(nest, scalars, dtype, long_rows):
    dice, generator = random.Random(SEED), np.random.default_rng(SEED)
    dtypes = {name: np.dtype("i4") if name == "a" else np.dtype(dtype) for name in nest.arrays}
    shapes = {"A": (9, 130), "B": (9, 130), "a": (130,), "S": (7,)}
    wanted = [Best(k, op) for k, place in enumerate(nest.places) if place.written for op in ("max", "min")]
    kernel = compile_kernel(
        nest, dtypes, scalars, steps=[1] * len(nest.places), independent=True, long_rows=long_rows, bests=wanted
    )
    assert list(kernel.bests) == wanted
    for case in range(60):
        arrays = {
            name: generator.integers(0, 7 if case % 2 else 100, shapes[name]).astype(dtypes[name])
            for name in nest.arrays
        }
        for name in "aS":
            if name in arrays:
                arrays[name] %= 7
        if dtype[0] == "f" and case % 5 == 0:
            arrays["A"][generator.random(shapes["A"]) < 0.02] = generator.choice([np.nan, np.inf, -np.inf])
        row, begin, points = dice.randint(1, 8), dice.randint(1, 40), dice.choice((1, 3, 16, 64, dice.randint(1, 87)))
        # What rows before have had: nothing, or a value that may be better.
        kinds = [dtypes[nest.places[best.place].array] for best in wanted]
        before = [
            kind.type(worst(kind, best.op) if case % 4 else 5) for kind, best in zip(kinds, wanted, strict=True)
        ]
        rooms = np.frombuffer(b"".join(value.tobytes().ljust(8, b"\0") for value in before), "i8").copy()
        told = [rooms.ctypes.data + 8 * k for k in range(len(wanted))]
        pointers = words(addresses(kernel, arrays, row, begin) + told, ctypes.c_void_p)
        steps = words(change(kernel, arrays, {"i": 0, "j": 1}))
        env = kernel.pack(scalars, {name: arrays[name] for name in nest.tables})
        if case % 3:
            assert (
                ROW(kernel.address)(pointers, steps, points, words((row, begin)), words((0, 1)), env.ctypes.data) == 0
            )
        else:
            assert (
                ROWS(kernel.rows_address)(
                    pointers,
                    steps,
                    1,
                    words((0, 0, points)),
                    words([0] * len(nest.places)),
                    words((row, begin)),
                    words((0, 1)),
                    words((1, 0)),
                    env.ctypes.data,
                )
                == 0
            )
        for (k, op, _), room, had in zip(wanted, rooms, before, strict=True):
            values = np.append(arrays[nest.places[k].array][row, begin : begin+points], had)
            found = np.frombuffer(room.tobytes(), values.dtype)[0]
            what = f"seed {SEED}, case {case}, row {row} from {begin}, {points} points, place {k}, {op}"
            assert np.array_equal(found, getattr(values, op)(), equal_nan=values.dtype.kind == "f"), what


def test_rows_in_order_have_none_told():
    nest, scalars = BODIES[0]
    options = {"steps": [1] * len(nest.places), "bests": [Best(0, "max")]}
    assert compile_kernel(nest, {"A": "i4"}, scalars, **options).bests == ()


@tw.nest
def align(H, E, W, i, j):
    E[i, j] = max(E[i, j-1] - 1, H[i, j-1] - 3)
    H[i, j] = max(max(H[i-1, j-1] + W[i, j], E[i, j]), H[i-1, j] - 2)


@tw.nest
def apart(H, E, W, i, j):
    E[i, j] = W[i, j] % 5
    H[i, j] = H[i-1, j] // 2 + W[i-1, j-1]


@pytest.mark.parametrize("keep", ["all", "window"])
@pytest.mark.parametrize("nest", [align, apart], ids=lambda nest: nest.name)
def test_reductions_with_and_without_told_bests(nest, keep, monkeypatch):
    """Small values, so that many elements share the best one: the first of them counts, in whatever order rows come."""
    dice, generator = random.Random(SEED), np.random.default_rng(SEED)
    asked = {f"{op} {name}": getattr(tw, op)(name) for name in "HE" for op in ("max", "min", "argmax", "argmin", "sum")}
    told_bests = reductions.Reductions.bests
    for case in range(24):
        shape = dice.choice(
            ((dice.randint(2, 90), dice.randint(2, 90)), (dice.randint(300, 700), dice.randint(300, 700)))
        )
        dtype = dice.choice(("i1", "i2", "i4", "i8"))
        W = generator.integers(-2, dice.choice((-1, 2, 3)), shape).astype(dtype)
        threads = dice.randint(1, 3)
        results = []
        for bests in (told_bests, lambda described: ()):
            monkeypatch.setattr(reductions.Reductions, "bests", bests)
            H, E = (tw.field(shape, dtype, keep=keep) for _ in range(2))
            results.append(tw.run(nest, H=H, E=E, W=W, plan={"threads": threads}, reduce=asked).results)
        what = f"seed {SEED}, case {case}: {nest.name}, {dtype} {shape}, keep {keep}, {threads} threads"
        assert results[0] == results[1], what
        if keep == "all":
            for name, field in (("H", H), ("E", E)):
                values = field.gather()[1:, 1:]
                for op in ("max", "min"):
                    at = np.unravel_index(getattr(values, f"arg{op}")(), values.shape)
                    assert results[0][f"{op} {name}"] == values[at], what
                    assert results[0][f"arg{op} {name}"] == tuple(n + 1 for n in at), what
