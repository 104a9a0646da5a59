"""What a first call costs: in a process whose caches are empty, and in the next one. ``tilewave bench first``.

Each figure is of processes of its own with a folder of caches of its own: the first finds it empty, the second finds
what the first has left. Numba compiles with its cache on, in the same folder. Programs and processes go in turn.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.runner import benchmark, compared, missing

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
#: Cases that Numba has loops for.
LOOPS = ("import", "tiny nest", "sizes", "batch")


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


@benchmark("first", __doc__, cases=CASES)
def first(options):
    for case in options.case:
        times = {}  # by contender, process and part
        for _, contender in itertools.product(range(options.repeats), ("tilewave", "numba")):
            if contender == "numba" and case not in LOOPS:
                continue
            with tempfile.TemporaryDirectory() as folder:
                for process in PROCESSES:
                    for part, seconds in zip(CASES[case], _run(contender, case, folder, options.quick), strict=False):
                        times.setdefault((process, part), {}).setdefault(contender, []).append(seconds)
        for process, part in itertools.product(PROCESSES, CASES[case]):
            name, found = f"{case}: {part}, {process}", times[process, part]
            limits = {"tilewave": times[process, "runs alone"]["tilewave"]} if part == "calls" else None
            yield from compared(name, found, "s", limits=limits)
            if case in LOOPS and "numba" not in times[process, CASES[case][0]]:
                yield missing(name, "numba: not installed")
