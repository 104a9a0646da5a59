"""Operators of matrices and of their transposed, as methods; `tilewave.linalg.arithmetic` says what they do."""

from __future__ import annotations

import numbers
import operator
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from tilewave.field.expression import special_power
from tilewave.not_numpy import NotNumPy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tilewave.annotations import Array, FilePath, Number
    from tilewave.linalg.matrix import Matrix

    Operator: TypeAlias = Callable[[Any, Any], Matrix]
    InPlace: TypeAlias = Callable[[Any, Any], Any]

#: Eigenvalues and singular values are not computed.
MISSING = ("eig", "eigh", "eigvals", "eigvalsh", "eig_banded", "svd", "svdvals", "pinv", "schur", "expm", "matrix_rank")
INSTEAD = (
    "no eigenvalues or singular values are computed here; for small matrices scipy.linalg on rank 0, with A.gather(); "
    "for large ones ELPA, ScaLAPACK or SLATE with A.to_scalapack(); for least squares of any rank "
    "tilewave.linalg.lstsq"
)
#: What there is in place of NumPy's functions.
WAYS = {
    **dict.fromkeys(MISSING, INSTEAD),
    **{name: f"tilewave.linalg.{name}" for name in ("solve", "inv", "det", "slogdet", "cond", "norm", "lstsq", "qr")},
    "cholesky": "tilewave.linalg.cholesky",
    "dot": "A @ B",
    "transpose": "A.T",
    **dict.fromkeys(("lu_factor", "lu_solve"), "F = tilewave.linalg.lu(A), and F.solve(b)"),
    **dict.fromkeys(("cho_factor", "cho_solve"), "F = tilewave.linalg.cholesky(A), and F.solve(b)"),
    **dict.fromkeys(("eye", "identity"), "tilewave.linalg.matrix((n, n), init=lambda i, j: 1.0 * (i == j))"),
    "diag": "A.diagonal()",
    "sum": "np.ones(rows) @ A @ np.ones(columns)",
    **dict.fromkeys(
        ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"), "A.local < x, of its part"
    ),
    "pickle": "A.save(path) and tilewave.linalg.load, or tilewave.checkpoint",
    "iter": "A.local, this rank's part, and A[i, :], a row on every rank",
    "round": "np.round(A.local, digits, out=A.local)",
    **dict.fromkeys(("int", "float", "complex"), "A[i, j], A.trace() and the like, which are numbers"),
}
#: Functions that are computed element by element, as errors show them.
SYMBOLS = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.divide: "/",
    np.floor_divide: "//",
    np.remainder: "%",
    np.power: "**",
    np.negative: "-A",
    np.positive: "+A",
    np.absolute: "abs(A)",
    np.conjugate: "A.conj()",
    np.square: "A ** 2",
    np.sqrt: "A ** 0.5",
    np.reciprocal: "A ** -1",
}


def power(a: Any, exponent: Any) -> tuple[Any, ...]:
    """The function, and its operands, by which NumPy computes ``a ** exponent``."""
    if isinstance(exponent, numbers.Number):
        special = special_power(operator.pow, a.dtype, type(exponent), exponent)
        if special is not None and np.result_type(a.dtype, exponent) == a.dtype:
            return special, a
    return np.power, a, exponent


def _operator(function: Callable[..., Any], swapped: bool = False) -> Operator:
    if swapped:
        return lambda self, other: self._combined(function, other, self)
    return lambda self, other: self._combined(function, self, other)


def _in_place(function: Callable[..., Any]) -> InPlace:
    return lambda self, other: self._become(function, self, other)


