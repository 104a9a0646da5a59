"""Values of fields by global index, copies, filling, files; what a field refuses."""

import json
import os
import random

import numpy as np
import pytest

import tilewave as tw
from tilewave.field import npy

pytestmark = [pytest.mark.ranks([1, 2, 3]), pytest.mark.filterwarnings("ignore:.*more than the:RuntimeWarning")]


@pytest.fixture(scope="module")
def context():
    return tw.Context(threads=1)


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
        ((7, 11), "f8"),
        ((5,), "i2"),
        ((3, 4, 5), "f4"),
        ((2, 3, 2, 3), "u1"),
        ((0, 4), "f8"),
        ((1, 1), "i8"),
    ):
        whole = (100 * rng.random(shape)).astype(dtype)
        yield tw.field(whole, context=context), whole
    for grid, storage in (((context.size, 1), "skewed"), ((1, context.size), "plain"), ((1, 1), "skewed")):
        whole = rng.random((9, 13))
        A = tw.field(whole, context=context)
        tw.run(
            slanted,
            A=A,
            context=context,
            plan={"grid": grid, "row": (1, -1) if storage == "skewed" else (0, 1), "storage": storage},
        )
        slanted.reference(slanted.iteration_box(whole.shape), {"A": whole})
        yield A, whole


def random_subscript(pick, shape):
    def entry(extent):
        if extent and pick.random() < 0.4:
            return pick.choice((int, np.int8))(pick.randrange(-extent, extent))
        bound = [None, *range(-extent - 2, extent + 3)]
        return slice(pick.choice(bound), pick.choice(bound), pick.choice([None, 1, 2, -1, -3]))

    given = tuple(map(entry, shape))[: pick.randint(0, len(shape))]
    return (*given, Ellipsis) if pick.random() < 0.2 else given[0] if len(given) == 1 else given


def test_elements_are_those_of_numpy(context):
    pick = random.Random(1)
    for A, whole in fields_of(context):
        for _ in range(7):
            given = random_subscript(pick, A.shape)
            got, expected = A[given], whole[given]
            assert type(got) is type(expected) and got.dtype == expected.dtype and np.array_equal(got, expected), (
                A.shape,
                given,
            )
            value = pick.choice(
                [
                    3,
                    np.arange(np.size(expected)).reshape(np.shape(expected)),
                    np.ones((1,) * (np.ndim(expected) > 0) + np.shape(expected), "i1"),
                ]
            )
            A[given] = value
            whole[given] = value
        everything = A[...]
        assert np.array_equal(everything, whole), A.shape
        gathered = A.gather()
        assert gathered is None or np.array_equal(gathered, whole)
        assert not np.may_share_memory(everything, A.local) or everything.size == 0


def agreed(context, kind, words, call):
    with pytest.raises(kind, match=words) as caught:
        call()
    assert caught.value.agreed and isinstance(caught.value, tw.ConfigError)
    context.agree(None, type(caught.value).__name__ + str(caught.value))


def test_what_is_refused_on_all_ranks(context, folder):
    A, r, last = tw.field((4, 5), context=context), context.rank, context.size - 1
    for given, words in (
        (4, "index 4 is out of bounds for dimension 0 with extent 4"),
        ((0, -6), "index -6"),
        ((0, 0, 0), "too many indices"),
        (0.5, "float was given"),
        ([0, 1], "list"),
        (None, "NoneType"),
        (np.ones((4, 5), bool), "ndarray"),
        (slice(0, 2, 0), "zero"),
    ):
        agreed(context, IndexError, words, lambda: A[given])
        agreed(context, IndexError, words, lambda: A.__setitem__(given, 1))
    agreed(context, tw.ConfigError, "they must be equal, or broadcast", lambda: A.__setitem__(0, np.zeros(4)))
    agreed(context, tw.ConfigError, "they must be equal, or broadcast", lambda: A.__setitem__(0, np.zeros((2, 5))))
    agreed(context, tw.ConfigError, "str|could not convert", lambda: A.__setitem__(0, "x"))
    agreed(context, tw.ConfigError, "a field was given as the value", lambda: A.__setitem__(0, A))
    agreed(context, tw.ConfigError, "allowed: a number, or a function", lambda: A.fill(np.zeros((4, 5))))
    agreed(context, tw.ConfigError, "fill: the function raised ZeroDivisionError", lambda: A.fill(lambda i, j: 1 / 0))
    agreed(
        context,
        tw.ConfigError,
        "out of bounds|too large|range",
        lambda: tw.field((3,), "i1", context=context).fill(1000),
    )
    if last:
        B = tw.field((4, 5), context=context)
        agreed(context, tw.ConfigError, "differ|than|field", lambda: (A if r else B)[1, 1])
        agreed(context, tw.ConfigError, "differ|than|field", lambda: A[1, r%2])
        agreed(context, tw.ConfigError, "differ|than|value", lambda: A.__setitem__((1, 1), 1.0 * r))
        agreed(context, tw.ConfigError, "differ|than|field", (A if r else B).copy)
        agreed(
            context,
            IndexError if last == 0 else tw.ConfigError,
            "index 9|differ|than",
            lambda: A[9 if r == last else 1],
        )
        agreed(context, tw.ConfigError, "differ|than|path", lambda: A.save(f"{folder}/{r}.npy"))
        agreed(
            context,
            tw.ConfigError,
            "fill: the function raised ValueError: only here",
            lambda: A.fill(_only_here if r == last else lambda i, j: 1.0),
        )
    assert (A[...] == 0).all() and not os.listdir(folder)


