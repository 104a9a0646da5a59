"""Communication patterns on arrays: matrices with any row stride, one row, one number.

An array of one dimension is one row. One of three and more is contiguous, and a matrix: a row for each place in all
dimensions but
the last. An array of none, or a number (Python's or NumPy's), has one element; numbers are returned as numbers of the
same type.
"""

import functools

import numpy as np

from tilewave import _core
from tilewave.errors import ERRORS, ConfigError
from tilewave.patterns.matrix import (
    NUMBERS,
    inside,
    number_of,
    outer_text,
    rows_and_columns,
    same_or_apart,
    same_rows,
    view,
)
from tilewave.patterns.user_op import UserOp, encodable
from tilewave.runtime import collective, interrupts
from tilewave.runtime.context import Context, default_context

OPS = ("sum", "prod", "min", "max")
SEND_LIMIT_BYTES = 256 << 20
ALLREDUCE_RING_BYTES = 128 << 10  # from here on an allreduce goes by parts of the columns


class Handle:
    """A pattern in flight, or made with ``start=False`` and ready to go.

    It moves on in every call on its context and in `test` and `wait` of any handle, on whatever
    context; in between nothing moves. Until it is over its matrices belong to it.

    Attributes
    ----------
    algorithm : str
        "tree", "ring", "rounds", "direct" or "mpi"; with `chunk_bytes`, `buffers` and `why` (the reason) known
        once the ranks have agreed.
    buffer_bytes : int
        Staging memory on this rank.
    time_s : float
        Seconds that the last run took on this rank, without the comparison of the arguments; 0 where all went with it.
    """

    def __init__(self, call, core):
        self._call, self._context, self._core, self._explain = call, call.context, core, call.explain
        self._run_core, self._heart = (
            core.run,
            call.context._heart,
        )  # looked up once: of small matrices they are much of the time

    algorithm = property(lambda self: self._core.plan.algorithm)
    chunk_bytes = property(lambda self: self._core.plan.chunk_bytes)
    buffers = property(lambda self: self._core.plan.buffers)
    why = property(lambda self: self._core.plan.why)
    buffer_bytes = property(lambda self: self._core.buffer_bytes)
    time_s = property(lambda self: self._core.time_s)

    def test(self):
        """Move things on; True when it is over.

        Raises
        ------
        ConfigError, KernelError, MpiError
            As `wait`.
        """
        return self._guard(self._core.test)

    def wait(self):
        """Wait until it is over; what the blocking call returns.

        Raises
        ------
        ConfigError, KernelError, MpiError
            The same on every rank.
        """
        self._guard(self._core.wait)
        if self._explain and self._context.rank == 0:
            print(self.explain())
            self._explain = False
        return self._call.outcome()

    def start(self):
        """Go once more on the same memory; made with ``start=False``.

        Notes
        -----
        Collective. The arguments are not compared again: it costs the transfer alone.
        """
        self._guard(self._core.start)
        return self

    def run(self):
        """`start` and `wait` in one; what the blocking call returns."""
        try:
            self._run_core()
        except ERRORS as error:
            raise self._context._of_all(error) from None
        finally:
            self._heart.done()
        return self._call.outcome()

    def explain(self):
        """The choice and its reason, as text."""
        return f"{self._core.plan}\n  because: {self.why}"

    def _guard(self, call):
        try:
            return call()
        except ERRORS as error:
            raise self._context._of_all(error) from None
        finally:
            self._context._heart.done()


def _pattern(function):
    """Decorator of a pattern: arguments that it does not take are an error of all ranks."""

    @functools.wraps(function)
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


