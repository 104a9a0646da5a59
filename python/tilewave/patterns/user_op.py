"""A reduction given as a Python function, over memory that the core names by address."""

import numpy as np

from tilewave.errors import ConfigError


class UserOp:
    """A user's function over memory that the core names by address."""

    def __init__(self, function, dtype, rank):
        self.function, self.dtype, self.rank, self.failure = function, dtype, rank, ""

    def join(self, into, left, right, n):
        try:
            a, b = (_at(address, n, self.dtype, read_only=True) for address in (left, right))
            result = np.asarray(self.function(a, b))
            if result.shape != (n,):
                raise ConfigError(f"it returned shape {result.shape} for two arrays of shape {(n,)}")
            np.copyto(_at(into, n, self.dtype, read_only=False), result, casting="same_kind")
            return True
        except BaseException as error:  # a signal's too: the ranks must end together
            name = getattr(self.function, "__name__", repr(self.function))
            self.failure = encodable(
                f"the reduction {name} failed on rank {self.rank}: {type(error).__name__}: {error}"
            )
            return False


class _Memory:
    def __init__(self, address, n, dtype, read_only):
        self.__array_interface__ = {"data": (address, read_only), "shape": (n,), "typestr": dtype.str, "version": 3}


def _at(address, n, dtype, read_only):
    return np.asarray(_Memory(address, n, dtype, read_only))


def encodable(text):
    return text.encode(errors="backslashreplace").decode()
