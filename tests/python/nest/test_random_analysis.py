"""What is read from random nests, and their kernels, against plain Python that records what it touches."""

import inspect
import itertools
import types

import numpy as np
import pytest

from body_generator import load
from kernel_helpers import Runner, bits
from nest_problems import HEADER, allowed_box, make_problem, stand_in
from tilewave.kernel.compile import compile_kernel
from tilewave.nest.reference import run_body

USUAL = [range(k, k + 50) for k in range(0, 200, 50)]
LONG = [range(k, k + 500) for k in range(1000, 11000, 500)]
MOST_POINTS = 400  # pairs of points are compared


def each_seed(test):
    """The test for some seeds, and for many with --long."""
    many = [pytest.param(seeds, marks=pytest.mark.long) for seeds in LONG]
    return pytest.mark.parametrize("seeds", [*USUAL, *many], ids=lambda s: f"{s.start}-{s.stop - 1}")(test)


def problems_and_nests(seeds, folder):
    """(problem, its nest) of each seed; all nests are in one file."""
    problems = [make_problem(seed) for seed in seeds]
    bodies = {problem.body.name: problem.body.text for problem in problems}
    text = HEADER + "".join(f"\n\n@declared\n{body}" for body in bodies.values())
    module = load(folder, f"analysed_{seeds.start}", text)
    for problem in problems:
        nest = getattr(module, problem.body.name)
        assert not isinstance(nest, Exception), f"seed {problem.seed}: {nest}\n{problem}"
        yield problem, nest


@each_seed
def test_what_is_read_from_a_body(seeds, tmp_path):
    for problem, nest in problems_and_nests(seeds, tmp_path):
        body, known = problem.body, stand_in(problem.body)
        looped = {name: array for name, array in body.arrays.items() if array.role != "table"}
        assert nest.indices == known.indices, problem
        assert set(nest.tables) == set(body.arrays) - set(looped), problem
        assert set(nest.written) == set(problem.written), problem
        assert {p.key for p in nest.places} == {(p.array, p.offsets, p.axes, ()) for p in known.places}, problem
        orders = {name: {axes for axes, _ in array.places} for name, array in looped.items()}
        assert nest.axes == {name: axes for name, (axes, *more) in orders.items() if not more}, problem
        names = [view.array for view in nest.views]
        assert names == sorted(names, key=nest.arrays.index), problem
        views = {(view.array, view.axes) for view in nest.views}
        assert views == {(name, axes) for name, found in orders.items() for axes in found}, problem
        if body.timed:
            assert nest.time == "t", problem
        if problem.steps is not None or not body.timed:
            shapes = {name: problem.arrays[name].shape for name in looped}
            in_time = {p.array for p in known.places if problem.steps is not None and p.axes[0] == nest.time}
            whole = {name: (2, *shape) if name in in_time else shape for name, shape in shapes.items()}
            box = nest.iteration_box(whole)
            if problem.steps is not None:
                box = ((0, problem.steps), *box[1:])
            assert box == allowed_box(known, shapes, problem.steps), problem


# Dependences.


class Recorder:
    """An array that notes which point reads and writes which element; time `-before` is its first."""

    def __init__(self, name, array, log, before=0):
        self.name, self.array, self.log, self.before = name, array, log, before

    def __getitem__(self, key):
        self.log.read(self.name, key)
        return self.array[self._at(key)]

    def __setitem__(self, key, value):
        self.log.write(self.name, key)
        self.array[self._at(key)] = value

    def _at(self, key):
        return (key[0] + self.before, *key[1:]) if self.before else key


class Log:
    """For each element the points that read its value from before them, and that write it, in order."""

    def __init__(self):
        self.point, self.inside, self.touched = None, set(), {}

    def begin(self, point):
        self.point, self.inside = point, set()

    def read(self, name, key):
        if (name, key) not in self.inside:
            self.touched.setdefault((name, key), []).append((self.point, "read"))

    def write(self, name, key):
        self.inside.add((name, key))
        self.touched.setdefault((name, key), []).append((self.point, "write"))

    def dependences(self):
        """The distinct (array, kind, vector) of all pairs of points."""
        kinds = {("write", "read"): "flow", ("read", "write"): "anti", ("write", "write"): "output"}
        found = set()
        for (name, _), accesses in self.touched.items():
            for (first, what), (later, then) in itertools.combinations(dict.fromkeys(accesses), 2):
                if first != later and (what, then) in kinds:
                    found.add((name, kinds[what, then], tuple(b - a for a, b in zip(first, later))))
        return found


