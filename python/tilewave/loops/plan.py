"""The plan of a region: nests, chains of nests, and loops that run in their order, for arrays and numbers of a call."""

import ast
import dataclasses
import math
import numbers as abstract
import operator
from dataclasses import dataclass

import numpy as np

from tilewave.errors import ConfigError, KernelError
from tilewave.field.field import Field
from tilewave.loops.distribute import Nested, Ordered, Repeated
from tilewave.loops.nest_text import Writer, outside_names
from tilewave.loops.reductions import Types
from tilewave.loops.tree import Stays, extent_text, is_fixed, linear
from tilewave.nest.nest import nest_from
from tilewave.nest.walks import nodes_in
from tilewave.nests.call import reduce_functions
from tilewave.nests.doors.bind import bind
from tilewave.nests.doors.chain import chain

#: Points of a nest from which it pays to run it by itself: a run costs some 100 us, a turn of a chain some 10 us.
LEAST_POINTS, LEAST_POINTS_OF_TURNS = 20_000, 2_000

#: The same of loops that are written in another way (`tilewave.loops.reshaped`), whose order is a fast one already.
LEAST_POINTS_RESHAPED = 10_000_000

#: Elements that are copied before a nest, for each of its points.
MOST_COPIED = 4

REDUCE = {"max": reduce_functions.max, "min": reduce_functions.min, "sum": reduce_functions.sum}


OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


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
    bound : dict
        Bound nests by the memory of their arrays.
    is_small : bool
        It runs in order since a nest takes longer to begin.
    """

    kind: str
    statements: list
    why: str = ""
    texts: tuple = ()
    nests: tuple = ()
    rounds: range = range(1)
    index: str = ""
    bound: dict = dataclasses.field(default_factory=dict)
    is_small: bool = False

    def run(self, arrays, given):
        """Run the nests; ConfigError, before anything has run, where they do not take the arrays.

        Returns
        -------
        dict
            Names that the nests join their values to.
        """
        if not self.rounds:
            return {}
        given = {**given, self.index: self.rounds[0]}
        for text in self.texts:
            for each in text.joined:
                each.check(given.get(each.name))
        bound = self._bound(arrays, given)
        if self.kind == "nest":
            (text,) = self.texts
            return _run(text, bound, arrays, given)
        if self.kind == "chain":
            bound.run(times=len(self.rounds))
            return {}
        found = {}
        for number in self.rounds:
            for each, text in zip(bound, self.texts, strict=True):
                now = {**given, **found, self.index: number}
                found |= _run(text, each, arrays, now)
        return found

    def _bound(self, arrays, given):
        """What runs: a bound nest, several of them, or a chain; kept until the function returns."""
        key = tuple(_memory(arrays[name]) for text in self.texts for name in text.arrays.values())
        if self.kind == "chain":  # its scalars are those of now
            return chain([self._bind(*each, arrays, given) for each in zip(self.nests, self.texts, strict=True)])
        if key not in self.bound:
            self.bound[key] = [self._bind(*each, arrays, given) for each in zip(self.nests, self.texts, strict=True)]
        return self.bound[key] if self.kind == "turns" else self.bound[key][0]

    def _bind(self, nest, text, arrays, given):
        named = {new: arrays[name] for new, name in text.arrays.items()}
        before = {new: np.empty(arrays[name].shape, arrays[name].dtype) for new, name in text.before.items()}
        reduce = {name: REDUCE[how](local) for each in text.joined for name, (how, local) in each.reductions().items()}
        more = {"reduce": reduce} if reduce else {}
        given = {**named, **before, **_scalars(text, arrays, given)}
        bound = bind(nest, **given, over=text.over, reverse=text.reverse, **more)
        copies = [(copy, arrays[text.before[new]]) for new, copy in before.items()]
        return _Copying(bound, copies) if copies else bound


class Parts(list):
    """The parts of a plan.

    Parameters
    ----------
    parts : list of Part
    region : Region
        Whose statements they have.
    """

    def __init__(self, parts, region):
        super().__init__(parts)
        self.region = region
        self.ordered = sum(part.kind == "in order" and not part.is_small for part in parts)


class _Copying:
    """A bound nest that reads copies of arrays as they are when it begins."""

    def __init__(self, bound, copies):
        self.bound, self.copies = bound, copies

    def run(self, **scalars):
        for copy, array in self.copies:
            copy[...] = elements_of(array)
        return self.bound.run(**scalars)


def elements_of(array):
    """A NumPy array with all elements; of a field on several ranks a copy."""
    if not isinstance(array, Field):
        return array
    return array._view(0) if array.context.size == 1 else np.array(array[...])


def _run(text, bound, arrays, given):
    """Run a nest; returns the names that it joins its values to. An error tells its text."""
    try:
        return _joined(text, bound.run(**_scalars(text, arrays, given)), given)
    except KernelError as error:
        error.nest_text = text
        raise


def _joined(text, report, given):
    """The names that a nest has joined its values to, as they are now."""
    found = {}
    for each in text.joined:
        value = each.result(report.results, found.get(each.name, given.get(each.name)))
        if value is not None:
            found[each.name] = value
    return found


def _memory(array):
    """A key of the memory of an array, as long as it is bound."""
    if not isinstance(array, np.ndarray):
        return id(array)
    return array.ctypes.data, array.shape, array.strides, array.dtype


def _scalars(text, arrays, given):
    """The scalars of a nest."""
    found = {new: given[name] for new, name in text.scalars.items()} | _elements(text, arrays, given)
    for each in text.joined:
        found |= each.scalars(given)
    return found


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
    """The integers that bounds and subscripts have; not those that the loops assign, whose values are of before."""
    known = {**region.outside().constants, **given}
    placing = region.placing - {*region.assigned["all"]}
    found = {name: value for name, value in known.items() if name in placing}
    found = {
        name: int(value)
        for name, value in found.items()
        if isinstance(value, abstract.Integral) and type(value).__name__ not in ("bool", "bool_")
    }
    found |= {extent_text(name, d): n for name, array in arrays.items() for d, n in enumerate(array.shape)}
    fixed = {text: _value(node, found) for text, node in region.fixed.items() if is_fixed(node)}
    return found | {text: value for text, value in fixed.items() if value is not None}


def _value(node, numbers):
    """The integer that an expression is; None where it has other names, or raises."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        sides = [_value(each, numbers) for each in (node.left, node.right)]
        divides = isinstance(node.op, ast.FloorDiv | ast.Mod)
        return None if None in sides or divides and not sides[1] else OPERATORS[type(node.op)](*sides)
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    return numbers.get(node.id if isinstance(node, ast.Name) else ast.unparse(node))


