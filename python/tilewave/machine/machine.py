"""A machine's numbers: what messages, lanes and memory cost. Plain data, stored on disk, the same on every rank."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewave import _core, files
from tilewave.errors import ConfigError
from tilewave.machine import fit, show
from tilewave.machine.check import checked
from tilewave.machine.network import Network
from tilewave.machine.numbers import FAR, FORMAT, LINK_NUMBERS, NUMBERS
from tilewave.value import Value, with_declared

if TYPE_CHECKING:
    from tilewave.annotations import FilePath

EXAMPLES = Path(__file__).with_name("examples")
UNITS = {
    "*_s": "seconds",
    "*_bytes": "bytes",
    "*_byte_s": "seconds a byte",
    "transfer_s, synchronous_s": "x: bytes of a message, y: seconds one way",
    "copy_byte_s": "x: bytes next to each other, y: seconds a byte",
    "memory": "by busy lanes of a host, from 1 on; x: bytes of a lane's working set, y: seconds a byte read and "
    "written",
    "hidden*, slowdown": "ratios",
    "spread": "(third quartile - first) / median of the samples",
}


@dataclasses.dataclass
class Curve(Value):
    """y over x: straight lines between points, the first and the last one continued."""

    x: list[float]
    y: list[float]

    def at(self, value: float) -> float:
        """y at ``value``; 0 without points."""
        return fit.interpolate(value, self.x, self.y) if self.x else 0.0

    def flat(self) -> Curve:
        """The same between the first and the last point, and as these beyond: of what costs the same for all that is
        larger.
        """
        if not self.x:
            return self
        before, after = [1] * (self.x[0] > 1), [FAR] * (self.x[-1] < FAR)
        return Curve([*before, *self.x, *after], [self.y[0]] * len(before) + self.y + [self.y[-1]] * len(after))

    def _to_core(self):
        return _core.Curve([float(v) for v in self.x], [float(v) for v in self.y])


def _no_points():
    return Curve([], [])


@dataclasses.dataclass
@with_declared("NUMBERS", _core.link_numbers)
class Link(Value):
    """Hold what messages between two ranks cost, for one kind of neighbour.

    Attributes
    ----------
    NUMBERS
    transfer_s : Curve
        Seconds of one message over its bytes, one way, while both ranks wait for it.
    breaks_bytes : list of float
        Sizes from which the MPI library uses another protocol.
    synchronous_s : Curve or None
        As transfer_s, for sends that are complete when they are received.
    overlap : list of dict
        progress ("none", "polls", "helper"), poll_period_s, hidden, slowdown, ...: the part of a transfer that
        overlapped computing.
    """

    transfer_s: Curve = dataclasses.field(default_factory=_no_points)
    breaks_bytes: list[float] = dataclasses.field(default_factory=list)
    synchronous_s: Curve | None = None
    overlap: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @classmethod
    def _of(cls, data):
        curves = {name: data[name] and Curve(**data[name]) for name in ("transfer_s", "synchronous_s")}
        own = {each.name: data[each.name] for each in dataclasses.fields(cls)}  # older files have more
        return cls(**{**own, **curves})

    def _to_core(self):
        core = _core.Link()
        for name in LINK_NUMBERS:
            setattr(core, name, float(getattr(self, name)))
        core.transfer_s = self.transfer_s._to_core()
        return core


@dataclasses.dataclass
@with_declared("NUMBERS", _core.machine_numbers)
class Machine(Value):
    """Hold what messages, lanes and memory of one launch cost; made by `tilewave.measure`, or loaded.

    A machine is a value: to change one changes no context. Setting an attribute that is not listed here raises
    ConfigError.

    Attributes
    ----------
    conditions : dict
        hosts (of each rank), threads, CPUs, MPI library, settings, date, version.
    NUMBERS
    same_host, other_host : Link or None
        None where the launch has no such neighbours.
    network : Network or None
        What messages between hosts share, for predictions; None: the one card of each host, or cards that share each
        message.
    copy_byte_s : Curve
        Seconds to copy one byte between an array and a buffer, over the number of contiguous bytes.
    memory : list of Curve
        memory[l - 1]: seconds for a lane to read and write back one byte, over the bytes of its working set, while l
        lanes of a host do so.
    host_of : list of int
        Each rank's host.
    speeds : list of float
        How fast a CPU of each rank is, as a part of the fastest; empty: all are equal.
    kernels : dict
        By name: seconds of a point, of a row beyond its points and of a tile beyond its rows, and the measured tile.
    spread : dict
        Of each number, by its name: (third quartile - first) / median of the samples.

    Notes
    -----
    Every context measures latency_s, byte_s, chunk_s and short_s when it is made, and plans patterns with them.
    """

    conditions: dict[str, Any]
    copy_byte_s: Curve = dataclasses.field(default_factory=_no_points)
    memory: list[Curve] = dataclasses.field(default_factory=list)
    host_of: list[int] = dataclasses.field(default_factory=list)
    speeds: list[float] = dataclasses.field(default_factory=list)
    same_host: Link | None = None
    other_host: Link | None = None
    network: Network | None = None
    kernels: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    spread: dict[str, float] = dataclasses.field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(self, *numbers: Any, **more: Any) -> None: ...

    def save(self, path: FilePath) -> None:
        """Write the machine as JSON.

        Raises
        ------
        ConfigError
            Where that fails; an old file is then as it was.
        """
        files.save("Machine.save", path, self._to_text())

    @classmethod
    def load(cls, path: FilePath) -> Machine:
        """Read a machine that `save` wrote, or one of those that come with Tilewave, by its name:
        "sci-ring", "t3e-torus", "ap3000", "ethernet", "infiniband", "fat-tree".

        Raises
        ------
        ConfigError
            When there is no such file, it is no machine of this format, or a number makes no sense.
        """
        return cls._from_text(read(path), path)

    def _to_text(self):
        return json.dumps({"format": FORMAT, "units": UNITS, **dataclasses.asdict(self)}, indent=1) + "\n"

    @classmethod
    def _from_text(cls, text, path):
        data = checked(text, path)
        links = {kind: link and Link._of(link) for kind in ("same_host", "other_host") for link in [data[kind]]}
        network = data["network"] and Network(**data["network"])
        curves = {"copy_byte_s": Curve(**data["copy_byte_s"]), "memory": [Curve(**each) for each in data["memory"]]}
        return cls(**{**data, **links, **curves, "network": network})

    @classmethod
    def _from_core(cls, core, conditions):
        """Return what a core machine knows, without measured curves."""
        links = {}
        if len(set(core.host_of)) > 1:
            for kind in ("same_host", "other_host"):
                links[kind] = Link(**{name: getattr(getattr(core, kind), name) for name in LINK_NUMBERS})
        return cls(conditions, **{name: getattr(core, name) for name in NUMBERS}, host_of=list(core.host_of), **links)

    def _to_core(self):
        """The machine as the core's: a kind of neighbour that was not met costs what the other kind does."""
        core = _core.Machine()
        for name in NUMBERS:
            value = getattr(self, name)
            setattr(core, name, int(value) if name.endswith("_bytes") else float(value))
        core.copy_byte_s = self.copy_byte_s.flat()._to_core()
        core.memory = [curve.flat()._to_core() for curve in self.memory]
        core.host_of = [int(h) for h in self.host_of]
        core.speeds = [float(speed) for speed in self.speeds]
        if self.network is not None:
            core.network = self.network._to_core()
        if known := self.same_host or self.other_host:
            core.same_host = (self.same_host or known)._to_core()
            core.other_host = (self.other_host or known)._to_core()
        return core

    def __str__(self) -> str:
        return show.text(self)


def named():
    """Names of the machines that come with the package."""
    return sorted(file.stem for file in EXAMPLES.glob("*.json"))


def read(path, private=False):
    """The text of a file, or of the machine in the package that has this name; of a private file only if nobody else
    can have written it.
    """
    if str(path) in named() and not os.path.exists(path):
        path = EXAMPLES / f"{path}.json"
    try:
        data = _core.file_cache.read_private(path) if private else files.read(path, files.MOST_TEXT_BYTES)
        return data.decode()
    except OSError as error:
        raise ConfigError(
            f"{path}: no machine can be read there ({error.strerror or error}); allowed: a file that "
            f"`tilewave measure -o FILE` wrote, or one of {', '.join(named())}"
        ) from None
    except ConfigError as error:
        raise ConfigError(f"Machine.load: {error}") from None
    except ValueError:
        raise ConfigError(f"{path}: is no text; allowed: a file that `tilewave measure -o FILE` wrote") from None
