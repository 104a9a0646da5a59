"""Divides the turns of a loop among lanes, where none touches what another one writes; else the loops in its turns."""

import ast
import copy
import threading
import time
from dataclasses import dataclass

from tilewave.errors import ConfigError
from tilewave.loops.flat import flat_accesses
from tilewave.loops.liveness import needs
from tilewave.loops.tree import linear, names_of
from tilewave.nest.region import Region
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.walks import elements_in, is_stored, names_in, nodes_in

#: Seconds of a loop from which dividing it pays: lanes take some 0.1 ms to begin.
LEAST_S = 1e-3
#: Seconds of a turn from which its loops run one by one, which takes some 0.1 ms.
LEAST_TURN_S = 3e-3
#: The part of the turns that one lane makes first, to see how long they take; pieces that a lane then makes in all.
PROBED, PIECES = 64, 8


@dataclass(eq=False)
class Turns:
    """A loop that may run in pieces: names go from no turn to another one.

    Attributes
    ----------
    region : Region
        The loop over turns from `begin` to `end`, two names.
    begin, end : str
    bounds : list of Affine
        Of the loop: begin, end and step.
    forms : list of Affine
        Subscripts, of the loop's index, by which elements of different turns differ; none may count from the end.
    index : str
    flat : list of list of FlatAccesses
        Of each of the other arrays those of its subscripts, one of which tells turns apart.
    inner : tuple of (Region, set)
        Where turns need others, the statements of one, the turns of some of which need no others, and the names that
        are needed behind each.
    """

    region: Region
    begin: str
    end: str
    bounds: list
    forms: list
    index: str
    flat: list
    inner: tuple = ()

    def of(self, numbers):
        """The turns as a range, for these integers; None where they cannot be divided."""
        if any(name not in numbers for form in self.bounds for name in form.terms):
            return None
        low, high, step = (_at(form, numbers) for form in self.bounds)
        turns = range(low, high, step) if step else ()
        if step < 1 or len(turns) < 2 or low < 0 or high >= 2**30:
            return None
        for form in self.forms:
            if any(name not in numbers for name in form.terms.keys() - {self.index}):
                return None
            if min(_at(form, {**numbers, self.index: turn}) for turn in (turns[0], turns[-1])) < 0:
                return None
        apart = all(any(each.are_apart(turns, numbers) for each in subscripts) for subscripts in self.flat)
        return turns if apart else None


def _at(form, numbers):
    return form.constant + sum(numbers[name] * factor for name, factor in form.terms.items())


def turns_of(region, live):
    """The `Turns` of a region that is one loop; None where nothing can be divided.

    Names that the body assigns must be its own: assigned before they are read, and in each turn where they are `live`
    behind the loop. Turns need no others where each array that is written has a subscript that is the same form of the
    index in all accesses, or one of which each turn has a part of its own, `i*n + j`.
    """
    body = region.source.tree.body
    if len(body) != 1 or not isinstance(body[0], ast.For) or not isinstance(body[0].target, ast.Name):
        return None
    loop, index = body[0], body[0].target.id
    inside = nodes_in(*(each.target for each in ast.walk(loop) if isinstance(each, ast.comprehension)))
    assigned = {each.id for each in nodes_in(*loop.body) if is_stored(each) and each not in inside}
    needed, certain = needs(loop.body)
    if index in assigned or assigned & (needed | names_in(loop.iter)):
        return None
    if assigned & live - certain or _leaves(loop.body):
        return None
    changing = assigned | {index}
    bounds = [linear(each, lambda name: not names_of(name) & changing) for each in _ends(loop.iter)]
    forms = {array: _apart(loop.body, array, index, assigned) for array in region.written_tables}
    flat = [flat_accesses(loop, array, index) for array, form in forms.items() if form is None]
    inner = ()
    if any(form is None for form in bounds):
        return None
    if not all(flat):
        forms, flat, inner = {}, [], _inner(region, loop, live)
        if not inner:
            return None
    begin, end = f"{index}_begin", f"{index}_end"
    if {begin, end} & region.local_names:
        return None
    part = copy.copy(loop)
    part.iter = copy.copy(loop.iter)
    names = [ast.copy_location(ast.Name(name, ast.Load()), loop.iter) for name in (begin, end)]
    part.iter.args = [*names, *loop.iter.args[2:]]
    own = Region(region.source, region.function, [part], region.local_names | {begin, end})
    return Turns(own, begin, end, bounds, [form for form in forms.values() if form is not None], index, flat, inner)


