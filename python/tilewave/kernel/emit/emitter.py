"""Control flow, merging of values, error sites and outside calls of a kernel under construction."""

from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from tilewave import _core
from tilewave.kernel.emit.literal_powers import power_of_one
from tilewave.kernel.emit.loops import c_function, numpy_loop
from tilewave.kernel.types.values import F64, I1, I8, I64, POINTER, Typed, Value, ir_type
from tilewave.nest.types import Unsupported

#: An error code is point * SITES + site, site from 1 (include/tilewave/engine/limits.hpp).
SITES = _core.limits["error_sites"]

#: Reordering, contraction and approximate functions; NaNs and infinities keep their meaning.
FAST = ("reassoc", "nsz", "arcp", "contract", "afn")


#: Functions that LLVM knows, for ``fastmath``.
FAST_INTRINSICS = ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "pow")


@dataclass(frozen=True)
class Function:
    """A function outside the kernel, of operands of one dtype.

    ``kind``: "numpy" is the inner loop of a ufunc, "c" the C library's, "fast" any with about the same results, by its
    C name, "power" the C library's pow with the literal exponent that is the name.
    """

    kind: str
    name: str
    dtype: np.dtype
    operands: int

    @property
    def result(self):
        """LLVM type of what it gives."""
        kind = ir_type(self.dtype)
        return kind.elements[0] if self.name.endswith(".real") else kind


