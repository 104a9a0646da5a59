// Tuning constants of contexts, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

/// Bytes that must be free on every rank when a call begins, for its lists of messages, texts and numbers of all ranks.
/// Below 32 KB, so that the allocator treats it as small memory.
inline constexpr std::size_t memory_left_bytes = 24 << 10;
/// Bytes of small matrices that may travel with a comparison of arguments: in one message, and in those of all rounds
/// together. As much goes in a message as up to 64 ranks, in 6 rounds, allow.
inline constexpr std::int64_t most_piggyback_bytes = 4 << 10, piggyback_notes_bytes = 6 * most_piggyback_bytes;
/// Polls of a blocking call before it waits with pauses: some 10 us.
inline constexpr int quick_polls = 200;

}  // namespace tilewave::tuning
