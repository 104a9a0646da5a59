"""Tests run on the ranks that they ask for (what is reported of them: tests/python/tools/test_mpi_marker.py)."""

import os

import pytest


def my_rank():
    return int(os.environ["PMI_RANK"])


@pytest.mark.mpi(ranks=[1, 2, 3])
def test_runs_on_the_given_ranks(mpi_ranks):
    assert int(os.environ["PMI_SIZE"]) == mpi_ranks
    assert 0 <= my_rank() < mpi_ranks


@pytest.mark.mpi
def test_two_ranks_by_default(mpi_ranks):
    assert mpi_ranks == int(os.environ["PMI_SIZE"]) == 2


@pytest.mark.mpi(ranks=[2, 6])
def test_ranks_can_talk(mpi_ranks):
    MPI = pytest.importorskip("mpi4py.MPI")
    assert MPI.COMM_WORLD.allreduce(my_rank()) == mpi_ranks * (mpi_ranks - 1) // 2
