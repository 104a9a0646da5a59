"""Subscripts: which parameters are arrays and indices, and the offset of each access."""

import ast
from dataclasses import dataclass

ALLOWED = (
    "index + integer constant (i, i+1, i-2, 1+i), "
    "the first subscript with the first loop index, the second with the second, and so on"
)


@dataclass(frozen=True)
class Parameters:
    """The parameters of a nest by their roles, each in the order of the parameter list."""

    arrays: tuple
    indices: tuple
    scalars: tuple


def read_parameters(source):
    """Sort the parameters of a nest into arrays, indices and scalars."""
    given = source.tree.args
    for unsupported, what in (
        (given.vararg, "*arguments"),
        (given.kwarg, "**keywords"),
        *((argument, "positional-only parameters") for argument in given.posonlyargs),
        *((default, "a default of an array or an index") for default in given.defaults),
    ):
        if unsupported is not None:
            raise source.error(
                unsupported,
                f"{what} are not supported in a nest" if what[-1] == "s" else
                f"{what} is not supported in a nest",
                "arrays and loop indices as plain parameters, scalars as keyword-only ones",
            )
    plain = {argument.arg: argument for argument in given.args}
    scalars = tuple(argument.arg for argument in given.kwonlyargs)
    arrays, indices = _roles(source, plain, scalars)
    for name, node in plain.items():
        if name not in arrays and name not in indices:
            raise source.error(
                node,
                f"parameter {name!r} is neither subscripted (an array) "
                "nor used in a subscript (a loop index)",
                "scalars as keyword-only parameters, after a *",
            )
    return Parameters(
        tuple(name for name in plain if name in arrays),
        tuple(name for name in plain if name in indices),
        scalars,
    )


def _roles(source, plain, scalars):
    """The names that are subscripted and the names used in subscripts."""
    arrays, indices = set(), {}
    subscripts = [node for node in _walk(source.tree.body) if isinstance(node, ast.Subscript)]
    for node in subscripts:
        if not isinstance(node.value, ast.Name):
            raise source.error(
                node, "only a name can be subscripted; a subscript of an expression is "
                "not supported", "A[i, j] with an array parameter A"
            )
        if node.value.id not in plain:
            what = "is a scalar (keyword-only)" if node.value.id in scalars else "is no parameter"
            raise source.error(
                node, f"{node.value.id!r} is subscripted, but {what}",
                "arrays as plain parameters of the nest",
            )
        arrays.add(node.value.id)
    for node in subscripts:
        for name in (part for part in ast.walk(node.slice) if isinstance(part, ast.Name)):
            if name.id in arrays:
                raise source.error(
                    node, f"array {name.id!r} used inside a subscript is not supported", ALLOWED
                )
            if name.id not in plain:
                raise source.error(
                    node, f"{name.id!r} in a subscript is not a loop index of the nest "
                    f"(a plain parameter)", ALLOWED,
                )
            indices.setdefault(name.id, node)
    return arrays, indices


def _walk(statements):
    for statement in statements:
        yield from ast.walk(statement)


def read_offsets(source, node, indices):
    """Offsets of an access, one an index: A[i-1, j] has (-1, 0)."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    array = node.value.id
    if len(parts) < len(indices):
        raise source.error(
            node, f"array {array!r} has {len(parts)} subscript(s) in a nest of {len(indices)} "
            "loop indices: arrays of lower rank are not supported",
            f"arrays of rank {len(indices)}",
        )
    if len(parts) > len(indices):
        raise source.error(
            node, f"array {array!r} has {len(parts)} subscripts, but only {len(indices)} loop "
            f"indices ({', '.join(indices)}) are used in subscripts: a constant subscript or a "
            "repeated index is not supported", ALLOWED,
        )
    used = [_index_and_offset(source, node, part) for part in parts]
    names = [name for name, _ in used]
    for position, (name, index) in enumerate(zip(names, indices, strict=True)):
        if names.count(name) > 1:
            raise source.error(node, f"index {name!r} is repeated: not supported", ALLOWED)
        if name != index:
            raise source.error(
                node, f"subscript {position + 1} of {array!r} uses index {name!r} where "
                f"{index!r} stands in the loop order: transposed access is not supported", ALLOWED,
            )
    return tuple(offset for _, offset in used)


def _index_and_offset(source, node, part):
    """(index name, constant) of one subscript."""
    if isinstance(part, ast.Slice):
        raise source.error(node, "a slice as a subscript is not supported", ALLOWED)
    form = _linear(part)
    if form is None:
        raise source.error(
            node, f"subscript `{source.text_of(part)}` is not index + integer constant", ALLOWED
        )
    factors, constant = form
    names = [name for name, factor in factors.items() if factor]
    if not names:
        raise source.error(
            node, f"subscript `{source.text_of(part)}` uses no loop index: a constant subscript "
            "is not supported", ALLOWED,
        )
    if len(names) > 1:
        raise source.error(
            node, f"subscript `{source.text_of(part)}` adds several loop indices: not supported",
            ALLOWED,
        )
    if factors[names[0]] != 1:
        raise source.error(
            node, f"subscript `{source.text_of(part)}` scales the loop index {names[0]!r} by "
            f"{factors[names[0]]}: not supported", ALLOWED,
        )
    return names[0], constant


def _linear(part):
    """({name: factor}, constant) of a linear expression, None for anything else."""
    if isinstance(part, ast.Name):
        return {part.id: 1}, 0
    if isinstance(part, ast.Constant) and type(part.value) is int:
        return {}, part.value
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub | ast.UAdd):
        return _scaled(_linear(part.operand), -1 if isinstance(part.op, ast.USub) else 1)
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub):
        sign = -1 if isinstance(part.op, ast.Sub) else 1
        return _sum(_linear(part.left), _scaled(_linear(part.right), sign))
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        left, right = _linear(part.left), _linear(part.right)
        if left and right and not left[0]:
            return _scaled(right, left[1])
        if left and right and not right[0]:
            return _scaled(left, right[1])
    return None


def _scaled(form, factor):
    if form is None:
        return None
    return {name: factor * value for name, value in form[0].items()}, factor * form[1]


def _sum(left, right):
    if left is None or right is None:
        return None
    factors = dict(left[0])
    for name, value in right[0].items():
        factors[name] = factors.get(name, 0) + value
    return factors, left[1] + right[1]
