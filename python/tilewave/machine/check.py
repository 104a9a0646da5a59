"""A machine's JSON, field by field: what is not right is named with what is allowed."""

import itertools
import json

from tilewave import _core, entries
from tilewave.errors import ConfigError
from tilewave.machine.numbers import FAR, FORMAT, FRACTIONS, LATER, LINK_NUMBERS, MAY_BE_ZERO, NUMBERS

WRITTEN = "allowed: a file that `tilewave measure -o FILE` wrote"
#: The largest number, by the end of its name; others, such as ratios, may reach MOST. With these every sum stays
#: finite.
MOST_OF = {"byte_s": 1.0, "_s": 1e6, "bytes": FAR, "x": FAR, "y": 1e6}
MOST = 1e12
LEAST = 1e-18  # of numbers above 0: their inverses stay finite, too
MOST_HOSTS = 1 << 30
#: What a launch was like: of these three at least; others that a file has are texts to be shown.
NEEDED = ("hosts", "ranks", "threads")
_COUNT, _TEXTS = entries.integer(1, 1 << 30), entries.of_list(entries.text)
CONDITIONS = {
    "hosts": _TEXTS,
    "ranks": _COUNT,
    "threads": entries.integer(1, _core.limits["lanes"]),
    "ranks_per_host": entries.of_list(_COUNT),
    "cpus": entries.of_list(_COUNT),
    "cpu_models": _TEXTS,
    "oversubscribed": entries.flag,
    "mpi": entries.text,
    "settings": entries.of_object({}, more=entries.text),
    "date": entries.text,
    "tilewave": entries.text,
    "quick": entries.flag,
    "measured_s": entries.number,
    "busy": entries.number,
}
#: What each row of these lists of a link has.
ROWS = {
    "overlap": ("way", "poll_period_s", "bytes", "hidden", "slowdown", "busy_byte_s"),
    "strided": ("way", "stride", "bytes", "byte_s"),
}


def checked(text, path, classes):
    """The machine in a text, or ConfigError with the file, the field, what was found and what is allowed.

    `classes`: what it is made of: Machine, Link and Curve.
    """
    return _Check(path, *classes).machine(text)


def _short(found):
    shown = repr(found)
    return shown if len(shown) < 80 else shown[:77] + "..."


