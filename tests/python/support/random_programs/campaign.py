"""Runs many cases in child processes, so that a crash or a hang has a seed; counts what comes of them."""

from __future__ import annotations

import collections
import dataclasses
import gc
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time

SEEDS_OF_A_CHILD = 300  # all on one instruction set
SILENT_S = 300  # a case that takes longer has hung


@dataclasses.dataclass(frozen=True)
class Limits:
    """What is run of some seeds."""

    shrink: int = 1  # 0: failures stay as they were drawn
    seconds: float = 1e9
    cpu_s: float = 1e9  # of each child
    kinds: str = ""  # which cases: names with commas, all of which a case has to have


class Counts:
    """What came of many cases."""

    def __init__(self):
        self.kinds, self.refusals, self.raised = (collections.Counter() for _ in range(3))
        self.failures, self.drawn = collections.Counter(), collections.Counter()

    def add(self, line):
        self.kinds[line["kind"]] += 1
        self.drawn.update(line.get("kinds", ()))
        if line["kind"] in ("refused", "raised", "wrong"):
            {"refused": self.refusals, "raised": self.raised, "wrong": self.failures}[line["kind"]][line["said"]] += 1

    def text(self):
        lines = [f"{sum(self.kinds.values())} programs: " + ", ".join(f"{n} {k}" for k, n in self.kinds.most_common())]
        for title, counter in (("drawn", self.drawn), ("refused", self.refusals), ("raised", self.raised),
                               ("WRONG", self.failures)):  # fmt: skip
            lines += [f"{title}:"] * bool(counter) + [f"{n:8} {what}" for what, n in counter.most_common()]
        return "\n".join(lines)


def child(seeds, part, limits):
    """Run the cases of some seeds in this process, a line of JSON for each."""
    import faulthandler

    from random_programs import case as cases
    from random_programs.script import shown
    from random_programs.smaller import smaller

    faulthandler.enable()
    gc.set_threshold(50_000)
    say = lambda **line: print(json.dumps(line), flush=True)
    stop = time.monotonic() + limits.seconds
    wanted, seen = {*limits.kinds.split(",")} - {""}, set()
    for seed in seeds:
        if seed // cases.SETTINGS_OF_A_PROGRAM % part[1] != part[0] - 1:
            continue
        if time.monotonic() > stop or time.process_time() > limits.cpu_s:
            break
        say(begins=seed)
        one = cases.drawn(seed)
        if not wanted <= one.kinds():
            continue
        found = one.outcome()
        say(seed=seed, kind=found.kind, said=found.said, detail=found.detail[:2000], kinds=sorted(one.kinds()))
        if found.kind == "wrong":
            if limits.shrink and found.said not in seen and found.said != "hangs":
                one, found = smaller(one, found, lambda: say(begins=seed))
            say(failed=seed, text=shown(one, found, seed))
            seen.add(found.said)
            if found.said == "hangs":
                os._exit(3)


def environment(seed):
    """The variables of a child: seeds of every other child compute without AVX-512. Memory that nobody has written is
    not zero.
    """
    instructions = "avx2" if seed // (SEEDS_OF_A_CHILD) % 2 else ""
    return {"MALLOC_PERTURB_": "165", **os.environ, "TILEWAVE_INSTRUCTIONS": instructions}


def campaign(command, seeds, part, limits, say):
    """Run cases of some seeds, a part of them, in children; the `Counts`."""
    counts, begin = Counts(), time.monotonic()
    stop = begin + limits.seconds
    size = SEEDS_OF_A_CHILD * part[1]
    for batch in range(seeds.start, seeds.stop, size):
        at, end = batch, min(batch + size, seeds.stop)
        while at < end and time.monotonic() < stop:
            left = dataclasses.replace(limits, seconds=max(1, stop - time.monotonic()))
            at = _run_child(command, range(at, end), part, left, counts, say)
        done = sum(counts.kinds.values())
        per = (time.monotonic() - begin) / max(1, done)
        say(f"seeds to {end}: {done} programs, {sum(counts.failures.values())} wrong; {per:.2f} s each")
        if time.monotonic() > stop:
            break
    return counts


def _run_child(command, seeds, part, limits, counts, say):
    """Read what a child says until it ends; the seed to go on with."""
    given = [*command, "--child", f"{seeds.start}:{seeds.stop}", "--part", "/".join(map(str, part))]
    given += ["--shrink", str(int(limits.shrink)), "--kinds", limits.kinds]
    given += ["--seconds", str(limits.seconds), "--cpu", str(limits.cpu_s)]
    lines, current = queue.Queue(), None
    with tempfile.TemporaryFile("w+") as errors:
        known = environment(seeds.start)
        process = subprocess.Popen(given, stdout=subprocess.PIPE, stderr=errors, text=True, env=known)
        reader = threading.Thread(target=lambda: [*map(lines.put, process.stdout), lines.put("")], daemon=True)
        reader.start()
        try:
            while text := lines.get(timeout=SILENT_S):
                line = json.loads(text)
                if "begins" in line:
                    current = line["begins"]
                elif "failed" in line:
                    say(f"--- WRONG\n{line['text']}")
                else:
                    counts.add(line)
        except queue.Empty:
            process.send_signal(signal.SIGABRT)  # faulthandler shows where it is
        process.wait()
        errors.seek(0)
        said = errors.read()[-3000:]
    if process.returncode == 0:
        return seeds.stop
    if current is None:
        raise RuntimeError(f"the child process ended before its first program:\n{said}")
    if process.returncode != 3:
        what = f"the process ended with status {process.returncode}"
        counts.add({"kind": "wrong", "said": what})
        say(f"--- WRONG\n{said}\n{_program(current, what)}")
    return current + 1


def _program(seed, what):
    """The program of a seed that ended its process; it is not run here."""
    from random_programs import case
    from random_programs.outcomes import Outcome
    from random_programs.script import shown

    return shown(case.drawn(seed), Outcome("wrong", what), seed)
