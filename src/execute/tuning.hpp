// Tuning constants of the executor, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

// --- compute.cpp: the rows of a tile

/// Points. Longer rows are cut, so that the next poll of the transport is never far away.
inline constexpr std::int64_t longest_row = 8192;
/// Points of rows that a kernel computes together, in SIMD lanes, which takes whole rows: 8 rows of 16,384 points take
/// about as long as the time between two polls.
inline constexpr std::int64_t longest_simd_row = 1 << 16;
/// Points. Rows with values of no array, which are reduced at once, are cut so that these stay in the nearest cache:
/// 8 KB of each.
inline constexpr std::int64_t longest_value_row = 1024;
/// Of each value, of the rows of a call.
inline constexpr std::int64_t most_row_values = 2048;
/// Points whose values are reduced at once where these are those of an array.
inline constexpr std::int64_t most_reduced_points = 2048;
/// Rows of one call of a kernel: enough that the call costs little even with short rows, and that few of them are its
/// first, whose memory was not asked for before.
inline constexpr int most_rows_of_a_call = 256;
/// Rows of a tile whose list is reused for the next tile: finding a row takes 1.6 ns. A longer list would displace
/// arrays from the cache.
inline constexpr std::int64_t most_listed_rows = 8192;

// --- round_robin.cpp, recording.cpp: timelines

/// Steps of a lane that are noted where a block is repeated: 24 MB of times a lane.
inline constexpr std::size_t most_noted_steps = std::size_t{1} << 20;

/// Blocks of time steps whose events are recorded: this many from the beginning of a run, and as many from its end.
inline constexpr std::size_t recorded_blocks = 4;

// --- window_tiles.cpp: rolling windows

/// Planes of a run that is prepared as one: shorter runs do not pay for it.
inline constexpr std::int64_t shortest_run = 4;

// --- execution.cpp, alarms.hpp: lanes

/// Seconds between checks for interrupts and other ranks while a lane computes without polls.
inline constexpr double look_period_s = 1e-3;
/// Seconds between checks whether another rank has stopped; a check costs as much as a poll.
inline constexpr double alarm_period_s = 2e-3;
/// Seconds for which a lane with a CPU of its own waits for another lane before it yields. Other work that is given the
/// CPU has it for about 3 ms; the other lane then waits in its turn, yields, and so on. Heat on 232³ floats, two lanes
/// at a load of 15: medians of 2.0 to 3.3 GPts/s where lanes yielded after 50 us, 3.3 to 3.6 so.
inline constexpr double spin_s = 2e-3;
/// Pauses between looks at the clock, about 0.1 us each; fewer than those before a yield.
inline constexpr int rounds_of_a_look = 256;
/// Items of a message that are copied one by one: finding out how more of them lie costs less than that.
inline constexpr std::int64_t few_items = 32;

/// Seconds. A shorter run is not worth pinning the caller's thread, which takes 6 us, where it is on its CPU already.
inline constexpr double longest_brief_s = 200e-6;
/// Messages of a run at a time for which there is memory before it begins; more are rare, and get theirs when they are
/// posted.
inline constexpr std::size_t messages_at_once = 4096;

}  // namespace tilewave::tuning
