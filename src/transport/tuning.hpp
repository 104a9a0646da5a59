// Tuning constants of transports, with their units and where they come from.
#pragma once
#include <cstdint>

namespace tilewave::tuning {

/// Seconds between looks for alarms while a collective waits.
inline constexpr double meanwhile_s = 0.05;
/// Seconds without a message after which each rank that is waited for is asked whether it has ended; after as long
/// again a wait for an ended rank fails.
inline constexpr double look_for_ended_s = 1;

// --- shared.cpp, host_segment.hpp: messages inside a host

/// Bytes and numbers of the pieces of shared memory that messages go through. Two sizes, so that small messages do not
/// take what large ones need.
inline constexpr std::int64_t small_piece = 8 << 10, large_piece = 64 << 10;
inline constexpr int small_pieces = 64, large_pieces = 32, all_pieces = small_pieces + large_pieces;
/// Bytes up to which two copies by the ranks are always quicker than one by the system, which asks for each page.
inline constexpr std::int64_t always_in_pieces = 16 << 10;
/// Bytes. Longer messages go in pieces up to the longest of `tried` for which pieces are quicker, and up to
/// most_in_pieces where they are for all. Measured at the start, by so many trials each: 64 KB pieces were copied at 14
/// GB/s where a cache line went to the other CPU in 55 ns, at 4 where that took 185; the system's copy had 7.
inline constexpr std::int64_t tried[] = {32 << 10, 64 << 10, 256 << 10}, most_in_pieces = 16 << 20;
inline constexpr int trials = 10;

}  // namespace tilewave::tuning
