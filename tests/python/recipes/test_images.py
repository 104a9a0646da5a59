"""Images and grids, against plain loops and SciPy."""

import heapq
import itertools

import numpy as np
import pytest
from local_ranks import results_of

import tilewave as tw
from tilewave import recipes

ndimage = pytest.importorskip("scipy.ndimage")


def some_shape(rng):
    dims = int(rng.integers(1, 4))
    return tuple(int(n) for n in rng.integers(1, (40, 14, 7)[dims - 1], dims))


def on_all(ranks, call, *arrays):
    """The result of a recipe, the same on every rank, of arrays and of fields."""

    def body(context):
        found = call(*arrays, context=context)
        fields = [tw.field(each, context=context) for each in arrays]
        return found, call(*fields, context=context)[...]

    found = results_of(ranks, 2, body)
    for of_arrays, of_fields in found:
        assert of_arrays.tobytes() == of_fields.tobytes() == found[0][0].tobytes()
        assert type(of_arrays) is np.ndarray
    return found[0][0]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_summed_areas(ranks, seed):
    rng = np.random.default_rng(seed)
    image = rng.random(some_shape(rng))
    for each in (image, image.astype("f4"), (image * 256).astype("u1"), image > 0.5):
        wanted = each.astype("f8" if each.dtype.kind == "f" else "i8")
        for axis in range(each.ndim):
            wanted = wanted.cumsum(axis)
        found = on_all(ranks, recipes.integral_image, each)
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted), (seed, each.shape, each.dtype)


def dijkstra(cost, start, spacing):
    T, heap = start.copy(), [(t, at) for at, t in np.ndenumerate(start) if t < np.inf]
    heapq.heapify(heap)
    while heap:
        t, at = heapq.heappop(heap)
        for step in itertools.product((-1, 0, 1), repeat=cost.ndim):
            to = tuple(np.add(at, step))
            if any(step) and all(0 <= x < n for x, n in zip(to, cost.shape)):
                new = t + np.linalg.norm(np.multiply(step, spacing)) * (cost[at] + cost[to]) / 2
                if t == T[at] and new < T[to]:
                    T[to] = new
                    heapq.heappush(heap, (new, to))
    return T


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_least_costs(ranks, seed):
    rng = np.random.default_rng(seed)
    shape = some_shape(rng)
    cost, spacing = rng.random(shape), rng.random(len(shape)) + 0.5
    cost[rng.random(shape) < 0.3] = np.inf
    sources = rng.random(shape) < 0.1
    sources.flat[rng.integers(sources.size)] = True
    start = np.where(sources, 0.0, np.inf)
    found = on_all(ranks, lambda c, s, context: recipes.cost_distance(c, s, spacing, context=context), cost, sources)
    np.testing.assert_allclose(found, dijkstra(cost, start, spacing), 1e-12, err_msg=f"seed {seed}, {shape}")
    start += rng.random(shape)
    found = recipes.cost_distance(cost, start, tuple(spacing))
    np.testing.assert_allclose(found, dijkstra(cost, start, spacing), 1e-12)


def test_a_maze_takes_many_sweeps():
    """A spiral of walls: sweeps go on until its end is reached."""
    cost = np.ones((25, 25))
    for ring in range(1, 12, 2):
        cost[ring, ring:25-ring] = cost[24-ring, ring:25-ring] = np.inf
        cost[ring:25-ring, ring] = cost[ring:25-ring, 24-ring] = np.inf
        cost[(ring + 1, ring) if ring % 4 == 1 else (23 - ring, 24 - ring)] = 1
    sources = np.zeros((25, 25), bool)
    sources[0, 0] = True
    found = recipes.cost_distance(cost, sources)
    assert np.isfinite(found[12, 12])
    np.testing.assert_allclose(found, dijkstra(cost, np.where(sources, 0.0, np.inf), (1, 1)))