class _Check:
    def __init__(self, path, Machine, Link, Curve):
        self.path = path
        self.Machine, self.Link, self.Curve = Machine, Link, Curve

    def wrong(self, field, found, allowed):
        raise ConfigError(f"{self.path}: field {field}: found {_short(found)}; allowed: {allowed}")

    def machine(self, text):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{self.path}: is no JSON ({error}); {WRITTEN}") from None
        if not isinstance(data, dict) or "format" not in data:
            raise ConfigError(f"{self.path}: field format: missing; {WRITTEN}")
        if data["format"] != FORMAT or isinstance(data["format"], bool):
            self.wrong("format", data["format"], f"{FORMAT}, which this version of Tilewave writes; measure anew")
        conditions = self.conditions(data)
        found = {
            name: self.number(data, "", name) for name in NUMBERS if data.get(name) is not None or name not in LATER
        }
        host_of = self.get(data, "", "host_of", list)
        for i, h in enumerate(host_of):
            if not isinstance(h, int) or isinstance(h, bool) or not 0 <= h < MOST_HOSTS:
                self.wrong(f"host_of[{i}]", h, f"the number of a rank's host, 0 to {MOST_HOSTS - 1}")
        if len(host_of) not in (0, conditions["ranks"]):
            self.wrong(
                "host_of",
                f"{len(host_of)} entries",
                f"one for each of the {_short(conditions['ranks'])} ranks of conditions, or none",
            )
        memory = self.get(data, "", "memory", list)
        return self.Machine(
            conditions,
            **found,
            copy_byte_s=self.curve(data.get("copy_byte_s"), "copy_byte_s"),
            memory=[self.curve(c, f"memory[{i}]") for i, c in enumerate(memory)],
            host_of=host_of,
            same_host=self.link(data, "same_host"),
            other_host=self.link(data, "other_host"),
            kernels=self.kernels(data),
            spread=self.spread(data),
        )

    def conditions(self, data):
        conditions = self.get(data, "", "conditions", dict)
        for name in NEEDED:
            self.get(conditions, "conditions.", name, list if name == "hosts" else int)
        for name, value in conditions.items():
            if (kind := CONDITIONS.get(name)) is not None:
                self.entry(kind, value, f"conditions.{name}")
        return conditions

    def entry(self, kind, value, where):
        try:
            return kind(value, where)
        except entries.Damaged as error:
            self.wrong(error.where, error.found, error.allowed)

    def link(self, data, name):
        given = data.get(name)
        if given is None:
            return None
        if not isinstance(given, dict):
            self.wrong(name, given, "an object, or null without such neighbours")
        where = name + "."
        numbers = {key: self.number(given, where, key) for key in LINK_NUMBERS}
        synchronous = given.get("synchronous_s")
        sizes = self.get(given, where, "breaks_bytes", list)
        for i, size in enumerate(sizes):
            self.sensible(f"{where}breaks_bytes[{i}]", "bytes", size)
        return self.Link(
            **numbers,
            transfer_s=self.curve(given.get("transfer_s"), where + "transfer_s", least=1),
            breaks_bytes=sizes,
            synchronous_s=None if synchronous is None else self.curve(synchronous, where + "synchronous_s"),
            overlap=self.rows(given, where, "overlap"),
            strided=self.rows(given, where, "strided"),
        )

    def rows(self, given, where, name):
        rows = self.get(given, where, name, list)
        for i, row in enumerate(rows):
            if not isinstance(row, dict):
                self.wrong(f"{where}{name}[{i}]", row, "an object")
            for key in ROWS[name]:
                if key not in row:
                    raise ConfigError(f"{self.path}: field {where}{name}[{i}].{key}: missing; {WRITTEN}")
            for key, value in row.items():
                if key == "way":
                    self.entry(entries.text, value, f"{where}{name}[{i}].way")
                else:
                    self.sensible(f"{where}{name}[{i}].{key}", key, value)
        return rows

    def kernels(self, data):
        kernels = self.get(data, "", "kernels", dict)
        for name, kernel in kernels.items():
            if not isinstance(kernel, dict):
                self.wrong(f"kernels.{name}", kernel, "an object")
            for key in ("point_s", "row_s", "tile_s"):
                if key not in kernel:
                    raise ConfigError(f"{self.path}: field kernels.{name}.{key}: missing; allowed: a number")
                self.sensible(f"kernels.{name}.{key}", key, kernel[key], zero=True)
            self.entry(entries.of_list(entries.LONG), kernel.get("tile", []), f"kernels.{name}.tile")
        return kernels

    def spread(self, data):
        spread = self.get(data, "", "spread", dict)
        for name, value in spread.items():
            self.sensible(f"spread.{name}", "spread", value, zero=True)
        return spread

    def curve(self, given, where, least=0):
        if not isinstance(given, dict) or not all(isinstance(given.get(k), list) for k in "xy"):
            self.wrong(where, given, "an object with lists x and y")
        x, y = given["x"], given["y"]
        if len(x) != len(y) or len(x) < least:
            self.wrong(where, f"{len(x)} x and {len(y)} y", f"equally many, at least {least}")
        for axis, values in (("x", x), ("y", y)):
            for i, value in enumerate(values):
                self.sensible(f"{where}.{axis}[{i}]", axis, value)
        for i, (a, b) in enumerate(itertools.pairwise(x), 1):
            if not a < b:
                self.wrong(f"{where}.x[{i}]", b, f"more than x[{i - 1}], {a!r}")
        return self.Curve(x, y)

    def get(self, data, where, name, kind):
        if name not in data:
            raise ConfigError(f"{self.path}: field {where}{name}: missing; {WRITTEN}")
        value = data[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            self.wrong(where + name, value, {dict: "an object", list: "a list", int: "an integer"}[kind])
        return value

    def number(self, data, where, name):
        if name not in data:
            raise ConfigError(f"{self.path}: field {where}{name}: missing; allowed: a number")
        return self.sensible(where + name, name, data[name])

    def sensible(self, where, name, value, zero=False):
        zero = zero or name in MAY_BE_ZERO
        most = 1.0 if name in FRACTIONS else next((most for end, most in MOST_OF.items() if name.endswith(end)), MOST)
        fine = (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and 0 <= value <= most
            and (value >= LEAST or zero)
        )
        if not fine:  # NaN is not between any two numbers
            least = ">= 0" if zero else f"> 0, at least {LEAST:g}"
            self.wrong(
                where,
                value,
                "a number from 0 to 1" if name in FRACTIONS else f"a finite number {least}, at most {most:g}",
            )
        return value
