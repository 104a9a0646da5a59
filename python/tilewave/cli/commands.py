"""The command `tilewave`. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import typer

from tilewave.cli.planning_commands import ARGS, SCRIPT, batch, fail, plan, simulate
from tilewave.units import seconds
from tilewave.version import version

PING_TIMEOUT_S = 60.0
CHECKOUT = Path(__file__).resolve().parents[3]
FIRST_EXAMPLE = "01_first_nest.py"  # of examples/ in a checkout; elsewhere next to this file
RANKS_HELP = "Number of ranks. Default: those of the hosts, or of the job (SLURM, PBS, LSF, Flux), or 1."
RANKS = typer.Option(None, "-n", "--ranks", help=RANKS_HELP)
THREADS_HELP = "Lanes (CPUs) of each rank. Default: the CPUs allowed on its host, shared by the ranks there."
THREADS = typer.Option(None, "--threads", help=THREADS_HELP)
RESTART_HELP = "When a rank or host dies, go on from the last tw.checkpoint on the hosts that are left, up to 3 times."
VERIFY_HELP = "Compare each run of a nest with its plain loops, on rank 0: slow (TILEWAVE_VERIFY=1)."
HOSTS = typer.Option(None, "--hosts", help="Hosts, as in a,b or a:2,b:2; reached with ssh.")
HOSTFILE = typer.Option(None, "--hostfile", help="File with a host a line: host, host:2 or host slots=2.")

# No `rich_markup_mode`: plain help texts. Tracebacks are for developers: the default ones.
app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def main():
    """Entry point of the command line."""
    sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be UTF-8
    app(prog_name="tilewave")


def _show_version(wanted: bool):
    if wanted:
        typer.echo(f"tilewave {version()}")
        raise typer.Exit()


def _show_cmake_dir(wanted: bool):
    if wanted:
        from tilewave import _core

        folder = Path(_core.__file__).parent / "cpp" / "lib" / "cmake" / "tilewave"
        if not folder.is_dir():
            fail(f"no CMake package in {folder}: this installation is not complete; install Tilewave again")
        typer.echo(folder)
        raise typer.Exit()


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
    cmake_dir: bool = typer.Option(
        False,
        "--cmake-dir",
        callback=_show_cmake_dir,
        is_eager=True,
        help="Show the folder of the CMake package, for CMAKE_PREFIX_PATH, and exit.",
    ),
):
    """Loop nests with dependences on clusters, with the communication hidden."""


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    script: str = SCRIPT,
    args: list[str] | None = ARGS,
    *,
    ranks: int | None = RANKS,
    threads: int | None = THREADS,
    hosts: str | None = HOSTS,
    hostfile: Path | None = HOSTFILE,
    restart: bool = typer.Option(False, "--restart", help=RESTART_HELP),
    restarts: int | None = typer.Option(None, "--restarts", help="So many times at most, in place of 3."),
    verify: bool = typer.Option(False, "--verify", help=VERIFY_HELP),
    shown: bool = typer.Option(False, "--print", help="Show the command and its environment; run nothing."),
):
    """Run SCRIPT on several ranks; options come before SCRIPT.

    Inside a job of SLURM, PBS, LSF or Flux its hosts are used. Ctrl-C ends all ranks.
    """
    from tilewave.launch import restarts as restarting
    from tilewave.launch.launch import LaunchError, command_of, launch

    given = {"-n": ranks, "--ranks": ranks, "--threads": threads, "--hosts": hosts, "--hostfile": hostfile}
    given |= {"--print": shown or None, "--restart": restart or None, "--restarts": restarts}
    given["--verify"] = verify or None
    try:
        _point_out_options(args or [], given)
        hosts, ranks = _where(hosts, hostfile, ranks)
        more = {"TILEWAVE_VERIFY": "1"} if verify else {}
        if shown:
            typer.echo(os.fsencode(command_of(script, args or [], ranks, threads, hosts, more=more).shown()))
            raise typer.Exit()
        times = restarting.TIMES if restart and restarts is None else restarts
        if times is None:
            code = launch(script, args or [], ranks=ranks, threads=threads, hosts=hosts, more=more)
        else:
            code = restarting.launch(script, args or [], ranks, threads, hosts, times, more)
    except LaunchError as error:
        fail(error)
    raise typer.Exit(code)


def _where(hosts, hostfile, ranks):
    """Hosts and ranks of a launch, from what the user has given."""
    from tilewave.launch.hosts import read_hostfile
    from tilewave.launch.launch import LaunchError, default_ranks

    if hosts and hostfile:
        raise LaunchError("--hosts and --hostfile were given; allowed: one of them")
    hosts = read_hostfile(hostfile) if hostfile else hosts
    return hosts, default_ranks(hosts) if ranks is None else ranks


def _point_out_options(args, given):
    """Say so where the script's first argument looks like an option of ours that was not given."""
    name = args[0].partition("=")[0] if args else ""
    if name in given and given[name] is None:
        typer.echo(
            f"tilewave: {args[0]} stands behind the script, which gets it as an argument; options of `tilewave run` "
            "stand before the script",
            err=True,
        )


