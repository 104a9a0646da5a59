"""Rolling-window fields over ranks and threads, seen by way of a second array; and refusals, on every rank alike."""

import itertools
import os

import numpy as np
import pytest

import tilewave as tw


@tw.nest
def boxed3(H, B, W, i, j, k):
    H[i, j, k] = max(H[i-2, j-1, k], H[i, j-1, k-1] + H[i-1, j, k-2]) % 1000 + W[i, j, k]
    B[i, j, k] = H[i, j, k]


@tw.nest
def skewed3(H, B, W, i, j, k):
    H[i, j, k] = (H[i-1, j+1, k] - H[i, j-1, k+2] + 3 * H[i-1, j, k-1]) % 1000 + W[i, j, k]
    B[i, j, k] = H[i, j, k]


@tw.nest
def boxed4(H, B, W, i, j, k, l):
    H[i, j, k, l] = (H[i-1, j, k-1, l] + 2 * H[i, j-2, k, l-1] - H[i-1, j-1, k-1, l-1]) % 1000 + W[
        i, j, k, l
    ]
    B[i, j, k, l] = H[i, j, k, l]


@tw.nest
def skewed4(H, B, W, i, j, k, l):
    H[i, j, k, l] = (H[i-1, j, k+1, l] + 2 * H[i, j-1, k, l] - H[i-1, j-1, k, l-1]) % 1000 + W[i, j, k, l]
    B[i, j, k, l] = H[i, j, k, l]


@tw.nest
def skewed2(H, B, W, i, j):
    H[i, j] = (H[i, j-1] + 2 * H[i-2, j-2] - H[i-1, j] + H[i-3, j+1]) % 1000 + W[i, j]
    B[i, j] = H[i, j]


@tw.nest
def two(H, E, B, W, i, j):
    E[i, j] = max(E[i, j-3], H[i-1, j-2]) - 1
    H[i, j] = max(E[i, j], H[i-2, j-1] + W[i, j], H[i, j-2])
    B[i, j] = H[i, j] + 5 * E[i, j]


NESTS = {
    "boxed3": (boxed3, (9, 8, 10)), "skewed3": (skewed3, (7, 11, 9)), "boxed4": (boxed4, (6, 7, 5, 8)),
    "skewed4": (skewed4, (6, 5, 7, 6)), "skewed2": (skewed2, (17, 23)), "two": (two, (19, 21)),
}
BOUNDS = ("box", "narrowed", "band", "triangle")


def bounds_of(kind, nest, shape):
    """Bounds of a kind, cut to where all places are inside the arrays."""
    low, high = zip(*nest.iteration_box(dict.fromkeys(nest.arrays, shape)))
    pair = {
        "box": None,
        "narrowed": (low[1] + 1, high[1] - 1),
        "band": ((low[1], "i-2"), (high[1], "i+4")),
        "triangle": (low[1], (high[1], "i+1")),
    }[kind]
    return None if pair is None else {"j": pair}


def plain(nest, shape, arrays, over, reverse):
    """B after plain loops."""
    from tilewave.nest.bounds import loop_bounds
    from plain_loops import plain_loops

    arrays = {name: array.copy() for name, array in arrays.items()}
    box = nest.iteration_box(dict.fromkeys(nest.arrays, shape))
    plain_loops(nest, loop_bounds(nest.indices, box, over), arrays, reverse=reverse)
    return arrays


@pytest.mark.ranks([1, 2, 3, 4, 6])
@pytest.mark.parametrize("name", NESTS)
def test_window_by_way_of_a_kept_array(name, mpi_ranks):
    nest, shape = NESTS[name]
    rng = np.random.default_rng(len(name))
    kept = 0
    for case, kind in enumerate(BOUNDS):
        start = {a: rng.integers(-50, 50, shape) for a in nest.arrays}
        over = bounds_of(kind, nest, shape)
        reverse = (
            ((), (nest.indices[-1],), (nest.indices[0],))[case%3] if name.startswith("boxed") or name == "two" else ()
        )
        expected = plain(nest, shape, start, over, reverse)
        numbers = numbers_of(nest, shape, over, expected)
        choices = list(itertools.product((1, 2, 3), (None, 1, 3)))
        # Many ranks on few cores are slow: there each kind of bounds has some of the choices, and all kinds together
        # have all.
        for threads, height in choices if mpi_ranks < 3 else choices[case::4]:
            given = {
                a: tw.field(shape, "i8", init=start[a], keep="window" if a in ("H", "E") else "all")
                for a in nest.arrays
            }
            choices = {"threads": threads}
            if height:
                plan = tw.plan(nest, over=over, reverse=reverse, plan={"threads": threads}, **given)
                tile = list(plan.tile)
                tile[plan.mapping_dim] = min(height, tile[plan.mapping_dim])
                choices |= {
                    "tile": tuple(tile),
                    "grid": plan.grid,
                    "grouping": "vertical" if height == 3 else "hyperplane",
                }
            report = tw.run(
                nest,
                over=over,
                reverse=reverse,
                reduce={"best": tw.max("H"), "where": tw.argmax("H"), "all": tw.sum("B")},
                **given,
                plan=choices,
            )
            kept += not report.stored
            found = given["B"].gather()
            what = f"{name}, {kind}, reverse {reverse}, threads {threads}, height {height}, plan {report.plan}"
            if found is not None:
                np.testing.assert_array_equal(found, expected["B"], what)
            assert report.results == numbers, what
    # A rank of skewed loops would begin after planes that the rank before it computes: stored whole.
    assert bool(kept) == (mpi_ranks == 1 or not name.startswith("skewed"))


