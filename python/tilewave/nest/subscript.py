"""Subscripts: which parameters are arrays, tables and indices, and the offsets of each access."""

import ast
from dataclasses import dataclass

from tilewave import units
from tilewave.nest.affine import NotAffine, affine_form
from tilewave.nest.inner_loops import is_element
from tilewave.nest.pivot import pivot_of

ALLOWED = (
    "index + integer constant (i, i+1, i-2, 1+i), also of a positive multiple of the index (2*i, 2*i+1), each index at "
    "most once where the array is written; or a table, which is only read, looked up by array elements, scalars and "
    "locals (S[a[i], b[j-1]], S[i-c]), or with // and % (S[i//5, j])"
)


#: What offsets of subscripts are below: arrays have fewer elements along a dimension.
MOST_OFFSET = 2**40

#: The largest c of a subscript c*i + d.
MOST_SCALE = 2**20


@dataclass(frozen=True)
class Parameters:
    """The parameters of a nest by their roles, each in the order of the parameter list.

    ``orders`` has for each array that is no table the loop indices in its subscripts, once for each order that they
    come in: several where it is only read, or where loop `pivot` reads its row and its column of what is written.
    ``ranks`` has the number of subscripts of every array. ``wholes`` has the reads of written arrays along loops inside
    the body: for each node its dimensions that these loops go along.
    """

    arrays: tuple
    indices: tuple
    scalars: tuple
    tables: tuple
    orders: dict
    ranks: dict
    wholes: dict
    pivot: str | None = None

    def example(self, array):
        """How an array is subscripted, for messages."""
        inner = ", ".join(self.orders[array][0]) if array in self.orders else "..."
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
                f"{what} are not supported in a nest" if what[-1] == "s" else f"{what} is not supported in a nest",
                "arrays and loop indices as plain parameters, scalars as keyword-only ones",
            )
    plain = {argument.arg: argument for argument in given.args}
    scalars = tuple(argument.arg for argument in given.kwonlyargs)
    roles = _Roles(source, plain, scalars)
    for name, node in plain.items():
        if name not in roles.ranks and name not in roles.indices:
            raise source.error(
                node,
                f"parameter {name!r} is neither subscripted (an array) nor used in a subscript (a loop index)",
                "scalars as keyword-only parameters, after a *",
            )
    arrays = tuple(name for name in plain if name in roles.ranks)
    return Parameters(
        arrays,
        tuple(name for name in plain if name in roles.indices),
        scalars,
        tuple(name for name in arrays if name in roles.tables),
        {name: tuple(roles.orders[name]) for name in arrays if name in roles.orders},
        roles.ranks,
        roles.wholes,
        roles.pivot,
    )


