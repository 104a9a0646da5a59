"""Plain data of files, read entry by entry: what a format has is declared as a value, and what is wrong is named.

A kind is a function (value, where) that gives the value as the program has it. `where` is the entry's place in the
file, such as ``schedules[0].lanes[1][3]``.
"""

from tilewave.errors import shown


class Damaged(ValueError):
    """An entry that is none of its kind: where it stands, what is there, what is allowed."""

    def __init__(self, where, found, allowed):
        self.where, self.found, self.allowed = where, found, allowed
        super().__init__(f"{where}{where and ': '}given {shown(found)}; allowed: {allowed}")


class Missing(ValueError):
    """An entry that should be there: where, and the names of its object's entries."""

    def __init__(self, where, names):
        self.where = where
        super().__init__(f"{where} is missing; allowed: the fields {names}")


def anything(value, where):
    """Whatever is there."""
    return value


def integer(least, most):
    """An integer; no bool, no float."""

    def read(value, where):
        if type(value) is not int or not least <= value <= most:
            raise Damaged(where, value, f"an integer from {least} to {most}")
        return value

    return read


INT, LONG = integer(-(1 << 31), (1 << 31) - 1), integer(-(1 << 63), (1 << 63) - 1)


def flag(value, where):
    """True or false."""
    if type(value) is not bool:
        raise Damaged(where, value, "true, false")
    return value


def text(value, where):
    """Text that can be written."""
    if not isinstance(value, str) or not value.isprintable() and any("\ud800" <= c <= "\udfff" for c in value):
        raise Damaged(where, value, "a text")
    return value


def number(value, where):
    """A number; the core says which are allowed."""
    if type(value) not in (int, float) or not abs(value) <= 1e300:  # no NaN
        raise Damaged(where, value, "a number")
    return float(value)


def one_of(values):
    """One of these texts."""
    allowed = ", ".join(values)

    def read(value, where):
        if not isinstance(value, str) or value not in values:
            raise Damaged(where, value, allowed)
        return value

    return read


def or_null(kind):
    """Return the check that also allows None."""
    return lambda value, where: None if value is None else kind(value, where)


def of_list(kind, least=0, most=None, make=list):
    """A list of so many of one kind, or of those of a list of kinds."""
    kinds = kind if isinstance(kind, list) else None
    if kinds:
        least = most = len(kinds)
    size = f"{least} " if least == most else f"{least} to {most} " if most is not None else ""

    def read(value, where):
        if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
            raise Damaged(where, value, f"a list of {size}entries")
        if kinds:
            return make(each(v, f"{where}[{i}]") for i, (each, v) in enumerate(zip(kinds, value, strict=True)))
        return make(kind(v, f"{where}[{i}]") for i, v in enumerate(value))

    return read


def of_object(fields, more=None, needed=None):
    """An object with these fields, {name: kind}, of which all or the `needed` ones are there; any others are of the
    kind `more`, or refused.
    """
    names = ", ".join(fields)

    def read(value, where):
        if not isinstance(value, dict):
            raise Damaged(where, value, f"an object with the fields {names}" if names else "an object")
        for name in value:
            if name not in fields and more is None:
                raise Damaged(where, name, f"the fields {names}")
        for name in fields if needed is None else needed:
            if name not in value:
                raise Missing(_below(where, name), names)
        return {name: fields.get(name, more)(each, _below(where, name)) for name, each in value.items()}

    return read


def _below(where, name):
    return f"{where}.{name}" if where else str(name)
