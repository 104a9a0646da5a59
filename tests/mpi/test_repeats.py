"""Calls that are repeated with equal values in other memory give what plain loops give, and touch nothing else.

A failure prints its seed: TILEWAVE_SEED=123 python -m pytest tests/mpi/test_repeats.py
"""

import dataclasses
import itertools
import os
import random

import numpy as np
import pytest

import tilewave as tw
from tilewave.nests.plan import kernel_maker

pytestmark = pytest.mark.ranks([1, 2])

LIES, CALLS = 8, 40  # of one nest: ways its arrays lie in memory, calls in random order


@tw.nest
def down(A, B, i, j):
    A[i, j] = A[i-1, j] + B[i, j]


@tw.nest
def along(A, f, g, i, j):
    A[i, j] = np.float32(0.5) * A[i, j-1] - f[j] * A[i-1, j] + g[i]


@tw.nest
def aligned(H, S, a, b, i, j):
    H[i, j] = max(H[i-1, j-1] + S[a[i], b[j]], H[i-1, j] - 1, H[i, j-1] - 1)


@tw.nest
def deep(A, B, C, i, j, k):
    A[i, j, k] = 0.5 * A[i-1, j, k] + 0.25 * B[i, j, k-1] - C[k, i]


@tw.nest
def beside(A, B, i, j):
    A[i, j] = B[i-1, j+1] + A[i, j]
    B[i, j] = A[i, j] * 0.5


@tw.nest
def heat(u, f, t, i, j):
    u[t+1, i, j] = 0.25 * u[t, i-1, j] + 0.5 * u[t, i+1, j] + f[i, j-1]


@dataclasses.dataclass
class Case:
    """A nest with start values and the values that plain loops end with."""

    nest: object
    values: dict
    steps: int = None

    def expected(self):
        given = {name: value.copy() for name, value in self.values.items()}
        if self.steps is None:
            self.nest.reference(self.nest.iteration_box({n: v.shape for n, v in given.items()}), given)
            return given
        buffers = {name: np.stack([given[name]] * (self.steps + 1)) for name in self.nest.written}
        for t in range(self.steps):  # a time step begins as a copy of the one before
            box = self.nest.iteration_box(
                {n: (2, *v.shape[1:]) if n in buffers else v.shape for n, v in {**given, **buffers}.items()}
            )
            here = {name: np.stack([level[t]] * 2) for name, level in buffers.items()}
            self.nest.reference(box, {**given, **here})
            for name, level in here.items():
                buffers[name][t+1] = level[1]
        return {**given, **{name: level[-1] for name, level in buffers.items()}}


def cases(seed):
    made = np.random.default_rng(seed)
    shape = (7, 9)
    yield Case(down, {"A": made.random(shape), "B": made.random(shape)})
    yield Case(along, {"A": made.random(shape, "f4"), "f": made.random(9, "f4"), "g": made.random(7, "f4")})
    yield Case(
        aligned,
        {
            "H": np.zeros(shape, "i4"),
            "S": made.integers(-3, 4, (5, 5)).astype("i4"),
            "a": made.integers(0, 5, 7),
            "b": made.integers(0, 5, 9).astype("i4"),
        },
    )
    yield Case(deep, {"A": made.random((5, 6, 7)), "B": made.random((5, 6, 7)), "C": made.random((7, 5))})
    yield Case(beside, {"A": made.random(shape), "B": made.random(shape)})
    yield Case(heat, {"u": made.random(shape), "f": made.random(shape)}, steps=3)


class Memory:
    """Equal values somewhere in a larger piece of memory, of which every byte counts."""

    def __init__(self, choose, values, written):
        item, dims = values.itemsize, values.ndim
        axes = (
            choose.sample(range(dims), dims) if choose.random() < 0.6 else list(range(dims))
        )  # outermost in memory first
        same = [k for k in range(dims) if not written and (values == values.take([0], k)).all()]
        strides, at = (
            [0] * dims,
            item * choose.choice((1, 1, 2)) + (choose.random() < 0.15),
        )  # odd: a column of packed records
        for k in reversed(axes):
            if k not in same:
                strides[k] = at * choose.choice((1, 1, -1))
                at = at * values.shape[k] + item * choose.choice((0, 0, 3))
        low = sum(min(0, s * (n - 1)) for s, n in zip(strides, values.shape))
        offset = 64 - low + (choose.randrange(1, item) if item > 1 and choose.random() < 0.4 else 0)
        size = 64 + offset + sum(max(0, s * (n - 1)) for s, n in zip(strides, values.shape)) + item
        self.before = np.frombuffer(choose.randbytes(size), "u1").copy()
        self.bytes = np.empty(size, "u1")
        self.view = lambda memory: np.ndarray(values.shape, values.dtype, memory, offset, tuple(strides))
        self.view(self.before)[...] = values
        self.refresh()

    def refresh(self):
        self.bytes[...] = self.before
        return self.view(self.bytes)

    def holds(self, values):
        """Whether the memory has these values, and every other byte is as it was."""
        wanted = self.before.copy()
        self.view(wanted)[...] = values
        return np.array_equal(self.bytes, wanted)

    def __repr__(self):
        array = self.view(self.bytes)
        return f"strides {array.strides}, {'' if array.flags.aligned else 'not '}aligned"


