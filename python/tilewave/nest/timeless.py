"""Tables without a dimension for time, in runs with time steps: ``V[t+1, q]`` is ``V[q]`` then, as for other arrays."""

import ast
import copy

from tilewave.errors import ConfigError
from tilewave.nest.changed import ChangedNest, remembered
from tilewave.nest.dependences import MOST_HISTORY
from tilewave.nest.inner_loops import extent_of
from tilewave.nest.nest import Nest
from tilewave.nest.subscript import linear_form, subscripts_of


def timeless_reads(nest, loops, arrays):
    """Return (name, offset in time, node) of the reads of tables that have no dimension for time.

    Parameters
    ----------
    nest : Nest
    loops : Loops
    arrays : dict
        What was given, by name; also what is no array.
    """
    if not isinstance(nest, Nest) or loops.steps is None or not nest.tables:
        return []
    time, reads = nest.indices[0], {}
    back = isinstance(loops.reverse, tuple | list) and time in loops.reverse
    known = range(-1, MOST_HISTORY + 1) if back else range(-MOST_HISTORY, 2)
    for node in nest.source.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in nest.tables:
            reads.setdefault(node.value.id, []).append(node)
    found = []
    for name, nodes in reads.items():
        offsets = [_offset(subscripts_of(node)[0], time) for node in nodes]
        lacks = 1 <= getattr(arrays.get(name), "ndim", 0) == nest.table_rank(name) - 1
        if lacks and all(offset in known for offset in offsets):
            found += [(name, offset, node) for offset, node in zip(offsets, nodes, strict=True)]
    return found


def read_earlier(nest, loops, arrays):
    """Return the names of such tables that are read at an earlier time step, in the order of the body."""
    back = nest.indices[0] in loops.reverse
    reads = timeless_reads(nest, loops, arrays)
    return list(dict.fromkeys(name for name, offset, _ in reads if (offset > 0 if back else offset < 0)))


def has_one_value(nest, name):
    """What is said of reading an earlier time step of a field with a history that nobody writes."""
    return (
        f"nest {nest.name!r} reads an earlier time step of {name!r}, which it does not write, so that {name!r} has one "
        f"value for all time steps, and {name!r} has a history; allowed: a field that has these values now, "
        f"before.local[...] = {name}.buffer(-1).local, or a nest that writes {name!r}, too"
    )


def _offset(part, time):
    """Return the constant of ``time + constant``; None for another subscript."""
    form = linear_form(part)
    return form[1] if form and {name: f for name, f in form[0].items() if f} == {time: 1} else None


def without_time(nest, loops, arrays, written=frozenset()):
    """Return the nest with such tables subscripted without time; the same where there are none.

    `written`: arrays that other nests of the time step write.

    Raises
    ------
    ConfigError
        Where the body computes with the length of such a table in time, or reads an earlier time step of a field that
        keeps some and that nobody writes.
    """
    names = {name for name, *_ in timeless_reads(nest, loops, arrays)}
    if not names:
        return nest
    for name in read_earlier(nest, loops, arrays):
        if name not in written and getattr(arrays[name], "history", 0):
            raise ConfigError(has_one_value(nest, name))
    key = "without time", *sorted(names)
    return remembered(
        nest, key, lambda: ChangedNest(nest, _WithoutTime(nest, names).visit(copy.deepcopy(nest.source.tree)))
    )


class _WithoutTime(ast.NodeTransformer):
    """Leaves out the first subscript of tables, and counts their dimensions without it."""

    def __init__(self, nest, names):
        self._nest, self._names = nest, names

    def visit_Subscript(self, node):
        if extent := extent_of(node):
            return self._extent(node, *extent)
        node = self.generic_visit(node)
        if node.value.id in self._names:
            rest = node.slice.elts[1:]
            node.slice = ast.copy_location(ast.Tuple(rest, ast.Load()), node.slice) if len(rest) > 1 else rest[0]
        return node

    def visit_Call(self, node):
        extent = extent_of(node)
        return self._extent(node, *extent) if extent else self.generic_visit(node)

    def _extent(self, node, array, dimension):
        if array not in self._names:
            return node
        if dimension == 0:
            raise ConfigError(
                f"{self._nest.source.file}:{self._nest.source.line(node)}: `{ast.unparse(node)}` is the length in time "
                f"of {array!r}, which was given without a dimension for time; allowed: a scalar with the number"
            )
        node.slice.value = dimension - 1
        return node
