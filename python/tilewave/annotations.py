"""Names for what annotations of public functions say more than once."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

_T = TypeVar("_T")

#: A NumPy array of any shape and dtype.
Array: TypeAlias = npt.NDArray[Any]
#: A Python or NumPy number.
Number: TypeAlias = "complex | np.number[Any] | np.bool_"
#: One extent, or one for each axis.
Shape: TypeAlias = "int | Sequence[int]"
#: The name of a file.
FilePath: TypeAlias = "str | os.PathLike[str]"
#: What elements are at first: a function of indices, an array, or one number.
Init: TypeAlias = "Callable[..., Any] | npt.ArrayLike | None"
#: Bounds of loops by index name: half-open, each a number, an expression of outer indices, a function, or a list.
Over: TypeAlias = "Mapping[str, Sequence[Any]]"
#: Choices of a plan that are fixed, by the names that `tilewave.Plan` lists them with, and ``threads``.
Choices: TypeAlias = "Mapping[str, Any]"
#: A function that ranks call together, as `tilewave.context.collective` has it: what the call returns.
Collective: TypeAlias = Generator[Any, Any, _T]
#: What a pattern gives: an array, a number where one was given, or a handle with ``wait=False`` or ``start=False``.
Outcome: TypeAlias = Any
