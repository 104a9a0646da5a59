"""Random problems for random nests: shapes, values, bounds, directions, time steps, plans."""

import dataclasses
import random
import types

import numpy as np

from nest_generator import TABLE_EXTENT, write_body
from tilewave.nest.bounds import Bounds, loop_bounds
from tilewave.errors import ConfigError
from plain_loops import plain_loops

PROBLEMS_OF_A_BODY = 2  # one text to read and, where dtypes and scalars agree, to compile
LONGEST = {1: 40, 2: 16, 3: 10, 4: 6}  # loops of about a thousand points

HEADER = """\
import numpy as np
import tilewave


def declared(function):
    try:
        return tilewave.nest(function)
    except tilewave.ConfigError as error:  # refused: what there is to run of it
        return error
"""


@dataclasses.dataclass
class Problem:
    """A nest and all that it is run with."""

    seed: int
    body: object
    arrays: dict  # start values
    scalars: dict
    over: str  # as text, for people
    reverse: tuple
    steps: int
    bounds: Bounds
    as_numpy: set  # inputs that are given as NumPy arrays
    runs: int  # in a row, each on what the one before left
    kinds: set
    history: dict = dataclasses.field(
        default_factory=dict
    )  # of written arrays: the time steps before the first, the latest first

    @property
    def written(self):
        return [name for name, array in self.body.arrays.items() if array.role == "written"]

    @property
    def keywords(self):
        """over=, reverse=, steps= of a run; what has its default is left out."""
        given = {"over": eval(self.over), "reverse": self.reverse, "steps": self.steps}
        return {name: value for name, value in given.items() if value is not None and value != ()}

    def plain(self, function):
        """The written arrays after plain loops over `function`."""
        arrays = {name: array.copy() for name, array in self.arrays.items()}
        nest = types.SimpleNamespace(function=function, scalars=self.body.scalars, **vars(stand_in(self.body)))
        history = self.buffers_before()
        for _ in range(self.runs):
            plain_loops(nest, self.bounds, arrays, self.scalars, self.reverse, self.steps, history)
        return {name: arrays[name] for name in self.written}

    def buffers_before(self, without=()):
        """Of each written array the time steps before the first that the nest reads or the array is given: copies, to
        be changed.
        """
        found = {}
        for name in self.written if self.steps is not None else ():
            given = self.history.get(name, []) if name not in without else []
            depth = max(len(given), -min(offsets[0] for offsets in self.body.arrays[name].offsets))
            found[name] = [level.copy() for level in [*given, *[self.arrays[name]] * (depth - len(given))]]
        return found

    def __str__(self):
        arrays = ", ".join(
            f"{n}: {a.dtype.name}{list(a.shape)}{' NumPy' if n in self.as_numpy else ''}"
            for n, a in self.arrays.items()
        )
        return (
            f"{self.body.text}\narrays {arrays}\nscalars {self.scalars}, over={self.over}, "
            f"reverse={self.reverse}, steps={self.steps}, {self.runs} run(s)\nloops over {self.bounds.box}, "
            f"constraints {self.bounds.constraints}"
        )


