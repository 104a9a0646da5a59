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
