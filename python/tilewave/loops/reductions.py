"""Names that all points join their values to: ``m = max(m, x)``, ``if x < m: m = x``, ``count += 1``, ``found = True``.

A nest finds them in any order, so they must not depend on it: sums of floats are exact, or in order. Of zeros the
first in the order of the loops counts, whose sign another order could lose: values are zeros of one sign, or none of
them is joined.
"""

import ast
import builtins
import copy
import numbers
from dataclasses import dataclass

import numpy as np

from tilewave.errors import ConfigError
from tilewave.loops.tree import Stays
from tilewave.nest.inner_loops import is_element
from tilewave.nest.names import MISSING
from tilewave.nest.parse import parse
from tilewave.nest.walks import assigned, is_stored, nodes_in

OPERATIONS = {"max": ast.Gt, "min": ast.Lt}


@dataclass(frozen=True)
class Reduction:
    """What a statement does to a name.

    Attributes
    ----------
    name : str
    kind : str
        "max", "min", "add" or "flag" (a constant is assigned under a condition).
    node : ast.stmt
    value : ast.expr
    """

    name: str
    kind: str
    node: ast.stmt
    value: ast.expr


def are_pythons(region):
    """Return whether the names by which reductions are known mean what they usually mean."""
    usual = {**{name: getattr(builtins, name) for name in ("max", "min", "abs")}, "np": np}
    found = {name: region.scope.lookup(name) for name in usual}
    return all(found[name] in (usual[name], MISSING) and name not in region.local_names for name in usual)


def reductions_of(groups, scalars, apart):
    """The reductions of a region, by name, several where conditions have cut loops: no other statement has the name."""
    statements = [part for group in groups for part in group.statements]
    found, used = {}, {}
    for node in nodes_in(*statements):
        if isinstance(node, ast.Name):
            used[node.id] = used.get(node.id, 0) + 1
        if isinstance(node, ast.stmt) and (reduction := _reduction(node)) and reduction.name in scalars:
            found.setdefault(reduction.name, []).append(reduction)
    return {
        name: each
        for name, each in found.items()
        if used[name] == sum(_is(node, name) for node in nodes_in(*(one.node for one in each)))
        and (len(each) == 1 or apart or each[0].kind == "flag")
        and len({(one.kind, ast.dump(one.value) if one.kind == "flag" else "") for one in each}) == 1
    }


def _reduction(node):
    if (name := assigned(node)) is not None:
        value = node.value
        if isinstance(value, ast.Constant) and type(value.value) in (bool, int):
            return Reduction(name, "flag", node, value)
        called = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else None
        if called in OPERATIONS and len(value.args) == 2 and not value.keywords and _is(value.args[0], name):
            return None if _has(value.args[1], name) else Reduction(name, called, node, value.args[1])
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and _is(value.left, name):
            return None if _has(value.right, name) else Reduction(name, "add", node, value.right)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add | ast.Sub):
        value = node.value if isinstance(node.op, ast.Add) else ast.UnaryOp(ast.USub(), node.value)
        return None if _has(value, node.target.id) else Reduction(node.target.id, "add", node, value)
    if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
        return _of_choice(node, node.test, node.body[0])
    return None


def _of_choice(node, test, inner):
    """``if x > m: m = x``, and ``if m < x: m = x``."""
    name = assigned(inner)
    if name is None or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    sides = test.left, test.comparators[0]
    turned = _is(sides[0], name)
    value, other = sides[::-1] if turned else sides
    for kind, operator in OPERATIONS.items():
        wanted = {ast.Gt: ast.Lt, ast.Lt: ast.Gt}[operator] if turned else operator
        if isinstance(test.ops[0], wanted) and _is(other, name) and ast.dump(value) == ast.dump(inner.value):
            return None if _has(value, name) else Reduction(name, kind, node, value)
    return None


def _is(node, name):
    return isinstance(node, ast.Name) and node.id == name


def _has(node, name):
    return any(_is(each, name) for each in ast.walk(node))


