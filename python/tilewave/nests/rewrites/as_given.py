"""Loops and points of rewritten calls, as their callers know them."""

from tilewave.nest.batch import ONCE, WHERE


def ranges_as_given(loops, nest, ranges):
    """The range of each loop index, and of those that a rewrite has taken away.

    Parameters
    ----------
    loops : Loops
    nest : Nest
    ranges : dict
        From the indices of the nest to half-open ranges; changed.
    """
    if loops.backwards is not None:
        low, high = ranges[nest.time]
        ranges[nest.time] = (loops.backwards - high + 1, loops.backwards - low + 1)
    for index, (step, _) in loops.affine.items():
        low, high = (_value(loops, index, end) for end in ranges[index])
        ranges[index] = (low, max(low, high - step + 1), step)
    ranges.pop(ONCE, None)
    return ranges | {index: (low, high) for index, low, high in loops.inner}


def place_as_given(loops, tables, nest, point):
    """The loop indices of a point, by name."""
    place = {index: _value(loops, index, at) for index, at in zip(nest.indices, point, strict=True)}
    if loops.backwards is not None:
        place[nest.time] = loops.backwards - place[nest.time]
    if loops.inner:
        place.pop(ONCE, None)
        place |= dict(zip(nest.inner, tables[WHERE].tolist(), strict=True))
    return place


def _value(loops, index, value):
    factor, constant = loops.affine.get(index, (1, 0))
    return factor * value + constant
