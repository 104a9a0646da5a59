"""Translates the statements and expressions of a body for one point of a row."""

import ast
from dataclasses import dataclass, field, replace

from tilewave.errors import ConfigError
from tilewave.kernel.emit.functions import call
from tilewave.kernel.emit.inner_loop import InnerLoop
from tilewave.kernel.emit.reduced_values import TRUE, joined, store_values, watched_names
from tilewave.kernel.types import arithmetic
from tilewave.kernel.types.casts import assign, truth
from tilewave.kernel.types.values import I8, Typed, Value, constant
from tilewave.nest.affine import NotAffine
from tilewave.nest.helpers import MOST_CALLS, helper_of
from tilewave.nest.inner_loops import extent_name, extent_of, is_inner, kind_of
from tilewave.nest.language import BINARY, COMPARISONS, UNARY
from tilewave.nest.names import Scope, number_in_text
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.types import ARRAY0, BOOL, COMPLEX, FLOAT, INT, Unsupported, scalar, type_of

SYMBOLS = BINARY | COMPARISONS | UNARY


@dataclass(frozen=True)
class State:
    """Hold what a path through the body knows: its locals, and the elements that the body writes.

    ``cells`` has their values by place. ``stored`` has the places that a statement of this or a merged path assigned,
    so that they have to be written back. ``watched`` has the value of some locals and places, and whether a statement
    of the path assigned it, also where other paths do not.
    """

    locals: dict
    cells: dict
    stored: frozenset = frozenset()
    watched: dict = field(default_factory=dict)


