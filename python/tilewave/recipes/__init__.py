"""Ready-made functions of a few nests each, with the arguments that other libraries have: `tilewave.recipes.dtw`."""

import sys

from tilewave.recipes.elastic import align, dtw, edit_distance
from tilewave.tracebacks import doors

__all__ = ["align", "dtw", "edit_distance"]

doors([sys.modules[__name__]])
