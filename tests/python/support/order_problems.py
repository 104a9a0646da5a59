"""Random nests that read arrays in several orders of their subscripts, with shapes whose dimensions all differ."""

import dataclasses
import itertools
import random

import numpy as np

import tilewave as tw


@dataclasses.dataclass
class Access:
    axes: tuple
    offsets: tuple

    def text(self, name):
        parts = (f"{axis}{offset:+d}" if offset else axis for axis, offset in zip(self.axes, self.offsets))
        return f"{name}[{', '.join(parts)}]"


@dataclasses.dataclass
class Problem:
    """A nest with values, bounds, directions, and a run of its own loops.

    `accesses` has all of each array; the written one is the first. Where `steps` is not None, index t is time.
    """

    seed: int
    text: str
    indices: str
    accesses: dict
    arrays: dict
    lacking: set  # arrays without a dimension for time, in which they are subscripted
    over: dict
    reverse: tuple
    steps: int

    def __str__(self):
        shapes = ", ".join(f"{name} {array.dtype}{array.shape}" for name, array in self.arrays.items())
        return f"seed {self.seed}: {shapes}, over {self.over}, reverse {self.reverse}, steps {self.steps}\n{self.text}"

    def box(self):
        """For each index the largest range in which all accesses are inside their arrays."""
        low, high = dict.fromkeys(self.indices, -(10**9)), dict.fromkeys(self.indices, 10**9)
        if self.steps is not None:
            low["t"], high["t"] = 0, self.steps
        for name, accesses in self.accesses.items():
            for access in accesses:
                first = name in self.lacking
                own = zip(access.axes[first:], access.offsets[first:], self.arrays[name].shape, strict=True)
                for axis, offset, extent in own:
                    low[axis], high[axis] = max(low[axis], -offset), min(high[axis], extent - offset)
        return {axis: (low[axis], max(low[axis], high[axis])) for axis in self.indices}

    def ranges(self):
        return {**self.box(), **self.over}

    def plain(self):
        """The written array after loops written out, time and all: the definition."""
        names = {"np": np}
        exec(self.text, names)
        whole = {
            name: np.stack([array] * (self.steps + 2)) if name in self.lacking else array.copy()
            for name, array in self.arrays.items()
        }
        written = next(iter(whole))
        loops = [range(*self.ranges()[axis])[:: -1 if axis in self.reverse else 1] for axis in self.indices]
        last = -1
        for point in itertools.product(*loops):
            while self.steps is not None and last < point[0]:
                last += 1
                whole[written][last + 1] = whole[written][last]
            with np.errstate(all="ignore"):
                names["body"](*whole.values(), *point)
        while self.steps is not None and last + 1 < self.steps:
            last += 1
            whole[written][last + 1] = whole[written][last]
        return whole[written][self.steps] if written in self.lacking else whole[written]

    def keywords(self):
        found = {"over": self.over or None, "reverse": self.reverse, "steps": self.steps}
        return {name: value for name, value in found.items() if value is not None and value != ()}


def make(seed):
    """The problem of a seed."""
    rng = random.Random(f"several orders {seed}")
    timed = rng.random() < 0.3
    space = "ijk"[: rng.choice((1, 2, 2, 2) if timed else (1, 2, 2, 2, 3))]
    indices = "t" * timed + space
    step = lambda: rng.choice((0, 0, 0, -2, -1, 1, 2))
    accesses = {"R": [Access(tuple(indices), (1,) * timed + (0,) * len(space))]}
    if rng.random() < 0.6:  # a wavefront
        back = [-rng.choice((0, 1, 2)) for _ in space]
        back = back if any(back) else [-1] * len(space)
        accesses["R"].append(Access(tuple(indices), (rng.choice((0, 1)),) * timed + tuple(back)))
    lacking = {"R"} if timed else set()
    for name in "VSW"[: rng.choice((1, 2, 2, 3))]:
        rank = rng.choice((1, 2, 2, 3))
        in_time = timed and rng.random() < 0.3
        orders = {
            tuple(rng.choice(space) for _ in range(rank))
            if rng.random() < 0.5
            else tuple((rng.sample(space, len(space)) * 3)[:rank])
            for _ in range(4)
        }
        accesses[name] = [
            Access(("t",) * in_time + order, (rng.choice((0, 1)),) * in_time + tuple(step() for _ in order))
            for order in sorted(orders)
            for _ in range(rng.choice((1, 1, 2)))
        ][:5]
        rng.shuffle(accesses[name])
        if in_time:
            lacking.add(name)
    values = np.random.default_rng([4, seed])
    kind = rng.choice(("f8", "f8", "f4", "i4"))
    numbers = itertools.count(rng.randint(0, 3))
    longest = {1: 40, 2: 11, 3: 6}[len(space)]
    arrays = {}
    for name, own in accesses.items():
        rank = len(own[0].axes) - (name in lacking)
        shape = tuple(longest + next(numbers) for _ in range(rank))
        arrays[name] = (values.integers(-50, 50, shape) if kind == "i4" else values.random(shape)).astype(kind)
    reads = [access.text(name) for name, own in accesses.items() for access in (own[1:] if name == "R" else own)]
    rng.shuffle(reads)
    factor = "3" if kind == "i4" else "0.125"
    value = " + ".join(f"{factor} * {' * '.join(reads[k : k + 2])}" for k in range(0, len(reads), 2))
    text = f"def body({', '.join([*arrays, *indices])}):\n    {accesses['R'][0].text('R')} = {value}\n"
    problem = Problem(seed, text, indices, accesses, arrays, lacking, {}, (), rng.randint(1, 5) if timed else None)
    for axis, (low, high) in problem.box().items():
        if axis != "t" and rng.random() < 0.25:
            first = rng.randint(low, high)
            problem.over[axis] = (first, rng.randint(first, high))
    if rng.random() < 0.3:
        problem.reverse = tuple(axis for axis in space if rng.random() < 0.6)
    return problem


def operands(problem, context, rng):
    """The arrays as a user gives them: fields, or NumPy arrays where that is allowed, in any order of memory."""
    given = {}
    for name, array in problem.arrays.items():
        if rng.random() < 0.6 or name == "R" and context.size > 1:
            given[name] = tw.field(array.shape, array.dtype, init=array, context=context)
        elif rng.random() < 0.3 and name != "R":  # not aligned: the run works on a copy
            memory = np.zeros(array.nbytes + 1, "u1")[1:].view(array.dtype).reshape(array.shape)
            memory[...] = array
            given[name] = memory
        else:
            given[name] = rng.choice(
                (
                    np.array,
                    lambda a: np.array(a, order="F"),
                    lambda a: a[::-1].copy()[::-1],
                    lambda a: np.repeat(a, 2, -1)[..., ::2],
                )
            )(array)
    return given
