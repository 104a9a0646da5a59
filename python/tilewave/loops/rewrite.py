"""Finds the loops of a function that are compiled, and puts calls in their places; all else stays Python."""

import ast
import contextlib
import copy
import itertools
import types
from dataclasses import dataclass, field

import numpy as np

from tilewave.errors import ConfigError
from tilewave.loops.accumulated import accumulated
from tilewave.loops.called import Called
from tilewave.loops.endings import without_returns
from tilewave.loops.liveness import names_read, needs
from tilewave.loops.plain import plain_loop, without_extents
from tilewave.loops.swaps import swap_of
from tilewave.nest.helpers import without_docstring
from tilewave.nest.names import Scope
from tilewave.nest.parse import compiled, parse
from tilewave.nest.region import Region, is_range
from tilewave.nest.walks import elements_in, nodes_in

#: The free variable under which the rewritten function finds its loops; no name that programs use.
LOOPS = "__tilewave_loops__"
FOUND = "__tilewave_found__"


@dataclass
class Found:
    """One loop of a function that is compiled, or why it cannot be.

    Attributes
    ----------
    node : ast.For or ast.While
    region : Region or None
    refusal : ConfigError or None
        It is raised where the names that the loop subscripts are arrays.
    arrays : tuple of str
        The names that it subscripts.
    scope : Scope
    live : set of str
        Names that are needed behind the loop.
    inner : list of int
        The numbers of the loops within it that are compiled where it stays Python.
    swap : Swap or None
        How arrays change names at the end of each turn, which the region is without.
    extents : dict
        By name, the text of an extent of an array of which the loop has no elements.
    over : dict
        What must be an array, not a list, with its numbers of dimensions and of columns (None: any); else the loop
        stays Python.
    """

    node: ast.stmt
    region: object
    refusal: object
    arrays: tuple
    scope: Scope
    live: set
    inner: list
    swap: object = None
    extents: dict = field(default_factory=dict)
    over: dict = field(default_factory=dict)


