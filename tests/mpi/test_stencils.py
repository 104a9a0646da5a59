"""Random stencils over MPI, with the plan that is picked: the plain loops, bit for bit."""

import numpy as np
import pytest
from random_paths import random_paths, switched_off
from random_stencils import stencil_case

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])


@pytest.mark.ranks([1, 2, 3, 4, 6])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("seed", [3, 8])
@pytest.mark.parametrize("together", [None, 3])
def test_random_stencils(seed, together):
    case = stencil_case(seed)
    with switched_off(off := random_paths(f"{seed} {together}")):
        context = tw.Context()
    arrays = case.fields(context)
    choices = {"generator": "stencil", "temporal_block": together} if together else {}
    tw.run(
        case.nest(),
        **arrays,
        steps=case.steps,
        periodic=case.periodic,
        over=case.over or None,
        reverse=case.reverse,
        context=context,
        plan=choices,
    )
    for name, expected in case.expected().items():
        whole = arrays[name].gather()
        assert whole is None or np.array_equal(whole, expected, equal_nan=True), f"{case}: array {name}, without {off}"


@tw.nest
def filmed(u, film, t, i, j, *, k):
    u[t+1, i, j] = 0.5 * u[t, i, j] + 0.25 * (u[t, i-1, j] + u[t, i, j+1])
    film[(t + 1) // k, i, j] = u[t+1, i, j]


@pytest.mark.mpi(ranks=[2, 3])
def test_rows_of_several_steps():
    start, rows = np.random.default_rng(2).standard_normal((9, 13)), np.zeros((5, 9, 13))
    whole = np.stack([start] * 14)
    for t in range(13):
        whole[t + 1] = whole[t]
        for i, j in np.ndindex(8, 12):
            filmed.function(whole, rows, t, i + 1, j, k=3)
    u, film = tw.field((9, 13), "f8", start), tw.field((5, 9, 13))
    tw.run(filmed, u=u, film=film, steps=13, k=3)
    u, film = u.gather(), film.gather()
    assert u is None or np.array_equal(u, whole[13]) and np.array_equal(film, rows)
