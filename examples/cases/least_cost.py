"""Least-cost distances over real terrain
======================================

Any of eight ways at each cell: in-place sweeps until nothing changes.

``tilewave run -n 2 examples/cases/least_cost.py [--small] [--output demo/least_cost.png]``

The elevation grid ships with Matplotlib (a fault near Jacksboro, Tennessee; cells taken as squares of 90 m). A
step costs its length times the mean of what its two cells ask for, more on slopes. A sweep looks at all eight
neighbours of each cell, four after their update and four before it; four sweeps (``reverse=``), one from each corner,
make a round.

Checks: costs are positive, so that only the least costs satisfy "each cell's cost is the least of its neighbours'
plus the step" (NumPy, equal bit for bit); and all costs against SciPy's Dijkstra where SciPy is installed
(pip install scipy). About 3 s on one core, most of it the picture.
"""
import argparse
from pathlib import Path

import numpy as np
import tilewave as tw

CORNERS = ((), ("i",), ("i", "j"), ("j",))
NEIGHBOURS = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1) if di or dj]
CELL_M = 90.0
# Half a step's length: a step costs this times the sum of what its cells ask for.
STRAIGHT, DIAGONAL = 0.5 * CELL_M, 0.5 * CELL_M * 2 ** 0.5
OUT_OF_REACH = 1e30


@tw.nest
def walk(cost, pace, i, j):
    here = pace[i, j]
    best = cost[i, j]
    best = min(best, cost[i-1, j] + STRAIGHT * (here + pace[i-1, j]))
    best = min(best, cost[i+1, j] + STRAIGHT * (here + pace[i+1, j]))
    best = min(best, cost[i, j-1] + STRAIGHT * (here + pace[i, j-1]))
    best = min(best, cost[i, j+1] + STRAIGHT * (here + pace[i, j+1]))
    best = min(best, cost[i-1, j-1] + DIAGONAL * (here + pace[i-1, j-1]))
    best = min(best, cost[i-1, j+1] + DIAGONAL * (here + pace[i-1, j+1]))
    best = min(best, cost[i+1, j-1] + DIAGONAL * (here + pace[i+1, j-1]))
    best = min(best, cost[i+1, j+1] + DIAGONAL * (here + pace[i+1, j+1]))
    cost[i, j] = best


def terrain(small):
    """Elevation in metres, and what a metre over each cell asks for (1: flat ground), float64."""
    from matplotlib.cbook import get_sample_data

    with get_sample_data("jacksboro_fault_dem.npz") as data:
        height = data["elevation"].astype("f8")
    if small:
        height = height[100:160, 100:170]
    return height, 1 + 12 * np.hypot(*np.gradient(height, CELL_M))


def sweep_to_the_end(pace, start):
    """The costs on rank 0 (None elsewhere), how many cells each round changed, and the sweeps' seconds."""
    first = np.full(tuple(n + 2 for n in pace.shape), OUT_OF_REACH)  # the rim stays out of reach
    first[start[0] + 1, start[1] + 1] = 0.0
    cost = tw.field(first.shape, "f8", init=first)
    pace = np.pad(pace, 1, mode="edge")
    changed, seconds, before = [], 0.0, first
    while not changed or changed[-1]:
        for corner in CORNERS:
            seconds += tw.run(walk, cost=cost, pace=pace, reverse=corner).measured.time_s
        whole = cost.gather()
        count = np.array([[0 if whole is None else np.count_nonzero(whole != before)]])
        tw.patterns.broadcast(count)  # rank 0 has seen it, all stop together
        changed.append(int(count[0, 0]))
        before = whole
    return None if whole is None else whole[1:-1, 1:-1], changed, seconds


def shifted(array, di, dj, rim):
    """The neighbour (di, dj) of each cell, `rim` where there is none."""
    return np.pad(array, 1, constant_values=rim)[1+di:array.shape[0]+1+di, 1+dj:array.shape[1]+1+dj]


def least_of_neighbours(cost, pace, start):
    """What each cell's cost must be, given its neighbours'."""
    least = np.full(cost.shape, OUT_OF_REACH)
    for di, dj in NEIGHBOURS:
        length = DIAGONAL if di and dj else STRAIGHT
        np.minimum(least, shifted(cost, di, dj, OUT_OF_REACH) + length * (pace + shifted(pace, di, dj, 1.0)), out=least)
    least[start] = 0.0
    return least