class Emitter:
    """An LLVM builder that knows values of several types and leaves the kernel on errors.

    Attributes
    ----------
    builder : ir.IRBuilder
    sites : list of (str, str, int)
        Exception name, message and line of each place that may raise; site k is ``sites[k-1]``.
    line : int
        Line of the statement under translation.
    leave : callable
        Emits what a raising point does: given the site's number, stores and returns.
    calls : int
        Calls of outside functions for one point, emitted so far.
    deferred : callable or None
        Takes (condition, exception, message) of a place that may raise; the point goes on where it returns true.
    strips : Strips or None
        Takes the calls of outside functions in the loops of a strip.
    powers : tuple of float
        Literal exponents of powers that need not call the C library (`literal_powers`).
    """

    def __init__(self, builder, fastmath, bools=frozenset()):
        self.builder, self.bools = builder, bools
        self.fastmath = fastmath
        self.flags = FAST if fastmath else ()
        self.sites = []
        self.line = 0
        self.leave = None
        self.calls = 0
        self.strips = self.deferred = None
        self.powers = ()
        self._scratch = None
        self._minus_zero = {}

    # Errors.

    def site(self, exception, message):
        """Number of an error site."""
        entry = (exception, message, self.line)
        if entry not in self.sites:
            self.sites.append(entry)
            if len(self.sites) >= SITES:
                raise Unsupported(f"a body with {SITES} places that may raise")
        return self.sites.index(entry) + 1

    def fail_if(self, condition, exception, message):
        """Leave the kernel when the LLVM i1 holds."""
        number = self.site(exception, message)
        if self.deferred and self.deferred(condition, exception, message):
            return
        good = self.builder.append_basic_block("good")
        bad = self.builder.append_basic_block("bad")
        self.builder.cbranch(condition, bad, good)
        self.builder.position_at_end(bad)
        self.leave(number)
        self.builder.position_at_end(good)

    def fail(self, exception, message):
        """Leave the kernel in every point that comes here; what follows is never reached."""
        self.fail_if(I1(1), exception, message)

    # Values of several types.

    def merge(self, incoming):
        """The value that arrives from one of several blocks: [(block, Value)]."""
        if len(incoming) == 1:
            return incoming[0][1]
        types = list(dict.fromkeys(each.type for _, value in incoming for each in value.options))
        options = [self._merge_typed(kind, incoming) for kind in types]
        if len(types) == 1:
            return Value(options)
        tag = self.builder.phi(I8)
        # The tag of an incoming union is renumbered in the block that it comes from.
        for block, value in incoming:
            tag.add_incoming(self._tag_in(block, value, types), block)
        return Value(options, tag)

    def _merge_typed(self, kind, incoming):
        found = [next((each for each in value.options if each.type == kind), None) for _, value in incoming]
        present = [each for each in found if each is not None]
        first = present[0]
        if all(each is first for each in found):  # computed before the paths parted
            return first
        if first.const is not None and all(_same_constant(first, each) for each in present):
            return first
        phi = self.builder.phi(ir_type(kind.dtype))
        phi.narrow = {}  # what casts have made of it
        for (block, _), each in zip(incoming, found, strict=True):
            undefined = ir.Constant(ir_type(kind.dtype), ir.Undefined)
            phi.add_incoming(undefined if each is None else each.ir, block)
        return Typed(kind, phi, low=min(each.low for each in present), high=max(each.high for each in present))

    def _tag_in(self, block, value, types):
        if value.single:
            return I8(types.index(value.only.type))
        here = self.builder.block
        self.builder.position_before(block.terminator)
        tag = self._renumbered(value, types)
        self.builder.position_at_end(here)
        return tag

    def _renumbered(self, value, types):
        """The tag of a value as positions in another list of types."""
        tag = I8(types.index(value.options[-1].type))
        for k in range(len(value.options) - 2, -1, -1):
            here = self.builder.icmp_unsigned("==", value.tag, I8(k))
            number = I8(types.index(value.options[k].type))
            tag = self.builder.select(here, number, tag)
        return tag

    def branch(self, condition, then, other):
        """``then() if condition else other()``, where only the one that is chosen is computed."""
        then_block = self.builder.append_basic_block("then")
        other_block = self.builder.append_basic_block("else")
        end = self.builder.append_basic_block("end")
        self.builder.cbranch(condition, then_block, other_block)
        incoming = []
        for block, compute in ((then_block, then), (other_block, other)):
            self.builder.position_at_end(block)
            value = compute()
            incoming.append((self.builder.block, value))
            self.builder.branch(end)
        self.builder.position_at_end(end)
        return self.merge(incoming)

    def select(self, condition, first, second):
        """One of two values that are both computed."""
        types = list(dict.fromkeys(each.type for each in first.options + second.options))
        options = []
        for kind in types:
            left = next((each for each in first.options if each.type == kind), None)
            right = next((each for each in second.options if each.type == kind), None)
            if left is None or right is None or left is right or _same_constant(left, right):
                options.append(left if left is not None else right)
                continue
            chosen = self.builder.select(condition, left.ir, right.ir)
            options.append(Typed(kind, chosen, low=min(left.low, right.low), high=max(left.high, right.high)))
        if len(types) == 1:
            return Value(options)
        tags = [
            I8(types.index(value.only.type)) if value.single else self._renumbered(value, types)
            for value in (first, second)
        ]
        return Value(options, self.builder.select(condition, *tags))

    def dispatch(self, function, *values):
        """Apply a function of ``Typed`` operands to values of possibly several types."""
        several = next((k for k, value in enumerate(values) if not value.single), None)
        if several is None:
            return function(*(value.only for value in values))
        value = values[several]

        def from_option(k):
            fixed = [*values]
            fixed[several] = Value([value.options[k]])
            if k == len(value.options) - 1:
                return self.dispatch(function, *fixed)
            here = self.builder.icmp_unsigned("==", value.tag, I8(k))
            return self.branch(here, lambda: self.dispatch(function, *fixed), lambda: from_option(k + 1))

        return from_option(0)

    # Calls of functions outside the kernel.

    def outside(self, symbol, kind):
        """A function outside the kernel, declared once."""
        found = self.builder.module.globals.get(symbol)
        return found or ir.Function(self.builder.module, kind, symbol)

    def call_c(self, name, dtype, *operands):
        """Call a function of the C mathematics library on floats."""
        return self._call(Function("c", name, dtype, len(operands)), operands)

    def call_fast(self, name, dtype, *operands):
        """Call a function on floats by its C name, with about the C library's results."""
        return self._call(Function("fast", name, dtype, len(operands)), operands)

    def call_power(self, dtype, base, exponent):
        """Call the C library's pow with one of the exponents ``powers``."""
        return self._call(Function("power", f"{exponent:g}", dtype, 1), [base])

    def call_loop(self, name, dtype, *operands):
        """Call NumPy's inner loop on numbers of one dtype."""
        return self._call(Function("numpy", name, dtype, len(operands)), operands)

    def _call(self, function, operands):
        return self.strips.call(function, operands) if self.strips else self.call_once(function, operands)

    def call_once(self, function, operands):
        """Call an outside function for one point."""
        if function.kind == "fast" and function.name in FAST_INTRINSICS:
            return self.intrinsic(function.name, *operands)
        self.calls += 1
        if function.kind == "numpy":
            return self._loop_of_one(function, operands)
        if function.kind == "power":
            return power_of_one(self, function, *operands)
        return self.builder.call(self.c_function(function), operands)

    def c_function(self, function):
        """The C library's function, declared."""
        kind = ir_type(function.dtype)
        symbol = c_function(function.name if function.dtype.itemsize == 8 else f"{function.name}f")
        return self.outside(symbol, ir.FunctionType(kind, [kind] * function.operands))

    def intrinsic(self, name, *operands):
        """Call an LLVM intrinsic on floats, or vectors of floats, of one type."""
        kind = operands[0].type
        vector = isinstance(kind, ir.VectorType)
        of = f"v{kind.count}{kind.element.intrinsic_name}" if vector else kind.intrinsic_name
        function = self.outside(f"llvm.{name}.{of}", ir.FunctionType(kind, [kind] * len(operands)))
        return self.builder.call(function, operands, fastmath=self.flags)

    def itself(self, value):
        """A converted float, as a number of which LLVM does not know that it was converted.

        LLVM 22 takes ``0.0 if x < 0 else float64(x)`` for a maximum and loses the sign of a zero,
        as it does wherever a choice has the converted side of the comparison that makes it. The sum with a
        negative zero is exact; inline assembly hides from LLVM that it is one.
        """
        if self.fastmath:
            return value
        build, kind = self.builder, value.type
        if kind not in self._minus_zero:
            bits = ir.IntType(64 if kind == F64 else 32)
            entry = build.function.entry_basic_block
            with build.goto_block(entry):
                build.position_at_start(entry)
                hidden = build.asm(
                    ir.FunctionType(bits, [bits]),
                    "",
                    "=r,0",
                    [ir.Constant(bits, -(2 ** (bits.width - 1)))],
                    side_effect=False,
                )
                self._minus_zero[kind] = build.bitcast(hidden, kind)
        return build.fadd(value, self._minus_zero[kind])

    def numpy_loop(self, function):
        """NumPy's inner loop, declared, and what it is given as data."""
        symbol, data = numpy_loop(function.name, function.dtype)
        loop = self.outside(symbol, ir.FunctionType(ir.VoidType(), [POINTER] * 4))
        if data is None:
            return loop, ir.Constant(POINTER, None)
        return loop, self.outside(data, ir.FunctionType(ir.VoidType(), []))

    def _loop_of_one(self, function, operands):
        """Call NumPy's inner loop for one element, with strides 0 as NumPy does itself, or as one of several."""
        build = self.builder
        loop, data = self.numpy_loop(function)
        arguments, one, alone, among, cells = self._scratch_space()
        strides = among if function.name.endswith(".each") else alone
        for k, operand in enumerate(operands):
            build.store(operand, cells[k])
        for k, cell in enumerate([*cells[: len(operands)], cells[2]]):
            build.store(cell, build.gep(arguments, [I64(k)], source_etype=POINTER))
        build.call(loop, [arguments, one, strides, data])
        return build.load(cells[2], typ=function.result)

    def _scratch_space(self):
        """Space on the stack for one call of a loop: pointers, count, strides, operands."""
        if self._scratch is None:
            build = self.builder
            with build.goto_block(build.function.entry_basic_block):
                build.position_at_start(build.function.entry_basic_block)
                # Cells of two pointers, 16 bytes: alloca gives untyped pointers for these.
                arguments, one, alone, among, *cells = (
                    build.alloca(POINTER, size=count) for count in (3, 1, 3, 3, 2, 2, 2)
                )
                build.store(I64(1), one)
                for strides, step in ((alone, 0), (among, 16)):
                    build.store(ir.Constant(ir.ArrayType(I64, 3), [step] * 3), strides)
            self._scratch = arguments, one, alone, among, cells
        return self._scratch


def _same_constant(left, right):
    """Return whether two Python constants are the same number, down to the sign of zero."""
    if left.const is None or right.const is None:
        return False
    return repr(left.const) == repr(right.const)