def _inner(region, loop, live):
    """The statements of a turn as regions; none where no loop among them can be divided, or the turn may end early."""
    if any(isinstance(node, ast.Continue) for node in ast.walk(loop)):
        return ()
    found = []
    for k, each in enumerate(loop.body):
        try:
            own = Region(region.source, region.function, [each], region.local_names)
        except ConfigError:  # it has the extent of an array of which it has no element
            return ()
        found.append((own, live | needs(loop.body[k + 1 :])[0]))
    divided = (turns_of(*each) for each in found)
    return tuple(found) if any(turns and not turns.inner for turns in divided) else ()


def _ends(call):
    """Begin, end and step of a range."""
    given = call.args if len(call.args) > 1 else [ast.Constant(0), *call.args]
    return given if len(given) == 3 else [*given, ast.Constant(1)]


def _leaves(statements):
    """Return whether statements of a loop may end it."""
    for node in statements:
        if isinstance(node, ast.Break):
            return True
        inner = (
            [] if isinstance(node, ast.For | ast.While) else [getattr(node, part, []) for part in ("body", "orelse")]
        )
        if any(_leaves(part) for part in inner):
            return True
    return False


def _apart(statements, array, index, assigned):
    """The form by which elements of an array differ from turn to turn; None where there is none."""
    elements = [node for node in elements_in(*statements) if isinstance(node.value, ast.Name)]
    accesses = [subscripts_of(node) for node in elements if node.value.id == array]
    for parts in zip(*accesses, strict=True):
        forms = [linear(part, lambda name: not names_of(name) & assigned) for part in parts]
        if any(form is None or form.divisor != 1 or not form.terms.get(index) for form in forms):
            continue
        if len({(form.constant, frozenset((n, f) for n, f in form.terms.items() if f)) for form in forms}) == 1:
            return forms[0]
    return None


def stepped(run, turns, step):
    """Run turns in their order, after the first one statement by statement where they take long.

    Parameters
    ----------
    run : function
        Of the first turn and the end of a piece.
    turns : range
    step : function
        Of a turn: runs its statements.

    Returns
    -------
    object
        What the last turn returns.
    """
    began = time.perf_counter()
    found = run(turns[0], turns[0] + 1)
    if time.perf_counter() - began < LEAST_TURN_S:
        return run(turns[1], turns[-1] + 1)
    for turn in turns[1:]:
        found = step(turn)
    return found


def divided(run, turns, lanes):
    """Run turns in pieces, most of them on several lanes where they take long.

    Parameters
    ----------
    run : function
        Of the first turn and the end of a piece; what it returns for the last piece is the result.
    turns : range
    lanes : function
        Returns the number of lanes.

    Returns
    -------
    (object, int)
        The result, and the lanes that took part.

    Raises
    ------
    Exception
        The one that the first turn that raises has raised.
    """
    first, began = max(len(turns) // PROBED, 1), time.perf_counter()
    found = run(turns[0], turns[first - 1] + 1)
    left = turns[first:]
    if not left:
        return found, 1
    each_s = (time.perf_counter() - began) / first
    count = min(lanes(), len(left)) if each_s * len(left) >= LEAST_S else 1
    if count == 1:
        return run(left[0], left[-1] + 1), 1
    size = max(len(left) // (PIECES * count), 1)
    pieces = iter([left[k : k + size] for k in range(0, len(left), size)])
    lock, errors, results = threading.Lock(), {}, {}

    def make():
        while True:
            with lock:
                piece = None if errors else next(pieces, None)
            if piece is None:
                return
            try:
                results[piece[0]] = run(piece[0], piece[-1] + 1)
            except BaseException as error:
                errors[piece[0]] = error
                return

    others = [threading.Thread(target=make, daemon=True) for _ in range(count - 1)]
    for each in others:
        each.start()
    make()
    try:
        for each in others:
            each.join()
    except BaseException as error:  # of Ctrl-C: arrays are left alone only when pieces have ended
        errors[turns[-1]] = error
        for each in others:
            each.join()
        raise
    if errors:  # pieces are taken in order: all before it have run
        raise errors[min(errors)]
    return results[max(results)], count
