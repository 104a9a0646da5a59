"""Functions with their loops where a nest is the body of one point: what to write instead."""

import ast

from tilewave.nest.walks import names_in, nodes_in


def refuse_loops(source):
    """Refuse a function whose statements are in ``for`` loops, as those of Numba are, and say what its body would be.

    A loop that assigns to no element may be a sum or a maximum: `syntax` says how these are written.

    Raises
    ------
    ConfigError
    """
    for statement in source.tree.body:
        if isinstance(statement, ast.For):
            indices, inside = _loops(statement)
            stores = [node for node in nodes_in(*inside) if isinstance(node, ast.Subscript)]
            first = next((node for node in stores if isinstance(node.ctx, ast.Store)), None)
            if indices and first is not None:
                raise source.error(
                    statement,
                    "a nest is the body of one point, without its loops",
                    "@tw.loops in place of @tw.nest, which takes the whole function as it stands; or "
                    f"{_signature(source.tree, indices, inside)}: {source.text_of(first)} = ..., without the for "
                    "lines: loop indices are parameters, and the loops go over all points whose accesses are inside "
                    "the arrays, or over= says which",
                )


def _loops(node):
    """(indices, statements) of loops within each other."""
    indices = []
    while isinstance(node, ast.For) and isinstance(node.target, ast.Name) and _is_range(node.iter):
        indices.append(node.target.id)
        inside = node.body
        node = inside[0] if len(inside) == 1 else None
    return indices, inside if indices else []


def _is_range(node):
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("range", "prange")


def _signature(tree, indices, inside):
    """The function's first line as a nest: arrays and indices, then scalars."""
    subscripts = [node for node in nodes_in(*inside) if isinstance(node, ast.Subscript)]
    arrays = {node.value.id for node in subscripts if isinstance(node.value, ast.Name)}
    within, used = names_in(*(node.slice for node in subscripts)), names_in(*inside)
    plain = [argument.arg for argument in tree.args.args if argument.arg in used]
    kept = [name for name in plain if name in arrays or name in within]
    scalars = [name for name in plain if name not in kept]
    scalars += [argument.arg for argument in tree.args.kwonlyargs if argument.arg in used]
    parts = [*kept, *(index for index in indices if index not in kept), *["*"] * bool(scalars), *scalars]
    return f"def {tree.name}({', '.join(parts)})"
