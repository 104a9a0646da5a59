"""Distributed matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewave import _core
from tilewave.context.collective import collective, holds_context, ready
from tilewave.dtypes import NAMES
from tilewave.errors import ConfigError, shown
from tilewave.field.field import Field
from tilewave.linalg.initial import (
    ARRAY,
    FIELD,
    FUNCTION,
    NOTHING,
    NUMBER,
    agree_on_init,
    dtype_of,
    fill,
    read_given,
    require_real,
)
from tilewave.linalg.layout import Layout, indices_of, layout_of
from tilewave.linalg.moves import InEvenBlocks, Move, on_rank_0
from tilewave.linalg.operators import Operators

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from tilewave.annotations import Array, Collective, Init
    from tilewave.context.context import Context

#: In descriptors of ScaLAPACK: a dense matrix; a BLACS context that is not known.
_DENSE, _NO_CONTEXT = 1, -1


@holds_context
class Matrix(Operators):
    """A matrix that is spread over the ranks of a context; `tilewave.linalg.matrix` makes it.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    layout : Layout
        How it is spread: its name, block, grid and weights.
    context : Context
    report : MatmulReport or None
        Of the product that has made it.
    """

    context: Context
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    layout: Layout
    report: Any

    _source = ""  # of what it was made, where ranks must agree on that

    def __init__(
        self, context: Context, shape: tuple[int, int], dtype: np.dtype[Any], layout: Layout, storage: Any = None
    ) -> None:
        self.context, self.shape, self.dtype, self.layout, self.report = context, shape, dtype, layout, None
        self._storage = storage or _core.linalg.Matrix(context._core, layout._core(shape), NAMES[dtype])
        self._blocks, self._local = self._storage.layout, self._storage.array()
        self._number = context._next_number()
        context._ranks.holds(self)

    @property
    def local(self) -> Array:
        """numpy.ndarray: this rank's part, in Fortran order, of the global `rows` and `columns`; it may be written to,
        ``A.local[...] = values``, but not replaced.
        """
        return self._local

    @local.setter
    def local(self, given: Array) -> None:
        if given is not self._local:  # A.local *= 2 gives it itself
            raise ConfigError(f"local: given {shown(given)} in its place; allowed: A.local[...] = values")

    @property
    def rows(self) -> Array:
        """numpy.ndarray: the global indices of this rank's rows."""
        return indices_of(self._blocks.rows, self._blocks.row_of(self.context.rank))

    @property
    def columns(self) -> Array:
        """numpy.ndarray: the global indices of this rank's columns."""
        return indices_of(self._blocks.columns, self._blocks.column_of(self.context.rank))

    @collective("tw.linalg.Matrix.gather")
    def gather(self) -> Collective[Array | None]:
        """The whole matrix on rank 0, None elsewhere; collective.

        Returns
        -------
        numpy.ndarray or None
        """
        context = self.context
        whole = np.empty(self.shape if context.rank == 0 else (0, 0), self.dtype)
        move = Move(context, self._blocks, on_rank_0(self.shape), self.dtype)
        yield self._identity()
        move(self.local, whole)
        return whole if context.rank == 0 else None

    @collective("tw.linalg.Matrix.redistribute")
    def redistribute(
        self,
        layout: str | Layout = "rows",
        block: int | Sequence[int] | None = None,
        grid: Sequence[int] | None = None,
        weights: Sequence[int] | None = None,
    ) -> Collective[Matrix]:
        """A copy in another layout; collective.

        Parameters
        ----------
        layout, block, grid, weights
            As in `tilewave.linalg.matrix`; or the `layout` of another matrix.

        Returns
        -------
        Matrix

        Raises
        ------
        ConfigError
            On every rank, for a layout that there is none of on any.

        Notes
        -----
        Each element moves once; memory beyond the two matrices is four pieces of 1 MiB, or of a column where that is
        more.
        """
        layout = layout_of("redistribute", self.shape, self.context.size, layout, block, grid, weights)
        made = Matrix(self.context, self.shape, self.dtype, layout)
        move = Move(self.context, self._blocks, made._blocks, self.dtype)
        yield f"{self._identity()}, to {layout}"
        move(self.local, made.local)
        return made

    def to_scalapack(self, blacs_context: int = _NO_CONTEXT) -> tuple[Array, Array]:
        """Return what ScaLAPACK wants to know: a descriptor, and this rank's part without a copy.

        Parameters
        ----------
        blacs_context : int
            Of a grid of `layout.grid` ranks in row-major order, "R". Default: none, entry 1 of the descriptor is -1.

        Returns
        -------
        descriptor : numpy.ndarray
            Nine int32: dense, context, rows, columns, block rows, block columns, first rank row and column, leading
            dimension.
        local : numpy.ndarray
            `local`, in Fortran order.

        Raises
        ------
        ConfigError
            For extents or a context beyond 32 bits; of a layout with weights, which ScaLAPACK does not know.
        """
        if self.layout.weights:
            raise ConfigError(
                f"to_scalapack: given a matrix with weights {self.layout.weights}; allowed: blocks in turns, as those "
                "of A.redistribute()"
            )
        leading = max(1, self.local.shape[0])
        numbers = [_DENSE, blacs_context, *self.shape, *self.layout.block, 0, 0, leading]
        try:
            return np.array(numbers, dtype=np.int32), self.local
        except (OverflowError, TypeError, ValueError):
            raise ConfigError(
                f"to_scalapack: given a matrix of shape {self.shape} and the context {shown(blacs_context)}; allowed: "
                "integers of 32 bits, as ScaLAPACK's"
            ) from None

    def _text(self):
        """Return what plans depend on."""
        return f"{self.shape} {self.dtype}, {self.layout}{self._source}"

    def _identity(self):
        """Return what must be equal on all ranks: that it is the same matrix, too."""
        return f"matrix {self._number}, {self._text()}"

    @property
    def T(self) -> Transposed:
        """Transposed: Aᵀ, without a copy."""
        return Transposed(self, "T")

    @property
    def H(self) -> Transposed:
        """Transposed: Aᴴ, transposed and conjugate, without a copy."""
        return Transposed(self, "C")

    def copy(self) -> Matrix:
        """Another matrix with the same elements, in the same layout; collective."""
        return self.astype(self.dtype)

    def _become(self, *call: Any) -> Matrix:
        return self._combined(*call, out=self)

    def __imatmul__(self, other: Any) -> Matrix:
        product = self @ other
        if product.shape != self.shape:
            raise ConfigError(
                f"A @= B: the product has shape {product.shape}, the matrix {self.shape}; allowed: A = A @ B"
            )
        return self._become(np.positive, product)

    def __setitem__(self, given: Any, value: Any) -> None:
        """Set elements by global index to a number, an array that every rank has, or a matrix; collective.

        A matrix has the shape of the elements; each rank has a copy of it for a moment.

        Raises
        ------
        ConfigError
            On every rank: as in reading; for values of another shape, or that differ between ranks.
        """
        self._put(self, given, value)

    @collective("tw.linalg.Matrix.astype")
    def astype(self, dtype: npt.DTypeLike) -> Collective[Matrix]:
        """A copy in another dtype, in the same layout; collective.

        Parameters
        ----------
        dtype : dtype
            float32, float64, complex64 or complex128; of a complex matrix a complex one.

        Returns
        -------
        Matrix
        """
        dtype = dtype_of("astype", dtype)
        require_real(self.dtype, dtype)
        made = Matrix(self.context, self.shape, dtype, self.layout)
        yield f"{self._identity()}, {dtype}"
        made.local[...] = self.local
        return made

    def __repr__(self) -> str:
        return f"<tilewave.linalg.Matrix {self.shape} {self.dtype}, {self.layout}>"


