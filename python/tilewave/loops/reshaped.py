"""Statements that mean the same, in loops that become nests: names and arrays that go from turn to turn are replaced.

Arrays are apart from each other here, all accesses are inside them, and float64 is the type of what is replaced.
"""

import ast
import copy

from tilewave.loops.carried import Carried, stored_by
from tilewave.loops.eliminations import eliminated
from tilewave.loops.liveness import names_read
from tilewave.nest.inner_loops import is_element
from tilewave.nest.walks import Put, assigned, names_in, nodes_in


class Reshaped(Carried):
    """A region whose statements are changed step by step.

    Parameters
    ----------
    region : Region
    numbers : dict
        The integers that names and extents stand for.
    types : Types
        Of all its statements.
    live : set of str
        Names that are needed behind it.

    Attributes
    ----------
    region : Region
        The new one.
    guarded : bool
        Conditions on indices keep elements inside their arrays.
    changed : bool
        Whether nests take less time than the loops as they stand.
    """

    def __init__(self, region, numbers, types, live):
        self.numbers, self.types, self.live = numbers, types, live
        self.changed, self.guarded = False, False
        self._begin(region, copy.deepcopy(region.source.tree.body))
        for change in (self._with_elements, self._with_carried, self._eliminated):
            if (statements := change(self.region.source.tree.body)) is not None:
                self._begin(region, statements)
                self.changed |= change != self._with_elements

    # ``w = A[i, j]; ...; A[i, j] = w / A[j, j]``: the element in place of the name.

    def _with_elements(self, statements):
        found = {}
        for block, path in self._blocks(statements):
            for end, last in enumerate(block):
                target = last.targets[0] if isinstance(last, ast.Assign) and len(last.targets) == 1 else None
                if target is None or not is_element(target) or self.types.of(target) != "float64":
                    continue
                for name in sorted(names_read(last.value) & self.tree.assigned - self.indices - self.live):
                    begin = next((k for k, each in enumerate(block[:end]) if assigned(each) == name), end)
                    if begin < end and self._is_element(name, target, block[begin : end + 1], path):
                        found.setdefault(name, []).append((block, begin, end, target))
        changed = False
        for name, places in found.items():
            uses = sum(_uses(part, name) for block, begin, end, _ in places for part in block[begin : end + 1])
            if uses != sum(_uses(part, name) for part in statements):
                continue
            for block, begin, end, target in places:
                for k in range(begin, end + 1):
                    block[k] = Put({name: target}).visit(block[k])
                for k in (begin, end):
                    if ast.unparse(block[k].value) == ast.unparse(target):
                        block[k] = ast.Pass()
            changed = True
        for block, _ in [*self._blocks(statements)]:
            block[:] = [each for each in block if not isinstance(each, ast.Pass)]
        return statements if changed else None

    def _is_element(self, name, target, segment, path):
        """Return whether an element may stand for a name in a part of a body."""
        changed = {each for part in segment for each in stored_by(part)}
        if names_in(target.slice) & changed or self.types.of(segment[0].value) != "float64":
            return False
        for part in nodes_in(*segment[1:]):
            if isinstance(part, ast.Assign | ast.AugAssign | ast.For | ast.If) and name in stored_by(part):
                plain = (
                    isinstance(part, ast.For) or isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)
                )
                if not plain:
                    return False
                if isinstance(part, ast.AugAssign) and self.types.of(part.value) not in ("float64", "weak"):
                    return False
        others = [each for each in self._elements(segment[1:], path) if each[0] is not target]
        return not self._may_meet(target, others, path)

    # Loops in another order, with the loop outside that a pivot needs.

    def _eliminated(self, statements):
        return eliminated(self.tree, statements, self.types)


def _uses(node, name):
    return sum(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))