def make_problem(seed):
    """The problem of a seed."""
    rng = random.Random(f"problem {seed}")
    body = write_body(seed // PROBLEMS_OF_A_BODY, f"body_{seed // PROBLEMS_OF_A_BODY}")
    kinds = set(body.kinds)
    steps = None
    if body.timed and rng.random() < 0.85:
        steps = rng.randint(1, 5)
    elif body.timed:
        kinds.add("time buffers kept as an axis")
    shapes = random_shapes(rng, body, steps, kinds)
    allowed = allowed_box(stand_in(body), {n: s for n, s in shapes.items() if body.arrays[n].role != "table"}, steps)
    over, bounds = random_bounds(rng, body, allowed, steps, kinds)
    reverse = tuple(n for n in body.indices[steps is not None :] if rng.random() < 0.5) if rng.random() < 0.35 else ()
    if reverse:
        kinds |= {"reverse", "reverse in time"} if steps else {"reverse"}
    arrays = random_values(rng, body, shapes, kinds)
    scalars = {}
    if "c" in body.scalars and (body.scalars["c"] is None or rng.random() < 0.5):
        # One type a body, so that its problems share a kernel.
        scalars["c"] = random.Random(body.text).choice((0.3, -0.25, np.float32(0.2)))
    if "m" in body.scalars and (body.scalars["m"] is None or rng.random() < 0.5):
        scalars["m"] = rng.randint(0, 3)
    as_numpy = set()
    for name, array in body.arrays.items():
        if array.role in ("table", "index") or array.role == "input" and rng.random() < 0.5:
            as_numpy.add(name)
    if next(bounds.points(), None) is None:
        kinds.add("no points")
    runs = 2 if rng.random() < 0.2 else 1
    if runs > 1:
        kinds.add("run twice")
    problem = Problem(seed, body, arrays, scalars, over, reverse, steps, bounds, as_numpy, runs, kinds)
    if steps is not None:
        give_history(random.Random(f"history {seed}"), problem)
    return problem


def give_history(rng, problem):
    """Give some written arrays time steps before the first one, mostly those whose nest reads them."""
    for name in problem.written:
        array = problem.arrays[name]
        depth = max(0, -min(offsets[0] for offsets in problem.body.arrays[name].offsets))
        if rng.random() < (0.7 if depth else 0.1):
            # Values of the array itself: of its dtype, and as near to it as an array's are.
            problem.history[name] = [
                np.roll(array.ravel(), k).reshape(array.shape)
                for k in range(1, 1 + rng.choice((depth or 1, depth + 1)))
            ]
            problem.kinds.add("history given")


def stand_in(body):
    """What the plain loops and the box need to know of a nest, from its writer."""
    looped = {name: array for name, array in body.arrays.items() if array.role != "table"}
    places = [
        types.SimpleNamespace(array=name, offsets=offsets, axes=axes)
        for name, array in looped.items()
        for axes, offsets in sorted(array.places)
    ]
    return types.SimpleNamespace(indices=body.indices, time=body.indices[0] if body.timed else None, places=places)


def allowed_box(nest, shapes, steps):
    """For each index the largest half-open range in which every access is inside its array."""
    lows, highs = {name: [] for name in nest.indices}, {name: [] for name in nest.indices}
    for place in nest.places:
        axes, offsets = place.axes, place.offsets
        if steps is not None and axes[0] == nest.time:
            axes, offsets = axes[1:], offsets[1:]
        for name, offset, extent in zip(axes, offsets, shapes[place.array], strict=True):
            lows[name].append(-offset)
            highs[name].append(extent - offset)
    if steps is not None:
        lows[nest.time], highs[nest.time] = [0], [steps]
    return tuple((max(lows[name]), max(max(lows[name]), min(highs[name]))) for name in nest.indices)


def random_shapes(rng, body, steps, kinds):
    """Shapes of all arrays; they leave a box of the wanted extents, the time axis dropped for steps."""
    longest = LONGEST[len(body.indices)]
    looped = [array for array in body.arrays.values() if array.role != "table"]
    low, reach, extents = {}, {}, {}
    for k, name in enumerate(body.indices):
        steps_of = [
            step
            for array in looped
            for axes, offsets in array.places
            for axis, step in zip(axes, offsets, strict=True)
            if axis == name
        ]
        low[name] = max(-step for step in steps_of)
        reach[name] = max(step for step in steps_of)
        extents[name] = rng.choice((rng.randint(1, longest), *3 * (rng.randint(longest // 2, longest),)))
        if body.timed and k == 0:
            extents[name] = rng.randint(1, 4)
    uneven = rng.random() < 0.3
    if uneven:
        kinds.add("arrays of different extents")
    shapes = {}
    for array in body.arrays.values():
        if array.role == "table":
            shapes[array.name] = tuple(array.extent if axis is None else TABLE_EXTENT for axis in array.axes)
            continue
        first = 1 if steps is not None and body.timed and array.axes[0] == body.indices[0] else 0
        names_of = zip(*(axes[first:] for axes, _ in array.places))
        shape = [max(low[n] + extents[n] + reach[n] for n in names) for names in names_of]
        shapes[array.name] = tuple(max(n + (rng.randint(0, 2) if uneven else 0), 1) for n in shape)
    return shapes


def random_values(rng, body, shapes, kinds):
    numbers = np.random.default_rng(rng.randrange(2**32))
    all_floats = all(array.is_float for array in body.arrays.values())
    nans = all_floats and rng.random() < 0.3  # what an int becomes of NaN is open
    arrays = {}
    for array in body.arrays.values():
        shape, dtype = shapes[array.name], np.dtype(array.dtype)
        if array.role == "index":
            low = 0 if dtype.kind == "u" else -array.extent
            values = numbers.integers(low, array.extent, shape)
        elif array.is_float:
            values = numbers.uniform(-1, 1, shape)
            values[numbers.random(shape) < 0.05] = -0.0
        else:
            limits = np.iinfo(dtype)
            values = numbers.integers(max(limits.min, -1000), min(limits.max, 1000), shape, endpoint=True)
        if nans and array.role != "table":
            values[numbers.random(shape) < 0.04] = np.nan
        arrays[array.name] = values.astype(dtype)
    if nans:
        kinds.add("NaN")
    return arrays


# Bounds.


def random_bounds(rng, body, allowed, steps, kinds):
    """(over= as text, its Bounds)."""
    kind = rng.random()
    first = 1 if steps is not None else 0
    loops = range(first, len(body.indices))
    if kind < 0.35:
        return "None", loop_bounds(body.indices, allowed)
    over, used = {}, set()
    for k in rng.sample(list(loops), rng.randint(1, len(loops))):
        outer = list(range(first if rng.random() < 0.8 else 0, k))
        text, what = random_pair(rng, body.indices, allowed, k, outer if kind > 0.5 else [])
        over[body.indices[k]], used = text, used | what
    text = "{" + ", ".join(f'"{name}": {pair}' for name, pair in over.items()) + "}"
    try:
        bounds = loop_bounds(body.indices, allowed, eval(text))
    except ConfigError:  # cut to the arrays: then they can be read
        over = {name: clipped(pair, allowed[body.indices.index(name)]) for name, pair in over.items()}
        text = "{" + ", ".join(f'"{name}": {pair}' for name, pair in over.items()) + "}"
        bounds = loop_bounds(body.indices, allowed, eval(text))
        used.add("bounds as lists")
    kinds |= used
    kinds.add("over")
    if used & {"triangle", "band"} and steps is not None:
        kinds.add("affine bounds in time")
    return text, bounds


def random_pair(rng, indices, allowed, k, outer):
    """(text of one index's bounds, kinds)."""
    low, high = allowed[k]
    if not outer or rng.random() < 0.15:
        first = rng.randint(low, low + (high - low) // 3)
        return f"({first}, {rng.randint(max(first, high - (high - low) // 3), high)})", {"narrowed"}
    m = rng.choice(outer)
    name, factor = indices[m], rng.choice((1, 1, 1, 1, -1, 2, -2))
    text = {1: name, -1: f"-{name}", 2: f"2*{name}", -2: f"-2*{name}"}[factor]
    used = {f"bounds with factor {factor}"}
    if len(outer) > 1 and rng.random() < 0.2:
        text += " + " + indices[rng.choice([n for n in outer if n != m])]
        used.add("bounds with two indices")
    # A constant such that the line crosses the box.
    middle = sum(allowed[m]) // 2 * factor
    shift = (low + high) // 2 - middle + rng.randint(-2, 2)
    kind = rng.choice(("lower", "upper", "band"))
    width = rng.randint(1, 4)
    first, end = (f"{text} {shift + d:+d}" for d in (0 if kind != "band" else -width, width if kind == "band" else 1))
    if rng.random() < 0.4:
        used.add("bounds as functions")
        names = [n for n in indices if n in text]
        first, end = (f"lambda {', '.join(names)}: {bound}" for bound in (first, end))
    else:
        first, end = f'"{first}"', f'"{end}"'
    pair = {"lower": (first, high), "upper": (low, end), "band": (first, end)}[kind]
    return f"({pair[0]}, {pair[1]})", used | {"band" if kind == "band" else "triangle"}


def clipped(pair, limits):
    """The text of a pair with the limits put beside each bound."""
    if pair.startswith("(lambda"):
        first, _, end = pair[1:-1].rpartition(", lambda") if ", lambda" in pair else pair[1:-1].rpartition(", ")
        end = f"lambda{end}" if ", lambda" in pair else end
    else:
        first, end = pair[1:-1].split(", ", 1)
    return f"(({first}, {limits[0]}), ({end}, {limits[1]}))"


# Plans.


def random_plan(seed, ranks, rank, timed):
    """Choices that fix some of a run's plan."""
    rng = random.Random(f"plan {seed}")
    plan = {"threads": rng.randint(1, 3)}
    if rng.random() < 0.6:
        plan["tile"] = tuple(rng.choice((1, 2, 3, 4, 5, 8, 16)) for _ in range(rank))
    if rng.random() < 0.4:
        plan["grouping"] = rng.choice(("hyperplane", "vertical"))
    if rng.random() < 0.4:
        plan["schedule"] = rng.choice(("blocking", "overlapping"))
    if rng.random() < 0.4:
        plan["lookahead"] = rng.choice((1, 2, 4))
    if rng.random() < 0.15:
        plan["grid"] = random_grid(rng, ranks, rank, timed)
    if rng.random() < 0.5:
        plan["temporal_block"] = rng.choice((2, 3, 8))
    if rng.random() < 0.2 and rank > 1:
        plan["skew"] = tuple(sorted(rng.sample(range(rank), 2)))
    weights = random.Random(f"weights {seed}")
    if weights.random() < 0.3:
        plan["weights"] = tuple(weights.choice((1, 2, 5, 100)) for _ in range(ranks))
    plan.update(random_messages(random.Random(f"messages {seed}"), ranks, rank, timed, "grid" in plan))
    return plan


def random_messages(rng, ranks, rank, timed, cut):
    """How messages go, and sometimes a grid of fewer ranks than there are."""
    found = {}
    if rng.random() < 0.2:
        found["helper"] = True
    if rng.random() < 0.2:
        found["poll_period_s"] = rng.choice((0.0, 1e-6, 1e-3))
    if rng.random() < 0.2:
        found["synchronous"] = rng.random() < 0.5
    if not cut and ranks > 1 and rng.random() < 0.2:
        found["grid"] = random_grid(rng, rng.randint(1, ranks - 1), rank, timed)
    return found


def random_grid(rng, ranks, rank, timed):
    """Ranks along each index; time is not spread."""
    grid, left = [1] * rank, ranks
    for factor in (2, 3, 2):
        if left % factor == 0 and left > 1:
            grid[rng.randrange(timed, rank)] *= factor
            left //= factor
    return tuple(grid)
