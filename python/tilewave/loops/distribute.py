"""Cuts loops into nests, loops around nests, and loops that run in their order."""

import copy
from dataclasses import dataclass

from tilewave.loops.dependences import components
from tilewave.loops.liveness import needs
from tilewave.loops.reductions import are_pythons, reductions_of
from tilewave.loops.tree import Group, Stays, Tree
from tilewave.nest.walks import nodes_in


@dataclass(eq=False)
class Nested:
    """Statements of one body with the loops around them: a nest, where its accesses allow one.

    Attributes
    ----------
    group : Group
    loops : tuple of Loop
        Those of the path that are the nest's.
    private : frozenset of str
        Names that each point assigns for itself.
    statements : list of ast.stmt
        The same as loops that run in their order.
    finer : callable
        Returns smaller steps for the same statements; None where there are none.
    reductions : list of Reduction
    """

    group: object
    loops: tuple
    private: frozenset
    statements: list
    finer: object
    reductions: list


@dataclass(eq=False)
class Repeated:
    """A loop with nests in it."""

    loop: object
    steps: list
    statements: list


@dataclass(eq=False)
class Ordered:
    """Loops that run in their order, and why."""

    statements: list
    why: str


def steps_of(region, live, apart=False):
    """The parts of a region, in an order that keeps its dependences.

    Parameters
    ----------
    region : Region
    live : set of str
        Names that are needed behind it.
    apart : bool
        Several statements may join values to one name, in another order than that of the loops.

    Returns
    -------
    list of Nested, Repeated or Ordered

    Raises
    ------
    Stays
        Where the whole region runs in its order.
    """
    tree = Tree(region)
    indices = {loop.index for group in tree.groups for loop in group.path}
    scalars = tree.assigned - tree.tables - indices
    reductions = reductions_of(tree.groups, scalars, apart) if are_pythons(region) else {}
    if kept := sorted(live & (indices | scalars) - reductions.keys()):
        raise Stays(f"{', '.join(kept)} is needed behind the loops")
    if kept := sorted(needs(region.source.tree.body)[0] & indices):
        raise Stays(f"{', '.join(kept)} is needed outside of its loop")
    return _Distribution(tree, scalars, reductions).steps(tree.groups, 0)


class _Distribution:
    def __init__(self, tree, scalars, reductions):
        self.tree, self.scalars, self.reductions = tree, scalars, reductions

    def steps(self, groups, level):
        """The steps of groups; the loops outside of a level run in their order."""
        needed = {name for group in groups for name in needs(group.statements)[0]}
        private = frozenset(self.scalars - needed - self.reductions.keys())
        apart = private | self.reductions.keys()
        plain = [Group(g.statements, g.path, g.number, [a for a in g.accesses if a.name not in apart]) for g in groups]
        return [self._step(together, level, private) for together in components(plain, level)]

    def _step(self, groups, level, private):
        if len({group.path for group in groups}) == 1:
            return self._one(groups, level, private)
        statements = self._statements(groups, level)
        loop = groups[0].path[level] if len(groups[0].path) > level else None
        if loop is None or any(len(each.path) <= level or each.path[level] is not loop for each in groups):
            return Ordered(statements, "statements that need each other")
        inside = self.steps(groups, level + 1)
        if all(isinstance(each, Nested | Repeated) for each in inside):
            return Repeated(loop, inside, statements)
        return Ordered(statements, f"each turn of line {loop.node.lineno} needs the one before")

    def _one(self, groups, level, private):
        """The step of the statements of one body."""
        statements, path = self._statements(groups, level), groups[0].path
        if len(path) == level:
            return Ordered(statements, "a statement between nests")
        parts = [part for group in groups for part in group.statements]
        accesses = list(dict.fromkeys(each for group in groups for each in group.accesses))
        group = Group(parts, path, groups[0].number, accesses)
        outer, *inner = path[level:]
        used = {name for each in group.accesses for form in each.subscripts if form is not None for name in form.terms}
        used |= {name for loop in inner for bound in (*loop.begins, *loop.ends) for name in bound.terms}
        if inner and outer.index not in used and all(form is not None for a in accesses for form in a.subscripts):
            return Repeated(outer, [self._one([group], level + 1, private)], statements)
        inside = {*map(id, nodes_in(*parts))}
        reductions = [each for some in self.reductions.values() for each in some if id(each.node) in inside]
        return Nested(group, path[level:], private, statements, lambda: self._finer(group, level), reductions)

    def _finer(self, group, level):
        if len(group.statements) == 1:
            return None
        parts = [
            self.tree.group([part], group.path, group.number + k / len(group.statements))
            for k, part in enumerate(group.statements)
        ]
        steps = self.steps(parts, level)
        return steps if len(steps) > 1 else None

    def _statements(self, groups, level):
        """The loops from a level on with the statements of some groups, in the order of the text."""
        wanted = {id(part) for group in groups for part in group.statements}
        path = groups[0].path
        inner = path[level - 1].node.body if level else self.tree.region.source.tree.body
        return only(inner, wanted)


def only(statements, wanted):
    """Statements without those that are not wanted, and without loops around nothing."""
    kept = []
    for node in statements:
        if id(node) in wanted:
            kept.append(node)
        elif hasattr(node, "iter"):
            body = only(node.body, wanted)
            if body:
                new = copy.copy(node)
                new.body = body
                kept.append(new)
    return kept