@_pattern
def broadcast(
    M, root=0, *, algorithm="auto", chunk_bytes=None, buffers=None, wait=True, start=True, explain=False, context=None
):
    """Give every rank the root's matrix; collective.

    Parameters
    ----------
    M : numpy.ndarray or number
        rows x cols, the same shape and dtype on every rank, unit column stride, any row stride;
        read on the root, written elsewhere. float32/64, complex64/128, int8/16/32/64, uint8 or bool. Also arrays of
        other
        dimensions and numbers, as `tilewave.patterns` says; of a number, each rank gives one of the same type.
    root : int
    algorithm : {"auto", "tree", "ring", "rounds", "direct", "mpi"}
        Binomial tree; pipelined ring; least rounds (n - 1 + ceil(log2 p) for n chunks); the root to
        every other rank; MPI's own call, which needs a copy of a strided matrix. "auto" takes the least time
        predicted, which MPI's call never has.
    chunk_bytes, buffers : int, optional
        Size of the chunks and number of them staged. Default: picked.
    wait : bool
        False: return a `Handle` at once.
    start : bool
        False: compare and plan only, and return a `Handle` to run any number of times.
    explain : bool
        Print on rank 0 what was chosen, and why.
    context : Context, optional

    Returns
    -------
    numpy.ndarray, number or Handle
        M; of a number, the root's.

    Raises
    ------
    ConfigError
        On every rank: for what is wrong on any, or differs between ranks.

    Notes
    -----
    Collective. Costs ceil(log2 ranks) small messages a rank to compare the arguments, which up to 4 KB
    the matrix goes along with, then the transfer; chunks in flight are `buffers` at most, and a contiguous
    matrix is not copied. [dawson2000]
    """
    here = context if context.__class__ is Context else _here(context)
    if here and _run_plain(
        "broadcast", here, M, None, root, "sum", None, algorithm, chunk_bytes, buffers, wait, start, explain
    ):
        return M
    call = _Call("broadcast", context, M, algorithm, chunk_bytes, buffers, wait, start, explain)
    with call:
        M = call.given(M)
        call.root = _whole("root", root)
        call.matrix = view("M", M, written=call.context.rank != call.root)
    return call.go(M, [M])


@_pattern
def reduce(
    M,
    root=0,
    op="sum",
    out=None,
    *,
    algorithm="auto",
    chunk_bytes=None,
    buffers=None,
    wait=True,
    start=True,
    explain=False,
    context=None,
):
    """Combine the matrices of all ranks on the root; collective.

    Parameters
    ----------
    M : numpy.ndarray or number
        As in `broadcast`; read.
    root : int
    op : {"sum", "prod", "min", "max"} or callable
        min and max as NumPy's minimum and maximum; of bools they are "all" and "any", and there is no other. Integers
        wrap, also
        Python's, which have 64 bits here. A function f(a, b) gets two read-only 1-D
        arrays of equal length and returns their combination element by element; it must be
        associative.
    out : numpy.ndarray, optional
        Used on the root: like M; may be M. Default: a new array.
    algorithm : {"auto", "tree", "ring", "mpi"}
        The order is fixed by it, the root and the number of ranks, whatever the chunks, the
        strides and the timing: "tree" from left to right root, root + 1, ... (binomial);
        "ring" root + 1, root + 2, ..., root; "mpi" the library's (never picked by "auto").
    chunk_bytes, buffers, wait, start, explain, context
        As in `broadcast`.

    Returns
    -------
    numpy.ndarray, number, None or Handle
        `out` on the root, or a number where one was given; None elsewhere.

    Raises
    ------
    ConfigError
        As `broadcast`.
    KernelError
        On every rank: when the function failed on any.

    Notes
    -----
    Collective. [dawson2000]
    """
    here = context if context.__class__ is Context else _here(context)
    if here and _run_plain(
        "reduce", here, M, out, root, op, None, algorithm, chunk_bytes, buffers, wait, start, explain
    ):
        return out if here.rank == root else None
    call = _Call("reduce", context, M, algorithm, chunk_bytes, buffers, wait, start, explain)
    with call:
        M = call.given(M)
        call.root = _whole("root", root)
        call.matrix = view("M", M)
        call.reduction(op, M.dtype)
        if call.context.rank == call.root:
            out = np.empty(M.shape, M.dtype) if out is None else out
            call.out = view("out", out, written=True)
            same_rows(M, out)
            same_or_apart(M, out)
    result = out if call.context.rank == call.root else None
    return call.go(result, [M, result])