@pytest.fixture(autouse=True)
def rates_are_measured_shortly(monkeypatch):
    sampled = kernel_maker.sampled
    monkeypatch.setattr(kernel_maker, "sampled", lambda given, prepared, _: sampled(given, prepared, 1e-3))


ASKED = os.environ.get("TILEWAVE_SEED", "")


@pytest.mark.ranks([1, 2])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("seed", [int(ASKED)] if ASKED.isdigit() else [1, 2, 3])
@pytest.mark.sample(2)
def test_equal_values_in_other_memory(seed):
    repeat(seed, LIES, CALLS)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 120))
def test_equal_values_in_other_memory_often(seed):
    repeat(seed, 12, 200)


def repeat(seed, lies, calls):
    """Calls in random order on one context: nests, and for each the ways that its arrays lie."""
    context = tw.Context()
    order = random.Random(seed)  # the same on every rank
    mine = random.Random(f"{seed} rank {context.rank}")  # inputs may lie differently on each
    tried = []
    for case in cases(seed):
        read = [name for name in case.values if name not in case.nest.written]
        if read and order.random() < 0.5:  # constant along one axis, so that memory may be shared along it
            name = read[0]
            case.values[name] = np.broadcast_to(case.values[name].take([0], -1), case.values[name].shape).copy()
        given = [
            {name: Memory(mine, value, name in case.nest.written) for name, value in case.values.items()}
            for _ in range(lies)
        ]
        tried.append((case, case.expected(), given))
    every = list(itertools.product(tried, range(lies)))
    calls = [order.choice(every) for _ in range(calls)] + every + every
    for n, ((case, expected, ways), way) in enumerate(calls):
        memory = ways[way]
        arrays = {name: each.refresh() for name, each in memory.items()}
        if context.size > 1 or n % 5 == 0:
            arrays.update(
                {
                    name: tw.field(
                        case.values[name].shape, case.values[name].dtype, init=case.values[name], context=context
                    )
                    for name in case.nest.written
                }
            )
        names = list(arrays)
        order.shuffle(names)
        tw.run(
            case.nest,
            context=context,
            **{name: arrays[name] for name in names},
            **({"steps": case.steps} if case.steps else {}),
        )
        for name, each in memory.items():
            what = f"seed {seed}, call {n}: nest {case.nest.name}, array {name}, {memory}"
            if isinstance(arrays[name], tw.Field):
                whole = arrays[name].gather()
                assert whole is None or np.array_equal(whole, expected[name]), what
                assert each.holds(case.values[name]), what
            else:
                assert each.holds(expected[name]), what


def test_each_element_that_is_written_has_memory_of_its_own():
    context = tw.Context()
    if context.size > 1:
        return
    memory, B = np.zeros(40), np.ones((4, 5))
    for strides in ((0, 8), (8, 8), (16, 16), (-8, 16)):
        A = np.lib.stride_tricks.as_strided(memory[8:], (4, 5), strides)
        with pytest.raises(tw.ConfigError, match=r"array 'A' is written, and elements of it share memory: .* copy\(\)"):
            tw.run(down, A=A, B=B, context=context)
    A = np.lib.stride_tricks.as_strided(
        memory[8:], (3, 2), (16, 24)
    )  # no block of memory inside another, and yet no element twice
    tw.run(down, A=A, B=B[:3, :2], context=context)
    assert A.tolist() == [[0, 0], [1, 1], [2, 2]] and memory.sum() == 6
    assert not memory[:8].any()


def test_a_plan_without_reductions_is_not_taken_for_one_with_them():
    """Without them ranks may compute points twice."""
    context = tw.Context()
    cut = {"grid": (1, context.size, 1), "temporal_block": 2, "tile": (1, 38 // context.size, 29)}
    for reduce in (None, {"all": tw.sum("u")}, None, {"all": tw.sum("u")}):
        u = tw.field((40, 30), init=lambda i, j: 1.0, context=context)
        report = tw.run(heat, u=u, f=np.full((40, 30), 0.25), steps=4, context=context, reduce=reduce, plan=cut)
        assert reduce is None or report.results["all"] == 4 * 38 * 29
