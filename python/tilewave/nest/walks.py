"""What is in syntax trees: their nodes, names and elements, and where they stand in the text."""

import ast
import copy

from tilewave.nest.inner_loops import is_element


def nodes_in(*trees):
    """All nodes of some trees."""
    return [node for tree in trees for node in ast.walk(tree)]


def names_in(*trees):
    """The names in some trees."""
    return {node.id for node in nodes_in(*trees) if isinstance(node, ast.Name)}


def is_stored(node):
    """Return whether a node is a name that is assigned."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def names_stored(*trees):
    """The names that are assigned in some trees."""
    return {node.id for node in nodes_in(*trees) if is_stored(node)}


def elements_in(*trees):
    """The elements of arrays, ``A[i, j]``, in some trees."""
    return [node for node in nodes_in(*trees) if is_element(node)]


def assigned(node):
    """The name that a statement assigns, if that is all it does."""
    plain = isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    return node.targets[0].id if plain else None


def located(node, where):
    """A node, all of whose nodes now stand where another one does."""
    for each in ast.walk(node):
        if "lineno" in each._attributes:
            ast.copy_location(each, where)
    return node


def slice_of(parts):
    """The slice of a subscript with these parts."""
    return parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())


class Put(ast.NodeTransformer):
    """Expressions in place of names."""

    def __init__(self, values):
        self.values = values

    def visit_Name(self, node):
        if node.id not in self.values:
            return node
        new = copy.deepcopy(self.values[node.id])
        if hasattr(new, "ctx"):
            new.ctx = node.ctx
        return ast.copy_location(new, node)
