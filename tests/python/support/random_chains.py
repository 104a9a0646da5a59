"""Random chains of nests over shared fields, and the same nests run one after another."""

import random

import numpy as np

import tilewave as tw
from nest_problems import random_grid
from tilewave.errors import ConfigError


@tw.nest
def sweep_1(u, i, *, c=1):
    u[i] = c * u[i] + u[i - 1] - 3 * u[i + 1]


@tw.nest
def apply_1(r, u, i):
    r[i] = 2 * u[i] - u[i - 2] + u[i + 1]


@tw.nest
def mix_1(r, u, v, i, *, c=1):
    r[i] = r[i] + c * u[i + 1] - v[i - 1]
    v[i] = v[i] + 1


@tw.nest
def sweep_2(u, i, j, *, c=1):
    u[i, j] = c * u[i, j] + u[i - 1, j] - u[i, j - 1] + 5 * u[i + 1, j] + u[i, j + 1]


@tw.nest
def apply_2(r, u, i, j):
    r[i, j] = u[i, j] - 4 * u[i - 1, j + 1] + u[i + 2, j] + u[i, j - 1]


@tw.nest
def mix_2(r, u, v, i, j, *, c=1):
    r[i, j] = r[i, j - 1] + c * u[i + 1, j] - v[i, j - 2]


@tw.nest
def down_2(u, v, i, j, *, d=2):
    u[i, j] = d * v[i, j] + u[i - 1, j]
    v[i, j] = u[i, j] - v[i, j]


@tw.nest
def sweep_3(u, i, j, k, *, c=1):
    u[i, j, k] = c * u[i - 1, j, k] + u[i, j - 1, k] - u[i, j, k - 1] + 7 * u[i, j, k + 1]


@tw.nest
def apply_3(r, u, i, j, k):
    r[i, j, k] = u[i, j, k] - 4 * u[i - 1, j, k + 1] + u[i, j + 1, k] + r[i, j, k]


@tw.nest
def mix_3(r, u, v, i, j, k, *, c=1):
    r[i, j, k] = c * u[i + 1, j, k] - v[i, j, k - 2] + v[i, j - 1, k]


@tw.nest
def heat_1(u, t, i, *, c=1):
    u[t + 1, i] = u[t, i] + c * u[t, i - 1] - 2 * u[t, i + 2]


@tw.nest
def relax_1(u, v, t, i):
    u[t + 1, i] = u[t + 1, i - 1] - u[t, i + 1] + v[i]


@tw.nest
def wave_1(u, t, i):
    u[t + 1, i] = 2 * u[t, i - 1] - u[t - 1, i] + u[t, i + 1] + t


@tw.nest
def heat_2(u, v, t, i, j, *, c=1):
    u[t + 1, i, j] = c * u[t, i, j] + u[t, i - 1, j] - u[t, i, j - 1] + 5 * u[t, i + 1, j] + v[i, j + 1]


@tw.nest
def relax_2(u, t, i, j, *, c=1):
    u[t + 1, i, j] = u[t + 1, i - 1, j] - c * u[t + 1, i, j - 1] + u[t, i + 1, j] + u[t, i, j + 1]


@tw.nest
def leap_2(u, v, t, i, j):
    v[t + 1, i, j] = v[t, i, j] + u[t, i, j] - u[t, i - 1, j]
    if t % 2 == 0:
        u[t + 1, i, j] = u[t, i, j] + v[t + 1, i, j] - v[t, i, j + 1]


@tw.nest
def wave_2(u, t, i, j):
    u[t + 1, i, j] = 2 * u[t, i, j] - u[t - 1, i, j] + u[t, i - 1, j] - u[t, i, j + 1]


#: The same of nests that step in time, and of those that read two steps.
STEPPING = {
    1: [(heat_1, [(1, 2)]), (relax_1, [(1, 1)])],
    2: [(heat_2, [(1, 1), (1, 1)]), (relax_2, [(1, 1), (1, 1)]), (leap_2, [(1, 0), (0, 1)])],
}
FARTHER = {1: (wave_1, [(1, 1)]), 2: (wave_2, [(1, 0), (0, 1)])}

#: By dimensions: nests, with how far they reach below and above a point along each.
NESTS = {
    1: [(sweep_1, [(1, 1)]), (apply_1, [(2, 1)]), (mix_1, [(1, 1)])],
    2: [
        (sweep_2, [(1, 1), (1, 1)]),
        (apply_2, [(1, 2), (1, 1)]),
        (mix_2, [(0, 1), (2, 0)]),
        (down_2, [(1, 0), (0, 0)]),
    ],
    3: [
        (sweep_3, [(1, 0), (1, 0), (1, 1)]),
        (apply_3, [(1, 0), (0, 1), (0, 1)]),
        (mix_3, [(0, 1), (1, 0), (2, 0)]),
    ],
}