@app.command()
def demo(ranks: int = typer.Option(2, "-n", "--ranks", help="Number of ranks.")):
    """Run the first example on 2 ranks; it leaves two pictures of the run in the folder demo."""
    from tilewave.launch.launch import LaunchError, launch

    places = (CHECKOUT / "examples" / FIRST_EXAMPLE, Path(__file__).with_name(FIRST_EXAMPLE))
    try:
        code = launch(next(filter(Path.exists, places), places[-1]), [], ranks=ranks)
    except LaunchError as error:
        fail(error)
    raise typer.Exit(code)


@app.command()
def measure(
    picture: Path | None = typer.Argument(None, help="Draw the curves into this file, such as curves.png."),
    ranks: int | None = RANKS,
    threads: int | None = THREADS,
    hosts: str | None = HOSTS,
    hostfile: Path | None = HOSTFILE,
    quick: bool = typer.Option(False, "--quick", help="At most 3 s in place of 30."),
    file: Path | None = typer.Option(
        None, "-o", "--json", help="Write the machine to this file; with --show, show it if it exists."
    ),
    show: bool = typer.Option(
        False, "--show", help="Show the machine that was measured before, and measure only where there is none."
    ),
):
    """Measure what messages, lanes and memory cost; runs and plans of this launch shape use it from then on."""
    from tilewave.launch.launch import LaunchError, launch

    for path in (picture, file):
        if path is not None and not path.absolute().parent.is_dir():
            fail(f"no folder for {path}")
    try:
        if show and file is not None and file.exists():
            code = _show_machine(file, picture)
        else:
            wanted = {
                "quick": quick,
                "show": show,
                "file": file and str(file.absolute()),
                "picture": picture and str(picture.absolute()),
            }
            hosts, ranks = _where(hosts, hostfile, ranks)
            code = launch(
                Path(__file__).with_name("measure_ranks.py"),
                [json.dumps(wanted)],
                ranks=ranks,
                threads=threads,
                hosts=hosts,
            )
    except LaunchError as error:
        fail(error)
    raise typer.Exit(code)


def _show_machine(file, picture):
    from tilewave import ConfigError, Machine
    from tilewave.machine import show as machine_show

    try:
        machine = Machine.load(file)
    except ConfigError as error:
        fail(error)
    machine_show.show(machine)
    if picture:
        machine_show.picture(machine, picture)
    return 0


app.command(context_settings={"allow_interspersed_args": False})(plan)
app.command(context_settings={"allow_interspersed_args": False})(simulate)
app.command(context_settings={"allow_interspersed_args": False})(batch)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(
    context: typer.Context,
    name: str = typer.Argument(..., help="Name of the benchmark."),
    json_file: Path | None = typer.Option(None, "--json", help="Write the results to this file."),
    quick: bool = typer.Option(False, "--quick", help="Small sizes: does it work?"),
):
    """Run a benchmark and show its rows; further arguments go to the benchmark."""
    names = _benchmarks()
    if name not in names:
        fail(f"no benchmark '{name}'; there are: {', '.join(sorted(names))}")
    more = {"args": context.args} if context.args else {}
    code = names[name](json_path=json_file, quick=quick, **more)
    raise typer.Exit(code if isinstance(code, int) else 0)


def _benchmarks():
    """The benchmarks by their names: bench/ of the checkout that this package is part of, or where the command runs."""
    for root in (CHECKOUT, Path.cwd()):
        if (root / "bench" / "worker.py").exists():
            sys.path.insert(0, str(root))
            return importlib.import_module("bench").NAMES
    return fail("benchmarks are not installed with Tilewave: run this command in a checkout of its sources")


