// Tuning constants of runs, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

#include "plan/nests/tuning.hpp"

namespace tilewave::tuning {

/// Bytes of the largest field: sums of such sizes do not overflow.
inline constexpr std::int64_t largest_field_bytes = std::int64_t{1} << 60;

// --- agreement.cpp: the begin of a call

/// Bytes that every rank must have when a call begins, for what it makes on its way: lists of messages, texts, numbers
/// of all ranks. Below 32 KB, so that it comes from where small memory comes from.
inline constexpr std::size_t memory_left_bytes = 24 << 10;

// --- collective_run.cpp: blocks of time steps

/// Points of a block of time steps, if its steps allow: 4 to 40 ms of work, beside which its beginning and end (5 to 50
/// us) count little.
inline constexpr std::int64_t block_points = 1 << 22;
/// Steps of a block, at least: temporal blocks, and pipelines over ranks, begin and end with each block.
inline constexpr std::int64_t fewest_block_steps = 64;
/// Steps of a block, at most: a step of few points takes 0.3 us, but 50 us to plan for.
inline constexpr std::int64_t most_block_steps = 4096;

/// Bytes from which the lanes share a copy.
inline constexpr std::int64_t large_copy_bytes = 4 << 20;

// --- nest.cpp: planning of C++ nests

/// Planned nests that one context keeps.
inline constexpr std::size_t most_planned_nests = 64;

// --- bound_sweep.cpp: bound nests

/// Schedules of steps that are left after whole blocks, which a bound nest keeps beside that of its last run.
inline constexpr std::size_t most_kept_rests = 8;

// --- choose_together.cpp, nest_rates.cpp: rates of bodies

/// Seconds that the samples of one rate take, about; and those of one that has few points.
inline constexpr double rate_budget_s = 0.1, least_rate_budget_s = 0.03;
/// Further kinds of tiles that a rate is measured on, at most.
inline constexpr int most_more_rates = 6;
/// Seconds. A run that is predicted to take less is not worth another measurement.
inline constexpr double least_run_s = 1e-4;
/// Bodies, each with arrays of some shapes, whose rates one context remembers.
inline constexpr std::size_t most_known_rates = 512;

// --- pattern_transfer.cpp, patterns.cpp, piggyback.cpp: patterns

/// Idle transfers that one context keeps for later calls, and their bytes, at most.
inline constexpr std::size_t most_idle = 16;
inline constexpr std::int64_t most_idle_bytes = 16 << 20;
/// Looks of a blocking call at whether it is over before it waits as longer waits do: some 10 us.
inline constexpr int quick_turns = 200;

// --- halo_update.cpp: updates of halos

/// Updates that one context keeps for later calls with the same fields, at most.
inline constexpr std::size_t most_kept_updates = 32;

// --- sampling.cpp: measuring the rate of a body

/// Points of the tile that tells how many others there is time for; and of the second such tile where that is quick:
/// the beginning of a tile would make points seem slow.
inline constexpr std::int64_t probe_points = 2048, second_probe_points = 16 * probe_points;
/// Points of one lane: its memory is then far larger than the caches.
inline constexpr std::int64_t most_sample_points = 16 << 20;
/// Bytes of memory like the arrays': larger than the caches, and little beside arrays that fill the machine.
inline constexpr std::int64_t most_sample_bytes = std::int64_t{256} << 20;
/// Bytes that pass through the caches of a rank from round to round.
inline constexpr std::int64_t most_displaced = std::int64_t{128} << 20;
/// Points of rows that show what beginning a row costs, of arrays beyond a core's own cache: at the end of a row a
/// prefetcher goes some lines too far. 2000 x 1500 doubles: 62 ns a row of 187 points, of which rows of 24 show 20.
inline constexpr std::int64_t short_row_of_streams = 8 * short_row;
/// Extent of the smallest tiles that are measured.
inline constexpr int tiny_extent = 2;
/// Times of tiles of one shape: of fewer the median is taken.
inline constexpr std::size_t few_times = 8;
/// Seconds that the system takes a CPU away for, at least: its time slices are 3 ms.
inline constexpr double least_absence_s = 1e-3;
/// Seconds of a tile from which its time is what its thread had of a CPU, not what passed: to ask for that costs 0.57
/// us on a Zen 4.
inline constexpr double least_cpu_timed_s = 1e-4;
/// Rounds of a measurement: the first does not count, and of three one may be disturbed.
inline constexpr int least_rounds = 4;
/// Points of a row on average, so that it is measured as it is.
inline constexpr double least_row = 12;
/// Points of rows that are measured where the plan has shorter ones.
inline constexpr std::int64_t telling_row = 256;
/// Of rolling windows: planes of the three kinds of tiles; rows of a slanted window are as long.
inline constexpr int planes_of_window_tiles[] = {1024, short_row, 12};
/// Points along the rows of such tiles, of straight and of slanted windows; 0: the plan's.
inline constexpr int width_of_tiles[2][3] = {{0, 12, 12}, {0, 0, 12}};
/// Tiles along the rows that are measured where the plan has one.
inline constexpr std::int64_t most_tiles_along = 8;

/// One in so many points more or less: tiles of about one size.
inline constexpr std::int64_t alike_points = 32;

// --- context.cpp: what a new context measures of its links

/// Hand-overs between two lanes; and bytes of the two messages whose times give latency and bandwidth.
inline constexpr int hand_over_rounds = 200;
inline constexpr std::size_t small_ping_bytes = 128 << 10, large_ping_bytes = 1 << 20;
/// Messages of a stream, and bytes of each: beside one message of all their bytes they give what a chunk costs.
inline constexpr int stream_chunks = 16;
inline constexpr std::size_t stream_chunk_bytes = 16 << 10;

// --- field_reduction.cpp: sums over fields

/// Terms of a sum that are made at once: they stay in the nearest cache.
inline constexpr std::int64_t terms_at_once = 1024;

// --- sends.cpp: buffered sends

/// Bytes of a piece, at least. Two ranks, 64 KB to 8 MB: 128 to 512 KB were about equal, 64 KB and 1 MB slower.
inline constexpr std::int64_t least_piece_bytes = 256 << 10;
/// Pieces of a message, and bytes of a piece, at most. With more pieces the receiver's answers fill the sender's queue:
/// the rest then waits for calls that a receiver which has everything may not make.
inline constexpr std::int64_t most_pieces = 32, most_piece_bytes = 2 << 20;
/// Pieces that a receiver of strided rows stages.
inline constexpr std::size_t staged_pieces = 4;

// --- prepared_sweep.cpp: where rows lie in memory

/// Items that show what copying an array into the engine's order costs.
inline constexpr std::int64_t tried_items = 1 << 19;
/// Points between the beginnings of rows that are computed together, at most: they begin and end one by one.
inline constexpr std::int64_t most_stagger = 8;

/// Bytes within which places of neighbouring rows of different arrays are too near in a page; and the rows looked at.
/// Farther ones are many points behind.
inline constexpr std::int64_t near_in_page = 128, nearest_rows = 4;

// --- collective_run.cpp: blocks that repeat

/// Repetitions that lanes go through without meeting, at most: of a chain; of a block of time steps, and their steps.
/// To meet costs some microseconds; who is interrupted is to find the other ranks not far ahead, and each is recorded.
inline constexpr std::int64_t most_repetitions_together = 256, most_blocks_together = 16, most_steps_together = 1 << 14;

}  // namespace tilewave::tuning
