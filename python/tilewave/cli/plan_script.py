"""``tilewave plan``: all calls of a script are planned and none is run, for ranks that need not be there."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import runpy
import sys
import sysconfig
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewave import notices, units
from tilewave.context import context, dry_run
from tilewave.context.planned_calls import PlannedCalls
from tilewave.context.unknown_values import Endless
from tilewave.errors import ConfigError
from tilewave.nest.source import remember

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tilewave.machine.machine import Machine

#: Bytes that each rank takes beside arrays: Python, NumPy, LLVM and MPI. Measured as the resident memory of each of two
#: ranks that have run a nest of 100 x 100 points: 156 MB, of which 52 MB are no mapped files.
BASE_BYTES = 150 << 20
MOST_LINES, MOST_NAMES = 40, 3  # of the table; of nests in one line of it


@dataclasses.dataclass
class PlannedScript:
    """Hold what a script is predicted to take.

    Attributes
    ----------
    launch : dry_run.Launch
        Ranks, threads, machine; ``launch.calls`` has the calls.
    own_s : float
        Seconds that the script has taken here for itself, beside calls of Tilewave.
    ended : str
        Why the script ended early; empty where it came to its end.
    """

    launch: dry_run.Launch
    own_s: float
    ended: str

    @property
    def calls(self) -> PlannedCalls:
        """Return the calls of the script."""
        return self.launch.calls

    @property
    def time_s(self) -> float:
        """Predicted: calls, and what the script itself takes."""
        return self.calls.time_s + self.own_s

    @property
    def memory_bytes(self) -> int:
        """Return the bytes of a rank: fields, matrices, staging, and what every process takes."""
        return self.calls.peak_bytes + BASE_BYTES

    @property
    def core_s(self) -> float:
        """CPU seconds of all lanes."""
        return self.time_s * self.launch.ranks * self.calls.threads

    @property
    def longest(self) -> Any:
        """The plan of the call that takes most of those with one; None where no call has one."""
        planned = [call for call in self.calls if call.plan is not None]
        return max(planned, key=lambda call: call.time_s).plan if planned else None


def plan_script(
    script: str | os.PathLike[str],
    arguments: Sequence[str],
    ranks: int,
    threads: int | None,
    machine: Machine | None = None,
    path: str = "",
    rounds: int | None = None,
    all_ranks: bool = False,
) -> PlannedScript:
    """Plan all that a script calls, for ranks that need not be there.

    Parameters
    ----------
    script : path
    arguments : list of str
    ranks, threads : int
    machine : Machine, optional
    path : str
        Where the machine is from, for messages.
    rounds : int, optional
        Of loops that end by values which are only known when the program runs.
    all_ranks : bool
        Whether chosen plans are simulated with all ranks.

    Raises
    ------
    ConfigError
        When the script calls nothing that can be planned; whatever else it raises before.
    """
    if not Path(script).is_file():
        raise ConfigError(f"{script}: there is no such script")
    if ranks < 1 or threads is not None and threads < 1:
        raise ConfigError(f"ranks {ranks}, threads {threads} were given; allowed: 1 and more")
    if rounds is not None and rounds < 1:
        raise ConfigError(f"rounds {rounds} were given; allowed: 1 and more")
    launch = dry_run.Launch(ranks, threads, machine, path, PlannedCalls(rounds, all_ranks))
    ended, begun = "", time.perf_counter()
    with _dry(script, arguments, launch):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if end.code:
                ended = f"it ended with {end.code!r}"
        except Endless as end:
            ended = f"the loop at {end} does not end by values that are not known"
        except (Exception, KeyboardInterrupt) as error:
            if not launch.calls.predicted:
                raise
            text = " ".join(str(error).split())
            ended = f"{_line_of(error, script)} raised {type(error).__name__}{text and f': {text}'}"
    own_s = time.perf_counter() - begun - launch.calls.inside_s
    if not launch.calls.predicted:
        how = f"{script} {ended.replace('it ended', 'ended')}" if ended else f"{script} ended"
        raise ConfigError(f"{how} and called nothing that can be planned: runs of nests, matrices, solvers")
    return PlannedScript(launch, own_s, ended)


@contextlib.contextmanager
def _dry(script, arguments, launch) -> Iterator[None]:
    """Contexts are dry, and the script's output is nobody's."""
    dry_run.launch = launch
    saved, default = (sys.argv, sys.path[:]), context._default.context
    context._default.context = None
    sys.argv = [str(script), *arguments]
    if not getattr(sys.flags, "safe_path", False):  # in place of the folder of this program
        sys.path[0] = str(Path(script).resolve().parent)
    remember(str(script))
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
    finally:
        dry_run.launch, context._default.context = None, default
        sys.argv, sys.path[:] = saved


def _line_of(error, script):
    """The innermost line of the user's that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    installed = (notices.HERE, "<frozen ", *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))
    own = [f for f in frames if not f.filename.startswith(installed)] or list(frames)
    return f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else str(script)


