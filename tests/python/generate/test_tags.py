"""Many messages between two ranks, over lanes that post in no certain order."""

import numpy as np
from local_ranks import results_of

import tilewave as tw
from tilewave import _core


def test_every_face_has_its_own_tag():
    problem = _core.SweepProblem((4, 40003), ((1, 0), (4, 40003)), [(8, False)], [(0, (-1, 0))])
    plan = _core.Plan()
    plan.grid, plan.factors, plan.tile, plan.mapping_dim = (2, 1), (1, 3), (1, 1), 0
    made = [_core.sweep(problem, plan, r) for r in range(2)]
    tags = [m.tag for m in made[0].messages]
    assert len(tags) == len(set(tags)) == 40003
    assert _core.check(made) is None

    @tw.nest
    def below(A, i, j):
        A[i, j] = A[i-1, j] + j

    def body(context):
        A = tw.field((4, 40003), "i8", init=lambda i, j: 7 * j + i, context=context)
        tw.run(below, A=A, context=context, plan={"grid": (2, 1), "factors": (1, 3), "tile": (1, 1), "mapping_dim": 0})
        return A.gather()

    results = results_of(2, 3, body)
    expected = np.empty((4, 40003), "i8")
    expected[:] = 7 * np.arange(40003) + np.arange(4)[:, None]
    for i in range(1, 4):
        expected[i] = expected[i-1] + np.arange(40003)
    assert np.array_equal(results[0], expected)
