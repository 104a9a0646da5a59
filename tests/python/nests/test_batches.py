"""Nests of many equal problems, with their tables in rolling windows or stored, against the plain loops."""

import os

import numpy as np
import pytest

import tilewave as tw
from tests.python.support.local_ranks import results_of
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops

SEED = int(os.environ.get("TILEWAVE_SEED", "20711"))
pytestmark = pytest.mark.filterwarnings("ignore:.*more than the:RuntimeWarning")

RESULTS = (
    "S[{o}] = {t}",
    "S[{o}] = max(S[{o}], {t})",
    "S[{o}] = max({t}, S[{o}])",
    "S[{o}] = np.minimum(S[{o}], {t})",
    "S[{o}] += {t}",
    "S[{o}] = S[{o}] - {t} if {t} > 1 else S[{o}] * 2",
)


def _subscript(indices, offsets):
    return ", ".join(index if not offset else f"{index}{offset:+d}" for index, offset in zip(indices, offsets))


def _body(random, integers):
    """A body with its arrays' axes: by name the loop indices; of the table T none."""
    outer = ["b"] if random.random() < 0.7 else ["p", "q"]
    inner = ["i", "j", "k"][: random.integers(1, 4 if len(outer) == 1 else 3)]
    loops = [*outer, *inner]
    last = len(loops) - 1
    backs = {(*[0] * last, -1)}
    for _ in range(random.integers(0, 4)):
        back = [0] * len(loops)
        for n in range(len(outer), len(loops)):
            back[n] = int(random.integers(-2, 1))
        backs.add(tuple(back))
    if len(inner) > 1 and random.random() < 0.4:
        backs.add((*[0] * len(outer), -1, *[1] * (len(inner) - 1)))
    backs.discard((0,) * len(loops))
    reads = [f"D[{_subscript(loops, back)}]" for back in sorted(backs)]
    axes = {"D": loops, "S": outer}
    sources = {
        "X": [*outer, inner[0]],
        "Y": [outer[-1], inner[-1]],
        "Z": [inner[-1]],
        "W": loops,
        "c": [outer[0]],
    }
    used = [name for name in sources if random.random() < 0.5] or ["X"]
    axes |= {name: sources[name] for name in used}
    values = [f"{name}[{', '.join(axes[name])}]" for name in used]
    if "Y" in used and random.random() < 0.5:
        values.append(f"Y[{outer[-1]}, {inner[-1]}-1]")
    if integers and random.random() < 0.4:
        axes["T"] = []
        values.append(f"T[{values[0]}]")
    if random.random() < 0.3:
        values.append(f"(({values[0]} > 1) * 2 - 1)")
    pick = random.choice(["min", "max", "np.minimum", "sum"])
    best = reads[0]
    for read in reads[1:]:
        best = f"{best} + {read}" if pick == "sum" else f"{pick}({best}, {read})"
    lines = [f"    t = {best} - {' - '.join(values)}"]
    if random.random() < 0.4:
        lines += [f"    if {values[0]} > 1:", f"        t = t + {values[-1]}"]
    if random.random() < 0.3:
        lines += [f"    if {inner[-1]} > {loops[-2]}:", "        t = -t"]
    lines += [f"    D[{', '.join(loops)}] = t"]
    if random.random() < 0.3:
        axes["R"] = [*outer, inner[0]]
        element = f"R[{', '.join(axes['R'])}]"
        lines += [f"    {element} = max({element}, t)"]
    lines += ["    " + random.choice(RESULTS).format(o=", ".join(outer), t="t")]
    text = f"def body({', '.join(axes)}, {', '.join(loops)}):\n" + "\n".join(lines)
    return text, axes, outer, inner


def _values(random, shape, dtype):
    values = random.integers(-3, 4, shape).astype(dtype)
    if np.dtype(dtype).kind == "f" and random.random() < 0.5:
        flat = values.reshape(-1)
        flat[random.random(flat.size) < 0.2] = -0.0
        if random.random() < 0.5:
            flat[random.random(flat.size) < 0.02] = np.nan
    return values


