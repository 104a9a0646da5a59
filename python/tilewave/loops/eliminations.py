"""Loops in another order, with the loop outside that a pivot needs: ``A[i, j] -= A[i, k] * A[k, j]`` for k outermost.

Statements with one text over parts of a box become one nest over the box. A statement in the way that changes each
element once more, ``A[i, j] /= A[j, j]``, comes behind the others, which compute what they need of it.
"""

import ast
import copy
import itertools

from tilewave.loops.dependences import Instances, bounds_of, domain, may_follow, not_least, row_of
from tilewave.loops.distribute import only
from tilewave.loops.systems import add, may_hold
from tilewave.loops.tree import Group, text_of
from tilewave.nest.inner_loops import is_element
from tilewave.nest.parse import parse
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.walks import Put, located

#: Statements that are looked at.
MOST_STATEMENTS = 4


def eliminated(tree, statements, types):
    """Statements with loops in the order of a pivot; None where there are none.

    Parameters
    ----------
    tree : Tree
    statements : list of ast.stmt
        Its loops.
    types : Types
    """
    groups = tree.groups
    loops = {loop for group in groups for loop in group.path}
    plain = all(isinstance(s, ast.Assign | ast.AugAssign) for group in groups for s in group.statements)
    if len(statements) > 1 or not plain or any(abs(loop.step) != 1 for loop in loops):
        return None
    if not 1 <= len(groups) <= MOST_STATEMENTS or any(len(group.statements) > 1 for group in groups):
        return None
    if any(not a.subscripts or any(f is None for f in a.subscripts) for group in groups for a in group.accesses):
        return None
    if (found := _merged(groups)) is not None:
        return found
    for late in groups:
        others = [group for group in groups if group is not late]
        if (new := _without(tree, late, others, types)) and (found := _merged(new)) is not None:
            return [*found, *only(statements, {id(late.statements[0])})]
    return None


def _follows(first, access, later, other):
    """Return whether an access may come before another one, of the same element."""
    pair = [Group([], group.path, group.number, [a]) for group, a in ((first, access), (later, other))]
    return access.name == other.name and (access.stores or other.stores) and may_follow(*pair, 0)


# One statement behind the others.


def _without(tree, late, others, types):
    """Other groups as they are with a statement behind them; None where it cannot be there."""
    node = late.statements[0]
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if not is_element(target):
        return None
    value = node.value
    if isinstance(node, ast.AugAssign):
        old = copy.deepcopy(target)
        old.ctx = ast.Load()
        value = ast.BinOp(old, node.op, value)
    (store,) = (access for access in late.accesses if access.stores)
    indices = {loop.index for loop in late.path}
    places = {}  # from each index of the statement to (dimension, offset) of its subscript
    for d, form in enumerate(store.subscripts):
        terms = [name for name, factor in form.terms.items() if factor]
        if len(terms) == 1 and terms[0] in indices and form.terms[terms[0]] == 1:
            places[terms[0]] = d, form.constant
    if places.keys() != indices or types.of(value) != "float64" or types.of(target) != "float64":
        return None
    for each in (*others, late):
        for access in each.accesses:
            if access.stores and any(_follows(late, read, each, access) for read in late.accesses):
                return None
    if any(_follows(late, store, late, read) for read in late.accesses):
        return None
    new = []
    for each in others:
        wanted = set()
        for access in each.accesses:
            if _follows(late, store, each, access):
                if access.stores or _follows(each, access, late, store) or not _is_covered(late, each, access, places):
                    return None
                wanted.add(access)
        put = _Put(tree, each, wanted, places, value)
        statements = [ast.fix_missing_locations(put.visit(copy.deepcopy(part))) for part in each.statements]
        new.append(tree.group(statements, each.path, each.number))
    return new


def _is_covered(late, group, access, places):
    """Return whether all elements of an access are written by a statement."""
    moved = {name: add(row_of(access.subscripts[d]), {1: offset}, -1) for name, (d, offset) in places.items()}
    for row in domain(late.path):
        there = {name: factor for name, factor in row.items() if name not in moved}
        for name in moved:
            there = add(there, moved[name], row.get(name, 0))
        if may_hold([], [*domain(group.path), not_least(there)]):
            return False
    return True


