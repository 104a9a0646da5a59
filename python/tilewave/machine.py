"""A machine's numbers: what messages, lanes and memory cost. Plain data, kept on disk, the same on every rank."""
import contextlib
import dataclasses
import hashlib
import json
import os
import platform
import socket
import tempfile
from pathlib import Path

from tilewave import _core, files, fit, kernel_cache
from tilewave.errors import ConfigError
from tilewave.notices import warn
from tilewave.value import Value

FORMAT = 2
VARIABLE = "TILEWAVE_MACHINE"
#: As if it were not set, and what looks stale is measured again: tilewave.stale.
AUTO = "auto"
#: Settings of message libraries that change what messages cost.
SETTINGS = ("TILEWAVE_SHARED_MEMORY", "TILEWAVE_PIN", "MPIR_CVAR_", "UCX_", "FI_", "OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_mtl")
UNITS = {
    "*_s": "seconds", "*_bytes": "bytes", "*_byte_s": "seconds a byte",
    "transfer_s, synchronous_s": "x: bytes of a message, y: seconds one way",
    "copy_byte_s": "x: bytes next to each other, y: seconds a byte",
    "memory": "by busy lanes of a host, from 1 on; x: bytes of a lane's working set, y: seconds a byte read and written",
    "hidden*, crowd, slowdown": "ratios", "spread": "(third quartile - first) / median of the samples",
}
FAR = 1 << 50  # bytes beyond any working set
#: Numbers that a core machine has, too.
NUMBERS = ("latency_s", "byte_s", "chunk_s", "short_s", "ranks_per_core", "hand_over_s", "point_s", "poll_s", "step_s",
           "cache_bytes", "shared_cache_bytes")
#: Of these, what files of before do not have.
LATER = ("shared_cache_bytes",)
LINK_NUMBERS = ("latency_s", "send_s", "receive_s", "byte_s", "burst_bytes", "eager_bytes", "busy_byte_s", "hidden_polled",
                "hidden_unpolled", "crowd")


@dataclasses.dataclass
class Curve(Value):
    """y over x: straight lines between points, the first and the last one continued."""

    x: list
    y: list

    def at(self, value):
        """y at ``value``; 0 without points."""
        return fit.interpolate(value, self.x, self.y) if self.x else 0.0

    def flat(self):
        """The same between the first and the last point, and as these beyond: of what costs the same for all that is larger."""
        if not self.x:
            return self
        before, after = [1] * (self.x[0] > 1), [FAR] * (self.x[-1] < FAR)
        return Curve([*before, *self.x, *after], [self.y[0]] * len(before) + self.y + [self.y[-1]] * len(after))

    def _to_core(self):
        return _core.Curve([float(v) for v in self.x], [float(v) for v in self.y])


@dataclasses.dataclass
class Link(Value):
    """What messages between two ranks cost, for one kind of neighbour; seconds and bytes."""

    latency_s: float  # of 8 bytes, one way, both ranks waiting for it
    send_s: float  # posting a small send
    receive_s: float  # posting a receive
    byte_s: float  # one more byte in a stream of large messages
    transfer_s: Curve  # one message by bytes, one way, both ranks waiting
    burst_bytes: float = 0.0  # a host that has rested may send so much ahead of byte_s (a token bucket)
    eager_bytes: float = 8000.0  # larger messages leave only when the receiver, too, has asked for them
    busy_byte_s: float = 0.0  # a byte's share of the time of the rank that sends or receives it, while it computes
    hidden_polled: float = 0.9  # part of a large transfer that runs beside computing, polls every 50 us
    hidden_unpolled: float = 0.0
    crowd: float = 1.0  # time of all neighbours at once over that of a pair alone, by the messages of the fullest host
    breaks_bytes: list = dataclasses.field(default_factory=list)  # sizes from which messages go another way
    synchronous_s: Curve | None = None  # as transfer_s, sends complete when they are received
    overlap: list = dataclasses.field(default_factory=list)  # dicts: way, poll_period_s, hidden, slowdown, ...
    strided: list = dataclasses.field(default_factory=list)  # dicts: way, stride, bytes, byte_s

    def _to_core(self):
        core = _core.Link()
        for name in LINK_NUMBERS:
            setattr(core, name, float(getattr(self, name)))
        core.transfer_s = self.transfer_s._to_core()
        return core


