"""The theory behind sweeps in exact fractions: tilings, groupings and linear schedules after athanasaki2002.

Runs do not need it: the core computes waves and lanes by the same formulas, and tests compare the two.
"""

from docs.theory.tilings import cost
from docs.theory.tilings.grouping import Grouping, LinearSchedule
from docs.theory.tilings.tiling import Space, Tiling

__all__ = ["Grouping", "LinearSchedule", "Space", "Tiling", "cost"]
