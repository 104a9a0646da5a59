"""What a call is known by in the caches of a context."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class CallKey:
    """Equal for calls that what was prepared for one of them serves.

    Attributes
    ----------
    kernel : tuple
        Of the body, the types and the ranges of integers: `tilewave.kernel.compile.kernel_key`.
    reductions : tuple
        What is reduced, and how.
    nest : str
        The nest's name.
    lines : tuple
        Where its body stands, for the text of errors.
    loops : tuple
        Bounds, directions, steps.
    memory : tuple
        How each array lies in a run.
    history : tuple of int
        Earlier time steps that each written array keeps.
    plan : tuple or None
        The choices of a given plan.
    choices : str
        Choices that were given one by one.
    machine : int
        Which of its machines the context plans with.
    copies : tuple of str
        Fields of which every rank gets a copy.
    halos : tuple
        By field, the least halo that its layout must have.
    facts : tuple
        Of a derived key: what else counts.
    """

    kernel: tuple
    reductions: tuple
    nest: str
    lines: tuple
    loops: tuple = ()
    memory: tuple = ()
    history: tuple = ()
    plan: tuple | None = None
    choices: str = ""
    machine: int = 0
    copies: tuple = ()
    halos: tuple = ()
    facts: tuple = ()

    def family(self, facts):
        """Equal for calls that differ in bounds, steps and the sizes of integers only.

        Kernels are compiled for ranges of integers; plans are the same for all ranges.
        """
        signature, dtypes, slots, choices = self.kernel
        kernel = signature, dtypes, tuple((slot.name, slot.type) for slot in slots), choices
        return dataclasses.replace(self, kernel=kernel, loops=(), facts=facts)

    def body(self, facts, memory=()):
        """Equal where a measured rate of the body serves, whatever else a call is given."""
        return CallKey(self.kernel, self.reductions, self.nest, self.lines, memory=memory, facts=facts)