class RandomChain:
    """A few nests with their arrays, loops and scalars; the same for the same seed."""

    def __init__(self, seed):
        self.seed, pick = seed, random.Random(seed)
        dims = pick.choice([1, 2, 2, 3])
        self.shape = tuple(pick.randint(4, {1: 60, 2: 24, 3: 10}[dims]) for _ in range(dims))
        self.dtype = pick.choice(["i8", "i8", "i4", "f8"])
        self.fields = pick.randint(3, 4)
        self.times = pick.choice([1, 1, 2, 3, 5])
        self.scalars = pick.choice([{}, {}, {"c": pick.randint(-3, 3)}])
        self.parts = []
        for _ in range(pick.randint(1, 5)):
            nest, reach = self.pick_nest(pick, dims)
            numbers = pick.sample(range(self.fields), len(nest.arrays))
            reverse = tuple(index for index in nest.indices if pick.random() < 0.3)
            over = {}
            for index, extent, (below, above) in zip(nest.indices[-dims:], self.shape, reach, strict=True):
                if pick.random() < 0.3:
                    low = pick.randint(below, extent - above)
                    over[index] = (low, pick.randint(low, extent - above))
            scalars = {name: pick.randint(-2, 2) for name in nest.scalars if pick.random() < 0.5}
            arguments = {"over": over or None, "reverse": reverse, **scalars}
            if nest.time is not None:
                arguments = {"over": over or None, "steps": pick.randint(1, 5), **scalars}
            if periodic := self.pick_periodic(pick, nest):
                kept = {index: pair for index, pair in over.items() if index not in periodic}
                arguments = {**arguments, "over": kept or None, "periodic": periodic}
                arguments.pop("reverse", None)
            if pick.random() < 0.4:
                name = pick.choice(nest.written)
                arguments["reduce"] = {"sum": tw.sum(name), "where": tw.argmax(name)}
            self.parts.append((nest, dict(zip(nest.arrays, numbers, strict=True)), arguments))
        if pick.random() < 0.3:
            self.parts.append(pick.choice(self.parts))  # one nest twice
        if {"c"} & self.scalars.keys() and not any("c" in nest.scalars for nest, *_ in self.parts):
            self.scalars = {}

    def pick_nest(self, pick, dims):
        """One of those for so many dimensions, with its reach."""
        return pick.choice(NESTS[dims])

    def pick_periodic(self, pick, nest):
        """Indices that wrap around."""
        return ()

    def start(self, number):
        """The first values of an array."""
        values = np.random.default_rng([self.seed, number]).integers(-9, 9, self.shape)
        return values.astype(self.dtype) * (0.125 if self.dtype == "f8" else 1)

    def arrays(self, context, numpy=False):
        """All of them, as fields or NumPy arrays."""
        starts = [self.start(number).astype(self.dtype) for number in range(self.fields)]
        return starts if numpy else [tw.field(start, context=context) for start in starts]

    def plans(self, ranks):
        """Choices for each nest: small tiles, and mostly one grid that cuts the arrays."""
        pick, dims = random.Random(f"plans {self.seed} {ranks}"), len(self.shape)
        grid, plans = random_grid(pick, ranks, dims, False) if pick.random() < 0.7 else None, []
        for nest, _, _ in self.parts:
            time = (1,) * (nest.time is not None)
            plan = {} if grid is None or pick.random() < 0.1 else {"grid": time + grid}
            if pick.random() < 0.5:
                plan["tile"] = time + tuple(pick.choice((1, 2, 3, 5, 8)) for _ in range(dims))
            if pick.random() < 0.3:
                plan["schedule"] = pick.choice(("blocking", "overlapping"))
            if pick.random() < 0.3:
                plan["lookahead"] = pick.choice((1, 2, 4))
            plans.append(plan)
        return plans

    def bind(self, arrays, context):
        """The chain."""
        bounds = []
        for (nest, given, arguments), plan in zip(self.parts, self.plans(context.size), strict=True):
            named = {name: arrays[k] for name, k in given.items()}
            try:
                bound = tw.bind(nest, **named, context=context, **arguments, plan=plan)
            except ConfigError:  # the plan is none for this nest, on all ranks
                bound = tw.bind(nest, **named, context=context, **arguments)
            bounds.append(bound)
        return tw.chain(bounds)

    def run_separately(self, arrays, context, times, scalars):
        """The meaning: each nest by itself. Returns the results of the last time."""
        for _ in range(times):
            results = []
            for nest, given, arguments in self.parts:
                own = {**arguments, **{name: value for name, value in scalars.items() if name in nest.scalars}}
                named = {name: arrays[k] for name, k in given.items()}
                results.append(tw.run(nest, **named, context=context, **own).results)
        return results

    def differs(self, context, numpy=False):
        """What is wrong, as text; empty where the chain gives what its nests give one after another."""
        ours, theirs = self.arrays(context, numpy), self.arrays(context, numpy)
        chain = self.bind(ours, context)
        for times, scalars in ((self.times, {}), (1, self.scalars), (self.times, {})):
            found = chain.run(times=times, scalars=scalars).reduced
            if repr(found) != repr(expected := self.run_separately(theirs, context, times, scalars)):
                return f"{self}: reductions {found} in place of {expected}; {chain.explain()}"
            for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                x, y = (a, b) if numpy else (a.gather(), b.gather())
                if x is not None and x.tobytes() != y.tobytes():
                    return f"{self}: array {number} differs after {times} times with {scalars}; {chain.explain()}"
        return ""

    def __str__(self):
        parts = "; ".join(f"{nest.name} {given} {arguments}" for nest, given, arguments in self.parts)
        return f"seed {self.seed}: {self.dtype} {self.shape}, {self.times} times: {parts}"