class _Roles:
    """Hold what the subscripts of a body make of its parameters."""

    def __init__(self, source, plain, scalars):
        self.source, self.plain, self.scalars = source, plain, scalars
        self.locals = source.local_names | source.inner_names
        subscripts = [node for node in source.nodes if is_element(node)]
        subscripts.sort(key=lambda node: (node.lineno, node.col_offset))
        self.ranks, self.indices, self.tables = {}, set(), {}
        self.orders = {}  # of each array its orders, in those of the source
        self.scales = {}  # of each written array the factors of its indices
        self.wholes = {}
        for node in source.nodes:
            if isinstance(node, ast.comprehension) and {*_names_in(node.target)} & {*plain, *scalars}:
                raise source.error(node.target, "a parameter of the nest as a loop inside its body", "another name")
        self._names_in = {node: _names_in(node.slice) for node in subscripts}
        for node in subscripts:
            self._array(node)
        for node in subscripts:
            self._names(node)
        self.stores = [node for node in subscripts if isinstance(node.ctx, ast.Store)]
        written = {node.value.id for node in self.stores}
        inner = source.inner_names
        whole = [node for node in subscripts if node.value.id in written and inner & {*self._names_in[node]}]
        subscripts = [node for node in subscripts if node not in whole]
        self.lookups = {node.value.id for node in subscripts if inner & {*self._names_in[node]}}
        for node in subscripts:
            self._kind(node)
        for node in whole:
            self._whole(node)
        of_written = {n: read_access(source, n) for n in subscripts if n.value.id in written & self.orders.keys()}
        indices = [name for name in plain if name in self.indices]
        plainly = not whole and not written - self.orders.keys()
        self.pivot = pivot_of(source, indices, self.orders, of_written) if plainly else None
        for node in of_written if not self.pivot else ():
            self._order_of_written(node)

    def _array(self, node):
        if not isinstance(node.value, ast.Name):
            raise self.source.error(
                node,
                "only a name can be subscripted; a subscript of an expression is not supported",
                "A[i, j] with an array parameter A",
            )
        name, rank = node.value.id, len(subscripts_of(node))
        if name not in self.plain:
            what = "is a scalar (keyword-only)" if name in self.scalars else "is no parameter"
            raise self.source.error(
                node, f"{name!r} is subscripted, but {what}", "arrays as plain parameters of the nest"
            )
        if rank == 0:
            raise self.source.error(node, f"array {name!r} has no subscript: not supported", ALLOWED)
        if self.ranks.setdefault(name, rank) != rank:
            raise self.source.error(
                node,
                f"array {name!r} has {units.count(rank, 'subscript')} here and {self.ranks[name]} before",
                "the same number of subscripts in every access of an array",
            )

    def _names(self, node):
        """Collect the loop indices; refuse names that make a subscript neither kind."""
        for name in self._names_in[node]:
            if name in self.plain and name not in self.ranks:
                self.indices.add(name)
        if self._is_lookup(node):
            return
        for name in self._names_in[node]:
            if name not in self.indices:
                raise self.source.error(
                    node, f"{name!r} in a subscript is not a loop index of the nest (a plain parameter)", ALLOWED
                )

    def _is_lookup(self, node):
        """Return whether an element, a local, a scalar, // or % is among the subscripts, or no index."""
        indices = self.plain.keys() - self.ranks.keys()
        if any(isinstance(part, ast.FloorDiv | ast.Mod) for part in ast.walk(node.slice)):
            return True
        if set(self._names_in[node]) & (self.ranks.keys() | self.locals | set(self.scalars)):
            return True
        return not indices & set(self._names_in[node])

    def _kind(self, node):
        name = node.value.id
        if name in self.lookups or self._is_lookup(node):
            self.tables.setdefault(name, node)
        else:
            self.orders.setdefault(name, {})[read_access(self.source, node)[0]] = True
        if name in self.tables and name in self.orders:
            raise self.source.error(
                node,
                f"array {name!r} is looked up as a table in one place and subscripted by loop indices in another",
                "one of the two (an array that is only read can be given twice, under two names)",
            )

    def _whole(self, node):
        """Note a read of a written array along loops inside the body: as of the element at the point, there."""
        name, inner = node.value.id, self.source.inner_names
        axes = next(iter(self.orders.get(name, ())), None)
        used = [
            None if inner & {*_names_in(part)} else _linear(self.source, node, part) for part in subscripts_of(node)
        ]
        along = tuple(d for d, each in enumerate(used) if each is None)
        outside = axes and [each is None or each[0] == axis for each, axis in zip(used, axes, strict=True)]
        indices = [each for each in self.plain if each in self.indices]
        last = axes and [axes[d] for d in along] == indices[-1:]
        if not last or not all(outside) or any(each and each[2] > 1 for each in used):
            raise self.source.error(
                node,
                f"array {name!r} is written, and read along a loop inside the body that is not in place of the last "
                f"loop index, {indices[-1]!r}, alone: not supported",
                f"as it is written, {name}[{', '.join(axes or indices)}], at integer distances, with the loop inside "
                f"the body in place of {indices[-1]!r}; the loops of the nest in another order; or a run for each "
                "part, a diagonal say, that reads what earlier runs have written as another array, which is only read",
            )
        # There it is as the element that is written, which ends the loops where the other one must not.
        _, offsets, phases = read_access(self.source, next(each for each in self.stores if each.value.id == name))
        if phases:
            raise self.source.error(
                node,
                f"array {name!r} is written with multiples of {', '.join(axes)}, and read along a loop inside the "
                "body: not supported",
                f"{name}[{', '.join(axes)}] as it is written, and bounds that have a stride: over={{...}}",
            )
        there = zip(used, offsets, strict=True)
        self.source.accesses[node] = axes, tuple(each[1] if each else offset for each, offset in there), ()
        self.wholes[node] = along

    def _order_of_written(self, node):
        """Refuse a second order, or an index that is repeated: no vector tells how points then depend on each other."""
        name, (axes, _, phases) = node.value.id, read_access(self.source, node)
        known = next(iter(self.orders[name]))
        scales = tuple(scale for scale, _ in phases) or (1,) * len(axes)
        before = self.scales.setdefault(name, scales)
        if axes == known and scales != before:
            raise self.source.error(
                node,
                f"array {name!r} is written, and its subscripts multiply {', '.join(axes)} by "
                f"{', '.join(map(str, scales))} here and by {', '.join(map(str, before))} before: not supported",
                f"the same factors in every access of {name!r}; arrays that are only read may have several",
            )
        if axes != known:
            raise self.source.error(
                node,
                f"array {name!r} is written, and subscripted by {', '.join(axes)} here and by "
                f"{', '.join(known)} before: transposed access of an array that is written is not supported",
                f"the same indices in the same order in every access of {name!r}. Where its values from before the run "
                f"are meant, a copy of {name!r} may be given as another array, which may be read in any order; the "
                "copy does not see what the run writes. Where values that the run writes are meant, a nest of three "
                "loops k, i, j that writes at [i, j] may read row k and column k: [k, j], [i, k], [k, k]",
            )
        for index in axes:
            if axes.count(index) > 1:
                raise self.source.error(
                    node,
                    f"index {index!r} is repeated in a subscript of {name!r}, which is written: not supported",
                    f"{ALLOWED}; arrays that are only read may repeat an index (B[{index}, {index}])",
                )


