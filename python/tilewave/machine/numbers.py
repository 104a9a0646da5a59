"""Which numbers a machine has."""

#: Of the files that machines are kept in.
FORMAT = 2
FAR = 1 << 50  # bytes beyond any working set
#: Numbers that a core machine has, too.
NUMBERS = (
    "latency_s",
    "byte_s",
    "chunk_s",
    "short_s",
    "ranks_per_core",
    "hand_over_s",
    "point_s",
    "poll_s",
    "step_s",
    "cache_bytes",
    "shared_cache_bytes",
)
#: Of these, what files of before do not have.
LATER = ("shared_cache_bytes",)
LINK_NUMBERS = (
    "latency_s",
    "send_s",
    "receive_s",
    "byte_s",
    "burst_bytes",
    "eager_bytes",
    "busy_byte_s",
    "hidden_polled",
    "hidden_unpolled",
    "crowd",
)
