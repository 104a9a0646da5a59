"""Runs the loops of a region for the arrays and numbers that a call has."""

import ast
import builtins
import contextlib
import functools
import itertools
import math
import re
import time

import numpy as np

from tilewave.context.context import usual_threads
from tilewave.dtypes import ALL
from tilewave.errors import ConfigError, KernelError, shown
from tilewave.field.field import Field
from tilewave.foreign import array_of, is_array
from tilewave.kernel.in_order import RANGES, Known, LoopsKernel
from tilewave.kernel.scalars import Slot
from tilewave.loops import lanes, plan
from tilewave.loops.distribute import Ordered, steps_of
from tilewave.loops.guards import cut
from tilewave.loops.inside import are_inside, may_wrap, outside
from tilewave.loops.plan import Part, Parts, plan_of
from tilewave.loops.reductions import Types
from tilewave.loops.reshaped import Reshaped
from tilewave.loops.tree import Stays, Tree
from tilewave.nest.names import MISSING, is_constant
from tilewave.nest.region import Region

#: Plans of one region for other integers; then its loops run in their order, which need no plan.
MOST_PLANS = 8


#: Entries after which loops go back to Python where these are small; and how small: so many times a node of their tree
#: is computed, at 0.02 us each, while it takes 0.2 ms to begin what is compiled.
ENTRIES, FEW_NODES = 32, 6000


class PythonNumbers(np.ndarray):
    """An array whose elements are numbers of Python: those of a list."""


class InOrder:
    """Loops that run in their order, compiled for the types of a call.

    Parameters
    ----------
    region : Region
    live : set of str
        Names that are needed behind it.

    Attributes
    ----------
    lanes : int
        That have taken part in the last run.
    divided : str
        What they have shared.
    """

    def __init__(self, region, live):
        self.region, self._kernels, self._tree, self._inside = region, {}, None, {}
        self._live, self._taken_s, self.lanes = live, {}, 1
        self.divided = ""

    def run(self, arrays, names):
        """Run the loops.

        Parameters
        ----------
        arrays : dict
            NumPy arrays and fields by name; fields are read and written as a whole.
        names : dict
            Local names of the function: those that are no numbers must not be read.

        Returns
        -------
        dict
            The names that the loops have assigned, or that were given.
        """
        region, given, foreign = self.region, {}, {}
        for name in sorted({*region.reads, *region.assigned["all"]} & names.keys()):
            if is_constant(names[name]) or _is_number(names[name]):
                given[name] = names[name]
            else:
                foreign[name] = type(names[name]).__name__
        memory = {name: plan.elements_of(arrays[name]) for name in region.tables}
        try:
            return self._run(memory, given, foreign, names)
        finally:
            for name in region.written_tables:
                if memory[name] is not arrays[name] and arrays[name].context.size > 1:
                    arrays[name][...] = memory[name]

    @functools.cached_property
    def _turns(self):
        return lanes.turns_of(self.region, self._live)

    def _run(self, memory, given, foreign, names):
        """Run the loops, in pieces where they are long and something in them can be divided."""
        part, turns = self._turns, None
        if part and are_apart(self.region, memory):
            turns = part.of(plan.numbers_of(self.region, memory, given))
        self.lanes, self.divided = 1, "its turns"
        if turns is None or any(_overlaps_itself(memory[name]) for name in self.region.written_tables):
            return self._kernel(self.region, memory, given, foreign).run(memory, given)
        kernel = self._kernel(part.region, memory, {**given, part.begin: 0, part.end: 0}, foreign)

        def run(begin, end):
            return kernel.run(memory, {**given, part.begin: begin, part.end: end})

        key = tuple((name, each.shape) for name, each in memory.items())
        began = time.perf_counter()
        if self._taken_s.get(key, lanes.LEAST_S) < lanes.LEAST_S:
            found = run(turns[0], turns[-1] + 1)
        elif part.inner:
            found = lanes.stepped(run, turns, lambda turn: self._step(memory, {**names, part.index: turn}))
        else:
            found, self.lanes = lanes.divided(run, turns, usual_threads)
        self._taken_s[key] = (time.perf_counter() - began) * self.lanes
        return found

    def _step(self, memory, names):
        """Run the statements of a turn one by one."""
        found = {self._turns.index: names[self._turns.index]}
        for each in self._statements:
            found |= each.run(memory, {**names, **found})
        self.lanes, self.divided = max(each.lanes for each in self._statements), "turns of loops in it"
        return found

    @functools.cached_property
    def _statements(self):
        return [InOrder(*each) for each in self._turns.inner]

    def _kernel(self, region, arrays, given, foreign):
        slots = tuple(Slot.of(name, value, RANGES) for name, value in given.items())
        dtypes = {name: array.dtype for name, array in arrays.items()}
        unit = frozenset(name for name, each in arrays.items() if each.strides[-1] == each.itemsize)
        apart = are_apart(region, arrays)
        inside = self._are_inside(arrays, given)
        listed = frozenset(name for name, each in arrays.items() if isinstance(each, PythonNumbers))
        key = slots, tuple(dtypes.items()), unit, apart, tuple(foreign.items()), inside, listed, region.signature()
        if key not in self._kernels:
            self._kernels[key] = LoopsKernel(region, dtypes, slots, unit, apart, foreign, Known(inside, listed))
        return self._kernels[key]

    def _are_inside(self, arrays, given):
        """Return whether no subscript needs a check, for the integers of this call."""
        if not (tree := self.tree()):
            return False
        numbers = plan.numbers_of(self.region, arrays, given)
        shapes = {name: array.shape for name, array in arrays.items()}
        key = *numbers.items(), *shapes.items()
        if key not in self._inside:
            if len(self._inside) >= MOST_PLANS:
                return False
            self._inside[key] = are_inside(tree, numbers, shapes)
        return self._inside[key]

    def tree(self):
        """The loops as a tree; None where something keeps them in their order."""
        if self._tree is None:
            try:
                self._tree = Tree(self.region)
            except Stays:
                self._tree = False
        return self._tree or None


