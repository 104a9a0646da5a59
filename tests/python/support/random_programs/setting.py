"""One way to run a program, as plain data."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Bound:
    """``(factors of outer indices + constant) // divisor``."""

    constant: int
    terms: tuple = ()  # (index, factor)
    divisor: int = 1
    function: bool = False  # given as a function

    def __str__(self):
        if not self.terms:
            return str(self.constant)
        text = " + ".join(index if factor == 1 else f"{factor}*{index}" for index, factor in self.terms)
        text = f"{text} {'-' if self.constant < 0 else '+'} {abs(self.constant)}"
        return text if self.divisor == 1 else f"({text}) // {self.divisor}"

    def source(self):
        """The bound as `over` takes it, as Python's text."""
        if not self.terms:
            return str(self.constant)
        return f"lambda {', '.join(index for index, _ in self.terms)}: {self}" if self.function else repr(str(self))


@dataclasses.dataclass
class Loops:
    """How the loops of one nest run."""

    over: dict = dataclasses.field(default_factory=dict)  # index to (lower bounds, upper bounds, stride)
    reverse: tuple = ()
    periodic: tuple = ()

    def over_text(self):
        """`over` as Python's text."""
        pairs = []
        for index, (*sides, stride) in self.over.items():
            texts = [[bound.source() for bound in bounds] for bounds in sides]
            ends = [each[0] if len(each) == 1 else f"[{', '.join(each)}]" for each in texts]
            pairs.append(f"{index!r}: ({', '.join(ends + [str(stride)] * (stride > 1))})")
        return "{" + ", ".join(pairs) + "}"


@dataclasses.dataclass
class Setting:
    """One way to run a program."""

    shapes: dict = dataclasses.field(default_factory=dict)  # with time where it is a dimension
    values: dict = dataclasses.field(default_factory=dict)
    history: dict = dataclasses.field(default_factory=dict)  # names to arrays of the time steps before, latest first
    scalars: dict = dataclasses.field(default_factory=dict)
    layouts: dict = dataclasses.field(default_factory=dict)  # of arrays that are NumPy's
    moved: dict = dataclasses.field(default_factory=dict)  # of fields: the plan of a nest that ran over them before
    aliases: dict = dataclasses.field(default_factory=dict)  # of arrays that are read: the array that they are, too
    overlaps: dict = dataclasses.field(default_factory=dict)  # of arrays that are read: another, a row before it
    halos: dict = dataclasses.field(default_factory=dict)  # of fields: the halo that they are made with
    windows: dict = dataclasses.field(default_factory=dict)  # of fields that nobody reads after the run: how they begin
    loops: dict = dataclasses.field(default_factory=dict)  # by the name of the nest
    loops_periodic: tuple = ()  # of all nests
    steps: int | None = None
    other: dict | None = None  # steps and scalars of one more run before all others, and one after
    block: int = 0  # time steps that are prepared together, however small arrays are; 0: as it is
    reduce: dict = dataclasses.field(default_factory=dict)  # of each nest: names to (function, what)
    inject: dict = dataclasses.field(default_factory=dict)  # names to `Points` with values
    record: dict = dataclasses.field(default_factory=dict)  # names to `Points`
    plan: dict = dataclasses.field(default_factory=dict)
    planning: str = "auto"
    door: str = "run"
    times: int = 1
    until: tuple | None = None  # (name of a number, most)
    every: int = 1
    again: dict | None = None  # scalars of another run of a chain, after the first
    plans: dict = dataclasses.field(default_factory=dict)  # by the name of the nest, where they differ
    proved: bool = False  # the schedule of a chain
    bound: bool = False  # nests of a time step, before they run
    whole: dict = dataclasses.field(default_factory=dict)  # how the loops of a whole function stand
    joined: bool = False  # nests of a time step are one schedule, however small their arrays are
    ranks: int = 1
    lanes: int = 1
    without: str = ""
    kinds: set = dataclasses.field(default_factory=set)
