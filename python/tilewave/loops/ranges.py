"""Loops over ranges in place of loops over other things that mean ranges."""

import ast
import builtins
import copy
import itertools

import numpy as np

from tilewave.nest.walks import names_in, names_stored, nodes_in


class Ranges(ast.NodeTransformer):
    """Loops over ranges in place of those over ``reversed``, ``enumerate``, ``zip``, ``ndindex``, ``product``, elements
    and rows.

    Attributes
    ----------
    over : dict
        Of what must be arrays, the numbers of dimensions and of columns; None where any is right.
    """

    def __init__(self, scope, local_names, live):
        self.scope, self.local_names, self.live, self.over = scope, local_names, live, {}

    def visit_For(self, node):
        """Replace what a loop goes over; what is not known stays."""
        node = self.generic_visit(node)
        call, targets, ranged = node.iter, getattr(node.target, "elts", ()), None
        if isinstance(call, ast.Name) and targets:
            ranged = self._rows(node, call)
        elif isinstance(call, ast.Name):
            ranged = self._elements(node, (node.target,), (call,))
        elif _turned(call):
            ranged = self._elements(node, (node.target,), (call.value,), backwards=True)
        elif isinstance(call, ast.Call) and not call.keywords and call.args:
            found = self.scope.resolve(call.func)
            if found is builtins.reversed and isinstance(call.args[0], ast.Name):
                ranged = self._elements(node, (node.target,), call.args[:1], backwards=True)
            elif found is builtins.reversed:
                ranged = self._reversed(node, call.args[0])
            elif found is builtins.enumerate and len(call.args) == 1 and len(targets) == 2:
                ranged = self._elements(node, targets[1:], call.args, targets[0])
            elif found is builtins.zip and len(targets) == len(call.args):
                ranged = self._elements(node, targets, call.args)
            elif found is np.ndindex and len(targets) == len(call.args):
                ranged = self._nested(node, targets, [self._range(call, each) for each in call.args])
            elif found is itertools.product and len(targets) == len(call.args) and all(map(self._ends, call.args)):
                ranged = self._nested(node, targets, call.args)
        return ast.fix_missing_locations(ranged) if ranged else node

    def _ends(self, node):
        """The arguments of a range; None for something else."""
        ranged = isinstance(node, ast.Call) and self.scope.resolve(node.func) is builtins.range and not node.keywords
        return node.args if ranged and 1 <= len(node.args) <= 3 else None

    def _range(self, where, *ends):
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name("range", ast.Load()), where), [*ends], []), where)

    def _is_builtin(self, *names):
        return all(self.scope.lookup(name) is getattr(builtins, name) for name in names)

    def _loop(self, node, target, iterated, body):
        return ast.copy_location(ast.For(target, iterated, body, node.orelse), node)

    def _reversed(self, node, given):
        """Downwards, over a range of steps of one."""
        ends = self._ends(given)
        if not ends or len(ends) == 3:
            return None
        low, high = [ast.copy_location(ast.Constant(0), given), *ends][-2:]
        one = [ast.BinOp(copy.deepcopy(end), ast.Sub(), ast.Constant(1)) for end in (high, low)]
        return self._loop(node, node.target, self._range(given, *one, ast.Constant(-1)), node.body)

    def _elements(self, node, targets, arrays, index=None, backwards=False):
        """The elements of arrays one by one, perhaps from the last one on; `index` is their number."""
        written = names_stored(*node.body)
        plain = all(isinstance(each, ast.Name) for each in (*targets, *arrays, *((index,) if index else ())))
        if not plain or written & {each.id for each in arrays} or not self._is_builtin("range", "len", "min"):
            return None
        own = index is None or index.id in written  # a name of its own, which the body does not change
        number = self._number(targets[0].id) if own else index.id
        values = [
            ast.Assign([target], ast.Subscript(array, ast.Name(number, ast.Load()), ast.Load()))
            for target, array in zip(targets, arrays, strict=True)
        ]
        if index is not None and index.id != number:
            values.insert(0, ast.Assign([index], ast.Name(number, ast.Load())))
        for each in values:
            ast.copy_location(each, node)
        lengths = [ast.Call(ast.Name("len", ast.Load()), [copy.deepcopy(array)], []) for array in arrays]
        length = lengths[0] if len(lengths) == 1 else ast.Call(ast.Name("min", ast.Load()), lengths, [])
        self.over |= {array.id: (1, None) for array in arrays}
        ends = [length]
        if backwards:
            ends = [ast.BinOp(length, ast.Sub(), ast.Constant(1)), ast.Constant(-1), ast.Constant(-1)]
        return self._loop(node, ast.Name(number, ast.Store()), self._range(node.iter, *ends), [*values, *node.body])

    def _rows(self, node, array):
        """The rows of an array, unpacked: what `_Unpacked` replaces."""
        stored = names_stored(*node.body)
        if array.id in stored or not self._is_builtin("range", "len"):
            return None
        number = self._number(array.id)
        row = ast.Assign([node.target], ast.Subscript(array, ast.Name(number, ast.Load()), ast.Load()))
        ast.copy_location(row, node)
        length = ast.Call(ast.Name("len", ast.Load()), [copy.deepcopy(array)], [])
        self.over[array.id] = (None, None)
        return self._loop(node, ast.Name(number, ast.Store()), self._range(node.iter, length), [row, *node.body])

    def _number(self, name):
        """A free name for the number of an element."""
        free = (f"{name}_index_{k}" if k else f"{name}_index" for k in itertools.count())
        number = next(each for each in free if each not in self.local_names)
        self.local_names.add(number)
        return number

    def _nested(self, node, targets, ranges):
        """Loops in each other, which ``break`` would not leave."""
        leaves = any(isinstance(each, ast.Break) for each in nodes_in(*node.body))
        plain = all(isinstance(each, ast.Name) for each in targets) and len({each.id for each in targets}) == len(
            targets
        )
        if leaves or not plain or node.orelse or not self._is_builtin("range"):
            return None
        stored = names_stored(*node.body)
        named = names_in(*ranges)
        indices = {each.id for each in targets}
        if (named | indices) & stored or named & indices or indices & self.live:
            return None  # the ranges are evaluated once, and indices are set anew in each turn
        body = node.body
        for target, iterated in zip(reversed(targets), reversed(ranges), strict=True):
            body = [self._loop(node, target, iterated, body)]
        return body[0]


def _turned(node):
    """Return whether it is ``x[::-1]``."""
    of_name = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
    return of_name and isinstance(node.slice, ast.Slice) and ast.unparse(node.slice) == "::-1"
