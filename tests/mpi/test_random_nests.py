"""Random nests over MPI equal plain Python loops, bit for bit.

A failure prints its seed; this runs that case alone, on every rank count:

    TILEWAVE_SEED=123 python -m pytest tests/mpi/test_random_nests.py

A range, `TILEWAVE_SEED=1000:1200`, runs all of its cases on every rank count.
"""

import collections
import os
import random
import sys

import numpy as np
import pytest

import tilewave as tw
from tilewave.kernel.rows import jammed_rows
from body_generator import load
from nest_problems import HEADER, PROBLEMS_OF_A_BODY, make_problem, random_plan
from random_paths import random_paths, switched_off
from nest_results import Results, plain_results, random_results, start_of, wrong_results

pytestmark = pytest.mark.ranks([1, 2, 3, 4])

# Parts of messages of refusals that the documentation names; every other refusal is a failure.
REFUSALS = (
    "an array with time steps is written at a non-zero offset in space",
    "has time buffers and lacks loop index",
    "with bounds that depend on time",
)
SHOWN = 3  # failures that are printed in full


def chosen():
    """The seeds that the environment asks for, or None."""
    text = os.environ.get("TILEWAVE_SEED", "")
    first, _, end = text.partition(":")
    return range(int(first), int(end) if end else int(first) + 1) if text else None


ASKED = chosen()
# The last: a message once awaited by a tile that lies between its readers, and itself comes before what is sent.
USUAL = [ASKED] if ASKED else [*(range(k, k + 100) for k in range(0, 300, 100)), range(19279, 19280)]
LONG = [] if ASKED else [range(k, k + 500) for k in range(300, 20300, 500)]


def title(seeds):
    return f"{seeds.start}-{seeds.stop - 1}"


@pytest.fixture(autouse=True)
def short_rows_together(monkeypatch):
    """Rows that depend within themselves are computed together however short they are."""
    monkeypatch.setattr(jammed_rows, "LEAST_POINTS", 1)


