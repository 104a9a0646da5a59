"""Job files of batch systems, with what a script is predicted to take."""

from __future__ import annotations

import dataclasses
import math
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tilewave import files, units
from tilewave.cli.plan_script import totals
from tilewave.errors import ConfigError, shown
from tilewave.launch.launch import program_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tilewave.cli.plan_script import PlannedScript

# A job that is ended by its limit has lost all: half as much again as predicted, and what starts and ends it.
TIME_FACTOR, TIME_MORE_S = 1.5, 120.0
# Of memory: allocators and MPI's buffers, which grow with ranks.
MEMORY_FACTOR, STEP_BYTES = 1.25, 256 << 20

WRITTEN_BY = "Written by `tilewave batch`"  # in each job file: others are not replaced


@dataclasses.dataclass(frozen=True)
class Job:
    """Hold what a job asks for.

    Attributes
    ----------
    name : str
    nodes, ranks, threads : int
        In all; lanes of a rank.
    time_s : int
        Its limit.
    memory_bytes : int
        Of a node.
    queue, account : str
        Partition or queue; empty: the system's default.
    restart : bool
        Whether the script goes on from its checkpoint when a rank or node dies.
    """

    name: str
    nodes: int
    ranks: int
    threads: int
    time_s: int
    memory_bytes: int
    queue: str = ""
    account: str = ""
    restart: bool = False

    @property
    def ranks_per_node(self) -> int:
        """Return the number of ranks of the fullest node."""
        return -(-self.ranks // self.nodes)


def _clock(seconds, days=False):
    minutes, left = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if days and hours >= 24:
        return f"{hours // 24}-{hours % 24:02}:{minutes:02}:{left:02}"
    return f"{hours:02}:{minutes:02}:{left:02}"


def _slurm(job):
    yield f"--job-name={job.name}"
    yield f"--nodes={job.nodes}"
    yield f"--ntasks={job.ranks}"
    yield f"--ntasks-per-node={job.ranks_per_node}"
    yield f"--cpus-per-task={job.threads}"
    yield f"--mem={job.memory_bytes >> 20}M"
    yield f"--time={_clock(job.time_s, days=True)}"
    yield from (f"--partition={job.queue}",) if job.queue else ()
    yield from (f"--account={job.account}",) if job.account else ()
    yield from ("--no-kill",) if job.restart else ()  # else the job ends with its first node


def _pbs(job):
    per_node = job.ranks_per_node
    yield f"-N {job.name}"
    cpus = per_node * job.threads
    memory = f"mem={job.memory_bytes >> 20}mb"
    yield f"-l select={job.nodes}:ncpus={cpus}:mpiprocs={per_node}:ompthreads={job.threads}:{memory}"
    yield "-l place=scatter"  # each chunk on a node of its own
    yield f"-l walltime={_clock(job.time_s)}"
    yield from (f"-q {job.queue}",) if job.queue else ()
    yield from (f"-A {job.account}",) if job.account else ()


def _lsf(job):
    per_node = job.ranks_per_node
    yield f"-J {job.name}"
    yield f"-n {job.ranks}"
    yield f'-R "span[ptile={per_node}] affinity[core({job.threads})] rusage[mem={job.memory_bytes >> 20}MB/host]"'
    yield f"-W {job.time_s // 3600:02}:{job.time_s % 3600 // 60:02}"
    yield from (f"-q {job.queue}",) if job.queue else ()
    yield from (f"-P {job.account}",) if job.account else ()


def _flux(job):
    yield f"--job-name={job.name}"
    yield f"-N {job.nodes}"
    yield f"-n {job.ranks}"
    yield f"-c {job.threads}"
    yield f"-t {job.time_s // 60}m"
    yield from (f"-q {job.queue}",) if job.queue else ()
    yield from (f"-B {job.account}",) if job.account else ()


#: Of each system: how its lines begin, what they say, how a job is submitted, its folder.
SYSTEMS: dict[str, tuple[str, Callable[[Job], object], str, str]] = {
    "slurm": ("#SBATCH", _slurm, "sbatch {}", ""),
    "pbs": ("#PBS", _pbs, "qsub {}", 'cd "$PBS_O_WORKDIR"\n'),
    "lsf": ("#BSUB", _lsf, "bsub < {}", ""),
    "flux": ("#flux:", _flux, "flux batch {}", ""),
}


def name_of(script: str) -> str:
    """The name of a script's job: what all systems take, 15 characters at most, the first of them a letter."""
    name = re.sub(r"[^\w.-]+", "_", Path(script).stem, flags=re.ASCII)
    return (name if re.match("[A-Za-z]", name) else f"job_{name}")[:15]


def check_name(option: str, given: str) -> None:
    """Refuse the name of a queue or account that would be more than that in a job file.

    Raises
    ------
    ConfigError
    """
    if given and not re.fullmatch(r"[A-Za-z0-9_][\w.,:@/+=-]*", given, re.ASCII):
        raise ConfigError(f"{option}: given {shown(given)}; allowed: a name of letters, digits and . , : @ / + = - _")


def may_replace(file: Path) -> bool:
    """Return whether there is no such file, or one that `text` has made."""
    try:
        return WRITTEN_BY.encode() in files.read(file, files.MOST_TEXT_BYTES)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def time_limit_s(given: str, predicted_s: float) -> int:
    """Seconds of a limit, whole minutes: "auto" for what is predicted, or as minutes or hours:minutes:seconds.

    Raises
    ------
    ConfigError
    """
    if given == "auto":
        return 60 * math.ceil((TIME_FACTOR * predicted_s + TIME_MORE_S) / 60)
    if not re.fullmatch(r"\d{1,6}|\d{1,5}:\d\d(:\d\d)?", given, re.ASCII) or not re.search("[1-9]", given):
        raise ConfigError(f"--time: given {shown(given)}; allowed: auto, minutes as in 90, or 1:30:00")
    parts = [int(part) for part in given.split(":")]
    seconds = parts[0] * 60 if len(parts) == 1 else sum(p * f for p, f in zip(parts, (3600, 60, 1)))
    return 60 * math.ceil(seconds / 60)


def memory_of_node(found: PlannedScript, ranks: int) -> int:
    """Bytes that so many ranks on a node are to be given."""
    wanted = MEMORY_FACTOR * found.memory_bytes * ranks
    return STEP_BYTES * math.ceil(wanted / STEP_BYTES)


def text(
    job: Job, system: str, found: PlannedScript, script: str, arguments: Sequence[str], file: str, auto: bool
) -> str:
    """The job file.

    Parameters
    ----------
    job : Job
    system : str
        Of `SYSTEMS`.
    found : PlannedScript
    script, arguments
        What the job runs.
    file : str
        Its name, for the line that submits it.
    auto : bool
        Whether its time limit is what is predicted.
    """
    mark, lines, submit, folder = SYSTEMS[system]
    limit = f"{TIME_FACTOR:g} times that and {TIME_MORE_S / 60:g} minutes" if auto else "as given"
    why = [
        f"{WRITTEN_BY}; submit it with: " + submit.format(shlex.quote(file)),
        "Predicted for the whole script:",
        *("  " + line for line in totals(found)),
        f"Time limit: {limit}. Memory of a node: {MEMORY_FACTOR:g} times that of its "
        f"{units.count(job.ranks_per_node, 'rank')}, {units.size(job.memory_bytes)}.",
        *(f"Assumed: {where}: {what}" for where, what in found.calls.decisions.made.items()),
        *([f"The script ended early while it was planned: {found.ended}"] if found.ended else []),
    ]
    tool = Path(sys.executable).with_name("tilewave")
    start = [str(tool)] if tool.exists() else program_of("tilewave.cli.commands")
    options = ["-n", str(job.ranks), "--threads", str(job.threads), *["--restart"] * job.restart]
    before = ["--"] * script.startswith("-")  # else it would be an option
    command = shlex.join([*start, "run", *options, *before, script, *arguments])
    wanted = "\n".join(f"{mark} {line}" for line in lines(job))
    said = "\n".join("# " + line.replace("\n", " ") for line in why)
    return f"#!/bin/bash\n{wanted}\n\n{said}\n\n{folder}exec {command}\n"
