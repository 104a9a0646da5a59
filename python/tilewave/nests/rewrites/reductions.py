"""What a run reduces: from ``reduce=`` to the core's reductions, and from their values to the results."""

import copy
import dataclasses

import numpy as np

from tilewave.errors import ConfigError, shown
from tilewave.kernel.compile import find_types
from tilewave.kernel.rows.extremes import Best
from tilewave.nest.changed import remembered
from tilewave.nest.reduced import Expression, ReducedNest, RowValue
from tilewave.nests.call.reduce_functions import Reduction, result_dtype, value_of


class Reductions:
    """What a run reduces.

    Attributes
    ----------
    asked : dict
        From the names of the results to (Reduction, dtype of the result, the core's reductions: one, of a complex
        result one for each part).
    core : list
        Those of the core, each once: (operation, dtype, place, loop index of each subscript, its offset, the place
        that says which points count, whether the position of a max or min is wanted).
    values : tuple of RowValue
    nest : Nest
        The one that is compiled.
    backwards : int
        Time steps, where time runs backwards: the core counts from the last, in places too.
    """

    backwards = 0

    def __init__(self, nest, asked=None, values=()):
        # max and argmax are found together
        places = {part[:-1] for _, _, parts in (asked or {}).values() for part in parts if part[-1]}
        self.asked = {
            name: (r, dtype, tuple((*part[:-1], part[-1] or part[:-1] in places) for part in parts))
            for name, (r, dtype, parts) in (asked or {}).items()
        }
        self.core = list(dict.fromkeys(part for _, _, parts in self.asked.values() for part in parts))
        self.values = tuple(values)
        self.nest = ReducedNest(nest, values) if values else nest

    def __bool__(self):
        return bool(self.core)

    def bests(self):
        """Of which places a row's largest or smallest value is wanted, as `Best` of each. Where the position is wanted
        as well, only those of integers: the row that has it is searched.
        """
        places, found = self.nest.places, {}
        for op, dtype, place, _, _, counts, where in self.core:
            if op == "sum" or not places[place].written or where and (counts >= 0 or np.dtype(dtype).kind == "f"):
                continue
            found[place, op] = Best(place, op, self._wants_only_best(place))
            if counts >= 0:
                found[counts, "max"] = Best(counts, "max", self._wants_only_best(counts))
        return tuple(found.values())

    def _wants_only_best(self, place):
        """Whether a place is a row value of which nothing but its largest or smallest is wanted."""
        used = [where or op == "sum" for op, _, at, _, _, counts, where in self.core if place in (at, counts)]
        return place >= len(self.nest.places) - len(self.values) and not any(used)

    def for_core(self, bests):
        """Those of the core, each with its number among the bests that the kernel finds, or -1, and the number of the
        one that says whether any point counts.
        """
        numbers = {(best.place, best.op): k for k, best in enumerate(bests)}
        return [(*each, numbers.get((each[2], each[0]), -1), numbers.get((each[5], "max"), -1)) for each in self.core]

    def bytes_of_values(self, bests):
        """Of an item of each value, 0 for those that the kernel does not store."""
        first = len(self.nest.places) - len(self.values)
        unstored = {best.place - first for best in bests if best.alone}
        return [0 if k in unstored else value.dtype.itemsize for k, value in enumerate(self.values)]

    def results(self, reduced):
        """Names to values; `reduced` has (any, at, bytes) of each of `core`."""
        found = dict(zip(self.core, reduced, strict=True))
        if self.backwards:
            found = {part: (has, self._as_given(part, at), data) for part, (has, at, data) in found.items()}
        return {
            name: value_of(r, dtype, found[parts[0]])
            if len(parts) == 1
            else dtype.type(complex(*(value_of(r, np.dtype("f8"), found[part]) for part in parts)))
            for name, (r, dtype, parts) in self.asked.items()
        }

    def _as_given(self, part, at):
        """A place whose time is counted from the first step."""
        return (at[0] + self.backwards, *at[1:]) if at and part[3][0] < 0 else at


def reduced(call):
    """A call with the `Reductions` that it asks for, and the nest that computes them.

    Raises
    ------
    ConfigError
        For what is no dict of reductions, or has not one number a point.
    """
    if call.reduce and call.without("reductions"):
        raise ConfigError(
            "reduce= was given, and TILEWAVE_WITHOUT switches reductions off; allowed: to leave 'reductions' out of it"
        )
    nest, reduce = call.nest, call.reduce
    if reduce is not None:
        require_reductions(reduce)
    if not reduce and not nest.written and not nest.written_tables:
        raise ConfigError(
            f"nest {nest.name!r} writes no array; allowed: A[i, j] = ..., once or more; or reduce= of what it "
            "computes, reduce={'r': tw.sum('d')}"
        )
    if not reduce:
        return dataclasses.replace(call, reductions=Reductions(nest))
    key = "reductions", *reduce.items(), call.types(), nest.code_signature()
    found = remembered(nest, key, lambda: _Description(nest, call.dtypes, call.scalars, call.captured).of(reduce))
    if call.loops.backwards:
        found = copy.copy(found)
        found.backwards = call.loops.backwards
    return dataclasses.replace(call, reductions=found)


