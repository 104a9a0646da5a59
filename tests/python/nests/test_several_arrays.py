"""Nests of two to four arrays, as they lie in memory or as fields, equal plain loops, bit for bit."""

import os
import random

import numpy as np
import pytest

import tilewave as tw
from bodies import access
from tilewave.kernel import processor
from tilewave.nests.plan import kernel_maker
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops

SEED = int(os.environ.get("TILEWAVE_SEED", "20262"))

def write(rng, dims):
    """A body of so many loops; its text, its written arrays and all of them."""
    indices = ("i", "j", "k")[:dims]
    arrays = "ABCD"[: rng.randint(2, 4)]
    written = "AB" if rng.random() < 0.3 else "A"

    def place(array, *offsets):
        return access(array, indices, offsets)

    def behind():
        """Some point before this one, in the order of the loops."""
        return (*(rng.randint(-1, 0) for _ in range(dims - 1)), -1)

    def beside():
        return tuple(rng.choice((0, 0, 0, -1, 1)) for _ in range(dims))

    neighbours = [tuple(-1 if axis == k else 0 for axis in range(dims)) for k in range(dims)]
    terms = [f"0.25 * {place('A', *offsets)}" for offsets in neighbours if rng.random() < 0.8 or offsets[-1]]
    for array in arrays[1:]:
        times = rng.choice((1, 1, 2))
        terms.extend(place(array, *(behind() if array in written else beside())) for _ in range(times))
    rng.shuffle(terms)
    here = (0,) * dims
    lines = [f"x = {rng.choice((' + ', ' - ')).join(terms)}"]
    if rng.random() < 0.3:
        lines.append(
            f"x = {rng.choice(('min(x, 3)', 'np.sqrt(abs(x))', f'x if x < 1 else {place(arrays[-1], *here)}'))}"
        )
    lines.append(f"{place('A', *here)} = x")
    if written == "AB":
        lines.append(f"{place('B', *here)} = 0.5 * {place('B', *neighbours[-1])} + {place('A', *here)}")
    body = "\n    ".join(lines)
    return f"def several({', '.join(arrays)}, {', '.join(indices)}):\n    {body}\n", written, arrays


def lie(array, rng):
    """Equal elements in memory of another kind."""
    kind = rng.choice(("C", "C", "Fortran", "strided", "reversed", "apart"))
    if kind == "Fortran":
        return np.asfortranarray(array)
    if kind == "strided":
        room = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)[..., ::2]
    elif kind == "reversed":
        room = np.zeros(array.shape, array.dtype)[..., ::-1]
    elif kind == "apart":  # rows of another length than those of other arrays
        room = np.zeros((*array.shape[:-1], array.shape[-1] + rng.randint(1, 9)), array.dtype)[..., : array.shape[-1]]
    else:
        room = np.zeros_like(array)
    room[...] = array
    return room


def run_one(rng, context):
    dims = rng.choice((2, 3, 3))
    text, written, names = write(rng, dims)
    nest = tw.nest_from(text, {"np": np})
    shape = (*(rng.randint(3, 7) for _ in range(dims - 2)), rng.randint(9, 27), rng.randint(20, 75))
    values = np.random.default_rng(rng.randrange(2**32))
    one = rng.choice(("f4", "f8", None))
    start = {}
    for name in names:
        dtype = one or rng.choice(("f4", "f8") if name in written else ("f4", "f8", "i4"))
        start[name] = (values.random(shape) * 4 - 2).astype(dtype)
    expected = {name: array.copy() for name, array in start.items()}
    box = nest.iteration_box({name: array.shape for name, array in start.items()})
    plain_loops(nest, loop_bounds(nest.indices, box, None), expected, {})
    fields = rng.random() < 0.4
    given = {
        name: tw.field(shape, array.dtype, init=array, context=context)
        if fields or name not in written and rng.random() < 0.2
        else lie(array, rng)
        for name, array in start.items()
    }
    lane_bytes = rng.choice((16, 32, 64))
    processor.lane_bytes = lambda: lane_bytes
    kernel_maker.kernels.clear()
    choices = rng.choice(({}, {}, {"storage": "plain", "row": ()}, {"storage": "skewed"}))
    choices = {**choices, "threads": rng.choice((1, 1, 2))}
    for again in range(2):  # what is read only stays what it was
        try:
            report = tw.run(nest, **given, context=context, plan=choices)
        except tw.ConfigError:
            if "storage" not in choices:
                raise
            del choices["storage"]  # not this one for this nest
            choices.pop("row", None)
            report = tw.run(nest, **given, context=context, plan=choices)
        if again:
            plain_loops(nest, loop_bounds(nest.indices, box, None), expected, {})
        for name in names:
            found = given[name] if isinstance(given[name], np.ndarray) else given[name].gather()
            same = np.ascontiguousarray(found).view(f"u{found.itemsize}") == expected[name].view(f"u{found.itemsize}")
            assert same.all(), (
                f"{(~same).sum()} elements of {name} differ, the first at {np.argwhere(~same)[0]}: shape {shape}, "
                f"{ {name: (array.dtype.name, type(given[name]).__name__) for name, array in start.items()} }, "
                f"{choices}, "
                f"vectors of {lane_bytes} bytes, run {again}\n{text}"
            )
    kernel = list(context._prepared.values())[-1].kernel
    return report.plan.storage, 0 < kernel.simd_rows_from <= shape[-1] - 2


@pytest.mark.parametrize("part", [0, 1, 2, *(pytest.param(part, marks=pytest.mark.long) for part in range(3, 80))])
def test_random_bodies(part, monkeypatch):
    monkeypatch.setattr(processor, "lane_bytes", processor.lane_bytes)  # back after the test
    rng = random.Random(f"{SEED} {part}")
    context = tw.Context(threads=2)
    storages, as_lanes = [], 0
    for _ in range(8):
        try:
            storage, lanes = run_one(rng, context)
        except AssertionError as error:
            raise AssertionError(f"TILEWAVE_SEED={SEED}, part {part}\n{error}") from error
        storages, as_lanes = [*storages, storage], as_lanes + lanes
    print(f"part {part}: {storages.count('plain')} plain, {storages.count('skewed')} skewed, {as_lanes} as lanes")
    assert len(set(storages)) == 2 and as_lanes > 0, "few of the bodies were run in one of these ways"