@_pattern
def spread(
    M,
    out=None,
    *,
    block=None,
    algorithm="auto",
    chunk_bytes=None,
    buffers=None,
    wait=True,
    start=True,
    explain=False,
    context=None,
):
    """Give every rank the columns of all: the column-replicated matrix; collective.

    Parameters
    ----------
    M : numpy.ndarray or number
        This rank's part: rows x its columns (any number, also 0); as in `broadcast` otherwise. Of arrays of other
        dimensions the
        last one is spread; numbers become an array of one dimension.
    out : numpy.ndarray, optional
        rows x the columns of all ranks. M may be its own place in it. Default: a new array.
    block : int, optional
        Columns are dealt to the ranks in blocks of this many, in turn (block-cyclic). Default: the
        parts side by side, in rank order.
    algorithm : {"auto", "ring", "direct", "mpi"}
        "direct": every rank sends to every other at once, for small parts and where ranks share cores.
    chunk_bytes, buffers, wait, start, explain, context
        As in `broadcast`.

    Returns
    -------
    numpy.ndarray or Handle
        out.

    Raises
    ------
    ConfigError
        As `broadcast`.

    Notes
    -----
    Collective: each rank sends and receives (p - 1)/p of the whole. [dawson2000]
    """
    here = context if context.__class__ is Context else _here(context)
    if here and _run_plain(
        "spread", here, M, out, 0, "sum", block, algorithm, chunk_bytes, buffers, wait, start, explain
    ):
        return out
    call = _Call("spread", context, M, algorithm, chunk_bytes, buffers, wait, start, explain)
    with call:
        M = call.given(M)
        call.scalar = None
        M = M.reshape(1) if isinstance(M, np.ndarray) and M.ndim == 0 else M
        call.matrix = view("M", M)
        call.block = _block(block)
        if out is None:
            call.head, call.dtype = M.shape[:-1], M.dtype
        else:
            call.out = view("out", out, written=True)
            same_rows(M, out)
            call.part_inside = inside(M, out)
    return call.go(out, [M, out])


@_pattern
def multi_reduce(
    M,
    out=None,
    op="sum",
    *,
    block=None,
    algorithm="auto",
    chunk_bytes=None,
    buffers=None,
    wait=True,
    start=True,
    explain=False,
    context=None,
):
    """Combine the matrices of all ranks, each rank getting its columns; collective.

    Parameters
    ----------
    M : numpy.ndarray
        As in `broadcast`, but no number. The whole matrix, rows x all columns, the same shape on every rank; read.
    out : numpy.ndarray, optional
        rows x this rank's columns; the columns of all ranks add up to M's. May be its own place in
        M. Default: a new array for an even part (the first ranks one column more), or what `block`
        deals.
    op : {"sum", "prod", "min", "max"} or callable
        As in `reduce`. The order for the part of rank r: r + 1, r + 2, ..., r.
    block : int, optional
        As in `spread`.
    algorithm : {"auto", "ring", "direct", "mpi"}
    chunk_bytes, buffers, wait, start, explain, context
        As in `broadcast`.

    Returns
    -------
    numpy.ndarray or Handle
        out.

    Raises
    ------
    ConfigError, KernelError
        As `reduce`.

    Notes
    -----
    Collective: each rank sends and receives (p - 1)/p of the whole. [dawson2000]
    """
    here = context if context.__class__ is Context else _here(context)
    if here and _run_plain(
        "multi_reduce", here, M, out, 0, op, block, algorithm, chunk_bytes, buffers, wait, start, explain
    ):
        return out
    call = _Call("multi_reduce", context, M, algorithm, chunk_bytes, buffers, wait, start, explain)
    with call:
        M = call.given(M)
        call.matrix = view("M", M)
        if M.ndim == 0:
            raise ConfigError("M is one number, which has no columns to share out; allowed: an array, or allreduce")
        call.reduction(op, M.dtype)
        call.block = _block(block)
        if out is None:
            columns = _core.dealt_columns(M.shape[-1], call.block, call.context.size, call.context.rank)
            out = np.empty((*M.shape[:-1], columns), M.dtype)
        call.out = view("out", out, written=True)
        same_rows(M, out)
        call.part_inside = inside(out, M)
    return call.go(out, [M, out])