def _over(random, box, outer, inner):
    if random.random() < 0.5:
        return None
    lows = dict(zip([*outer, *inner], box, strict=True))
    if len(inner) > 1 and random.random() < 0.7:
        (low, _), (first, end) = lows[inner[0]], lows[inner[1]]
        if random.random() < 0.5:
            m, n = random.integers(1, 6, 2)
            return {inner[1]: ([first, f"(i-{low})*{m}//{n}+{first}-2"], [end, f"-((-i)*{m}//{n})+{first}+1"])}
        return {inner[1]: ([first, f"{inner[0]}-{low}+{first}-2"], [end, lambda i: i - low + first + 3])}
    name = inner[0]
    return {name: (lows[name][0], max(lows[name][0], lows[name][1] - 1))}


def _first(*index):
    return np.where(sum(index[-2:]) % 3 == 0, 2, -1)


def _bits(array):
    """But for the sign of a NaN, which nobody promises."""
    return np.where(np.isnan(array), np.nan, array).tobytes()


@pytest.mark.parametrize("number", range(80))
def test_random_batches_are_those_of_the_plain_loops(number):
    seed = SEED + number
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    dtype = random.choice(["f8", "f4", "i2", "i4"])
    text, axes, outer, inner = _body(random, dtype[0] == "i")
    nest = tw.nest_from(text)
    ranks = (1, 1, 2, 3, 1, 4, 1, 6)[number % 8]
    extents = {"b": random.integers(8, 40), "p": 3, "q": random.integers(8, 30)} | {
        name: random.integers(4, 9) for name in inner
    }
    arrays = {name: _values(random, [extents[axis] for axis in axes[name]], dtype) for name in nest.arrays}
    if "T" in arrays:
        arrays["T"] = random.integers(-2, 3, 7).astype(dtype)
    window = ranks > 1 or random.random() < 0.7
    init = random.choice([0.0, 3.0, None]) if random.random() < 0.5 else None
    before = np.empty_like(arrays["D"])
    before[...] = (
        np.broadcast_to(_first(*np.ogrid[tuple(map(slice, before.shape))]), before.shape) if init is None else init
    )
    if len(inner) == 1:
        before[...] = 1
    if window:
        arrays["D"] = before
    expected = {name: array.copy() for name, array in arrays.items()}
    box = nest.iteration_box({name: array.shape for name, array in arrays.items()})
    over = _over(random, box, outer, inner)
    reverse = tuple(inner[:1]) if random.random() < 0.15 else tuple(outer[:1]) if random.random() < 0.1 else ()
    try:
        with np.errstate(all="ignore"):
            plain_loops(nest, loop_bounds(nest.indices, box, over), expected, reverse=reverse)
    except OverflowError:
        return
    threads, fields = int(random.integers(1, 4)), random.random() < 0.4

    def body(context):
        given = {name: array.copy() for name, array in arrays.items()}
        if window:
            what = 1 if len(inner) == 1 else _first if init is None else init
            shape = given["D"].shape
            given["D"] = tw.field(shape, dtype, init=what, keep="window", context=context)
        if ranks > 1 or fields:
            names = set(nest.written) - {"D"}
            names |= set(nest.axes) - {"D"} if fields else set()
            for name in sorted(names):
                given[name] = tw.field(given[name].shape, dtype, given[name], context=context)
        tw.run(nest, **given, over=over, reverse=reverse, context=context, plan={"threads": threads})
        return {
            name: given[name] if isinstance(given[name], np.ndarray) else given[name].gather()
            for name in nest.written
            if name != "D" or not window
        }

    for without in ("", "batches") if number % 4 == 0 else ("",):
        found = results_of(ranks, threads, body, without=without)[0]
        for name, value in found.items():
            same = _bits(value) == _bits(expected[name])
            assert same, (text, name, without, value, expected[name])
    print("a batch:", any(value for (kind, *_), value in nest.made.items() if kind == "batch"), window, ranks, text)


