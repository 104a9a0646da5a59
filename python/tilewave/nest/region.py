"""Loops as they stand, with arrays whose elements they read and write in any way: what nests are cut out of."""

import ast
import copy

from tilewave.nest.captured import describe, found_by, has_changed, hash_of
from tilewave.nest.inner_loops import is_element
from tilewave.nest.names import Scope
from tilewave.nest.subscript import Parameters, subscripts_of
from tilewave.nest.syntax import BodyChecker
from tilewave.nest.walks import names_in, names_stored, nodes_in

ALLOWED = (
    "for i in range(...), while, if/elif/else, break, continue, assignments to names and array elements, assert, raise "
    "inside an if"
)


def is_range(scope, node):
    """Return whether a node is a call of range, or of a prange that means it."""
    if not isinstance(node, ast.Call) or node.keywords or not 1 <= len(node.args) <= 3:
        return False
    found = scope.resolve(node.func)
    return found is range or getattr(found, "__name__", "") == "prange"


class RegionChecker(BodyChecker):
    """Checks that loops with all that is in them can be compiled, in the order in which they stand.

    Parameters
    ----------
    source : Source
    scope : Scope
    parameters : Parameters
        All arrays are tables.
    local_names : set of str
        Of the whole function.
    strict : bool
    """

    def __init__(self, source, scope, parameters, local_names, strict):
        super().__init__(source, scope, parameters, strict)
        self._locals = local_names - {*parameters.arrays}

    def check(self):
        """Check all statements and return self."""
        self._block(self.source.tree.body, frozenset(), conditional=False)
        return self

    def _statement(self, node, assigned, conditional):
        if isinstance(node, ast.For):
            self._for(node)
        elif isinstance(node, ast.While):
            self._expression(node.test, assigned)
        elif isinstance(node, ast.Break | ast.Continue):
            return assigned
        else:
            return super()._statement(node, assigned, conditional)
        if node.orelse:
            flag = "a flag in its place: done = 1 before break, and if not done: ... behind the loop"
            raise self.refuse(node.orelse[0], "else of a loop", flag)
        self._block(node.body, assigned, conditional)
        return assigned

    def _target(self, node, assigned):
        if isinstance(node, ast.Name) and node.id not in self._locals | {*self.parameters.arrays}:
            raise self.refuse(node, f"assigning to {node.id!r}, which is global or nonlocal,", "a local name")
        return super()._target(node, assigned)

    def _for(self, node):
        if not is_range(self.scope, node.iter) or self._is_of_body(ast.unparse(node.iter.func)):
            raise self.refuse(node.iter, "a loop over this", "for i in range(...)")
        self.outside.setdefault(ast.unparse(node.iter.func), node.iter.func)
        for bound in node.iter.args:
            self._expression(bound, frozenset())
        if not isinstance(node.target, ast.Name):
            raise self.refuse(node.target, "this target of a loop", "for i in range(...)")
        self._target(node.target, frozenset())

    def _store(self, node):
        self._load(node, frozenset())
        return "element", node.value.id

    def _load(self, node, assigned):
        for part in subscripts_of(node):
            if isinstance(part, ast.Slice):
                raise self.refuse(node, "a slice inside a loop over elements", "a for loop over its elements")
            self._expression(part, assigned)

    def _name(self, node, assigned):
        if node.id in self.parameters.arrays:
            raise self.refuse(node, f"array {node.id!r} without a subscript inside loops", "its elements")
        if node.id not in self._locals | self.source.inner_names:
            self._outer_name(node)