def _only_here(i, j):
    raise ValueError("only here")


def test_a_field_is_no_numpy_array(context):
    A = tw.field((4, 5), context=context)
    assert len(A) == 4 and A.size == 20
    for call in (
        lambda: np.asarray(A),
        lambda: np.array([A]),
        lambda: np.add(np.ones(3), A),
        lambda: np.sum(A),
        lambda: A + 1,
        lambda: list(A),
        lambda: 0 in A,
        lambda: bool(A),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError, match="field.local.*field.gather"):
        np.asarray(A)


def test_window_fields_refuse_all_of_it(context, folder):
    A = tw.field((4, 5), keep="window", context=context)
    for call in (
        lambda: A[1, 1],
        lambda: A.__setitem__(0, 1),
        A.copy,
        lambda: A.fill(1),
        lambda: A.save(f"{folder}/window.npy"),
    ):
        agreed(context, tw.ConfigError, "keeps a rolling window only", call)
    assert not os.path.exists(f"{folder}/window.npy")


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
    u = tw.field((6, 7), init=1, history=[lambda i, j: 10 * i + j, 3], context=context)
    v = u.copy()
    u.fill(0)
    u.buffer(-1).local[...] = 0
    for back, expected in ((0, 1), (1, 10 * np.arange(6)[:, None] + np.arange(7)), (2, 3)):
        whole = v.buffer(-back).gather()
        assert whole is None or np.array_equal(whole, np.broadcast_to(expected, (6, 7)))
    # A copy is run as its original is.
    A = tw.field(np.ones((9, 13)), context=context)
    B = A.copy()
    tw.run(slanted, A=A, context=context)
    C = A.copy()
    for each in (B, C, A):
        tw.run(slanted, A=each, context=context)
    assert np.array_equal(C[...], A[...]) and np.array_equal(B[...], A[...])


def test_fields_from_arrays(context):
    whole = np.arange(12, dtype="i2").reshape(3, 4)
    A = tw.field(whole, context=context)
    assert A.dtype == np.int16 and A.shape == (3, 4) and np.array_equal(A[...], whole)
    assert tw.field(whole, "f4", context=context).dtype == np.float32
    assert np.array_equal(tw.field(whole.T, context=context)[...], whole.T)
    assert tw.field((3, 4), context=context).dtype == np.float64
    assert tw.field(np.array([3, 4]), init=2, context=context).shape == (3, 4)  # with init it is a shape
    agreed(context, tw.ConfigError, "dtype.*uint16.*allowed", lambda: tw.field(whole.astype("u2"), context=context))


def test_files_are_numpys(context, folder):
    for number, (A, whole) in enumerate(fields_of(context)):
        path = f"{folder}/{number}.npy"
        A.save(path)
        again = np.load(path)
        assert again.dtype == whole.dtype and again.flags.c_contiguous and np.array_equal(again, whole)
        B = tw.load(path, context=context)
        assert B.dtype == A.dtype and B.shape == A.shape and np.array_equal(B[...], whole)
        context.agree()
    if context.rank == 0:
        np.save(f"{folder}/other.npy", np.asfortranarray(np.arange(20.0).reshape(4, 5)).astype(">f8"))
    context.agree()
    assert np.array_equal(tw.load(f"{folder}/other.npy", context=context)[...], np.arange(20.0).reshape(4, 5))
    assert not [name for name in os.listdir(folder) if name.startswith(".")]
    context.agree()


@pytest.mark.mpi(ranks=[2, 3])
def test_a_file_is_written_by_all_or_not_at_all(context, folder, monkeypatch):
    A, path, last = tw.field(np.ones((6, 5)), context=context), f"{folder}/kept.npy", context.size - 1
    A.save(path)
    before = open(path, "rb").read()
    A.fill(2)

    def full(*_):
        raise tw.ConfigError("save: no space left on device")

    for name in ("write", "create", "finish"):
        with monkeypatch.context() as patch:
            if context.rank == (last if name == "write" else 0):
                patch.setattr(npy, name, full)
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
        np.save(f"{folder}/u2.npy", np.zeros(3, "u2"))
        np.save(f"{folder}/fine.npy", np.zeros(3))
    context.agree()
    refusals = (("short", "is cut short"), ("u2", "holds uint16; allowed: .*float32"), ("none", "No such file"))
    for name, words in refusals:
        agreed(context, tw.ConfigError, words, lambda: tw.load(f"{folder}/{name}.npy", context=context))
    if last:
        agreed(
            context,
            tw.ConfigError,
            "No such file|differ",
            lambda: tw.load(f"{folder}/{'none' if context.rank == last else 'fine'}.npy", context=context),
        )
    assert tw.load(f"{folder}/fine.npy", context=context)[1] == 0
