"""Rows of independent points, several planes of them in turn, equal plain loops, bit for bit."""

import math
import os
import random

import numpy as np
import pytest

import tilewave as tw
from bodies import access, load
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops

HEADER = "import numpy as np\nimport tilewave as tw\n\n\n"
SEED = int(os.environ.get("TILEWAVE_SEED", "20262"))

def write(rng, name, dims):
    """A body that reads before and ahead of itself, most often along one row pair only before; its source."""
    indices = "hijk"[4 - dims :]

    def place(array, offsets):
        return access(array, indices, offsets)

    def before():
        offsets = [0] * dims
        first = rng.randrange(dims)
        offsets[first] = -rng.choice((1, 1, 2))
        for k in range(first + 1, dims):
            offsets[k] = rng.choice((0, 0, -1, 1, 2, -2))
        return offsets

    terms = [place("A", before()) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.5:
        terms.append(place("B", [rng.randint(-1, 1) for _ in range(dims)]))
    if rng.random() < 0.2:
        terms.append(f"P[{indices[-1]}]")
    if rng.random() < 0.2:
        terms.append("0.01 * j")
    lines = [f"{place('A', [0] * dims)} = " + " + ".join(f"{rng.choice((0.25, 0.5, 0.3))} * {term}" for term in terms)]
    if "B[" in lines[0] and rng.random() < 0.4:
        lines.append(f"{place('B', [0] * dims)} = {place('A', [0] * dims)} - 0.5 * {place('B', before())}")
    arrays = ", ".join(array for array in "ABP" if f"{array}[" in "".join(lines))
    return f"@tw.nest\ndef {name}({arrays}, {', '.join(indices)}):\n    " + "\n    ".join(lines) + "\n"


def run_one(nest, rng, context):
    """Runs with every pair of loops that rows may go along; how many there were, and in how many planes go together."""
    dims = len(nest.indices)
    shape = (*(rng.randint(3, 5) for _ in range(dims - 3)), *(rng.randint(5, 24) for _ in range(3)))
    values, dtype = np.random.default_rng(rng.randrange(2**32)), rng.choice(("f4", "f8"))
    start = {name: values.random(shape if name != "P" else shape[-1:]).astype(dtype) for name in nest.arrays}
    box = nest.iteration_box({name: array.shape for name, array in start.items()})
    expected = {name: array.copy() for name, array in start.items()}
    plain_loops(nest, loop_bounds(nest.indices, box, None), expected)
    found = 0
    for a in range(dims):
        for b in range(dims):
            row = [0] * dims
            row[a], row[b] = (1, -1) if a != b else (0, 0)
            fields = {
                name: tw.field(array.shape, array.dtype, init=array, context=context) if name != "P" else array
                for name, array in start.items()
            }
            tile = tuple(rng.randint(4, 30) for _ in range(dims)) if rng.random() < 0.5 else None
            try:
                tw.run(
                    nest,
                    **fields,
                    context=context,
                    plan={
                        "threads": rng.choice((1, 2)),
                        "storage": "skewed",
                        "row": tuple(row),
                        **({"tile": tile} if tile else {}),
                    },
                )
            except tw.ConfigError:
                continue  # rows that cannot go this way
            found += list(context._prepared.values())[-1].kernel.independent
            for name in set(fields) - {"P"}:
                result = fields[name].gather()
                same = result.view(f"u{result.itemsize}") == expected[name].view(f"u{result.itemsize}")
                assert same.all(), (
                    f"{(~same).sum()} elements of {name} differ, the first at {np.argwhere(~same)[0]}: "
                    f"{shape}, {dtype}, row {row}, tile {tile}"
                )
    return found


@pytest.mark.parametrize("part", [0, 1, 2, *(pytest.param(part, marks=pytest.mark.long) for part in range(3, 40))])
def test_random_bodies(part, tmp_path):
    rng = random.Random(f"{SEED} {part}")
    bodies = {f"body_{n}": write(rng, f"body_{n}", rng.choice((3, 3, 4))) for n in range(8)}
    module = load(tmp_path, f"planes_{part}", HEADER + "\n\n".join(bodies.values()))
    context = tw.Context(threads=2)
    rows = 0
    for name, text in bodies.items():
        try:
            rows += run_one(getattr(module, name), rng, context)
        except AssertionError as error:
            raise AssertionError(f"TILEWAVE_SEED={SEED}, part {part}\n{text}\n{error}") from error
    print(f"part {part}: {rows} plans with rows of independent points")
    assert rows > 5


@tw.nest
def raising(A, B, i, j, k):
    A[i, j, k] = 0.25 * A[i-1, j, k] + 0.25 * A[i, j-1, k] + 0.25 * A[i, j, k-1] + math.sqrt(B[i, j, k])


@pytest.mark.parametrize("storage", ["plain", "skewed"])
def test_the_point_that_failed_is_told(storage):
    rng = random.Random(SEED)
    context = tw.Context(threads=1)
    for row in ((0, 1, -1), (0, -1, 1), (1, -1, 0), (1, 0, -1)):
        for _ in range(4):
            bad = tuple(rng.randint(1, extent - 1) for extent in (10, 12, 40))
            values = np.ones((10, 12, 40))
            values[bad] = -1
            A, B = (
                tw.field(v.shape, v.dtype, init=v, context=context) if storage == "skewed" else v
                for v in (np.ones_like(values), values)
            )
            tile = {"tile": (6, 6, 6)} if rng.random() < 0.3 else {}
            with pytest.raises(tw.KernelError, match="at i={}, j={}, k={}".format(*bad)):
                tw.run(raising, A=A, B=B, context=context, plan={"row": row, "storage": storage, **tile})


@tw.nest
def averaged(A, i, j, k):
    A[i, j, k] = 0.3 * A[i-1, j, k] + 0.25 * A[i, j-1, k] + 0.2 * A[i, j, k-1] + 0.125 * A[i-1, j, k-1]


@pytest.mark.parametrize("part", range(4))
def test_planes_of_many_rows(part):
    """More rows than a list is kept of (`most_kept_rows`), fewer, and just about as many."""
    rng = random.Random(f"{SEED} many {part}")
    shape = (
        rng.randint(4, 11),
        rng.randint(2, 6),
        rng.choice((rng.randint(2040, 2060), rng.randint(2800, 4200), rng.randint(1000, 2000))),
    )
    start = np.random.default_rng(part).random(shape)
    expected = start.copy()
    plain_loops(averaged, loop_bounds(averaged.indices, averaged.iteration_box({"A": shape}), None), {"A": expected})
    for threads in (1, 2):
        context = tw.Context(threads=threads)
        for choices in (
            {},
            {"tile": (*(extent - 1 for extent in shape),)},
            {"tile": (shape[0] - 1, shape[1] - 1, 1500 if shape[2] > 1500 else 600)},
            {
                "mapping_dim": 0,
                "factors": (1, 1, threads),
                "grouping": "vertical",
                "slices": rng.randint(1, shape[0] - 1),
            },
        ):
            field = tw.field(shape, "f8", init=start, context=context)
            tw.run(averaged, A=field, context=context, plan={"storage": "skewed", "row": (0, 1, -1), **choices})
            result = field.gather()
            assert (result.view("u8") == expected.view("u8")).all(), (
                f"TILEWAVE_SEED={SEED}: {shape}, {threads} lanes, {choices}"
            )
