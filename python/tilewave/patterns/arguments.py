"""Collect what one call was given, and agree on it with all ranks."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypedDict, TypeVar

import numpy as np

from tilewave import _core
from tilewave.choices import refuse_unknown, signature_with
from tilewave.context import collective, interrupts
from tilewave.context.context import Context
from tilewave.context.context import context as default_context
from tilewave.errors import ConfigError, shown
from tilewave.patterns import simulated
from tilewave.patterns.function_text import function_text
from tilewave.patterns.handle import Handle
from tilewave.patterns.matrix import number_of, outer_text, view
from tilewave.patterns.user_op import UserOp, encodable

if TYPE_CHECKING:
    from collections.abc import Callable

    P = ParamSpec("P")
    R = TypeVar("R")

OPS = ("sum", "prod", "min", "max")


class PatternChoices(TypedDict, total=False):
    """How a pattern goes, as `broadcast` describes it."""

    algorithm: str
    chunk_bytes: int | None
    buffers: int | None
    wait: bool
    start: bool
    explain: bool


class Given(NamedTuple):
    """The `PatternChoices` of a call."""

    algorithm: Any = "auto"
    chunk_bytes: Any = None
    buffers: Any = None
    wait: Any = True
    start: Any = True
    explain: Any = False

    @staticmethod
    def of(function: Callable[..., Any], choices: PatternChoices) -> Given:
        """Return what a call of a function gives; the time of calls that give nothing counts."""
        if not choices:
            return NOTHING_GIVEN
        refuse_unknown(function, choices, Given._fields)
        return Given(**choices)

    def is_plain(self) -> bool:
        """Return whether nothing but the algorithm is given."""
        _, chunk_bytes, buffers, wait, start, explain = self
        return chunk_bytes is buffers is None and wait is start is True and explain is False


NOTHING_GIVEN = Given()


def pattern(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a pattern: arguments that it does not take are an error of all ranks."""

    @functools.wraps(function)
    @interrupts.keeps
    def call(*arguments, **keywords):
        try:
            return function(*arguments, **keywords)
        except TypeError as problem:
            if problem.__traceback__.tb_next is not None and not hasattr(problem, "unknown"):
                raise
            context, _ = collective.find(keywords.get("context"), arguments, {})
            context._doing = f"tw.patterns.{function.__name__}"
            try:
                collective.refuse(context, problem)
            finally:
                context._doing = ""

    if "choices" in inspect.signature(function).parameters:
        call.__signature__ = signature_with(function, PatternChoices)
    return call


def context_of(context):
    """The context of a call, where it is of the kind wanted; None elsewhere."""
    if context is None:
        return default_context()
    return context if context.__class__ is Context else None


def run_plain(kind, context, M, out, root, op, block, given):
    """The most frequent call, where the time between calls counts: blocking, all arguments of exactly the types wanted.

    Returns
    -------
    Context or None
        None: nothing was done; `Call` must look at the arguments one by one.
    """
    context = context if context.__class__ is Context else context_of(context)
    if context is None or block is not None or not context._ranks.quick:
        return None
    if given is not NOTHING_GIVEN and not given.is_plain():
        return None
    if not context._lock.acquire(False):
        return None
    try:
        asked = M, out, root, op, given.algorithm, context._doing
        done = context._together(_core.run_plain, context._core, kind, *asked)
        return context if done else None
    finally:
        context._lock.release()


class Call:
    """Collects one call's arguments in `core`; `go` reports what is wrong with them to all ranks, as the pattern
    begins.

    A pattern agrees by itself, in messages that small matrices go along with: so it has not the shape of
    `tilewave.context.collective`, but its rules hold. Nothing raises on one rank only.
    """

    def __init__(self, kind: str, context: Any, M: Any, given: Given) -> None:
        self.kind = self.name = kind
        self.core = _core.PatternCall(kind)
        self.context, problem = collective.find(context, (M,), {})
        self.error = problem and str(problem)
        self.result = self.scalar = self.head = None
        self.algorithm, self.wait, self.start, self.explain = "auto", True, True, False
        with self:
            self.wait, self.start = _flag("wait", given.wait), _flag("start", given.start)
            self.explain = _flag("explain", given.explain)
        with self:
            if not isinstance(given.algorithm, str) or not given.algorithm.isascii():
                raise ConfigError(f"algorithm {shown(given.algorithm)} was given; allowed: a name")
            self.algorithm = given.algorithm
            self.sizes = _choice("chunk_bytes", given.chunk_bytes), _choice("buffers", given.buffers)
            self.core.chunk_bytes, self.core.buffers = self.sizes

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None:
            return False
        if self.error is None:
            text = collective.text_of(error)
            self.error = text if isinstance(error, ConfigError) else f"{kind.__name__}: {text}"
            self.core.lacks_memory = isinstance(error, MemoryError)
        return True

    def given(self, M):
        """Return what the user gave as an array; of a number, one element."""
        number = number_of(M)
        if number is None:
            self.core.outer = outer_text(M)
            return M
        self.scalar = type(M)
        return number

    def outcome(self):
        """Return what the user gets; a number where a number was given."""
        if self.scalar is None or self.result is None:
            return self.result
        return self.result[()] if issubclass(self.scalar, np.generic) else self.result.item()

    def reduction(self, op, dtype):
        if callable(op):
            self.core.reduce_by(UserOp(op, dtype, self.context.rank), function_text(op))
        elif isinstance(op, str) and op in OPS:
            self.core.op = op
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
        core, self.result = self.core, result
        with self:
            core.algorithm = self.algorithm
        core.keep, core.where, core.function = not self.start, collective.where(), self.context._doing
        core.error = encodable(f"{self.name}: {self.error}") if self.error else ""
        if self.error:
            return self._started(memory)
        return self.context._ranks.run(
            lambda: self._started(memory), lambda calls: self._planned(memory, *simulated.planned(self, calls, memory))
        )

    def _planned(self, memory, columns, run):
        if self.start:
            run()
        if not (self.start and self.wait):
            return self._handle(memory, lambda core: simulated.PlannedPattern(core, run))
        if self.head is not None:
            self.allocate(columns)
        return self.outcome()

    def _started(self, memory):
        handle = self._handle(memory)
        if self.start:
            return handle.wait() if self.wait else handle
        if self.explain and self.context.rank == 0:
            print(handle.explain())
        return handle

    def _handle(self, memory, pattern=lambda core: core):
        core, allocate = self.context._core, self.allocate if self.head is not None else None
        given = core, self.core, allocate, [memory, self]
        return Handle(self, pattern(self.context._together(_core.start_pattern, *given)))


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
