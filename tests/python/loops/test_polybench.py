"""PolyBench's kernels as whole functions, each against itself as plain Python."""

import numpy as np
import pytest
from local_ranks import results_of
from polybench import KERNELS, arguments

import tilewave as tw
from tilewave.loops import plan

#: Those of which all loops run in order.
IN_ORDER = {"cholesky", "doitgen", "durbin", "nussinov", "symm"}
#: Those of which some loops do.
PARTLY = {"gramschmidt", "ludcmp", "trisolv"}


@pytest.fixture(autouse=True)
def least_points(monkeypatch):
    monkeypatch.setattr(plan, "LEAST_POINTS", 0)
    monkeypatch.setattr(plan, "LEAST_POINTS_OF_TURNS", 0)


def wanted(name, size):
    plain = arguments(name, size)
    KERNELS[name](*plain)
    return plain


@pytest.mark.parametrize("name", KERNELS)
def test_arrays(name):
    function = tw.loops(KERNELS[name])
    for size in (7, 10):
        given = arguments(name, size)
        function(*given)
        for one, other in zip(given, wanted(name, size), strict=True):
            assert not isinstance(one, np.ndarray) or one.tobytes() == other.tobytes()
    about = function.explain()
    assert (": a nest" in about or " times" in about or "a turn" in about) == (name not in IN_ORDER)
    assert ("in order" in about) == (name in IN_ORDER | PARTLY)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_fields(name, ranks):
    def on_rank(context):
        function = tw.loops(KERNELS[name])
        given = [tw.field(a, context=context) if isinstance(a, np.ndarray) else a for a in arguments(name, 8)]
        function(*given)
        return [a.gather() if isinstance(a, tw.Field) else None for a in given]

    found = results_of(ranks, 1, on_rank)[0]
    for one, other in zip(found, wanted(name, 8), strict=True):
        assert not isinstance(other, np.ndarray) or one.tobytes() == other.tobytes()
