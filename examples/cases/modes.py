"""The strongest modes of real terrain
===================================

The columns of a matrix are spread over the ranks.

``tilewave run -n 3 examples/cases/modes.py [--modes 6] [--out demo/modes.png]``

Block power iteration on the elevation grid that ships with Matplotlib: each rank keeps some columns, a
strided slice of the grid, and never packs anything. A product with all columns is a multi_reduce,
each rank getting the sum's part that is its own, and a spread that gives all parts to all. The
singular values are compared with NumPy's. About 3 s.
"""
import argparse
from pathlib import Path

import numpy as np
import tilewave as tw


def terrain():
    """Elevation in metres about its mean, float64."""
    from matplotlib.cbook import get_sample_data

    with get_sample_data("jacksboro_fault_dem.npz") as data:
        height = data["elevation"].astype("f8")
    return height - height.mean()


def modes(mine, count, sweeps=200, tolerance=1e-12):
    """Left singular vectors, singular values, and the values' change in each sweep."""
    vectors = np.linalg.qr(np.random.default_rng(1).standard_normal((mine.shape[0], count)))[0]
    values, changes = np.zeros(count), []
    for _ in range(sweeps):
        partial = np.ascontiguousarray((mine @ (mine.T @ vectors)).T)  # this rank's columns' share
        product = tw.patterns.spread(tw.patterns.multi_reduce(partial)).T
        vectors, triangle = np.linalg.qr(product)
        new = np.sqrt(np.abs(np.diag(triangle)))
        changes.append(np.abs(new - values).max() / new[0])
        values = new
        if changes[-1] < tolerance:
            break
    return vectors, values, changes


def draw(height, vectors, changes, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    low = vectors @ (vectors.T @ height)
    for axis, what, title in ((left, height, "terrain "
                                             "about its "
                                             "mean, m"), (middle, low, f"its {vectors.shape[1]} strongest modes")):
        figure.colorbar(axis.imshow(what, cmap="terrain", vmin=height.min(), vmax=height.max()), ax=axis)
        axis.set_title(title)
    right.semilogy(range(1, len(changes) + 1), changes)
    right.set(title="change of the singular values", xlabel="sweep", ylabel="relative to the largest")
    right.grid(alpha=0.3)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modes", type=int, default=6)
    parser.add_argument("--out", default="demo/modes.png")
    options = parser.parse_args()
    context = tw.context()
    height = terrain()
    cuts = [height.shape[1] * r // context.size for r in range(context.size + 1)]
    vectors, values, changes = modes(height[:, cuts[context.rank]:cuts[context.rank + 1]], options.modes)
    if context.rank == 0:
        exact = np.linalg.svd(height, compute_uv=False)[:options.modes]
        error = np.abs(values - exact).max() / exact[0]
        print(f"{options.modes} modes in {len(changes)} sweeps on {context.size} ranks; largest error {error:.1e} of "
              "the first value")
        if error > 1e-6:
            raise SystemExit("the singular values differ from NumPy's")
        draw(height, vectors, changes, options.out)
        print(f"picture: {options.out}")


if __name__ == "__main__":
    main()
