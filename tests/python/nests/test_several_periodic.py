"""Several nests in each time step, some of them periodic, each along loops of its own: plain loops, bit for bit."""

import numpy as np
import pytest
from local_ranks import refused_on_all, results_of

import tilewave as tw
from tilewave.nests.chain import several


class Around:
    """An array with all time steps whose subscripts wrap along some of its axes."""

    def __init__(self, values, axes):
        self.values, self.axes = values, axes

    def _at(self, at):
        return tuple(k % self.values.shape[axis] if axis in self.axes else k for axis, k in enumerate(at))

    def __getitem__(self, at):
        return self.values[self._at(at)]

    def __setitem__(self, at, value):
        self.values[self._at(at)] = value


def looped(nests, start, steps, periodic):
    """The arrays after the plain loops."""
    shape = next(iter(start.values())).shape
    whole = {name: np.stack([value] * (steps + 3)) for name, value in start.items()}  # u[-1] is a copy of the start
    for t in range(steps):
        begun = set()
        for nest, around in zip(nests, periodic, strict=True):
            for name in {*nest.written} - begun:
                whole[name][t + 1] = whole[name][t]
            begun |= {*nest.written}
            box = nest.iteration_box(dict.fromkeys(nest.arrays, (steps + 1, *shape)))[1:]
            ranges = [range(n) if k in around else range(*b) for k, n, b in zip("ij", shape, box, strict=True)]
            axes = {1 + "ij".index(index) for index in around}
            arrays = [Around(whole[name], axes) for name in nest.arrays]
            for i in ranges[0]:
                for j in ranges[1]:
                    nest.function(*arrays, t, i, j)
    return {name: value[steps] for name, value in whole.items()}


@tw.nest
def around(a, b, t, i, j):
    a[t + 1, i, j] = a[t, i, j] - b[t, i - 1, j + 2] + 3 * b[t, i + 1, j]


@tw.nest
def inside(a, b, t, i, j):
    b[t + 1, i, j] = 2 * a[t + 1, i - 1, j] - a[t + 1, i, j + 1] + b[t, i, j]


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (2, 1), (3, 1), (4, 1), (6, 1)])
@pytest.mark.parametrize("periodic", [[("i", "j"), ()], [(), ("j",)], [("i",), ("j",)], ("j",)])
def test_one_schedule(ranks, threads, periodic, monkeypatch):
    """Nests that are periodic along other loops are one schedule, as others are."""
    monkeypatch.setattr(several, "LEAST_MOVED_BYTES", 0)
    start = {name: np.random.default_rng(k).integers(-9, 9, (11, 13)) for k, name in enumerate("ab")}

    def body(context):
        fields = {name: tw.field(start[name], context=context) for name in start}
        report = tw.run((around, inside), **fields, steps=5, periodic=periodic, context=context)
        return {name: field.gather() for name, field in fields.items()}, report.separate

    expected = looped((around, inside), start, 5, periodic if isinstance(periodic, list) else [periodic] * 2)
    for found, separate in results_of(ranks, threads, body)[:1]:
        assert separate == "" and all(np.array_equal(found[name], expected[name]) for name in start)


@pytest.mark.parametrize("ranks", [1, 2])
def test_refused(ranks):
    def refused(text, periodic):
        def body(context):
            fields = {name: tw.field((6, 6), context=context) for name in "ab"}
            tw.run((around, inside), **fields, steps=2, periodic=periodic, context=context)

        refused_on_all(ranks, body, text)

    refused("nests, 2; allowed: one for all, or one a nest", [("i",), (), ()])
    refused("allowed: a tuple of indices of the nests, or one a nest", [("i",), ("k",)])
    refused("allowed: a tuple of indices of the nests, or one a nest", ["i", ("j",)])
    refused("allowed: a tuple of indices of the nests, or one a nest", 3)