@holds_context
class Transposed(Operators):
    """Aᵀ or Aᴴ of a `Matrix`, as ``A.T`` and ``A.H`` give it, in ``@`` without a copy; elsewhere it is moved first.

    Attributes
    ----------
    matrix : Matrix
    op : str
        "T": transposed; "C": conjugate, too. Of real matrices always "T".
    shape, dtype, context
    """

    matrix: Matrix
    op: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    context: Context

    def __init__(self, matrix: Matrix, op: str) -> None:
        self.matrix, self.op = matrix, op if matrix.dtype.kind == "c" else "T"
        self.shape, self.dtype, self.context = matrix.shape[::-1], matrix.dtype, matrix.context

    def _identity(self):
        """Return what must be equal on all ranks: that it is the same matrix, too."""
        return f"{self.op} of {self.matrix._identity()}"

    @property
    def T(self) -> Matrix:
        """Matrix: A itself; of Aᴴ its conjugate, a new one, which is collective."""
        return self.matrix if self.op == "T" else self.matrix.conj()

    @property
    def H(self) -> Matrix:
        """Matrix: A itself; of Aᵀ its conjugate, as `T`."""
        return self.matrix if self.op == "C" or self.dtype.kind != "c" else self.matrix.conj()

    def copy(self) -> Matrix:
        """A matrix of its own with these elements; collective."""
        return self.redistribute()

    def _become(self, *call: Any) -> Any:
        raise TypeError("A.T is no matrix of its own to change in place; allowed: A += B.T, or C = A.T + B")

    __imatmul__: ClassVar[Callable[[Any, Any], Any]] = _become

    def gather(self) -> Array | None:
        """The whole array on rank 0, None elsewhere; collective.

        Returns
        -------
        numpy.ndarray or None
        """
        found = self.matrix.gather()
        return found if found is None else found.T.conj() if self.op == "C" else found.T

    @collective("tw.linalg.Transposed.redistribute")
    def redistribute(
        self,
        layout: str | Layout | None = None,
        block: int | Sequence[int] | None = None,
        grid: Sequence[int] | None = None,
        weights: Sequence[int] | None = None,
    ) -> Collective[Matrix]:
        """A matrix of its own; collective.

        Parameters
        ----------
        layout, block, grid, weights
            As in `matrix`. Default: "columns" of what lies by rows and so on, so that nothing travels.

        Returns
        -------
        Matrix
        """
        return (yield from self._moved(layout, block, grid, weights))

    def _moved(self, layout=None, block=None, grid=None, weights=None):
        context = self.context
        if layout is None:
            of = self.matrix.layout
            name = {"rows": "columns", "columns": "rows"}.get(of.name, of.name)
            layout = Layout(name, of.block[::-1], of.grid[::-1], of.weights)
        layout = layout_of("redistribute", self.shape, context.size, layout, block, grid, weights)
        made = Matrix(context, self.shape, self.dtype, layout)
        move = Move(context, self.matrix._blocks.transposed(), made._blocks, self.dtype)
        yield f"{self.matrix._identity()}, {self.op}, to {layout}"
        move(self.matrix.local.T, made.local)
        if self.op == "C":
            np.conjugate(made.local, out=made.local)
        return made

    def __repr__(self) -> str:
        return f"<tilewave.linalg.Transposed {self.shape} {self.dtype}, {self.op} of {self.matrix!r}>"


