"""Nests that have the body of another one and a kernel of their own."""

import hashlib

from tilewave.nest.nest import Nest


class DerivedNest(Nest):
    """A nest with all that another one has, but for what its class changes.

    Parameters
    ----------
    nest : Nest
    """

    def __init__(self, nest):
        self.__dict__.update(nest.__dict__)
        self._nest, self.made = nest, {}

    def _difference(self):
        """Text of what its kernel has and that of the other nest has not."""
        raise NotImplementedError

    def constants(self):
        """Return the constants of the body."""
        return self._nest.constants()

    def captured(self):
        """Return what the body captures."""
        return self._nest.captured()

    def lines(self):
        """Return the lines of the body."""
        return self._nest.lines()

    def signature(self):
        """Hash of the body, the constants that it captures, and the difference."""
        return self._with_difference(self._nest.signature())

    def code_signature(self):
        """Return the `signature` with those constants only that are compiled in."""
        return self._with_difference(self._nest.code_signature())

    def _with_difference(self, signature):
        return hashlib.sha256(f"{signature}\n{self._difference()}".encode()).hexdigest()
