"""Draws bounds of loops: numbers, affine and rational ones, strides."""

from random_programs.boxes import box_of
from random_programs.setting import Bound


def draw_over(c, nest, program, setting):
    """``over`` of a nest: (lower bounds, upper bounds, stride) by index, inside the box of the loops."""
    box, over = box_of(nest, program, setting), {}
    for k, index in enumerate(nest.indices[nest.timed :], int(nest.timed)):
        low, high = box[index]
        if not c.chance(0.5) or high <= low:
            continue
        first = c.between(low, low + (high - low) // 3)
        end = c.between(max(first, high - (high - low) // 3), high)
        lows, highs = [Bound(first)], [Bound(end)]
        if "pivot" in program.kinds and k and c.chance(0.4):  # row and column k stay as they are
            lows.append(Bound(1, ((nest.indices[0], 1),)))
        elif k and c.chance(0.5):
            for bounds, low_side in ((lows, True), (highs, False)):
                if c.chance(0.6):
                    bounds.append(_line(c, nest.indices[:k], box, (low + high) // 2, low_side))
        stride = c.pick(2, 3) if c.chance(0.15) else 1
        over[index] = (tuple(lows), tuple(highs), stride)
    return over


def _line(c, outer, box, middle, low_side):
    """An affine bound that crosses the box."""
    index = c.pick(*reversed(outer))
    factor, divisor = c.pick(1, -1, 2, 1, 3), c.pick(1, 1, 2, 3)
    at = sum(box[index]) // 2 * factor // divisor
    constant = (middle - at + c.between(-3, 1) + (0 if low_side else 2)) * divisor
    terms = [(index, factor)]
    if len(outer) > 1 and c.chance(0.2):
        terms.append((next(other for other in outer if other != index), 1))
    return Bound(constant, tuple(terms), divisor, c.chance(0.3))
