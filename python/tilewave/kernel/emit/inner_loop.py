"""A loop inside a body, ``max(x[q] + T[q, s] for q in range(n))``, for one point: terms in the order of the loop."""

import operator
from dataclasses import replace

from tilewave.kernel.types import arithmetic
from tilewave.kernel.types.casts import to_int
from tilewave.kernel.types.values import I1, I8, I64, Typed, Value, constant, ir_type
from tilewave.nest.types import BOOL, INT, Unsupported, infer

#: Loops that end at the term that decides.
ENDING = ("any", "all")
#: Bounds of a range are within this, which keeps arithmetic with its numbers within 64 bits.
LIMIT = 2**30


def sum_type(term):
    """The type of a sum of terms of a type, which begins with Python's 0."""
    kind = infer(operator.add, INT, term)
    if infer(operator.add, kind, term) != kind:
        raise Unsupported(f"a sum whose type changes from term to term, {kind} and {term}")
    return kind


def first_sum(e, kind, term):
    """Return the sum of one term: that of 0 and -0.0 is 0.0."""
    zero = Typed(kind, constant(kind.dtype, 0))
    return arithmetic.binary(e, "+", Value([zero]), Value([term])).only


class InnerLoop:
    """The value of `kind`, of `OF_TERMS`, of a generator's terms, in a `Body`."""

    def __init__(self, body, kind, generator):
        self.body, self.kind, self.generator = body, kind, generator
        self.e, self.build = body.e, body.e.builder
        self.cells = {}

    def value(self):
        """Emit the loops."""
        self.body.store_for(self.generator)
        before, self.entry = self.body.state, self.build.block
        self._cell("count", I64, I64(0))
        if self.kind in ENDING:
            return self._ending(before)
        self._loop(0)
        self.body.state = before
        if self.kind == "sum":
            return self._sum()
        none = self.build.icmp_signed("==", self._load("count"), I64(0))
        self.e.fail_if(none, "ValueError", f"{self.kind} of a generator without terms")
        if self.kind.startswith("arg"):
            return Value([Typed(INT, self._load("place"), low=0, high=2 * LIMIT - 1)])
        return self._best()

    def _ending(self, before):
        """Emit the end of ``any`` and ``all``: the terms that follow the one that decides are not computed."""
        self._cell("decided", I1, I1(0))
        self.decided = self.build.append_basic_block("decided")
        self._loop(0)
        self.body.state = before
        self.build.branch(self.decided)
        self.build.position_at_end(self.decided)
        decided = self._load("decided")
        return Value([Typed(BOOL, decided if self.kind == "any" else self.build.not_(decided))])

    def _sum(self):
        """Emit a sum: without terms it is Python's 0, which has another type than other sums."""
        some = self.build.icmp_signed(">", self._load("count"), I64(0))
        return self.e.select(some, Value([Typed(self.type, self._load("sum"))]), Value([Typed(INT, const=0)]))

    def _loop(self, level):
        if level == len(self.generator.generators):
            self._take(self.body.expression(self.generator.elt))
            return
        build, loop = self.build, self.generator.generators[level]
        begin, end = self.bounds(loop)
        before, head, inside, following, after = (
            build.block,
            *(build.append_basic_block(name) for name in ("inner", "term", "next", "inner_done")),
        )
        build.branch(head)
        build.position_at_end(head)
        q = build.phi(I64)
        q.add_incoming(begin, before)
        build.cbranch(build.icmp_signed("<", q, end), inside, after)
        build.position_at_end(inside)
        number = Value([Typed(INT, q, low=-LIMIT, high=LIMIT)])
        self.body.state = replace(self.body.state, locals={**self.body.state.locals, loop.target.id: number})
        for condition in loop.ifs:
            holds = build.append_basic_block("holds")
            build.cbranch(arithmetic.is_true(self.e, self.body.expression(condition)), holds, following)
            build.position_at_end(holds)
        self._loop(level + 1)
        build.branch(following)
        build.position_at_end(following)
        q.add_incoming(build.add(q, I64(1)), following)
        build.branch(head)
        build.position_at_end(after)

    def bounds(self, loop):
        """First number and end of a range."""
        arguments = [self.e.dispatch(self._whole, self.body.expression(each)).only.ir for each in loop.iter.args]
        begin, end = arguments if len(arguments) == 2 else (I64(0), *arguments)
        for bound in (begin, end):
            far = self.build.icmp_unsigned(">", self.build.add(bound, I64(LIMIT)), I64(2 * LIMIT))
            self.e.fail_if(far, "OverflowError", f"a range of a loop inside the body beyond {LIMIT}")
        return begin, end

    def _whole(self, typed):
        if typed.type.is_float or typed.type.is_bool and not typed.type.is_python or typed.type.is_complex:
            raise Unsupported(f"a {typed.type} as a bound of a range (allowed: integers)")
        return Value([to_int(self.e, typed)])

    def _take(self, value):
        """Join a term to those before it."""
        build, count = self.build, self._load("count")
        if self.kind in ENDING:
            self._decide(arithmetic.is_true(self.e, value))
            return
        if self.kind == "sum":
            self._add(value)
        else:
            self.types = [each.type for each in value.options]
            for kind in self.types:
                self._cell(f"best {kind}", ir_type(kind.dtype))
            if not value.single:
                self._cell("type", I8, I8(0))
            best, sign = self._best(), ">" if self.kind.endswith("max") else "<"
            better = arithmetic.is_true(self.e, arithmetic.binary(self.e, sign, value, best))
            better = build.or_(better, build.icmp_signed("==", count, I64(0)))
            self._keep(self.e.select(better, value, best))
            if self.kind.startswith("arg"):
                self._cell("place", I64)
                self._store("place", build.select(better, count, self._load("place")))
        self._store("count", build.add(count, I64(1)))

    def _best(self):
        """The best term so far, of one of the types that terms have."""
        options = [Typed(kind, self._load(f"best {kind}")) for kind in self.types]
        return Value(options, self._load("type") if len(options) > 1 else None)

    def _keep(self, best):
        for option in best.options:
            self._store(f"best {option.type}", option.ir)
        if not best.single:
            self._store("type", best.tag)

    def _decide(self, holds):
        """Leave all loops at the first term that is true, of ``all`` the first that is not."""
        build = self.build
        ends, goes_on = (build.append_basic_block(name) for name in ("ends", "goes_on"))
        build.cbranch(holds, *((ends, goes_on) if self.kind == "any" else (goes_on, ends)))
        build.position_at_end(ends)
        self._store("decided", I1(1))
        build.branch(self.decided)
        build.position_at_end(goes_on)

    def _add(self, value):
        """Terms are added to Python's 0, which takes the type of the first sum."""
        if not value.single:
            types = " and ".join(str(each.type) for each in value.options)
            raise Unsupported(f"a sum of terms of several types, {types} (allowed: one, as by float(...))")
        term = value.only
        self.type = kind = sum_type(term.type)
        self._cell("sum", ir_type(kind.dtype), constant(kind.dtype, 0))
        total = arithmetic.binary(self.e, "+", Value([Typed(kind, self._load("sum"))]), Value([term]))
        self._store("sum", total.only.ir)

    # Cells: values that go from round to round, in memory that LLVM makes registers of.

    def _cell(self, name, kind, first=None):
        with self.build.goto_entry_block():
            self.cells[name] = self.build.alloca(kind), kind
        if first is not None:
            with self.build.goto_block(self.entry):
                self._store(name, first)

    def _load(self, name):
        cell, kind = self.cells[name]
        return self.build.load(cell, typ=kind)

    def _store(self, name, value):
        self.build.store(value, self.cells[name][0])
