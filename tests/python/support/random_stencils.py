"""Random stencils in time, plans for them, and the plain loops that define them, as NumPy expressions."""

import dataclasses
import itertools
import math
import random
import re

import numpy as np

import tilewave as tw
from tilewave import _core

NAMES = ("i", "j", "k")
MOST_EXTENT = {1: 26, 2: 11, 3: 7}


@dataclasses.dataclass
class StencilCase:
    """What a run is given; `text` is the body."""

    seed: int
    text: str
    shape: tuple
    periodic: tuple
    over: dict
    steps: int
    dtype: str
    terms: dict  # from each written array to (factor, array, steps back or None, offsets)
    as_field: bool  # what is only read
    ranks: int
    lanes: int
    choices: dict
    halo: tuple | None = None  # of the fields, for kernels of one's own
    reverse: tuple = ()

    def __str__(self):
        return (
            f"seed {self.seed}: {self.text!r} on {self.shape} {self.dtype}, periodic {self.periodic}, "
            f"over {self.over}, "
            f"{self.steps} steps, {self.ranks} ranks, {self.lanes} lanes, halo {self.halo}, "
            f"reverse {self.reverse}, {self.choices}"
        )

    def nest(self):
        back = {"t+1": "t-1", "t-1": "t+1"} if self.reverse else {}  # the same, in time that runs backwards
        return tw.nest_from(re.sub("t[+-]1", lambda found: back.get(found[0], found[0]), self.text))

    def start(self):
        """The arrays by name, before the run."""
        rng = np.random.default_rng(self.seed)
        values = {name: rng.random(self.shape) * 100 for name in (*self.terms, "c")}
        if np.dtype(self.dtype).kind == "c":
            values = {name: real + 1j * (100 * rng.random(self.shape) - 50) for name, real in values.items()}
        return {name: value.astype(self.dtype) for name, value in values.items()}

    def fields(self, context=None):
        """What a run is given."""
        halo = {} if self.halo is None else {"halo": self.halo}
        return {
            name: value
            if name == "c" and not self.as_field
            else tw.field(self.shape, self.dtype, value, context=context, **halo)
            for name, value in self.start().items()
        }

    def ranges(self):
        """The half-open range of each loop."""
        ranges = []
        for k, (name, n) in enumerate(zip(NAMES, self.shape)):
            offsets = [o[k] for terms in self.terms.values() for *_, o in terms] + [0]
            low, high = (0, n) if name in self.periodic else (-min(offsets), n - max(offsets))
            low, high = low, max(low, high)
            ranges.append(self.over.get(name, (low, high)))
        return ranges

    def expected(self):
        """The written arrays after the steps."""
        arrays, ranges = self.start(), self.ranges()
        times = {name: [arrays[name]] * 4 for name in self.terms}  # the latest last
        inside = np.ix_(*(np.arange(low, high) for low, high in ranges))

        def read(name, back, offsets):
            source = arrays["c"] if back is None else times[name][-1 - back]
            at = [np.arange(low + o, high + o) for (low, high), o in zip(ranges, offsets)]
            at = [a % n if name_ in self.periodic else a for a, n, name_ in zip(at, self.shape, NAMES)]
            return source[np.ix_(*at)]

        with np.errstate(all="ignore"):
            for _ in range(self.steps):
                now = {}
                for name, terms in self.terms.items():
                    value = np.zeros([max(high - low, 0) for low, high in ranges], self.dtype)
                    for factor, array, back, offsets in terms:
                        value = value + np.asarray(factor, self.dtype) * read(array, back, offsets)
                    now[name] = times[name][-1].copy()
                    now[name][inside] = value
                for name, array in now.items():
                    times[name] = [*times[name][1:], array]
        return {name: levels[-1] for name, levels in times.items()}


