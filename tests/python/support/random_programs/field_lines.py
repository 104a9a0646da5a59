"""Random lines of arithmetic with whole fields, as NumPy's arrays have it, and what NumPy makes of them."""

from __future__ import annotations

import copy
import re
import warnings

import numpy as np

import tilewave as tw
from local_ranks import on_ranks
from random_programs.numbers import differing, reduced, same_number
from random_programs.outcomes import Outcome, of_errors

NAMES = "uvw"
DTYPES = ("f8", "f4", "i8", "i4", "?", "u1", "i2", "c16", "u4", "c8", "i1")
OPERATORS = "+ - * / // % **".split()
BITS = "& | ^".split()
COMPARISONS = "< <= > >= == !=".split()
FUNCTIONS = "abs np.sqrt np.exp np.sin np.floor np.square np.isnan np.sign np.conj -".split()
NUMBERS = "max min any all argmax sum argmin".split()
LONG_S = 150  # a busy machine is slow


class FieldLines:
    """A case as `case.Case`: its lines hold for fields and for NumPy's arrays."""

    def __init__(self, choices, of_setting):
        self.c = c = choices
        dims = c.between(1, 3)
        self.shape = tuple(c.pick(5, 1, 2, 3, 8, 17, 64) if k == dims - 1 else c.between(1, 6) for k in range(dims))
        self.values, self.lines, self.results = {}, [], []
        numbers = np.random.default_rng(c.below(1000))
        dtypes = [c.pick(*DTYPES) for _ in range(c.between(1, 3))]
        self.masks = c.chance(0.3)
        for name in NAMES[: c.between(2, 3)]:
            shape = self.shape[-1:] if name == "w" and c.chance(0.3) else self.shape
            self.values[name] = self._drawn(numbers, shape, np.dtype("?" if self.masks else c.pick(*dtypes)))
        for _ in range(c.between(1, 4)):
            self.line()
        self.ranks, self.lanes = of_setting.pick(1, 2, 3), of_setting.between(1, 2)

    def _drawn(self, numbers, shape, dtype):
        if dtype.kind == "b":
            return numbers.random(shape) < 0.5
        if dtype.kind in "iu":
            return numbers.integers(0 if dtype.kind == "u" else -5, 9, shape).astype(dtype)
        found = numbers.uniform(-2, 2, shape) + (1j * numbers.uniform(-2, 2, shape) if dtype.kind == "c" else 0)
        return found.astype(dtype)

    # Lines.

    def leaf(self):
        c = self.c
        if c.chance(0.75):
            return c.pick(*self.values)
        return c.pick("True", "False") if self.masks else c.pick("2", "0.5", "3", "1.5", "np.float32(0.25)", "-1")

    def expression(self, depth):
        c = self.c
        if depth == 0:
            return self.leaf()
        what = c.often(binary=6, function=3, choice=1, comparison=1)
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        if what == "function":
            return f"(~{a})" if self.masks else f"{c.pick(*FUNCTIONS)}({a})"
        if what == "choice":
            return f"{c.pick('tw.where', 'np.where')}({a} {c.pick(*COMPARISONS)} {b}, {a}, {b})"
        if what == "comparison":
            return f"({a} {c.pick(*COMPARISONS)} {b})"
        if self.masks:
            return f"({a} {c.pick(*BITS)} {b})"
        return f"({a} {c.pick(*OPERATORS)} {c.pick('2', '0.5', '3') if c.chance(0.15) else b})"

    def line(self):
        c = self.c
        name, what = c.pick(*self.values), c.often(whole=3, place=4, copy=2, number=3, part=1)
        value = self.expression(c.between(1, 2))
        if not any(re.search(rf"\b{each}\b", value) for each in self.values):
            value = f"({name} {'|' if self.masks else '+'} {value})"
        if what == "place":
            self.lines.append(f"{name} {c.pick(*(BITS if self.masks else [*OPERATORS, *BITS]))}= {value}")
        elif what == "copy":
            new = f"x{len(self.lines)}"
            self.lines.append(f"{new} = ({value}).copy()")
            self.values[new] = None
        elif what == "number":
            function = c.pick(*NUMBERS)
            self.lines.append(f"found.append({function}_of({value}))")
        elif what == "part":
            self.lines.append(f"{name}[{c.pick('0', '1:', '::2', '-1', '...')}] = {c.pick('1', '0')}")
        else:
            self.lines.append(f"{name}[...] = {value}")

    # As a case.

    def simpler(self):
        """Cases with a line less, or fewer ranks."""
        for number in range(len(self.lines) if len(self.lines) > 1 else 0):
            fewer = copy.copy(self)
            fewer.lines = self.lines[:number] + self.lines[number + 1 :]
            yield fewer
        if self.ranks > 1:
            fewer = copy.copy(self)
            fewer.ranks = 1
            yield fewer

    def kinds(self):
        return {"field arithmetic", f"{self.ranks} ranks", *({"masks"} if self.masks else ())}

    @property
    def program(self):
        return self

    def text(self):
        return "\n".join(self.lines) + "\n"

    definition = text

    def script(self, outcome, seed):
        arrays = [f"{n} = tw.field(np.array({v.tolist()}, {v.dtype.str!r}))" for n, v in self.given().items()]
        functions = [f"{name}_of = lambda x: x.{name}()" for name in NUMBERS]
        said = [f"# seed {seed}: {outcome.said}", *(f"# {line}" for line in outcome.detail.splitlines())]
        head = [*said, f"# tilewave run -n {self.ranks} this.py", "import numpy as np", "import tilewave as tw"]
        head.append("found = []")
        tail = [f"print({name}.gather())" for name in self.values if name in self.text()]
        return "\n".join([*head, *functions, *arrays, *self.lines, *tail, "print(found)"]) + "\n"

    def given(self):
        return {name: value for name, value in self.values.items() if value is not None}

    def run_with(self, arrays, functions, where):
        """Run the lines: (arrays by name, numbers)."""
        names = {"np": np, "tw": where, "found": [], **arrays, **functions}
        exec(compile(self.text(), "<lines>", "exec"), names)
        return {name: names[name] for name in self.values if name in names}, names["found"]

    def outcome(self):
        raised = expected = None
        with np.errstate(all="ignore", invalid="warn"), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                expected = self.run_with({n: v.copy() for n, v in self.given().items()}, PLAIN, Where)
            except Exception as error:
                raised = error
        if any("in cast" in str(each.message) for each in warned):
            return Outcome("open", "integers of numbers that have none")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results, errors = on_ranks(self.ranks, self.lanes, self._on_rank, LONG_S)
        if any(errors):
            return of_errors(errors, raised, allowed=(TypeError,))
        if raised is not None:
            return Outcome("wrong", "NumPy raises, the fields do not", repr(raised))
        if any(value.dtype.kind == "c" for value in self.given().values()):
            return self._nearly(results[0][0], expected[0])
        for name, wanted in expected[0].items():
            got = results[0][0][name]
            if not np.array_equal(got.shape, np.shape(wanted)) or differing(got, np.asarray(wanted)).any():
                return Outcome("wrong", "other values of fields", f"{name}: {got!r} instead of {wanted!r}")
        for got, wanted in zip(results[0][1], expected[1], strict=True):
            if not same_number(got, wanted):
                return Outcome("wrong", "another number of fields", f"{got!r} instead of {wanted!r}")
        return Outcome("run")

    @staticmethod
    def _nearly(found, expected):
        """NumPy's loops over complex arrays fuse products, those over elements do not; what follows may be anything."""
        for name, wanted in expected.items():
            got = found[name]
            if got.shape != np.shape(wanted) or got.dtype != np.asarray(wanted).dtype:
                return Outcome("wrong", "other types of fields", f"{name}: {got!r} instead of {wanted!r}")
        near = all(np.allclose(found[name], wanted, 1e-3, 1e-3, True) for name, wanted in expected.items())
        return Outcome("run" if near else "open", "" if near else "products of complex numbers")

    def _on_rank(self, context):
        fields = {name: tw.field(value, context=context) for name, value in self.given().items()}
        arrays, numbers = self.run_with(fields, OF_FIELDS, tw)
        return {name: field.gather() for name, field in arrays.items()}, numbers


class Where:
    """What `tw` is for NumPy's arrays."""

    where = staticmethod(np.where)


def _extreme(function):
    def of(array):
        return reduced(function, list(np.ndenumerate(array)))

    return of


PLAIN = {"any_of": lambda x: bool(np.any(x)), "all_of": lambda x: bool(np.all(x)), "sum_of": _extreme("sum")}
PLAIN |= {f"{name}_of": _extreme(name) for name in ("max", "min", "argmax", "argmin")}
OF_FIELDS = {f"{name}_of": (lambda x, name=name: getattr(x, name)()) for name in NUMBERS}