def as_matrix(given):
    """Return what is given, but of a transposed matrix one of its own; a part of a collective call."""
    return (yield from given._moved()) if isinstance(given, Transposed) else given


@collective("tw.linalg.matrix")
def matrix(
    shape: Sequence[int] | Array | Field,
    dtype: npt.DTypeLike = None,
    init: Init = None,
    *,
    layout: str | Layout = "rows",
    block: int | Sequence[int] | None = None,
    grid: Sequence[int] | None = None,
    weights: Sequence[int] | None = None,
    context: Context | None = None,
) -> Collective[Matrix]:
    """Make a distributed matrix; collective.

    Parameters
    ----------
    shape : sequence of int, numpy.ndarray or Field
        Rows and columns. An array, on every rank, or a field, without `init`: the matrix gets its shape, dtype and
        values.
    dtype : dtype, optional
        float32, float64, complex64 or complex128. Default: float64, or the array's or field's; of integers float64.
    init : function, array, Field, number or None
        A function of the global indices, called with index arrays where it takes them, else element by element; the
        whole array, on every rank, or on rank 0 with None on the others; a field of two dimensions; a number for all
        elements. None everywhere: zeros.
    layout : str
        "rows": blocks of rows go round the ranks, "columns": blocks of columns, "cyclic": both, on a grid of ranks; or
        the `layout` of another matrix.
    block : int or (int, int), optional
        Rows and columns of a block. Default: of one-dimensional layouts, one block a rank, with weights about 32; of
        "cyclic", 128.
    grid : (int, int), optional
        Of "cyclic": ranks along the rows and the columns. Default: all ranks, as near to a square as can be.
    weights : sequence of int, optional
        For each rank an integer from 1 on: ranks have blocks in proportion; on a grid its rows and columns have them in
        proportion to the sums of their ranks. Default, and where all are equal: ranks have as many.
    context : Context, optional

    Returns
    -------
    Matrix

    Raises
    ------
    ConfigError
        On every rank: for a wrong shape, dtype, layout or init on any, or when ranks differ.

    Notes
    -----
    Collective. Arrays that every rank gives are compared by a checksum.
    """
    shape, dtype, init, kind = read_given(shape, dtype, init)
    layout = layout_of("matrix", shape, context.size, layout, block, grid, weights)
    made = Matrix(context, shape, dtype, layout)
    if kind == FUNCTION:
        fill(made, init)
    elif kind in (NUMBER, NOTHING):
        made._local[...] = 0 if init is None else init
    elif kind == ARRAY:
        made.local[...] = init[np.ix_(made.rows, made.columns)]
    source = InEvenBlocks(init, dtype) if kind == FIELD else None
    move = Move(context, source.blocks, made._blocks, dtype) if source else None
    text = f"shape {shape}, dtype {dtype}, {layout}"
    yield text + (
        f", init field {init._number}" if kind == FIELD else f", number {init.item()!r}" if kind == NUMBER else ""
    )
    on_rank_0_alone = agree_on_init(made, init, kind)
    if kind == FIELD:
        move(source.elements(), made.local)
    elif on_rank_0_alone:
        here = init if context.rank == 0 else made.local[:0, :0]
        move = yield from ready("an array on rank 0", lambda: Move(context, on_rank_0(shape), made._blocks, dtype))
        move(here, made.local)
    return made


def require_no_factor(call, name, given):
    """A factor whose elements something else overwrites would be one no more, and solve wrongly without a word."""
    if isinstance(given, Matrix) and hasattr(given, "_factor"):
        raise ConfigError(
            f"{call}: {name}: given {type(given).__name__}, whose elements would be overwritten; allowed: a matrix "
            "that is no factor, as factor.redistribute(factor.layout)"
        )