@dataclasses.dataclass
class Machine(Value):
    """What messages, lanes and memory of one launch cost; made by `tilewave.measure`, or loaded.

    A machine is a value: to change one changes no context. Setting an attribute that is not listed here raises ConfigError.

    Attributes
    ----------
    conditions : dict
        hosts (of each rank), threads, CPUs, MPI library, settings, date, version.
    latency_s, byte_s, chunk_s, short_s, ranks_per_core, hand_over_s, point_s, cache_bytes, shared_cache_bytes
        To the farthest rank, as every context measures them when it is made; patterns plan with them. shared_cache_bytes is None in
        files of before: a context then asks the system.
    same_host, other_host : Link or None
        None where the launch has no such neighbours.
    poll_s, step_s : float
        Seconds of a poll that finds nothing, and of a schedule's step beside what it does.
    copy_byte_s : Curve
        Seconds a byte between an array and a buffer, by the bytes that are next to each other.
    memory : list of Curve
        By busy lanes of a host, from 1 on: seconds a byte that a lane reads and writes, by the bytes of its working set.
    host_of : list of int
        Of each rank.
    kernels : dict
        By name: seconds of a point, of a row beside its points and of a tile beside its rows, and the tile they are of.
    spread : dict
        Of each number, by its name: (third quartile - first) / median of the samples.
    """

    conditions: dict
    latency_s: float
    byte_s: float
    chunk_s: float
    short_s: float
    ranks_per_core: float
    hand_over_s: float
    point_s: float
    cache_bytes: int
    poll_s: float
    step_s: float
    copy_byte_s: Curve
    memory: list
    host_of: list
    same_host: Link | None = None
    other_host: Link | None = None
    kernels: dict = dataclasses.field(default_factory=dict)
    spread: dict = dataclasses.field(default_factory=dict)
    shared_cache_bytes: int | None = None

    def save(self, path):
        """Write the machine as JSON."""
        Path(path).write_text(self._to_text())

    @classmethod
    def load(cls, path):
        """Read a machine that `save` wrote.

        Raises
        ------
        ConfigError
            When there is no such file, it is no machine of this format, or a number makes no sense.
        """
        return cls._from_text(_read(path), path)

    def _to_text(self):
        return json.dumps({"format": FORMAT, "units": UNITS, **dataclasses.asdict(self)}, indent=1) + "\n"

    @classmethod
    def _from_text(cls, text, path):
        from tilewave.machine_check import checked

        return checked(text, path)

    @classmethod
    def _from_core(cls, core, conditions):
        """What a core machine knows, without measured curves."""
        return cls(conditions, **{name: getattr(core, name) for name in NUMBERS}, copy_byte_s=Curve([], []), memory=[],
                   host_of=list(core.host_of))

    def _to_core(self):
        """The machine as the core's: a kind of neighbour that was not met costs what the other kind does."""
        core = _core.Machine()
        for name in NUMBERS:
            value = getattr(self, name)
            if value is None:
                continue
            setattr(core, name, int(value) if name.endswith("_bytes") else float(value))
        core.copy_byte_s = self.copy_byte_s.flat()._to_core()
        core.memory = [curve.flat()._to_core() for curve in self.memory]
        core.host_of = [int(h) for h in self.host_of]
        if known := self.same_host or self.other_host:
            core.same_host = (self.same_host or known)._to_core()
            core.other_host = (self.other_host or known)._to_core()
        return core

    def __str__(self):
        from tilewave.machine_show import text

        return text(self)


def _read(path):
    try:
        return files.read(path)[0].decode()
    except OSError as error:
        raise ConfigError(f"{path}: no machine can be read there ({error.strerror}); allowed: a file that "
                          "`tilewave measure -o FILE` wrote") from None
    except ValueError:
        raise ConfigError(f"{path}: is no text; allowed: a file that `tilewave measure -o FILE` wrote") from None


def share(context, value):
    """Every rank's value, plain data, in rank order; collective."""
    all_of = _core.measure.gather(context._core, json.dumps(value).encode())
    text = b"[" + b",".join(all_of) + b"]" if context.rank == 0 else b""
    return json.loads(context._core.broadcast(text))


def conditions(context):
    """What a launch's numbers depend on, the same on every rank; collective."""
    ranks = share(context, {"host": socket.gethostname(), "cpus": len(_core.allowed_cpus()), "cpu": _cpu_model()})
    hosts = [r["host"] for r in ranks]
    found = {"hosts": hosts, "ranks": context.size, "threads": context.threads,
             "ranks_per_host": [hosts.count(h) for h in dict.fromkeys(hosts)],
             "cpus": [r["cpus"] for r in ranks], "cpu_models": sorted({r["cpu"] for r in ranks}),
             "oversubscribed": context._core.oversubscribed, "mpi": "", "settings": {}}
    if _core.measure.native(context._core):
        found["mpi"] = _core.mpi_info()["library"].strip().splitlines()[0]
        found["settings"] = {k: v for k, v in sorted(os.environ.items()) if k.startswith(SETTINGS)}
    return json.loads(context._core.broadcast(json.dumps(found).encode()))


