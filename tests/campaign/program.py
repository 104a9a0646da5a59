"""Run on every rank: ``program.py WHAT FOLDER FIRST SHARE SEED``. Writes what happened, a line of JSON a case.

WHAT is ``bad`` (one argument is bad on one rank), ``mismatch`` (ranks call different functions), ``others`` (ranks give
one function different objects of one shape) or ``growth``.
Cases before FIRST are left out; of the others a SHARE, drawn by SEED, runs.
"""

import contextlib
import gc
import json
import os
import random
import sys
import warnings

import numpy as np

import tilewave as tw
from calls import REDUCTIONS, SHAPE, Calls, relax


class Log:
    """One file a rank: what is there shows how far the rank has come."""

    def __init__(self, folder, rank):
        self.file = open(os.path.join(folder, f"rank-{rank}.jsonl"), "a")

    def write(self, **record):
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()


def told(error):
    try:
        return f"{type(error).__name__}: {error}".encode("ascii", "backslashreplace").decode()
    except Exception as problem:
        return f"{type(error).__name__} without a text: {type(problem).__name__}"


def attempt(function, arguments):
    """'ok', or the error as text."""
    try:
        result = function(**arguments)
        if hasattr(result, "wait") and hasattr(result, "test") and arguments.get("start", True) is True:
            result.wait()
    except BaseException as error:
        return told(error)
    return "ok"


def still_works(calls):
    try:
        tw.run(relax, A=calls.A)
        return "ok" if tw.max(calls.check) == 7.0 else "wrong value"
    except BaseException as error:
        return told(error)


def bad_arguments(calls):
    """(name of the case, what each rank does)."""
    for name in calls.table:
        for parameter in calls.parameters(name):
            for label in calls.values():
                if name in REDUCTIONS and "text" in label:
                    continue  # the name of an array: what is wanted of a run, and no collective call
                if (name, parameter, label) == ("run steps", "steps", "2**31") and calls.A.context.size == 1:
                    continue  # allowed, and takes hours
                yield f"{name}({parameter}={label})", (name, parameter, label)


def mismatches(calls):
    for first in calls.table:
        for second in calls.table:
            if first != second:
                yield f"{first} against {second}", (first, second)


def other_objects(calls):
    for name, (function, objects) in calls.others().items():
        yield f"{name} of other objects", (lambda given, f=function: _agreed(f, given), *objects)


def _agreed(function, given):
    """A call that all ranks are to refuse."""
    try:
        function(given)
    except tw.ConfigError as error:
        if not getattr(error, "agreed", False):
            raise RuntimeError(f"on this rank alone: {error}") from None
        return
    raise RuntimeError("not refused")


def call_of(calls, case, mine):
    """What this rank calls: `mine` says whether it is the one that differs."""
    if callable(case[0]):
        return case[0], {"given": case[1 + mine]}
    if len(case) == 2:
        return calls.table[case[mine]]
    name, parameter, label = case
    function, good = calls.table[name]
    return function, calls.with_value(good, parameter, label) if mine else good


def campaign(cases, calls, log, first, share, seed):
    rank, size = calls.A.context.rank, calls.A.context.size
    for number, (name, case) in enumerate(cases(calls)):
        draw = random.Random(f"{seed} {number}")
        if number < first or draw.random() >= share:
            continue
        odd = draw.randrange(size)
        log.write(case=number, name=f"{name}, rank {odd}", begins=True)
        function, arguments = call_of(calls, case, rank == odd)
        log.write(case=number, outcome=attempt(function, arguments))
        log.write(case=number, works=still_works(calls))


def memory_kb():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def growth(log, calls_in_all):
    """Memory and descriptors over many calls of all kinds, a quarter at a time."""
    rng = random.Random(1)
    for quarter in range(5):  # the first one warms up
        for _ in range(calls_in_all // 4 if quarter else calls_in_all // 8):
            kind = rng.randrange(8)
            low = 1 + rng.randrange(5)
            A = tw.field(SHAPE, "f8", init=1.0)
            if kind < 2:
                tw.run(relax, A=A, over={"i": (low, low + 1 + rng.randrange(10))})
            elif kind == 2:
                tw.run(relax, A=A, c=rng.random())
            elif kind == 3:
                tw.run(_made_here(), A=A)
            elif kind == 4:
                tw.patterns.broadcast(np.ones((1 + rng.randrange(40), 3)))
            elif kind == 5:
                A.gather()
            elif kind == 6:
                tw.max(A)
            else:
                with contextlib.suppress(tw.ConfigError):
                    tw.run(relax, A=A, c="x")
        gc.collect()
        log.write(quarter=quarter, memory_kb=memory_kb(), descriptors=len(os.listdir("/proc/self/fd")))


def _made_here():
    @tw.nest
    def inner(A, i, j):
        A[i, j] = A[i-1, j] + 1.0

    return inner


def main():
    what, folder, first, share, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
    warnings.simplefilter("ignore")
    calls = Calls(folder)
    log = Log(folder, calls.A.context.rank)
    if what == "growth":
        growth(log, first)
    else:
        kinds = {"bad": bad_arguments, "mismatch": mismatches, "others": other_objects}
        campaign(kinds[what], calls, log, first, share, seed)
    log.write(end=True)


if __name__ == "__main__":
    main()