@_pattern
def allreduce(
    M,
    op="sum",
    out=None,
    *,
    algorithm="auto",
    chunk_bytes=None,
    buffers=None,
    wait=True,
    start=True,
    explain=False,
    context=None,
):
    """Combine the matrices of all ranks and give every rank the result, the same bits everywhere; collective.

    Parameters
    ----------
    M : numpy.ndarray or number
        As in `broadcast`; read.
    op : {"sum", "prod", "min", "max"} or callable
        As in `reduce`.
    out : numpy.ndarray, optional
        Like M; may be M. Default: a new array.
    algorithm : {"auto", "tree", "ring"}
        "tree": `reduce` on rank 0, then `broadcast`; "ring": `multi_reduce`, then `spread`. "auto": "ring" from
        `ALLREDUCE_RING_BYTES` on, where each rank gets columns.
    chunk_bytes, buffers, wait, start, explain, context
        As in `broadcast`, for each of the two.

    Returns
    -------
    numpy.ndarray, number or Handle
        `out`, or a number where one was given.

    Raises
    ------
    ConfigError, KernelError
        As `reduce`.

    Notes
    -----
    Collective: the messages of the two patterns. The order of the combination is that of the first one. [dawson2000]
    """
    here = _here(context) or collective.find(context, (M,), {})[0]
    with interrupts.held():  # a rank that stopped between the two patterns would leave the others waiting
        outer, here._doing = (
            here._doing,
            "tw.patterns.allreduce",
        )  # so that ranks that call one of the two themselves differ
        try:
            return _allreduce(M, op, out, algorithm, chunk_bytes, buffers, wait, start, explain, context)
        finally:
            here._doing = outer


def _allreduce(M, op, out, algorithm, chunk_bytes, buffers, wait, start, explain, context):
    here = _here(context)
    if (
        here and algorithm.__class__ is str and algorithm == "auto" and out is None
    ):  # the most frequent calls, as in the other patterns
        row = M if type(M) is np.ndarray else np.array([M]) if isinstance(M, NUMBERS) else None
        if row is not None and row.nbytes < ALLREDUCE_RING_BYTES:
            whole = np.empty(row.shape, row.dtype)
            if _run_plain("reduce", here, row, whole, 0, op, None, "auto", chunk_bytes, buffers, wait, start, explain):
                broadcast(whole, context=here)
                return whole if row is M else whole[0] if isinstance(M, np.generic) else whole.item()
    call = _Call("reduce", context, M, "auto", chunk_bytes, buffers, wait, start, explain)
    ring = False
    with call:
        M = call.given(M)
        out = np.empty(M.shape, M.dtype) if out is None and isinstance(M, np.ndarray) else out
        ring = _as_ring(call.context, M, op, out, algorithm)
    if call.error:
        call.name = "allreduce"
        call.go(None, [])  # raises on every rank
    call.result = out
    choices = {"chunk_bytes": chunk_bytes, "buffers": buffers, "explain": explain, "context": call.context}
    if call.wait and call.start:
        for pattern in _two_patterns(call.context, M, op, out, ring):
            pattern(**choices)
        return call.outcome()
    # Ranks start patterns in one order: both are compared now; the second goes whenever the first is over.
    handle = AllreduceHandle(
        call, [pattern(start=False, **choices) for pattern in _two_patterns(call.context, M, op, out, ring)]
    )
    return handle.start() if call.start else handle


def _as_ring(context, M, op, out, algorithm):
    """Whether an allreduce goes by parts of the columns; what is wrong with its arguments raises."""
    if not isinstance(algorithm, str) or algorithm not in ("auto", "tree", "ring"):
        raise ConfigError(f"algorithm {algorithm!r} was given; allowed: 'auto', 'tree', 'ring'")
    view("M", M)
    view("out", out, written=True)
    if out.shape != M.shape or out.dtype != M.dtype:
        raise ConfigError(f"M is {M.shape} {M.dtype}, out is {out.shape} {out.dtype}; they must be equal")
    same_or_apart(M, out)
    columns = M.shape[-1] if M.ndim else 1
    return (
        algorithm == "ring"
        and M.ndim > 0
        or algorithm == "auto"
        and M.nbytes >= ALLREDUCE_RING_BYTES
        and columns >= context.size
    )


