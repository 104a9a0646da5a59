"""Places that no point of a nest writes, since a condition on the loop indices leaves them out: red and black points.

``if (i + j) % 2 == colour:`` around all assignments to u means that points of one colour write, and read neighbours of
the other: no point of a row depends on another one.
"""

import ast
from dataclasses import dataclass

from tilewave.nest.affine import NotAffine, affine_form
from tilewave.nest.inner_loops import is_element
from tilewave.nest.subscript import place_of
from tilewave.nest.walks import names_in

#: What may stand outside the conditions where a value that is not needed is read there: nothing that raises.
HARMLESS = (
    *(ast.Name, ast.Constant, ast.Subscript, ast.Tuple, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.boolop, ast.IfExp),
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Pass),
)


@dataclass(frozen=True)
class Residue:
    """``factors`` · indices is ``text`` + ``rest``, but for multiples of ``modulus``; the text names no number that
    differs from point to point.
    """

    factors: tuple[int, ...]
    modulus: int
    text: str
    rest: int


def never_written(nest):
    """The keys of the places of written arrays that are read and that no point of the nest ever writes."""
    found = _Conditions(nest)
    if not found.any:
        return frozenset()
    found.block(nest.source.tree.body, ())
    for expression in (each for value in nest.values for each in value.expressions):
        found.nodes(expression.node, ())
    return frozenset(place.key for place in nest.places if place.array in nest.written and found.spares(place))


class _Conditions:
    """The residues that hold where places are read and written."""

    def __init__(self, nest):
        self.nest = nest
        self.reads, self.stores = {}, {}  # by place: a set of residues for each node
        self.outside = []  # nodes to which no residue applies
        self.varying = {*nest.source.local_names, *nest.indices, *nest.arrays}
        self.any = any(isinstance(node, ast.If) and self._residues(node.test) for node in nest.source.nodes)

    def spares(self, place):
        writers = [other for other in self.nest.places if other.array == place.array and other.written]
        reads = self.reads.get(place.key, [])
        if place.written or place.whole or len(writers) != 1 or writers[0].phases or place.axes != writers[0].axes:
            return False
        apart = dict(zip(place.axes, map(int.__sub__, place.offsets, writers[0].offsets), strict=True))
        return all(
            any(self._differ(read, store, apart) for read in residues for store in written)
            for residues in (self._with_all_stores(each) for each in reads)
            for written in self.stores[writers[0].key]
        )

    def _with_all_stores(self, residues):
        """Where a value is read outside the conditions of all assignments, it is needed only where these hold."""
        if residues or self.nest.values or not all(isinstance(node, HARMLESS) for node in self.outside):
            return residues
        return frozenset.intersection(*(each for found in self.stores.values() for each in found))

    def _differ(self, read, store, apart):
        """Return whether a point that reads under one residue reads what no point under the other writes."""
        if (read.factors, read.modulus, read.text) != (store.factors, store.modulus, store.text):
            return False
        moved = sum(f * apart.get(name, 0) for f, name in zip(read.factors, self.nest.indices, strict=True))
        lacking = any(f for f, name in zip(read.factors, self.nest.indices, strict=True) if name not in apart)
        return not lacking and (read.rest + moved - store.rest) % read.modulus != 0

    # Statements, with the residues that hold there.

    def block(self, statements, residues):
        for statement in statements:
            if isinstance(statement, ast.If):
                self.nodes(statement.test, residues)
                self.block(statement.body, (*residues, *self._residues(statement.test)))
                self.block(statement.orelse, (*residues, *self._residues(statement.test, holds=False)))
                if not residues:
                    self.outside.append(statement)
            else:
                self.nodes(statement, residues)

    def nodes(self, statement, residues):
        for node in ast.walk(statement):
            if not residues:
                self.outside.append(node)
            if not is_element(node) or node.value.id in self.nest.tables:
                continue
            key = place_of(self.nest.source, node)
            if isinstance(node.ctx, ast.Store):
                self.stores.setdefault(key, []).append(frozenset(residues))
            else:
                self.reads.setdefault(key, []).append(frozenset(residues))

    # Conditions.

    def _residues(self, test, holds=True):
        """The residues that follow from a condition, or from its contrary."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._residues(test.operand, not holds)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == holds:
            return tuple(found for value in test.values for found in self._residues(value, holds))
        if not isinstance(test, ast.Compare):
            found = self._residue(test, ast.Constant(0), not holds)
        elif len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.NotEq):
            equal = isinstance(test.ops[0], ast.Eq) == holds
            left, right = test.left, test.comparators[0]
            found = self._residue(left, right, equal) or self._residue(right, left, equal)
        else:
            found = None
        return (found,) if found else ()

    def _residue(self, remainder, value, equal):
        """Return the residue of ``remainder == value``, or of ``!=`` where that leaves one other remainder."""
        modulus, form = self._remainder(remainder)
        if modulus is None or any(isinstance(node, ast.Call | ast.Subscript) for node in ast.walk(value)):
            return None
        if names_in(value) & self.varying:
            return None
        known = isinstance(value, ast.Constant) and type(value.value) is int and 0 <= value.value < modulus
        if not equal and not (known and modulus == 2):
            return None
        factors = tuple(form.terms.get(name, 0) % modulus for name in self.nest.indices)
        constant = (value.value if equal else 1 - value.value) if known else 0
        return Residue(factors, modulus, "" if known else ast.unparse(value), (constant - form.constant) % modulus)

    def _remainder(self, node):
        """(modulus, affine form of the indices) of ``form % modulus`` or ``form & (modulus - 1)``; None for others."""
        if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and type(node.right.value) is int:
            number = node.right.value
            modulus = number if isinstance(node.op, ast.Mod) else number + 1 if isinstance(node.op, ast.BitAnd) else 0
            if modulus >= 2 and (isinstance(node.op, ast.Mod) or modulus & (modulus - 1) == 0):
                try:
                    return modulus, affine_form(node.left, self.nest.indices)
                except NotAffine:
                    pass
        return None, None
