"""Cuts loops into nests, loops around nests, and loops that run in their order."""

import copy
from dataclasses import dataclass

from tilewave.loops.dependences import components
from tilewave.loops.liveness import needs
from tilewave.loops.tree import Stays, Tree


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
    """

    group: object
    loops: tuple
    private: frozenset
    statements: list


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


def steps_of(region, live):
    """The parts of a region, in an order that keeps its dependences.

    Parameters
    ----------
    region : Region
    live : set of str
        Names that are needed behind it.

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
    if kept := sorted(live & indices):
        raise Stays(f"{', '.join(kept)} is needed behind the loops")
    read = {group: needs(group.statements)[0] for group in tree.groups}
    scalars = tree.assigned - tree.tables - indices
    if kept := sorted(scalars & live):
        raise Stays(f"{', '.join(kept)} is needed behind the loops")
    private = frozenset(name for name in scalars if not any(name in each for each in read.values()))
    for group in tree.groups:
        group.accesses = [each for each in group.accesses if each.name not in private]
    return _Distribution(region, private).steps(tree.groups, 0)


class _Distribution:
    def __init__(self, region, private):
        self.region, self.private = region, private

    def steps(self, groups, level):
        return [self._step(together, level) for together in components(groups, level)]

    def _step(self, groups, level):
        statements = self._statements(groups, level)
        if len(groups) == 1:
            loops = groups[0].path[level:]
            if not loops:
                return Ordered(statements, "a statement between nests")
            return Nested(groups[0], loops, self.private, statements)
        loop = groups[0].path[level] if len(groups[0].path) > level else None
        if loop is None or any(len(each.path) <= level or each.path[level] is not loop for each in groups):
            return Ordered(statements, "statements that need each other")
        inside = self.steps(groups, level + 1)
        if all(isinstance(each, Nested | Repeated) for each in inside):
            return Repeated(loop, inside, statements)
        return Ordered(statements, f"each turn of line {loop.node.lineno} needs the one before")

    def _statements(self, groups, level):
        """The loops from a level on with the statements of some groups, in the order of the text."""
        wanted = {id(part) for group in groups for part in group.statements}
        inner = groups[0].path[level - 1].node.body if level else self.region.source.tree.body
        return _only(inner, wanted)


def _only(statements, wanted):
    """Statements without those that are not wanted, and without loops around nothing."""
    kept = []
    for node in statements:
        if id(node) in wanted:
            kept.append(node)
        elif hasattr(node, "iter"):
            body = _only(node.body, wanted)
            if body:
                new = copy.copy(node)
                new.body = body
                kept.append(new)
    return kept


