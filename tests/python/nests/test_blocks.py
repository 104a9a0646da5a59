"""Fields with blocks of their own: every element has one owner, and nests equal plain loops, bit for bit.

A failure prints its body; TILEWAVE_SEED and N change the random ones.
"""

import os
import random

import numpy as np
import pytest
from tests.python.nests.test_scaled_subscripts import draw, loops_of, used
from tests.python.support.local_ranks import results_of

import tilewave as tw
from tilewave import _core
from tilewave.errors import ConfigError

SEED = int(os.environ.get("TILEWAVE_SEED", "4711"))

def begins(points, scale, per, shift, every, parts, extent):
    """Where blocks begin, by the definition: even blocks of points, the first of every so many with all of them."""
    found, last = [0], -(-scale * points // per)
    for c in range(1, parts + 1):
        c = -(-c // every) * every
        begin = min(c, parts) * (points // parts) + min(c, points % parts)
        at = -(-scale * begin // per)
        found.append(extent if c >= parts or at >= last else min(shift + at, extent))
    return found


def test_blocks_cover_an_array_once():
    rng = random.Random(SEED)
    for _ in range(300):
        points, every = rng.choice((0, 1, 3, 8, 13)), rng.choice((1, 1, 2, 3, 99))
        cut = points, rng.randint(1, 4), rng.randint(1, 4), rng.randint(0, 3), every
        parts, extent = rng.randint(1, 7), rng.randint(1, 40)
        layout = _core.Layout((extent,), (parts,)).cut_as([cut])
        expected = begins(*cut, parts, extent)
        assert [layout.start(0, c) for c in range(parts + 1)] == expected, (cut, parts, extent)
        owners = [c for c in range(parts) for _ in range(expected[c], expected[c + 1])]
        assert [layout.block_at(0, at) for at in range(extent)] == owners, (cut, parts, extent)


def random_blocks(rng, shape):
    """Blocks that suit some array, this one or another."""
    along = [
        (
            max(1, n // rng.choice((1, 1, 2, 4))),
            rng.choice((1, 1, 2, 3)),
            rng.choice((1, 1, 2, 4)),
            rng.choice((0, 1, 1, 2)),
        )
        for n in shape
    ]
    points, scale, per, shift = (tuple(numbers) for numbers in zip(*along, strict=True))
    return tw.Blocks(points, scale, per, shift, every=rng.choice((1, 1, 1, 2, 100)))


def compare(rng, ranks, threads):
    text, shapes = used(*draw(rng))
    numbers = np.random.default_rng(rng.randrange(2**32))
    arrays = {name: numbers.random(shape) for name, shape in shapes.items()}
    blocks = {name: random_blocks(rng, array.shape) if rng.random() < 0.7 else None for name, array in arrays.items()}
    expected = loops_of(text, arrays)
    nest = tw.nest_from(text)

    def body(context):
        given = {
            name: tw.field(array.shape, "f8", array, blocks=blocks[name], context=context)
            for name, array in arrays.items()
        }
        for _ in range(2):  # again, where the fields lie now
            tw.run(nest, context=context, plan={"threads": threads}, **given)
        schedule = tw.schedule(nest, context=context, plan={"threads": threads}, **given)
        return {name: value.gather() for name, value in given.items()}, tw.check(schedule)

    expected = loops_of(text, expected)
    found = results_of(ranks, threads, body)
    assert found[0][1] is None, (text, shapes, blocks, found[0][1])
    for name in arrays:
        assert np.array_equal(found[0][0][name].view("u8"), expected[name].view("u8")), (text, shapes, blocks, name)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_bodies(ranks):
    for n in range(int(os.environ.get("N", "8"))):
        rng = random.Random(f"{SEED} {ranks} {n}")
        compare(rng, ranks, rng.choice((1, 1, 2)))


@tw.nest
def sweep(u, f, i, j):
    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])


@tw.nest
def restrict(c, r, i, j):
    c[i, j] = 0.25 * (r[2 * i - 1, 2 * j - 1] + r[2 * i - 1, 2 * j] + r[2 * i, 2 * j - 1] + r[2 * i, 2 * j])


def messages(nest, context, **given):
    """Messages that all ranks send."""
    schedule = tw.schedule(nest, context=context, **given)
    assert tw.check(schedule) is None
    return sum(core.messages[k].send for core in schedule._cores.values() for k in range(len(core.messages)))


@pytest.mark.parametrize("ranks, grid", [(2, (2, 1)), (3, (1, 3)), (4, (2, 2)), (6, (3, 2))])
def test_a_layer_around_the_cells_moves_nothing(ranks, grid):
    n = 14

    def body(context):
        coarse = tw.field((n + 2, n + 2), blocks=tw.Blocks(n, shift=1), context=context)
        init = lambda i, j: i + j
        fine = tw.field((2 * n + 2,) * 2, blocks=tw.Blocks(n, scale=2, shift=1), init=init, context=context)
        f = tw.field((2 * n + 2,) * 2, blocks=tw.Blocks(n, scale=2, shift=1), context=context)
        tw.run(sweep, u=fine, f=f, plan={"grid": grid}, context=context)
        before = fine.owned
        moved = tw.run(restrict, c=coarse, r=fine, plan={"grid": grid}, context=context)
        assert fine.owned == before
        tw.run(sweep, u=fine, f=f, plan={"grid": grid}, context=context)
        assert fine.owned == before and moved is not None
        return messages(restrict, context, c=coarse, r=fine, plan={"grid": grid})

    found = results_of(ranks, 1, body)
    assert found[0] == 0


@tw.nest
def far(c, r, i, j):
    c[i, j] = r[i - 1, j] + r[i + 3, j]


@tw.nest
def double(r, f, i, j):
    r[i, j] = 2 * f[i, j]


def test_a_chain_has_its_own_halos_whatever_fields_have():
    """A nest with factors keeps the halos that fields have, by itself; in a chain the other nests have not these."""

    def body(context):
        n = 10
        coarse = tw.field((n + 2, n + 2), blocks=tw.Blocks(n, shift=1), context=context)
        u, f = (tw.field((2 * n + 2,) * 2, blocks=tw.Blocks(n, scale=2, shift=1), context=context) for _ in range(2))
        on = {"plan": {"grid": (2, 1)}, "context": context}
        tw.run(far, c=f, r=u, **on)  # u has a wide halo now
        chain = tw.chain([tw.bind(double, r=u, f=f, **on), tw.bind(restrict, c=coarse, r=u, **on)])
        return chain.separate

    found = results_of(2, 1, body)
    assert found == ["", ""]


def test_what_is_no_blocks():
    for given, said in [
        (tw.Blocks(-1), "points"), (tw.Blocks(4, scale=0), "scale"), (tw.Blocks(4, per=(1, 2, 3)), "per"),
        (tw.Blocks(4, shift=0.5), "shift"), (tw.Blocks(4, every=True), "every"), (4, "Blocks"),
    ]:
        with pytest.raises(ConfigError, match=said) as error:
            tw.field((8, 8), blocks=given)
        assert "allowed" in str(error.value)
    with pytest.raises(ConfigError, match="halo="):
        tw.field((8, 8), blocks=tw.Blocks(8), halo=1)
    with pytest.raises(ConfigError, match="window"):
        tw.field((8, 8), blocks=tw.Blocks(8), keep="window")


def test_a_copy_has_the_same_blocks():
    made = tw.field((8,), blocks=tw.Blocks(6, shift=1))
    assert made.copy()._cuts == made._cuts