@app.command()
def doctor():
    """Show what Tilewave finds on this machine and what is missing; exit code 1 if unusable."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="tilewave doctor", show_header=False, title_justify="left")
    table.add_column(no_wrap=True, style="bold")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    usable = True
    for what, state, text in _findings():
        mark = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "missing": "[red]missing[/]", "info": ""}[state]
        table.add_row(what, mark, text.replace("[", r"\["))
        usable = usable and state != "missing"
    Console().print(table)
    typer.echo("Tilewave is usable here." if usable else "Tilewave does not work here: see what is missing.")
    raise typer.Exit(0 if usable else 1)


def _findings():
    """Rows (what, state, text); state "missing" makes Tilewave unusable, "note" does not."""
    yield "Tilewave", "info", version()
    yield "Python", "info", f"{platform.python_version()}, {sys.executable}"
    yield from _core_and_mpi()
    cpus = sorted(os.sched_getaffinity(0))
    yield "CPUs allowed", "ok", f"{len(cpus)} of {os.cpu_count()}: {', '.join(map(str, cpus))}"
    yield from _fast_paths()
    try:
        yield "llvmlite", "ok", importlib.metadata.version("llvmlite")
    except importlib.metadata.PackageNotFoundError:
        yield "llvmlite", "missing", "compiles nests; get it with: pip install llvmlite"
    compiler = shutil.which("g++")
    yield (
        ("C++ compiler", "ok", _first_line([compiler, "--version"]))
        if compiler
        else (
            "C++ compiler",
            "note",
            "no g++: only needed for the C++ interface and to build Tilewave; get it with: apt install g++",
        )
    )
    lacking = [tool for tool in ("ip", "tc") if not shutil.which(tool)]
    if lacking:
        yield (
            "Cluster in a box",
            "note",
            (f"no {' and '.join(lacking)}: tests marked cluster skip; get them with: apt install iproute2"),
        )
    elif os.geteuid() != 0:
        yield "Cluster in a box", "note", "needs root: tests marked cluster skip"
    else:
        yield "Cluster in a box", "ok", "root, ip and tc are there"


def _core_and_mpi():
    try:
        from tilewave import _core
    except ImportError as error:
        yield "Compiled core", "missing", f"{error}; get it with: pip install ."
        return
    yield (
        "topology",
        "info",
        f"{_core.topology()}; lanes of a launch are pinned, one a core before SMT siblings, those of a "
        "rank to one NUMA node (TILEWAVE_PIN=on|off|auto), without a launcher none is",
    )
    from tilewave.launch.launch import LaunchError, find_mpiexec

    try:
        mpiexec = find_mpiexec()
    except LaunchError as error:
        yield "mpiexec", "missing", str(error)
        return
    yield "mpiexec", "ok", mpiexec
    facts, problem = _ping()
    if facts is None:
        yield "2-rank ping", "missing", problem
        return
    yield "MPI library", "ok", f"{facts.library.strip().splitlines()[0]} (MPI {facts.standard})"
    yield "loaded from", "info", facts.path
    if facts.network:
        yield "network by", "info", ", ".join(facts.network)
    yield "thread level", "info", facts.thread_level
    if facts.size != 2:
        yield (
            "2-rank ping",
            "missing",
            f"the ranks see a world of {facts.size}, not 2: mpiexec and the MPI library do not belong together",
        )
        return
    yield "2-rank ping", "ok", f"{seconds(facts.latency_s)} one way, 8 bytes"
    yield "lanes", "info", _lanes(facts)
    yield (
        "pinning",
        "info",
        f"rank 0 of 2 pins its lanes to CPUs {facts.cpus}"
        if facts.cpus
        else "nothing is pinned with 2 ranks (TILEWAVE_PIN, or too few CPUs)",
    )


def _fast_paths():
    """Return the fast paths that the environment switches off, and whether runs are verified."""
    if os.environ.get("TILEWAVE_VERIFY") == "1":
        yield "runs", "note", "TILEWAVE_VERIFY: each run of a nest is compared with its plain loops, which is slow"
    given = os.environ.get("TILEWAVE_WITHOUT")
    if not given:
        return
    from tilewave import ConfigError, _core

    try:
        if names := _core.names_of(_core.paths_off(given)):
            yield "fast paths", "note", f"TILEWAVE_WITHOUT switches off {names}"
    except ConfigError as error:
        yield "fast paths", "missing", str(error)


def _lanes(facts):
    """Lanes that ranks have on this host."""
    if "TILEWAVE_THREADS" in os.environ:
        return f"{facts.threads} a rank, as TILEWAVE_THREADS says"
    limited = f"; a control group allows the time of {facts.quota:g} CPUs" if facts.quota else ""
    return (
        f"{facts.threads_of_one_rank} for one rank, {facts.threads} for each of 2, fewer where that is predicted "
        f"to be faster{limited}"
    )


def _ping():
    """Run the ping on two ranks: (facts, None) or (None, what went wrong)."""
    from tilewave.cli.ping_facts import PingFacts
    from tilewave.launch.launch import mpiexec_command, program_of
    from tilewave.launch.processes import supervise

    end = time.monotonic() + PING_TIMEOUT_S
    with tempfile.TemporaryFile("w+") as output:
        command = mpiexec_command(2, program_of("tilewave.cli.ping"))
        code = supervise(
            command,
            watch=lambda: time.monotonic() > end,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        output.seek(0)
        text = output.read()
    if (facts := PingFacts.of_output(text)) is not None:
        return facts, None
    if time.monotonic() > end:
        return None, f"no answer within {PING_TIMEOUT_S:.0f} s; output: {text[-500:]}"
    return None, f"failed with exit code {code}: {text[-500:]}"


def _first_line(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return (done.stdout.splitlines() or ["?"])[0]


if __name__ == "__main__":
    main()