def numbers_of(nest, shape, over, expected):
    """What the reductions give after plain loops."""
    from tilewave.nest.bounds import loop_bounds

    points = list(loop_bounds(nest.indices, nest.iteration_box(dict.fromkeys(nest.arrays, shape)), over).points())
    best = max(expected["H"][p] for p in points)
    return {
        "best": best,
        "where": min(p for p in points if expected["H"][p] == best),
        "all": sum(expected["B"][p] for p in points),
    }


@tw.nest
def slanted3(H, B, W, k, i, j):
    H[k, i, j] = max(H[k-1, i, j], H[k, i-1, j], H[k, i, j-1] - 1, H[k-1, i-1, j-2]) % 1000 + W[k, i, j]
    B[k, i, j] = H[k, i, j]


@pytest.mark.ranks([1, 2, 3])
@pytest.mark.parametrize("name", ["two", "slanted3"])
def test_tiles_of_several_pieces(name, mpi_ranks):
    """Panels and bands of hundreds of points, several a tile, against fields that keep all."""
    nest = {"two": two, "slanted3": slanted3}[name]
    seed = int(os.environ.get("TILEWAVE_SEED", "20262"))
    rng = np.random.default_rng(seed)
    asked = {"best": tw.max("H"), "where": tw.argmax("H"), "least": tw.argmin("H")}
    for case in range(6):
        two_loops = rng.integers(300, 1200, 2) if name == "two" else rng.integers(200, 700, 2)
        shape = (4,) * (name != "two") + tuple(map(int, two_loops))
        start = {a: rng.integers(-50, 50, shape) for a in nest.arrays}
        over = (None, {"j": (3, ["i+200", shape[-1]])}, {"j": (["i-100", 3], shape[-1])})[case%3]
        found = []
        for keep in ("all", "window"):
            given = {
                a: tw.field(shape, "i8", init=start[a], keep=keep if a in ("H", "E") else "all") for a in nest.arrays
            }
            choices = {"threads": 1 + case % 3}
            if keep == "window" and case % 2:
                plan = tw.plan(nest, over=over, **given, plan=choices)
                tile = list(plan.tile)
                tile[plan.mapping_dim] = int(rng.integers(min(200, tile[plan.mapping_dim]), tile[plan.mapping_dim] + 1))
                choices["tile"] = tuple(tile)
            report = tw.run(nest, over=over, reduce=asked, **given, plan=choices)
            found.append((given["B"].gather(), report))
        what = f"seed {seed}, case {case}: {name}, shape {shape}, over {over}, plan {found[1][1].plan}"
        assert not found[1][1].stored, what
        assert found[0][1].results == found[1][1].results, what
        if found[0][0] is not None:
            np.testing.assert_array_equal(found[0][0], found[1][0], what)


# What is refused.


@tw.nest
def align(H, W, i, j):
    H[i, j] = max(H[i-1, j-1] + W[i, j], H[i, j-1] - 1)


@tw.nest
def reader(B, H, i, j):
    B[i, j] = H[i, j]


@tw.nest
def twice(H, W, i, j):
    H[i, j] = W[i, j]
    H[i-1, j] = W[i, j] + 1


@tw.nest
def totals(s, W, i, j):
    s[i] = s[i] + W[i, j]


@tw.nest
def look_up(H, T, W, i, j):
    H[i, j] = H[i-1, j] + T[W[i, j]]


@tw.nest
def alone(H, i, j):
    H[i, j] = H[i-1, j] + 1


def window(**more):
    return tw.field((8, 9), "i8", keep="window", **more)


def kept(shape=(8, 9)):
    return tw.field(shape, "i8", init=1)


