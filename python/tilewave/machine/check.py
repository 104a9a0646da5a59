"""The entries of a machine's file: what is not right is named with what is allowed."""

import itertools
import json

from tilewave import _core
from tilewave.entries import LONG, Damaged, Missing, anything, flag, integer, number, of_list, of_object, or_null, text
from tilewave.errors import ConfigError, shown
from tilewave.machine.network import NUMBERS as NETWORK_NUMBERS
from tilewave.machine.network import Network
from tilewave.machine.numbers import FAR, FORMAT, FRACTIONS, LINK_NUMBERS, MAY_BE_ZERO, NUMBERS

WRITTEN = "allowed: a file that `tilewave measure -o FILE` wrote"
#: The largest number, by the end of its name; others, such as ratios, may reach MOST. With these every sum stays
#: finite.
MOST_OF = {"speed": 1.0, "byte_s": 1.0, "_s": 1e6, "bytes": FAR, "x": FAR, "y": 1e6}
MOST = 1e12
LEAST = 1e-18  # of numbers above 0: their inverses stay finite, too


def sensible(name, zero=False):
    """The kind of a number, which its name tells: seconds, bytes, a part of 1."""
    zero = zero or name in MAY_BE_ZERO
    most = 1.0 if name in FRACTIONS else next((most for end, most in MOST_OF.items() if name.endswith(end)), MOST)
    allowed = f"a finite number {'>= 0' if zero else f'> 0, at least {LEAST:g}'}, at most {most:g}"

    def read(value, where):
        fine = type(value) in (int, float) and 0 <= value <= most and (value >= LEAST or zero)
        if not fine:  # NaN is not between any two numbers
            raise Damaged(where, value, "a number from 0 to 1" if name in FRACTIONS else allowed)
        return value

    return read


def _by_name(value, where):
    """A number of a row that has more of them than it needs."""
    return sensible(where.rpartition(".")[2])(value, where)


def _numbers(names):
    return {name: sensible(name) for name in names}


def _curve(least=0):
    def read(value, where):
        if not isinstance(value, dict) or not all(isinstance(value.get(axis), list) for axis in "xy"):
            raise Damaged(where, value, "an object with lists x and y")
        x, y = (of_list(sensible(axis))(value[axis], f"{where}.{axis}") for axis in "xy")
        if len(x) != len(y) or len(x) < least:
            raise Damaged(where, f"{len(x)} x and {len(y)} y", f"equally many, at least {least}")
        for i, (a, b) in enumerate(itertools.pairwise(x), 1):
            if not a < b:
                raise Damaged(f"{where}.x[{i}]", b, f"more than x[{i - 1}], {a!r}")
        return {"x": x, "y": y}

    return read


_COUNT, _TEXTS = integer(1, 1 << 30), of_list(text)
_CONDITIONS = of_object(
    {
        "hosts": _TEXTS,
        "ranks": _COUNT,
        "threads": integer(1, _core.limits["lanes"]),
        "ranks_per_host": of_list(_COUNT),
        "cpus": of_list(_COUNT),
        "cpu_models": _TEXTS,
        "oversubscribed": flag,
        "mpi": text,
        "settings": of_object({}, more=text),
        "date": text,
        "tilewave": text,
        "quick": flag,
        "measured_s": number,
        "busy": number,
    },
    more=anything,
    needed=("hosts", "ranks", "threads"),
)
_OVERLAP = {"progress": text, **_numbers(("poll_period_s", "bytes", "hidden", "slowdown", "busy_byte_s"))}
_LINK = {
    **_numbers(LINK_NUMBERS),
    "transfer_s": _curve(least=1),
    "breaks_bytes": of_list(sensible("bytes")),
    "synchronous_s": or_null(_curve()),
    "overlap": of_list(of_object(_OVERLAP, more=_by_name)),
}
_OF_NETWORK = of_object({"topology": text, **dict.fromkeys(NETWORK_NUMBERS, anything)}, needed=("topology", "extents"))


def _network(value, where):
    found = _OF_NETWORK(value, where)
    Network(**found)._to_core()
    return found


_RATE = {name: sensible(name, zero=True) for name in ("point_s", "row_s", "tile_s")}
_KERNEL = of_object({**_RATE, "tile": of_list(LONG)}, more=anything, needed=_RATE)
_MACHINE = {
    "conditions": _CONDITIONS,
    **_numbers(NUMBERS),
    "copy_byte_s": _curve(),
    "memory": of_list(_curve()),
    "host_of": of_list(integer(0, (1 << 30) - 1)),
    "speeds": of_list(sensible("speed")),
    "same_host": or_null(of_object(_LINK, more=anything)),
    "other_host": or_null(of_object(_LINK, more=anything)),
    "network": or_null(_network),
    "kernels": of_object({}, more=_KERNEL),
    "spread": of_object({}, more=sensible("spread", zero=True)),
}


def checked(content, path):
    """The entries of a machine's file, plain data that fits together; those that are not known are left out.

    Raises
    ------
    ConfigError
        With the file, the entry, what was found and what is allowed.
    """
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: is no JSON ({error}); {WRITTEN}") from None
    try:
        if not isinstance(data, dict) or "format" not in data:
            raise Missing("format", FORMAT)
        if data["format"] != FORMAT or isinstance(data["format"], bool):
            raise Damaged("format", data["format"], f"{FORMAT}, which this version of Tilewave writes; measure anew")
        found = of_object(_MACHINE, more=anything)({"network": None, "speeds": [], **data}, "")
        ranks = found["conditions"]["ranks"]
        for name in ("host_of", "speeds"):
            if len(found[name]) not in (0, ranks):
                allowed = f"one for each of the {ranks} ranks of conditions, or none"
                raise Damaged(name, f"{len(found[name])} entries", allowed)
    except ConfigError as error:  # of a network
        raise ConfigError(f"{path}: field {error}") from None
    except Damaged as error:
        found = f"found {shown(error.found)}; allowed: {error.allowed}"
        raise ConfigError(f"{path}: field {error.where}: {found}") from None
    except Missing as error:
        raise ConfigError(f"{path}: field {error.where}: missing; {WRITTEN}") from None
    for kind in ("same_host", "other_host"):
        if found[kind] is not None:
            found[kind] = {name: found[kind][name] for name in _LINK}
    return {name: found[name] for name in _MACHINE}