def record(problem, nest):
    """Run a problem's loops upwards with arrays that have all their axes."""
    log, arrays = Log(), dict(problem.arrays)
    for view in nest.views:
        name, array, before = view.array, problem.arrays[view.array].copy(), 0
        if array.ndim < len(view.axes):  # all time steps, and those before the first that points read
            before = max(0, -min(place.offsets[0] for place in nest.places if place.array == name))
            array = np.stack([array] * (problem.steps + 1 + before))
        arrays[name] = Recorder(name, array, log, before) if name in nest.written else array

    def function(*arguments, **scalars):
        log.begin(tuple(arguments[position] for position in positions))
        nest.function(*arguments, **scalars)

    function.__signature__ = inspect.signature(nest.function)
    order = [name for name in function.__signature__.parameters if name not in nest.scalars]
    positions = [order.index(name) for name in nest.indices]
    stand = types.SimpleNamespace(function=function, indices=nest.indices, scalars=nest.scalars)
    with np.errstate(all="ignore"):
        run_body(stand, itertools.islice(problem.bounds.points(), MOST_POINTS), arrays, problem.scalars)
    return log.dependences()


def covers(dependence, vector):
    """Whether a reported vector stands for a real one; of a unit vector also its multiples."""
    known = dependence.vector
    if all(a is None or a == b for a, b in zip(known, vector)):
        return True
    unit = sorted(known, key=lambda entry: (entry is None, entry)) == [0] * (len(known) - 1) + [1]
    return unit and any(vector) and all((b > 0) if a else (b == 0) for a, b in zip(known, vector))


@each_seed
def test_every_real_dependence_is_reported(seeds, tmp_path):
    for problem, nest in problems_and_nests(seeds, tmp_path):
        reported = [(d.array, d.kind, d) for d in nest.dependences]
        for array, kind, vector in record(problem, nest):
            assert any(array == a and kind == k and covers(d, vector) for a, k, d in reported), (
                f"{kind} {vector} of {array} is not among {[str(d) for d in nest.dependences]}\n{problem}"
            )


# Kernels.


def rows_of(points, direction):
    """(first point, direction, count) of the runs of points along the last index."""
    steps = (0,) * (len(direction) - 1) + (direction[-1],)
    for _, row in itertools.groupby(points, key=lambda point: point[:-1]):
        row = list(row)
        yield row[0], steps, len(row)


def run_by_rows(problem, nest):
    """The written arrays after the compiled kernel ran every row in the order of the loops."""
    arrays = {name: array.copy() for name, array in problem.arrays.items()}
    kernel = compile_kernel(nest, {name: array.dtype for name, array in arrays.items()}, problem.scalars)
    for _ in range(problem.runs):
        arrays.update(run_once(problem, kernel, arrays))
    return {name: arrays[name] for name in problem.written}


def run_once(problem, kernel, start):
    nest, arrays = kernel.nest, dict(start)
    in_time = list({view.array: None for view in nest.views if arrays[view.array].ndim < len(view.axes)})
    for name in in_time:
        arrays[name] = np.stack([arrays[name]] * (problem.steps + 1))
    run = Runner(kernel, arrays, problem.scalars)
    direction = [-1 if name in problem.reverse else 1 for name in nest.indices]
    step = 0
    for first, steps, count in rows_of(problem.bounds.points(problem.reverse), direction):
        while in_time and step <= first[0]:
            step = copy_level(arrays, in_time, step)
        run(first, steps, count)
    while in_time and step < problem.steps:
        step = copy_level(arrays, in_time, step)
    return {name: arrays[name][-1] if name in in_time else arrays[name] for name in problem.written}


def copy_level(arrays, in_time, step):
    for name in in_time:
        arrays[name][step+1] = arrays[name][step]
    return step + 1


@each_seed
def test_kernels_equal_plain_loops(seeds, tmp_path):
    for problem, nest in problems_and_nests(seeds, tmp_path):
        if any(problem.buffers_before().values()):
            continue  # rows are run here on arrays that begin with the current time step
        expected = problem.plain(nest.function)
        for name, got in run_by_rows(problem, nest).items():
            different = bits(got) != bits(expected[name])
            assert not different.any(), (
                f"{name} differs at {np.argwhere(different)[0]}: {got[different][0]!r} instead of "
                f"{expected[name][different][0]!r}\n{problem}"
            )