def plan_of(region, steps, arrays, given, least, exact):
    """The parts of a plan for steps.

    Parameters
    ----------
    region : Region
    steps : list of Nested, Repeated or Ordered
    arrays, given : dict
        By name.
    least : (int, int)
        Points of a nest, and of one in a loop, below which it runs in order.
    exact : bool
        Sums of floats are exact, in any order.

    Returns
    -------
    list of Part
    """
    maker, parts = _Maker(region, arrays, given, least, exact), []
    for part in (each for step in steps for each in maker.parts(step)):
        if parts and part.kind == parts[-1].kind == "in order" and part.is_small == parts[-1].is_small:
            statements, why = (
                [*parts[-1].statements, *part.statements],
                ", ".join(dict.fromkeys((parts[-1].why, part.why))),
            )
            parts[-1] = Part("in order", statements, why, is_small=part.is_small)
        else:
            parts.append(part)
    return parts


class _Maker:
    """Makes the parts of a plan."""

    def __init__(self, region, arrays, given, least, exact):
        self.region, self.given, self.exact = region, given, exact
        self.numbers = numbers_of(region, arrays, given)
        self.dtypes = {name: array.dtype for name, array in arrays.items()}
        self.least = least

    def parts(self, step):
        """The parts of one step."""
        if isinstance(step, Ordered):
            return [Part("in order", step.statements, step.why)]
        try:
            if isinstance(step, Repeated):
                return [self._turns(step)]
            text, nest = self._nest(step, frozenset())
            return [Part("nest", step.statements, "", (text,), (nest,))]
        except _FewPoints as reason:
            return [Part("in order", step.statements, str(reason), is_small=True)]
        except (Stays, ConfigError) as reason:
            finer = step.finer() if isinstance(step, Nested) else None
            if finer:
                return [part for each in finer for part in self.parts(each)]
            return [Part("in order", step.statements, str(reason))]

    def _turns(self, step):
        """A chain, or turns, of a loop around nests."""
        loop = step.loop
        texts, nests = zip(*(pair for each in step.steps for pair in self._nests(each, {loop.index})), strict=True)
        ends = [
            pick(form.constant + sum(self.numbers[n] * f for n, f in form.terms.items() if f) for form in forms)
            for forms, pick in zip((loop.begins, loop.ends), (max, min) if loop.step > 0 else (min, max), strict=True)
        ]
        stored = {access.name for each in step.steps for access in each.group.accesses if access.stores}
        turning = any(
            loop.index in text.scalars.values()
            or text.joined
            or text.before
            or any(array in stored or any(terms for terms, _ in at) for array, at in text.elements.values())
            for text in texts
        )
        kind = "turns" if turning else "chain"
        return Part(kind, step.statements, "", texts, nests, range(*ends, loop.step), loop.index)

    def _nests(self, step, turns):
        """The nests of a step in a loop."""
        if not isinstance(step, Nested):
            raise Stays("loops around loops around nests")
        try:
            return [self._nest(step, turns)]
        except _FewPoints:
            raise
        except (Stays, ConfigError):
            finer = step.finer()
            if not finer:
                raise
        return [pair for each in finer for pair in self._nests(each, turns)]

    def _nest(self, nested, turns):
        types = Types(nested.group.statements, self.dtypes, self.given, self.exact)
        writer = Writer(self.region, nested, self.numbers, types, turns)
        least = self.least[bool(turns)]
        if any(each.is_exact for each in writer.joined):  # results do not depend on the number of ranks
            least = max(least, (LEAST_POINTS, LEAST_POINTS_OF_TURNS)[bool(turns)])
        if (points := _points(writer, self.given)) < max(least, 1):
            raise _FewPoints(f"it has few points ({points})")
        text = writer.text()
        if text.before and points < (least and LEAST_POINTS_RESHAPED):
            raise _FewPoints(f"it has few points ({points}) for copies of arrays")
        sizes = (
            math.prod(self.numbers[extent_text(name, d)] for d in range(self.region.table_rank(name)))
            for name in text.before.values()
        )
        if points * MOST_COPIED < sum(sizes):
            raise Stays("copies of what it reads would take longer than its points")
        joined = {each.name for each in writer.joined}
        known = self.given.keys() - ({*self.region.assigned["all"]} - joined) | turns
        if missing := [name for name in text.scalars.values() if name not in known]:
            raise Stays(f"{missing[0]!r} is no number before the loops")
        return text, nest_from(text.text, outside_names(self.region, text.outside))