class Body:
    """One pass over a body.

    Parameters
    ----------
    emitter : Emitter
    nest : Nest
    constants : dict
        Captured numbers by their text.
    names : dict
        Values of the indices and scalars.
    reads : dict
        Values of the places that are only read.
    cells : dict
        The old values of the places that are written.
    lookup : callable
        Given the node of a table's lookup and the values of its subscripts, emits the load of an element.
    """

    def __init__(self, emitter, nest, constants, names, reads, cells, lookup):
        self.e, self._bools = emitter, emitter.bools
        self.source = nest.source
        self._updates = nest.updates
        self.tables = [table for table in nest.tables if table not in self._updates]
        self.constants = constants
        self.names = names
        self._given = {node: name for node, name in nest.captured().nodes.items() if name in names}
        self.reads = reads
        self.lookup = lookup
        self.scope = Scope(nest.function)
        self.state = State({}, cells)
        self._path = ""  # the names that lead to the function whose statements are translated
        self._ends = []  # of that function: (block, values) of each return
        self._calls = 0
        self._place_of = nest.place_of
        self._nest, self._watched = nest, watched_names(nest)
        self.look_up = None  # of terms that several points take together: gives the element of a lookup's node
        self.known = {}  # by the id of a loop inside the body: its value
        self.store = None  # given a place: stores what the path has assigned of it

    def translate(self):
        """Emit the body; ``state`` is then the path that falls off its end, None if none does."""
        self._block(self.source.tree.body)
        if self.state is not None and self._nest.values:
            store_values(self, self._nest)

    def values_of(self, assignments, expressions):
        """The values of lists of expressions, by name, after some of the body's assignments."""
        self._block(assignments)
        return {name: [self.expression(node) for node in nodes] for name, nodes in expressions.items()}

    # Statements.

    def _block(self, statements):
        for statement in statements:
            if self.state is None:
                return
            self.e.line = self.source.line(statement)
            try:
                self._statement(statement)
            except (ConfigError, NotAffine, Unsupported, MemoryError):
                raise
            except Exception as error:
                what = f"no translation was found, {type(error).__name__}: {error}, which is an error in Tilewave"
                raise self.source.error(statement, what, "a simpler statement, or several") from error

    def _statement(self, node):
        if isinstance(node, ast.Assign):
            values = self._values(node.value)
            for target in node.targets:
                self._assign(target, values)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, self._values(node.value))
        elif isinstance(node, ast.Return):
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            self._ends.append(([self.expression(part) for part in parts], self.e.builder.block))
            self.state = None
        elif isinstance(node, ast.AugAssign):
            self._augmented(node)
        elif isinstance(node, ast.If):
            self._if(node)
        elif isinstance(node, ast.Assert):
            self._assert(node)
        elif isinstance(node, ast.Raise):
            self._raise(node)

    def _values(self, node):
        """The value of an expression; of a tuple that is unpacked those of its parts, nested like it."""
        if isinstance(node, ast.Tuple | ast.List):
            return [self._values(part) for part in node.elts]
        helper = self._helper(node)
        if helper is not None and helper.count:
            return self._guarded(node, lambda: self._inlined(node, helper))
        return self.expression(node)

    def _helper(self, node):
        return helper_of(self.scope.resolve(node.func), self.scope) if isinstance(node, ast.Call) else None

    def _inlined(self, node, helper):
        """The values that a call returns, by the function's statements."""
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise Unsupported(f"a body with more than {MOST_CALLS} calls of functions")
        given = {
            name: self.expression(value) if isinstance(value, ast.expr) else _number(value)
            for name, value in helper.bind(self.source, node)
        }
        outer, line, build = (self.source, self.scope, self.names, self._path, self._ends), self.e.line, self.e.builder
        before = self.state
        path = f"{self._path}/{ast.unparse(node.func)}".lstrip("/")
        self.source, self.scope, self.names, self._path, self._ends = helper.source, helper.scope, {}, path, []
        self.state = replace(before, locals=given)
        self._block(helper.body)
        ends = self._ends
        (self.source, self.scope, self.names, self._path, self._ends), self.e.line, self.state = outer, line, before
        if not ends:  # no point comes out of it
            build.position_at_end(build.append_basic_block("never"))
            return [_number(0)] * max(1, helper.count)
        if len(ends) == 1:
            build.position_at_end(ends[0][1])
            return ends[0][0]
        end = build.append_basic_block("returned")
        for _, block in ends:
            build.position_at_end(block)
            build.branch(end)
        build.position_at_end(end)
        return [self.e.merge([(block, values[k]) for values, block in ends]) for k in range(max(1, helper.count))]

    def _assign(self, target, values):
        if not isinstance(target, ast.Tuple | ast.List):
            self._store(target, values)
            return
        for part, value in zip(target.elts, values, strict=True):
            self._assign(part, value)

    def _augmented(self, node):
        if isinstance(node.target, ast.Name):
            old = self.state.locals[node.target.id]
            if any(option.type.kind == ARRAY0 for option in old.options):
                raise self.source.error(
                    node,
                    "an augmented assignment to the result of np.where, which Python "
                    "changes in place, is not supported",
                    "x = x + ...",
                )
        else:
            old = self._read(node.target)
        symbol, value = SYMBOLS[type(node.op)], self.expression(node.value)
        self._store(node.target, self._guarded(node, lambda: arithmetic.binary(self.e, symbol, old, value)))

    def _store(self, target, value):
        if isinstance(target, ast.Name):
            known = {**self.state.locals, target.id: value}
            self.state = replace(self.state, locals=known)
            self._watch(target.id, value)
            return
        place = self._place_of(target)
        if place[0] in self._updates:
            self._nest.types[place[0]].update(option.type for option in value.options)
        kind = self.state.cells[place].type

        def element(typed):
            if place[0] in self._bools:
                return Value([Typed(kind, self.e.builder.zext(truth(self.e, typed), I8))])
            return Value([Typed(kind, assign(self.e, typed, kind.dtype))])

        stored = self._guarded(target, lambda: self.e.dispatch(element, value))
        self.state = replace(
            self.state, cells={**self.state.cells, place: stored.only}, stored=self.state.stored | {place}
        )
        self._watch(place, stored)

    def _watch(self, name, value):
        """Note what a path assigns of what is reduced."""
        if name in self._watched:
            self.state = replace(self.state, watched={**self.state.watched, name: (value, TRUE)})

    def _if(self, node):
        build = self.e.builder
        condition = arithmetic.is_true(self.e, self.expression(node.test))
        blocks = [build.append_basic_block(name) for name in ("if", "else")]
        build.cbranch(condition, *blocks)
        before, ends = self.state, []
        for block, statements in zip(blocks, (node.body, node.orelse), strict=True):
            build.position_at_end(block)
            self.state = before
            self._block(statements)
            if self.state is not None:
                ends.append((build.block, self.state))
        if not ends:
            self.state = None
            return
        end = build.append_basic_block("endif")
        for block, _ in ends:
            build.position_at_end(block)
            build.branch(end)
        build.position_at_end(end)
        self.state = self._joined(ends)

    def _joined(self, ends):
        """The state after several paths meet: locals that all of them have."""
        first = ends[0][1].locals
        shared = [name for name in first if all(name in state.locals for _, state in ends)]
        known = {name: self.e.merge([(block, state.locals[name]) for block, state in ends]) for name in shared}
        cells = {
            place: self.e.merge([(block, Value([state.cells[place]])) for block, state in ends]).only
            for place in ends[0][1].cells
        }
        return State(known, cells, frozenset().union(*(state.stored for _, state in ends)), joined(self.e, ends))

    def _assert(self, node):
        if not __debug__:
            return
        wrong = self.e.builder.not_(arithmetic.is_true(self.e, self.expression(node.test)))
        self.e.fail_if(wrong, "AssertionError", node.msg.value if node.msg else "")

    def _raise(self, node):
        called = isinstance(node.exc, ast.Call)
        name = self.scope.exception(node.exc.func if called else node.exc)
        message = node.exc.args[0].value if called and node.exc.args else ""
        self.e.leave(self.e.site(name, message))
        self.state = None

    # Expressions.

    def expression(self, node):
        """The value of an expression; what has no exact translation is refused with its place."""
        return self._guarded(node, lambda: self._expression(node))

    def _guarded(self, node, compute):
        try:
            return compute()
        except Unsupported as reason:
            raise self.source.error(node, f"not supported: {reason}") from None

    def _expression(self, node):
        if id(node) in self._given:
            return self.names[self._given[id(node)]]
        if isinstance(node, ast.Constant):
            return _number(node.value)
        if isinstance(node, ast.Attribute) and self._name_of(node) not in self.constants:  # of a complex number
            return call(self.e, f".{node.attr}", [self.expression(node.value)])
        if isinstance(node, ast.Name | ast.Attribute):
            return self._name(node)
        if extent := extent_of(node):
            return self.names[extent_name(*extent)]
        if id(node) in self.known:
            return self.known[id(node)]
        if is_inner(node):
            return InnerLoop(self, kind_of(self.scope, node.func), node.args[0]).value()
        if isinstance(node, ast.Subscript):
            return self._read(node)
        if isinstance(node, ast.BinOp):
            left, right = self.expression(node.left), self.expression(node.right)
            return arithmetic.binary(self.e, SYMBOLS[type(node.op)], left, right)
        if isinstance(node, ast.UnaryOp):
            operand = self.expression(node.operand)
            return arithmetic.unary(self.e, SYMBOLS[type(node.op)], operand)
        if isinstance(node, ast.Compare):
            return self._compare(self.expression(node.left), node.ops, node.comparators)
        if isinstance(node, ast.BoolOp):
            return self._and_or(isinstance(node.op, ast.And), node.values)
        if isinstance(node, ast.IfExp):
            condition = arithmetic.is_true(self.e, self.expression(node.test))
            return self.e.branch(condition, lambda: self.expression(node.body), lambda: self.expression(node.orelse))
        helper = self._helper(node)
        if helper is not None and self.scope.function(node.func) is None:
            return self._inlined(node, helper)[0]
        if (number := number_in_text(node, self.scope.resolve(node.func))) is not None:
            return _number(number)
        values = [self.expression(argument) for argument in node.args]
        return call(self.e, self.scope.function(node.func)[0], values)

    def _name(self, node):
        text = ast.unparse(node)
        if text in self.state.locals:
            return self.state.locals[text]
        if text in self.names:
            return self.names[text]
        return _number(self.constants[self._name_of(node)])

    def _name_of(self, node):
        """Return the name of a number from outside, in `constants`."""
        text = ast.unparse(node)
        return f"{self._path}:{text}" if self._path else text

    def _read(self, node):
        if node.value.id in self.tables or node in self._nest.parameters.wholes:
            if self.look_up:
                return self._element(node.value.id, self.look_up(node))
            along = self._nest.parameters.wholes.get(node)
            parts = enumerate(subscripts_of(node))
            subscripts = [self.expression(part) if along is None or d in along else None for d, part in parts]
            return self._element(node.value.id, self.lookup(node, subscripts))
        place = self._place_of(node)
        value = Value([self.state.cells[place]]) if place in self.state.cells else self.reads[place]
        return self._element(place[0], value)

    def _element(self, array, value):
        """An element as NumPy has it: kernels see those of bool arrays as bytes."""
        if array not in self._bools:
            return value
        return self.e.dispatch(lambda typed: Value([Typed(scalar(bool), truth(self.e, typed))]), value)

    def store_for(self, generator):
        """Store what this point has assigned of arrays that a loop inside the body then reads along a whole axis."""
        nodes = [node for node in ast.walk(generator) if node in self._nest.parameters.wholes]
        for key in sorted(self.state.stored, key=list(self.state.cells).index):
            if any(self._may_be(key, node) for node in nodes):
                self.store(key)

    def _may_be(self, key, node):
        """Return whether a read along a whole axis comes to a place."""
        (array, offsets, *_), along = self._place_of(node), self._nest.parameters.wholes[node]
        others = [pair for d, pair in enumerate(zip(key[1], offsets)) if d not in along]
        return key[0] == array and all(one == other for one, other in others)

    def _compare(self, left, operators, operands):
        """A chain of comparisons: stops at the first that is false."""
        right = self.expression(operands[0])
        first = arithmetic.binary(self.e, SYMBOLS[type(operators[0])], left, right)
        if len(operators) == 1:
            return first
        return self.e.branch(
            arithmetic.is_true(self.e, first), lambda: self._compare(right, operators[1:], operands[1:]), lambda: first
        )

    def _and_or(self, conjunction, nodes):
        """``and`` and ``or`` give one of their operands, and compute the rest only if needed."""
        first = self.expression(nodes[0])
        if len(nodes) == 1:
            return first

        def rest():
            return self._and_or(conjunction, nodes[1:])

        branches = (rest, lambda: first) if conjunction else (lambda: first, rest)
        return self.e.branch(arithmetic.is_true(self.e, first), *branches)


def _number(value):
    """A constant of the body."""
    kind = type_of(value)
    if kind in (BOOL, INT, FLOAT, COMPLEX):
        return Value([Typed(kind, const=value)])
    return Value([Typed(scalar(kind.dtype), constant(kind.dtype, value))])
