"""Halos over MPI: against NumPy's padding, beside messages of mpi4py, and in programs."""

import numpy as np
import pytest

import tilewave as tw

pytestmark = pytest.mark.ranks([2, 3])


def values(shape, time):
    return np.random.default_rng(time).random(shape)


def is_padding(field, whole, halo):
    padded = np.pad(whole, halo, mode="wrap")
    box = tuple(slice(at + halo, at + halo + n) for at, n in zip(field.origin, field.local.shape, strict=True))
    return np.array_equal(field.local, padded[box])


@pytest.mark.parametrize("way", ["blocking", "in flight", "prepared"])
def test_large_and_small_halos(way):
    context = tw.Context(threads=1)
    for shape, halo in (((64, 48, 80), 4), ((5, 7), 3), ((3000,), 1)):
        axes = tuple(range(len(shape)))
        fields = [tw.field(shape, halo=halo, periodic=axes, context=context) for _ in range(3)]
        prepared = tw.exchange(*fields, start=False)
        for time in range(3):
            for k, field in enumerate(fields):
                field.local[field.inside] = values(shape, 10 * time + k)[field.owned]
            if way == "blocking":
                tw.exchange(*fields)
            elif way == "in flight":
                handle = tw.exchange(*fields, wait=False)
                while not handle.test():
                    pass
            else:
                prepared.start()
                tw.barrier(context=context)
                prepared.wait()
            for k, field in enumerate(fields):
                assert is_padding(field, values(shape, 10 * time + k), halo)


@pytest.mark.mpi(ranks=[2, 3])
def test_beside_messages_of_mpi4py():
    MPI = pytest.importorskip("mpi4py.MPI")
    comm = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank % 2)
    context = tw.Context(comm, threads=1)
    u = tw.field((12, 5), "i8", init=lambda i, j: 100 * i + j, halo=1, periodic=(0,), context=context)
    got = np.zeros(1)
    request = MPI.COMM_WORLD.Irecv(got, (MPI.COMM_WORLD.rank - 1) % MPI.COMM_WORLD.size, 8)
    handle = tw.exchange(u, wait=False)
    MPI.COMM_WORLD.Send(np.array([1.0]), (MPI.COMM_WORLD.rank + 1) % MPI.COMM_WORLD.size, 8)
    handle.wait()
    request.Wait()
    i = (u.origin[0] + np.arange(u.local.shape[0])) % 12
    assert got[0] == 1 and np.array_equal(u.local, 100 * i[:, None] + u.origin[1] + np.arange(u.local.shape[1]))


def test_one_rank_fails_alone():
    context = tw.Context(threads=1)
    u, v = (tw.field((9, 4), halo=1, context=context) for _ in "uv")
    for _ in range(2):
        tw.exchange(u)
        if context.size > 1:
            with pytest.raises(tw.ConfigError, match="different arguments"):
                tw.exchange(v if context.rank == context.size - 1 else u)
            with pytest.raises(tw.ConfigError, match="different functions"):
                v.gather() if context.rank == 0 else tw.exchange(u)
    if context.rank == context.size - 1:
        u.close()
    with pytest.raises(tw.ConfigError, match="was closed"):
        tw.exchange(u)
    tw.exchange(v)
