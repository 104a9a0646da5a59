"""Subscripts: which parameters are arrays, tables and indices, and the offsets of each access."""

import ast
from dataclasses import dataclass

ALLOWED = (
    "index + integer constant (i, i+1, i-2, 1+i), each index at most once; or a table, looked up "
    "by array elements, scalars and locals (S[a[i], b[j-1]])"
)


@dataclass(frozen=True)
class Parameters:
    """The parameters of a nest by their roles, each in the order of the parameter list.

    ``axes`` has the loop indices in the subscripts of each array that is no table; ``ranks`` the
    number of subscripts of every array.
    """

    arrays: tuple
    indices: tuple
    scalars: tuple
    tables: tuple
    axes: dict
    ranks: dict

    def example(self, array):
        """How an array is subscripted, for messages."""
        inner = ", ".join(self.axes[array]) if array in self.axes else "..."
        return f"{array}[{inner}]"


def read_parameters(source):
    """Sort the parameters of a nest into arrays, tables, indices and scalars."""
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
    roles = _Roles(source, plain, scalars)
    for name, node in plain.items():
        if name not in roles.ranks and name not in roles.indices:
            raise source.error(
                node,
                f"parameter {name!r} is neither subscripted (an array) "
                "nor used in a subscript (a loop index)",
                "scalars as keyword-only parameters, after a *",
            )
    arrays = tuple(name for name in plain if name in roles.ranks)
    return Parameters(
        arrays, tuple(name for name in plain if name in roles.indices), scalars,
        tuple(name for name in arrays if name in roles.tables),
        {name: roles.axes[name] for name in arrays if name in roles.axes}, roles.ranks,
    )


class _Roles:
    """What the subscripts of a body make of its parameters."""

    def __init__(self, source, plain, scalars):
        self.source, self.plain, self.scalars = source, plain, scalars
        self.locals = local_names(source)
        subscripts = [node for node in _walk(source.tree.body) if isinstance(node, ast.Subscript)]
        subscripts.sort(key=lambda node: (node.lineno, node.col_offset))
        self.ranks, self.indices, self.axes, self.tables = {}, set(), {}, {}
        for node in subscripts:
            self._array(node)
        for node in subscripts:
            self._names(node)
        for node in subscripts:
            self._kind(node)

    def _array(self, node):
        if not isinstance(node.value, ast.Name):
            raise self.source.error(
                node, "only a name can be subscripted; a subscript of an expression is "
                "not supported", "A[i, j] with an array parameter A"
            )
        name, rank = node.value.id, len(subscripts_of(node))
        if name not in self.plain:
            what = "is a scalar (keyword-only)" if name in self.scalars else "is no parameter"
            raise self.source.error(
                node, f"{name!r} is subscripted, but {what}",
                "arrays as plain parameters of the nest",
            )
        if rank == 0:
            raise self.source.error(node, f"array {name!r} has no subscript: not supported", ALLOWED)
        if self.ranks.setdefault(name, rank) != rank:
            raise self.source.error(
                node, f"array {name!r} has {rank} subscript(s) here and {self.ranks[name]} before",
                "the same number of subscripts in every access of an array",
            )

    def _names(self, node):
        """Collect the loop indices; refuse names that make a subscript neither kind."""
        for name in _names_in(node.slice):
            if name in self.plain and name not in self.ranks:
                self.indices.add(name)
        if self._is_lookup(node):
            return
        for name in _names_in(node.slice):
            if name not in self.indices:
                raise self.source.error(
                    node, f"{name!r} in a subscript is not a loop index of the nest "
                    f"(a plain parameter)", ALLOWED,
                )

    def _is_lookup(self, node):
        """Whether an element, a local, or a scalar by itself is among the subscripts, or no index."""
        indices = self.plain.keys() - self.ranks.keys()
        for part in subscripts_of(node):
            names = set(_names_in(part))
            if names & (self.ranks.keys() | self.locals) or names & set(self.scalars) and \
                    not names & indices:
                return True
        return not indices & set(_names_in(node.slice))

    def _kind(self, node):
        name = node.value.id
        if self._is_lookup(node):
            self.tables.setdefault(name, node)
        else:
            axes, _ = read_access(self.source, node)
            known = self.axes.setdefault(name, axes)
            if known != axes:
                raise self.source.error(
                    node, f"array {name!r} is subscripted by {', '.join(axes)} here and by "
                    f"{', '.join(known)} before: transposed access is not supported",
                    f"the same indices in the same order in every access of {name!r} (an array that "
                    "is only read can be given twice, under two names)",
                )
        if name in self.tables and name in self.axes:
            raise self.source.error(
                node, f"array {name!r} is looked up as a table in one place and subscripted by loop "
                "indices in another", "one of the two (an array that is only read can be given "
                "twice, under two names)",
            )


def local_names(source):
    """The names that a body assigns."""
    return {node.id for node in _walk(source.tree.body)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _walk(statements):
    for statement in statements:
        yield from ast.walk(statement)


def _names_in(node):
    """Names in a subscript in source order, but for those of functions."""
    functions = {id(part) for call in ast.walk(node) if isinstance(call, ast.Call)
                 for part in ast.walk(call.func)}
    return [part.id for part in ast.walk(node)
            if isinstance(part, ast.Name) and id(part) not in functions]


def subscripts_of(node):
    """The subscripts of an access."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def read_access(source, node):
    """(index names, offsets) of an access: A[i-1, j] has (i, j) and (-1, 0)."""
    used = [_index_and_offset(source, node, part) for part in subscripts_of(node)]
    names = tuple(name for name, _ in used)
    for name in names:
        if names.count(name) > 1:
            raise source.error(node, f"index {name!r} is repeated: not supported", ALLOWED)
    return names, tuple(offset for _, offset in used)


def _index_and_offset(source, node, part):
    """(index name, constant) of one subscript."""
    if isinstance(part, ast.Slice):
        raise source.error(node, "a slice as a subscript is not supported", ALLOWED)
    form = linear_form(part)
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


def linear_form(part):
    """({name: factor}, constant) of a linear expression, None for anything else."""
    if isinstance(part, ast.Name):
        return {part.id: 1}, 0
    if isinstance(part, ast.Constant) and type(part.value) is int:
        return {}, part.value
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub | ast.UAdd):
        return _scaled(linear_form(part.operand), -1 if isinstance(part.op, ast.USub) else 1)
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub):
        sign = -1 if isinstance(part.op, ast.Sub) else 1
        return _sum(linear_form(part.left), _scaled(linear_form(part.right), sign))
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        left, right = linear_form(part.left), linear_form(part.right)
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


def names_outside(statements, tables):
    """Names that appear outside the subscripts of arrays; those of tables are computed with."""
    used, waiting = set(), [*statements]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            used.add(node.id)
        if not isinstance(node, ast.Subscript) or node.value.id in tables:
            waiting.extend(ast.iter_child_nodes(node))
    return used
