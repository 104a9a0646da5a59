"""Communication patterns on NumPy matrices: `tilewave.patterns.broadcast` and so on."""

from tilewave.patterns.allreduces import AllreduceHandle, allreduce
from tilewave.patterns.arguments import OPS
from tilewave.patterns.calls import broadcast, multi_reduce, reduce, spread
from tilewave.patterns.handle import Handle
from tilewave.patterns.sends import ReceiveHandle, receive, send

__all__ = [
    "OPS",
    "AllreduceHandle",
    "Handle",
    "ReceiveHandle",
    "allreduce",
    "broadcast",
    "multi_reduce",
    "receive",
    "reduce",
    "send",
    "spread",
]