REFUSED = {
    "keep": (lambda: tw.field((8, 9), keep="x"), ("keep='x'", "'all'", "'window'")),
    "gather": (lambda: window().gather(), ("gather", "(8, 9)", "reduce=", "keep='all'")),
    "local": (lambda: window().local, ("local", "(8, 9)", "reduce=", "keep='all'")),
    "owned": (lambda: window().owned, ("owned", "(8, 9)", "reduce=", "keep='all'")),
    "argmax of a window": (lambda: tw.argmax(window()), ("argmax", "(8, 9)", "keep='all'")),
    "only read": (lambda: tw.run(reader, B=kept(), H=window()), ("'H'", "only reads", "keep='all'")),
    "scratch only read": (lambda: tw.run(reader, B=kept(), H=tw.scratch()), ("'H'", "scratch", "writes")),
    "scratch as a table": (lambda: tw.run(look_up, H=kept(), T=tw.scratch("i8"), W=kept()), ("'T'", "scratch")),
    "scratch alone": (lambda: tw.run(alone, H=tw.scratch()), ("'H'", "index 'i'", "keep='window'")),
    "scratch of an array": (lambda: tw.scratch(init=[1, 2]), ("given [1, 2]", "a number", "function")),
    "dtype of scratch": (lambda: tw.scratch("f2"), ("f2", "float64")),
    "reduce of an unknown array": (
        lambda: tw.run(align, H=window(), W=kept(), reduce={"a": tw.max("X")}),
        ("max('X')", "align", "H"),
    ),
    "reduce at two places": (
        lambda: tw.run(twice, H=kept(), W=kept(), reduce={"a": tw.min("H")}),
        ("min('H')", "2 places", "one value a point"),
    ),
    "reduce without an index": (
        lambda: tw.run(totals, s=kept((8,)), W=kept(), reduce={"a": tw.argmin("s")}),
        ("argmin('s')", "index 'j'", "one value a point"),
    ),
    "reduce no dict": (lambda: tw.run(align, H=window(), W=kept(), reduce=tw.max("H")), ("reduce", "a dict", "argmax")),
    "reduce of a string": (lambda: tw.run(align, H=window(), W=kept(), reduce={"a": "max"}), ("'max'", "a dict")),
    "reduce of a field": (lambda: tw.run(align, H=window(), W=kept(), reduce={1: tw.max("H")}), ("reduce", "a dict")),
    "argmax of nothing": (lambda: tw.argmax(kept((0, 4))), ("argmax", "(0, 4)", "no elements")),
    "max of an array": (lambda: tw.max(np.ones(3)), ("max", "ndarray", "a field")),
}


@pytest.mark.ranks([1, 3])
@pytest.mark.parametrize("what", REFUSED)
def test_refused_on_every_rank(what, mpi_ranks):
    call, parts = REFUSED[what]
    with pytest.raises(tw.ConfigError) as refused:
        call()
    missing = [part for part in parts if part not in str(refused.value)]
    assert not missing, f"{missing} not in: {refused.value}"
    assert tw.run(align, H=window(), W=kept(), reduce={"n": tw.sum("H")}).results["n"] == plain_sum()  # nobody hangs


def plain_sum():
    h = np.zeros((8, 9), int)
    for i, j in itertools.product(range(1, 8), range(1, 9)):
        h[i, j] = max(h[i-1, j-1] + 1, h[i, j-1] - 1)
    return h[1:, 1:].sum()


@pytest.mark.ranks([1, 3])
def test_numbers_of_no_points(mpi_ranks):
    numbers = {kind: getattr(tw, kind)("H") for kind in ("max", "min", "sum", "argmax", "argmin")}
    report = tw.run(align, H=window(), W=kept(), over={"i": (3, 3)}, reduce=numbers)
    assert report.results == {"max": None, "min": None, "sum": 0, "argmax": None, "argmin": None}
    assert tw.sum(kept((0, 4))) == 0


@pytest.mark.ranks([3])
def test_one_rank_differs(mpi_ranks):
    first = tw.Context().rank == 1

    def raises(i, j):
        if first:
            raise ValueError("on one rank")
        return i + j

    with pytest.raises(tw.ConfigError, match="differ|other"):
        tw.run(align, H=window(), W=kept(), reduce={"n": tw.max("H") if first else tw.min("H")})
    with pytest.raises(tw.ConfigError):
        tw.run(align, H=window(), W=kept(), reduce={"n": tw.max("X" if first else "H")})
    with pytest.raises(tw.ConfigError):
        tw.run(align, H=window(), W=kept(), reduce=None if first else {"n": tw.max("H")})
    with pytest.raises(tw.ConfigError):
        tw.field((8, 9), keep="window" if first else "all")
    with pytest.raises(tw.ConfigError):
        tw.field((8, 9), keep="x" if first else "all")
    with pytest.raises(tw.ConfigError):
        tw.field((8, 9), keep="window", init=np.ones((8, 9)) if first else None)
    with pytest.raises(tw.ConfigError, match="on one rank"):
        tw.run(align, H=window(init=raises), W=kept())
    with pytest.raises(tw.ConfigError, match="on one rank"):
        tw.run(align, H=tw.scratch("i8", raises), W=kept())
    with pytest.raises(tw.ConfigError, match="on one rank"):  # stored whole
        tw.run(align, H=window(init=raises), W=kept(), plan={"row": (0, 1)})
    own, scratch = kept(), tw.scratch("i8")
    with pytest.raises(tw.ConfigError):
        tw.run(align, H=scratch if first else own, W=kept())
    fixed = tw.plan(align, H=window(), W=kept())  # the same plan for both
    with pytest.raises(tw.ConfigError):
        tw.run(align, H=scratch if first else own, W=kept(), plan=fixed)
    with pytest.raises(tw.ConfigError):
        tw.run(align, H=tw.scratch("i4" if first else "i8"), W=kept())
    assert tw.run(align, H=window(), W=kept(), reduce={"n": tw.sum("H")}).results["n"] == plain_sum()
