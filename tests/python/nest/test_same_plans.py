"""Nests and chains have equal plans as a C++ and as a Python program gives them: both choose by one loop in the core,
so the problems count."""

import random

import pytest

import tilewave as tw
from tilewave import _core
from tilewave.nest.bounds import Loops
from tilewave.plan.plan import request_of
from tilewave.nests.call.problem import make_problem


@tw.nest
def linear(A, i, j, k):
    A[i, j, k] = A[i - 1, j, k] + A[i, j - 1, k] + A[i, j, k - 1]


@tw.nest
def recurrence(A, B, i, j):
    A[i, j] = A[i - 1, j] + 0.5 * A[i, j - 1] + B[i + 1, j]


@tw.nest
def corner(A, i, j):
    A[i, j] = max(A[i - 1, j], A[i, j - 1], A[i - 1, j - 1])


@tw.nest
def ahead(A, i, j):
    A[i, j] = A[i - 1, j] + A[i + 1, j + 1]


@tw.nest
def two_written(A, B, C, i, j):
    A[i, j] = A[i - 1, j] + C[i, j]
    B[i, j] = A[i - 1, j] + B[i, j - 1]


@tw.nest
def heat(u, t, i, j):
    u[t + 1, i, j] = u[t, i, j] + 0.1 * (u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1])


@tw.nest
def heat_3d(u, f, t, i, j, k):
    u[t + 1, i, j, k] = u[t, i - 1, j, k] + u[t, i + 1, j, k] + u[t, i, j, k - 1] + f[i, j, k]


@tw.nest
def relax(u, f, t, i, j):
    u[t + 1, i, j] = u[t + 1, i - 1, j] + u[t + 1, i, j - 1] + u[t, i + 1, j] + u[t, i, j + 1] - f[i, j]


TABLE = [
    (linear, (64, 64, 256), {}),
    (linear, (40, 50, 4000), {}),
    (linear, (40, 50, 60), {"reverse": ("j",)}),
    (linear, (40, 50, 60), {"over": {"i": (3, 20), "j": (2, 40), "k": (5, 59)}}),
    (recurrence, (1000, 1200), {}),
    (recurrence, (64, 90000), {}),
    (recurrence, (90000, 50), {}),
    (corner, (3000, 3000), {}),
    (corner, (300, 400), {"reverse": ("i", "j")}),
    (ahead, (700, 800), {}),
    (ahead, (70, 8000), {"reverse": ("i",)}),
    (two_written, (600, 700), {}),
    (two_written, (60, 7000), {"over": {"i": (4, 50), "j": (1, 6000)}}),
    (heat, (500, 600), {"steps": 20}),
    (heat, (97, 3001), {"steps": 11}),
    (heat, (500, 600), {"steps": 20, "periodic": ("i", "j")}),
    (heat_3d, (60, 70, 80), {"steps": 9}),
    (heat_3d, (60, 70, 80), {"steps": 9, "periodic": ("k",)}),
    (relax, (500, 600), {"steps": 20}),
    (relax, (64, 6000), {"steps": 30, "reverse": ("j",)}),
]


def arrays_in_cpp(nest, draw=None):
    """In the order of a C++ program: those that are written first; in a random one with `draw`."""
    groups = [*nest.written], [name for name in nest.arrays if name not in nest.written]
    return [name for group in groups for name in (draw.sample(group, len(group)) if draw else group)]


def as_in_cpp(nest, shape, options, names=None):
    """The problem of `tilewave::run`, whose offsets have time first: 0 is the step that is computed."""
    steps, loops = options.get("steps"), nest.indices
    arrays = []
    for name in names or arrays_in_cpp(nest):
        offsets = []
        for place in nest.places:
            if place.array != name or place.written:
                continue
            offset = [place.along.get(index, 0) for index in loops]
            if steps is not None:
                offset[0] = offset[0] - 1 if name in nest.written else 0
            offsets.append(tuple(offset))
        arrays.append((shape, 8, name in nest.written, offsets))
    over = options.get("over")
    numbers = {name: [loops.index(index) for index in options.get(name, ())] for name in ("reverse", "periodic")}
    box = over and tuple(zip(*(over[index] for index in loops if index in over)))
    return _core.nest_problem(arrays, over=box, steps=steps, **numbers)


@pytest.mark.parametrize("ranks, threads", [(1, 1), (1, 2), (2, 1), (3, 2)])
@pytest.mark.parametrize("number", range(len(TABLE)))
def test_a_nest_has_equal_plans_in_both_languages(number, ranks, threads):
    nest, shape, options = TABLE[number]
    context = tw.Context(threads=1)
    arrays = {name: tw.field(shape, "f8", context=context) for name in nest.arrays}
    problems = make_problem(nest, arrays, Loops(**options)).core, as_in_cpp(nest, shape, options)
    machine = _core.Machine()
    machine.host_of = [0] * ranks
    request = request_of({}, threads)
    found = [_core.alternatives(problem, ranks, request, machine, True) for problem in problems]
    assert len(found[0]) == len(found[1])
    for python, cpp in zip(*found):
        assert str(python.plan) == str(cpp.plan) and list(map(str, python.others)) == list(map(str, cpp.others))
        best = [
            _core.choose_plan(one.problem, ranks, one.request, machine, _core.KernelRate(1e-9, 2e-8, 3e-7)).ranked[0]
            for one in (python, cpp)
        ]
        assert str(best[0].plan) == str(best[1].plan) and best[0].time_s == best[1].time_s