class _FewPoints(Stays):
    """A nest is too small to run by itself."""


def _points(writer, given):
    """About how many points a nest has, at most."""
    ranges, points = {}, 1
    for loop in writer.loops:
        up = loop.step > 0
        ends = (
            (max if up else min)(_extreme(writer.form(form), ranges, min if up else max) for form in loop.begins),
            (min if up else max)(_extreme(writer.form(form), ranges, max if up else min) for form in loop.ends),
        )
        values = range(*ends, loop.step)
        points *= len(values)
        if not values:
            return 0
        ranges[loop.index] = (min(values[0], values[-1]), max(values[0], values[-1]))
    return points * _terms(writer, ranges, given)


def _terms(writer, ranges, given):
    """About how many terms the longest sum in the body has, at most; 1 without a sum."""
    integers = {name: int(value) for name, value in given.items() if isinstance(value, abstract.Integral)}
    known = {name: (value, value) for name, value in (integers | writer.numbers).items()} | ranges
    most = 1
    for node in nodes_in(*writer.nested.group.statements):
        if isinstance(node, ast.comprehension):
            begin, end = (linear(each, known.__contains__) for each in [ast.Constant(0), *node.iter.args][-2:])
            if begin is not None and end is not None:
                most = max(most, _extreme(end, known, max) - _extreme(begin, known, min))
    return most


def _extreme(form, ranges, pick):
    """The least or the greatest value of a form of indices within ranges."""
    return form.constant + sum(pick(f * end for end in ranges[name]) for name, f in form.terms.items() if f)
