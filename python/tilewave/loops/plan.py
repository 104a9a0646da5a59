"""The plan of a region: nests, chains of nests, and loops that run in their order, for arrays and numbers of a call."""

import numbers as abstract
from dataclasses import dataclass

from tilewave.errors import ConfigError
from tilewave.loops.distribute import Nested, Ordered, Repeated
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
        bound = [
            bind(n, **self._arguments(text, arrays, first)) for n, text in zip(self.nests, self.texts, strict=True)
        ]
        if self.kind == "chain":
            chain(bound).run(times=len(self.rounds))
            return
        turning = [[new for new, name in text.scalars.items() if name == self.index] for text in self.texts]
        for number in self.rounds:
            for each, text, names in zip(bound, self.texts, turning, strict=True):
                elements = _elements(text, arrays, {self.index: number})
                each.run(**dict.fromkeys(names, number), **elements)

    def _arguments(self, text, arrays, given):
        named = {new: arrays[name] for new, name in text.arrays.items()}
        scalars = {new: given[name] for new, name in text.scalars.items()}
        elements = _elements(text, arrays, given)
        return {**named, **scalars, **elements, "over": text.over, "reverse": text.reverse}


def _elements(text, arrays, names):
    """The elements that a nest has as scalars."""
    found = {}
    for new, (array, at) in text.elements.items():
        place = tuple(constant + sum(names[n] * factor for n, factor in terms.items()) for terms, constant in at)
        try:
            found[new] = arrays[array][place]
        except IndexError as error:
            raise ConfigError(f"{array}{list(place)}: {error}") from None
    return found


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
    return [part for step in steps for part in _parts(region, step, numbers, given, least)]


def _parts(region, step, numbers, given, least):
    if isinstance(step, Ordered):
        return [Part("in order", step.statements, step.why)]
    try:
        if isinstance(step, Repeated):
            return [_turns(region, step, numbers, given, least[1])]
        text, nest = _nest(region, step, numbers, given, frozenset(), least[0])
        return [Part("nest", step.statements, "", (text,), (nest,))]
    except _FewPoints as reason:
        return [Part("in order", step.statements, str(reason))]
    except (Stays, ConfigError) as reason:
        finer = step.finer() if isinstance(step, Nested) else None
        if finer:
            return [part for each in finer for part in _parts(region, each, numbers, given, least)]
        return [Part("in order", step.statements, str(reason))]


def _turns(region, step, numbers, given, least):
    """A chain, or turns, of a loop around nests."""
    loop = step.loop
    writers = [pair for each in step.steps for pair in _nests(region, each, numbers, given, {loop.index}, least)]
    ends = [form.constant + sum(numbers[n] * f for n, f in form.terms.items() if f) for form in (loop.begin, loop.end)]
    stored = {access.name for each in step.steps for access in each.group.accesses if access.stores}
    turning = any(
        loop.index in text.scalars.values()
        or any(array in stored or any(terms for terms, _ in at) for array, at in text.elements.values())
        for text, _ in writers
    )
    texts, nests = zip(*writers, strict=True)
    kind = "turns" if turning else "chain"
    return Part(kind, step.statements, "", texts, nests, range(*ends, loop.step), loop.index)


def _nests(region, step, numbers, given, turns, least):
    """The nests of a step in a loop."""
    if not isinstance(step, Nested):
        raise Stays("loops around loops around nests")
    try:
        return [_nest(region, step, numbers, given, turns, least)]
    except _FewPoints:
        raise
    except (Stays, ConfigError):
        finer = step.finer()
        if not finer:
            raise
    return [pair for each in finer for pair in _nests(region, each, numbers, given, turns, least)]


class _FewPoints(Stays):
    """A nest is too small to run by itself."""


def _nest(region, nested, numbers, given, turns, least):
    writer = Writer(region, nested, numbers, turns)
    if (points := _points(writer)) < max(least, 1):
        raise _FewPoints(f"it has few points ({points})")
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
            terms = [
                (factor * low, factor * high) for n, factor in form.terms.items() if factor for low, high in [ranges[n]]
            ]
            ends.append(form.constant + sum(pick(pair) for pair in terms))
        values = range(*ends, loop.step)
        points *= len(values)
        if not values:
            return 0
        ranges[loop.index] = (min(values[0], values[-1]), max(values[0], values[-1]))
    return points