class Finder:
    """Finds the loops of a function, outermost first.

    Parameters
    ----------
    source : Source
    function : function

    Attributes
    ----------
    found : list of Found
    body : list of ast.stmt
        The statements of the function, with those of functions that loops call with arrays.
    python : list of (ast.For or ast.While, str)
        Loops that stay as they are, and why.
    """

    def __init__(self, source, function):
        self.source, self.function, self.scope = source, function, Scope(function)
        code = function.__code__
        self.local_names = {*code.co_varnames, *code.co_cellvars}
        called = Called(function, self.local_names)
        self.body = called.statements([copy.deepcopy(each) for each in without_docstring(source.tree.body)])
        self.found, self.python, self.always, self._extents = [], [], {*code.co_cellvars}, set()

    def rewritten(self, statements, live=frozenset()):
        """Statements with calls in place of loops that are compiled; `live` are names that are needed behind them."""
        new = []
        for k, statement in enumerate(statements):
            read, assigned = needs(statements[k + 1 :])
            new += self._statement(statement, self.always | read | (live - assigned))
        return new

    def _statement(self, node, live):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [node]
        if isinstance(node, ast.For | ast.While):
            return self._loop(node, live)
        new = copy.copy(node)
        plain = isinstance(node, ast.If | ast.With)
        live = live if plain else live | names_read(node)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside = getattr(node, part, None)
            if isinstance(inside, list):
                setattr(new, part, self.rewritten(inside, live))
        return [new]

    def _loop(self, node, live):
        arrays = tuple(sorted(self._subscripted(node)))
        if not arrays:
            self.python.append((node, "it has no elements at subscripts that change"))
            return self._python(node, live)
        if statements := self._named(node) or without_returns(node, self._free("left_by")):
            return self.rewritten(statements, live)
        before = len(self.found)
        refusal, extents, over = None, {}, {}
        try:
            region, extents, over = self._region(node, live)
        except ConfigError as error:
            region, refusal = None, error
        del self.found[before:]
        new = self._python(node, live)
        inner = [before + k for k, each in enumerate(self.found[before:]) if each.region]
        swap = swap_of(node) if region is None and inner and isinstance(node, ast.For) and not node.orelse else None
        if swap:
            plain = copy.copy(node)
            plain.body = swap.body
            with contextlib.suppress(ConfigError):
                region, extents, over = self._region(plain, live)
                swap = swap if {*swap.after.values()} <= {*region.tables} else None
            region = region if swap else None
        if region is None:
            if inner or not self._stores(node) or (isinstance(node, ast.While) and len(self.found) > before):
                self.python.append((node, str(refusal).partition(": ")[2].partition("; allowed")[0]))
                return new
            del self.found[before:]
        self.found.append(Found(node, region, refusal, arrays, self.scope, live, inner, swap, extents, over))
        return self._call(self.found[-1], new)

    def _named(self, node):
        """A loop over an array that has a name, in place of one that is made for it; None for another loop."""
        if not isinstance(node, ast.For):
            return None
        new, first = copy.copy(node), []
        within = isinstance(node.iter, ast.Call) and self.scope.resolve(node.iter.func) in (enumerate, zip)
        parts = node.iter.args if within else [node.iter]
        for k, part in enumerate(parts):
            if isinstance(part, ast.Call) and self.scope.resolve(part.func) in (np.arange, np.linspace):
                name = self._free("values")
                first.append(ast.Assign([ast.Name(name, ast.Store())], part))
                parts = [*parts[:k], ast.Name(name, ast.Load()), *parts[k + 1 :]]
        if not first:
            return None
        new.iter = ast.Call(node.iter.func, parts, node.iter.keywords) if within else parts[0]
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in (*first, new)]

    def _free(self, name):
        """A local name that the function does not have."""
        free = next(each for k in itertools.count() if (each := f"{name}_{k}") not in self.local_names)
        self.local_names.add(free)
        return free

    def _region(self, node, live):
        plain, over = plain_loop(node, self.scope, self.local_names, live)
        plain, extents = without_extents(plain, node, self.local_names, self._extents)
        node = accumulated(plain, self.scope, self.local_names, live)
        return Region(self.source, self.function, [node], self.local_names), extents, over

    def _python(self, node, live):
        new, again = copy.copy(node), live | needs([node])[0]
        new.body, new.orelse = self.rewritten(node.body, again), self.rewritten(node.orelse, live)
        return [new]

    def _subscripted(self, node):
        """The names, perhaps dotted ones, whose elements a loop reads or writes at subscripts that are no constants, or
        goes over.
        """
        loops = [each.iter for each in nodes_in(node) if isinstance(each, ast.For)]
        return {each.id for each in loops if isinstance(each, ast.Name)} | {
            ast.unparse(each.value)
            for each in elements_in(node)
            if isinstance(each.value, ast.Name | ast.Attribute) and not _is_fixed(each.slice)
        }

    def _stores(self, node):
        """Return whether a loop over a range goes over elements that it assigns."""
        ranged = isinstance(node, ast.While) or is_range(self.scope, node.iter)
        stores = (each for each in elements_in(node) if isinstance(each.ctx, ast.Store))
        return ranged and any(not _is_fixed(each.slice) for each in stores)

    def _call(self, found, otherwise):
        """``if loops[0].takes(locals()): results = loops[0].run(locals()); ...``, else Python's loop, as it stands
        where the answer is None.
        """
        names = [*found.region.assigned["all"]] if found.region else []
        names += [name for name in (found.swap.after if found.swap else ()) if name not in names]
        number = len(self.found) - 1
        # Without the extents Python's loop raises what it raises.
        text = "".join(f"try: {name} = {extent}\nexcept Exception: pass\n" for name, extent in found.extents.items())
        text += f"{FOUND} = {LOOPS}[{number}].takes(locals())\n"
        text += f"if {FOUND}:\n    {FOUND} = {LOOPS}[{number}].run(locals())\n"
        text += "".join(f"    if {name!r} in {FOUND}: {name} = {FOUND}[{name!r}]\n" for name in names)
        text += f"elif {FOUND} is None:\n    pass\n"
        *first, call = parse(text).body
        for each in nodes_in(*first, call):
            if hasattr(each, "lineno"):
                each.lineno = each.end_lineno = found.node.lineno
        call.orelse[0].body, call.orelse[0].orelse = [found.node], otherwise
        return [*first, call]


def _is_fixed(node):
    """Return whether a subscript has constants and slices only."""
    return not any(isinstance(each, ast.Name | ast.Attribute | ast.Subscript) for each in ast.walk(node))


def rewritten_function(source, function, statements, runners):
    """A function with other statements, which finds its loops among its free variables.

    Parameters
    ----------
    source : Source
    function : function
        Whose globals, closure, defaults and name it has.
    statements : list of ast.stmt
    runners : list
    """
    new = copy.copy(source.tree)
    new.body, new.decorator_list, new.returns = statements, [], None
    new.name = f"{LOOPS}_function"  # its own name is that of the function which it may call
    new.args = _without_defaults(new.args)
    free = {**dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))}
    free[LOOPS] = types.CellType(runners)
    outer = parse(f"def outer({', '.join(free)}):\n    return {', '.join(free)}").body[0]
    outer.body = [new, parse(f"({', '.join(free)},)").body[0]]
    module = ast.fix_missing_locations(ast.Module([outer], []))
    code = compiled(module, source.file, 0)
    (code,) = (each for each in code.co_consts if isinstance(each, types.CodeType))
    code = next(each for each in code.co_consts if isinstance(each, types.CodeType) and each.co_name == new.name)
    closure = tuple(free[name] for name in code.co_freevars)
    code = code.replace(co_name=function.__name__)
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    return made


def _without_defaults(args):
    """Parameters without the expressions of defaults and annotations: the function's values stand for them."""
    new = copy.copy(args)

    def plain(argument):
        return ast.copy_location(ast.arg(argument.arg), argument)

    for part in ("posonlyargs", "args", "kwonlyargs"):
        setattr(new, part, [plain(each) for each in getattr(args, part)])
    for part in ("vararg", "kwarg"):
        if getattr(args, part):
            setattr(new, part, plain(getattr(args, part)))
    new.defaults, new.kw_defaults = [], [None] * len(args.kwonlyargs)
    return new
