"""Curves and breaks out of samples: what `measure` makes numbers from. Pure functions."""

import bisect
import dataclasses
import heapq
import itertools
import math

TOLERANCE = 0.08  # of a straight line's prediction between two sizes, beyond which it is measured in between
CLOSEST = 1.1  # ratio of neighbouring sizes below which nothing is measured in between
SHORTEST = 256  # messages up to here differ in nothing that counts
JUMP = 0.15  # of the time before: from there on a step between close neighbours is a break


@dataclasses.dataclass
class Sample:
    """Median of some samples, and their spread: (third quartile - first) / median; of two (larger - smaller) / median;
    of a single one, of which nothing is known, 1.
    """

    value: float
    spread: float


def summary(samples):
    """The `Sample` of a list of numbers; None of an empty one."""
    import statistics  # where machines are measured alone

    if not samples:
        return None
    value = statistics.median(samples)
    if not value:
        return Sample(value, 0.0)
    if len(samples) < 3:
        return Sample(value, (max(samples) - min(samples)) / abs(value) if len(samples) == 2 else 1.0)
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Sample(value, (high - low) / abs(value))


def line(x, a, b):
    """The value at x of the straight line through two points (x, y)."""
    return a[1] + (x - a[0]) * (b[1] - a[1]) / (b[0] - a[0])


def interpolate(x, xs, ys):
    """y at x: straight lines between the points, the first and the last one continued."""
    if len(xs) == 1:
        return ys[0]
    at = min(max(bisect.bisect_right(xs, x), 1), len(xs) - 1)
    return line(x, (xs[at - 1], ys[at - 1]), (xs[at], ys[at]))


class Points:
    """Hold what is measured at each size so far. Others at work on the machine only add time: of two looks the shorter
    is right.
    """

    def __init__(self, sample):
        self.sample, self.found, self.looks = sample, {}, {}

    def look(self, size):
        """Measure at a size; False when no time is left."""
        one = self.sample(size)
        if one is None:
            return False
        self.looks[size] = self.looks.get(size, 0) + 1
        if size not in self.found or one.value < self.found[size].value:
            self.found[size] = one
        return True

    def wrong(self, a, middle, b):
        """Return by how much of itself the time in the middle is not on the line between two others."""
        at = self.found
        return abs(line(middle, (a, at[a].value), (b, at[b].value)) - at[middle].value) / at[middle].value


def find_points(sample, sizes, most=80, looks=3):
    """Measure at sizes, and between them where a straight line does not say what is measured.

    Parameters
    ----------
    sample : callable
        sample(size) -> `Sample`, or None when no time is left.
    sizes : list of int
        Ascending; measured first.
    most : int
        Sizes measured at most.
    looks : int
        Times that a size is measured at most, where it does not fit the others.

    Returns
    -------
    dict
        From size to `Sample`; ``sizes`` may be missing from where the time was over.
    """
    points = Points(sample)
    for size in sizes:
        if not points.look(size):
            return points.found
    # First every interval once, then where lines have been most wrong.
    doubts = [(-1e6, a, b) for a, b in itertools.pairwise(sizes)]
    while doubts and len(points.found) < most:
        _, a, b = heapq.heappop(doubts)
        middle = round(math.sqrt(a * b))
        if b <= max(CLOSEST * a, SHORTEST) or not a < middle < b:
            continue
        if not points.look(middle):
            break
        for again in range(1, looks):
            allowed = max(TOLERANCE, min(points.found[middle].spread / 4, 0.5))  # medians vary less than samples
            if points.wrong(a, middle, b) <= allowed:
                break
            if not all(points.look(size) for size in (a, middle, b) if points.looks[size] <= again):
                return points.found
        else:
            doubt = -points.wrong(a, middle, b)
            if -doubt > allowed:
                heapq.heappush(doubts, (doubt, a, middle))
                heapq.heappush(doubts, (doubt, middle, b))
    return points.found


def thinned(points, tolerance=TOLERANCE / 2):
    """The points (x, y) without those that a line between others tells well enough (Douglas and Peucker)."""
    if len(points) < 3:
        return list(points)
    a, b = points[0], points[-1]
    wrong, at = max((abs(line(p[0], a, b) - p[1]) / abs(p[1]), i) for i, p in enumerate(points[1:-1], 1))
    if wrong <= tolerance:
        return [a, b]
    return thinned(points[: at + 1], tolerance)[:-1] + thinned(points[at:], tolerance)


def breaks(points):
    """Sizes from which on messages use another protocol: the time steps up or down between close neighbours, and stays.

    ``points`` are (x, y), ascending, as `find_points` leaves them: steps have been closed in on.
    """
    steps = []
    for i in range(1, len(points)):
        a, b = points[i - 1], points[i]
        if b[0] > CLOSEST * a[0] + 8 or b[0] <= SHORTEST:
            continue
        # What the bytes alone explain: the flatter of the slopes before and after.
        near = [points[i - 2 : i]] * (i > 1) + [points[i : i + 2]] * (i + 1 < len(points))
        slope_s = max(min([(q[1] - p[1]) / (q[0] - p[0]) for p, q in near], default=0.0), 0.0)
        off = [q[1] - a[1] - slope_s * (q[0] - a[0]) for q in points[i : i + 3]]
        same_sign = all(o * off[0] > 0 and abs(o) > JUMP * a[1] for o in off)
        if same_sign:
            steps.append((abs(off[0]) / a[1], b[0]))
    # Several near each other are one, which samples saw at different sizes: the largest.
    found = []
    for _, at in sorted(steps, reverse=True):
        if all(max(at, other) > 1.5 * min(at, other) for other in found):
            found.append(at)
    return sorted(found)


def slope(few, many):
    """Seconds a unit out of samples at two amounts, ``(amount, [seconds])`` each: a `Sample`.

    What both have in common cancels: latency, and what is lent by buffers and token buckets. Of each the shortest:
    others at work on the machine only add time, and buckets are full at the begin."""
    (x, a), (y, b) = (few[0], sorted(few[1])), (many[0], sorted(many[1]))
    value = (b[0] - a[0]) / (y - x)
    each = [(q - p) / (y - x) for p, q in zip(a, b, strict=False)]
    return Sample(value, summary(each).spread if value else 0.0)
