"""Ranks of a launch take CPUs of their own; parts of a launch, which do not know of each other, take none."""

import os

import pytest

import tilewave as tw
from tilewave.allgather import allgather

ALLOWED = sorted(os.sched_getaffinity(0))


@pytest.mark.mpi(ranks=[1, 2, 3])
def test_a_launch(monkeypatch):
    monkeypatch.delenv("TILEWAVE_PIN", raising=False)
    context = tw.Context()
    fits, lanes = 1 < context.size <= len(ALLOWED), context.threads
    assert context.cpus == (ALLOWED[context.rank * lanes :][:lanes] if fits else [])
    monkeypatch.setenv("TILEWAVE_PIN", "off")
    assert tw.Context().cpus == []
    monkeypatch.setenv("TILEWAVE_PIN", "auto")
    assert tw.Context().cpus == context.cpus


@pytest.mark.mpi(ranks=[2])
def test_parts_of_a_launch(monkeypatch):
    mpi4py = pytest.importorskip("mpi4py.MPI")
    monkeypatch.delenv("TILEWAVE_PIN", raising=False)
    world = tw.Context()
    assert tw.Context(comm=mpi4py.COMM_SELF).cpus == []
    assert tw.Context(comm=mpi4py.COMM_WORLD).cpus == world.cpus


@pytest.mark.mpi(ranks=[2])
def test_a_bad_switch_on_one_rank_is_an_error_on_all(monkeypatch):
    world = tw.Context()
    if world.rank == 1:
        monkeypatch.setenv("TILEWAVE_PIN", "perhaps")
    with pytest.raises(tw.ConfigError) as error:
        tw.Context()
    assert "TILEWAVE_PIN is 'perhaps'; allowed: on, off, auto" in str(error.value)
    assert len(set(allgather(world, str(error.value)))) == 1
