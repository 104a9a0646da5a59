"""Arrays read in several orders of their subscripts, over MPI: plain loops, bit for bit; one error on every rank."""


import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([1, 2, 3, 4, 6])


@tw.nest
def self_alignment(H, a, C, i, j):
    match = 2.0 if a[i-1] == a[j-1] and i != j else -1.0
    H[i, j] = max(H[i-1, j-1] + match * C[i, i] * C[j, j], H[i-1, j] - C[i, j], H[i, j-1] - C[j, i], 0.0)


@pytest.fixture(scope="module")
def context():
    return tw.Context(threads=2)


@pytest.mark.ranks([1, 2, 3, 4, 6])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("as_fields", [False, True])
def test_a_wavefront_over_a_sequence_and_itself(context, as_fields):
    rng = np.random.default_rng(1)
    a, C, expected = rng.integers(0, 4, 60, "i1"), rng.random((58, 63)), np.zeros((61, 62))
    box = self_alignment.iteration_box({"H": expected.shape, "a": a.shape, "C": C.shape})
    self_alignment.reference(box, {"H": expected, "a": a, "C": C})
    H = tw.field(expected.shape, "f8", context=context)
    given = {"a": tw.field(a, context=context), "C": tw.field(C, context=context)} if as_fields else {"a": a, "C": C}
    for choices in ({"storage": "plain"}, {"grid": (1, context.size)}, {}):
        report = tw.run(self_alignment, H=H, **given, context=context, plan=choices)
        assert report.loops == {"i": (1, 58), "j": (1, 58)}
        assert not choices or not report.on_one_rank
        replicated = as_fields and context.size > 1 and not report.on_one_rank
        assert set(report.replicated) == ({"a", "C"} if replicated else set())
        whole = H.gather()
        assert whole is None or whole.tobytes() == expected.tobytes()
        H.fill(0.0)


def test_errors_are_the_same_on_every_rank(context):
    H, C = tw.field((9, 9), "f8", context=context), np.ones((8, 9))
    with pytest.raises(tw.ConfigError, match=r"'a'.*given shape \(3, 3\); allowed: shapes of rank 1") as error:
        tw.run(self_alignment, H=H, a=np.zeros((3, 3), "i1"), C=C, context=context)
    assert error.value.agreed
    if context.size > 1:
        with pytest.raises(tw.ConfigError, match="differ") as error:
            tw.run(self_alignment, H=H, a=np.full(8, context.rank, "i1"), C=C, context=context)
        assert error.value.agreed
    tw.run(self_alignment, H=H, a=np.zeros(8, "i1"), C=C, context=context)
