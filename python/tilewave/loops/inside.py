"""Whether all accesses of loops are inside their arrays, for the integers of a call: then no access checks it."""

from tilewave.loops.systems import add, may_hold


def are_inside(tree, numbers, shapes):
    """Return whether all elements that loops may touch are inside, counted from the begin of their arrays.

    Parameters
    ----------
    tree : Tree
    numbers : dict
        The integers that names and extents stand for.
    shapes : dict
        Of arrays.
    """
    return all(
        _is_inside(group, access, numbers, shapes[access.name])
        for group in tree.groups
        for access in group.accesses
        if access.name in tree.tables
    )


def _is_inside(group, access, numbers, shape):
    if any(form is None for form in access.subscripts):
        return False
    points = []
    for loop in group.path:
        index, sign = {loop.index: 1}, 1 if loop.step > 0 else -1
        points.extend(add(_scaled(index, sign), _row(form), -sign) for form in loop.begins)
        points.extend(add(add(_scaled(_row(form), sign), index, -sign), {1: -1}, 1) for form in loop.ends)
    indices = {loop.index for loop in group.path}
    rows = [_row(form) for form in access.subscripts]
    names = {name for row in (*points, *rows) for name in row} - indices - {1}
    if not names <= numbers.keys():
        return False
    equal = [{name: 1, 1: -numbers[name]} for name in names]
    for row, extent in zip(rows, shape, strict=True):
        below, beyond = add(_scaled(row, -1), {1: -1}, 1), add(row, {1: -extent}, 1)
        if may_hold(equal, [*points, below]) or may_hold(equal, [*points, beyond]):
            return False
    return True


def _row(form):
    row = {1: form.constant}
    for name, factor in form.terms.items():
        row = add(row, {name: factor}, 1)
    return row


def _scaled(row, factor):
    return {variable: factor * value for variable, value in row.items()}
