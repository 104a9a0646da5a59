"""HPL as a contender of `bench lu`: its program, run by our mpiexec at the same place.

A build of HPL with this MPI is looked for in the folders of TILEWAVE_CONTENDERS, as FOLDER/bin/ARCH/xhpl, where its
Makefile puts it. Of its settings six kinds of broadcasts and look-aheads 0 and 1 are run; the fastest counts.
"""

import tempfile
from pathlib import Path

from bench.contenders import roots

NAME = "HPL"
BROADCASTS = ("ring", "modified ring", "2-ring", "modified 2-ring", "long", "modified long")
DEPTHS = (0, 1)
BLOCK = 128
#: The lines of its input: titles, the output's name, a file for it; how many sizes, and these; one block size; ranks by
#: rows, one grid of one row, as our block columns lie; the largest residual; the rest as HPL's documents advise: how
#: panels are factored, how many broadcasts, and these; how many look-aheads, and these; swaps, transposed panels,
#: alignment.
INPUT = (
    "HPL|tilewave bench lu|HPL.out|8|{count}|{sizes}|1|{block}|0|1|1|{ranks}|16.0|1|2|1|4|1|2|1|2|"
    "{kinds}|{broadcasts}|{depths}|{ahead}|2|64|0|0|1|8|"
)


def contenders(place, sizes, repeats):
    """{n: [the fastest setting, as a contender of `bench lu`]}; {} without HPL."""
    program = next((path for root in roots() for path in sorted(root.glob("bin/*/xhpl"))), None)
    if program is None:
        return {}
    every, found = _times(place, program, sizes, range(len(BROADCASTS)), DEPTHS), {}
    for size in {n for n, _, _ in every}:
        best = n, depth, kind = min((key for key in every if key[0] == size), key=every.get)
        seconds = _times(place, program, [n] * repeats, [kind], [depth])[best]
        name = f"{NAME}, {BROADCASTS[kind]}, depth {depth}, block {BLOCK}"
        found[n] = [{"name": name, "family": NAME, "grid": (1, place.ranks), "seconds": seconds}]
    return found


def _times(place, program, sizes, kinds, depths):
    """{(n, depth, kind of broadcast): seconds of each run}."""
    lists = {"sizes": sizes, "broadcasts": kinds, "ahead": depths}
    counts = {"count": len(sizes), "kinds": len(kinds), "depths": len(depths), "block": BLOCK, "ranks": place.ranks}
    with tempfile.TemporaryDirectory(prefix="tilewave-hpl.") as folder:
        texts = {name: " ".join(map(str, values)) for name, values in lists.items()}
        Path(folder, "HPL.dat").write_text(INPUT.format(**counts, **texts).replace("|", "\n"))
        # Ranks may start anywhere: HPL reads its settings where it stands.
        place.output("sh", "-c", f"cd '{folder}' && exec '{program}'")
        text = Path(folder, "HPL.out").read_text()
    if " FAILED" in text:
        raise SystemExit("bench lu: HPL has wrong values")
    seconds = {}
    for line in text.splitlines():
        words = line.split()
        if line.startswith("W") and len(words) == 7:  # WR01R2R4: depth, broadcast; N, NB, P, Q, time, rate
            n, rate = int(words[1]), float(words[6])
            # The time has hundredths of a second only; the rate in GFlop/s is of so many flops.
            flops = n * n * (2 / 3 * n + 3 / 2)
            seconds.setdefault((n, int(words[0][2]), int(words[0][3])), []).append(1e-9 * flops / rate)
    return seconds
