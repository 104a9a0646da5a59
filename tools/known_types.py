"""Checks the types of what users see: basedpyright on the package and on the programs of tests/python/types, mypy on
one of them, and that every public name is known completely. Public are the names of the package's front and of its
modules linalg, patterns, multigrid and recipes, with what these return.
"""

import json
import os
import subprocess
import sys
import types
from pathlib import Path

import tilewave

ROOT = Path(__file__).resolve().parent.parent
#: What public functions return, and is not named by the front itself.
RESULTS = [
    "field.create.Scratch", "field.time_buffer.TimeBuffer", "linalg.layout.Layout", "linalg.plan.WithPrediction",
    "machine.machine.Curve", "machine.machine.Link", "nest.dependences.Dependence", "nest.dependences.Place",
    "nest.views.View", "nests.chain.report.ChainTimes", "nests.chain.report.NestRun",
    "nests.run.memory_bound.MemoryBound", "nests.call.reduce_functions.Reduction", "nests.run.report.LaneTimes",
    "nests.run.report.Measured",
    "schedule.lanes.LaneOfSchedule", "schedule.nests.NestOfSchedule", "schedule.regions.ArrayOfSchedule",
    "schedule.regions.MessageOfSchedule", "schedule.regions.Region", "schedule.regions.Signal",
    "timeline.parts.Face", "timeline.parts.Parts", "timeline.parts.Predicted", "timeline.parts.WithComparison",
]  # fmt: skip


def public_names():
    """Where the public names are defined: "tilewave.field.field.Field"."""
    found = {f"tilewave.{name}" for name in (*RESULTS, "rank", "size")}
    for owner in (tilewave, tilewave.linalg, tilewave.multigrid, tilewave.patterns, tilewave.recipes):
        more = ("max", "min", "print", "sum") if owner is tilewave else ()
        for name in {*owner.__all__, *more} - {"rank", "size"}:  # which would start MPI
            value = getattr(owner, name)
            if not isinstance(value, types.ModuleType):
                home = getattr(value, "__module__", owner.__name__)
                found.add(f"{home}.{name}")
    return found


def started(*command):
    """A program of this environment, running; the package is found by its path, as it is edited in place."""
    folder = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{folder}:{os.environ.get('PATH', '')}", "PYTHONPATH": "python", "MYPYPATH": "python"}
    return subprocess.Popen(
        [str(folder / command[0]), *command[1:]], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
    )


def unknown(report):
    """(lines of what is not known of the public names, how many public symbols there are)."""
    public, lines, count = public_names(), [], 0
    for symbol in report["typeCompleteness"]["symbols"]:
        name = symbol["name"]
        if not any(name == each or name.startswith(f"{each}.") for each in public):
            continue
        count += 1
        if not symbol["isTypeKnown"]:
            why = "; ".join(" ".join(d["message"].split()) for d in symbol["diagnostics"] if d["severity"] == "error")
            lines.append(f"{name}: {why or 'what it is made of is not known'}")
    return lines, count


def main():
    checker = "basedpyright", "--outputjson"
    verifying, checking = started(*checker, "--verifytypes", "tilewave", "--ignoreexternal"), started(*checker)
    # mypy reads the package's stubs, and stops at bad ones.
    other = started("mypy", "--cache-dir", "build/mypy", "--no-error-summary", "tests/python/types/user.py")
    wrong, count = unknown(json.loads(verifying.communicate()[0]))
    for found in json.loads(checking.communicate()[0])["generalDiagnostics"]:
        if found["severity"] in ("error", "warning"):
            file = Path(found["file"]).relative_to(ROOT)
            wrong.append(f"{file}:{found['range']['start']['line'] + 1}: {found['message']} ({found.get('rule', '')})")
    wrong += other.communicate()[0].splitlines()
    if not count:
        wrong.append("no public names were found: the stubs and py.typed are made by make dev")
    print("\n".join(wrong) or f"types: {count} public names are known")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