class Region:
    """Statements of a function that are compiled together, like a nest to the translation of its body.

    Parameters
    ----------
    source : Source
        Of the function.
    function : function
    statements : list of ast.stmt
    local_names : set of str
        Of the function.

    Attributes
    ----------
    tables : tuple of str
        The arrays.
    written_tables : tuple of str
    reads : set of str
        The local names that statements read.
    placing : set of str
        The names in subscripts, in bounds of loops, and in comparisons of loop indices.
    fixed : dict
        Quotients, remainders and products in subscripts and in bounds, by their text.
    loops : list of ast.For or ast.While
        All of them, outer ones first.
    assigned : dict
        From each loop, and from "all", to the names that statements in it assign.

    Raises
    ------
    ConfigError
        Naming file, line and column of what cannot be compiled.
    """

    values, updates = (), {}

    def __init__(self, source, function, statements, local_names):
        tree = copy.copy(source.tree)
        tree.body = statements
        self.source, self.function = source.with_tree(tree), function
        self.name, self.line = function.__name__, statements[0].lineno
        elements = [node for node in self.source.nodes if is_element(node)]
        ranks = {}
        for node in elements:
            self._note(node, ranks, local_names)
        self.tables = tuple(ranks)
        self.parameters = Parameters(self.tables, (), (), self.tables, {}, ranks, {})
        stored = {node.value.id for node in elements if isinstance(node.ctx, ast.Store)}
        self.written_tables = tuple(name for name in ranks if name in stored)
        self.scope, self.local_names = Scope(function), local_names
        names = [node for node in self.source.nodes if isinstance(node, ast.Name) and node.id in local_names]
        names += [node.target for node in self.source.nodes if _is_augmented(node)]
        self.reads = {node.id for node in names if not isinstance(node.ctx, ast.Store)} - {*ranks}
        self.reads |= {node.target.id for node in self.source.nodes if _is_augmented(node)}
        slices = [node.slice for node in elements]
        self.placing = names_in(*slices)
        self.loops = [node for node in self.source.nodes if isinstance(node, ast.For | ast.While)]
        ranges = [node.iter for node in self.loops if isinstance(node, ast.For) and isinstance(node.iter, ast.Call)]
        bounds = [part for node in ranges for part in node.args]
        targets = {node.target.id for node in self.loops if isinstance(getattr(node, "target", None), ast.Name)}
        compared = [node for node in self.source.nodes if isinstance(node, ast.Compare)]
        bounds += [node for node in compared if targets & names_in(node)]
        self.placing |= names_in(*bounds)
        self.fixed = {}
        for node in nodes_in(*bounds, *slices):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Mult):
                self.fixed[ast.unparse(node)] = node
        self.assigned = {node: _stored(node, local_names) for node in self.loops}
        self.assigned["all"] = sorted({*(name for each in statements for name in _stored(each, local_names))})
        self._checked = RegionChecker(self.source, self.scope, self.parameters, local_names, strict=False).check()
        self._watched, self._strict, self._signature = None, False, None

    def _note(self, node, ranks, local_names):
        if not isinstance(node.value, ast.Name):
            allowed = "A[i, j] with an array A; before the loops, A = self.A gives an attribute a name"
            raise self.source.error(node, "only a name can be subscripted inside loops", allowed)
        name, rank = node.value.id, len(subscripts_of(node))
        if ranks.setdefault(name, rank) != rank:
            raise self.source.error(
                node,
                f"array {name!r} has {rank} subscripts here and {ranks[name]} before",
                "the same number of subscripts in every access of an array, A[i, j] for A[i][j]",
            )

    def outside(self):
        """The checker, with the constants as they are now."""
        if not self._strict or has_changed(self._watched):
            args = self.source, self.scope, self.parameters, self.local_names
            self._checked = RegionChecker(*args, strict=True).check()
            self._watched, self._strict, self._signature = found_by(self._checked), True, None
        return self._checked

    def table_rank(self, table):
        """Return the number of subscripts of an array."""
        return self.parameters.ranks[table]

    def captured(self):
        """Return what kernels are given of the constants when they run: nothing."""
        return _NOTHING

    def place_of(self, node):
        """No element is a place of a point."""
        raise AssertionError("elements are loaded where they are read")

    def signature(self):
        """Hash of the statements and of all that they use from outside."""
        body = self.outside()
        if self._signature is None:
            lines = [node.lineno - self.line for node in self.source.nodes if hasattr(node, "lineno")]
            text = [*map(ast.dump, self.source.tree.body), str(lines), self.source.file, str(self.line)]
            text += [f"{key}={describe(value)}" for key, value in sorted(body.constants.items())]
            self._signature = hash_of(body, text)
        return self._signature


class _Nothing:
    nodes, values, compiled = {}, {}, frozenset()


_NOTHING = _Nothing()


def _is_augmented(node):
    return isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)


def _stored(node, local_names):
    """The local names that statements within a node assign, in alphabetical order."""
    return sorted(names_stored(node) & local_names)
