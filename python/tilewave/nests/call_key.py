"""What a call is known by in the caches of a context."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class CallKey:
    """Equal for calls that what was prepared for one of them serves."""

    kernel: tuple  # body, types, ranges of integers: `tilewave.kernel.compile.kernel_key`
    reductions: tuple
    nest: str  # its name
    lines: tuple  # where its body stands, for the text of errors
    loops: tuple
    memory: tuple  # how each array lies in a run
    history: tuple  # earlier time steps that each written array keeps
    plan: tuple | None  # the choices of a given plan
    choices: str  # that were given one by one
    machine: int  # which of its machines the context plans with
    copies: tuple  # fields of which every rank gets a copy
    halos: tuple  # by field, the least that its layout must have
    facts: tuple = ()  # of a derived key: what else counts

    def family(self, facts):
        """Equal for calls that differ in bounds, steps and the sizes of integers only.

        Kernels are compiled for ranges of integers; plans are the same for all ranges.
        """
        signature, dtypes, slots, choices = self.kernel
        kernel = signature, dtypes, tuple((slot.name, slot.type) for slot in slots), choices
        return dataclasses.replace(self, kernel=kernel, loops=(), facts=facts)
