"""The cheapest climb over real terrain
====================================

A 2-D recurrence from the north-west corner.

``tilewave run -n 2 examples/cases/terrain.py [--out demo/terrain.png]``

The elevation grid ships with Matplotlib (a fault near Jacksboro, Tennessee). A walker goes only
south or east; a step costs its length and, uphill, its climb times `uphill`. The least cost to
reach each cell is one dependent sweep. Checked against plain Python loops; about 4 s.
"""
import argparse
from pathlib import Path

import numpy as np
import tilewave as tw


@tw.nest
def climb(cost, height, i, j, *, step, uphill):
    down = cost[i-1, j] + step + uphill * max(height[i, j] - height[i-1, j], 0.0)
    right = cost[i, j-1] + step + uphill * max(height[i, j] - height[i, j-1], 0.0)
    cost[i, j] = min(down, right)


def terrain():
    """Elevation in metres, float64, with a rim of itself above and to the left."""
    from matplotlib.cbook import get_sample_data

    with get_sample_data("jacksboro_fault_dem.npz") as data:
        height = data["elevation"].astype("f8")
    return np.pad(height, ((1, 0), (1, 0)), mode="edge")


def draw(height, cost, report, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    shown = left.imshow(height[1:, 1:], cmap="terrain")
    figure.colorbar(shown, ax=left, label="elevation (m)")
    left.set_title("terrain")
    shown = right.imshow(cost[1:, 1:], cmap="viridis")
    figure.colorbar(shown, ax=right, label="least cost (m)")
    right.contour(cost[1:, 1:], levels=12, colors="white", linewidths=0.5)
    right.set_title("cheapest walk south and east from the corner")
    figure.suptitle(f"ranks: {report.ranks}, lanes of each: {report.threads}, {report.measured.time_s * 1e3:.2f} ms",
                    fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=Path, default=Path("demo/terrain.png"))
    given = options.parse_args()
    height = terrain()

    # The rim is out of reach, but for the way into the first cell.
    start = np.full(height.shape, np.inf)
    start[0, 1] = 0.0
    cost = tw.field(height.shape, "f8", init=start)
    report = tw.run(climb, cost=cost, height=height, step=90.0, uphill=10.0)
    report.timeline.save(given.out.with_name(given.out.stem + "_timeline.png"))
    whole = cost.gather()
    if whole is None:
        return
    plain = start.copy()
    climb.reference(((1, height.shape[0]), (1, height.shape[1])), {"cost": plain, "height": height},
                    {"step": 90.0, "uphill": 10.0})
    same = np.array_equal(whole, plain)
    draw(height, whole, report, given.out)
    print(report)
    print(f"{'plain loops':16} {'equal, bit for bit' if same else 'DIFFERENT'}")
    print(f"{'far corner':16} {whole[-1, -1]:.1f} m; written {given.out}")
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
