"""Dry runs: what ``tilewave plan`` runs a script in, for ranks and a machine that are not here."""

import dataclasses

from tilewave import _core

#: The launch that contexts are made for while a script is only planned. None: contexts are real.
launch = None


@dataclasses.dataclass
class Launch:
    """The launch that is planned for."""

    ranks: int
    threads: int
    machine: object  # a Machine, or None: numbers for any machine
    path: str


class Planned(BaseException):
    """Ends a script at its first run or plan. No Exception, so that a script's handlers let it pass."""

    def __init__(self, plan):
        super().__init__("planned")
        self.plan = plan


def dry_core(threads):
    """The core context of rank 0 of the launch that is planned for: nothing is sent.

    0 threads: those that the machine was measured with, else as here.
    """
    if threads == 0 and launch.machine is not None:
        threads = launch.machine.conditions["threads"]
    core = _core.Context.dry(0, launch.ranks, threads)
    if threads == 0 and core.threads > 1:  # here is one rank of them
        core = _core.Context.dry(0, launch.ranks, max(core.threads // launch.ranks, 1))
    machine = core.machine() if launch.machine is None else launch.machine._to_core()
    machine.host_of = hosts_of(launch.machine, launch.ranks)
    core.use_machine(machine)
    return core


def hosts_of(machine, ranks):
    """The host of each of some ranks: as many on each as the machine's launch had."""
    known = machine.host_of if machine else []
    if len(set(known)) < 2:
        return [0] * ranks
    per_host = known.count(known[0])
    return [rank // per_host for rank in range(ranks)]
