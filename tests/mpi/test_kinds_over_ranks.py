"""Every kind of nest over MPI: plain loops, bit for bit."""

import kinds
import pytest


@pytest.mark.mpi(ranks=[2, 3])
def test_kinds(context):
    for name, kind in kinds.KINDS.items():
        call = kinds.call_of(kind, "steps" if kind.plain is None else "ranks", "run")
        call.ranks = context.size
        how, _, arrays, *_ = kinds.Cell(call, "run").run(context)
        assert how in "ya", name  # small time steps of several nests are runs of their own
        if context.rank == 0:
            wanted, *_ = kinds.plain(call, 1)
            for array, values in arrays.items():
                assert values.tobytes() == wanted[array].tobytes(), (name, array)
