"""Random spaces, tilings and dependences, and what isl says about them."""

import itertools
import math
import random
from fractions import Fraction

import islpy as isl

from docs.theory.tilings import Tiling


def isl_sum(coefficients, names, constant=0):
    terms = [f"{a}*{x}" for a, x in zip(coefficients, names, strict=True)]
    return " + ".join([*terms, str(constant)])


def tuple_of(names):
    return "[" + ",".join(names) + "]"


def names(letter, n):
    return [f"{letter}{k}" for k in range(n)]


def isl_points(s):
    """The points of an isl set, as a set of tuples."""
    found = set()
    n = s.dim(isl.dim_type.set)

    def add(point):
        coordinates = (point.get_coordinate_val(isl.dim_type.set, k) for k in range(n))
        found.add(tuple(int(v.to_python()) for v in coordinates))

    s.foreach_point(add)
    return found


def isl_loops(lower, upper):
    """The set of nested loops, each from its greatest lower to its least upper bound."""
    j = names("j", len(lower))
    conditions = [
        f"{sign}*({isl_sum(row[:-1], j[:k], row[-1])}) <= {sign}*{j[k]}"
        for sign, bounds in ((1, lower), (-1, upper))
        for k, rows in enumerate(bounds)
        for row in rows
    ]
    return isl.Set(f"{{ {tuple_of(j)} : {' and '.join(conditions)} }}")


def scaled_rows(h):
    """For each row of H its common denominator g and the integer row g H."""
    rows = []
    for row in h:
        g = 1
        for v in row:
            g = g * Fraction(v * g).denominator
        rows.append((g, [int(v * g) for v in row]))
    return rows


def floor_conditions(h, tile_names, points):
    """tile = floor(H point), where each component of the point is an isl expression."""
    return " and ".join(
        f"{g}*{t} <= {isl_sum(row, points)} < {g}*{t} + {g}"
        for (g, row), t in zip(scaled_rows(h), tile_names, strict=True)
    )


def isl_tile_map(h):
    n = len(h)
    j, t = names("j", n), names("t", n)
    return isl.Map(f"{{ {tuple_of(j)} -> {tuple_of(t)} : {floor_conditions(h, t, j)} }}")


def isl_tile_dependences(h, d):
    """Every floor(H (j + d)) - floor(H j) over all integer j and the columns of d."""
    n = len(h)
    j, t = names("j", n), names("t", n)
    found = set()
    for column in zip(*d, strict=True):
        moved = [f"({x} + {c})" for x, c in zip(j, column, strict=True)]
        # isl decides each value on its own, beyond the floor and ceiling of H d too.
        floors = [math.floor(sum(a * x for a, x in zip(row, column, strict=True))) for row in h]
        for delta in itertools.product(*(range(f - 1, f + 3) for f in floors)):
            later = [f"({x} + {v})" for x, v in zip(t, delta, strict=True)]
            both = f"{floor_conditions(h, t, j)} and {floor_conditions(h, later, moved)}"
            if not isl.BasicSet(f"{{ {tuple_of(j + t)} : {both} }}").is_empty():
                found.add(delta)
    return found


def det(m):
    if len(m) == 1:
        return m[0][0]
    return sum((-1) ** k * m[0][k] * det([row[:k] + row[k + 1 :] for row in m[1:]]) for k in range(len(m)))


def random_bounds(rng, n):
    """Lower and upper bounds of random loops: a box, cut by bounds that are affine in the outer indices."""
    size = 9 if n == 2 else 5
    lo = [rng.randint(-3, 3) for _ in range(n)]
    bounds = [[[[0] * k + [lo[k] + end]] for k, end in enumerate(ends)] for ends in ([0] * n, [size] * n)]
    for _ in range(rng.randint(0, 3)):
        k = rng.randrange(n)
        bounds[rng.randrange(2)][k].append([rng.randint(-2, 2) for _ in range(k)] + [lo[k] + rng.randint(0, size)])
    return bounds


def random_edges(rng, n, largest=4):
    """A regular integer P: rectangular half of the time, else skewed."""
    while True:
        p = [[rng.randint(1, largest) if x == k else 0 for x in range(n)] for k in range(n)]
        if rng.random() < 0.6:
            p = [[v or rng.randint(-2, 2) for v in row] for row in p]
        if det(p) != 0:
            return p


def random_h(rng, n):
    """A regular rational H with tiles of some points."""
    while True:
        entries = [Fraction(rng.randint(-2, 3), rng.choice([2, 3, 4, 6])) for _ in range(n * n)]
        h = [entries[k * n : (k + 1) * n] for k in range(n)]
        if 0 < abs(det(h)) <= 1:
            return h


def random_tiling(rng, n):
    if rng.random() < 0.6:
        return Tiling.from_p(random_edges(rng, n))
    return Tiling(random_h(rng, n))


def random_dependences(rng, n, count=2, least=-3, most=4):
    return [[rng.randint(least, most) for _ in range(count)] for _ in range(n)]


def seeded(seed):
    return random.Random(f"tilewave {seed}")
