"""The machine of a context: given by TILEWAVE_MACHINE or stored by an earlier launch."""

import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import platform
from pathlib import Path

from tilewave import _core, units
from tilewave.allgather import allgather
from tilewave.errors import ConfigError
from tilewave.kernel import cache as kernel_cache
from tilewave.machine.machine import Machine, read
from tilewave.notices import log, warn

VARIABLE = "TILEWAVE_MACHINE"
#: Settings of message libraries that change what messages cost.
SETTINGS = (
    "TILEWAVE_PIN",
    "MPIR_CVAR_",
    "UCX_",
    "FI_",
    "OMPI_MCA_btl",
    "OMPI_MCA_pml",
    "OMPI_MCA_mtl",
)


def conditions(context):
    """Return what a launch's numbers depend on, the same on every rank; collective."""
    host = os.uname().nodename
    here = {"host": host, "cpus": len(_core.allowed_cpus()), "cpu": cpu_model()}
    ranks = allgather(context, here)
    hosts = [r["host"] for r in ranks]
    first = {
        "threads": context.threads,
        "oversubscribed": context._core.oversubscribed,
        "mpi": "",
        "settings": {},
    }
    if _core.measure.native(context._core):
        first["mpi"] = _core.mpi_info()["library"].strip().splitlines()[0]
        first["settings"] = {k: v for k, v in sorted(os.environ.items()) if k.startswith(SETTINGS)}
        if _core.without(context._off, "shared"):
            first["settings"]["TILEWAVE_WITHOUT"] = "shared"
    return {
        "hosts": hosts,
        "ranks": context.size,
        "ranks_per_host": list(collections.Counter(hosts).values()),
        "cpus": [r["cpus"] for r in ranks],
        "cpu_models": sorted({r["cpu"] for r in ranks}),
        **json.loads(context._core.broadcast(json.dumps(first).encode())),
    }


def cpu_model():
    """The name of the processor."""
    with contextlib.suppress(OSError):
        for text in Path("/proc/cpuinfo").read_text().splitlines():
            if text.startswith("model name"):
                return text.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


CHANGED = 4  # between two looks at one network, in whatever company, a byte's time differs by less
SHAPE = ("hosts", "ranks", "threads")  # what a given machine must agree with
CACHED = (*SHAPE, "cpus", "cpu_models", "mpi", "settings")  # what a stored one must


def cache_path(found):
    """The file of the machine of such conditions; None without a folder for it."""
    where = kernel_cache.folder()
    key = json.dumps({name: found[name] for name in CACHED}, sort_keys=True)
    return where and where / f"machine-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def store(machine):
    """Write a machine where later launches of this shape find it; whether it was. One that was measured while other
    programs had the CPUs is not stored: the file of before stays.
    """
    path = cache_path(machine.conditions)
    if path is None or busy(machine):
        return False
    return _core.file_cache.write_private(path, machine._to_text().encode())


def busy(machine):
    """For which part of the time others had the CPUs while it was measured; 0 where that was little."""
    return machine.conditions.get("busy", 0.0)


def fits(machine, found, path, names=SHAPE):
    """Raise ConfigError unless a machine is of a launch like this one."""
    for name in names:
        if machine.conditions.get(name) != found[name]:
            raise ConfigError(
                f"{path}: field conditions.{name}: found {machine.conditions.get(name)!r}; allowed: "
                f"{found[name]!r}, as this launch has it. `tilewave measure` measures it"
            )


def _same_network(machine, startup, path):
    """Raise ConfigError where a byte to another host now takes much more or less time than when the machine was
    measured.
    """
    now, then = startup.byte_s, machine.byte_s
    if len(set(machine.host_of)) > 1 and not 1 / CHANGED < now / then < CHANGED:
        raise ConfigError(f"{path}: field byte_s: found {then:.3g}, but the network of these hosts now takes {now:.3g}")


def adopt(context):
    """Use the machine that is given or stored, if there is one; collective, about a millisecond.

    A given file that does not do says so in `of`; until then patterns keep what the context measured itself.
    """
    if _core.measure.connected(context._core):
        look(context, complain=False)


def look(context, complain):
    """Take the given or the stored machine over, if any: the text of rank 0's file is everyone's."""
    given = os.fsdecode(context._core.broadcast(os.fsencode(os.environ.get(VARIABLE, ""))))
    if given == "default":
        if complain:
            context._machine = constants(context)
        return context._machine
    found = conditions(context)
    state, text, path = "none", "", given
    if context.rank == 0:
        try:
            path = given or str(cache_path(found) or "")
            if given or path and os.path.exists(path):
                text = read(path, private=not given)
                there = Machine._from_text(text, path)
                there._to_core()
                fits(there, found, path, SHAPE if given else CACHED)
                if not given:
                    _same_network(there, startup_machine(context), path)
                state = "fine"
        except ConfigError as error:
            state, text = "bad", str(error)
        except Exception as error:  # the other ranks wait for this one's answer
            state, text = "bad", f"{path}: {type(error).__name__}: {error}"
    state, text, path = json.loads(context._core.broadcast(json.dumps([state, text, path]).encode()))
    if state == "bad" and given and complain:
        raise context._shared(ConfigError(text))
    if state == "bad" and not given and context.rank == 0 and not context._warned:
        context._warned = True
        warn(f"the stored machine is not used: {text}")
    if state == "fine":
        use(context, Machine._from_text(text, path))
        if context.rank == 0:
            log("INFO", "machine: the numbers of %s", path)
    return context._machine


def use(context, machine):
    """From now on this machine in the context: runs, plans, patterns."""
    context._machine, context._assumed = machine, False
    context._core.use_machine(machine._to_core())


def assume(context):
    """Until a machine is measured: what this context found when it was made, and constants; collective."""
    context._machine = Machine._from_core(startup_machine(context), conditions(context))
    context._assumed = True


def startup_machine(context):
    """The core machine that the context measured itself when it was made."""
    if context._startup_machine is None:
        context._startup_machine = context._core.machine()
    return context._startup_machine


def messages(context):
    """Return what messages are taken to cost, and how that is known: a line of an explanation. Local."""
    core, found = context._core.machine(), context._machine
    hosts = list(core.host_of)[: context.size] or [0] * context.size
    date = found.conditions.get("date") if found is not None else None
    kinds = []
    if len(set(hosts)) < len(hosts):
        kinds.append(("on one host", core.same_host, "" if date else " (assumed)"))
    if len(set(hosts)) > 1:
        kinds.append(("between hosts", core.other_host, "" if date else " (as the context was made)"))
    costs = "; ".join(
        f"{where} {units.seconds(link.latency_s)} and {units.rate(link.byte_s)}{how}" for where, link, how in kinds
    )
    return costs and f"messages, {f'measured {date}' if date else 'nothing measured'}: {costs}"


def constants(context):
    parent = context._part_of
    if parent is not None and parent._machine is not None:
        return dataclasses.replace(parent._machine, host_of=[0], speeds=[])
    return Machine._from_core(
        startup_machine(context), {"hosts": [], "ranks": context.size, "threads": context.threads}
    )