def require_reductions(reduce):
    """Refuse what is no dict from names to reductions.

    Raises
    ------
    ConfigError
    """
    if isinstance(reduce, dict) and all(isinstance(r, Reduction) and isinstance(n, str) for n, r in reduce.items()):
        return
    raise ConfigError(
        f"reduce: given {shown(reduce)}; "
        "allowed: a dict from names to tw.max, min, argmax, argmin, sum, dot or norm of the "
        "name of an array or a local, or of an expression of them"
    )


class _Description:
    """The core's form of some reductions, and the values of rows that they need."""

    def __init__(self, nest, dtypes, scalars, captured):
        self.nest, self.dtypes, self.scalars, self.captured = nest, dtypes, scalars, captured
        self.values = {}  # by form and texts

    def of(self, reduce):
        """Of all that are asked for."""
        parts = {
            name: [Expression(self.nest, text, f"reduce: {name}: {r}") for text in r.texts]
            for name, r in reduce.items()
        }
        computed = [part for each in parts.values() for part in each if part.array is None]
        if computed:
            probes = [RowValue(k, "value", (part.text,), None, (part,)) for k, part in enumerate(computed)]
            find_types(ReducedNest(self.nest, probes), self.dtypes, self.scalars, self.captured)
        asked = {name: self._asked(r, parts[name]) for name, r in reduce.items()}
        return Reductions(self.nest, asked, self.values.values())

    def _asked(self, r, parts):
        dtypes = [self._dtype(part) for part in parts]
        of_complex = any(dtype.kind == "c" for dtype in dtypes)
        if of_complex and r.kind not in ("sum", "dot", "norm"):
            raise ConfigError(
                f"{parts[0].what}: its values are complex, which have no order; allowed: sum, dot, norm, and "
                f"{r.kind} of a part or the magnitude: {r.kind}('abs({parts[0].text})')"
            )
        result = result_dtype(r, dtypes)
        op, form = r.operation
        nest, all_axes = self.nest, tuple(range(len(self.nest.indices)))
        place = parts[0].place() if parts[0].array and len(parts) == 1 else None
        axes = all_axes if place is None else tuple(nest.indices.index(name) for name in place.axes)
        shift = (0,) * len(axes) if place is None else place.offsets
        own = place and (place.written or nest.written and axes == all_axes)
        if nest.backwards and axes[:1] == (0,):
            axes, shift = (-1, *axes[1:]), (-shift[0], *shift[1:])
        if of_complex and r.kind != "norm":
            forms = {"sum": ("real", "imag"), "dot": ("real product", "imag product")}[r.kind]
            return r, result, tuple(self._of_rows(op, each, parts, np.dtype("f8"), axes, shift) for each in forms)
        if own and form == "value" and not parts[0].partly:
            return r, result, ((op, dtypes[0].name, nest.places.index(place), axes, shift, -1, r.is_place),)
        return r, result, (self._of_rows(op, form, parts, _stored_dtype(r, dtypes), axes, shift, r.is_place),)

    def _of_rows(self, op, form, parts, stored, axes, shift, where=False):
        """The core's reduction of a value that rows store."""
        if op == "sum" or not any(part.partly for part in parts):
            return op, stored.name, self._place(form, parts, stored), axes, shift, -1, where
        counts = self._place("counts", parts, np.dtype("u1"))
        return op, stored.name, self._place(form, parts, stored, "" if where else op), axes, shift, counts, where

    def _place(self, form, parts, dtype, otherwise=""):
        key = form, tuple(part.text for part in parts), dtype, otherwise
        if key not in self.values:
            self.values[key] = RowValue(len(self.values), form, key[1], dtype, tuple(parts), otherwise)
        return len(self.nest.places) + self.values[key].number

    def _dtype(self, part):
        """That NumPy has for all types that an expression may be of."""
        if part.array is not None:
            return self.dtypes[part.array]
        if not part.types:
            raise ConfigError(
                f"{part.what}: no point comes to the end of the body; allowed: a body that some points do"
            )
        return np.result_type(*(kind.dtype for kind in part.types))


def _stored_dtype(r, dtypes):
    """Of the values that the core reduces."""
    if r.kind == "norm":
        return np.dtype("f8")
    if r.kind == "dot":
        return np.dtype("f8" if any(dtype.kind == "f" for dtype in dtypes) else "i8")
    return np.dtype("u1") if dtypes[0].kind == "b" else dtypes[0]
