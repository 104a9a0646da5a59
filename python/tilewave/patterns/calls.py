"""Communication patterns on arrays: matrices with any row stride, one row, one number.

An array of one dimension is one row. One of three and more dimensions is contiguous, and a matrix: a row for each place
in all dimensions but the last. An array of no dimension, or a number (Python's or NumPy's), has one element; numbers
are returned as numbers of the same type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewave import _core
from tilewave.context.context import Context
from tilewave.errors import ConfigError
from tilewave.patterns.arguments import Call, Given, PatternChoices, block_of, pattern, run_plain, whole_number
from tilewave.patterns.matrix import inside, same_or_apart, same_rows, view

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from tilewave.annotations import Array, Number, Outcome


@pattern
def broadcast(
    M: Array | Number,
    root: int = 0,
    *,
    context: Context | None = None,
    **choices: Unpack[PatternChoices],
) -> Outcome:
    """Give every rank the root's matrix; collective.

    Parameters
    ----------
    M : numpy.ndarray or number
        rows x cols, the same shape and dtype on every rank, unit column stride, any row stride; read on the root,
        written elsewhere. bool, float32/64, complex64/128, (u)int8/16/32/64. Also arrays of other dimensions
        and numbers, as `tilewave.patterns` says; of a number, each rank gives one of the same type.
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
    given = Given.of(broadcast, choices)
    if run_plain("broadcast", context, M, None, root, "sum", None, given):
        return M
    call = Call("broadcast", context, M, given)
    with call:
        M = call.given(M)
        call.core.root = whole_number("root", root)
        call.core.matrix = view("M", M, written=call.context.rank != call.core.root)
    return call.go(M, [M])


@pattern
def reduce(
    M: Array | Number,
    root: int = 0,
    op: str | Callable[..., Any] = "sum",
    out: Array | None = None,
    *,
    context: Context | None = None,
    **choices: Unpack[PatternChoices],
) -> Outcome:
    """Combine the matrices of all ranks on the root; collective.

    Parameters
    ----------
    M : numpy.ndarray or number
        As in `broadcast`; read.
    root : int
    op : {"sum", "prod", "min", "max"} or callable
        min and max as NumPy's minimum and maximum; of bools they are "all" and "any", and there is no other. Integers
        wrap, also Python's, which have 64 bits here. A function f(a, b) gets two read-only 1-D arrays of equal length
        and returns their combination element by element; it must be associative, and the same on every rank: its code,
        and the numbers, texts, arrays and functions that it carries (defaults, closures, a partial's arguments).
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
    given = Given.of(reduce, choices)
    if here := run_plain("reduce", context, M, out, root, op, None, given):
        return out if here.rank == root else None
    call = Call("reduce", context, M, given)
    with call:
        M = call.given(M)
        call.core.root = whole_number("root", root)
        call.core.matrix = view("M", M)
        call.reduction(op, M.dtype)
        if call.context.rank == call.core.root:
            out = np.empty(M.shape, M.dtype) if out is None else out
            call.core.out = view("out", out, written=True)
            same_rows(M, out)
            same_or_apart(M, out)
    result = out if call.context.rank == call.core.root else None
    return call.go(result, [M, result])


@pattern
def spread(
    M: Array | Number,
    out: Array | None = None,
    *,
    block: int | None = None,
    context: Context | None = None,
    **choices: Unpack[PatternChoices],
) -> Outcome:
    """Give every rank the columns of all ranks, as MPI_Allgatherv does; collective.

    Parameters
    ----------
    M : numpy.ndarray or number
        This rank's part: rows x its columns (any number, also 0); as in `broadcast` otherwise. Of arrays of other
        dimensions the last one is spread; numbers become an array of one dimension.
    out : numpy.ndarray, optional
        rows x the columns of all ranks. M may be its place in it. Default: a new array.
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
    given = Given.of(spread, choices)
    if run_plain("spread", context, M, out, 0, "sum", block, given):
        return out
    call = Call("spread", context, M, given)
    with call:
        M = call.given(M)
        call.scalar = None
        M = M.reshape(1) if isinstance(M, np.ndarray) and M.ndim == 0 else M
        call.core.matrix = view("M", M)
        call.core.block = block_of(block)
        if out is None:
            call.head, call.dtype = M.shape[:-1], M.dtype
        else:
            call.core.out = view("out", out, written=True)
            same_rows(M, out)
            call.core.part_inside = inside(M, out)
    return call.go(out, [M, out])


@pattern
def multi_reduce(
    M: Array | Number,
    out: Array | None = None,
    op: str | Callable[..., Any] = "sum",
    *,
    block: int | None = None,
    context: Context | None = None,
    **choices: Unpack[PatternChoices],
) -> Outcome:
    """Combine the matrices of all ranks and give each rank its columns, as MPI_Reduce_scatter does; collective.

    Parameters
    ----------
    M : numpy.ndarray
        As in `broadcast`, but no number. The whole matrix, rows x all columns, the same shape on every rank; read.
    out : numpy.ndarray, optional
        rows x this rank's columns; the columns of all ranks add up to M's. May be its place in M.
        Default: a new array for an even part (the first ranks one column more), or what `block`
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
    given = Given.of(multi_reduce, choices)
    if run_plain("multi_reduce", context, M, out, 0, op, block, given):
        return out
    call = Call("multi_reduce", context, M, given)
    with call:
        M = call.given(M)
        call.core.matrix = view("M", M)
        if M.ndim == 0:
            raise ConfigError("M is one number, which has no columns to share out; allowed: an array, or allreduce")
        call.reduction(op, M.dtype)
        call.core.block = block_of(block)
        if out is None:
            columns = _core.dealt_columns(M.shape[-1], call.core.block, call.context.size, call.context.rank)
            out = np.empty((*M.shape[:-1], columns), M.dtype)
        call.core.out = view("out", out, written=True)
        same_rows(M, out)
        call.core.part_inside = inside(out, M)
    return call.go(out, [M, out])
