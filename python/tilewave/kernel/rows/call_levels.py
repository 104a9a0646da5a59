"""Which calls of a body wait for which: what can be computed for a whole strip of points, and in what order."""

from dataclasses import dataclass

from llvmlite import ir

#: Level of a call that is made point by point.
NEVER = 1000


@dataclass(frozen=True)
class Needs:
    """Hold what a value needs: the highest level of the calls that it comes from, and the places that it is made of."""

    level: int = 0
    places: frozenset = frozenset()

    def __or__(self, other):
        return Needs(max(self.level, other.level), self.places | other.places)


NOTHING = Needs()


class Point:
    """The blocks of a point of a body, in which calls are instructions that have no effects.

    Parameters
    ----------
    blocks : list of ir.Block
    loads : dict
        From the id of an instruction to the key of the place that it loads.
    level_of : dict
        From the id of a call to a function of its `Needs` that gives its level.

    Attributes
    ----------
    needs : dict
        From the ids of instructions to what they need.
    conditional : set of int
        Ids of the instructions that are not computed in every point.
    """

    def __init__(self, blocks, loads, level_of):
        self.needs, self._loads, self._level_of = {}, loads, level_of
        self._ways = _ways(blocks)
        self._entered = {id(block): NOTHING for block in blocks}
        before = None
        while before != (before := {**self.needs, **self._entered}):
            for block in blocks:
                self._visit(block)
        self.conditional = {id(each) for block in blocks if self._ways[id(block)] for each in block.instructions}

    def _visit(self, block):
        here = NOTHING
        for other in self._ways[id(block)]:
            here |= self._entered[id(other)] | self._of(other.terminator.operands[0])
        self._entered[id(block)] = here
        for each in block.instructions:
            self.needs[id(each)] = self._computed(each, here)

    def _of(self, value):
        return self.needs.get(id(value), NOTHING)

    def _computed(self, each, here):
        if id(each) in self._loads:
            return Needs(0, frozenset([self._loads[id(each)]]))
        found = NOTHING
        if isinstance(each, ir.PhiInstr):
            for value, block in each.incomings:
                found |= self._of(value) | self._entered.get(id(block), NOTHING)
                if isinstance(block.terminator, ir.ConditionalBranch):
                    found |= self._of(block.terminator.operands[0])
            return found
        for value in each.operands:
            found |= self._of(value)
        if id(each) in self._level_of:
            found |= here
            return Needs(self._level_of[id(each)](found), found.places)
        return found


def _ways(blocks):
    """From the id of each block to the blocks whose conditions decide, at their ends, whether it is computed."""
    number = {id(block): k for k, block in enumerate(blocks)}
    follow = [_following(block) for block in blocks]
    everything = (1 << len(blocks)) - 1
    sure = [everything if after else 1 << k for k, after in enumerate(follow)]  # what every way from a block meets
    changed = True
    while changed:
        changed = False
        for k in range(len(blocks) - 1, -1, -1):
            common = everything if follow[k] else 0
            for after in follow[k]:
                common &= sure[number[id(after)]]
            common |= 1 << k
            changed, sure[k] = changed or common != sure[k], common
    ways = {id(block): [] for block in blocks}
    for k, block in enumerate(blocks):
        if len(follow[k]) < 2:
            continue
        some = 0
        for after in follow[k]:
            some |= sure[number[id(after)]]
        some &= ~(sure[k] & ~(1 << k))
        for other in blocks:
            if some >> number[id(other)] & 1:
                ways[id(other)].append(block)
    return ways


def _following(block):
    end = block.terminator
    if isinstance(end, ir.ConditionalBranch):
        return list(dict.fromkeys(end.operands[1:]))
    return [end.operands[0]] if isinstance(end, ir.Branch) else []


def carried_places(frame):
    """Places that a point before may have written, as far as offsets tell: with them no strip is tried."""
    nest, found = frame.nest, set()
    for place in () if frame.independent else nest.places:
        for other in nest.places:
            if not other.written or other.array != place.array:
                continue
            if other.axes != place.axes or other.phases != place.phases:
                found.add(place.key)
                continue
            step, ahead = frame.steps[place.key], place.offsets[-1] - other.offsets[-1] if place.offsets else 0
            same_line = place.axes[-1:] == nest.indices[-1:] and place.offsets[:-1] == other.offsets[:-1]
            if step == 0 and place.offsets == other.offsets or same_line and ahead * (1 if step is None else step) < 0:
                found.add(place.key)
    return frozenset(found)
