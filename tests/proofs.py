"""Random task graphs and composed schedules against their sequential lists, and mutants against the checker.

    python tests/proofs.py                        # 20,000 cases on 1 to 4 ranks, 10,000 mutants a kind
    python tests/proofs.py --part 3/16            # a part of it; all parts together are the whole
    python tests/proofs.py --only composed --first 4711 --cases 1 --mutants 0
    python tests/proofs.py --found 200            # what the checker finds: the tables of docs/theory/checker.md

One process: ranks are threads, nothing is launched. What is wrong is printed with its seed, and the exit status is 1.
"""

import argparse
import importlib
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: Has the tables of `--found`, between these lines.
PAGE, BEGIN, END = HERE.parent / "docs/theory/checker.md", "<!-- make proofs FOUND=200 -->", "<!-- end -->"
for folder in ("support", "schedule"):
    sys.path.insert(0, str(HERE / "python" / folder))

#: Of each kind of case: its part of all cases.
SHARES = {"graphs": 0.2, "turns": 0.15, "repeats": 0.2, "reductions": 0.15, "composed": 0.3}
#: Modules whose KINDS are the kinds of mutants.
MUTANTS = ("test_mutants", "test_combine", "test_composed")
RANKS = (1, 2, 3, 4)
BATCH, MUTANTS_AT_ONCE = 40, 250  # between two lines of progress


class Cases:
    """Cases of one kind: `make(seed, ranks)`, then `run(context, case)` on each rank, which gives None or what is
    wrong.
    """

    def __init__(self, name):
        import task_graphs as graphs

        modules = {"graphs": graphs, "turns": graphs, "repeats": "repeated_graphs"}
        module = modules.get(name, name)
        self.name, self.module = name, importlib.import_module(module) if isinstance(module, str) else module

    def make(self, seed, ranks):
        """(program, its schedule, how often its block runs)."""
        import tilewave as tw

        m, times = self.module, 1
        if self.name in ("graphs", "turns"):
            program = m.Graph(seed, ranks, lanes=(1, 3) if self.name == "graphs" else (2, 8))
        elif self.name == "repeats":
            program, times = m.Repeated(seed, ranks), 1 + seed % 7
        elif self.name == "reductions":
            program = m.Reduction(seed, ranks)
        else:
            program = m.Composed(seed, ranks)
            times = 1 + seed % 5 if program.block is not None else 1
        schedule = m.schedule_of(program)
        if (why := tw.check(schedule)) is not None:
            raise AssertionError(f"{program}: {why}")
        if tw.predict(schedule, threads=1, times=times).time_s <= 0 and sum(schedule.steps.values()):
            raise AssertionError(f"{program}: no time is predicted")
        return program, schedule, times

    def run(self, context, case):
        program, schedule, times = case
        m = self.module
        if self.name in ("graphs", "turns"):
            return m.wrong(program, context.rank, m.run_on(context, program, schedule))
        if self.name == "reductions":
            return m.run_on(context, program, schedule)
        return m.run_on(context, program, schedule, times)


def run_cases(name, seeds, ranks):
    """What is wrong with some cases, as text; else None."""
    from local_ranks import on_ranks

    kind = Cases(name)
    made = [kind.make(seed, ranks) for seed in seeds]

    def body(context):
        for seed, case in zip(seeds, made, strict=True):
            if (said := kind.run(context, case)) is not None:
                return f"seed {seed}, {ranks} ranks: {said}"
        return None

    results, errors = on_ranks(ranks, 1, body, timeout_s=600)
    return next((str(said) for said in (*errors, *results) if said is not None), None)


def cases(name, seeds, say):
    """All of them, in batches on 1 to 4 ranks."""
    begin, done = time.perf_counter(), 0
    batches = [seeds[k : k + BATCH] for k in range(0, len(seeds), BATCH)]
    for number, some in enumerate(batches):
        ranks = RANKS[number % len(RANKS)]
        try:
            said = run_cases(name, some, ranks)
        except AssertionError as error:
            said = str(error)
        if said is not None:
            say(f"WRONG: {name}: {said}")
            return False
        done += len(some)
        each = (time.perf_counter() - begin) / done * 1e3
        say(f"{name}: {done} of {len(seeds)} right; seeds {some[0]} to {some[-1]}, {ranks} ranks; {each:.1f} ms a case")
    return True


def mutants(module, kind, count, first, say):
    """So many mutants of one kind, each named."""
    begin, done = time.perf_counter(), 0
    while done < count:
        some = min(MUTANTS_AT_ONCE, count - done)
        seed = first + done * 100
        try:
            importlib.import_module(module).name_mutants(kind, some, seed)
        except AssertionError as error:
            say(f"WRONG: {module}, {kind.__name__}: {error}")
            return False
        done += some
        each = (time.perf_counter() - begin) / done * 1e3
        say(f"{module}, {kind.__name__}: {done} of {count} named; seeds from {seed + 1}; {each:.1f} ms a mutant")
    return True


def main(arguments, say=lambda text: print(text, flush=True)):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000, help="of all kinds together")
    parser.add_argument("--mutants", type=int, default=10_000, help="of each kind")
    parser.add_argument("--part", default="1/1", help="k/n: the k-th of n parts")
    parser.add_argument("--first", type=int, default=1_000_000, help="the first seed")
    parser.add_argument("--only", help="a kind of cases or mutants")
    parser.add_argument("--found", type=int, help="write the tables of what the checker finds; mutants of each kind")
    given = parser.parse_args(arguments)
    if given.found is not None:
        return write_tables(given.found, given.first, say)
    part, parts = map(int, given.part.split("/"))
    if not 1 <= part <= parts:
        parser.error(f"--part {given.part}: allowed: 1/{parts} to {parts}/{parts}")
    os.environ.setdefault("TILEWAVE_MACHINE", "default")
    right, begin, total = True, time.perf_counter(), 0
    with tempfile.TemporaryDirectory(prefix="tilewave-kernels-") as kernels, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # ranks share CPUs
        os.environ.setdefault("TILEWAVE_CACHE_DIR", kernels)
        for name, share in SHARES.items():
            count = round(given.cases * (1 if given.only else share))
            seeds = list(range(given.first, given.first + count))[part - 1 :: parts]
            if given.only in (None, name) and seeds:
                right, total = cases(name, seeds, say) and right, total + len(seeds)
        for number, (module, kind) in enumerate(all_mutants()):
            count = given.mutants * part // parts - given.mutants * (part - 1) // parts
            if given.only in (None, kind.__name__) and count:
                first = given.first + 100 * (given.mutants * number + given.mutants * (part - 1) // parts)
                right, total = mutants(module, kind, count, first, say) and right, total + count
    verdict = "right" if right else "WRONG"
    say(f"part {given.part}: {total} cases and mutants, {time.perf_counter() - begin:.0f} s; {verdict}")
    return 0 if right else 1


def write_tables(count, first, say):
    """What the checker finds, into its page."""
    import mpi_bugs

    tables = mpi_bugs.tables(count, first, say)
    say(tables)
    before, mark, rest = PAGE.read_text().partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    PAGE.write_text(f"{before}{mark}\n{tables}\n\n{end}{after}")
    return 0


def all_mutants():
    """(module, kind) of each kind of mutants."""
    return [(name, kind) for name in MUTANTS for kind in importlib.import_module(name).KINDS]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
