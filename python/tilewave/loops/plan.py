"""The plan of a region: nests, chains of nests, and loops that run in their order, for arrays and numbers of a call."""

import numbers as abstract
from dataclasses import dataclass

from tilewave.errors import ConfigError
from tilewave.loops.distribute import Nested, Ordered
from tilewave.loops.nest_text import Writer, outside_names
from tilewave.loops.tree import Stays, extent_text
from tilewave.nest.nest import nest_from
from tilewave.nests.doors.bind import bind
from tilewave.nests.doors.chain import chain
from tilewave.nests.doors.run import run

#: Points of a nest from which it pays to run it by itself: a run costs some 100 us, a turn of a chain some 10 us.
LEAST_POINTS, LEAST_POINTS_OF_TURNS = 20_000, 2_000


@dataclass(eq=False)
class Part:
    """One part of a plan.

    Attributes
    ----------
    kind : str
        "nest", "chain", "turns" (nests in a Python loop) or "in order".
    statements : list of ast.stmt
        The same as loops that run in their order.
    why : str
        Why it is not a nest.
    texts : list of NestText
    nests : list of Nest
    rounds : range
    index : str
        Of the loop around a chain, or turns.
    """

    kind: str
    statements: list
    why: str = ""
    texts: tuple = ()
    nests: tuple = ()
    rounds: range = range(1)
    index: str = ""

    def run(self, arrays, given):
        """Run the nests; ConfigError, before anything has run, where they do not take the arrays."""
        if self.kind == "nest":
            run(self.nests[0], **self._arguments(self.texts[0], arrays, given))
            return
        if not self.rounds:
            return
        first = {**given, self.index: self.rounds[0]}
        bound = [bind(n, **self._arguments(text, arrays, first)) for n, text in zip(self.nests, self.texts, strict=True)]
        if self.kind == "chain":
            chain(bound).run(times=len(self.rounds))
            return
        turning = [[new for new, name in text.scalars.items() if name == self.index] for text in self.texts]
        for number in self.rounds:
            for each, names in zip(bound, turning, strict=True):
                each.run(**dict.fromkeys(names, number))

    def _arguments(self, text, arrays, given):
        named = {new: arrays[name] for new, name in text.arrays.items()}
        scalars = {new: given[name] for new, name in text.scalars.items()}
        return {**named, **scalars, "over": text.over, "reverse": text.reverse}


def numbers_of(region, arrays, given):
    """The integers that bounds and subscripts may have."""
    found = {**region.outside().constants, **given}
    found = {
        name: int(value)
        for name, value in found.items()
        if isinstance(value, abstract.Integral) and type(value).__name__ not in ("bool", "bool_")
    }
    return found | {extent_text(name, d): n for name, array in arrays.items() for d, n in enumerate(array.shape)}


def plan_of(region, steps, arrays, given, least=(LEAST_POINTS, LEAST_POINTS_OF_TURNS)):
    """The parts of a plan for steps.

    Parameters
    ----------
    region : Region
    steps : list of Nested, Repeated or Ordered
    arrays, given : dict
        By name.
    least : (int, int)
        Points of a nest, and of one in a loop, below which it runs in order.

    Returns
    -------
    list of Part
    """
    numbers = numbers_of(region, arrays, given)
    return [_part(region, step, numbers, given, least) for step in steps]


def _part(region, step, numbers, given, least):
    if isinstance(step, Ordered):
        return Part("in order", step.statements, step.why)
    try:
        if isinstance(step, Nested):
            text, nest = _nest(region, step, numbers, given, frozenset(), least[0])
            return Part("nest", step.statements, "", (text,), (nest,))
        return _turns(region, step, numbers, given, least[1])
    except (Stays, ConfigError) as reason:
        return Part("in order", step.statements, str(reason))


def _turns(region, step, numbers, given, least):
    """A chain, or turns, of a loop around nests."""
    if not all(isinstance(each, Nested) for each in step.steps):
        raise Stays("loops around loops around nests")
    loop = step.loop
    writers = [_nest(region, each, numbers, given, {loop.index}, least) for each in step.steps]
    ends = [form.constant + sum(numbers[n] * f for n, f in form.terms.items() if f) for form in (loop.begin, loop.end)]
    turning = any(loop.index in text.scalars.values() for text, _ in writers)
    texts, nests = zip(*writers, strict=True)
    kind = "turns" if turning else "chain"
    return Part(kind, step.statements, "", texts, nests, range(*ends, loop.step), loop.index)


def _nest(region, nested, numbers, given, turns, least):
    writer = Writer(region, nested, numbers)
    if (points := _points(writer)) < least:
        raise Stays(f"it has few points ({points})")
    text = writer.text()
    if missing := [name for name in text.scalars.values() if name not in given and name not in turns]:
        raise Stays(f"{missing[0]!r} is no number before the loops")
    return text, nest_from(text.text, outside_names(region, text.outside))


def _points(writer):
    """About how many points a nest has, at most."""
    ranges, points = {}, 1
    for loop in writer.loops:
        ends = []
        for form, pick in ((writer.form(loop.begin), min), (writer.form(loop.end), max)):
            pick = pick if loop.step > 0 else {min: max, max: min}[pick]
            terms = [(factor * low, factor * high) for n, factor in form.terms.items() if factor for low, high in [ranges[n]]]
            ends.append(form.constant + sum(pick(pair) for pair in terms))
        values = range(*ends, loop.step)
        points *= len(values)
        if not values:
            return 0
        ranges[loop.index] = (min(values[0], values[-1]), max(values[0], values[-1]))
    return points


