"""Copies and files of fields that lie in any order, over ranks; what differs between ranks."""

import json
import os

import numpy as np
import pytest

import tilewave as tw
from tilewave.field import npy

pytestmark = pytest.mark.ranks([1, 2, 3])


@pytest.fixture(scope="module")
def folder(context, tmp_path_factory):
    """One for all ranks."""
    mine = str(tmp_path_factory.mktemp("fields")) if context.rank == 0 else ""
    return json.loads(context._core.broadcast(json.dumps(mine).encode()))


@tw.nest
def slanted(A, i, j):
    A[i, j] = A[i-1, j] + 0.25 * A[i, j-1]


def fields_of(context):
    """(field, its whole array): in even blocks; in the blocks and the order of memory that runs have left."""
    rng = np.random.default_rng(5)
    for shape, dtype in (
        ((7, 11), "f8"), ((5,), "i2"), ((3, 4, 5), "f4"), ((2, 3, 2, 3), "u1"), ((0, 4), "f8"), ((1, 1), "i8"),
    ):
        whole = (100 * rng.random(shape)).astype(dtype)
        yield tw.field(whole), whole
    for grid, storage in (((context.size, 1), "skewed"), ((1, context.size), "plain"), ((1, 1), "skewed")):
        whole = rng.random((9, 13))
        A = tw.field(whole)
        tw.run(slanted, A=A, plan={"grid": grid, "row": (1, -1) if storage == "skewed" else (0, 1), "storage": storage})
        slanted.reference(slanted.iteration_box(whole.shape), {"A": whole})
        yield A, whole


def agreed(context, kind, words, call):
    with pytest.raises(kind, match=words) as caught:
        call()
    assert caught.value.agreed and isinstance(caught.value, tw.ConfigError)
    context.agree(None, type(caught.value).__name__ + str(caught.value))


@pytest.mark.ranks([2, 3])
def test_what_differs_between_ranks_is_refused_on_all(context, folder):
    A, B = (tw.field((4, 5)) for _ in range(2))
    r, last = context.rank, context.size - 1
    for call in (
        lambda: (A if r else B)[1, 1],
        lambda: A[1, r % 2],
        lambda: A[9 if r == last else 1],
        lambda: A.__setitem__((1, 1), 1.0 * r),
        (A if r else B).copy,
        lambda: A.save(f"{folder}/{r}.npy"),
        lambda: A.fill(_only_here if r == last else lambda i, j: 1.0),
    ):
        agreed(context, tw.ConfigError, "differ|than|index 9|the function raised ValueError: only here", call)
    assert (A[...] == 0).all() and not os.listdir(folder)


def _only_here(i, j):
    raise ValueError("only here")


def test_copies_and_filling(context):
    for A, whole in fields_of(context):
        B = A.copy()
        assert B._number != A._number and B.owned == A.owned and B.local.strides == A.local.strides
        A.fill(3)
        assert np.array_equal(B[...], whole) and (A[...] == 3).all()
        B.fill(lambda *at: sum((k + 1) * n for k, n in enumerate(at)) % 100)
        if whole.size:
            assert np.array_equal(B[...], sum((k + 1) * n for k, n in enumerate(np.indices(whole.shape))) % 100)
        B.fill(lambda *at: 1 if min(at) >= 0 else 0)  # no function of arrays
        assert (B[...] == 1).all()
    u = tw.field((6, 7), init=1, history=[lambda i, j: 10 * i + j, 3])
    v = u.copy()
    u.fill(0)
    u.buffer(-1).local[...] = 0
    for back, expected in ((0, 1), (1, 10 * np.arange(6)[:, None] + np.arange(7)), (2, 3)):
        whole = v.buffer(-back).gather()
        assert whole is None or np.array_equal(whole, np.broadcast_to(expected, (6, 7)))
    # A copy is run as its original is.
    A = tw.field(np.ones((9, 13)))
    B = A.copy()
    tw.run(slanted, A=A)
    C = A.copy()
    for each in (B, C, A):
        tw.run(slanted, A=each)
    assert np.array_equal(C[...], A[...]) and np.array_equal(B[...], A[...])


@pytest.mark.mpi(ranks=[2, 3])
def test_a_file_is_written_by_all_or_not_at_all(context, folder, monkeypatch):
    A, path, last = tw.field(np.ones((6, 5))), f"{folder}/kept.npy", context.size - 1
    A.save(path)
    before = open(path, "rb").read()
    A.fill(2)

    def full(*_):
        raise tw.ConfigError("save: no space left on device")

    for name in ("_write_block", "begin", "finish"):
        with monkeypatch.context() as patch:
            if context.rank == (last if name == "_write_block" else 0):
                patch.setattr(npy.Writer, name, full)
            agreed(context, tw.ConfigError, "save: no space left", lambda: A.save(path))
        assert open(path, "rb").read() == before
        context.agree()
        assert not [found for found in os.listdir(folder) if found.startswith(".")]
        context.agree()
    for given, words in (
        (3, "allowed: the name of a .npy file"),
        (f"{folder}/no/x.npy", "No such file"),
        (folder, "folder"),
    ):
        agreed(context, tw.ConfigError, words, lambda: A.save(given))
    A.save(path)
    assert (np.load(path) == 2).all()


def test_what_cannot_be_loaded(context, folder):
    last = context.size - 1
    if context.rank == 0:
        np.save(f"{folder}/short.npy", np.zeros(100))
        os.truncate(f"{folder}/short.npy", 600)
        np.save(f"{folder}/f2.npy", np.zeros(3, "f2"))
        np.save(f"{folder}/fine.npy", np.zeros(3))
    context.agree()
    refusals = (("short", "is cut short"), ("f2", "holds float16; allowed: .*float32"), ("none", "No such file"))
    for name, words in refusals:
        agreed(context, tw.ConfigError, words, lambda: tw.load(f"{folder}/{name}.npy"))
    if last:
        agreed(
            context,
            tw.ConfigError,
            "No such file|differ",
            lambda: tw.load(f"{folder}/{'none' if context.rank == last else 'fine'}.npy"),
        )
    assert tw.load(f"{folder}/fine.npy")[1] == 0