class _Put(ast.NodeTransformer):
    """The value of a statement in place of the elements that it writes."""

    def __init__(self, tree, group, wanted, places, value):
        self.tree, self.group, self.wanted, self.places, self.value = tree, group, wanted, places, value

    def visit_Subscript(self, node):
        if not is_element(node) or not isinstance(node.ctx, ast.Load):
            return node
        (access,) = self.tree.group([ast.Expr(node)], self.group.path, 0).accesses
        if access not in self.wanted:
            return node
        parts = subscripts_of(node)
        names = {
            name: ast.BinOp(parts[d], ast.Sub(), ast.Constant(offset)) if offset else parts[d]
            for name, (d, offset) in self.places.items()
        }
        return Put(names).visit(copy.deepcopy(self.value))


# Statements with one text in one nest.


def _merged(groups):
    """The loops of groups in the order of a pivot; None where that is not the order of what they need."""
    first = groups[0]
    if any(len(group.path) != 3 for group in groups):
        return None
    for loops in itertools.permutations(first.path):
        names = [loop.index for loop in loops]
        if not _is_pivot(first, names):
            continue
        orders = {first: names}
        for group in groups[1:]:
            for other in itertools.permutations([loop.index for loop in group.path]):
                if _text(group, other, names) == _text(first, names, names):
                    orders[group] = [*other]
        if len(orders) == len(groups) and _keeps(orders) and (rows := _box(orders, names)):
            return _loops(first, rows, names)
    return None


def _text(group, own, names):
    named = {name: ast.Name(new, ast.Load()) for name, new in zip(own, names, strict=True)}
    return ast.unparse(Put(named).visit(copy.deepcopy(group.statements[0])))


def _is_pivot(group, names):
    """Return whether a group reads row and column of its outermost loop, and writes at the others."""
    k, i, j = names
    for access in group.accesses:
        terms = [{name: factor for name, factor in form.terms.items() if factor} for form in access.subscripts]
        axes = tuple(next(iter(each), "") for each in terms)
        plain = all(len(each) == 1 and {*each.values()} == {1} for each in terms)
        stored = any(each.stores and each.name == access.name for each in group.accesses)
        allowed = [(i, j)] if access.stores else [(i, j), (i, k), (k, j), (k, k)]
        if stored and (not plain or axes not in allowed or any(form.constant for form in access.subscripts)):
            return False
    return True


def _keeps(orders):
    """Return whether what needs another iteration comes behind it when loops have other orders."""
    for one, other in itertools.product(orders, repeat=2):
        both = Instances(one, other)
        pairs = [(a, b) for a in one.accesses for b in other.accesses if a.name == b.name and (a.stores or b.stores)]
        before = [both.carried(level) for level in range(both.common)]
        before += [(both.at_once(), [])] if one.number < other.number else []
        sides = [*zip(orders[one], orders[other], strict=True)]
        ahead = [add({(b, 1): 1}, {(a, 0): 1}, -1) for a, b in sides]
        for level, row in enumerate(ahead):
            for equal, least in before:
                order = [*equal, *ahead[:level]], [*both.inside, *least, not_least(row)]
                if may_hold(*order) and any(
                    may_hold([*order[0], *both.same_element(a, b)], order[1]) for a, b in pairs
                ):
                    return False
    return True


def _box(orders, names):
    """Rows of the box that the iterations of all groups fill, each once; None where there is none."""
    domains = []
    for group, own in orders.items():
        domains.append(domain(group.path, dict(zip(own, names, strict=True))))
    if any(may_hold([], [*one, *other]) for one, other in itertools.combinations(domains, 2)):
        return None
    rows = [row for rows in domains for row in rows]
    box = [row for row in rows if not any(may_hold([], [*inside, not_least(row)]) for inside in domains)]
    left = [[not_least(row) for row in inside if row not in box] for inside in domains]
    if any(may_hold([], [*box, *outside]) for outside in itertools.product(*left)):
        return None
    kept = []
    for k, row in enumerate(box):
        if may_hold([], [*kept, *box[k + 1 :], not_least(row)]):
            kept.append(row)
    return kept


def _loops(group, rows, names):
    """The statement of a group in loops over a box; None where bounds are no sums."""
    if not (bounds := bounds_of(rows, names)):
        return None
    statement = copy.deepcopy(group.statements[0])
    for name in reversed(names):
        low, high = (text_of(forms, pick) for forms, pick in zip(bounds[name], (max, min), strict=True))
        (loop,) = parse(f"for {name} in range({low}, {high}): pass").body
        located(loop, group.statements[0]).body, statement = [statement], loop
    return [statement]
