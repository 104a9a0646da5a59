"""Restriction and interpolation over MPI: fields of two grids, equal plain loops, bit for bit."""

import numpy as np
import pytest

import tilewave as tw


@tw.nest
def restrict(C, F, i, j):
    C[i, j] = 0.5 * F[2 * i + 1, 3 * j] + 0.25 * (F[2 * i, 3 * j + 1] + F[2 * i + 2, 3 * j + 2])


@tw.nest
def interpolate(F, C, i, j):
    F[2 * i, 3 * j + 1] += C[i, j]
    F[2 * i + 1, 3 * j] += 0.5 * (C[i, j] + C[i + 1, j])


@pytest.mark.ranks([1, 2, 3, 4, 6])
def test_two_grids():
    for shape in ((15, 20), (4, 61)):
        arrays = {
            "F": np.random.default_rng(1).random(shape),
            "C": np.random.default_rng(2).random((-(-shape[0] // 2), -(-shape[1] // 3))),
        }
        fields = {name: tw.field(array.shape, "f8", array) for name, array in arrays.items()}
        for nest in (restrict, interpolate, restrict):
            tw.run(nest, **fields)
            nest.reference(nest.iteration_box({name: array.shape for name, array in arrays.items()}), arrays)
        for name, array in arrays.items():
            whole = fields[name].gather()
            assert whole is None or np.array_equal(whole, array)


test_two_grids()
