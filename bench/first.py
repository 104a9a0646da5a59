"""What a first call costs: in a process whose caches are empty, and in the next one. ``tilewave bench first``.

Each figure is of processes of its own with a folder of caches of its own: the first finds it empty, the second finds
what the first has left. Numba compiles with its cache on, in the same folder. Programs and processes go in turn.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.results import missing, parser_of, publish, row, warn_of_load

PROCESSES = ("empty caches", "second process")
#: By case: what is timed, in the order of the program; `bench/first_programs.py` has the programs.
CASES = {
    "import": ("beyond NumPy",),
    "tiny nest": ("first run", "another size"),
    "sizes": ("calls", "runs alone"),
    "batch": ("first run", "a later run"),
    "in turn": ("first round", "second round", "a later round"),
    "poisson": ("first solution", "a later solution"),
}
OURS, NUMBA = "tilewave", "numba"
#: Cases that Numba has loops for.
LOOPS = ("import", "tiny nest", "sizes", "batch")


def first(json_path=None, quick=False, args=()):
    """First calls: import, a tiny nest, sizes of a stencil, a batch, nests in turn, Poisson."""
    parser = parser_of("first", __doc__, CASES)
    parser.add_argument("--repeat", type=int, default=1 if quick else 5, help="folders of caches, for each program")
    asked = parser.parse_args(list(args))
    warn_of_load("first")
    rows = []
    for case in asked.case:
        rows += _rows(case, _times(case, asked.repeat, quick))
    publish("first", rows, json_path)


def _times(case, repeat, quick):
    """By contender and process the times of the case's parts, a list for each."""
    found = {}
    for _ in range(repeat):
        for contender in (OURS, NUMBA) if case in LOOPS else (OURS,):
            with tempfile.TemporaryDirectory() as folder:
                for process in PROCESSES:
                    times = _run(contender, case, folder, quick)
                    lists = found.setdefault((contender, process), [[] for _ in CASES[case]])
                    for seconds, one in zip(lists, times, strict=False):
                        seconds.append(one)
    return found


def _run(contender, case, folder, quick):
    """The seconds that a program prints; none where what it needs is not installed."""
    env = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": folder, "NUMBA_CACHE_DIR": folder}
    env.pop("TILEWAVE_CACHE_DIR", None)
    program = str(Path(__file__).with_name("first_programs.py"))
    command = [sys.executable, program, contender, case, str(int(quick))]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise SystemExit(f"bench first: {contender}, {case} ended with exit code {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _rows(case, found):
    rows = []
    for process in PROCESSES:
        for k, part in enumerate(CASES[case]):
            name = f"{case}: {part}, {process}"
            ours, numba = found[OURS, process], found.get((NUMBA, process), [])
            rows.append(row(name, OURS, ours[k], "s"))
            if part == "calls":
                rows[-1].fraction_of_limit = sum(ours[k + 1]) / sum(ours[k])
            if k < len(numba) and numba[k]:
                other = row(name, NUMBA, numba[k], "s")
                rows[-1].ratio_to_contender = other.value / rows[-1].value
                rows.append(other)
            elif numba and not numba[0]:
                rows.append(missing(name, "numba: not installed"))
    return rows