class Types:
    """The names of the dtypes that expressions surely have, None where that is not known.

    Parameters
    ----------
    statements : list of ast.stmt
        Of the group: of names that are assigned once, the value tells.
    dtypes : dict
        Of arrays.
    given : dict
        Numbers by name.
    exact : bool
        Sums of floats are exact, in any order.
    """

    def __init__(self, statements, dtypes, given, exact):
        self.dtypes, self.given, self.values, self.exact = dtypes, given, {}, exact
        self._known = {}  # of names
        self.certain = {id(part) for part in statements}
        nodes = nodes_in(*statements)
        stores = [node.id for node in nodes if is_stored(node)]
        self.stored = {*stores}
        for node in nodes:
            name = assigned(node)
            if stores.count(name) == 1 and not _has(node.value, name):
                self.values[name] = node.value

    def of(self, node):
        """The name of the dtype of a NumPy scalar; "weak" for a Python number, which changes no float64."""
        if is_element(node):
            return self.dtypes[node.value.id].name
        if isinstance(node, ast.Constant):
            return "weak" if type(node.value) in (int, float) else None
        if isinstance(node, ast.Name):
            if node.id in self.stored:
                return self._of_name(node.id)
            return "weak" if type(self.given.get(node.id)) in (int, float) else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            return self.of(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            return self._joined(self.of(node.left), self.of(node.right), isinstance(node.op, ast.Div))
        if isinstance(node, ast.Call) and is_magnitude(node) and len(node.args) == 1:
            return self.of(node.args[0])
        return None

    def _of_name(self, name):
        if name not in self._known:
            self._known[name] = None  # of a value that is computed from itself
            self._known[name] = self.of(self.values[name]) if name in self.values else None
        return self._known[name]

    def _joined(self, one, other, divides):
        if one is None or other is None:
            return None
        if "float64" in (one, other) and {one, other} <= {"float64", "weak"}:
            return "float64"
        return "int64" if one == other == "int64" and not divides else None


def is_magnitude(node):
    """Return whether an expression is an absolute value."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "abs",
        "np.abs",
        "np.absolute",
        "np.fabs",
        "math.fabs",
    )


class Joined:
    """One reduction in a nest.

    Parameters
    ----------
    reduction : Reduction
    number : int
        Among those of the nest.
    types : Types

    Raises
    ------
    Stays
        Where its result could depend on the order of the points.
    """

    def __init__(self, reduction, number, types):
        self.name, self.kind, self.reduction = reduction.name, reduction.kind, reduction
        self.local, self._value, self.first = f"tw_joined_{number}", f"tw_value_{number}", f"tw_first_{number}"
        self.constant = reduction.value.value if self.kind == "flag" else None
        self.dtype = types.of(reduction.value)
        self.is_exact, self.always = False, id(reduction.node) in types.certain
        if self.kind == "add":
            plain = isinstance(reduction.value, ast.Constant) and type(reduction.value.value) is int
            if not plain or type(types.given.get(self.name)) is not int:
                if not types.exact or self.dtype not in ("float64", "int64"):
                    raise Stays(f"{self.name!r} is a sum in the order of the loops")
                self.is_exact = True
        elif self.kind != "flag":
            if self.dtype not in ("float64", "int64"):
                raise Stays(f"the type of {self.name!r} is not known before the loops")
            value = reduction.value
            self._value_of = types.values.get(value.id, value) if isinstance(value, ast.Name) else value

    def check(self, first):
        """Raise ConfigError where the result could depend on the order of points, given the name's value before."""
        if self.kind not in OPERATIONS and not self.is_exact:
            return
        if first is None or isinstance(first, complex) or first != first:
            raise ConfigError(f"{self.name!r} is no number before the loops")
        if abs(first) > 2**53 and isinstance(first, numbers.Integral) and self.dtype == "float64":
            raise ConfigError(f"{self.name!r} is an int beyond 2**53")
        if self.dtype == "int64" and (not isinstance(first, numbers.Integral) or abs(first) >= 2**63):
            raise ConfigError(f"{self.name!r} is no int of 64 bits before the loops")
        if self.is_exact:
            return
        signed = first < 0 if self.kind == "max" else first > 0
        if self.dtype == "float64" and signed and not is_magnitude(self._value_of):
            raise ConfigError(f"of zeros the first in the order of the loops counts for {self.name!r}")

    def locals(self):
        """The names that the statements assign in a point, and the scalar with the value before."""
        return {self.local, self._value, self.first}

    def statements(self):
        """What stands in the place of the reduction's statement."""
        if self.kind in OPERATIONS:  # NaN is not better than the value before
            text = f"{self._value} {'>' if self.kind == 'max' else '<'} {self.first}"
            better = parse(f"{self._value} if {text} else {self.first}", mode="eval").body
            value = ast.Assign([ast.Name(self._value, ast.Store())], copy.deepcopy(self.reduction.value), lineno=0)
            return [value, ast.Assign([ast.Name(self.local, ast.Store())], better, lineno=0)]
        value = ast.Constant(1) if self.kind == "flag" else copy.deepcopy(self.reduction.value)
        return [ast.Assign([ast.Name(self.local, ast.Store())], value, lineno=0)]

    def reductions(self):
        """The functions of `reduce` and the locals that they take, by the names of their results."""
        counted = {f"{self.local} counted": ("max", self.local)} if self.is_exact and not self.always else {}
        return {self.local: (self.kind if self.kind in OPERATIONS else "sum", self.local), **counted}

    def result(self, results, before):
        """The value of the name, given what the nest has found and the value before; None: it is as it was."""
        found = results[self.local]
        if self.is_exact:
            if results.get(f"{self.local} counted", 0) is None:
                return None
            return np.float64(before + found) if self.dtype == "float64" else np.array([before, found]).sum()
        if self.kind == "add":
            return before + int(found)
        if self.kind == "flag":
            return self.constant if found else None
        better = found is not None and (found > before if self.kind == "max" else found < before)
        return np.dtype(self.dtype).type(found) if better else None

    def scalars(self, given):
        """The scalar with the value before the loops, of the type of the values that are joined to it."""
        return {self.first: np.dtype(self.dtype).type(given[self.name])} if self.kind in OPERATIONS else {}


def replaced(statements, joined):
    """Statements with those of reductions replaced."""
    by_node = {id(each.reduction.node): each for each in joined}
    new = []
    for node in statements:
        if id(node) in by_node:
            new += by_node[id(node)].statements()
        elif isinstance(node, ast.If):
            node = copy.copy(node)
            node.body, node.orelse = replaced(node.body, joined), replaced(node.orelse, joined)
            new.append(node)
        else:
            new.append(node)
    return new
