"""Metadata by which LLVM computes several points of a row at once."""

from llvmlite import ir

from tilewave.kernel.types.values import I1, I32


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
        if width is not None and width > 1 and _calls_functions(branch):
            width = None  # LLVM would say on stderr that no vectors are possible
        wishes = [["llvm.loop.parallel_accesses", self.group]]
        # Rows are short as often as not: one vector at a time leaves fewer points over.
        wishes.append(["llvm.loop.interleave.count", I32(1)])
        if width is not None:
            wishes.append(["llvm.loop.vectorize.width", I32(width)])
        if width is not None and width > 1:
            wishes.append(["llvm.loop.vectorize.enable", I1(1)])
            # Unrolled, it would not be a loop any more when vectors are made of loops.
            wishes.append(["llvm.loop.unroll.disable"])
        _loop_property(self.module, branch, *map(self.module.add_metadata, wishes))


def _calls_functions(branch):
    """Whether the loop that ends with a branch calls a function from outside, of which there is none of vectors."""
    blocks, new = {branch.parent}, [block for block in branch.operands if isinstance(block, ir.Block)][:1]
    while new:
        if (block := new.pop()) not in blocks:
            blocks.add(block)
            new += [each for each in block.terminator.operands if isinstance(each, ir.Block)]
    calls = (i.callee for block in blocks for i in block.instructions if isinstance(i, ir.CallInstr))
    return any(not (getattr(each, "name", "").startswith("llvm.") or getattr(each, "blocks", ())) for each in calls)


class SeparateArrays:
    """The word that a loop's arrays do not overlap each other, where that was checked before the loop.

    LLVM then compares no pointers of different arrays. A wish for vectors in spite of many comparisons
    ("llvm.loop.vectorize.enable") would print a warning on stderr for each loop that cannot become vectors.
    """

    def __init__(self, module, arrays):
        domain = module.add_metadata(["tilewave arrays"])
        scopes = {array: module.add_metadata([f"tilewave array {array}", domain]) for array in arrays}
        self.inside = {array: module.add_metadata([scope]) for array, scope in scopes.items()}
        self.outside = {
            array: module.add_metadata([scope for other, scope in scopes.items() if other != array]) for array in arrays
        }

    def mark(self, access, array):
        """Say of which array a load or store is; returns it."""
        access.set_metadata("alias.scope", self.inside[array])
        access.set_metadata("noalias", self.outside[array])
        return access


def leave_as_it_is(module, branch):
    """Tell LLVM that a loop has few rounds, so that it should neither make vectors of it nor unroll it."""
    wishes = ["llvm.loop.vectorize.width", I32(1)], ["llvm.loop.interleave.count", I32(1)], ["llvm.loop.unroll.disable"]
    _loop_property(module, branch, *map(module.add_metadata, wishes))


def _loop_property(module, branch, *wishes):
    loop = module.add_metadata([wishes[0], *wishes])
    loop.operands = (loop, *wishes)  # LLVM wants a node that names itself first
    branch.set_metadata("llvm.loop", loop)