def stencil_case(seed, periodic=None, most_dims=3):
    rng = random.Random(seed)
    dims = rng.randint(1, most_dims)
    names = NAMES[:dims]
    written = ["u", "v"][: rng.choice((1, 1, 2))]
    wraps = tuple(name for name in names if (rng.random() < 0.6 if periodic is None else periodic))
    radius = rng.choice((0, 1, 1, 2, 3, 4))
    shape = tuple(
        rng.choice((1, 2, 3, MOST_EXTENT[dims]))
        if name in wraps and rng.random() < 0.3
        else rng.randint(2 + 2 * radius * (name not in wraps), MOST_EXTENT[dims] + 2 * radius)
        for name in names
    )
    dtype = rng.choice(("i8", "f4", "f8", "c8", "c16"))
    beside_in_history = rng.random() < 0.2

    def offsets(most):
        if rng.random() < 0.6:  # along one axis
            k = rng.randrange(dims)
            return tuple(rng.randint(-most, most) if d == k else 0 for d in range(dims))
        return tuple(rng.randint(-most, most) for _ in range(dims))

    terms = {}
    for name in written:
        terms[name] = [(1, name, 0, (0,) * dims)]
        for _ in range(rng.randint(1, 5)):
            back = rng.choice((0, 0, 0, 1, None))
            array = "c" if back is None else rng.choice(written)
            most = radius if back != 1 or beside_in_history else 0
            terms[name].append((rng.randint(1, 5), array, back, offsets(most)))
        if not wraps:  # what reads ahead alone is kept in one time buffer, and is no stencil
            terms[name].append((1, name, 0, (*(0,) * (dims - 1), -1)))
    terms[written[0]].append((2, "c", None, (0,) * dims))

    def subscript(offset):
        return ", ".join(f"{n}{o:+d}" if o else n for n, o in zip(names, offset))

    lines = []
    for name, own in terms.items():
        value = " + ".join(
            f"{factor} * {array}[{'' if back is None else 't, ' if back == 0 else 't-1, '}{subscript(o)}]"
            for factor, array, back, o in own
        )
        lines.append(f"    {name}[t+1, {', '.join(names)}] = {value}")
    text = f"def step({', '.join(written)}, c, t, {', '.join(names)}):\n" + "\n".join(lines) + "\n"
    steps = rng.choice((1, 2, 3, 5, 7))
    case = StencilCase(seed, text, shape, wraps, {}, steps, dtype, terms, rng.random() < 0.5, 1, 1, {})
    for (name, n), (low, high) in zip(zip(names, shape), case.ranges()):
        if high - low > 2 and rng.random() < 0.2:
            case.over[name] = (low + 1, high - rng.randint(0, 1))
    random_plan(rng, case)
    if random.Random(f"backwards {seed}").random() < 0.25:
        case.reverse = ("t",)
    if rng.random() < 0.2:
        case.halo = tuple(rng.choice((0, 1, (1, 2), 3)) for _ in names)
    if rng.random() < 0.1:
        case.choices = {}  # as planned
    return case


def random_plan(rng, case):
    """Choices that fix the plan; sometimes ranks have points in proportion to weights, and planned tiles then."""
    dims = len(case.shape)
    case.ranks = rng.choice((1, 2, 3, 4, 6))
    case.lanes = rng.choice((1, 1, 2, 3, 4))
    grid, factors = random_factors(rng, case.ranks, dims), random_factors(rng, case.lanes, dims)
    blocks = [max(1, max_block(n, g, range_)) for n, g, range_ in zip(case.shape, grid, case.ranges())]
    case.choices = {
        "generator": "stencil",
        "mapping_dim": 0,
        "grid": (1, *grid),
        "factors": (1, *factors),
        "tile": (1, *(rng.randint(1, most) for most in blocks)),
        "temporal_block": rng.choice((1, 1, 2, 3)),
        "schedule": rng.choice(("overlapping", "overlapping", "blocking")),
        "chunk_bytes": rng.choice((16, 256, 1 << 18)),
        "helper": rng.random() < 0.1,
    }
    weights = random.Random(f"weights {case.seed}")
    if weights.random() < 0.4:
        case.choices["weights"] = tuple(weights.choice((1, 2, 5, 40)) for _ in range(case.ranks))
        del case.choices["tile"]


def max_block(extent, parts, range_):
    """Points of the largest block."""
    starts = [p * (extent // parts) + min(p, extent % parts) for p in range(parts + 1)]
    if parts == 1:
        return range_[1] - range_[0]
    return max(min(end, range_[1]) - max(start, range_[0]) for start, end in itertools.pairwise(starts))


def random_factors(rng, product, dims):
    ways = [f for f in itertools.product(range(1, product + 1), repeat=dims) if math.prod(f) == product]
    return rng.choice(ways)


def stencil_problem(extents, offsets, steps, periodic):
    dims = len(extents)
    low = [0 if periodic else max(0, *(-o[k] for o in offsets)) for k in range(dims)]
    high = [n if periodic else n - max(0, *(o[k] for o in offsets)) for k, n in enumerate(extents)]
    accesses = [(0, (1, *(0,) * dims), True, False)] + [(0, (0, *o), False, False) for o in offsets]
    return _core.SweepProblem(
        (steps, *extents),
        ((0, *low), (steps, *high)),
        [(8, False, extents, tuple(range(1, dims + 1)), 2, False)],
        accesses,
        [],
        [False] * (dims + 1),
        False,
        (0, *(1,) * dims) if periodic else (),
    )


def stencil_plan(grid, tile, together=1, schedule="overlapping"):
    plan = _core.Plan()
    plan.generator, plan.grid, plan.factors, plan.tile = "stencil", (1, *grid), (1,) * (1 + len(grid)), (1, *tile)
    plan.temporal_block, plan.schedule = together, schedule
    return plan