def _names_in(node):
    """Names in a subscript in source order, but for those of functions."""
    functions = {id(part) for call in ast.walk(node) if isinstance(call, ast.Call) for part in ast.walk(call.func)}
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and id(part) not in functions]


def subscripts_of(node):
    """The subscripts of an access."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def read_access(source, node):
    """(index names, offsets, phases) of an access: A[i-1, j] has (i, j), (-1, 0) and ().

    A[2*i+3, j] reads every second element from element 1 on: its phases are ((2, 1), (1, 0)), its offsets (1, 0).
    """
    if found := source.accesses.get(node):
        return found
    used = [_linear(source, node, part) for part in subscripts_of(node)]
    scaled = any(scale > 1 for _, _, scale in used)
    found = source.accesses[node] = (
        tuple(name for name, _, _ in used),
        tuple(constant // scale for _, constant, scale in used),
        tuple((scale, constant % scale) for _, constant, scale in used) if scaled else (),
    )
    return found


def place_of(source, node):
    """The place that an access stands for: (array, offsets, index names, phases)."""
    names, offsets, phases = read_access(source, node)
    return node.value.id, offsets, names, phases


def _linear(source, node, part):
    """(index name, constant, factor) of one subscript."""

    def refused(what, allowed=ALLOWED):
        return source.error(node, f"subscript `{source.text_of(part)}` {what}", allowed)

    if isinstance(part, ast.Slice):
        raise source.error(node, "a slice as a subscript is not supported", ALLOWED)
    form = linear_form(part)
    if form is None:
        raise refused("is not index + integer constant")
    factors, constant = form
    names = [name for name, factor in factors.items() if factor]
    if not names:
        raise refused(
            "uses no loop index: a constant subscript is not supported",
            f"{ALLOWED}. Elements at fixed subscripts, receivers say, are recorded by record= of tilewave.run; or a "
            "whole line of them under `if j == 5:`",
        )
    if len(names) > 1:
        raise refused("adds several loop indices: not supported")
    scale = factors[names[0]]
    if not 1 <= scale <= MOST_SCALE:
        view = "; an array that is read backwards may be given as a view of it (A[::-1])" if scale < 0 else ""
        raise refused(
            f"scales the loop index {names[0]!r} by {scale}: not supported", f"factors from 1 to {MOST_SCALE}{view}"
        )
    if abs(constant) >= MOST_OFFSET:
        raise refused(f"is {abs(constant)} away from the point: not supported", "offsets below 2**40")
    return names[0], constant, scale


def linear_form(part):
    """({name: factor}, constant) of a linear expression, None for anything else."""
    try:
        form = affine_form(part)
    except NotAffine:
        return None
    return form.terms, form.constant


def names_outside(statements, tables):
    """Names that appear outside the subscripts of arrays; those of tables are computed with."""
    used, waiting = set(), [*statements]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            used.add(node.id)
        if not is_element(node) or node.value.id in tables:
            waiting.extend(ast.iter_child_nodes(node))
    return used