@pytest.mark.ranks([1, 2, 3, 4])
@pytest.mark.mpi(ranks=[2, 3])
@pytest.mark.parametrize("seeds", USUAL, ids=title)
@pytest.mark.sample(2)
def test_random_nests(seeds, mpi_ranks, tmp_path):
    run_all(seeds, mpi_ranks, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seeds", LONG, ids=title)
def test_many_random_nests(seeds, mpi_ranks, tmp_path):
    run_all(seeds, mpi_ranks, tmp_path)


def run_all(seeds, ranks, folder):
    """Run the cases of this rank count, a quarter of the seeds, and fail with all that went wrong."""
    mine = [seed for seed in seeds if ASKED or seed // PROBLEMS_OF_A_BODY % 4 == ranks - 1]
    problems = [make_problem(seed) for seed in mine]
    bodies = {problem.body.name: problem.body.text for problem in problems}
    text = HEADER + "".join(f"\n\n@declared\n{body}" for body in bodies.values())
    module = load(folder, f"random_nests_{title(seeds).replace('-', '_')}", text)
    failures, kinds = [], collections.Counter()
    context = off = None
    for problem in problems:
        if off != (off := random_paths(problem.seed // PROBLEMS_OF_A_BODY)) or context is None:
            with switched_off(off):
                context = tw.Context()
            assert context.size == ranks and ",".join(context.without) == off
        kinds.update(problem.kinds | {"all"})
        nest = getattr(module, problem.body.name)
        # Shown when a rank crashes or hangs: pytest's own capture is lost then.
        print(f"random nest, seed {problem.seed}, without {off}", file=sys.__stderr__, flush=True)
        if what := failure(problem, nest, context, kinds):
            failures.append((problem.seed, what))
    for kind, count in sorted(kinds.items()):
        print(f"{count:6} {kind}")
    seeds_of = ", ".join(str(seed) for seed, _ in failures)
    assert not failures, "\n\n".join(
        [f"{len(failures)} of {len(mine)} cases failed, seeds {seeds_of}", *(what for _, what in failures[:SHOWN])]
    )


def failure(problem, nest, context, kinds):
    """What is wrong with the run of one problem, None if it equals the plain loops."""
    plan = random_plan(problem.seed, context.size, len(problem.body.indices), problem.steps is not None)
    report, results = None, Results({}, {})

    def described(what):
        return "\n".join(
            [
                f"seed {problem.seed}: {what}",
                f"on {context.size} rank(s) without {context.without}, run with {plan}",
                str(problem),
                str(results),
                *([f"plan {report.plan}"] if report is not None else []),
                f"replay: TILEWAVE_SEED={problem.seed} python -m pytest tests/mpi/test_random_nests.py",
            ]
        )

    try:
        if isinstance(nest, Exception):
            raise nest
        results = random_results(problem, nest)
        if results.window and len(problem.body.indices) > 2 and problem.seed % 3:
            plan.pop("tile", None)  # planes are whole but along their rows
        expected, numbers = plain_results(problem, nest, results)
        given = operands(problem, results, context, kinds)
        for _ in range(problem.runs):
            report = run_with_allowed(nest, context, given, problem, results, plan, kinds)
        count(kinds, results, report)
        kernel = list(context._prepared.values())[-1].kernel
        kinds["rows of dependent points that may go together"] += kernel.rows_address != 0 and not kernel.independent
    except tw.ConfigError as error:
        if not (error.agreed or isinstance(nest, Exception)):
            raise AssertionError(described(f"refused, and not by all ranks alike: {error}")) from error
        if any(text in str(error) for text in REFUSALS):
            kinds["refused"] += 1
            return None
        return described(f"refused: {error}")
    except Exception as error:
        if not getattr(error, "agreed", False):
            raise AssertionError(described(f"{type(error).__name__}: {error}")) from error
        return described(f"{type(error).__name__}: {error}")
    different = differences(problem, given, expected, described)
    if wrong := wrong_results(report.results, numbers):
        return described(f"rank {context.rank}: {wrong}")
    return changed_input(problem, given, described) or different


def count(kinds, results, report):
    kinds["reductions"] += bool(results.reduce)
    kinds["rolling-window fields"] += bool(results.window)
    kinds["rolling-window fields kept as windows"] += len(report.stored) < len(results.window)
    assert set(report.stored) <= set(results.window)


def run_with_allowed(nest, context, given, problem, results, plan, kinds):
    """Run; which tiles and grids a nest allows follows from its dependences and blocks: it picks those refused."""
    while True:
        try:
            return tw.run(
                nest,
                context=context,
                **given,
                **problem.scalars,
                **problem.keywords,
                plan=plan,
                reduce={name: getattr(tw, kind)(array) for name, (kind, array) in results.reduce.items()},
            )
        except tw.ConfigError as error:
            wrong = str(error).split(" ")[0]
            if wrong not in ("tile", "grid", "skew") or wrong not in plan:
                raise
            del plan[wrong]
            kinds[f"another {wrong}"] += 1


def operands(problem, results, context, kinds):
    """The nest's arrays as a user gives them: fields, or NumPy arrays where that is allowed."""
    before = problem.buffers_before(results.window)
    in_place = context.size == 1 and random.Random(problem.seed).random() < 0.3 and not any(before.values())
    kinds["written NumPy array"] += in_place
    given = {}
    for name, array in problem.arrays.items():
        if name in results.window:
            given[name] = start_of(results.window[name], array, context)
        elif name in problem.as_numpy or in_place and name in problem.written:
            given[name] = array.copy()
        else:
            history = problem.history.get(name, []) if name in before else []
            given[name] = tw.field(array.shape, array.dtype, init=array, history=history, context=context)
    return given


def changed_input(problem, given, described):
    for name in problem.as_numpy:
        if given[name].tobytes() != problem.arrays[name].tobytes():
            return described(f"the run changed {name}, which the nest only reads")
    return None


def differences(problem, given, expected, described):
    """The first point of each written array that differs, on rank 0; collective."""
    found = []
    for name, plain in expected.items():
        if not isinstance(given[name], np.ndarray | tw.Field) or getattr(given[name], "keep", "all") == "window":
            continue
        got = given[name] if isinstance(given[name], np.ndarray) else given[name].gather()
        if got is None:
            continue
        assert got.dtype == plain.dtype and got.shape == plain.shape
        different = bits(got) != bits(plain)
        if plain.dtype.kind == "f":
            different &= ~(np.isnan(got) & np.isnan(plain))
        if different.any():
            at = tuple(int(x) for x in np.argwhere(different)[0])
            found.append(
                f"{name} differs at {different.sum()} of {different.size} points, first at {at}: "
                f"{got[at]!r} instead of {plain[at]!r} (at the start {problem.arrays[name][at]!r})"
            )
    return described("; ".join(found)) if found else None


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)
