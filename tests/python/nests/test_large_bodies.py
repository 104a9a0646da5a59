"""Bodies as wave equations have them: many places, several written fields, staggered grids, coefficients with fewer
dimensions, one array in several orders.
"""

import numpy as np
import pytest
from tests.python.support.local_ranks import results_of

import tilewave as tw
from tilewave.nest.bounds import loop_bounds
from plain_loops import plain_loops

RANKS = [(1, 1), (2, 1), (3, 1), (4, 1), (6, 1)]


def star(name, t, radius, dims="ijk"):
    """The terms of a star of a radius at time index t."""
    terms = [f"c0 * {name}[{t}, {', '.join(dims)}]"]
    for k, _ in enumerate(dims):
        for r in range(1, radius + 1):
            offsets = [", ".join(d + f"{o * r:+d}" * (n == k) for n, d in enumerate(dims)) for o in (-1, 1)]
            pair = (f"{name}[{t}, {at}]" for at in offsets)
            terms.append(f"{1 / (r * r + k):.3f} * ({' + '.join(pair)})")
    return " + ".join(terms)


def run_and_compare(text, shapes, steps, ranks, threads, names=None, history=0):
    nest = tw.nest_from(text, names)
    rng = np.random.default_rng(11)
    arrays = {name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()}
    written = set(nest.written)

    def body(context):
        given = {
            name: tw.field(array.shape, "f4", array, history=history if name in written else 0, context=context)
            for name, array in arrays.items()
        }
        tw.run(nest, steps=steps, plan={"threads": threads}, **given)
        return {name: given[name].gather() for name in written}

    expected = {name: array.copy() for name, array in arrays.items()}
    in_time = {name for name in arrays if nest.axes.get(name, ("",))[0] == "t"}
    full = {name: (steps + 1, *array.shape) if name in in_time else array.shape for name, array in arrays.items()}
    box = ((0, steps), *nest.iteration_box(full)[1:])
    before = {name: [arrays[name].copy() for _ in range(history)] for name in written} if history else None
    plain_loops(nest, loop_bounds(nest.indices, box), expected, steps=steps, history=before)
    found = results_of(ranks, threads, body)
    for name in written:
        assert np.array_equal(found[0][name].view("u4"), expected[name].view("u4")), name


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_star_of_25_points_on_two_time_buffers(ranks, threads):
    text = f"""
def wave(u, m, damp, t, i, j, k, *, c0=np.float32(-2.5)):
    u[t+1, i, j, k] = 2 * u[t, i, j, k] - u[t-1, i, j, k] * damp[k] + m[i, j] * ({star("u", "t", 4)})
"""
    shape = (12, 10, 11)
    run_and_compare(text, {"u": shape, "m": shape[:2], "damp": shape[2:]}, 3, ranks, threads, history=1)


@pytest.mark.parametrize("ranks, threads", RANKS)
def test_elastic_waves_on_staggered_grids(ranks, threads):
    text = """
def elastic(vx, vy, sxx, syy, sxy, lam, mu, rho, t, i, j, *, h=np.float32(0.1)):
    vx[t+1, i, j] = vx[t, i, j] + h * rho[i] * (sxx[t, i, j] - sxx[t, i-1, j] + sxy[t, i, j+1] - sxy[t, i, j])
    vy[t+1, i, j] = vy[t, i, j] + h * rho[i] * (sxy[t, i+1, j] - sxy[t, i, j] + syy[t, i, j] - syy[t, i, j-1])
    dx = vx[t+1, i, j] - vx[t+1, i-1, j]
    dy = vy[t+1, i, j] - vy[t+1, i, j-1]
    sxx[t+1, i, j] = sxx[t, i, j] + h * ((lam[i, j] + 2 * mu[j]) * dx + lam[i, j] * dy)
    syy[t+1, i, j] = syy[t, i, j] + h * (lam[i, j] * dx + (lam[i, j] + 2 * mu[j]) * dy)
    sxy[t+1, i, j] = sxy[t, i, j] + h * mu[j] * (vx[t+1, i, j] - vx[t+1, i, j-1] + vy[t+1, i, j] - vy[t+1, i-1, j])
"""
    shapes = dict.fromkeys(("vx", "vy", "sxx", "syy", "sxy", "lam"), (11, 13))
    run_and_compare(text, {**shapes, "mu": (13,), "rho": (11,)}, 4, ranks, threads)


@pytest.mark.parametrize("ranks, threads", [(1, 1), (3, 1)])
def test_130_places(ranks, threads):
    terms = [f"{1 + a}.0 * A[i{a - 4:+d}, j{b - 4:+d}]" for a in range(9) for b in range(9)]
    terms += [f"V[i{a:+d}] * V[j{b:+d}]" for a in range(-6, 7) for b in (a, -a)]
    terms += [f"B[j{a:+d}, i]" for a in range(-10, 11)]
    body = f"    d = {' + '.join(terms)}\n    C[i, j] = d\n    D[i, j+1] = d\n"
    nest = tw.nest_from("def many(C, D, A, B, V, i, j):\n" + body)
    assert len(nest.places) > 128
    rng = np.random.default_rng(12)
    shapes = {"C": (26, 27), "D": (26, 27), "A": (26, 27), "B": (27, 26), "V": (30,)}
    arrays = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    expected = {name: array.copy() for name, array in arrays.items()}
    nest.reference(nest.iteration_box(shapes), expected)

    def body(context):
        given = {name: tw.field(array.shape, "f8", array, context=context) for name, array in arrays.items()}
        tw.run(nest, plan={"threads": threads}, **given)
        return given["C"].gather(), given["D"].gather()

    found = results_of(ranks, threads, body)
    assert np.array_equal(found[0][0], expected["C"]) and np.array_equal(found[0][1], expected["D"])
    with pytest.raises(tw.ConfigError, match="at most 192"):
        body = " + ".join(f"A[i+{k}]" for k in range(200))
        tw.run(tw.nest_from(f"def more(C, A, i):\n    C[i] = {body}\n"), C=np.zeros(300), A=np.zeros(300))
