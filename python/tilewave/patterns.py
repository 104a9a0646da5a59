"""Communication patterns on matrices with any row stride."""
import numpy as np

from tilewave import _core
from tilewave.context import resolve
from tilewave.errors import ConfigError, KernelError
from tilewave.matrix import inside, same_or_apart, view
from tilewave.user_op import UserOp, encodable

OPS = ("sum", "prod", "min", "max")
SEND_LIMIT_BYTES = 256 << 20


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
        self._run_core, self._heart = core.run, call.context._heart  # looked up once: of small matrices they are much of the time

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
        return self._call.result

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
        except (ConfigError, KernelError) as error:
            raise self._context._shared(error) from None
        finally:
            self._heart.done()
        return self._call.result

    def explain(self):
        """The choice and its reason, as text."""
        return f"{self._core.plan}\n  because: {self.why}"

    def _guard(self, call):
        try:
            return call()
        except (ConfigError, KernelError) as error:  # others may have happened on this rank alone
            raise self._context._shared(error) from None
        finally:
            self._context._heart.done()


def broadcast(M, root=0, *, algorithm="auto", chunk_bytes=None, buffers=None, wait=True, start=True,
              explain=False, context=None):
    """Give every rank the root's matrix; collective.

    Parameters
    ----------
    M : numpy.ndarray
        rows x cols, the same shape and dtype on every rank, unit column stride, any row stride;
        read on the root, written elsewhere. float32/64, complex64/128, int32/64 or uint8.
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
    numpy.ndarray or Handle
        M.

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
    context = resolve(context)
    if _run_plain("broadcast", context, M, None, root, "sum", None, algorithm, chunk_bytes, buffers, wait, start, explain):
        return M
    call = _Call("broadcast", context, algorithm, chunk_bytes, buffers, wait, start, explain)
    with call:
        call.root = _whole("root", root)
        call.matrix = view("M", M, written=call.context.rank != call.root)
    return call.go(M, [M])


def reduce(M, root=0, op="sum", out=None, *, algorithm="auto", chunk_bytes=None, buffers=None, wait=True,
           start=True, explain=False, context=None):
    """Combine the matrices of all ranks on the root; collective.

    Parameters
    ----------
    M : numpy.ndarray
        As in `broadcast`; read.
    root : int
    op : {"sum", "prod", "min", "max"} or callable
        min and max as NumPy's minimum and maximum. A function f(a, b) gets two read-only 1-D
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
    numpy.ndarray, None or Handle
        `out` on the root, None elsewhere.

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
    context = resolve(context)
    if _run_plain("reduce", context, M, out, root, op, None, algorithm, chunk_bytes, buffers, wait, start, explain):
        return out if context.rank == root else None
    call = _Call("reduce", context, algorithm, chunk_bytes, buffers, wait, start, explain)
    with call:
        call.root = _whole("root", root)
        call.matrix = view("M", M)
        call.reduction(op, M.dtype)
        if call.context.rank == call.root:
            out = np.empty(M.shape, M.dtype) if out is None else out
            call.out = view("out", out, written=True)
            same_or_apart(M, out)
    result = out if call.context.rank == call.root else None
    return call.go(result, [M, result])


def spread(M, out=None, *, block=None, algorithm="auto", chunk_bytes=None, buffers=None, wait=True, start=True,
           explain=False, context=None):
    """Give every rank the columns of all: the column-replicated matrix; collective.

    Parameters
    ----------
    M : numpy.ndarray
        This rank's part: rows x its columns (any number, also 0); as in `broadcast` otherwise.
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
    context = resolve(context)
    if _run_plain("spread", context, M, out, 0, "sum", block, algorithm, chunk_bytes, buffers, wait, start, explain):
        return out
    call = _Call("spread", context, algorithm, chunk_bytes, buffers, wait, start, explain)
    with call:
        call.matrix = view("M", M)
        call.block = _block(block)
        if out is None:
            call.rows, call.dtype = M.shape[0], M.dtype
        else:
            call.out = view("out", out, written=True)
            call.part_inside = inside(M, out)
    return call.go(out, [M, out])


def multi_reduce(M, out=None, op="sum", *, block=None, algorithm="auto", chunk_bytes=None, buffers=None,
                 wait=True, start=True, explain=False, context=None):
    """Combine the matrices of all ranks, each rank getting its columns; collective.

    Parameters
    ----------
    M : numpy.ndarray
        The whole matrix, rows x all columns, the same shape on every rank; read.
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
    context = resolve(context)
    if _run_plain("multi_reduce", context, M, out, 0, op, block, algorithm, chunk_bytes, buffers, wait, start, explain):
        return out
    call = _Call("multi_reduce", context, algorithm, chunk_bytes, buffers, wait, start, explain)
    with call:
        call.matrix = view("M", M)
        call.reduction(op, M.dtype)
        call.block = _block(block)
        if out is None:
            columns = _core.dealt_columns(M.shape[1], call.block, call.context.size, call.context.rank)
            out = np.empty((M.shape[0], columns), M.dtype)
        call.out = view("out", out, written=True)
        call.part_inside = inside(out, M)
    return call.go(out, [M, out])


