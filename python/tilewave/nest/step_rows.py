"""Arrays with a row for several time steps that a body writes: ``w[t // 5, i] = u[t, i]``."""

import ast
import copy

import numpy as np

from tilewave.errors import ConfigError
from tilewave.nest.subscript import linear_form, subscripts_of
from tilewave.nest.walks import located

#: What the subscript consists of.
_PARTS = (ast.BinOp, ast.UnaryOp, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


def step_rows(source):
    """The first subscripts of arrays that are written at quotients or remainders of time, and a tree with time steps in
    their place.

    While the subscript has one value, such an array is to the body what an array without time is: each time step finds
    there what the step before has left. So ``w[t // 5, i]`` is ``w[t+1, i]`` for as long.

    Parameters
    ----------
    source : Source

    Returns
    -------
    rows : dict
        From names to subscripts, as ``ast.expr``.
    tree : ast.FunctionDef
        That of the source, where no array is written so.

    Raises
    ------
    ConfigError
        Where such an array has several of these subscripts.
    """
    nodes = [node for node in source.nodes if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)]
    plain = [argument.arg for argument in source.tree.args.args]
    time = next((name for name in plain if all(node.value.id != name for node in nodes)), None)
    others = {*plain, *source.local_names, *source.inner_names} - {time}
    written = [node for node in nodes if isinstance(node.ctx, ast.Store)]
    rows = {}
    for node in written:
        if len(subscripts_of(node)) > 1 and _is_row(subscripts_of(node)[0], time, others):
            rows.setdefault(node.value.id, subscripts_of(node)[0])
    if not rows:
        return {}, source.tree
    back = any(linear_form(subscripts_of(node)[0]) == ({time: 1}, -1) for node in written)
    for node in nodes:
        row = rows.get(node.value.id)
        if row is not None and ast.dump(subscripts_of(node)[0]) != ast.dump(row):
            raise source.error(
                node,
                f"{node.value.id!r} is written at `{source.text_of(row)}`, a row for several time steps, and has "
                "another first subscript here",
                "that one in every access; values of other rows in a nest of its own, after the run",
            )
    return rows, _Steps(rows, time, -1 if back else 1).visit(copy.deepcopy(source.tree))


def check_time(source, rows, is_time):
    """Refuse such arrays where the first loop index is no time.

    Raises
    ------
    ConfigError
    """
    for name, part in () if is_time else rows.items():
        raise source.error(
            part,
            f"{name!r} is written at a row for several time steps, and the first loop index is no time",
            f"a nest whose first index is the first subscript of what it writes, at +1, beside {name!r}; what every "
            "k-th row of another array leaves, in a nest with that row as its index: A[b, i] = B[k*b, i]",
        )


def _is_row(part, time, others):
    """Return whether a subscript depends on time and on nothing else that changes in a run, and is not linear."""
    nodes = [*ast.walk(part)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    divided = any(isinstance(node, ast.FloorDiv | ast.Mod) for node in nodes)
    return is_of_time(part, others) and divided and time in names


def is_of_time(part, others):
    """Return whether it is made of integers and of names that are none of these."""
    nodes = [*ast.walk(part)]
    numbers = all(type(node.value) is int for node in nodes if isinstance(node, ast.Constant))
    parts = all(isinstance(node, (*_PARTS, ast.Constant, ast.Name, ast.Load)) for node in nodes)
    return parts and numbers and not any(isinstance(node, ast.Name) and node.id in others for node in nodes)


class _Steps(ast.NodeTransformer):
    """Puts the next time step in place of the first subscripts of arrays."""

    def __init__(self, rows, time, sign):
        self._rows, self._time, self._sign = rows, time, sign

    def visit_Subscript(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in self._rows:
            step = ast.BinOp(ast.Name(self._time, ast.Load()), ast.Add(), ast.Constant(self._sign))
            node.slice.elts[0] = located(step, node.slice.elts[0])
        return node


def values_of(nest, name, times, scalars):
    """The row of an array in each of some time steps.

    Raises
    ------
    ConfigError
        Where a number in the subscript is no integer, or 0 where it divides.
    """
    return of_time(nest, nest.rows[name], times, scalars, f"writes {name!r} at")


def of_time(nest, part, times, scalars, does):
    """The value of an expression in each of some time steps; `does`: what the nest does with it.

    Raises
    ------
    ConfigError
        As `values_of`.
    """
    numbers = {}
    for node in ast.walk(part):
        if isinstance(node, ast.Name) and node.id != nest.indices[0]:
            value = scalars[node.id] if node.id in scalars else nest.scope.resolve(node)
            if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
                raise ConfigError(
                    f"nest {nest.name!r} {does} `{nest.source.text_of(part)}`: {node.id} is {value!r}; allowed: an int"
                )
            numbers[node.id] = np.int64(value)
    code = compile(ast.fix_missing_locations(ast.Expression(copy.deepcopy(part))), nest.source.file, "eval")
    try:
        with np.errstate(all="raise"):
            return eval(code, {"__builtins__": {}, **numbers, nest.indices[0]: times})
    except (ArithmeticError, OverflowError) as error:
        raise ConfigError(
            f"nest {nest.name!r} {does} `{nest.source.text_of(part)}`: {error}; allowed: a divisor that is not 0"
        ) from None