class Operators(NotNumPy):
    """Arithmetic, elements and parts of a `Matrix`, or of its transposed.

    A matrix and a matrix give a matrix, element by element except for ``@``. Vectors are NumPy arrays, the same on
    every rank. All is collective.
    """

    ndim = 2
    _what = "a matrix"
    _otherwise = "A.local, this rank's part, and A.gather(), the whole array on rank 0"
    _become: Callable[..., Any]  # the call of `_combined` whose result changes the matrix
    # Set by `tilewave.linalg.arithmetic`, which makes matrices.
    _combined: Callable[..., Matrix]
    _multiplied: Callable[..., Any]
    _taken: Callable[..., Any]
    _put: Callable[..., None]
    _diagonal: Callable[..., Array]
    _saved: Callable[..., None]  # by `tilewave.linalg.files`

    @classmethod
    def _ways(cls) -> dict[str, str]:
        return WAYS

    def __matmul__(self, other: Any) -> Any:
        return self._multiplied(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._multiplied(other, self)

    __add__: ClassVar[Operator] = _operator(np.add)
    __radd__: ClassVar[Operator] = _operator(np.add, True)
    __sub__: ClassVar[Operator] = _operator(np.subtract)
    __rsub__: ClassVar[Operator] = _operator(np.subtract, True)
    __mul__: ClassVar[Operator] = _operator(np.multiply)
    __rmul__: ClassVar[Operator] = _operator(np.multiply, True)
    __truediv__: ClassVar[Operator] = _operator(np.divide)
    __rtruediv__: ClassVar[Operator] = _operator(np.divide, True)
    __floordiv__: ClassVar[Operator] = _operator(np.floor_divide)
    __rfloordiv__: ClassVar[Operator] = _operator(np.floor_divide, True)
    __mod__: ClassVar[Operator] = _operator(np.remainder)
    __rmod__: ClassVar[Operator] = _operator(np.remainder, True)
    __pow__: ClassVar[Operator] = lambda self, other: self._combined(*power(self, other))
    __rpow__: ClassVar[Operator] = _operator(np.power, True)

    __iadd__: ClassVar[InPlace] = _in_place(np.add)
    __isub__: ClassVar[InPlace] = _in_place(np.subtract)
    __imul__: ClassVar[InPlace] = _in_place(np.multiply)
    __itruediv__: ClassVar[InPlace] = _in_place(np.divide)
    __ifloordiv__: ClassVar[InPlace] = _in_place(np.floor_divide)
    __imod__: ClassVar[InPlace] = _in_place(np.remainder)
    __ipow__: ClassVar[InPlace] = lambda self, other: self._become(*power(self, other))

    def __divmod__(self, other: Any) -> tuple[Matrix, Matrix]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Matrix, Matrix]:
        return other // self, other % self

    def __neg__(self) -> Matrix:
        return self._combined(np.negative, self)

    def __pos__(self) -> Matrix:
        return self._combined(np.positive, self)

    def __abs__(self) -> Matrix:
        return self._combined(np.absolute, self)

    def __eq__(self, other: object) -> Any:
        raise TypeError("comparing matrices is not supported; allowed: tilewave.linalg.norm(A - B, 'max') == 0, A is B")

    def _compared(self, other: object) -> Any:
        raise self._refused("numpy.less")

    __lt__: ClassVar[Callable[[Any, object], Any]] = _compared
    __le__: ClassVar[Callable[[Any, object], Any]] = _compared
    __gt__: ClassVar[Callable[[Any, object], Any]] = _compared
    __ge__: ClassVar[Callable[[Any, object], Any]] = _compared

    def __contains__(self, value: object) -> bool:
        raise self._refused("numpy.equal")

    def __bool__(self) -> bool:
        raise TypeError("the truth value of a matrix is not defined; allowed: `A is not None`")

    def __len__(self) -> int:
        return self.shape[0]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method == "__call__" and not keywords:
            if ufunc is np.matmul:
                return self._multiplied(*inputs)
            if ufunc is np.divmod:
                return tuple(self._combined(each, *inputs) for each in (np.floor_divide, np.remainder))
            if ufunc in SYMBOLS:
                return self._combined(ufunc, *inputs)
        return super().__array_ufunc__(ufunc, method, *inputs, **keywords)

    def __hash__(self) -> int:
        return object.__hash__(self)

    def conj(self) -> Matrix:
        """The conjugate, element by element; collective.

        Returns
        -------
        Matrix
        """
        return self._combined(np.conjugate, self)

    def __getitem__(self, given: Any) -> Any:
        """Elements by global index; collective.

        Parameters
        ----------
        given : int, slice, Ellipsis or pair of them
            NumPy's basic indexing, the same on every rank.

        Returns
        -------
        NumPy scalar, numpy.ndarray or Matrix
            ``A[i, j]`` is a number and ``A[i, :]`` a vector, on every rank. ``A[i0:i1, j0:j1]`` is a new matrix, spread
            as this one: nothing is gathered.

        Raises
        ------
        ConfigError
            On every rank, and an IndexError as well: for an index out of range or of another kind.
        """
        return self._taken(self, given)

    def diagonal(self, offset: int = 0) -> Array:
        """The diagonal as a vector; collective.

        Parameters
        ----------
        offset : int
            So many columns to the right of the main diagonal; below it where it is negative.

        Returns
        -------
        numpy.ndarray
            The same on every rank.
        """
        return self._diagonal(self, offset)

    def save(self, path: FilePath, **options: Any) -> None:
        """Write a file, each rank a part; collective.

        Parameters
        ----------
        path : str or path
            As of `tilewave.Field.save`; `tilewave.linalg.load` and `tilewave.load` read it.
        **options
            As of `tilewave.Field.save`.

        Raises
        ------
        ConfigError
            On every rank: when any could not write its part. There is then no file of that name, or the one before.

        Notes
        -----
        Collective. Each element moves once, into even blocks, for which there is memory until the file is written.
        """
        self._saved(self, path, options)

    def trace(self) -> Number:
        """The sum of the diagonal, on every rank; collective.

        Returns
        -------
        NumPy scalar
        """
        return self.diagonal().sum()