def test_a_point_that_raises_is_named():
    nest = tw.nest_from(
        """def scores(D, S, T, x, b, i, j):
            D[b, i, j] = max(D[b, i-1, j], D[b, i, j-1]) + T[x[b, i, j]]
            S[b] = D[b, i, j]"""
    )
    for ranks, threads in ((1, 1), (1, 2), (2, 1)):
        x = np.ones((40, 9, 9), "i1")
        x[:, 3, 7] = np.where(np.arange(40) > 36, 5, 1)
        x[38, 3, 5] = -6

        def body(context, x=x):
            S = tw.field((40,), "i2", context=context)
            D = tw.field((40, 9, 9), "i2", keep="window", context=context)
            try:
                tw.run(nest, D=D, S=S, T=np.arange(5, dtype="i2"), x=x, context=context)
            except tw.KernelError as error:
                return str(error)

        (text, *others) = results_of(ranks, threads, body)
        assert "IndexError" in text and "at b=37, i=3, j=7 on rank" in text and {text} == {text, *others}


def test_the_report_is_of_all_loops_and_a_plan_can_be_given_again():
    nest = tw.nest_from(
        """def longest(D, S, x, b, i, j):
            D[b, i, j] = max(D[b, i-1, j], D[b, i, j-1], D[b, i-1, j-1] + x[b, i] * x[b, j])
            S[b] = D[b, i, j]"""
    )
    x = np.random.default_rng(SEED).integers(0, 2, (50, 12)).astype("i4")

    def body(context):
        S, D = np.zeros(50, "i4"), tw.field((50, 12, 12), "i4", keep="window", context=context)
        report = tw.run(nest, D=D, S=S, x=x, context=context)
        again = np.zeros(50, "i4")
        tw.run(nest, D=D, S=again, x=x, context=context, plan=report.plan)
        assert report.points == 50 * 11 * 11 and not report.stored and not report.sequential
        assert report.loops == {"b": (0, 50), "i": (1, 12), "j": (1, 12)}
        return S, again

    S, again = results_of(1, 2, body)[0]
    assert np.array_equal(S, again) and S.max() > 3


@tw.nest
def weighted(S, X, W, b, k, i, j):
    S[b, i] = S[b, i] * 0.5 + W[b] * X[b, k, i, j]


@tw.nest
def unweighted(S, X, b, k, i, j):
    S[b, i] = S[b, i] * 0.5 + X[b, k, i, j]


@pytest.mark.parametrize("nest", [weighted, unweighted])
@pytest.mark.parametrize("ranks", [1, 3])
def test_what_is_written_may_have_inner_indices_everywhere(nest, ranks):
    random = np.random.default_rng(ranks)
    shapes = {"S": (40, 6), "X": (40, 5, 6, 7), "W": (40,)}
    arrays = {name: random.standard_normal(shapes[name]) for name in nest.arrays}
    expected = {name: array.copy() for name, array in arrays.items()}
    plain_loops(nest, loop_bounds(nest.indices, ((0, 40), (0, 5), (0, 6), (0, 7)), None), expected)

    def body(context):
        S = tw.field(shapes["S"], "f8", arrays["S"], context=context)
        tw.run(nest, **{**arrays, "S": S}, context=context)
        return S.gather()

    assert results_of(ranks, 2, body)[0].tobytes() == expected["S"].tobytes()


@tw.nest
def lasting(A, S, i, j, k):
    A[i, j, k] = A[i, j-2, k]
    S[i] = A[i, j, k] + 1


@tw.nest
def moving(A, i, j, k):
    A[i, j, k] = A[i, j, k-1]


def test_a_chain_whose_batch_runs_in_another_way_later():
    """Another nest moves its fields to where they are no batch."""
    start = np.arange(36, dtype="i4").reshape(12, 3, 1)
    A, S = tw.field(start), tw.field((12,), "i4")
    chain = tw.chain([tw.bind(lasting, A=A, S=S), tw.bind(moving, A=A)])
    for times in (3, 1, 2):
        S[...] = -1
        chain.run(times=times)
        assert np.array_equal(S.gather(), start[:, 0, 0] + 1)


@tw.nest
def of_bools(A, D, S, i, j):
    A[i, j] = D[j, i]
    S[i] = A[i, j-1] + A[i, j-1]


def test_windows_of_bools():
    A, S = tw.field((40, 4), "?", init=False, keep="window"), tw.field((40,), "i4")
    tw.run(of_bools, A=A, D=np.ones((4, 40), "?"), S=S)
    assert np.array_equal(S.gather(), np.ones(40))
