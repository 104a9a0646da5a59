"""This file has what NumPy's functions are refused with by arrays that lie on all ranks: the way to write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np


class NotNumPy:
    """A class whose objects are no NumPy arrays; it has `_what`, and `_ways`, where functions are found by name."""

    shape: tuple[int, ...]
    _what = ""
    _otherwise = ""

    @classmethod
    def _ways(cls) -> Mapping[str, str]:
        """Return what there is in place of NumPy's functions, by their names; in addition to methods of that name."""
        return {}

    @classmethod
    def _refused(cls, name: str) -> TypeError:
        """The error for a function of NumPy."""
        last = name.rsplit(".", 1)[-1]
        way = cls._ways().get(last) or (f"its method {last}()" if hasattr(cls, last) else cls._otherwise)
        return TypeError(f"{name}: {cls._what} lies on all ranks and is no NumPy array; allowed: {way}")

    if not TYPE_CHECKING:  # type checkers report unknown names

        def __getattr__(self, name):
            if name.startswith("_") or not hasattr(np.ndarray, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(str(self._refused(f"numpy.ndarray.{name}")))

    def __iter__(self) -> Any:
        raise self._refused("iter")

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise self._refused("pickle")

    def __int__(self) -> int:
        raise self._refused("int")

    def __float__(self) -> float:
        raise self._refused("float")

    def __complex__(self) -> complex:
        raise self._refused("complex")

    def __round__(self, digits: int | None = None) -> Any:
        raise self._refused("round")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise self._refused("numpy.asarray")

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        if function is np.ndim or function is np.shape:
            return len(self.shape) if function is np.ndim else self.shape
        raise self._refused(f"{function.__module__}.{function.__name__}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        raise self._refused(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
