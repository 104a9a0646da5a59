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
