"""This file has what operators of matrices do: products, sums, elements and parts."""

from __future__ import annotations

import numbers

import numpy as np

from tilewave import _core
from tilewave.context.checksum import checksum
from tilewave.context.collective import collective, ready
from tilewave.errors import ConfigError, is_integer, shown
from tilewave.field.index import Selection
from tilewave.field.values import as_index_error, require_no_mask
from tilewave.linalg.arrays import left
from tilewave.linalg.initial import DTYPES, require_real
from tilewave.linalg.layout import layout_of
from tilewave.linalg.matmul import matmul
from tilewave.linalg.matrix import Matrix, Transposed, as_matrix, require_no_factor
from tilewave.linalg.moves import Move
from tilewave.linalg.operators import SYMBOLS, Operators
from tilewave.nest.names import array_power
from tilewave.patterns.allreduces import allreduce

#: Elements of a part that is converted at once.
MOST_CONVERTED = 1 << 20


def as_array(found, dtype):
    """Numbers that the core gives, as an array."""
    found = np.frombuffer(found, "c16")
    return (found if dtype.kind == "c" else found.real).astype(dtype)


def converted(a, dtype):
    """A matrix, or its transposed, in another dtype."""
    if a.dtype == dtype:
        return a
    if isinstance(a, Transposed):
        return Transposed(converted(a.matrix, dtype), a.op)
    return a.astype(dtype)


def dtype_of_result(call, ufunc, operands):
    """Return the dtype that NumPy promotes both to; raises ConfigError for what no matrix has."""
    try:
        with np.errstate(all="ignore"):
            samples = [np.empty(0, x.dtype) if getattr(x, "shape", ()) else x for x in operands]
            found = ufunc(*samples).dtype
    except (TypeError, OverflowError) as problem:
        raise ConfigError(f"{call}: {problem}") from None
    if found not in DTYPES:
        raise ConfigError(f"{call}: the result would have dtype {found}; allowed: {', '.join(map(str, DTYPES))}")
    return found


# Products


def multiplied(a, b):
    """``a @ b``."""
    if not (isinstance(a, Operators) and isinstance(b, Operators)):
        return _with_array(a, b) if isinstance(a, Operators) else _with_array(b, a, True)
    dtype = np.result_type(a.dtype, b.dtype)
    (a, op_a), (b, op_b) = (
        (x.matrix, x.op) if isinstance(x, Transposed) else (x, "N") for x in (converted(a, dtype), converted(b, dtype))
    )
    return matmul(a, b, trans_a=op_a, trans_b=op_b)


