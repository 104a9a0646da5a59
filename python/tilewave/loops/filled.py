"""Slices that are set to one value: ``e[:, 1:] = z[i, j]`` is a loop over elements."""

import ast
import copy
import itertools

from tilewave.nest.inner_loops import is_element
from tilewave.nest.subscript import subscripts_of
from tilewave.nest.walks import nodes_in

#: What a value may consist of, beside elements and numbers of modules (``np.inf``).
_PARTS = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context, ast.Constant)


class Filled(ast.NodeTransformer):
    """Loops in place of such statements.

    Parameters
    ----------
    local_names : set of str
        Of the function, with those that are made here.

    Attributes
    ----------
    over : dict
        Of each array the dimensions that it must have, as the slices give them.
    """

    def __init__(self, local_names):
        self._local_names, self.over = local_names, {}

    def visit_Assign(self, node):
        """Replace a statement that sets whole dimensions."""
        target = node.targets[0]
        if len(node.targets) > 1 or not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            return node
        parts, arrays = subscripts_of(target), self._arrays(node.value)
        if arrays is None or not any(isinstance(part, ast.Slice) for part in parts):
            return node
        ends = [_ends(part, target.value.id, d) for d, part in enumerate(parts)]
        if any(each is None for each in ends):
            return node
        arrays = [*arrays, (target.value.id, len(parts))]
        if any(self.over.get(name, (rank, None)) != (rank, None) for name, rank in arrays):
            return node
        self.over |= {name: (rank, None) for name, rank in arrays}
        value, indices = self._free("value"), [self._free("at") if each else None for each in ends]
        at = [ast.Name(index, ast.Load()) if index else part for index, part in zip(indices, parts, strict=True)]
        at = ast.Tuple(at, ast.Load()) if len(at) > 1 else at[0]
        stored = ast.Subscript(copy.copy(target.value), at, ast.Store())
        new = ast.Assign([stored], ast.Name(value, ast.Load()))
        for index, each in reversed([*zip(indices, ends, strict=True)]):
            if index:
                called = ast.Call(ast.Name("range", ast.Load()), list(each), [])
                new = ast.For(ast.Name(index, ast.Store()), called, [new], [])
        first = ast.Assign([ast.Name(value, ast.Store())], node.value)
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in (first, new)]

    def _arrays(self, value):
        """(name, dimensions) of each array of which a value has elements; None where it may be no number."""
        found, waiting = [], [value]
        while waiting:
            node = waiting.pop()
            if is_element(node) and isinstance(node.value, ast.Name):
                parts = subscripts_of(node)
                if any(isinstance(each, ast.Slice | ast.Subscript | ast.Call) for each in nodes_in(*parts)):
                    return None
                found.append((node.value.id, len(parts)))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id in self._local_names or node.attr not in ("inf", "nan", "pi"):
                    return None
            elif isinstance(node, _PARTS):
                if isinstance(node, ast.Constant) and type(node.value) not in (int, float, bool):
                    return None
                waiting += ast.iter_child_nodes(node)
            else:
                return None
        return found

    def _free(self, name):
        free = next(each for k in itertools.count() if (each := f"{name}_filled_{k}") not in self._local_names)
        self._local_names.add(free)
        return free


def _ends(part, array, dimension):
    """The arguments of ``range`` for a slice; none for a subscript, None where a slice has other bounds than ``k:`` and
    ``:-k``.
    """
    if not isinstance(part, ast.Slice):
        return ()
    if part.step is not None:
        return None
    begin = part.lower or ast.Constant(0)
    if not isinstance(begin, ast.Constant) or type(begin.value) is not int or begin.value < 0:
        return None
    extent = ast.Attribute(ast.Name(array, ast.Load()), "shape", ast.Load())
    end = ast.Subscript(extent, ast.Constant(dimension), ast.Load())
    if part.upper is not None:
        is_negative = isinstance(part.upper, ast.UnaryOp) and isinstance(part.upper.op, ast.USub)
        if not is_negative or not isinstance(part.upper.operand, ast.Constant):
            return None
        end = ast.BinOp(end, ast.Sub(), part.upper.operand)
    return begin, end
