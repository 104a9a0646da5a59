// Tuning constants of chains, with their units and where they come from.
#pragma once
#include <cstdint>

namespace tilewave::tuning {

/// Bytes of the slices that take turns, all nests and repetitions together: most of a core's second-level cache of 1 MB
/// and more.
inline constexpr std::int64_t turn_bytes = 768 << 10;
/// Bytes of a rank's arrays from which on they are cut: shallow water of 500 x 500 (6 MB, in the third-level cache)
/// gains nothing, of 1000 x 1000 (24 MB) 1.2 to 1.4.
inline constexpr std::int64_t least_fused_bytes = std::int64_t{8} << 20;
/// Slices of these: fewer leave no room for repetitions. Slices of half as many rows take 1.2 times as long.
inline constexpr std::int64_t slices_in_turn = 4;
/// Points of a slice, at least, and repetitions, at most.
inline constexpr std::int64_t least_slice_points = 1 << 10, most_repetitions_fused = 8;
/// A nest is narrow beside another that has so many times its points: it need not have the same lanes to take turns.
inline constexpr std::int64_t narrow = 8;
/// Repetitions after which time buffers are where they were, at most: of arrays with 3 and 4. Where it takes more, they
/// are turned in each repetition.
inline constexpr std::int64_t most_cycle = 12;
/// Slices of a rank's schedule, at most: it is made in 0.1 s.
inline constexpr std::int64_t most_slices = 1 << 13;

}  // namespace tilewave::tuning