@tw.nest
def smooth(u, f, i, j):
    u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) - f[i, j]


@tw.nest
def residual(r, u, f, i, j):
    r[i, j] = f[i, j] - 4 * u[i, j] + u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]


@tw.nest
def far(B, A, i, j):
    B[i, j] = A[i - 3, j] + A[i, j + 2]


@tw.nest
def across(A, i, j):
    A[i, j] = A[i, j - 1] + A[i - 1, j + 1]


#: Chains: a shape, and the nests with the fields of their arrays and their options.
CHAINS = [
    ((600, 700), [(smooth, "uf", {}), (smooth, "uf", {"reverse": ("i", "j")}), (residual, "ruf", {})]),
    ((64, 9000), [(recurrence, "AB", {}), (far, "BA", {}), (across, "B", {})]),
    ((900, 40), [(far, "BA", {}), (across, "A", {}), (far, "AB", {})]),
    ((300, 300), [(corner, "A", {}), (residual, "rAf", {}), (across, "r", {}), (corner, "A", {"reverse": ("j",)})]),
    ((120, 130), [(heat, "u", {"steps": 5}), (smooth, "uf", {}), (heat, "u", {"steps": 5})]),
    ((200, 60), [(relax, "uf", {"steps": 4}), (residual, "ruf", {}), (across, "u", {})]),
    ((40, 50, 600), [(linear, "A", {}), (linear, "A", {"reverse": ("i",)}), (linear, "B", {})]),
    ((500, 90), [(two_written, "ABC", {}), (far, "CA", {}), (ahead, "B", {}), (two_written, "CBA", {})]),
]

RATE = _core.KernelRate(1e-9, 2e-8, 3e-7)


class Members:
    """The nests of a chain, and what the core asks for them, in one of the languages."""

    def __init__(self, number, ranks, threads, draw):
        (self.shape, self.parts), self.ranks, self.threads = CHAINS[number], ranks, threads
        self.in_cpp, self.context = draw is not None, tw.Context(threads=1)
        self.names = [
            arrays_in_cpp(nest, draw) if draw else [view.array for view in nest.views] for nest, *_ in self.parts
        ]
        self.memories = [
            [sum(map(ord, dict(zip(nest.arrays, fields))[name])) for name in names]
            for (nest, fields, _), names in zip(self.parts, self.names)
        ]
        self.requests, self.joined = [], None

    def problem(self, number, halos=()):
        nest, _, options = self.parts[number]
        if self.in_cpp:
            problem = as_in_cpp(nest, self.shape, options, self.names[number])
            for k, halo in enumerate(halos):
                problem.widen(k, *halo)
            return problem
        arrays = {name: tw.field(self.shape, "f8", context=self.context) for name in nest.arrays}
        named = {name: halo for name, halo in zip(self.names[number], halos) if halo[0]}
        return make_problem(nest, arrays, Loops(**options), halos=named).core

    def planned(self, number, request, halos=()):
        machine = _core.Machine()
        machine.host_of = [0] * self.ranks
        found = []
        for one in _core.alternatives(self.problem(number, halos), self.ranks, request, machine, True):
            best = _core.choose_plan(one.problem, self.ranks, one.request, machine, RATE).ranked[0]
            found.append((one.problem, best.plan, best.time_s))
        return min(found, key=lambda each: each[2])

    def prepare(self, number, choices, halos, as_planned):
        assert not as_planned or choices.storage is not None
        of_fields = sorted((name, halo) for name, halo in zip(self.names[number], halos) if halo[0])
        self.requests.append((number, choices.grid, choices.storage, choices.row, as_planned, of_fields))
        choices.threads = self.threads
        try:
            prepared = self.planned(number, choices, halos)
        except tw.ConfigError as error:
            return str(error)
        return prepared, prepared[2]

    def join(self, nests):
        problems, plans, _ = zip(*nests)
        try:
            for rank in range(self.ranks):
                _core.chain(problems, plans, self.memories, rank, self.ranks)
        except tw.ConfigError as error:
            return str(error)
        self.joined = [str(plan) for plan in plans]
        return ""

    def choose(self):
        members = []
        for k, (_, _, options) in enumerate(self.parts):
            problem, plan, time_s = prepared = self.planned(k, request_of({}, self.threads))
            members.append(
                _core.ChainMember(
                    name=f"nest {k + 1}",
                    arrays=self.names[k],
                    memories=self.memories[k],
                    problem=problem,
                    plan=plan,
                    fixed=_core.PlanRequest(),
                    steps=options.get("steps"),
                    in_step=False,
                    prepared=prepared,
                    time_s=time_s,
                )
            )
        why = _core.choose_chain_layout(members, self.ranks, 0, self)
        return bool(why), self.joined, self.requests


@pytest.mark.parametrize("ranks, threads", [(1, 1), (2, 1), (3, 2)])
@pytest.mark.parametrize("number", range(len(CHAINS)))
def test_a_chain_has_equal_plans_in_both_languages(number, ranks, threads):
    seed = 100 * number + ranks
    print(f"seed {seed}")
    python, cpp = (Members(number, ranks, threads, draw).choose() for draw in (None, random.Random(seed)))
    assert python == cpp
    assert python[1] is not None and not python[0]
