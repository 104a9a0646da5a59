"""Metadata by which LLVM computes several points of a row at once."""

from llvmlite import ir

from .values import I1, I32


class _Distinct(ir.values.MDValue):
    """A metadata node without operands that equals no other: an access group."""

    def descr(self, buf):
        buf += ("distinct !{}", "\n")

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)


class ParallelAccesses:
    """The caller's word that no point of a loop touches what another one writes."""

    def __init__(self, module):
        self.module = module
        self.group = _Distinct(module, (), name=str(len(module.metadata)))

    def mark(self, access):
        """Put a load or store into the group; returns it."""
        access.set_metadata("llvm.access.group", self.group)
        return access

    def close(self, branch, width=None):
        """Tell the loop that ends with a branch that its accesses are parallel.

        ``width`` is how many points to compute at once, 1 for no vectors; LLVM's choice where it is None.
        """
        wishes = [["llvm.loop.parallel_accesses", self.group]]
        # Rows are short as often as not: one vector at a time leaves fewer points over.
        wishes.append(["llvm.loop.interleave.count", ir.Constant(I32, 1)])
        if width is not None:
            wishes.append(["llvm.loop.vectorize.width", ir.Constant(I32, width)])
        if width is not None and width > 1:
            wishes.append(["llvm.loop.vectorize.enable", ir.Constant(I1, 1)])
            # Unrolled, it would not be a loop any more when vectors are made of loops.
            wishes.append(["llvm.loop.unroll.disable"])
        _loop_property(self.module, branch, *map(self.module.add_metadata, wishes))


def wish_for_vectors(module, branch):
    """Ask LLVM for vectors even where that takes many checks for overlap.

    Not for a loop that carries a value from point to point: LLVM then sums in another order.
    """
    _loop_property(module, branch, module.add_metadata(
        ["llvm.loop.vectorize.enable", ir.Constant(I1, 1)]))


def _loop_property(module, branch, *wishes):
    loop = module.add_metadata([wishes[0], *wishes])
    loop.operands = (loop, *wishes)  # LLVM wants a node that names itself first
    branch.set_metadata("llvm.loop", loop)