def _is_number(value):
    """Return whether a value is what np.where gives for numbers."""
    return isinstance(value, np.ndarray) and value.shape == () and value.dtype in ALL


def are_apart(region, arrays):
    """Return whether no written array shares memory with another one."""
    return not any(
        _share(arrays[one], arrays[other])
        for one, other in itertools.combinations(region.tables, 2)
        if one in region.written_tables or other in region.written_tables
    )


def _share(one, other):
    fields = [each for each in (one, other) if isinstance(each, Field)]
    if len(fields) == 2:
        return one is other
    if fields:
        return fields[0]._holds(other if one is fields[0] else one)
    return np.may_share_memory(one, other)


def _overlaps_itself(array):
    """Return whether two elements of an array may lie in the same memory."""
    if isinstance(array, Field) or not array.size:
        return False
    room = array.itemsize
    for step, extent in sorted((abs(step), extent) for step, extent in zip(array.strides, array.shape, strict=True)):
        if extent > 1 and step < room:
            return True
        room += step * (extent - 1)
    return False


class TurnCount:
    """How often what is innermost in a loop runs, about.

    Parameters
    ----------
    node : ast.For or ast.While
    """

    PLAIN = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)

    def __init__(self, node):
        self._nests = [[compile(each, "turns", "eval") for each in ranges] for ranges in self._ranges(node)]
        self._whole = [compile(" * ".join(ranges), "turns", "eval") for ranges in self._ranges(node)]

    def _ranges(self, node):
        """The turns of each loop of a nest, as text, of each nest in a statement."""
        statements = (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt))
        each = [nest for part in statements for nest in self._ranges(part)]
        if not isinstance(node, ast.For):
            return each
        ends = node.iter.args if isinstance(node.iter, ast.Call) else []
        known = ends and all(isinstance(part, self.PLAIN) for end in ends for part in ast.walk(end))
        turns = f"len(range({', '.join(map(ast.unparse, ends))}))" if known else "longest_extent"
        return [[turns, *nest] for nest in each or [[]]]

    def of(self, names, longest):
        """The count for these names; a loop whose range is not known has `longest` turns."""
        try:
            return max([eval(nest, {}, names) for nest in self._whole], default=1)
        except Exception:
            return max(math.prod(_turns(turns, names, longest) for turns in nest) for nest in self._nests)


def _turns(code, names, longest):
    try:
        return eval(code, {}, names)
    except Exception:
        return longest


