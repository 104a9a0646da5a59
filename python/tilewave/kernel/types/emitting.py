"""Pieces of LLVM code that several files emit: elements in memory, the smaller of two numbers, counted loops."""

from tilewave.kernel.types.values import I64


def element(build, array, position, kind=I64):
    """The element of an array in memory, at a position that is known."""
    return build.load(build.gep(array, [I64(position)], source_etype=kind), typ=kind)


def least(build, a, b):
    """The smaller of two signed integers."""
    return build.select(build.icmp_signed("<", a, b), a, b)


def greatest(build, a, b):
    """The larger of two signed integers."""
    return build.select(build.icmp_signed(">", a, b), a, b)


class CountedLoop:
    """A loop under construction that runs once at least: ``with CountedLoop(build, "points", begin, end) as point:``.

    Attributes
    ----------
    before : ir.Block
        The block that enters the loop, for other values that go from round to round.
    branch : ir.Instruction
        The end of a round, after the ``with``; the builder is then behind the loop.
    """

    def __init__(self, build, name, begin, end, step=1):
        self.build, self.name, self.begin, self.end, self.step = build, name, begin, end, step

    def __enter__(self):
        build = self.build
        self.before, self._first = build.block, build.append_basic_block(self.name)
        build.branch(self._first)
        build.position_at_end(self._first)
        self._counter = build.phi(I64)
        self._counter.add_incoming(self.begin, self.before)
        return self._counter

    def __exit__(self, error, *_):
        if error is not None:
            return
        build, after = self.build, self.build.append_basic_block(f"{self.name}_done")
        following = build.add(self._counter, I64(self.step))
        self._counter.add_incoming(following, build.block)
        self.branch = build.cbranch(build.icmp_signed("<", following, self.end), self._first, after)
        build.position_at_end(after)