@tw.nest
def apart_1(r, u, v, i, *, c=1):
    r[i] = r[i] + c * u[i + 1] - v[i - 2]


@tw.nest
def apart_2(r, u, v, i, j, *, c=1):
    r[i, j] = r[i, j] - c * (u[i + 1, j] - u[i, j]) + v[i, j - 2] - v[i - 1, j + 1]


@tw.nest
def both_2(r, u, v, i, j):
    r[i, j] = v[i + 1, j] - 3 * v[i, j - 1]
    u[i, j] = u[i, j] + v[i - 2, j]


@tw.nest
def apart_3(r, u, i, j, k):
    r[i, j, k] = r[i, j, k] - u[i - 1, j, k] + 2 * u[i, j + 1, k] - u[i, j, k + 1]


#: Nests whose points of one time step are independent, with how far they reach.
INDEPENDENT = {
    1: [(apart_1, [(2, 1)]), (apply_1, [(2, 1)]), (heat_1, [(1, 2)])],
    2: [
        (apart_2, [(1, 1), (2, 1)]), (both_2, [(2, 1), (1, 0)]), (apply_2, [(1, 2), (1, 1)]),
        (heat_2, [(1, 1), (1, 1)]), (leap_2, [(1, 0), (0, 1)]),
    ],
    3: [(apart_3, [(1, 0), (0, 1), (0, 1)]), (apply_3, [(1, 0), (0, 1), (0, 1)])],
}


class PeriodicChain(RandomChain):
    """Most of whose nests have loops that wrap around: all of them the same ones, or each others."""

    def __init__(self, seed):
        self.around = None
        super().__init__(seed)

    def pick_nest(self, pick, dims):
        self.wraps = pick.random() < 0.8
        return pick.choice((INDEPENDENT if self.wraps else NESTS)[dims])

    def pick_periodic(self, pick, nest):
        if not self.wraps:
            return ()
        indices = nest.indices[nest.time is not None :]
        found = tuple(k for k in range(len(indices)) if pick.random() < 0.6)
        if self.around is None or pick.random() < 0.3:
            self.around = found
        return tuple(indices[k] for k in self.around)


class SteppingChain(RandomChain):
    """Some of whose nests step in time."""

    def __init__(self, seed):
        self.far = random.Random(f"far {seed}").random() < 0.4
        super().__init__(seed)

    def pick_nest(self, pick, dims):
        if dims > 2 or pick.random() < 0.4:
            return pick.choice(NESTS[dims])
        return FARTHER[dims] if self.far and pick.random() < 0.6 else pick.choice(STEPPING[dims])

    def arrays(self, context, numpy=False):
        """Fields; where nests read two steps, these have a step before the first."""
        history = [[self.start(10 + k).astype(self.dtype)] if self.far else [] for k in range(self.fields)]
        return [
            tw.field(self.start(k).astype(self.dtype), context=context, history=history[k]) for k in range(self.fields)
        ]
