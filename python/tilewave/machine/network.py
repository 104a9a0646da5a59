"""The network between nodes: its topology, and how fast its links are."""

from __future__ import annotations

import dataclasses

from tilewave import _core, units
from tilewave.errors import ConfigError, shown
from tilewave.value import Value, with_declared

NUMBERS = tuple(name for name, *_ in _core.network_numbers)
_TYPES = {list: "a list of numbers", bool: "true, false", int: "an integer", float: "a number"}
ALLOWED = {"topology": "a text", **{name: _TYPES[type(default)] for name, default, *_ in _core.network_numbers}}
for _name in ("extents", "up"):
    ALLOWED[_name] = "a list of integers"


@dataclasses.dataclass
@with_declared("NUMBERS", _core.network_numbers)
class Network(Value):
    """Nodes, cards and switches, and the links that messages share.

    Attributes
    ----------
    topology : str
        "switch", "fat tree", "torus" or "dragonfly"; "hosts": messages share only the cards of each host.
    NUMBERS
    """

    topology: str

    @property
    def nodes(self) -> int:
        """How many there are; 1 of "hosts", which does not say."""
        return self._to_core().nodes()

    def _to_core(self):
        core = _core.Network()
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            try:
                setattr(core, field.name, value)
            except TypeError:
                raise ConfigError(
                    f"network: {field.name}: given {shown(value)}; allowed: {ALLOWED[field.name]}"
                ) from None
            except ConfigError as error:
                raise ConfigError(f"network: {error}") from None
        if wrong := core.wrong():
            raise ConfigError(f"network: {wrong}")
        return core

    def __str__(self) -> str:
        if self.topology == "hosts":
            return f"hosts: {units.count(self.cards, 'card')} each, of which a rank's messages take one"
        shape = " x ".join(map(str, self.extents))
        links = ", ".join(units.rate(byte_s) for byte_s in self.link_byte_s)
        return f"{self.topology} {shape}: {units.count(self.nodes, 'node')}" + (f", links of {links}" if links else "")
