"""Loops inside a body: ``max(V[t-1, q] + T[q, s] for q in range(n))``, and min, sum, any, all, argmax and argmin."""

import ast
import builtins

ALLOWED = (
    "max, min, sum, any or all, tilewave.argmax or tilewave.argmin, of `term for q in range(end)` or `range(begin, "
    "end)`, perhaps `if condition`; bounds are integers: constants, scalars, loop indices, len(T), T.shape[0]"
)


def _place_of_first(is_better):
    def place(terms):
        found = best = None
        for k, term in enumerate(terms):
            if found is None or is_better(term, best):
                found, best = k, term
        if found is None:
            raise ValueError("no terms")
        return found

    return place


#: What the functions give for the terms of a generator, one after another, in plain Python.
OF_TERMS = {
    "max": builtins.max,
    "min": builtins.min,
    "sum": builtins.sum,
    "any": builtins.any,
    "all": builtins.all,
    "argmax": _place_of_first(lambda term, best: term > best),
    "argmin": _place_of_first(lambda term, best: term < best),
}
_BUILTINS = {getattr(builtins, name): name for name in OF_TERMS if hasattr(builtins, name)}


def is_inner(node):
    """Return whether a node is a call with a generator."""
    return isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp)


def kind_of(scope, node):
    """Which of `OF_TERMS` a node that names a function means; None for another one."""
    found = scope.resolve(node)
    try:
        return _BUILTINS.get(found) or getattr(found, "of_terms", None)
    except TypeError:  # not hashable, so no function
        return None


def extent_of(node):
    """(array, dimension) of ``len(T)`` and ``T.shape[1]``; None for another node."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        return (node.args[0].id, 0) if isinstance(node.args[0], ast.Name) and not node.keywords else None
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    owner = node.value
    shape = isinstance(owner, ast.Attribute) and owner.attr == "shape" and isinstance(owner.value, ast.Name)
    return (owner.value.id, node.slice.value) if shape and type(node.slice.value) is int else None


def is_element(node):
    """Return whether a node is a subscript of an array, as ``T.shape[1]`` is not."""
    return isinstance(node, ast.Subscript) and not extent_of(node)


def extent_name(array, dimension):
    """The number that a kernel is given for an extent; no name of Python's."""
    return f"extent {dimension} of {array}"


def extents_of(nest, arrays):
    """Values of the extents that the kernel of a nest is given, by `extent_name`."""
    # Arrays with time steps have no dimension for their first subscript.
    return {extent_name(name, d): int(arrays[name].shape[d - nest.parameters.ranks[name]]) for name, d in nest.extents}
