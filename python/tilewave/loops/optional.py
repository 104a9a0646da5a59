"""Arguments that may be None: a function is read by itself for those that are, ``mask is not None and mask[i]``."""

import ast
import copy
import inspect

from tilewave.nest.walks import is_stored


class OptionalArguments:
    """The parameters of a function that it compares with None, and does not assign.

    Parameters
    ----------
    function : function
    source : Source
    """

    def __init__(self, function, source):
        nodes = [*ast.walk(source.tree)]
        stored = {node.id for node in nodes if is_stored(node)}
        own = {*ast.walk(source.tree.args)}
        stored |= {each.arg for each in nodes if isinstance(each, ast.arg) and each not in own}  # of functions within
        found = {node.left.id for node in nodes if _is_asked(node)} - stored
        self._signature = inspect.signature(function)
        self.names = sorted(found & self._signature.parameters.keys())

    def none(self, arguments, keywords):
        """Return those that are None in a call."""
        if not self.names:
            return frozenset()
        try:
            given = self._signature.bind(*arguments, **keywords)
        except TypeError:  # which the call raises, too
            return frozenset()
        given.apply_defaults()
        return frozenset(name for name in self.names if given.arguments[name] is None)

    def source(self, source, none):
        """Return the source of the function where these are None, and others are not."""
        if not self.names:
            return source
        return source.with_tree(_Known({name: name in none for name in self.names}).visit(copy.deepcopy(source.tree)))


def _is_asked(node):
    """Return whether a node is a name's comparison with None."""
    if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or len(node.ops) != 1:
        return False
    other = node.comparators[0]
    return isinstance(node.ops[0], ast.Is | ast.IsNot) and isinstance(other, ast.Constant) and other.value is None


class _Known(ast.NodeTransformer):
    """Answers in place of questions, and what they leave of conditions."""

    def __init__(self, none):
        self._none = none

    def visit_Compare(self, node):
        """Answer a question."""
        if not _is_asked(node) or node.left.id not in self._none:
            return self.generic_visit(node)
        answer = self._none[node.left.id] == isinstance(node.ops[0], ast.Is)
        return ast.copy_location(ast.Constant(answer), node)

    def visit_UnaryOp(self, node):
        """Turn an answer round."""
        node = self.generic_visit(node)
        known = isinstance(node.op, ast.Not) and _answer(node.operand) is not None
        return ast.copy_location(ast.Constant(not node.operand.value), node) if known else node

    def visit_BoolOp(self, node):
        """Leave out what is known to change nothing, and what is never looked at."""
        node, ends = self.generic_visit(node), isinstance(node.op, ast.Or)
        kept = []
        for k, each in enumerate(node.values):
            if _answer(each) is not (not ends) or k == len(node.values) - 1:
                kept.append(each)
            if _answer(each) is ends:
                break
        node.values = kept
        return node if len(kept) > 1 else kept[0]

    def visit_IfExp(self, node):
        """Keep what is taken."""
        node = self.generic_visit(node)
        answer = _answer(node.test)
        return node if answer is None else node.body if answer else node.orelse

    def visit_If(self, node):
        """Keep the branch that is taken."""
        node = self.generic_visit(node)
        answer = _answer(node.test)
        if answer is None:
            return node
        return (node.body if answer else node.orelse) or ast.copy_location(ast.Pass(), node)


def _answer(node):
    """Return what a condition is known to be; None where it is not."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None