@collective("tw.linalg.Matrix.__matmul__")
def _with_array(a, x, on_left=False):
    """op(A) x, or x op(A), of an array x that every rank has: an array on every rank."""
    x = _array("@", x)
    op, a = (a.op, a.matrix) if isinstance(a, Transposed) else ("N", a)
    inner, outer = (a.rows, a.columns) if (op == "N") == on_left else (a.columns, a.rows)
    turned, conjugate = (op == "N") == on_left, op == "C"
    extents = a.shape if turned else a.shape[::-1]
    if x.ndim not in (1, 2) or x.shape[-1 if on_left else 0] != extents[0]:
        side = "x @ A" if on_left else "A @ x"
        raise ConfigError(
            f"{side}: x of shape {x.shape} and A of shape {a.shape if op == 'N' else a.shape[::-1]}; "
            f"allowed: a vector of {extents[0]} elements, or a matrix that fits"
        )
    dtype = dtype_of_result("@", np.multiply, (a, x))
    y = (x[:, None] if x.ndim == 1 else x.T if on_left else x).astype(dtype, copy=False)
    whole = np.zeros((extents[1], y.shape[1]), dtype)
    yield f"{a._identity()}, op {op}, x {x.shape} {x.dtype} {checksum(x) if a.context.size > 1 else ''} {on_left}"
    y = y[inner].conj() if conjugate else y[inner]
    part = a.local.T if turned else a.local
    step = part.shape[1] or 1 if part.dtype == dtype else max(1, MOST_CONVERTED // max(1, part.shape[0]))
    with np.errstate(all="ignore"):
        found = np.zeros((part.shape[0], y.shape[1]), dtype)
        for at in range(0, part.shape[1], step):
            found += part[:, at : at + step].astype(dtype, copy=False) @ y[at : at + step]
    whole[outer] = found.conj() if conjugate else found
    if a.context.size > 1 and whole.size:
        allreduce(whole, "sum", out=whole, context=a.context)
    return whole[:, 0] if x.ndim == 1 else whole.T if on_left else whole


def _array(call, given):
    """An operand that is no matrix, as an array of numbers."""
    require_no_mask(call, given)
    found = np.asarray(given) if isinstance(given, np.ndarray | list | tuple | np.generic) else None
    if found is None or found.dtype.kind not in "biufc":
        what = type(given).__name__ if found is None else f"an array of {found.dtype}"
        raise ConfigError(
            f"{call}: given {what} with a matrix; allowed: matrices, numbers, NumPy arrays that all ranks have"
        )
    return found


# Element by element


def combined(ufunc, *operands, out=None):
    """``ufunc(*operands)`` as a matrix; `out`: the one that it becomes."""
    return _combined(next(x for x in (out, *operands) if isinstance(x, Operators)), ufunc, operands, out)


@collective("tw.linalg.Matrix, element by element")
def _combined(like, ufunc, operands, out):
    operands, call, texts = list(operands), SYMBOLS[ufunc], []
    for k, x in enumerate(operands):
        if isinstance(x, Operators):
            if x.shape != like.shape or x.context is not like.context:
                raise ConfigError(
                    f"{call}: given matrices of shapes {like.shape} and {x.shape}; allowed: one shape, one context"
                )
            texts.append(x._identity())
        elif isinstance(x, numbers.Number | np.generic):
            texts.append(f"{type(x).__name__} {x!r}")
        else:
            operands[k] = x = _array(call, x)
            if len(x.shape) > 2 or any(n not in (1, m) for n, m in zip(x.shape[::-1], like.shape[::-1], strict=False)):
                raise ConfigError(
                    f"{call}: an array of shape {x.shape} with a matrix of shape {like.shape}; allowed: "
                    "one that broadcasts to it"
                )
            texts.append(f"array {x.shape} {x.dtype} {checksum(x) if like.context.size > 1 else ''}")
    dtype = dtype_of_result(call, ufunc, operands)
    if out is not None:
        require_no_factor(f"{call}=", "A", out)
        if not np.can_cast(dtype, out.dtype, "same_kind"):
            raise ConfigError(f"{call}=: the result has dtype {dtype}, the matrix {out.dtype}; allowed: A = A {call} x")
    text = f"{ufunc.__name__}, {'; '.join(texts)}, out {out is not None and out._number}"
    if any(isinstance(x, Transposed) for x in operands):
        yield text  # what is wrong is raised before a matrix moves
    for k, x in enumerate(operands):
        operands[k] = yield from as_matrix(x)
    made, moves = yield from ready(text, lambda: _placed(operands, dtype, out))
    for move, source, target in moves:
        move(source, target)
    with np.errstate(all="ignore"):
        if ufunc is np.power and made.local.size == 1 and np.ndim(operands[1]):
            made.local[...] = array_power(*operands)  # as among the elements of a larger part
        else:
            ufunc(*operands, out=made.local, casting="same_kind")
    return made


def _placed(operands, dtype, out):
    """The matrix of the result, and the moves of operands that lie elsewhere; each operand becomes this rank's part."""
    like = next(x for x in (out, *operands) if isinstance(x, Matrix))
    made, moves = Matrix(like.context, like.shape, dtype, like.layout) if out is None else out, []
    for k, x in enumerate(operands):
        if not isinstance(x, Matrix):
            operands[k] = np.broadcast_to(x, like.shape)[np.ix_(made.rows, made.columns)] if np.ndim(x) else x
        elif x._blocks.same(made._blocks):
            operands[k] = x.local
        else:
            operands[k] = np.empty(made.local.shape, x.dtype, order="F")
            moves.append((Move(x.context, x._blocks, made._blocks, x.dtype), x.local, operands[k]))
    return made, moves


# Elements and parts


def _among(indices, first, step, count):
    """(which of a run's elements are among these, where in them)."""
    place, rest = np.divmod(indices - first, step)
    found = np.flatnonzero((rest == 0) & (place >= 0) & (place < count))
    return place[found], found


def taken(a, given):
    """``A[given]``."""
    return as_index_error(lambda: _taken(a, given))


@collective("tw.linalg.Matrix.__getitem__")
def _taken(a, given):
    selection = Selection(given, a.shape)
    (rows, columns), sliced = selection.key
    turned, conjugate = isinstance(a, Transposed), isinstance(a, Transposed) and a.op == "C"
    if turned:
        a, rows, columns = a.matrix, columns, rows
    if all(sliced):
        made = yield from _part(a, rows, columns)
        return Transposed(made, "C" if conjugate else "T") if turned else made
    yield f"{a._identity()}, {selection.key}, {turned}"
    found = as_array(a.context._together(_core.linalg.elements_of, a._storage, rows, columns), a.dtype)
    found = found.conj() if conjugate else found
    return found[0] if selection.scalar else found.reshape(selection.shape)


def _part(a, rows, columns):
    """A new matrix of runs of rows and columns; a part of a collective call."""
    context, layout, shape = a.context, a.layout, (rows[2], columns[2])
    if layout.name != "cyclic":
        layout = layout_of("part", shape, context.size, layout.name, None, None, layout._weights_of(context.size))
    made = Matrix(context, shape, a.dtype, layout)
    yield f"part of {a._identity()}, {(rows, columns)}"
    context._together(_core.linalg.take_part, a._storage, rows, columns, made._storage)
    return made


def put(a, given, value):
    """``A[given] = value``."""
    as_index_error(lambda: _put(a, given, value))


@collective("tw.linalg.Matrix.__setitem__")
def _put(a, given, value):
    require_no_factor("A[...] = ", "A", a)
    selection = Selection(given, a.shape)
    if isinstance(value, Operators):
        value = yield from _block(a, selection, value)
    values = _array("A[...] = ", np.asarray(value) if isinstance(value, numbers.Number) else value)
    if values.dtype.kind == "c" and a.dtype.kind != "c":
        raise ConfigError(f"A[...] = : complex numbers were given for {a.dtype}; allowed: real ones")
    try:
        values = np.broadcast_to(values, selection.shape).reshape(selection.counts)
    except ValueError:
        raise ConfigError(
            f"A[...] = : an array of shape {values.shape} was given for elements of shape {selection.shape}; allowed: "
            "one that broadcasts to it"
        ) from None
    yield f"{a._identity()}, {selection.key}, {values.shape} {checksum(values) if a.context.size > 1 else ''}"
    (at, i), (along, j) = (_among(x, *run) for x, run in zip((a.rows, a.columns), selection.key[0], strict=True))
    a.local[np.ix_(i, j)] = values[np.ix_(at, along)]


def _block(a, selection, value):
    """A matrix that becomes a block of another one, as an array on every rank; a part of a collective call."""
    if value.shape != selection.shape or value.context is not a.context:
        raise ConfigError(
            f"A[...] = : a matrix of shape {value.shape} was given for elements of shape {selection.shape}; allowed: a "
            "matrix of that shape and context"
        )
    require_real(value.dtype, a.dtype)
    yield f"{a._identity()}, {selection.key}, {value._identity()}"
    value = yield from as_matrix(value)
    return (yield from left(value, value.shape))


@collective("tw.linalg.Matrix.diagonal")
def diagonal(a, offset):
    """The elements whose column is `offset` beyond their row, on every rank."""
    if not is_integer(offset):
        raise ConfigError(f"diagonal: offset: given {shown(offset)}; allowed: an integer")
    conjugate = isinstance(a, Transposed) and a.op == "C"
    if isinstance(a, Transposed):
        a, offset = a.matrix, -offset
    yield f"{a._identity()}, {offset}"
    found = as_array(a.context._together(_core.linalg.diagonal_of, a._storage, int(offset)), a.dtype)
    return found.conj() if conjugate else found


def set_operators():
    """Set what the operators of matrices do: it needs matrices."""
    for function in (combined, multiplied, taken, put, diagonal):
        setattr(Operators, f"_{function.__name__}", staticmethod(function))
