"""All shortest paths between towns
================================

Floyd and Warshall's loops over a road map: the length of the way between any two towns, and the ways themselves.

``tilewave run -n 2 examples/cases/shortest_paths.py [--towns 1000] [--output demo/shortest_paths.png]``

Step k lets ways lead through town k. It reads row k and column k of what it writes: a nest with a pivot, which runs in
blocks of steps over the ranks. N[i, j] is the first stop on the way from i to j.

Checks: lengths against SciPy's floyd_warshall and, on a sparse graph the fastest, its Dijkstra from every town; each
way's length counted along it.
On one core (AMD EPYC) 3.3 billion steps of the plain loops a second, 5.9 on two; SciPy's floyd_warshall 5.1 on
one. Dijkstra, which walks along the few roads of this map, takes half of that one's time.
"""
import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.spatial
import tilewave as tw


@tw.nest
def ways(D, N, k, i, j):
    d = D[i, k] + D[k, j]
    if d < D[i, j]:
        D[i, j] = d
        N[i, j] = N[i, k]


def road_map(towns):
    """Places, and roads between neighbours that are up to half as long again in one direction: infinity is no road."""
    random = np.random.default_rng(1)
    places = random.random((towns, 2))
    places = places[abs(places[:, 0] - 0.5) + 0.3 > 0.5 * places[:, 1]]  # no town in the lake
    roads = np.full((len(places),) * 2, np.inf)
    near = scipy.spatial.cKDTree(places).query(places, k=5)[1][:, 1:]
    for i, j in ((i, j) for i, others in enumerate(near) for j in others):
        length = np.hypot(*(places[i] - places[j]))
        roads[i, j], roads[j, i] = length * (1 + random.random(2) / 2)
    np.fill_diagonal(roads, 0)
    return places, roads


def follow(N, start, end):
    """The stops of a way."""
    stops = [start]
    while stops[-1] != end:
        stops.append(int(N[stops[-1], end]))
    return stops


def draw(places, roads, D, way, path):
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    i, j = np.nonzero(np.isfinite(roads))
    left.add_collection(LineCollection(np.stack((places[i], places[j]), axis=1), colors="0.7", linewidths=0.5))
    shown = left.scatter(*places.T, c=D[way[0]], s=9, cmap="viridis")
    left.plot(*places[way].T, color="tab:red", linewidth=2)
    left.set(title=f"ways from one town, and the one with {len(way)} stops", xlabel="x", ylabel="y", aspect="equal")
    figure.colorbar(shown, ax=left, label="length")
    right.hist(D[np.isfinite(D)], bins=80)
    right.set(title=f"ways between {len(places)} towns", xlabel="length", ylabel="pairs")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--towns", type=int, default=1000, help="before those in the lake are left out")
    options.add_argument("--small", action="store_true", help="60 towns")
    options.add_argument("--output", type=Path, default=Path("demo/shortest_paths.png"))
    given = options.parse_args()
    places, roads = road_map(60 if given.small else given.towns)
    n = len(places)
    D = tw.field((n, n), init=roads)
    N = tw.field((n, n), "i4", init=lambda i, j: j + 0 * i)
    report = tw.run(ways, D=D, N=N)
    D, N = D.gather(), N.gather()
    if tw.rank:
        return
    graph = scipy.sparse.csr_array(np.where(np.isfinite(roads), roads, 0))
    seconds, expected = {"tilewave": report.measured.time_s}, {}
    for method in ("floyd_warshall", "dijkstra"):
        begin = time.perf_counter()
        expected[method] = getattr(scipy.sparse.csgraph, method)(graph, return_predecessors=True)[0]
        seconds[f"SciPy's {method}"] = time.perf_counter() - begin
    for name, taken in seconds.items():
        print(f"{name:22} {taken:.3g} s, {n**3 / taken * 1e-9:.3g} billion steps of the plain loops a second")
    difference = max(abs(D - other)[np.isfinite(D)].max() for other in expected.values())
    same = all(np.array_equal(np.isfinite(D), np.isfinite(other)) for other in expected.values())
    some = np.argwhere(np.isfinite(D))[::997]
    counted = [sum(roads[a, b] for a, b in itertools.pairwise(stops))
               for stops in (follow(N, *pair) for pair in some)]
    along = abs(np.array(counted) - D[tuple(some.T)]).max()
    print(f"largest difference from SciPy's lengths: {difference:.1e}; from those counted along {len(some)} ways: "
          f"{along:.1e}")
    furthest = np.unravel_index(np.where(np.isfinite(D), D, 0).argmax(), D.shape)
    draw(places, roads, D, follow(N, *furthest), given.output)
    print(f"picture: {given.output}")
    if not same or max(difference, along) > 1e-12 * n:
        raise SystemExit("the lengths differ")


if __name__ == "__main__":
    main()
