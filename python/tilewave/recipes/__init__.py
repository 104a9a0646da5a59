"""Ready-made functions of a few nests each, with the arguments that other libraries have: `tilewave.recipes.dtw`."""

import sys

from tilewave.recipes.elastic import align, dtw, edit_distance
from tilewave.recipes.filters import ema, lfilter, sosfilt, tridiagonal
from tilewave.recipes.images import cost_distance, distance_transform, eikonal, integral_image
from tilewave.recipes.markov import backward, forward, viterbi
from tilewave.tracebacks import doors

# fmt: off
__all__ = [
    "align", "backward", "cost_distance", "distance_transform", "dtw", "edit_distance", "eikonal", "ema", "forward",
    "integral_image", "lfilter", "sosfilt", "tridiagonal", "viterbi",
]
# fmt: on

doors([sys.modules[__name__]])