def text(found: PlannedScript, explained: bool = True) -> str:
    """The text about a planned script: its calls, what they take together, and what that leaves out."""
    launch = found.launch
    hosts = len(set(dry_run.hosts_of(launch.machine, launch.ranks)))
    lines = [
        f"Planned for {units.count(launch.ranks, 'rank')} on {units.count(hosts, 'host')}, "
        f"{units.count(found.calls.threads, 'lane')} each; nothing was run."
    ]
    if launch.machine is None:
        lines.append(
            "The machine's numbers are for any machine: give --machine FILE, which `tilewave measure -o FILE` writes "
            "there."
        )
    else:
        lines.append(
            f"The machine's numbers are those of {launch.path}; rates of bodies are this computer's, one rank's at a "
            "time."
        )
        if hosts == 1 and launch.ranks > 1:
            lines.append("The machine file knows one host: all ranks are taken to be on it.")
    if launch.machine is not None and launch.machine.network is not None:
        lines.append(f"Its network: {launch.machine.network}.")
    lines += ["", *_table(found), "", *totals(found), *_simulated(found), *_assumed(found)]
    if explained and hasattr(found.longest, "explain"):
        lines += ["", "Of the calls with a plan, the one that takes most:", found.longest.explain()]
    return "\n".join(lines)


def _table(found):
    calls, known = list(found.calls), found.calls.predicted
    unit, each = units.column([call.time_s / call.count for call in known], units.TIMES)
    of_all, sums = units.column([call.time_s for call in known], units.TIMES)
    times = {id(call): (a, b) for call, a, b in zip(known, each, sums, strict=True)}
    rows = [("line", "call", "times", f"each, {unit}", f"all, {of_all}", "")]
    for call in calls[:MOST_LINES]:
        what = ", ".join(call.what[:MOST_NAMES]) + (
            f" and {len(call.what) - MOST_NAMES} more" if call.what[MOST_NAMES:] else ""
        )
        rows.append((call.where, call.name, str(call.count), *times.get(id(call), ("not", "predicted")), what))
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    for row in rows:
        cells = [cell.ljust(w) if k < 2 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths))]
        yield "  ".join([*cells, row[5]]).rstrip()
    if len(calls) > MOST_LINES:
        yield f"... and {len(calls) - MOST_LINES} more lines"


def totals(found: PlannedScript) -> list[str]:
    """Return what the whole script takes: time, core-hours, memory; a line each."""
    lanes = found.launch.ranks * found.calls.threads
    arrays = found.calls.peak_bytes
    return [
        f"time        {units.seconds(found.time_s)}: {units.seconds(found.calls.time_s)} in calls{without(found)}, "
        f"{units.seconds(found.own_s)} in the script itself, as it took here",
        f"core-hours  {units.number(found.core_s / 3600)}: {units.count(found.launch.ranks, 'rank')} x "
        f"{units.count(found.calls.threads, 'lane')}{'' if lanes > 1 else ', one CPU'}",
        f"memory      {units.size(found.memory_bytes)} a rank: {units.size(arrays)} of fields, matrices and staging, "
        f"{units.size(BASE_BYTES)} of Python and MPI; NumPy arrays of the script are not counted",
    ]


def without(found: PlannedScript) -> str:
    """Return how many lines of the table have no time, as a part of a sentence; empty where all have one."""
    unknown = len(found.calls) - len(found.calls.predicted)
    return f", without {units.count(unknown, 'line')} not predicted" if unknown else ""


def _simulated(found):
    """Return what of each nest and operation was simulated, where that is not all of it."""
    samples = found.calls.samples
    if samples:
        yield from ("", "Simulated:", *(f"  {what}: {sample}." for what, sample in samples.items()))


def _assumed(found):
    """Return what was assumed, and what is not predicted."""
    decisions, lines = found.calls.decisions, []
    if found.ended:
        lines.append(f"  The script ended early, what follows was not planned: {found.ended}.")
    lines += [f"  {where}: {what}" for where, what in decisions.made.items()]
    if any("counted" in what for what in decisions.made.values()) and decisions.rounds is None:
        lines.append("  With --rounds N, N rounds of such loops are counted.")
    if decisions.unknown:
        names = list(decisions.unknown)
        more = f", and {len(names) - MOST_NAMES} more" if names[MOST_NAMES:] else ""
        lines.append(f"  Not known before the program runs: {'; '.join(names[:MOST_NAMES])}{more}.")
    lines.append(
        "  Not predicted: planning and compiling at the first call of each nest (about 0.1 s), filling new fields and "
        "matrices, moving them between layouts, and the lines that say so."
    )
    return ["", "Assumed, and not predicted:", *lines]
