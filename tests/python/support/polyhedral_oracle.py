"""Random spaces, tilings and dependences, and what isl says about them."""

import itertools
import math
import random
from fractions import Fraction

import islpy as isl


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


def isl_space(rows):
    """The set of the rows (a, c): a.j + c >= 0."""
    j = names("j", len(rows[0]) - 1)
    conditions = " and ".join(isl_sum(r[:-1], j, r[-1]) + " >= 0" for r in rows)
    return isl.Set(f"{{ {tuple_of(j)} : {conditions} }}")


def rationally_empty(at_least_zero):
    """Whether no rational x has a.x + c >= 0 for all rows (a, c): no integer (x s, s >= 1)."""
    n = len(at_least_zero[0])
    return isl_space([[*r, 0] for r in at_least_zero] + [[0] * (n - 1) + [1, -1]]).is_empty()


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


def random_rows(rng, n):
    """Constraint rows of a random space: a box, a triangle, a band or a trapezoid, moved."""
    at, size = [rng.randint(-3, 3) for _ in range(n)], 9 if n == 2 else 5
    rows = []
    for k in range(n):
        unit = [int(x == k) for x in range(n)]
        rows.append([*unit, -at[k]])
        rows.append([*(-x for x in unit), at[k] + rng.randint(0, size)])
    for _ in range(rng.randint(0, 3)):
        a = [rng.randint(-3, 3) for _ in range(n)]
        rows.append([*a, rng.randint(0, size) - sum(x * y for x, y in zip(a, at, strict=True))])
    rng.shuffle(rows)
    return rows


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


def random_tiling(rng, n, core):
    if rng.random() < 0.6:
        return core.Tiling.from_p(random_edges(rng, n))
    return core.Tiling(random_h(rng, n))


def random_dependences(rng, n, count=2, least=-3, most=4):
    return [[rng.randint(least, most) for _ in range(count)] for _ in range(n)]


def seeded(seed):
    return random.Random(f"tilewave {seed}")
