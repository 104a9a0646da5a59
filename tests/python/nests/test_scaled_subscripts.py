"""Subscripts c*i + d, read and written: equal plain loops, bit for bit, over fields and NumPy arrays."""

import os
import random

import numpy as np
import pytest
from tests.python.support.local_ranks import results_of

import tilewave as tw

SEED = int(os.environ.get("TILEWAVE_SEED", "20263"))


def loops_of(text, arrays):
    """What the plain loops make of copies of the arrays."""
    nest = tw.nest_from(text)
    copies = {name: array.copy() for name, array in arrays.items()}
    nest.reference(nest.iteration_box({name: array.shape for name, array in copies.items()}), copies)
    return copies


def subscript(rng, index, scale, reach=2):
    offset = rng.randint(-reach, reach + scale)
    return (f"{scale}*{index}" if scale > 1 else index) + (f"{offset:+d}" if offset else "")


def draw(rng):
    """A body, sometimes with dependences, and its arrays: text, shapes."""
    dims = rng.choice((1, 2, 2, 3))
    indices = "ijk"[:dims]
    base = [rng.choice((1, 2, 3, 5, 8, 13)) for _ in indices]
    scales = {name: [rng.choice((1, 2, 2, 3)) for _ in indices] for name in "FG"}
    shapes = {
        name: tuple(max(1, c * n + rng.choice((-1, 0, 0, 1, 2))) for c, n in zip(scales[name], base, strict=True))
        for name in "FG"
    }
    shapes["C"] = tuple(base)

    def place(name, reach=2):
        parts = [subscript(rng, i, c, reach) for i, c in zip(indices, scales.get(name, [1] * dims), strict=True)]
        return f"{name}[{', '.join(parts)}]"

    written = rng.choice(("C", "F", "FG", "CF"))
    lines = []
    for name in written:
        others = [other for other in "CFG" if other not in written or rng.random() < 0.2]
        for _ in range(rng.choice((1, 1, 2, 3)) if name != "C" else 1):
            target = place(name, 1) if name != "C" else f"C[{', '.join(indices)}]"
            value = " + ".join(f"{rng.choice((0.25, 0.5, 1.5))} * {place(o)}" for o in others) or "0.5 * i"
            lines.append(f"{target} {rng.choice(('=', '+=', '='))} {value}")
    return f"def scaled(C, F, G, {', '.join(indices)}):\n    " + "\n    ".join(lines) + "\n", shapes


def used(text, shapes):
    """Only what the body names: a parameter that is not used is refused."""
    names = [name for name in "CFG" if f"{name}[" in text]
    head, rest = text.split("(", 1)
    indices = [part.strip() for part in rest.split(")", 1)[0].split(",")][3:]
    return f"{head}({', '.join([*names, *indices])}){rest.split(')', 1)[1]}", {name: shapes[name] for name in names}


def compare(rng, ranks, threads):
    text, shapes = used(*draw(rng))
    dtype = rng.choice(("f4", "f8"))
    numbers = np.random.default_rng(rng.randrange(2**32))
    arrays = {name: numbers.random(shape).astype(dtype) for name, shape in shapes.items()}
    expected = loops_of(text, arrays)
    nest = tw.nest_from(text)
    as_numpy = {name: rng.random() < (0.5 if ranks == 1 else 0.2) for name in arrays}
    if ranks > 1:
        as_numpy.update(dict.fromkeys(nest.written, False))

    def body(context):
        given = {
            name: array.copy() if as_numpy[name] else tw.field(array.shape, dtype, array, context=context)
            for name, array in arrays.items()
        }
        for _ in range(2):  # again, where the fields lie now
            tw.run(nest, context=context, plan={"threads": threads}, **given)
        return {name: value if as_numpy[name] else value.gather() for name, value in given.items()}

    expected = loops_of(text, expected)
    found = results_of(ranks, threads, body)
    for name in arrays:
        whole = found[0][name]
        assert np.array_equal(whole.view(f"u{whole.itemsize}"), expected[name].view(f"u{whole.itemsize}")), (
            text,
            shapes,
            name,
            ranks,
        )


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
def test_random_bodies(ranks):
    for n in range(int(os.environ.get("N", "6"))):
        rng = random.Random(f"{SEED} {ranks} {n}")
        compare(rng, ranks, rng.choice((1, 1, 2)))


