"""Whether integers with some linear equations and inequalities may exist: Fourier and Motzkin's elimination.

An answer of yes may be wrong, where only fractions satisfy all rows, or rows become too many; no is certain.
"""

import math

#: Rows beyond which a system is taken to have solutions.
MOST_ROWS = 400


def add(row, other, factor):
    """A row plus a multiple of another one; rows map variables, and 1, to integers."""
    total = dict(row)
    for variable, value in other.items():
        total[variable] = total.get(variable, 0) + factor * value
        if not total[variable] and variable != 1:
            del total[variable]
    return total


def may_hold(equal, least):
    """Return whether integers may exist for which the rows of `equal` are 0 and those of `least` are 0 or more."""
    equal, least = [dict(row) for row in equal], [dict(row) for row in least]
    while equal:
        row = equal.pop()
        factors = [value for variable, value in row.items() if variable != 1 and value]
        if not factors:
            if row.get(1, 0):
                return False
            continue
        if row.get(1, 0) % math.gcd(*factors):
            return False
        unit = next((variable for variable, value in row.items() if variable != 1 and abs(value) == 1), None)
        if unit is None:
            least += [row, {variable: -value for variable, value in row.items()}]
            continue
        equal = [_without(other, unit, row) for other in equal]
        least = [_without(other, unit, row) for other in least]
    return _may_be_least(least)


def _without(row, unit, equation):
    """A row without a variable that an equation gives."""
    factor = row.get(unit, 0)
    return add(row, equation, -factor * equation[unit]) if factor else row


def _may_be_least(rows):
    while True:
        rows = _tightened(rows)
        if rows is None:
            return False
        variables = {variable for row in rows for variable in row if variable != 1}
        if not variables or len(rows) > MOST_ROWS:
            return True
        signs = {v: [sum(sign * row.get(v, 0) > 0 for row in rows) for sign in (1, -1)] for v in variables}
        rows = without(rows, min(variables, key=lambda v: signs[v][0] * signs[v][1]))


def without(rows, variable):
    """Rows, which are 0 or more, without a variable: what they say of the others."""
    kept = [row for row in rows if not row.get(variable)]
    for one in (row for row in rows if row.get(variable, 0) > 0):
        for other in (row for row in rows if row.get(variable, 0) < 0):
            scaled = {name: -other[variable] * value for name, value in one.items()}
            kept.append(add(scaled, other, one[variable]))
    return kept


def _tightened(rows):
    """Rows without common factors and doubles; None where one is never 0 or more."""
    found = {}
    for row in rows:
        factors = {variable: value for variable, value in row.items() if variable != 1 and value}
        constant = row.get(1, 0)
        if not factors:
            if constant < 0:
                return None
            continue
        common = math.gcd(*factors.values())
        key = tuple(sorted(((variable, value // common) for variable, value in factors.items()), key=repr))
        found[key] = min(constant // common, found.get(key, constant // common))
    return [{**dict(key), 1: constant} for key, constant in found.items()]
