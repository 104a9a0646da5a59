"""Stencils in time equal plain loops, bit for bit, for random bodies, periodic loops, grids, lanes, tiles and deep
halos; every schedule is proved.
"""

import numpy as np
import pytest
from local_ranks import on_ranks
from random_stencils import stencil_case

import tilewave as tw

pytestmark = pytest.mark.filterwarnings("ignore:.*more than the:RuntimeWarning")


def run_case(case):
    nest, expected = case.nest(), case.expected()

    def body(context):
        arrays = {
            name: value if name == "c" and not case.as_field else tw.field(case.shape, case.dtype, value, context=context)
            for name, value in case.start().items()
        }
        given = {
            **arrays,
            "steps": case.steps,
            "periodic": case.periodic,
            "over": case.over or None,
            "context": context,
            **case.choices,
        }
        schedule = tw.schedule(nest, **given)
        violation = tw.check(schedule) if context.rank == 0 else None
        tw.run(nest, **given)
        return violation, {name: arrays[name].gather() for name in expected}

    results, errors = on_ranks(case.ranks, case.lanes, body)
    assert not any(errors), f"{case}: {errors}"
    violation, found = results[0]
    assert violation is None, f"{case}: {violation}"
    for name, value in expected.items():
        assert np.array_equal(found[name], value, equal_nan=True), f"{case}: array {name}"


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_stencils_equal_plain_loops(first):
    for seed in range(first, first + 20):
        run_case(stencil_case(seed))


@pytest.mark.long
def test_many_random_stencils_equal_plain_loops():
    for seed in range(1000, 2000):
        run_case(stencil_case(seed))
