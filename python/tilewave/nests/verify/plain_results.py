"""Reductions of what the points of plain loops compute."""

import array
import ast
import math
import sys

import numpy as np

from tilewave.nest.reduced import Expression


class PlainResults:
    """What is reduced of the points of a nest.

    Attributes
    ----------
    watched : set of str
        Arrays of which it must be known what a point assigns.
    """

    def __init__(self, nest, reduce):
        self._nest = nest
        self._all = {name: _Reduced(nest, r) for name, r in reduce.items()}
        self.watched = {key[0] for each in self._all.values() for key in each.needed if not isinstance(key, str)}

    def begin(self):
        """Forget all values so far."""
        for each in self._all.values():
            each.begin()

    def body(self, arrays):
        """The body with these arrays as a function that also takes the values of its point."""
        function, before = self._nest.function, sys.getprofile()
        closure = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        outside = {**function.__globals__, **{name: cell.cell_contents for name, cell in closure}}

        def seen(frame, event, _):
            if event == "return" and frame.f_code is function.__code__:
                sys.setprofile(before)
                found = dict(frame.f_locals)
                for each in self._all.values():
                    each.add(outside, found, arrays)

        def body(*arguments, **scalars):
            for name in self.watched:
                arrays[name].assigned = set()
            sys.setprofile(seen)  # it is given the locals of the body where that returns
            try:
                function(*arguments, **scalars)
            finally:
                sys.setprofile(before)

        return body

    def values(self):
        """The results by name: a function each of what is to be compared with it."""
        return {name: each.value for name, each in self._all.items()}


class _Reduced:
    """One reduction: its values so far."""

    def __init__(self, nest, r):
        self._nest, self._r = nest, r
        parts = [Expression(nest, text, "reduce") for text in r.texts]
        self._codes = [compile(ast.Expression(part.node), "<reduce>", "eval") for part in parts]
        self.needed = [key for part in parts for key in part.partly]
        self._place = parts[0].place() if len(parts) == 1 and parts[0].array else None
        self.begin()

    def begin(self):
        """Forget all values so far."""
        self._best = None  # (value, where)
        self._real, self._imaginary, self._whole = array.array("d"), array.array("d"), 0

    def add(self, names, found, arrays):
        """The values of one point: `names` are those from outside the body, `found` its arguments and locals."""
        indices = {index: found[index] for index in self._nest.indices}
        if not all(self._has(key, found, indices, arrays) for key in self.needed):
            return
        values = [eval(code, names, found) for code in self._codes]
        r = self._r
        if r.operation[0] != "sum":
            value = _magnitude(values[0]) if r.kind == "norm" else values[0]
            self._add_best(value, self._where(indices))
        elif r.kind == "norm":
            self._real.append(_magnitude(values[0]) if r.ord == 1 else _square(values[0]))
        elif any(_is(value, complex, np.complexfloating) for value in values):
            value = np.complex128(values[0]) * (np.complex128(values[1]) if len(values) > 1 else 1)
            self._real.append(value.real)
            self._imaginary.append(value.imag)
        elif any(_is(value, float, np.floating) for value in values):
            self._real.append(math.prod(map(float, values)))
        else:
            value = math.prod(map(int, values))
            self._whole += value
            self._real.append(value)

    def _has(self, key, found, indices, arrays):
        if isinstance(key, str):
            return key in found
        name, offsets, axes, phases = key
        at = zip(axes, offsets, phases or [(1, 0)] * len(axes), strict=True)
        return (
            tuple(scale * (indices[index] + offset) + first for index, offset, (scale, first) in at)
            in arrays[name].assigned
        )

    def _where(self, indices):
        if self._place is None:
            return tuple(indices.values())
        return tuple(indices[index] + o for index, o in zip(self._place.axes, self._place.offsets, strict=True))

    def _add_best(self, value, where):
        if self._best is not None:
            best, at = self._best
            if best != best:
                better = value != value and where < at
            else:
                larger = value > best if self._r.operation[0] == "max" else value < best
                better = value != value or larger or value == best and where < at
            if not better:
                return
        self._best = value, where

    def value(self, found):
        """What `found` should be."""
        if self._r.operation[0] != "sum":
            if self._best is None:
                return np.float64(0) if self._r.kind == "norm" else None
            value, where = self._best
            return where if self._r.is_place else value if found is None else found.dtype.type(value)
        if found.dtype.kind in "iu":
            return np.array(self._whole % 2**64, np.uint64).astype(found.dtype)[()]
        total = _sum(self._real)
        if self._r.kind == "norm" and self._r.ord == 2:
            total = np.sqrt(total)
        return complex(total, _sum(self._imaginary)) if found.dtype.kind == "c" else total


def _is(value, *kinds):
    return isinstance(value, kinds)


def _magnitude(value):
    if _is(value, complex, np.complexfloating):
        return np.hypot(np.float64(value.real), np.float64(value.imag))
    return abs(np.float64(value))


def _square(value):
    if _is(value, complex, np.complexfloating):
        return np.float64(value.real) * np.float64(value.real) + np.float64(value.imag) * np.float64(value.imag)
    return np.float64(value) * np.float64(value)


def _sum(numbers):
    """The exact sum, rounded once."""
    special = {x if x == x else "NaN" for x in numbers if not math.isfinite(x)}
    if special:
        return np.float64(special.pop() if special in ({math.inf}, {-math.inf}) else math.nan)
    try:
        return np.float64(math.fsum(numbers))
    except OverflowError:  # on the way, or in the end
        import fractions  # 10 ms that hardly any program needs

        total = sum(map(fractions.Fraction, numbers))
    try:
        return np.float64(float(total))
    except OverflowError:
        return np.float64(math.copysign(math.inf, total))
