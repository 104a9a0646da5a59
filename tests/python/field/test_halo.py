"""Fields with halos and their exchange, against NumPy's padding, bit for bit; what is refused."""

import functools
import itertools
import os
import random

import numpy as np
import pytest
from local_ranks import results_of
from random_paths import random_paths

import tilewave as tw
from tilewave import _core

DTYPES = ("f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
FIRST = int(os.environ.get("TILEWAVE_SEED", 0))
SEEDS = range(FIRST, FIRST + 5)


def bits(rng, shape, dtype):
    """Values with every bit pattern, NaNs too."""
    dtype = np.dtype(dtype)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def grids(ranks, dims):
    """All process grids of so many ranks or fewer, those that use all first."""
    every = [g for g in itertools.product(range(1, ranks + 1), repeat=dims) if np.prod(g) <= ranks]
    return sorted(every, key=lambda g: -np.prod(g))


class Case:
    """One random field; `padded` is what its memory should hold over the whole array, before and after an exchange."""

    def __init__(self, dice, rng, dims, grid):
        self.shape = tuple(dice.randint(1, (14, 7, 5)[dims - 1]) for _ in range(dims))
        self.periodic = tuple(k for k in range(dims) if dice.random() < 0.5)
        self.halo = tuple(
            tuple(dice.randint(0, dice.choice((3, 2 * n + 1)) if k in self.periodic else 3) for _ in "ba")
            for k, n in enumerate(self.shape)
        )
        self.grid, self.dtype = grid, dice.choice(DTYPES)
        self.whole = bits(rng, self.shape, self.dtype)

    def make(self, context):
        return tw.field(self.whole, halo=self.halo, periodic=self.periodic, grid=self.grid, context=context)

    def padded(self):
        """np.pad with mode wrap along periodic axes; its first element has the index -halo there, and 0 elsewhere."""
        widths = [h if k in self.periodic else (0, 0) for k, h in enumerate(self.halo)]
        return np.pad(self.whole, widths, mode="wrap"), [-low for low, _ in widths]

    def check(self, field, corners):
        """Faces always; edges and corners too, or as they were: zero."""
        padded, first = self.padded()
        local, inside = field.local, field.inside
        if local.size == 0:
            return
        box = tuple(slice(at - f, at - f + n) for at, f, n in zip(field.origin, first, local.shape, strict=True))
        flags = [np.ones(n, int) for n in local.shape]
        for flag, own in zip(flags, inside, strict=True):
            flag[own] = 0
        beside = functools.reduce(np.add.outer, flags)  # along how many axes
        wanted = np.where(beside <= (self.whole.ndim if corners else 1), padded[box], 0).astype(self.dtype)
        assert local.tobytes() == wanted.tobytes(), (self.shape, self.halo, self.periodic, self.grid)
        assert np.ascontiguousarray(local[inside]).tobytes() == self.whole[field.owned].tobytes()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("seed", SEEDS)
def test_halos_are_numpys_padding(ranks, seed):
    def body(context):
        dice, rng = random.Random(seed * 10 + ranks), np.random.default_rng(seed * 10 + ranks)
        dims = dice.randint(1, 3)
        all_grids = grids(ranks, dims)
        grid = dice.choice(all_grids[: max(1, len(all_grids) // 2)])
        cases = [Case(dice, rng, dims, grid) for _ in range(dice.randint(1, 4))]
        fields = [case.make(context) for case in cases]
        corners = dice.random() < 0.6
        way = dice.choice(("blocking", "in flight", "prepared"))
        handle = tw.exchange(*fields, corners=corners, start=False) if way == "prepared" else None
        for _ in range(3):
            for case, field in zip(cases, fields, strict=True):
                case.whole = bits(rng, case.shape, case.dtype)
                field.local[...] = 0
                field.local[field.inside] = case.whole[field.owned]
            if way == "blocking":
                assert tw.exchange(*fields, corners=corners) is None
            elif way == "in flight":
                tw.exchange(*fields, corners=corners, wait=False).wait()
            else:
                handle.run()
            for case, field in zip(cases, fields, strict=True):
                case.check(field, corners)
        for case, field in zip(cases, fields, strict=True):
            whole = field.gather()
            assert whole is None or whole.tobytes() == case.whole.tobytes()

    results_of(ranks, 1, body, without=random_paths(10 * seed + ranks))


@pytest.mark.parametrize("seed", range(6))
def test_the_checker_proves_their_schedules(seed):
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    ranks, dims = dice.choice((1, 2, 4, 6)), dice.randint(1, 3)
    cases = [Case(dice, rng, dims, dice.choice(grids(ranks, dims))) for _ in range(2)]
    arrays = []
    for case in cases:
        below, above = zip(*case.halo, strict=True)
        layout = _core.Layout(case.shape, case.grid, below, above)
        layout.wraps = tuple(int(k in case.periodic) for k in range(dims))
        arrays.append((layout, case.whole.itemsize))
    schedules = [_core.halo_update(arrays, rank, ranks, dims) for rank in range(ranks)]
    assert _core.check(schedules) is None


def test_one_rank_sends_nothing_to_itself():
    def body(context):
        u = tw.field(np.arange(12.0).reshape(3, 4), halo=((3, 1), 2), periodic=("i", 1), context=context)
        tw.exchange(u)
        assert np.array_equal(u.local, np.pad(u.gather(), ((3, 1), (2, 2)), mode="wrap"))
        assert u.origin == (-3, -2) and u.periodic == (0, 1) and u.halo == ((3, 1), (2, 2))

    results_of(1, 1, body)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_halos_wider_than_a_periodic_axis(ranks):
    whole = np.random.default_rng(ranks).random((3, 2))

    def body(context):
        u = tw.field(whole, halo=((7, 4), (1, 5)), periodic=(0, 1), context=context)
        tw.exchange(u)
        padded = np.pad(whole, ((7, 4), (1, 5)), mode="wrap")
        if u.local.size:
            box = tuple(slice(at + low, at + low + n) for at, low, n in zip(u.origin, (7, 1), u.local.shape))
            assert np.array_equal(u.local, padded[box])
        # Nests that wrap, and that do not, find the field with these halos.
        expected = whole
        for _ in range(3):
            tw.run(shift, A=u, steps=2, periodic=("i", "j"), context=context)
            tw.exchange(u)
            for _ in range(2):
                expected = np.roll(expected, 1, 0) + np.roll(expected, -1, 1)
            assert np.array_equal(u[...], expected)
            tw.run(relax, A=u, context=context)
            expected = expected.copy()
            for i, j in np.ndindex(2, 1):
                expected[i + 1, j + 1] = expected[i, j + 1] + expected[i + 1, j]
            assert np.array_equal(u[...], expected)

    results_of(ranks, 1, body)


def test_a_periodic_axis_without_points_has_no_halo():
    with pytest.raises(tw.ConfigError, match="halo along periodic axis 1 of shape"):
        tw.field((2, 0), halo=1, periodic=(1,))


@tw.nest
def shift(A, t, i, j):
    A[t+1, i, j] = A[t, i-1, j] + A[t, i, j+1]


@tw.nest
def relax(A, i, j):
    A[i, j] = A[i-1, j] + A[i, j-1]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_run_may_move_the_field(ranks):
    start = np.random.default_rng(3).random((9, 8))
    plain = start.copy()
    for i, j in np.ndindex(8, 7):
        plain[i + 1, j + 1] = plain[i, j + 1] + plain[i + 1, j]

    def body(context):
        u = tw.field(start, halo=1, periodic=(0, 1), context=context)
        prepared = tw.exchange(u, start=False)
        tw.exchange(u)
        tw.run(relax, A=u, context=context, plan={"grid": (1, ranks), "storage": "skewed", "row": (1, -1)})
        with pytest.raises(tw.ConfigError, match="a run has moved this field"):
            _ = u.local
        with pytest.raises(tw.ConfigError, match="a run has moved this field"):
            _ = u.origin
        assert np.array_equal(u[...], plain)
        for again in (lambda: tw.exchange(u), prepared.run):
            again()
            padded = np.pad(plain, 1, mode="wrap")
            box = tuple(slice(at + 1, at + 1 + n) for at, n in zip(u.origin, u.local.shape, strict=True))
            assert np.array_equal(u.local, padded[box])
            over = {"i": (1, 1), "j": (1, 1)}
            tw.run(
                relax, A=u, over=over, context=context, plan={"grid": (1, ranks), "storage": "skewed", "row": (1, -1)}
            )

    results_of(ranks, 1, body)


def test_values_by_global_index_copies_and_files(tmp_path):
    def body(context):
        u = tw.field((6, 5), "i8", init=lambda i, j: 10 * i + j, halo=1, context=context)
        u[1, 2] = -7
        tw.exchange(u)
        v = u.copy()
        v.fill(lambda i, j: i - j)
        tw.exchange(u, v)
        u.save(tmp_path / "u.npy")
        whole = u[...]
        assert whole[1, 2] == -7 and tw.sum(v) == sum(i - j for i in range(6) for j in range(5))
        assert np.array_equal(u.local[u.inside], whole[u.owned])
        assert np.array_equal(tw.load(tmp_path / "u.npy", context=context)[...], whole)

    results_of(2, 1, body)


WRONG_FIELDS = {
    "negative width": (dict(halo=-1), "halo=-1"),
    "widths of other dimensions": (dict(halo=(1, 1, 1)), "for 2 dimension"),
    "three widths": (dict(halo=((1, 2, 3), 1)), "a pair of widths"),
    "a fraction": (dict(halo=1.5), "halo=1.5"),
    "unknown axis": (dict(halo=1, periodic=("k",)), "1 or 'j'"),
    "axis out of range": (dict(halo=1, periodic=2), "periodic=2"),
    "periodic without halo": (dict(periodic=(0,)), "without halo="),
    "too many ranks": (dict(halo=1, grid=(2, 2)), "process grid"),
    "a grid of one dimension": (dict(halo=1, grid=(2,)), "grid=(2,)"),
    "a window": (dict(halo=1, keep="window"), "keep='window'"),
    "history": (dict(halo=1, history=1), "history="),
    "far too wide": (dict(halo=2**31), "widths"),
    "more than memory": (dict(halo=2**30), "2**60"),
}


@pytest.mark.parametrize("name", WRONG_FIELDS)
def test_a_field_with_a_wrong_halo_is_an_error_on_every_rank(name):
    options, text = WRONG_FIELDS[name]

    def body(context):
        with pytest.raises(tw.ConfigError) as error:
            # One rank alone is wrong; the others hear of it.
            tw.field((5, 3), **(options if context.rank == 1 else dict(halo=1)), context=context)
        assert text in str(error.value)
        tw.exchange(tw.field((5, 3), halo=1, context=context))

    results_of(2, 1, body)


def test_different_halos_and_fields_are_an_error_on_every_rank():
    def body(context):
        with pytest.raises(tw.ConfigError, match="different arguments"):
            tw.field((5, 3), halo=1 + context.rank, context=context)
        with pytest.raises(tw.ConfigError, match="different arguments"):
            tw.field((5, 3), halo=1, periodic=(context.rank,), context=context)
        u, v = (tw.field((5, 3), halo=1, context=context) for _ in "uv")
        for prepared in range(2):  # before and after the exchanges are prepared
            with pytest.raises(tw.ConfigError, match="different arguments"):
                tw.exchange(u if context.rank else v)
            with pytest.raises(tw.ConfigError, match="different arguments"):
                tw.exchange(u, corners=bool(context.rank), wait=False).wait()
            with pytest.raises(tw.ConfigError, match="different functions"):
                tw.exchange(u) if context.rank else u.gather()
            if not prepared:
                for f in (u, v):
                    tw.exchange(f)
                    tw.exchange(f, corners=False)
        with pytest.raises(tw.ConfigError, match="was closed"):
            if context.rank:
                u.close()
            tw.exchange(u)
        tw.exchange(v)

    results_of(2, 1, body)


def test_wrong_calls():
    def body(context):
        u = tw.field((5, 4), halo=1, context=context)
        long = tw.field((5, 4), halo=1, grid=(1, 2), context=context)
        other = tw.Context._of(context._core) if context.size == 1 else context.solo()
        for arguments, options, text in (
            ((), dict(context=context), "no field was given"),
            ((u, u), {}, "given twice"),
            ((u, long), {}, "process grid"),
            ((u, tw.field((3, 3), context=context)), {}, "no halo"),
            ((u, tw.field((3, 3), halo=1, context=other)), {}, "another context"),
            ((u, np.zeros(3)), {}, "ndarray"),
            ((u,), dict(corners=1), "corners was given int"),
            ((u,), dict(corners=np.ones(3)), "corners was given ndarray"),
            ((u,), dict(start=np.ones(3)), "start was given ndarray"),
            ((u,), dict(wait=None), "wait was given NoneType"),
            ((u,), dict(context=3), "context"),
        ):
            with pytest.raises(tw.ConfigError, match=text):
                tw.exchange(*arguments, **options)
        flying = tw.exchange(u, wait=False)
        flying.wait()
        with pytest.raises(tw.ConfigError, match="start=False"):
            flying.run()
        tw.exchange(u)

    results_of(2, 1, body)


@pytest.mark.parametrize("ranks", [2, 3])
def test_prepared_exchanges_in_flight_have_messages_of_their_own(ranks):
    """Each has a tag to itself: whatever rank starts which one first, no values come into another field."""

    def body(context):
        fields = [tw.field(np.arange(20.0) + 100 * k, halo=2, periodic=(0,), context=context) for k in range(3)]
        handles = [tw.exchange(f, start=False) for f in fields]
        for turn in range(3):
            for k in range(3):
                handles[(k + turn + context.rank) % 3].start()
            for handle in handles:
                handle.wait()
            for k, f in enumerate(fields):
                first, end = f.owned[0].start - 2, f.owned[0].stop + 2
                assert np.array_equal(f.local, np.arange(first, end) % 20 + 100 * k), (turn, k, f.local)

    results_of(ranks, 1, body)


def test_several_exchanges_in_flight():
    def body(context):
        fields = [tw.field(np.arange(20.0) + k, halo=2, periodic=(0,), context=context) for k in range(4)]
        handles = [tw.exchange(f, wait=False) for f in fields]
        handles.append(tw.exchange(fields[0], wait=False))  # waits for the first
        tw.barrier(context=context)
        for handle in reversed(handles):
            handle.wait()
        for k, f in enumerate(fields):
            wanted = (np.arange(f.local.shape[0]) + f.origin[0]) % 20 + k
            assert np.array_equal(f.local, wanted)
        many = [tw.field(np.arange(20.0) + k, halo=1, context=context) for k in range(40)]
        for f in 2 * many:  # more than are kept
            tw.exchange(f)
        assert all(np.array_equal(f.local[f.inside], np.arange(20.0)[f.owned] + k) for k, f in enumerate(many))

    results_of(3, 1, body)


def test_a_closed_field_of_a_prepared_exchange_harms_nobody():
    def body(context):
        u = tw.field(np.arange(8.0), halo=1, context=context)
        handle = tw.exchange(u, start=False)
        local = u.local
        u.close()
        handle.run()
        first = 0 if context.rank == 0 else 3
        assert np.array_equal(local, np.arange(8.0)[first : first + 5])

    results_of(2, 1, body)