def _two_patterns(context, M, op, out, ring):
    if not ring:
        return functools.partial(reduce, M, 0, op, out), functools.partial(broadcast, out)
    M, out = rows_and_columns("M", M), rows_and_columns("out", out)
    counts = [_core.dealt_columns(M.shape[1], 0, context.size, rank) for rank in range(context.rank + 1)]
    part = out[:, sum(counts[:-1]) : sum(counts)]
    return functools.partial(multi_reduce, M, part, op), functools.partial(spread, part, out)


class AllreduceHandle:
    """An `allreduce` in flight, or made with ``start=False``: `test`, `wait`, `start` and `run` as a pattern's `Handle`
    has them.
    """

    def __init__(self, call, handles):
        self._call, self._handles, self._at = call, handles, None  # the one of the two that is under way

    algorithm = property(lambda self: " + ".join(handle.algorithm for handle in self._handles))
    buffer_bytes = property(lambda self: sum(handle.buffer_bytes for handle in self._handles))
    time_s = property(lambda self: sum(handle.time_s for handle in self._handles))

    def start(self):
        """Go once more on the same memory; made with ``start=False``."""
        self._handles[0].start()
        self._at = 0
        return self

    def test(self):
        """Move things on; True when it is over."""
        while self._at is not None:
            if not self._handles[self._at].test():
                return False
            self._next()
        return True

    def wait(self):
        """Wait until it is over; what the blocking call returns."""
        while self._at is not None:
            self._handles[self._at].wait()
            self._next()
        return self._call.outcome()

    def run(self):
        """`start` and `wait` in one; what the blocking call returns."""
        return self.start().wait()

    def explain(self):
        """The choices and their reasons, as text."""
        return "\n".join(handle.explain() for handle in self._handles)

    def _next(self):
        self._at = None if self._at else 1
        if self._at:
            self._handles[1].start()


def send(M, dest, tag=0, *, limit_bytes=SEND_LIMIT_BYTES, on_full="wait", context=None):
    """Send a matrix and return at once, whatever the receiver does: it is copied.

    Parameters
    ----------
    M : numpy.ndarray or number
        As in `broadcast`; may be changed as soon as the call returns.
    dest, tag : int
        Rank (also this one) and a number from 0 to 2047. Matrices to one rank with one tag
        arrive in order.
    limit_bytes : int
        The most that this context keeps of matrices not yet received, beside what is on its way in memory that
        ranks of a host share (at most 2.5 MB) or in the library's buffers.
    on_full : {"wait", "raise"}
        At that limit: wait for receivers, or raise ConfigError.
    context : Context, optional

    Raises
    ------
    ConfigError
        For a wrong argument; for a matrix larger than the limit.

    Notes
    -----
    Not collective. One copy packs and buffers; `Context.close` waits until all is received. [dawson2000]
    """
    context = _given(context)
    try:
        if _core.send_plain(context._core, M, dest, tag, limit_bytes, on_full, context):
            return
        number = number_of(M)
        matrix = view("send: M", M if number is None else number)
        if on_full not in ("wait", "raise"):
            raise ConfigError(f"send: on_full {on_full!r} was given; allowed: 'wait', 'raise'")
        _core.send_buffered(
            context._core,
            matrix,
            _whole("send: dest", dest),
            _whole("send: tag", tag),
            _whole("send: limit_bytes", limit_bytes),
            on_full == "wait",
            context,
        )
    finally:
        context._heart.done()


def receive(M, source, tag=0, *, wait=True, context=None):
    """Receive what `send` sent into a matrix of the same shape and dtype, with any row stride.

    Parameters
    ----------
    M : numpy.ndarray
        Written.
    source, tag : int
        As the sender's ``dest`` (its rank) and ``tag``.
    wait : bool
        False: return a handle with ``test()`` and ``wait()`` at once.
    context : Context, optional

    Returns
    -------
    numpy.ndarray or Handle
        M.

    Raises
    ------
    ConfigError
        For a wrong argument; for a message of another shape or dtype, which is then lost.

    Notes
    -----
    Not collective.
    """
    context = _given(context)
    if wait:
        try:
            if _core.receive_plain(context._core, M, source, tag):
                return M
        finally:
            context._heart.done()
    matrix = view("receive: M", M, written=True)
    core = _core.start_receive(
        context._core, matrix, _whole("receive: source", source), _whole("receive: tag", tag), [M, context]
    )
    handle = ReceiveHandle(context, core, M)
    return handle.wait() if wait else handle