@tw.nest
def restrict(C, F, i, j):
    C[i, j] = 0.25 * (F[2 * i, 2 * j] + F[2 * i + 1, 2 * j] + F[2 * i, 2 * j + 1] + F[2 * i + 1, 2 * j + 1])


@tw.nest
def interpolate(F, C, i, j):
    F[2 * i, 2 * j] += C[i, j]
    F[2 * i + 1, 2 * j] += 0.5 * (C[i, j] + C[i + 1, j])
    F[2 * i, 2 * j + 1] += 0.5 * (C[i, j] + C[i, j + 1])
    F[2 * i + 1, 2 * j + 1] += 0.25 * (C[i, j] + C[i + 1, j] + C[i, j + 1] + C[i + 1, j + 1])


@tw.nest
def smooth(F, i, j):
    F[i, j] = 0.25 * (F[i - 1, j] + F[i + 1, j] + F[i, j - 1] + F[i, j + 1])


def looped(nests, arrays, times):
    copies = {name: array.copy() for name, array in arrays.items()}
    for _ in range(times):
        for nest in nests:
            given = {name: copies[name] for name in nest.arrays}
            nest.reference(nest.iteration_box({name: array.shape for name, array in given.items()}), given)
    return copies


@pytest.mark.parametrize("shape", [(16, 12), (17, 13), (3, 40)])
@pytest.mark.parametrize("ranks, threads", [(1, 2), (2, 1), (3, 1), (4, 2), (6, 1)])
def test_blocks_of_two_grids_lie_together(ranks, threads, shape):
    coarse = tuple(-(-n // 2) for n in shape)
    arrays = {"F": np.random.default_rng(7).random(shape), "C": np.random.default_rng(8).random(coarse)}
    expected = looped([restrict, interpolate], arrays, 3)

    def body(context):
        F, C = (tw.field(arrays[name].shape, "f8", arrays[name], context=context) for name in "FC")
        for _ in range(3):
            tw.run(restrict, C=C, F=F, plan={"threads": threads, "grid": (ranks, 1)})
            blocks = C.owned, F.owned
            tw.run(interpolate, C=C, F=F, plan={"threads": threads, "grid": (ranks, 1)})
            assert blocks == (C.owned, F.owned)
        assert F.owned[0].start == min(2 * C.owned[0].start, shape[0])
        return F.gather(), C.gather()

    found = results_of(ranks, threads, body)
    assert np.array_equal(found[0][0], expected["F"]) and np.array_equal(found[0][1], expected["C"])


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_nests_in_turn_move_nothing(ranks):
    """Once the fine field has the halo of a nest that reads neighbours, restriction leaves it where it is."""

    def body(context):
        F, C = (tw.field(shape, "f8", 1.0, context=context) for shape in ((12 * ranks, 12), (6 * ranks, 6)))
        fixed = {"grid": (ranks, 1), "storage": "plain", "threads": 1}
        versions = []
        for _ in range(4):
            tw.run(smooth, F=F, plan=fixed)
            tw.run(restrict, C=C, F=F, plan=fixed)
            tw.run(interpolate, C=C, F=F, plan=fixed)
            versions.append((F._storage.version, C._storage.version))
        return versions

    found = results_of(ranks, 1, body)
    assert all(versions[1:] == versions[:1] * 3 for versions in found), found


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_chain_of_two_grids(ranks):
    arrays = {"F": np.random.default_rng(7).random((16, 24)), "C": np.random.default_rng(8).random((8, 12))}
    nests = [smooth, restrict, interpolate, smooth]
    expected = looped(nests, arrays, 4)

    def body(context):
        given = {name: tw.field(arrays[name].shape, "f8", arrays[name], context=context) for name in "FC"}
        bounds = [tw.bind(nest, context=context, **{name: given[name] for name in nest.arrays}) for nest in nests]
        report = tw.chain(bounds).run(times=4)
        return given["F"].gather(), given["C"].gather(), str(report)

    found = results_of(ranks, 1, body)
    assert np.array_equal(found[0][0], expected["F"]) and np.array_equal(found[0][1], expected["C"])


@pytest.mark.parametrize(
    "body, wanted",
    [
        ("F[2*i] = F[3*i]", "by 3 here and by 2 before"),
        ("F[i] = F[2*i]", "by 2 here and by 1 before"),
        ("C[i] = F[-2*i+8]", "by -2: not supported"),
        ("C[i] = F[1048577*i]", "factors from 1 to"),
        ("C[i] = F[2.0*i]", "not index"),
    ],
)
def test_refused_bodies(body, wanted):
    arrays = ", ".join(name for name in "CF" if f"{name}[" in body)
    with pytest.raises(tw.ConfigError, match=wanted):
        tw.nest_from(f"def refused({arrays}, i):\n    {body}\n")


def test_refused_runs():
    largest = tw.nest_from("def largest(C, F, i):\n    C[i] = F[2*i]\n")
    with pytest.raises(tw.ConfigError, match="9 elements are no multiple of it"):
        tw.run(largest, C=tw.field((4,)), F=tw.field((9,)), periodic=("i",))
    with pytest.raises(tw.ConfigError, match="a local of the body"):
        tw.run(largest, C=tw.field((4,)), F=tw.field((8,)), reduce={"most": tw.max("F")})
    with pytest.raises(tw.ConfigError, match="given scratch"):
        tw.run(tw.nest_from("def s(F, C, i):\n    F[2*i] = C[i]\n"), F=tw.scratch(), C=tw.field((8,)))


def test_one_field_with_several_factors():
    both = tw.nest_from("def both(C, F, i):\n    C[i] = F[i] - 2 * F[2*i+1] + F[3*i]\n")
    F = np.random.default_rng(3).random(40)
    expected = looped([both], {"C": np.zeros(20), "F": F}, 1)["C"]

    def body(context):
        C = tw.field((20,), "f8", context=context)
        report = tw.run(both, C=C, F=tw.field((40,), "f8", F, context=context), context=context)
        return C.gather(), report.replicated

    found = results_of(3, 1, body)
    assert np.array_equal(found[0][0], expected) and found[0][1]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_parts_of_a_field_with_a_halo_that_every_rank_needs_whole(ranks):
    nest = tw.nest_from("def body(A, E, i, j): A[i, j] = E[2*j+2]")

    def program(context):
        A, E = tw.field((2, 9), context=context), tw.field(np.arange(20.0), halo=1, context=context)
        tw.run(nest, A=A, E=E, plan={"grid": (1, ranks)}, context=context)
        return A.gather()

    assert (results_of(ranks, 1, program)[0] == 2 + 2 * np.arange(9.0)).all()


@tw.nest
def two_residues(A, B, C, i, j):
    A[3 * i, 2 * j] = C[2 * i, 3 * j]
    B[i, 2 * j] = C[2 * i - 1, 3 * j - 1] + C[2 * i, 3 * j - 2] * B[i, 2 * j]


@pytest.mark.parametrize("ranks", [2, 3])
def test_parts_of_a_field_of_which_some_are_shorter(ranks):
    """A rank without elements of the shorter part has a halo, which the field has once for both."""

    def body(context):
        A = tw.field((15, 67), "f8", init=1.0, context=context)
        B = tw.field((7, 68), "f8", init=lambda i, j: i - j, context=context)
        C = tw.field((10, 101), "f8", init=lambda i, j: 3.0 * i + j, context=context)
        wholes = [field.gather() for field in (A, B, C)]
        bound = tw.bind(two_residues, A=A, B=B, C=C, plan={"grid": (ranks, 1), "threads": 1})
        tw.chain([bound, bound]).run()
        found = [field.gather() for field in (A, B, C)]
        if context.rank == 0:
            a, b, c = wholes
            for _ in range(2):
                for i in range(1, 5):
                    for j in range(1, 34):
                        a[3 * i, 2 * j] = c[2 * i, 3 * j]
                        b[i, 2 * j] = c[2 * i - 1, 3 * j - 1] + c[2 * i, 3 * j - 2] * b[i, 2 * j]
            assert [whole.tobytes() for whole in found] == [whole.tobytes() for whole in wholes]

    results_of(ranks, 1, body)


ODD = "def odd(u, c, t, i, j):\n    u[t+1, 2*i+1, j] = u[t, 2*i, j] + u[t, 2*i+2, j] + c[i, j] - u[t, 2*i+1, j+1]"


@pytest.mark.parametrize("ranks, in_field", [(1, False), (1, True), (2, True), (3, True)])
def test_sources_at_elements_that_no_time_step_writes(ranks, in_field):
    """Their values change from step to step, also in what is read of earlier steps, which NumPy arrays have not."""
    rng, steps, nest = np.random.default_rng(5), 7, tw.nest_from(ODD + " + u[t-1, 2*i, j]" * in_field)
    before, now, c = rng.random((13, 6)), rng.random((13, 6)), rng.random((6, 6))
    points, values = [(0, 1), (2, 1), (3, 2), (6, 3), (12, 5)], rng.random((steps, 5))
    at, levels, heard = tuple(np.transpose(points)), [before, now], []
    for step in range(steps):
        past, old, new = *levels[-2:], levels[-1].copy()
        new[1::2, :-1] = old[:-1:2, :-1] + old[2::2, :-1] + c[:, :-1] - old[1::2, 1:]
        new[1::2, :-1] += past[:-1:2, :-1] if in_field else 0
        new[at] += values[step]
        heard.append(new[at])
        levels.append(new)

    def body(context):
        u = tw.field(now.shape, "f8", now, history=[before], context=context) if in_field else now.copy()
        given = {"inject": {"u": (points, values)}, "record": {"u": points}, "context": context}
        recorded = tw.run(nest, u=u, c=c, steps=steps, **given).recorded["u"]
        return recorded, *([u.gather(), u.buffer(-1).gather()] if in_field else [u])

    for found, right in zip(results_of(ranks, 1, body)[0], (np.array(heard), *levels[:-3:-1])):
        assert np.array_equal(found, right)


@tw.nest
def parts_in_time(A, t, i, j):
    A[t + 1, 2 * i, j] = A[t, 2 * i, j] + A[t, 2 * i + 1, j]


@tw.nest
def nowhere(A, B, t, i, j):
    A[t + 1, 3 * i, 2 * j + 1] = A[t + 1, 3 * i - 1, 2 * j - 2]
    B[t + 1, i, j] = B[t, i + 2, j - 1]


def test_parts_in_time_of_memory_that_goes_down():
    for run in (
        tw.run,
        lambda nest, **given: tw.run((nest,), **given),
        lambda nest, **given: tw.bind(nest, **given).run(),
    ):
        values = np.arange(90).reshape(6, 15)
        given, expected = values[::-1, ::-1].copy()[::-1, ::-1], values.copy()
        for _ in range(2):
            run(parts_in_time, A=given, steps=5)
            for _ in range(5):
                expected[::2] += expected[1::2]
        np.testing.assert_array_equal(given, expected)


def test_parts_of_arrays_that_skew_loops_without_points():
    A, B = np.arange(4).reshape(1, 4), np.arange(6).reshape(2, 3)
    tw.run(nowhere, A=A, B=B, steps=1)
    np.testing.assert_array_equal(A, np.arange(4).reshape(1, 4))
