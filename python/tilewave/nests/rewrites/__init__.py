"""Rewrites: calls as others that the stations behind them know.

Each is a pure function of a `GivenCall`, which gives another, or None where it has nothing to do. ``TILEWAVE_WITHOUT``
switches it off by its name: then the call runs in a plainer way, or is refused. What is to be done after a run is in
`GivenCall.after`, and `as_given` tells loops and points as the caller knows them. `StepRows` gives several calls for
one, which run one after another.
"""

from tilewave.nests.rewrites.any_order import in_any_order
from tilewave.nests.rewrites.backwards import forwards
from tilewave.nests.rewrites.batches import batched
from tilewave.nests.rewrites.reductions import reduced
from tilewave.nests.rewrites.strides import strided

#: What changes the loops: other indices.
OF_LOOPS = {"backwards": forwards, "strides": strided}
#: What changes the body and its arrays.
OF_BODIES = {"batches": batched, "order_free": in_any_order, "reductions": reduced}


def rewritten(call, rewrites):
    """Return a `GivenCall` behind some rewrites."""
    for rewrite in rewrites.values():
        call = rewrite(call) or call
    return call
