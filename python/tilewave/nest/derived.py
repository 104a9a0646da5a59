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
        self._nest = nest

    def _difference(self):
        """Text of what its kernel has and that of the other nest has not."""
        raise NotImplementedError

    def constants(self):
        """Of the body."""
        return self._nest.constants()

    def captured(self):
        """Of the body."""
        return self._nest.captured()

    def lines(self):
        """Of the body."""
        return self._nest.lines()

    def signature(self):
        """Hash of the body, the constants that it captures, and the difference."""
        return self._with_difference(self._nest.signature())

    def code_signature(self):
        """As `signature`, of the constants only those that are compiled in."""
        return self._with_difference(self._nest.code_signature())

    def _with_difference(self, signature):
        return hashlib.sha256(f"{signature}\n{self._difference()}".encode()).hexdigest()
