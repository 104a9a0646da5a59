"""Updates whose order does not matter: ``S[b] = max(S[b], h)`` of integers in loops over b, i and j, and the last value
of ``S[b] = h``.
"""

import ast
import dataclasses

from tilewave.nest.derived import DerivedNest
from tilewave.nest.types import int_range
from tilewave.nest.walks import nodes_in

#: Operations by the functions that give one of their arguments.
FUNCTIONS = {"max": "max", "min": "min", "np.maximum": "max", "np.minimum": "min"}

#: Operations by the operators, of which `-` has the old value on the left.
OPERATORS = {ast.Add: "add", ast.Sub: "add", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}


@dataclasses.dataclass(frozen=True)
class Update:
    """Hold what all points do to an array that lacks some loop indices.

    Attributes
    ----------
    array : str
    op : str
        "max", "min", "add", "and", "or" or "xor"; "last": what the last point stores stays.
    key : tuple
        `Place.key` of the one element of a point.
    lacking : tuple of str
        The loop indices that the array lacks.
    """

    array: str
    op: str
    key: tuple
    lacking: tuple

    @property
    def axes(self):
        """The loop index of each subscript."""
        return self.key[2]

    @property
    def offsets(self):
        """Return the offset of each subscript."""
        return self.key[1]


def nothing(op, dtype):
    """The value that changes nothing."""
    low, high = int_range(dtype) if dtype.kind in "iu" else (0, 0)
    every_bit = -1 if dtype.kind == "i" else high
    return {"max": low, "min": high, "and": every_bit}.get(op, 0)


def last_name(index):
    """The scalar with the last value of a loop index; no name of Python's."""
    return f"last {index}"


def updates_of(nest):
    """The arrays of a nest that its body only updates, each at one place and by one operation, and reads nowhere else.

    Parameters
    ----------
    nest : Nest

    Returns
    -------
    dict
        From names to `Update`. Whether the order matters is for the types of the values to say, too (`order_free`).
    """
    found = {}
    for name in nest.written:
        places = [place for place in nest.places if place.array == name]
        lacking = tuple(index for index in nest.indices if index not in places[0].axes)
        if len(places) > 1 or len(lacking) < 2 or places[0].phases:  # a loop that is lacking is a dependence vector
            continue
        strided = nest.within.get(places[0].key)
        is_last = {*strided} <= {*lacking} if strided else not places[0].read  # the last point writes it
        op = _operation(nest, name) or ("last" if is_last else None)
        if op:
            found[name] = Update(name, op, places[0].key, lacking)
    return found


def _operation(nest, array):
    """The one that all statements with an array apply to it; None where there are several, or others."""
    body = nest.source.tree.body
    named = sum(_names(statement, array) for statement in body)
    operations, updated = set(), 0
    for node in nodes_in(*body):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_element(node.targets[0], array):
            operations.add(_of_value(nest, node.value, array))
            updated += 2
        elif isinstance(node, ast.AugAssign) and _is_element(node.target, array):
            operations.add(OPERATORS.get(type(node.op)))
            updated += 1
    return operations.pop() if len(operations) == 1 and updated == named else None


def _of_value(nest, value, array):
    """The operation of a value that has the old one as an operand, where it is one of these."""
    if isinstance(value, ast.BinOp):
        here = _is_element(value.left, array) or (_is_element(value.right, array) and not isinstance(value.op, ast.Sub))
        return OPERATORS.get(type(value.op)) if here else None
    if isinstance(value, ast.Call) and not value.keywords and any(_is_element(each, array) for each in value.args):
        function = nest.scope.function(value.func)
        return FUNCTIONS.get(function[0]) if function else None
    return None


def _is_element(node, array):
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == array


def _names(statement, array):
    return sum(isinstance(node, ast.Name) and node.id == array for node in ast.walk(statement))


class OrderFreeNest(DerivedNest):
    """A nest whose points update some arrays in any order: tables to its kernel, which nobody else looks at.

    Parameters
    ----------
    nest : Nest
    updates : dict
        Those of `updates_of` that are taken.

    Attributes
    ----------
    types : dict
        From the updated arrays to a set of the types that their values may have, once the body was translated.
    """

    def __init__(self, nest, updates):
        super().__init__(nest)
        self.updates = updates
        self.types = {name: set() for name in updates}
        self.places = tuple(place for place in nest.places if place.array not in updates)
        self.views = tuple(view for view in nest.views if view.array not in updates)
        self.written = tuple(name for name in nest.written if name not in updates)
        self.dependences = tuple(each for each in nest.dependences if each.array not in updates)
        self.axes = {name: axes for name, axes in nest.axes.items() if name not in updates}
        self.tables = (*nest.tables, *updates)
        self.written_tables = tuple(updates)
        self.numbers = nest.numbers | {axis for update in updates.values() for axis in update.axes}
        #: The last value of loop indices, where the last value of an array is wanted.
        self.lasts = {index for update in updates.values() if update.op == "last" for index in update.lacking}
        self.numbers |= self.lasts
        self.scalars = nest.scalars | {last_name(index): 0 for index in sorted(self.lasts)}

    def table_rank(self, table):
        """Return the number of subscripts of an updated array."""
        return len(self.updates[table].axes) if table in self.updates else self._nest.table_rank(table)

    def _difference(self):
        return f"order free {sorted(self.updates)}"
