"""Several nests in one time step: some, and what they mean."""

import numpy as np

import tilewave as tw
from tilewave.nest.bounds import loop_bounds
from plain_loops import Times
from tilewave.nest.reference import run_body
from tilewave.nests.call.problem import check_steps

SHAPE = 9, 11
OLDER = 3


@tw.nest
def height(h, u, v, t, i, j):
    h[t+1, i, j] = h[t, i, j] - 0.1 * (u[t, i+1, j] - u[t, i, j] + v[t, i, j+1] - v[t, i, j])


@tw.nest
def zonal(u, h, t, i, j):
    u[t+1, i, j] = u[t, i, j] - 0.1 * (h[t+1, i, j] - h[t+1, i-1, j])


@tw.nest
def meridional(v, h, t, i, j):
    v[t+1, i, j] = 0.25 * (v[t, i, j-1] + v[t, i, j+1]) - 0.1 * (h[t+1, i, j] - h[t+1, i, j-1])


def random(seed, shape=SHAPE):
    return np.random.default_rng([9, seed]).random(shape)


def plain(nests, arrays, history, steps, over, given, inject=None, record=None, scalars=None):
    """The meaning: arrays are changed, with their buffers before (latest first); what is recorded."""
    buffers = {}
    changing = {name for nest in nests for name in nest.written if arrays[name].ndim < len(nest.axes[name])}
    in_time = {name for nest in nests for name in nest.axes if arrays[name].ndim < len(nest.axes[name])}
    for name in in_time:
        older = (history.get(name, []) + [arrays[name]] * OLDER)[:OLDER]
        buffers[name] = Times(np.array([*older[::-1], arrays[name], *[arrays[name]] * steps]), OLDER)
    recorded = {name: [] for name in record or {}}
    for t in range(steps):
        begun = set()
        for nest, own in zip(nests, over, strict=True):
            for name in set(nest.written) & changing - begun:
                buffers[name][t+1,] = buffers[name][t,]
                begun.add(name)
            box = check_steps(nest, {name: given[name] for name in nest.arrays}, steps)
            points = (x for x in loop_bounds(nest.indices, box, own).points() if x[0] == t)
            own = {name: (scalars or {}).get(name, default) for name, default in nest.scalars.items()}
            with np.errstate(all="ignore"):
                run_body(nest, points, {**arrays, **buffers}, own)
        for name, (points, values) in (inject or {}).items():
            np.add.at(buffers[name][t+1,], tuple(np.array(points).T), values[t])
        for name, points in (record or {}).items():
            recorded[name].append(buffers[name][t+1,][tuple(np.array(points).T)])
    for name in changing:
        arrays[name][...] = buffers[name].all_times[OLDER+steps]
        for back, level in enumerate(history.get(name, []), 1):
            level[...] = buffers[name].all_times[OLDER+steps-back]
    return recorded


def some_nests(rng, number, scalars=""):
    """A few nests that may be run one after another in a time step, and the arrays that they write. `number`: what each
    adds to its values. `scalars`: parameters of all.
    """
    names = "ABC"[: rng.integers(1, 4)]
    nests, written = [], []
    for position in range(rng.integers(2, 5)):
        own = str(rng.choice(list(names)))
        terms, used = [f"{own}[t, i, j]"], [own]
        for _ in range(rng.integers(1, 4)):
            other = str(rng.choice(list(names)))
            at = [f"{name}{offset:+d}" for name, offset in zip("ij", rng.integers(-1, 2, 2), strict=True)]
            used.append(other)
            time = "t+1" if other in written else "t"
            if other == own:
                time = str(rng.choice(["t", "t-1"]))
                at = ["i", "j"] if time == "t-1" else at
            terms.append(f"{rng.integers(1, 9) / 16} * {other}[{time}, {', '.join(at)}]")
        indent, check = "    ", ""
        if rng.random() < 0.3:
            indent, check = "        ", f"    if (i + j) % 2 == {rng.integers(2)}:\n"
        body = f"{indent}{own}[t+1, i, j] = {' + '.join(terms)} + {number}\n"
        parameters = f"{', '.join(sorted({*used}))}, t, i, j{scalars}"
        nests.append(tw.nest_from(f"def nest{position}({parameters}):\n{check}{body}"))
        written.append(own)
    return nests, sorted(set(written)), names