class ReceiveHandle:
    """A receive in flight: `test` and `wait` as a pattern's `Handle` has them."""

    def __init__(self, context, core, result):
        self._context, self._core, self._result = context, core, result

    def test(self):
        """Move things on; True when the matrix is there."""
        return self._guard(self._core.test)

    def wait(self):
        """Wait for the matrix and return it."""
        self._guard(self._core.wait)
        return self._result

    def _guard(self, call):
        try:
            return call()
        finally:
            self._context._heart.done()


def _here(context):
    """The context of a call, where it is of the kind wanted; None elsewhere."""
    if context is None:
        return default_context()
    return context if context.__class__ is Context else None


def _given(context):
    """The context of a call that is not collective."""
    found = _here(context)
    if found is None:
        raise ConfigError(f"context: given {type(context).__name__}; allowed: tilewave.Context")
    return found


def _run_plain(kind, context, M, out, root, op, block, algorithm, chunk_bytes, buffers, wait, start, explain):
    """The most frequent call, where the time between calls counts: blocking, all arguments of exactly the types wanted.

    False: nothing was done; `_Call` must look at the arguments one by one.
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
        return _core.run_plain(context._core, kind, M, out, root, op, algorithm, context._doing)
    except ERRORS as problem:
        raise context._of_all(problem) from None
    finally:
        context._lock.release()
        context._heart.done()


class _Call:
    """Collects one call's arguments; what is wrong with them is said to all ranks by `go`, as the pattern begins.

    A pattern agrees by itself, in messages that small matrices go along with: so it has not the shape of
    `tilewave.runtime.collective`, but keeps
    its rules. Nothing raises on one rank alone.
    """

    def __init__(self, kind, context, M, algorithm, chunk_bytes, buffers, wait, start, explain):
        self.kind = self.name = kind
        self.user_name = ""
        self.context, problem = collective.find(context, (M,), {})
        self.error = problem and str(problem)
        self.matrix = self.out = self.user = self.result = self.scalar = None
        self.outer = ""
        self.op, self.root, self.block, self.part_inside = "sum", 0, 0, -1
        self.algorithm, self.chunk_bytes, self.buffers = "auto", 0, 0
        self.wait, self.start, self.explain = True, True, False
        with self:
            self.wait, self.start, self.explain = _flag("wait", wait), _flag("start", start), _flag("explain", explain)
        with self:
            if not isinstance(algorithm, str):
                raise ConfigError(f"algorithm {algorithm!r} was given; allowed: a name")
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
                collective.function_text(op),
            )
        elif isinstance(op, str) and op in OPS:
            self.op = op
        else:
            raise ConfigError(f"op {op!r} was given; allowed: {', '.join(OPS)}, or a function of two arrays")

    def allocate(self, columns):
        """The result of a spread that was given none, once its columns are known."""
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
            with interrupts.held():
                return self._go(result, memory)
        finally:
            context._doing = outer
            context._lock.release()

    def _go(self, result, memory):
        error = encodable(f"{self.name}: {self.error}") if self.error else ""
        self.result = result
        own = self.allocate if self.kind == "spread" and result is None else None
        try:
            core = _core.start_pattern(
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
                own,
                [memory, self],
                collective.where(),
                self.user_name,
                self.outer,
                self.context._doing,
            )
        except ERRORS as problem:
            raise self.context._of_all(problem) from None
        finally:
            self.context._heart.done()
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


def _whole(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ConfigError(f"{name} {value!r} was given; allowed: an integer")
    bits = 63 if name.endswith("_bytes") else 31
    if not -(2**bits) <= value < 2**bits:
        raise ConfigError(f"{name} {value} was given; allowed: less than 2**{bits}")
    return int(value)


def _choice(name, value):
    if value is None:
        return 0
    if _whole(name, value) < 1:
        raise ConfigError(f"{name} {value} was given; at least 1 is allowed")
    return int(value)


def _block(value):
    return _choice("block", value)