def send(M, dest, tag=0, *, limit_bytes=SEND_LIMIT_BYTES, on_full="wait", context=None):
    """Send a matrix and return at once, whatever the receiver does: it is copied.

    Parameters
    ----------
    M : numpy.ndarray
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
    context = resolve(context)
    try:
        if _core.send_plain(context._core, M, dest, tag, limit_bytes, on_full, context):
            return
        matrix = view("send: M", M)
        if on_full not in ("wait", "raise"):
            raise ConfigError(f"send: on_full {on_full!r} was given; allowed: 'wait', 'raise'")
        _core.send_buffered(context._core, matrix, _whole("send: dest", dest), _whole("send: tag", tag),
                            _whole("send: limit_bytes", limit_bytes), on_full == "wait", context)
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
    context = resolve(context)
    if wait:
        try:
            if _core.receive_plain(context._core, M, source, tag):
                return M
        finally:
            context._heart.done()
    matrix = view("receive: M", M, written=True)
    core = _core.start_receive(context._core, matrix, _whole("receive: source", source), _whole("receive: tag", tag), [M, context])
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


def _run_plain(kind, context, M, out, root, op, block, algorithm, chunk_bytes, buffers, wait, start, explain):
    """The most frequent call, where the time between calls counts: blocking, all arguments of exactly the types wanted.

    False: nothing was done; `_Call` must look at the arguments one by one.
    """
    if not (wait and start) or explain or block is not None or chunk_bytes is not None or buffers is not None:
        return False
    try:
        return _core.run_plain(context._core, kind, M, out, root, op, algorithm)
    except (ConfigError, KernelError) as problem:
        raise context._shared(problem) from None
    finally:
        context._heart.done()


class _Call:
    """Collects one call's arguments; what is wrong with them is said to all ranks by `go`."""

    def __init__(self, kind, context, algorithm, chunk_bytes, buffers, wait, start, explain):
        self.kind, self.context = kind, resolve(context)
        self.error = self.matrix = self.out = self.user = self.result = None
        self.op, self.root, self.block, self.part_inside = "sum", 0, 0, -1
        self.algorithm, self.chunk_bytes, self.buffers = "auto", 0, 0
        self.wait, self.start, self.explain = wait, start, explain
        with self:
            if not isinstance(algorithm, str):
                raise ConfigError(f"algorithm {algorithm!r} was given; allowed: a name")
            self.algorithm = algorithm
            self.chunk_bytes = _choice("chunk_bytes", chunk_bytes)
            self.buffers = _choice("buffers", buffers)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or not isinstance(error, Exception):
            return False
        if self.error is None:
            self.error = str(error) if isinstance(error, ConfigError) else f"{kind.__name__}: {error}"
        return True

    def reduction(self, op, dtype):
        if callable(op):
            self.op, self.user = "user", UserOp(op, dtype, self.context.rank)
        elif op in OPS:
            self.op = op
        else:
            raise ConfigError(f"op {op!r} was given; allowed: {', '.join(OPS)}, or a function of two arrays")

    def allocate(self, columns):
        """The result of a spread that was given none, once its columns are known."""
        self.result = np.empty((self.rows, columns), self.dtype)
        return view("out", self.result)

    def go(self, result, memory):
        error = encodable(f"{self.kind}: {self.error}") if self.error else ""
        self.result = result
        own = self.allocate if self.kind == "spread" and result is None else None
        try:
            core = _core.start_pattern(
                self.context._core, self.kind, self.matrix, self.out, self.root, self.op, self.user, self.block,
                self.part_inside, self.algorithm, self.chunk_bytes, self.buffers, not self.start, error, own,
                [memory, self])
        except (ConfigError, KernelError) as problem:  # others may have happened on this rank alone
            raise self.context._shared(problem) from None
        finally:
            self.context._heart.done()
        handle = Handle(self, core)
        if self.start:
            return handle.wait() if self.wait else handle
        if self.explain and self.context.rank == 0:
            print(handle.explain())
        return handle


def _whole(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ConfigError(f"{name} {value!r} was given; allowed: an integer")
    bits = 63 if name.endswith("_bytes") else 31
    if not -2**bits <= value < 2**bits:
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
