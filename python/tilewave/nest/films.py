"""Films: rows for several time steps, ``film[t // 10, i] = u[t, i]``, each of which shows the last step that writes it.

Nobody sees what other steps write. Without it the nest, or those before it, take several time steps in one block.
"""

import ast
import copy
from typing import NamedTuple

import numpy as np

from tilewave.errors import ConfigError
from tilewave.nest.changed import ChangedNest, remembered
from tilewave.nest.nest import Nest
from tilewave.nest.step_rows import is_of_time, of_time

#: What cannot fail, so that nobody misses it where it is left out.
SAFE = (
    ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.BoolOp, ast.Subscript, ast.Tuple, ast.Name, ast.Constant,
    ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip
UNSAFE = ast.FloorDiv | ast.Mod | ast.Pow


class Film(NamedTuple):
    """The rows that a nest writes, all of them in the same time steps, by values that nothing else depends on.

    Attributes
    ----------
    test : ast.expr or None
        The condition on time under which it writes them; None: in each time step.
    rest : Nest or None
        What else it does; None: nothing.
    """

    test: ast.expr | None
    rest: Nest | None

    def written(self, nest, rows, times, scalars):
        """Whether each of some time steps has to write its row: the last of a row, or where the condition holds.

        Parameters
        ----------
        nest : Nest
        rows : list of numpy.ndarray
            Of each array the row of each step.
        times, scalars
            As of `of_time`.
        """
        if self.test is None:
            return np.any([np.diff(each, append=-1) != 0 for each in rows], axis=0)
        try:
            return np.broadcast_to(of_time(nest, self.test, times, scalars, "has a condition"), times.shape)
        except ConfigError:  # of a number that is no integer
            return np.ones(times.shape, bool)


def film_of(nest):
    """The `Film` that a nest with rows is; None where it is none."""
    return remembered(nest, "film", lambda: _film_of(nest)) if nest.rows else None


def _film_of(nest):
    tests, shows, kept = set(), [], []
    for number, each in enumerate(nest.source.tree.body):
        if not _rows_in(nest, each):
            kept.append(number)
            continue
        is_if = isinstance(each, ast.If) and not each.orelse
        if not all(_sets_row(nest, statement) for statement in (each.body if is_if else [each])):
            return None
        if is_if and not _is_test(nest, each.test):
            return None
        tests.add(ast.dump(each.test) if is_if else "")
        shows.append(each.test if is_if else None)
    if len(tests) != 1:
        return None
    if {*nest.written} != nest.rows.keys():
        rest = _with_statements(nest, kept)
        return rest and Film(shows[0], rest)
    body = nest.source.tree.body
    others = [body[number] for number in kept if not isinstance(body[number], ast.Expr)]  # its description
    if nest.updates or not all(isinstance(each, ast.Assign) and _is_safe(nest, each.value) for each in others):
        return None
    return Film(shows[0], None)


def _rows_in(nest, statement):
    return any(isinstance(node, ast.Name) and node.id in nest.rows for node in ast.walk(statement))


def _sets_row(nest, node):
    """Whether a statement sets elements of a row by values that cannot fail, of no row."""
    right = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript)
    return right and not _rows_in(nest, node.value) and _is_safe(nest, node.value)


def _is_safe(nest, value):
    nodes = [*ast.walk(value)]
    tables = any(isinstance(node, ast.Name) and node.id in nest.tables for node in nodes)
    return not tables and all(isinstance(node, SAFE) and not isinstance(node, UNSAFE) for node in nodes)


def _is_test(nest, test):
    """Whether a condition compares numbers that depend on time and scalars alone."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or isinstance(test.ops[0], ast.In | ast.NotIn):
        return False
    others = {each.arg for each in nest.source.tree.args.args} | nest.source.local_names
    parts = (test.left, *test.comparators)
    return all(is_of_time(part, others - {nest.indices[0]}) for part in parts)


def _with_statements(nest, kept):
    """The nest with these of its statements; None where that is no nest of the same loops."""
    tree = copy.deepcopy(nest.source.tree)
    tree.body = [tree.body[number] for number in kept]
    used = {node.id for each in tree.body for node in ast.walk(each) if isinstance(node, ast.Name)}
    tree.args.args = [each for each in tree.args.args if each.arg in used]
    try:
        rest = ChangedNest(nest, tree, rows={})
    except ConfigError:
        return None
    same = rest.indices == nest.indices and {*rest.written} == {*nest.written} - nest.rows.keys()
    return rest if same and rest.time is not None else None
