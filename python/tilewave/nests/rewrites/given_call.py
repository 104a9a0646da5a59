"""A call as rewrites find it, and leave it."""

import dataclasses
from typing import Any

from tilewave.kernel.scalars import Slot
from tilewave.nest.bounds import Loops
from tilewave.nest.nest import Nest


@dataclasses.dataclass(frozen=True)
class GivenCall:
    """The arguments of a call of one nest, checked one by one; what a rewrite gives is another.

    Attributes
    ----------
    nest : Nest
    loops : Loops
    context : Context
    arrays, scalars, captured : dict
        By name; numbers from outside the body are captured.
    reduce : dict or None
        As `run` was given it.
    plan_loops : int
        Loops that a given plan is of, or the choices that are fixed; 0 where none says.
    halos : dict
        By field, the least that its layout must have.
    reductions : Reductions or None
        Made of `reduce`.
    after : tuple of function
        What follows each run: they are given the `BoundNest`, and are collective.
    """

    nest: Nest
    loops: Loops
    context: Any
    arrays: dict[str, Any]
    scalars: dict[str, Any] = dataclasses.field(default_factory=dict)
    captured: dict[str, Any] = dataclasses.field(default_factory=dict)
    reduce: Any = None
    plan_loops: int = 0
    halos: dict[str, Any] = dataclasses.field(default_factory=dict)
    reductions: Any = None
    after: tuple[Any, ...] = ()

    @property
    def dtypes(self):
        """The dtype of each array by name."""
        return {name: self.arrays[name].dtype for name in self.nest.arrays}

    def types(self):
        """Return a key that is equal for calls whose values are of the same types."""
        slots = tuple(Slot.of(name, value) for name, value in {**self.scalars, **self.captured}.items())
        return tuple(self.dtypes.items()), slots

    def without(self, name):
        """Return whether the user has switched off a rewrite."""
        return name in self.context.without