def dijkstra(pace, start):
    """Least costs by SciPy, or None where it is not installed."""
    try:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import dijkstra as by_scipy
    except ImportError:
        return None
    cells = np.arange(pace.size).reshape(pace.shape)
    edges = []
    for di, dj in NEIGHBOURS:
        there = shifted(cells, di, dj, -1)
        steps = (DIAGONAL if di and dj else STRAIGHT) * (pace + shifted(pace, di, dj, 1.0))
        inside = there >= 0
        edges.append((steps[inside], cells[inside], there[inside]))
    steps, here, there = map(np.concatenate, zip(*edges, strict=True))
    graph = coo_array((steps, (here, there)), shape=(pace.size, pace.size)).tocsr()
    return by_scipy(graph, indices=int(cells[start])).reshape(pace.shape)


def way_back(cost, pace, cell):
    """Cells from `cell` to the start, each the neighbour that its cost came from."""
    cells = [cell]
    while cost[cell] > 0:
        inside = [(cell[0] + di, cell[1] + dj, DIAGONAL if di and dj else STRAIGHT) for di, dj in NEIGHBOURS
                  if 0 <= cell[0] + di < cost.shape[0] and 0 <= cell[1] + dj < cost.shape[1]]
        cell = min((cost[i, j] + length * (pace[cell] + pace[i, j]), (i, j)) for i, j, length in inside)[1]
        cells.append(cell)
    return np.array(cells)


def draw(height, cost, ways, start, changed, path):
    from matplotlib.colors import LightSource
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 5), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.1, 1.1, 0.7))
    km = CELL_M / 1000
    box = (0, cost.shape[1] * km, cost.shape[0] * km, 0)
    shade = LightSource(315, 40).hillshade(height, vert_exag=2, dx=CELL_M, dy=CELL_M)
    for axis, what, colours, label, title in (
            (left, height, "terrain", "elevation (m)", "terrain and cheapest walks"),
            (middle, cost / 1000, "viridis", "kilometres of flat ground", "least cost from the star")):
        axis.imshow(shade, cmap="gray", extent=box)
        shown = axis.imshow(what, cmap=colours, extent=box, alpha=0.7)
        figure.colorbar(shown, ax=axis, label=label, shrink=0.85)
        axis.set(title=title, xlabel="east (km)", ylabel="south (km)")
        axis.plot((start[1] + 0.5) * km, (start[0] + 0.5) * km, "*", color="white", markeredgecolor="black",
                  markersize=13)
    lines = middle.contour(cost / 1000, levels=12, colors="white", linewidths=0.7, extent=box, origin="upper")
    middle.clabel(lines, fontsize=7, fmt="%g")
    for cells in ways:
        left.plot((cells[:, 1] + 0.5) * km, (cells[:, 0] + 0.5) * km, color="tab:red", linewidth=1.3)
    right.semilogy(range(1, len(changed)), changed[:-1], "o-", color="tab:blue")  # the last changed none
    right.set(title="cells changed by a round", xlabel="round (four sweeps)", ylabel="cells")
    right.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--small", action="store_true", help="60 x 70 cells of the terrain")
    options.add_argument("--output", type=Path, default=Path("demo/least_cost.png"))
    given = options.parse_args()
    height, pace = terrain(given.small)
    start = (height.shape[0] // 2, height.shape[1] // 3)
    cost, changed, seconds = sweep_to_the_end(pace, start)
    if cost is None:
        return
    sweeps = 4 * len(changed)
    print(f"{cost.shape[0]} x {cost.shape[1]} cells, {sweeps} sweeps until nothing changed, {seconds:.3g} s, "
          f"{sweeps * cost.size / seconds:.3g} cells a second")
    same = np.array_equal(cost, least_of_neighbours(cost, pace, start))
    print(f"each cost the least of its neighbours' plus the step: {'yes, bit for bit' if same else 'NO'}")
    exact = dijkstra(pace, start)
    error = 0.0 if exact is None else abs(cost - exact).max() / exact.max()
    print("SciPy is not installed (pip install scipy): its Dijkstra is not compared" if exact is None else
          f"largest difference from SciPy's Dijkstra: {error:.1e} of the largest cost")
    m, n = (s - 1 for s in cost.shape)
    ends = [(0, 0), (0, n), (m, 0), (m, n), (0, n // 2), (m, n // 2), (m // 2, n)]
    draw(height, cost, [way_back(cost, pace, end) for end in ends], start, changed, given.output)
    print(f"picture: {given.output}")
    if not same or error > 1e-12:
        raise SystemExit("the least costs differ")


if __name__ == "__main__":
    main()
