"""Reads changed files for some seconds, in this process: `python fuzz.py SECONDS SEED TARGET...`. With the number of a
case behind one target: that case.

Each case may end in a value that makes sense or in the reader's error, within `CASE_S` and with `MORE_BYTES` of memory.
Whoever starts this sees a crash by the exit code, and the case in the last line of standard output.
"""

import faulthandler
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

CASE_S = 120  # a case takes milliseconds, a folder that lacks 2**20 chunks half a minute on a busy machine
MORE_BYTES = 1 << 30
MOST_FAILURES = 8


def run(name, seed, seconds, folder, case=None):
    """How many cases of a target ran, and those that failed."""
    from fuzz_targets import TARGETS

    target = TARGETS[name](folder)
    end, number, failures = time.monotonic() + seconds, case or 0, 0
    while time.monotonic() < end or case is not None:
        print(f"fuzz.py 0 {seed} {name} {number}", flush=True)
        faulthandler.dump_traceback_later(CASE_S, exit=True)
        pick = random.Random(f"{name} {seed} {number}")
        try:
            target.change(pick)
            target.read()
        except target.refuses as error:
            if case is not None:
                print(error)
        except BaseException:
            failures += 1
            traceback.print_exc()
            print(f"again: fuzz.py 0 {seed} {name} {number}\n", file=sys.stderr, flush=True)
            if failures == MOST_FAILURES:
                break
        faulthandler.cancel_dump_traceback_later()
        number += 1
        if case is not None:
            break
    return number, failures


def main():
    seconds, seed, *names = sys.argv[1:]
    case = int(names.pop()) if names[-1].isdigit() else None
    warnings.simplefilter("ignore")
    faulthandler.enable()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tilewave-fuzz-") as folder:
        os.environ["TILEWAVE_CACHE_DIR"] = folder + "/cache"
        for name in names:
            (Path(folder) / name).mkdir()
            limit(0)
            cases, failures = run(name, seed, float(seconds), Path(folder) / name, case)
            print(f"{name}: {cases} cases, {failures} failed", file=sys.stderr, flush=True)
            failed += failures
    sys.exit(failed > 0)


def limit(more):
    """The address space is what is there now and `MORE_BYTES`."""
    import tilewave as tw

    tw.Context()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MORE_BYTES + more
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
