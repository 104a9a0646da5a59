"""Travel times by fast sweeping
=============================

A wave from a point in 3-D: in-place sweeps from the eight corners of a cube.

``tilewave run -n 2 examples/cases/eikonal.py [--small] [--output demo/eikonal.png]``

``|grad T| = 1`` with Godunov's upwind differences, so that T is the distance to the point. Sweeps in eight directions
(``reverse=``) follow each other until nothing changes. T is given within a ball around the point; outside it the
scheme is of first order.

Checks: the error against the exact distance, which must be below 1.5 spacings and fall as the spacing does. About
3 s on one core for 31, 61 and 121 points each way.
"""
import argparse
import itertools
from pathlib import Path

import numpy as np
import tilewave as tw

FAR = 1e3
SOURCE, BALL = (0.5, 0.4, 0.45), 0.15
DIRECTIONS = [tuple(itertools.compress("ijk", flags)) for flags in itertools.product((False, True), repeat=3)]


@tw.nest
def eikonal(T, i, j, k, *, h):
    a = min(T[i-1, j, k], T[i+1, j, k])
    b = min(T[i, j-1, k], T[i, j+1, k])
    c = min(T[i, j, k-1], T[i, j, k+1])
    low = min(a, min(b, c))
    high = max(a, max(b, c))
    middle = max(min(a, b), min(max(a, b), c))
    # Upwind from one side, from two where the second is nearer than that, from three.
    new = low + h
    if new > middle:
        new = 0.5 * (low + middle + np.sqrt(2 * h * h - (middle - low) * (middle - low)))
        if new > high:
            total = low + middle + high
            squares = low * low + middle * middle + high * high
            new = (total + np.sqrt(total * total - 3 * (squares - h * h))) / 3
    T[i, j, k] = min(new, T[i, j, k])


def distance(points):
    """The exact travel times on a cube of so many points each way."""
    x, y, z = np.ogrid[0:1:points*1j, 0:1:points*1j, 0:1:points*1j]
    return np.sqrt((x - SOURCE[0]) ** 2 + (y - SOURCE[1]) ** 2 + (z - SOURCE[2]) ** 2)


def solve(points):
    """The whole T on rank 0 (None elsewhere), the number of sweeps, and the seconds in them."""
    exact = distance(points)
    start = np.pad(np.where(exact <= BALL, exact, FAR), 1, constant_values=FAR)  # the rim is out of reach
    T = tw.field(start.shape, "f8", init=start)
    sweeps, seconds, before, moving = 0, 0.0, start, np.ones((1, 1), "i4")
    while moving[0, 0]:
        for reverse in DIRECTIONS:
            seconds += tw.run(eikonal, T=T, h=1 / (points - 1), reverse=reverse).measured.time_s
        sweeps += len(DIRECTIONS)
        whole = T.gather()
        moving[0, 0] = whole is not None and not np.array_equal(whole, before)
        tw.patterns.broadcast(moving)  # rank 0 has seen it, all stop together
        before = whole
    return (None if whole is None else whole[1:-1, 1:-1, 1:-1]), sweeps, seconds


def draw(T, exact, sizes, errors, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    k = round(SOURCE[2] * (T.shape[2] - 1))
    box = {"extent": (0, 1, 0, 1), "origin": "lower"}
    levels = np.arange(0.05, 1, 0.05)
    shown = left.imshow(T[:, :, k].T, cmap="viridis", **box)
    figure.colorbar(shown, ax=left, label="travel time", shrink=0.85)
    left.contour(T[:, :, k].T, levels=levels, colors="white", linewidths=1, **box)
    left.contour(exact[:, :, k].T, levels=levels, colors="black", linestyles=":", linewidths=0.9, **box)
    left.set(title=f"fronts at z = {SOURCE[2]} (dotted: exact)", xlabel="x", ylabel="y", aspect="equal")
    shown = middle.imshow((T - exact)[:, :, k].T * (T.shape[0] - 1), cmap="magma", **box)
    figure.colorbar(shown, ax=middle, label="error in spacings", shrink=0.85)
    middle.add_patch(_circle())
    middle.set(title="error of the travel time (circle: given)", xlabel="x", ylabel="y")
    h = 1 / (np.array(sizes) - 1)
    for name, marker in (("largest", "o"), ("mean", "s")):
        right.loglog(h, [e[name] for e in errors], marker=marker, label=f"{name} error")
    right.loglog(h, errors[-1]["largest"] * h / h[-1], "k:", label="first order")
    right.set_xticks(h, [f"1/{n - 1}" for n in sizes])
    right.set_yticks([y for y in (1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1) if y > errors[-1]["mean"]])
    right.yaxis.set_major_formatter("{x:g}")
    right.minorticks_off()
    right.set(title="error and spacing", xlabel="spacing h")
    right.grid(alpha=0.3)
    right.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _circle():
    from matplotlib.patches import Circle

    return Circle(SOURCE[:2], BALL, fill=False, color="white", linewidth=0.8)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--small", action="store_true", help="11 and 21 points each way")
    options.add_argument("--output", type=Path, default=Path("demo/eikonal.png"))
    given = options.parse_args()
    sizes, errors = (11, 21) if given.small else (31, 61, 121), []
    for points in sizes:
        T, sweeps, seconds = solve(points)
        if T is not None:
            exact = distance(points)
            errors.append({"largest": abs(T - exact).max(), "mean": abs(T - exact).mean()})
            print(f"{points}^3 points: {sweeps} sweeps in {seconds:.3g} s, {sweeps * points**3 / seconds:.3g} points "
                  f"a second; largest error {errors[-1]['largest']:.2e} ({errors[-1]['largest'] * (points - 1):.2f} h)")
    if T is None:
        return
    order = np.log2(errors[-2]["largest"] / errors[-1]["largest"])
    print(f"order of the error: {order:.2f}")
    draw(T, exact, sizes, errors, given.output)
    print(f"picture: {given.output}")
    if errors[-1]["largest"] * (points - 1) > 1.5 or not 0.8 < order < 1.8:
        raise SystemExit("the error does not fall as the scheme's does")


if __name__ == "__main__":
    main()
