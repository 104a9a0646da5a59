"""The commands `tilewave plan` and `tilewave batch`, which run a script without running what it calls."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import typer

SCRIPT = typer.Argument(..., help="Python script.")
ARGS = typer.Argument(None, help="Arguments of the script, passed on untouched.")
PLAN_THREADS = typer.Option(None, "--threads", help="Lanes (CPUs) of each rank. Default: as FILE says, else as here.")
MACHINE = typer.Option(
    None,
    "--machine",
    help="The machine's numbers: FILE that `tilewave measure -o FILE` wrote there, or the name of a machine that comes "
    "with Tilewave, such as fat-tree.",
)
ROUNDS = typer.Option(None, "--rounds", help="Rounds of loops that end by values which only a run knows. Default: 1.")


def fail(message):
    """End the command with a line on stderr, and code 2."""
    typer.echo(f"tilewave: {message}", err=True)
    raise typer.Exit(2)


def plan(
    script: str = SCRIPT,
    args: list[str] | None = ARGS,
    ranks: int = typer.Option(1, "-n", "--ranks", help="Number of ranks to plan for; they need not be here."),
    threads: int | None = PLAN_THREADS,
    machine: str | None = MACHINE,
    rounds: int | None = ROUNDS,
    file: Path | None = typer.Option(None, "-o", "--json", help="Write the plan of the longest call to this file."),
):
    """Say what SCRIPT would take, call by call, and why, for a machine that need not be here; options come before
    SCRIPT.

    The script runs in one process; its calls are planned, and none is run. What it prints is not shown.
    """
    from tilewave.cli import plan_script

    if file is not None and not file.absolute().parent.is_dir():
        fail(f"no folder for {file}")
    found = _planned(script, args, ranks, threads, machine, rounds)
    typer.echo(plan_script.text(found))
    if file is not None:
        if not hasattr(found.longest, "save"):
            fail(f"no plan for {file}: the longest call is no run of a nest")
        _saved(found.longest.save, file)


def simulate(
    script: str = SCRIPT,
    args: list[str] | None = ARGS,
    ranks: str = typer.Option(
        "1", "-n", "--ranks", help="Number of ranks to simulate; several with commas give a table of their scaling."
    ),
    threads: int | None = PLAN_THREADS,
    machine: str | None = MACHINE,
    rounds: int | None = ROUNDS,
    kind: str = typer.Option(
        "strong", "--scaling", help="strong: the script has the same work on all ranks; weak: each rank has as much."
    ),
    file: Path | None = typer.Option(None, "-o", help="Picture of the scaling: a .png, .svg or .pdf file."),
):
    """Say what SCRIPT would take on a cluster that need not be there, with the messages of all ranks on its network;
    options come before SCRIPT.

    As `tilewave plan`, and each plan is then simulated with all ranks, where there is memory for them. With several
    numbers of ranks: how the predicted time scales.
    """
    from tilewave import ConfigError
    from tilewave.cli import plan_script, scaling

    try:
        counts = scaling.rank_counts(ranks)
        scaling.check(kind, file, counts)
    except ConfigError as error:
        fail(error)
    found = [_planned(script, args, count, threads, machine, rounds, all_ranks=True) for count in counts]
    if len(found) == 1:
        typer.echo(plan_script.text(found[0]))
        return
    typer.echo(scaling.text(found, kind))
    if file is not None:
        _saved(scaling.draw, found, kind, Path(script).name, file)
        typer.echo(f"picture: {file}")


def _saved(save, *arguments):
    from tilewave import ConfigError

    try:
        save(*arguments)
    except ConfigError as error:
        fail(error)


def _planned(script, args, ranks, threads, machine, rounds, all_ranks=False):
    from tilewave import ConfigError, Machine
    from tilewave.cli import plan_script

    try:
        numbers = machine if machine is None or isinstance(machine, Machine) else Machine.load(machine)
        return plan_script.plan_script(script, args or [], ranks, threads, numbers, str(machine), rounds, all_ranks)
    except ConfigError as error:
        return fail(error)


def batch(  # noqa: PLR0917 - Typer gives all by name
    script: str = SCRIPT,
    args: list[str] | None = ARGS,
    nodes: int = typer.Option(1, "-N", "--nodes", help="Number of nodes."),
    per_node: int | None = typer.Option(
        None, "--ranks-per-node", help="Ranks of each node. Default: as FILE says, else 1."
    ),
    threads: int | None = PLAN_THREADS,
    limit: str = typer.Option("auto", "--time", help="Time limit: auto (from the plan), minutes, or 1:30:00."),
    system: str = typer.Option("slurm", "--system", help="slurm, pbs, lsf or flux."),
    machine: str | None = MACHINE,
    rounds: int | None = ROUNDS,
    queue: str = typer.Option("", "--queue", help="Partition or queue."),
    account: str = typer.Option("", "--account", help="Account or project."),
    restart: bool = typer.Option(False, "--restart", help="As of `tilewave run`."),
    file: Path | None = typer.Option(None, "-o", help="Job file. Default: SCRIPT.sh of the script's name, here."),
):
    """Write a job file for SCRIPT with the time, memory and core-hours that its plan predicts; options come before
    SCRIPT.
    """
    from tilewave import ConfigError, Machine, files
    from tilewave.cli import batch_file, plan_script
    from tilewave.context import dry_run

    file = file or Path(Path(script).stem + ".sh")
    if system not in batch_file.SYSTEMS:
        fail(f"--system: given {system!r}; allowed: {', '.join(batch_file.SYSTEMS)}")
    if nodes < 1 or per_node is not None and per_node < 1:
        fail(f"nodes {nodes}, ranks per node {per_node} were given; allowed: 1 and more")
    if not file.absolute().parent.is_dir():
        fail(f"no folder for {file}")
    if not batch_file.may_replace(file):
        fail(f"{file} is there, and `tilewave batch` has not written it; allowed: -o with another name")
    try:
        batch_file.check_name("--queue", queue)
        batch_file.check_name("--account", account)
        numbers = None if machine is None else Machine.load(machine)
        if per_node is None:
            per_node = dry_run.ranks_per_host(numbers)
        wanted = batch_file.time_limit_s(limit, 0.0)
    except ConfigError as error:
        fail(error)
    found = _planned(script, args, nodes * per_node, threads, machine, rounds)
    if limit == "auto":
        wanted = batch_file.time_limit_s(limit, found.time_s)
    job = batch_file.Job(
        batch_file.name_of(script),
        nodes,
        nodes * per_node,
        found.calls.threads,
        wanted,
        batch_file.memory_of_node(found, per_node),
        queue,
        account,
        restart,
    )
    text = batch_file.text(job, system, found, script, args or [], str(file), limit == "auto")
    _saved(files.save, "batch", file, os.fsencode(text))
    file.chmod(0o755)
    typer.echo(plan_script.text(found, explained=False))
    submit = batch_file.SYSTEMS[system][2].format(shlex.quote(str(file)))
    typer.echo(f"\n{file}: submit it with `{submit}`")