def plain_front(speed, start, spacing):
    """Each point from what lies around it, in rounds, until nothing changes: the largest root of the upwind scheme."""
    T = np.pad(start, 1, constant_values=np.inf)
    while True:
        before = T.copy()
        for at, value in np.ndenumerate(speed):
            at = tuple(np.add(at, 1))
            near = []
            for d, h in enumerate(spacing):
                step = np.eye(len(spacing), dtype=int)[d]
                near.append((min(T[tuple(at - step)], T[tuple(at + step)]), h))
            near.sort()
            new = np.inf
            for k in range(1, len(near) + 1):
                a, w = np.array([x for x, _ in near[:k]]), np.array([1 / h**2 for _, h in near[:k]])
                if not value or not np.isfinite(a).all() or a[-1] >= new:
                    break
                A, B, C = w.sum(), (w * a).sum(), (w * a * a).sum() - 1 / value**2
                new = (B + np.sqrt(max(B * B - A * C, 0))) / A
            T[at] = min(T[at], new)
        if np.allclose(T, before, 1e-14, 0):
            return T[(slice(1, -1),) * speed.ndim]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_arrival_times(ranks, seed):
    rng = np.random.default_rng(seed)
    dims = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, (30, 9, 5)[dims - 1], dims))
    speed, spacing = rng.random(shape) + 0.2, rng.random(dims) + 0.5
    speed[rng.random(shape) < 0.2] = 0
    start = np.full(shape, np.inf)
    start.flat[rng.integers(start.size)] = 0.0
    found = on_all(ranks, lambda v, s, context: recipes.eikonal(v, s, spacing, context=context), speed, start)
    np.testing.assert_allclose(found, plain_front(speed, start, spacing), 1e-9, err_msg=f"seed {seed}, {shape}")


def test_a_plane_front_is_exact_and_a_round_one_of_first_order():
    sources = np.zeros((20, 30), bool)
    sources[0] = True
    found = recipes.eikonal(np.full((20, 30), 2.0), sources)
    np.testing.assert_allclose(found, np.add.outer(np.arange(20) / 2, np.zeros(30)))
    sources[...] = False
    sources[10, 10] = True
    exact = np.hypot(*(np.indices(sources.shape) - 10))
    assert abs(recipes.eikonal(np.ones((20, 30)), sources) - exact).max() < 1.2


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_distances_are_those_of_scipy(ranks, seed):
    rng = np.random.default_rng(seed)
    shape = some_shape(rng)
    image = rng.random(shape) < 0.9
    image.flat[rng.integers(image.size)] = False
    spacing = rng.random(len(shape)) + 0.5
    found = on_all(ranks, recipes.distance_transform, image)
    assert np.array_equal(found, ndimage.distance_transform_edt(image)), (seed, shape)
    found = recipes.distance_transform(image.astype("i4"), spacing)
    np.testing.assert_allclose(found, ndimage.distance_transform_edt(image, spacing), 1e-13)
    assert np.isinf(recipes.distance_transform(np.ones(shape))).all()


def test_what_images_refuse():
    def refused(text, call):
        with pytest.raises(tw.ConfigError, match=text):
            call()

    one, source = np.ones((3, 3)), np.eye(3) > 0
    refused("integral_image: image: given elements of complex128", lambda: recipes.integral_image(one * 1j))
    refused("cost_distance: cost: given numbers below 0", lambda: recipes.cost_distance(-one, source))
    refused("cost_distance: sources: given shape", lambda: recipes.cost_distance(one, source[:2]))
    refused("eikonal: speed: given numbers below 0, or NaN", lambda: recipes.eikonal(one * np.nan, source))
    refused("eikonal: spacing: given 0", lambda: recipes.eikonal(one, source, 0))
    refused("distance_transform: spacing", lambda: recipes.distance_transform(one, (1.0, 2.0, 3.0)))
    refused("distance_transform: image: given shape", lambda: recipes.distance_transform(np.ones((2, 2, 2, 2))))
