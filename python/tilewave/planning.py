"""Planning for a machine that is not here: what ``tilewave plan`` runs a script in."""
import dataclasses
import runpy
import sys
from pathlib import Path

from tilewave import _core
from tilewave.errors import ConfigError

#: While a script is only planned: the ranks, threads and machine of its contexts. None: contexts are real.
wanted = None


@dataclasses.dataclass
class Wanted:
    """The launch that is planned for."""

    ranks: int
    threads: int
    machine: object  # a Machine, or None: numbers for any machine
    path: str


class Planned(BaseException):
    """Ends a script at its first run or plan. No Exception, so that a script's own handlers let it pass."""

    def __init__(self, plan):
        super().__init__("planned")
        self.plan = plan


def dry_core(threads):
    """The core context of rank 0 of the ranks that are planned for: nothing is sent.

    0 threads: those that the machine was measured with, else as here.
    """
    if threads == 0 and wanted.machine is not None:
        threads = wanted.machine.conditions["threads"]
    core = _core.Context.dry(0, wanted.ranks, threads)
    if threads == 0 and core.threads > 1:  # here is one rank of them
        core = _core.Context.dry(0, wanted.ranks, max(core.threads // wanted.ranks, 1))
    machine = core.machine() if wanted.machine is None else wanted.machine._to_core()
    machine.host_of = hosts_of(wanted.machine, wanted.ranks)
    core.use_machine(machine)
    return core


def hosts_of(machine, ranks):
    """The host of each of some ranks: as many on each as the machine's launch had."""
    known = machine.host_of if machine else []
    if len(set(known)) < 2:
        return [0] * ranks
    per_host = known.count(known[0])
    return [rank // per_host for rank in range(ranks)]


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
    global wanted
    from tilewave import context  # which asks whether a script is only planned

    if not Path(script).is_file():
        raise ConfigError(f"{script}: there is no such script")
    if ranks < 1 or threads is not None and threads < 1:
        raise ConfigError(f"ranks {ranks}, threads {threads} were given; allowed: 1 and more")
    wanted = Wanted(ranks, threads, machine, path)
    saved, default = (sys.argv, sys.path[:]), context._default
    context._default = None
    sys.argv, sys.path[0] = [str(script), *arguments], str(Path(script).resolve().parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except Planned as done:
        return done.plan
    except SystemExit as end:
        raise ConfigError(f"{script} ended with {end.code!r} before it ran or planned a nest") from None
    finally:
        wanted, context._default = None, default
        sys.argv, sys.path[:] = saved
    raise ConfigError(f"{script} ended and ran or planned no nest: there is nothing to plan")


def text(plan, request):
    """What is told of a plan, and with which numbers."""
    machine, hosts = request.machine, len(set(hosts_of(request.machine, request.ranks)))
    lines = [f"Planned for {request.ranks} rank(s) on {hosts} host(s); nothing was run."]
    if machine is None:
        lines.append("The machine's numbers are for any machine: give --machine FILE, which `tilewave measure -o FILE` writes there.")
    else:
        lines.append(f"The machine's numbers are those of {request.path}; the body's rate is this computer's, one rank's at a time.")
        if hosts == 1 and request.ranks > 1:
            lines.append("The machine file knows one host: all ranks are taken to be on it.")
    return "\n".join([*lines, "", plan.explain()])