def _cpu_model():
    with contextlib.suppress(OSError):
        for text in Path("/proc/cpuinfo").read_text().splitlines():
            if text.startswith("model name"):
                return text.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


CHANGED = 4  # between two looks at one network, in whatever company, a byte's time differs by less
SHAPE = ("hosts", "ranks", "threads")  # what a given machine must agree with
CACHED = (*SHAPE, "cpus", "cpu_models", "mpi", "settings")  # what a kept one must


def cache_path(found):
    """Where the machine of such conditions is kept; None if nowhere."""
    where = kernel_cache.folder()
    key = json.dumps({name: found[name] for name in CACHED}, sort_keys=True)
    return where and where / f"machine-{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def keep(machine):
    """Write a machine where later launches of this shape find it; whether it could be written."""
    path = cache_path(machine.conditions)
    if path is None:
        return False
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(suffix=".part", dir=path.parent)
        with os.fdopen(handle, "w") as file:
            file.write(machine._to_text())
        os.replace(part, path)  # others see the old one, the new one or none
    except OSError:
        return False
    return True


def fits(machine, found, path, names=SHAPE):
    """Raise ConfigError unless a machine is of a launch like this one."""
    for name in names:
        if machine.conditions.get(name) != found[name]:
            raise ConfigError(f"{path}: field conditions.{name}: found {machine.conditions.get(name)!r}; allowed: "
                              f"{found[name]!r}, as this launch has it. `tilewave measure` measures it")


def _same_network(machine, own, path):
    """Raise ConfigError where a byte to another host now takes much more or less time than when the machine was kept."""
    now, then = own.byte_s, machine.byte_s
    if len(set(machine.host_of)) > 1 and not 1 / CHANGED < now / then < CHANGED:
        raise ConfigError(f"{path}: field byte_s: found {then:.3g}, but the network of these hosts now takes {now:.3g}")


def adopt(context):
    """Use the machine that is given or was kept, if there is one; collective, about a millisecond.

    A given file that does not do says so in `of`; until then patterns keep what the context measured itself.
    """
    if _core.measure.connected(context._core):
        _look(context, complain=False)


def of(context):
    """The machine of a context: given by TILEWAVE_MACHINE, kept, or measured now; collective.

    Returns
    -------
    Machine
        The same on every rank; the context's core uses it, too.

    Raises
    ------
    ConfigError
        On every rank, when TILEWAVE_MACHINE names a file that does not do.
    """
    if context._machine is not None:
        return context._machine
    if not _core.measure.connected(context._core) or context._part_of is not None:
        return _constants(context)
    if _look(context, complain=True) is None:
        from tilewave.measure import measure

        measure(quick=True, context=context)
    return context._machine


def _look(context, complain):
    """Take the given or the kept machine over, if any: the text of rank 0's file is everyone's."""
    given = os.fsdecode(context._core.broadcast(os.fsencode(os.environ.get(VARIABLE, ""))))
    given = "" if given == AUTO else given
    if given == "default":
        if complain:
            context._machine = _constants(context)
        return context._machine
    found = conditions(context)
    state, text, path = "none", "", given
    if context.rank == 0:
        try:
            path = given or str(cache_path(found) or "")
            if given or path and os.path.exists(path):
                text = _read(path)
                there = Machine._from_text(text, path)
                there._to_core()
                fits(there, found, path, SHAPE if given else CACHED)
                if not given:
                    _same_network(there, own_constants(context), path)
                state = "fine"
        except ConfigError as error:
            state, text = "bad", str(error)
        except Exception as error:  # the other ranks wait to be told
            state, text = "bad", f"{path}: {type(error).__name__}: {error}"
    state, text, path = json.loads(context._core.broadcast(json.dumps([state, text, path]).encode()))
    if state == "bad" and given and complain:
        raise context._shared(ConfigError(text))
    if state == "bad" and not given and context.rank == 0 and not context._warned:
        context._warned = True
        warn(f"the kept machine is not used: {text}")
    if state == "fine":
        use(context, Machine._from_text(text, path))
    return context._machine


def use(context, machine):
    """From now on this machine in the context: runs, plans, patterns."""
    own, core = own_constants(context), machine._to_core()
    if machine.shared_cache_bytes is None:
        core.shared_cache_bytes = own.shared_cache_bytes
    context._machine = machine
    context._core.use_machine(core)


def own_constants(context):
    """The core machine that the context measured itself when it was made."""
    if context._own is None:
        context._own = context._core.machine()
    return context._own


def _constants(context):
    parent = context._part_of
    if parent is not None and parent._machine is not None:
        return dataclasses.replace(parent._machine, host_of=[0])
    return Machine._from_core(own_constants(context), {"hosts": [], "ranks": context.size, "threads": context.threads})
