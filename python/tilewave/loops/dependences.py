"""Which statements of loops must stay behind which others."""

from tilewave.loops.systems import add, may_hold, without
from tilewave.nest.affine import Affine


def row_of(form, variables=None, factor=1):
    """The row of an affine form, its indices replaced by variables."""
    row = {1: factor * form.constant}
    for name, value in form.terms.items():
        row = add(row, {(variables or {}).get(name, name): value}, factor)
    return row


def times(row, factor):
    """A row times a number."""
    return {variable: factor * value for variable, value in row.items()}


def not_least(row):
    """The row that is 0 or more where another one is not."""
    return add(times(row, -1), {1: -1}, 1)


def domain(path, variables=None):
    """Rows that are 0 or more at the iterations of the loops of a path."""
    rows = []
    for loop in path:
        index, sign = {(variables or {}).get(loop.index, loop.index): 1}, 1 if loop.step > 0 else -1
        rows += [add(times(index, sign), row_of(form, variables), -sign) for form in loop.begins]
        rows += [add(add(row_of(form, variables, sign), index, -sign), {1: -1}, 1) for form in loop.ends]
    return rows


def bounds_of(rows, order):
    """The bounds that rows give to indices, each by those before it: (forms at or below, forms above) by index.

    None where a factor is not 1.
    """
    found = {}
    for index in reversed(order):
        sides = [], []
        for row in rows:
            sign = row.get(index, 0)
            if abs(sign) > 1:
                return None
            if sign:
                terms = {name: -sign * factor for name, factor in row.items() if name not in (1, index) and factor}
                sides[sign < 0].append(Affine(terms, -sign * row.get(1, 0) + (sign < 0)))
        if not all(sides):
            return None
        found[index], rows = sides, without(rows, index)
    return found


class Instances:
    """Two iterations: one of the loops around one group, and one of those around another one.

    Variables are (index, side); other names are the same integers for both.
    """

    def __init__(self, first, later):
        self.paths = first.path, later.path
        self.common = 0
        while self.common < min(map(len, self.paths)) and self.paths[0][self.common] is self.paths[1][self.common]:
            self.common += 1
        self.variables = [{loop.index: (loop.index, side) for loop in path} for side, path in enumerate(self.paths)]
        self.inside = [row for side in (0, 1) for row in domain(self.paths[side], self.variables[side])]

    def same_element(self, one, other):
        """Equations of two accesses of one array that touch one element."""
        return [
            add(row_of(a, self.variables[0]), row_of(b, self.variables[1]), -1)
            for a, b in zip(one.subscripts, other.subscripts, strict=True)
            if a is not None and b is not None
        ]

    def ahead(self, loop):
        """How far the later iteration is ahead along a loop of both, as a row."""
        sign = 1 if loop.step > 0 else -1
        return add({(loop.index, 1): sign}, {(loop.index, 0): 1}, -sign)

    def carried(self, level):
        """(equations, inequalities) of iterations that part at a loop, by its level."""
        loops = self.paths[0]
        equal = [self.ahead(loop) for loop in loops[:level]]
        return equal, [add(self.ahead(loops[level]), {1: -1}, 1)]

    def at_once(self):
        """Equations of one iteration of all common loops."""
        return [self.ahead(loop) for loop in self.paths[0][: self.common]]


def _pairs(one, other):
    return [(a, b) for a in one.accesses for b in other.accesses if a.name == b.name and (a.stores or b.stores)]


def may_follow(first, later, level):
    """Return whether an iteration of `later` may need that one of `first` came before it, at loops from a level on."""
    pairs = _pairs(first, later)
    if not pairs:
        return False
    if any(not a.subscripts for a, _ in pairs):  # a name goes from one to the other: they stay together
        return True
    both = Instances(first, later)
    orders = [both.carried(k) for k in range(level, both.common)]
    outer = [both.ahead(loop) for loop in first.path[: min(level, both.common)]]
    if first.number < later.number:
        orders.append((both.at_once(), []))
    return any(
        may_hold([*outer, *equal, *both.same_element(a, b)], [*both.inside, *ahead])
        for a, b in pairs
        for equal, ahead in orders
    )


def may_read_written(group, access, loops):
    """Return whether an access of a group may read an element that it has stored in an earlier iteration of loops."""
    both, level = Instances(group, group), len(group.path) - len(loops)
    return any(
        may_hold([*equal, *both.same_element(each, access)], [*both.inside, *ahead])
        for each in group.accesses
        if each.stores and each.name == access.name
        for k in range(level, len(group.path))
        for equal, ahead in [both.carried(k)]
    )


def may_be_permuted(group, loops, order):
    """Return whether loops around a group, inner ones of its path, may be nested in another order."""
    both = Instances(group, group)
    outer = [both.ahead(loop) for loop in group.path[: len(group.path) - len(loops)]]
    pairs = _pairs(group, group)
    for k in range(len(loops)):
        before = [both.ahead(loop) for loop in loops[:k]], [add(both.ahead(loops[k]), {1: -1}, 1)]
        for q, loop in enumerate(order):
            back = times(both.ahead(loop), -1)
            turned = [both.ahead(each) for each in order[:q]], [add(back, {1: -1}, 1)]
            equal, least = [*outer, *before[0], *turned[0]], [*both.inside, *before[1], *turned[1]]
            if may_hold(equal, least) and any(
                may_hold([*equal, *both.same_element(a, b)], least) for a, b in pairs if (a.name, b.name)
            ):
                return False
    return True


def components(groups, level):
    """Groups that must stay together, in an order that keeps all dependences.

    Parameters
    ----------
    groups : list of Group
    level : int
        The loops outside run in their order.

    Returns
    -------
    list of list of Group
    """
    after = {
        first: [later for later in groups if later is not first and may_follow(first, later, level)] for first in groups
    }
    reach = {}
    for group in groups:
        found, waiting = set(), [group]
        while waiting:
            for each in after[waiting.pop()]:
                if each not in found:
                    found.add(each)
                    waiting.append(each)
        reach[group] = found
    left, ordered = list(groups), []
    while left:
        for group in left:
            together = [each for each in left if each is group or each in reach[group] and group in reach[each]]
            needed = {each for each in left if each not in together and any(one in reach[each] for one in together)}
            if not needed:
                ordered.append(together)
                left = [each for each in left if each not in together]
                break
    return ordered
