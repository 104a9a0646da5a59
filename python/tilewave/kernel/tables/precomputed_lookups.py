"""Lookups whose subscripts can be computed without the body, before its points."""

import ast

from tilewave.kernel.emit.statements import Body
from tilewave.kernel.types.values import Typed, Value
from tilewave.nest.inner_loops import is_element
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.types import scalar
from tilewave.nest.walks import elements_in, is_stored, nodes_in


class PrecomputedLookups:
    """All lookups of a body, where none depends on what the body writes or looks up.

    Subscripts may be made of loop indices, scalars, constants, elements of arrays that are only read, and locals that
    are assigned once and on every path, of the same.

    Attributes
    ----------
    lookups : dict
        From the text of a lookup to its node. The same text is the same element.
    """

    def __init__(self, nest, lookups, assignments):
        self.nest, self.lookups, self.assignments = nest, lookups, assignments
        parts = [
            *(assignment.value for assignment in assignments),
            *(part for node in lookups.values() for part in subscripts_of(node)),
        ]
        self.places = {nest.place_of(node) for node in elements_in(*parts)}

    @classmethod
    def of(cls, nest):
        """None where there is no lookup, or one whose subscripts cannot be computed ahead."""
        statements = nest.source.tree.body
        lookups = {ast.unparse(node): node for node in elements_in(*statements) if node.value.id in nest.tables}
        stored = [node.id for node in nodes_in(*statements) if is_stored(node)]
        once = {}
        for statement in statements:
            once |= {name: statement for name in _names(_target(statement)) if stored.count(name) == 1}
        needed = set()

        def known_ahead(part):
            for node in ast.walk(part):
                if is_element(node) and (node.value.id in nest.tables or node.value.id in nest.written):
                    return False
                if isinstance(node, ast.Name) and node.id in stored:
                    if node.id not in once or not known_ahead(once[node.id].value):
                        return False
                    needed.add(node.id)
            return True

        if not lookups or not all(known_ahead(part) for node in lookups.values() for part in subscripts_of(node)):
            return None
        assignments = [statement for statement in statements if any(once[name] is statement for name in needed)]
        return cls(nest, lookups, assignments)

    def subscripts(self, frame):
        """The subscripts of each lookup in the frame's point, by its text."""
        reads = {}
        for place in frame.nest.places:
            if place.key in self.places:
                reads[place.key] = Value(
                    [Typed(scalar(frame.dtypes[place.array]), frame.marked(frame.load(place.key)))]
                )
        body = Body(frame.e, self.nest, frame.constants, frame.point_names(), reads, {}, None)
        return body.values_of(self.assignments, {text: subscripts_of(node) for text, node in self.lookups.items()})

    def is_plain(self, frame):
        """Return whether the subscripts are integers of one type each, and none calls or raises; tried in another
        frame."""
        frame.e.leave = lambda site: frame.build_at.unreachable()
        frame.open()
        before = frame.e.calls, len(frame.e.sites)
        values = [value for values in self.subscripts(frame).values() for value in values]
        plain = all(value.single and value.only.type.is_int for value in values)
        return plain and before == (frame.e.calls, len(frame.e.sites))


def _target(statement):
    """Return what a statement assigns, None where it is not one assignment."""
    if isinstance(statement, ast.AnnAssign) and statement.value:
        return statement.target
    return statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None


def _names(target):
    if isinstance(target, ast.Tuple | ast.List):
        return [name for part in target.elts for name in _names(part)]
    return [target.id] if isinstance(target, ast.Name) else []
