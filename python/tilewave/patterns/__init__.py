"""Communication patterns on NumPy matrices: `tilewave.patterns.broadcast` and so on."""

from tilewave.patterns.calls import (
    OPS,
    AllreduceHandle,
    Handle,
    ReceiveHandle,
    allreduce,
    broadcast,
    multi_reduce,
    receive,
    reduce,
    send,
    spread,
)

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
