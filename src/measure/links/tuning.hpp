// Tuning constants of what a new context measures of its links, with their units.
#pragma once
#include <cstddef>

namespace tilewave::tuning {

/// Hand-overs between two lanes, in groups of so many, an even number; and bytes of the two messages whose times give
/// latency and bandwidth.
inline constexpr int hand_over_rounds = 200, hand_over_group = 40;
inline constexpr std::size_t small_ping_bytes = 128 << 10, large_ping_bytes = 1 << 20;
/// Messages of a stream, and bytes of each: next to one message of all their bytes they give what a chunk costs.
inline constexpr int stream_chunks = 16;
inline constexpr std::size_t stream_chunk_bytes = 16 << 10;

}  // namespace tilewave::tuning
