"""``tilewave plan``: a script up to its first run, for ranks that need not be there."""

import runpy
import sys
from pathlib import Path

from tilewave.context import context, dry_run
from tilewave.errors import ConfigError


def plan_script(script, arguments, ranks, threads, machine=None, path=""):
    """The plan of a script's first run or plan, for ranks that need not be there.

    Parameters
    ----------
    script : path
    arguments : list of str
    ranks, threads : int
    machine : Machine, optional
    path : str
        Where the machine is from, for messages.

    Returns
    -------
    Plan

    Raises
    ------
    ConfigError
        When the script ends before it runs or plans a nest; whatever else the script raises.
    """
    if not Path(script).is_file():
        raise ConfigError(f"{script}: there is no such script")
    if ranks < 1 or threads is not None and threads < 1:
        raise ConfigError(f"ranks {ranks}, threads {threads} were given; allowed: 1 and more")
    dry_run.launch = dry_run.Launch(ranks, threads, machine, path)
    saved, default = (sys.argv, sys.path[:]), context._default.context
    context._default.context = None
    sys.argv, sys.path[0] = [str(script), *arguments], str(Path(script).resolve().parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except dry_run.Planned as done:
        return done.plan
    except SystemExit as end:
        raise ConfigError(f"{script} ended with {end.code!r} before it ran or planned a nest") from None
    finally:
        dry_run.launch, context._default.context = None, default
        sys.argv, sys.path[:] = saved
    raise ConfigError(f"{script} ended and ran or planned no nest: there is nothing to plan")


def text(plan, request):
    """The text about a plan, and the numbers that it was made with."""
    machine, hosts = request.machine, len(set(dry_run.hosts_of(request.machine, request.ranks)))
    lines = [f"Planned for {request.ranks} rank(s) on {hosts} host(s); nothing was run."]
    if machine is None:
        lines.append(
            "The machine's numbers are for any machine: give --machine FILE, which `tilewave measure -o FILE` writes "
            "there."
        )
    else:
        lines.append(
            f"The machine's numbers are those of {request.path}; the body's rate is this computer's, one rank's at a "
            "time."
        )
        if hosts == 1 and request.ranks > 1:
            lines.append("The machine file knows one host: all ranks are taken to be on it.")
    return "\n".join([*lines, "", plan.explain()])