class RegionRun:
    """The loops of one place of a function.

    Parameters
    ----------
    found : Found
    runs : list of RegionRun
        Those of the loops within.
    exact : bool
        Sums of floats are exact, in any order.
    """

    def __init__(self, found, runs, exact):
        self.found, self.region, self.exact = found, found.region, exact
        self._inner = [runs[number] for number in found.inner]
        self._whole = InOrder(self.region, found.live) if self.region else None
        self._steps, self._parts, self._plans, self.last, self._entered = None, {}, {}, None, 0
        self._turns, nodes = TurnCount(found.node), [*ast.walk(found.node)]
        self._nodes, self._small = len(nodes), [Part("small", [found.node])]
        self._may_be_small = not any(isinstance(node, ast.While) for node in nodes)

    def takes(self, names):
        """Return whether the loops run here: not over lists and dicts, and not where nests in them are worth more.

        None: neither they nor those in them do, since Python takes less time than it takes to begin.

        Raises
        ------
        ConfigError
            Where they go over arrays, and cannot be compiled.
        """
        values = [self._value(names, name) for name in self.found.arrays]
        self._entered += 1
        if self._entered > ENTRIES and self._may_be_small and self._is_small(names, values):
            self.last = self._small
            return None
        if not any(isinstance(value, Field) or is_array(value) for value in values) or not self._is_ready(names):
            return False
        if self.region is None:
            raise self.found.refusal
        if not any(inner.is_worth_it(self.region, names) for inner in self._inner):
            return True
        arrays = {name: self._array(names, name) for name in self.region.tables}
        if any(part.kind != "in order" for part in self._plan(arrays, names)):
            return True
        self.last = [Part("Python", [self.found.node])]
        return False

    def _is_small(self, names, values):
        """Return whether Python takes less time than it takes to begin what is compiled; the results are the same."""
        shapes = [each.shape for each in values if isinstance(each, np.ndarray)]
        if len(shapes) < len(values):
            return False
        return self._turns.of(names, _longest(shapes)) * self._nodes <= FEW_NODES

    def _is_ready(self, names):
        """Return whether extents are known, and what must be arrays are arrays of the right form."""
        for name, (rank, columns) in self.found.over.items():
            each = self._value(names, name)
            if not isinstance(each, Field | np.ndarray) or rank not in (None, len(each.shape)):
                return False
            if columns not in (None, each.shape[-1]):
                return False
        return not self.found.extents.keys() - names

    def is_worth_it(self, outer, names):
        """Return whether loops in a loop that stays Python are the same in each turn, and large: nests, or what is in a
        ``while``, of which nobody knows the turns.
        """
        steps, in_while = self._steps_of(), isinstance(outer.loops[0], ast.While)
        nests = isinstance(steps, list) and not all(isinstance(each, Ordered) for each in steps)
        own = {node.target.id for node in self.region.loops if isinstance(node, ast.For)}
        if not (nests or in_while) or {*outer.assigned["all"]} & self.region.placing - own:
            return False
        arrays = [self._value(names, name) for name in self.region.tables]
        if any(isinstance(each, Field) and each.context.size > 1 for each in arrays):
            return True
        shapes = [getattr(each, "shape", ()) for each in arrays]
        if in_while:
            return self._turns.of(names, _longest(shapes)) >= plan.LEAST_POINTS
        return any(math.prod(shape) >= plan.LEAST_POINTS for shape in shapes)

    def release(self):
        """Let go of arrays."""
        for parts in self._plans.values():
            for part in parts:
                part.bound.clear()

    def _steps_of(self):
        """The steps of the region, or why it runs in its order."""
        if self._steps is None:
            try:
                self._steps = steps_of(self.region, self.found.live)
            except Stays as reason:
                self._steps = reason
        return self._steps

    def run(self, names):
        """Run the loops on the local names of the function; returns those that the loops have assigned."""
        arrays = {name: self._array(names, name) for name in self.region.tables}
        self.last = parts = self._plan(arrays, names)
        if all(part.kind == "in order" for part in parts):
            found = self._whole.run(arrays, names)
            if self._whole.lanes > 1:
                self.last = [Part("lanes", [self.found.node], f"{self._whole.divided} on {self._whole.lanes} lanes")]
            return found
        found, names = {}, dict(names)
        for part in parts:
            if part.kind != "in order":
                given = {name: value for name, value in {**names, **found}.items() if is_constant(value)}
                try:
                    found |= part.run(arrays, given)
                    continue
                except ConfigError as error:  # before anything has run
                    part.kind, part.why = "in order", str(error)
                except KernelError as error:
                    raise _as_raised(error, part.texts, self.region.source.file) from error
            found |= self._in_order(part, parts.region).run(arrays, {**names, **found})
        return found

    def explain(self):
        """Lines about the last run; none where the loops have not run."""
        return [line for part in self.last or () for line in _about(part)]

    def _in_order(self, part, region):
        """The loops of a part of a region in their order."""
        if id(part) not in self._parts:
            own = Region(region.source, region.function, part.statements, region.local_names)
            self._parts[id(part)] = part, InOrder(own, self.found.live | region.reads)
        return self._parts[id(part)][1]

    def _plan(self, arrays, names):
        """The parts of this call."""
        whole = [self.found.node]
        if not are_apart(self.region, arrays):
            return Parts([Part("in order", whole, "arrays share memory")], self.region)
        if any(isinstance(each, PythonNumbers) for each in arrays.values()):
            return Parts([Part("in order", whole, "elements of a list are numbers of Python")], self.region)
        if any(_overlaps_itself(arrays[name]) for name in self.region.written_tables):
            return Parts([Part("in order", whole, "elements of an array share memory")], self.region)
        given = self._given(names)
        numbers = tuple(plan.numbers_of(self.region, arrays, given).items())
        types = tuple((name, type(value).__name__) for name, value in given.items())
        many = max((each.context.size for each in arrays.values() if isinstance(each, Field)), default=1) > 1
        key = numbers, types, tuple(each.dtype for each in arrays.values()), many, self.region.signature()
        if key not in self._plans:
            if len(self._plans) >= MOST_PLANS:
                reason = f"more than {MOST_PLANS} sets of integers were given"
                return Parts([Part("in order", whole, reason)], self.region)
            shapes = {name: array.shape for name, array in arrays.items()}
            if (tree := self._whole.tree()) and (text := outside(tree, dict(numbers), shapes)):
                raise IndexError(text)
            least = (0, 0) if many else (plan.LEAST_POINTS, plan.LEAST_POINTS_OF_TURNS)
            inside = tree is not None and are_inside(tree, dict(numbers), shapes)
            self._plans[key] = self._parts_of(arrays, given, least, dict(numbers), inside)
        return self._plans[key]

    def _given(self, names):
        """The numbers that loops read."""
        return {name: value for name, value in names.items() if name in self.region.reads and is_constant(value)}

    def _numbers(self, arrays, names):
        """The integers that names and extents stand for."""
        return plan.numbers_of(self.region, arrays, self._given(names))

    def _parts_of(self, arrays, given, least, numbers, inside):
        """The parts of a plan; where loops stay in order, those of loops that are cut, and written in other ways."""
        tree = self._whole.tree()
        steps = Stays("a subscript may count from the end") if tree and may_wrap(tree, numbers) else self._steps_of()
        if isinstance(steps, Stays):
            best = Parts([Part("in order", [self.found.node], str(steps))], self.region)
        else:
            best = Parts(plan_of(self.region, steps, arrays, given, least, self.exact), self.region)
        if not best.ordered and inside:
            return best

        def tried(region):
            nonlocal best
            for apart in (True, False) if self.exact else (False,):  # in order, what is cut is joined in another one
                steps = steps_of(region, self.found.live, apart)
                parts = Parts(plan_of(region, steps, arrays, given, least, self.exact), region)
                if not parts.ordered:
                    break
            better = parts.ordered < best.ordered or not inside and best.region is self.region
            if better and any(part.kind != "in order" for part in parts):
                best = parts

        def tried_cut(region):
            with contextlib.suppress(Stays, ConfigError):
                if statements := cut(region, numbers, self.found.live):
                    region = Region(region.source, region.function, statements, region.local_names)
                if region is not self.region and not may_wrap(Tree(region), numbers):
                    tried(region)

        tried_cut(self.region)
        if best.ordered and inside:
            with contextlib.suppress(Stays, ConfigError):
                types = Types(self.region.source.tree.body, {n: a.dtype for n, a in arrays.items()}, given, self.exact)
                new = Reshaped(self.region, numbers, types, self.found.live)
                if new.changed:
                    wanted = plan.LEAST_POINTS_RESHAPED // (20 if new.guarded else 1)
                    least = tuple(each and max(each, wanted) for each in least)
                    if not new.guarded:
                        tried(new.region)
                    if best.ordered:
                        tried_cut(new.region)
        return best

    def _value(self, names, name):
        """The object that a name, perhaps a dotted one, of the function stands for."""
        first, *attributes = name.split(".")
        found = names[first] if first in names else self.found.scope.lookup(first)
        for attribute in attributes:
            found = getattr(found, attribute, MISSING)
        return found

    def _array(self, names, name):
        """The array of a name; ConfigError for what loops cannot take."""
        given, region = self._value(names, name), self.region
        what = f"{region.source.file}:{region.line}: loops over {name!r}"
        value = array_of(what, given, name in region.written_tables)
        if not isinstance(value, np.ndarray | Field):
            raise ConfigError(f"{what}: given {shown(value)}; allowed: a NumPy array (np.array(x)) or a field")
        if hasattr(given, "iloc") and not np.array_equal(given.index, np.arange(len(given))):
            raise ConfigError(f"{what}: given {shown(given)} with labels; allowed: its elements, {name}.to_numpy()")
        if value.dtype not in ALL or not value.dtype.isnative:
            allowed = ", ".join(each.name for each in ALL)
            raise ConfigError(f"{what}: dtype {value.dtype}; allowed: {allowed}, in native byte order")
        if len(value.shape) != region.table_rank(name):
            raise ConfigError(
                f"{what} give it {region.table_rank(name)} subscripts, given shape {value.shape}; allowed: a subscript "
                "for each dimension"
            )
        if isinstance(value, Field):
            return value
        if isinstance(given, list | tuple):
            if len({*map(type, _flat(given))} & {int, float}) != 1 or value.dtype not in ("float64", "int64"):
                raise ConfigError(f"{what}: given a {type(given).__name__}; allowed: one of ints, or of floats")
            return value.view(PythonNumbers)
        if name in region.written_tables and not value.flags.writeable:
            raise ConfigError(f"{what} write it, given an array that is read-only; allowed: a copy (x.copy())")
        if not value.flags.aligned:
            if name in region.written_tables:
                raise ConfigError(f"{what} write it, and its elements are not aligned in memory; allowed: np.array(x)")
            return np.array(value)
        return value


