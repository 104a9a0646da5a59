"""A nest is planned alike as a C++ and as a Python program gives it: both choose by one loop, so the problems count."""

import pytest

import tilewave as tw
from tilewave import _core
from tilewave.nest.bounds import Loops
from tilewave.plan.plan import request_of
from tilewave.nests.problem import make_problem


@tw.nest
def linear(A, i, j, k):
    A[i, j, k] = A[i-1, j, k] + A[i, j-1, k] + A[i, j, k-1]


@tw.nest
def recurrence(A, B, i, j):
    A[i, j] = A[i-1, j] + 0.5 * A[i, j-1] + B[i+1, j]


@tw.nest
def corner(A, i, j):
    A[i, j] = max(A[i-1, j], A[i, j-1], A[i-1, j-1])


@tw.nest
def ahead(A, i, j):
    A[i, j] = A[i-1, j] + A[i+1, j+1]


@tw.nest
def two_written(A, B, C, i, j):
    A[i, j] = A[i-1, j] + C[i, j]
    B[i, j] = A[i-1, j] + B[i, j-1]


@tw.nest
def heat(u, t, i, j):
    u[t+1, i, j] = u[t, i, j] + 0.1 * (u[t, i-1, j] + u[t, i+1, j] + u[t, i, j-1] + u[t, i, j+1])


@tw.nest
def heat_3d(u, f, t, i, j, k):
    u[t+1, i, j, k] = u[t, i-1, j, k] + u[t, i+1, j, k] + u[t, i, j, k-1] + f[i, j, k]


@tw.nest
def relax(u, f, t, i, j):
    u[t+1, i, j] = u[t+1, i-1, j] + u[t+1, i, j-1] + u[t, i+1, j] + u[t, i, j+1] - f[i, j]


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


def as_in_cpp(nest, shape, options):
    """The problem of `tilewave::run`, whose offsets have time first: 0 is the step that is computed."""
    steps, loops = options.get("steps"), nest.indices
    arrays = []
    for name in [*nest.written, *(name for name in nest.arrays if name not in nest.written)]:
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
