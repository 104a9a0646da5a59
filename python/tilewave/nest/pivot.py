"""Pivots: a loop k whose step reads row k and column k of what it writes, as Floyd and Warshall do."""

import ast


def pivot_of(source, indices, orders, accesses):
    """The outermost of three loops k, i, j where it is a pivot, else None; ``orders`` then begin with (i, j).

    It is one where all that is written is written at [i, j], and some of it is read at [i, k], [k, j] or [k, k], too;
    no offsets, no factors. A path through the body reads these before it writes the array: where j is k, [i, k] is the
    element that the point writes.

    Parameters
    ----------
    source : Source
    indices : list of str
        Outermost first.
    orders : dict
        From each array that is no table to the indices of its subscripts; changed where there is a pivot.
    accesses : dict
        From each subscript of an array that is written to its (indices, offsets, phases).
    """
    written = {node.value.id for node in accesses}
    if len(indices) != 3 or not written:
        return None
    k, i, j = indices
    point, pivots = (i, j), {(i, k), (k, j), (k, k)}
    if any(orders[name].keys() - pivots - {point} for name in written) or all(
        len(orders[name]) == 1 for name in written
    ):
        return None
    if any(any(offsets) or phases for _, offsets, phases in accesses.values()):
        return None
    if any(isinstance(node.ctx, ast.Store) and axes != point for node, (axes, *_) in accesses.items()):
        return None
    late = {node for node, (axes, *_) in accesses.items() if axes in pivots}
    _refuse_late_reads(source, source.tree.body, frozenset(), late)
    for name in written:
        orders[name] = {point: True, **orders[name]}
    return k


def _refuse_late_reads(source, statements, stored, late):
    """Refuse reads of pivots behind a statement that writes their array; returns what is written behind the last."""
    for statement in statements:
        if isinstance(statement, ast.If):
            _check(source, statement.test, stored, late)
            stored = _refuse_late_reads(source, statement.body, stored, late) | _refuse_late_reads(
                source, statement.orelse, stored, late
            )
            continue
        _check(source, statement, stored, late)
        stored = stored | {
            node.value.id
            for node in ast.walk(statement)
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
        }
    return stored


def _check(source, part, stored, late):
    for node in ast.walk(part):
        if node in late and node.value.id in stored:
            raise source.error(
                node,
                f"`{source.text_of(node)}` is read behind an assignment to {node.value.id!r}: it may be the element "
                "that the point has just written",
                "a local that reads it before the assignment",
            )