def _longest(shapes):
    """Return the longest extent of arrays."""
    return max((extent for shape in shapes for extent in shape), default=1)


def _flat(given):
    """The numbers of nested lists."""
    for each in given:
        yield from _flat(each) if isinstance(each, list | tuple) else (each,)


def _as_raised(error, texts, file):
    """The exception that the statements raised, which a nest has told, with the place in the function."""
    said = str(error)
    found, line = re.search(r"raised (\w+)\(", said), re.search(r", line (\d+)(?: \(nest (\d+) of .*\))?$", said)
    kind = getattr(builtins, found[1], None) if found else None
    if not isinstance(kind, type) or not issubclass(kind, Exception):
        return error
    if line:
        text = getattr(error, "nest_text", None) or texts[int(line[2] or 1) - 1]
        origin = text.origin[int(line[1]) - 2]
        said = f"{said[: line.start()]} ({file}:{origin})"
    return kind(said)


def _about(part):
    """Lines about a part of a plan."""
    lines = sorted(
        {line for s in part.statements for each in ast.walk(s) for line in [getattr(each, "lineno", 0)] if line}
    )
    where = f"lines {lines[0]} to {lines[-1]}" if lines[0] < lines[-1] else f"line {lines[0]}"
    if part.kind == "Python":
        yield f"{where}: Python, for the nests in it"
        return
    if part.kind == "small":
        yield f"{where}: Python: it was entered often, and takes less time than what is compiled takes to begin"
        return
    if part.kind == "lanes":
        yield f"{where}: compiled, {part.why}, of which none needs another one"
        return
    if part.kind == "in order":
        yield f"{where}: in order, compiled: {part.why}"
        return
    times = {"nest": "a nest", "chain": f"{len(part.rounds)} times", "turns": f"a turn for each {part.index}"}[
        part.kind
    ]
    yield f"{where}: {times}"
    for text, nest in zip(part.texts, part.nests, strict=True):
        over = ", ".join(f"{index} over {bounds}" for index, bounds in text.over.items())
        vectors = [", ".join("*" if v is None else str(v) for v in each.vector) for each in nest.dependences]
        vectors = ", ".join(f"({vector})" for vector in dict.fromkeys(vectors)) or "none"
        copies = f"; reads a copy of {', '.join(sorted(text.before.values()))}" if text.before else ""
        yield f"    line {text.lines[0]}: {over}; dependences {vectors}{copies}"
