"""What one call was given, and the agreement of the ranks on it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from tilewave import _core
from tilewave.context import collective, interrupts
from tilewave.context.context import Context
from tilewave.context.context import context as default_context
from tilewave.errors import ConfigError, shown
from tilewave.patterns.function_text import function_text
from tilewave.patterns.handle import Handle
from tilewave.patterns.matrix import number_of, outer_text, view
from tilewave.patterns.user_op import UserOp, encodable

if TYPE_CHECKING:
    from typing import Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

OPS = ("sum", "prod", "min", "max")


def pattern(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator of a pattern: arguments that it does not take are an error of all ranks."""

    @functools.wraps(function)
    @interrupts.keeps
    def call(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except TypeError as problem:
            if problem.__traceback__.tb_next is not None:
                raise
            context, _ = collective.find(keywords.get("context"), arguments, {})
            context._doing = f"tw.patterns.{function.__name__}"
            try:
                collective.refuse(context, problem)
            finally:
                context._doing = ""

    return call


def context_of(context):
    """The context of a call, where it is of the kind wanted; None elsewhere."""
    if context is None:
        return default_context()
    return context if context.__class__ is Context else None


def run_plain(  # noqa: PLR0917 - positions, as the time between calls counts here
    kind, context, M, out, root, op, block, algorithm, chunk_bytes, buffers, wait, start, explain
):
    """The most frequent call, where the time between calls counts: blocking, all arguments of exactly the types wanted.

    False: nothing was done; `Call` must look at the arguments one by one.
    """
    if (
        wait is not True
        or start is not True
        or explain is not False
        or block is not None
        or chunk_bytes is not None
        or buffers is not None
    ):
        return False
    if not context._lock.acquire(False):
        return False
    try:
        return context._together(_core.run_plain, context._core, kind, M, out, root, op, algorithm, context._doing)
    finally:
        context._lock.release()


class Call:
    """Collects one call's arguments; what is wrong with them is said to all ranks by `go`, as the pattern begins.

    A pattern agrees by itself, in messages that small matrices go along with: so it has not the shape of
    `tilewave.context.collective`, but keeps
    its rules. Nothing raises on one rank only.
    """

    def __init__(
        self,
        kind: str,
        context: Any,
        M: Any,
        algorithm: Any,
        chunk_bytes: Any,
        buffers: Any,
        wait: Any,
        start: Any,
        explain: Any,
    ) -> None:
        self.kind = self.name = kind
        self.user_name = ""
        self.context, problem = collective.find(context, (M,), {})
        self.error, self.lacks_memory = problem and str(problem), False
        self.matrix = self.out = self.user = self.result = self.scalar = None
        self.outer = ""
        self.op, self.root, self.block, self.part_inside = "sum", 0, 0, -1
        self.algorithm, self.chunk_bytes, self.buffers = "auto", 0, 0
        self.wait, self.start, self.explain = True, True, False
        with self:
            self.wait, self.start, self.explain = _flag("wait", wait), _flag("start", start), _flag("explain", explain)
        with self:
            if not isinstance(algorithm, str) or not algorithm.isascii():
                raise ConfigError(f"algorithm {shown(algorithm)} was given; allowed: a name")
            self.algorithm = algorithm
            self.chunk_bytes = _choice("chunk_bytes", chunk_bytes)
            self.buffers = _choice("buffers", buffers)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None:
            return False
        if self.error is None:
            text = collective.text_of(error)
            self.error = text if isinstance(error, ConfigError) else f"{kind.__name__}: {text}"
            self.lacks_memory = isinstance(error, MemoryError)
        return True

    def given(self, M):
        """What the user gave as an array; of a number, one element."""
        number = number_of(M)
        if number is None:
            self.outer = outer_text(M)
            return M
        self.scalar = type(M)
        return number

    def outcome(self):
        """What the user gets; a number where a number was given."""
        if self.scalar is None or self.result is None:
            return self.result
        return self.result[()] if issubclass(self.scalar, np.generic) else self.result.item()

    def reduction(self, op, dtype):
        if callable(op):
            self.op, self.user, self.user_name = (
                "user",
                UserOp(op, dtype, self.context.rank),
                function_text(op),
            )
        elif isinstance(op, str) and op in OPS:
            self.op = op
        else:
            raise ConfigError(f"op {shown(op)} was given; allowed: {', '.join(OPS)}, or a function of two arrays")

    def allocate(self, columns):
        """The result of a spread that was given none, once its columns are known."""
        self.result = None  # the last time's, where the columns have changed since
        self.result = np.empty((*self.head, columns), self.dtype)
        return view("out", self.result)

    def go(self, result, memory):
        context = self.context
        if not context._lock.acquire(False):
            with self:
                problem = collective.wait_for_turn(context, f"tw.patterns.{self.kind}")
                if problem:
                    raise problem
        outer = context._doing
        context._doing = outer or f"tw.patterns.{self.kind}"
        try:
            return self._go(result, memory)
        finally:
            context._doing = outer
            context._lock.release()

    def _go(self, result, memory):
        error = encodable(f"{self.name}: {self.error}") if self.error else ""
        self.result = result
        own = self.allocate if self.kind == "spread" and result is None else None
        core = self.context._together(
            _core.start_pattern,
            self.context._core,
            self.kind,
            self.matrix,
            self.out,
            self.root,
            self.op,
            self.user,
            self.block,
            self.part_inside,
            self.algorithm,
            self.chunk_bytes,
            self.buffers,
            not self.start,
            error,
            self.lacks_memory,
            own,
            [memory, self],
            collective.where(),
            self.user_name,
            self.outer,
            self.context._doing,
        )
        handle = Handle(self, core)
        if self.start:
            return handle.wait() if self.wait else handle
        if self.explain and self.context.rank == 0:
            print(handle.explain())
        return handle


def _flag(name, value):
    if not isinstance(value, (bool, np.bool_)):
        raise ConfigError(f"{name}: given {type(value).__name__}; allowed: True, False")
    return bool(value)


def whole_number(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ConfigError(f"{name} {shown(value)} was given; allowed: an integer")
    bits = 63 if name.endswith("_bytes") else 31
    if not -(2**bits) <= value < 2**bits:
        raise ConfigError(f"{name} {value} was given; allowed: less than 2**{bits}")
    return int(value)


def _choice(name, value):
    if value is None:
        return 0
    if whole_number(name, value) < 1:
        raise ConfigError(f"{name} {value} was given; at least 1 is allowed")
    return int(value)


def block_of(value):
    return _choice("block", value)
