"""Fields of fields, their earlier time steps as files, and arrays that rank 0 alone has."""

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw

SHAPE = (11, 7)


@tw.nest
def wave(u, t, i, j):
    u[t+1, i, j] = 2*u[t, i, j] - u[t-1, i, j] + 0.2*(u[t, i-1, j] + u[t, i+1, j] - 2*u[t, i, j])


def start(i, j):
    return np.sin(i + 0.3 * j)


@pytest.mark.parametrize("ranks, other", [(1, 1), (2, 3), (3, 1)])
def test_a_run_goes_on_from_its_files(ranks, other, tmp_path):
    names = [str(tmp_path / f"u{back}.npy") for back in range(2)]

    def first(context):
        u = tw.field(SHAPE, init=start, history=1, context=context)
        tw.run(wave, u=u, steps=3, context=context)
        for back, name in enumerate(names):
            u.buffer(-back).save(name)
        tw.run(wave, u=u, steps=4, context=context)
        return u.gather()

    def second(context):
        now, before = (tw.load(name, context=context) for name in names)
        u = tw.field(SHAPE, init=now, history=[before], context=context)
        tw.run(wave, u=u, steps=4, context=context)
        return u.gather()

    whole = results_of(ranks, 1, first)
    again = results_of(other, 1, second)
    assert whole[0].tobytes() == again[0].tobytes()


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_values_of_a_field_that_lies_otherwise(ranks):
    def body(context):
        u = tw.field(SHAPE, init=start, history=[lambda i, j: i - j, 5.0], context=context)
        grid = (1, ranks)
        tw.run(wave, u=u, steps=2, context=context, plan={"grid": (1, *grid)})  # its blocks are of columns now
        expected = [u.buffer(-back).gather() for back in range(3)]
        made = tw.field(SHAPE, "f4", u.buffer(-1), history=[u, u.buffer(-2)], context=context)
        copied, owned = tw.field(u, context=context), u.owned
        found = [made.buffer(-back).gather() for back in range(3)]
        unchanged = [u.buffer(-back).gather() for back in range(3)]
        u.fill(0.0)  # the others keep their values
        return expected, found, unchanged, copied.gather(), owned == u.owned

    found = results_of(ranks, 1, body)
    expected, made, unchanged, copied, stays = found[0]
    for wanted, ours in zip((expected[1], expected[0], expected[2]), made, strict=True):
        assert np.array_equal(wanted.astype("f4"), ours)
    assert all(map(np.array_equal, expected, unchanged)) and np.array_equal(copied, expected[0]) and stays


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_an_array_on_rank_0_alone(ranks):
    whole = np.arange(24, dtype="i4").reshape(4, 6)

    def body(context):
        mine = whole if context.rank == 0 else None
        plain = tw.field(mine, context=context)
        other = tw.field(mine, "f8", context=context)
        everywhere = tw.field(whole, context=context)
        assert plain.dtype == "i4" and other.dtype == "f8"
        return [field.gather() for field in (plain, other, everywhere)]

    found = results_of(ranks, 1, body)
    assert all(np.array_equal(whole, given) for given in found[0])


@pytest.mark.parametrize(
    "name, words",
    [
        ("None everywhere", "field: shape None|allowed"),
        ("an array on rank 1 alone", "differ|given"),
        ("other shapes", "shape"),
        ("a shape on rank 1", "shape|other"),
        ("a field of another shape", "they must be equal"),
        ("a field on one rank", "differ"),
        ("other fields", "differ|other"),
        ("a closed field", "was closed"),
        ("a rolling window", "keeps a rolling window only"),
        ("a field for a window", "keep='window'"),
        ("masked", "masked"),
    ],
)
def test_what_is_refused_is_refused_on_every_rank(name, words):
    whole = np.zeros((4, 6))

    def body(context):
        one = context.rank == 0
        u, v = (tw.field((4, 6), init=init, context=context) for init in (1.0, 2.0))
        w = tw.field((4, 6), keep="window", context=context)
        closed = tw.field((4, 6), context=context)
        closed.close()
        calls = {
            "None everywhere": lambda: tw.field(None, context=context),
            "an array on rank 1 alone": lambda: tw.field(None if one else whole, context=context),
            "other shapes": lambda: tw.field(whole if one else whole[1:], context=context),
            "a shape on rank 1": lambda: tw.field(whole if one else (4, 6), context=context),
            "a field of another shape": lambda: tw.field((4, 5), init=u, context=context),
            "a field on one rank": lambda: tw.field((4, 6), init=u if one else 1.0, context=context),
            "other fields": lambda: tw.field((4, 6), init=u if one else v, context=context),
            "a closed field": lambda: tw.field((4, 6), history=[closed], context=context),
            "a rolling window": lambda: tw.field((4, 6), init=w, context=context),
            "a field for a window": lambda: tw.field((4, 6), init=u, keep="window", context=context),
            "masked": lambda: tw.field(np.ma.masked_array(whole, mask=True) if one else None, context=context),
        }
        with pytest.raises(tw.ConfigError, match=words):
            calls[name]()
        return tw.sum(u)  # the ranks are together

    found = results_of(2, 1, body)
    assert found == [24.0, 24.0]
