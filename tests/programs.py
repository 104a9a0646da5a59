"""Random programs of the whole language against their plain loops.

    python tests/programs.py --count 1000                        # from a random seed on
    python tests/programs.py --part 3/16 --seed 0 --count 100000 # a part of it; all parts together are the whole
    python tests/programs.py --seed 4711 --count 1               # one again
    python tests/programs.py --kinds "inner,door chain"          # of the seeds those that are drawn so

Ranks are threads; batches of programs run in child processes, so that a crash or a hang has a seed. What is wrong is
made smaller and printed as a program; the exit status is then 1.
"""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "python" / "support"))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="1/1", help="k/n: the k-th of n parts")
    parser.add_argument("--seed", type=int, help="the first; default: a random one")
    parser.add_argument("--count", type=int, default=1000, help="programs of all parts together")
    parser.add_argument("--seconds", type=float, default=1e9, help="no program begins later")
    parser.add_argument("--kinds", default="", help="what a program has to have, as the counts name it, with commas")
    parser.add_argument("--shrink", type=int, default=1, help="0: failures are printed as they were drawn")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--cpu", type=float, default=1e9, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    part, parts = map(int, given.part.split("/"))
    if not 1 <= part <= parts:
        parser.error(f"--part {given.part}: allowed: 1/{parts} to {parts}/{parts}")
    from random_programs import campaign

    if given.child:
        first, end = map(int, given.child.split(":"))
        limits = campaign.Limits(given.shrink, given.seconds, given.cpu, given.kinds)
        campaign.child(range(first, end), (part, parts), limits)
        return 0
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    say = lambda text: print(text, flush=True)
    os.environ.setdefault("TILEWAVE_MACHINE", "default")
    with tempfile.TemporaryDirectory(prefix="tilewave-kernels-") as kernels:
        os.environ.setdefault("TILEWAVE_CACHE_DIR", kernels)
        command = [sys.executable, str(HERE / "programs.py")]
        limits = campaign.Limits(given.shrink, given.seconds, given.cpu, given.kinds)
        counts = campaign.campaign(command, range(seed, seed + given.count), (part, parts), limits, say)
    say(f"from seed {seed}, part {given.part}: {counts.text()}")
    return 1 if counts.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
