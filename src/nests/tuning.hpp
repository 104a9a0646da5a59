// Tuning constants of nests, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

/// Nests that a context has plans for, or schedules with kernels, at most: a cycle of multigrid has some 70. Bytes of
/// these schedules.
inline constexpr std::size_t most_prepared_nests = 512;
inline constexpr std::int64_t most_prepared_bytes = std::int64_t{1} << 28;
/// Further kinds of tiles that a rate is measured on, at most.
inline constexpr int most_more_rates = 6;
/// Seconds that planning a call may take beyond compiling, and the part of its runs so far (Planning).
inline constexpr double quick_budget_s = 0.01, auto_budget_s = 0.05, part_of_runs = 0.1;
/// Seconds of samples, at least: shorter ones say nothing. And what they take in addition, a byte of the arrays up to
/// most_displaced: memory like theirs is new, and passes through the caches between samples.
inline constexpr double least_sample_s = 0.003, sampled_byte_s = 3e-10;
/// Steps of schedules that a search plays, a second of the budget, and at least: seven million take a second.
inline constexpr double searched_steps_s = 1e6;
inline constexpr std::int64_t least_searched_steps = 60000;
/// Seconds that bringing a byte of an array into another order and back takes, at least: it is read and written twice.
/// 1.2 s of 200 MB on two lanes of a Zen 4.
inline constexpr double least_brought_byte_s = 2e-10;
/// What a run takes at least of what it takes at the machine's number for any body, as long as nothing is measured.
inline constexpr double sure_part = 0.25;
/// Seconds. A run that is predicted to take less is not worth another measurement.
inline constexpr double least_run_s = 1e-4;
/// Schedules of steps that are left after whole blocks, which a bound nest keeps in addition to that of its last run.
inline constexpr std::size_t most_kept_rests = 8;

/// Layouts of a chain's shared arrays that nests are planned for, at most, where their own plans have none in common.
inline constexpr std::size_t most_chain_layouts = 3;
/// A layout is taken, and no other one tried, where the nests take at most so many times what they take by themselves.
inline constexpr double most_of_separate = 1.05;

// --- Blocks of time steps

/// Points of a block of time steps, if its steps allow: 4 to 40 ms of work, next to which its beginning and end (5 to
/// 50 us) count little.
inline constexpr std::int64_t block_points = 1 << 22;
/// Steps of a block, at least: temporal blocks, and pipelines over ranks, begin and end with each block.
inline constexpr std::int64_t fewest_block_steps = 64;
/// Steps of a block, at most: a step of few points takes 0.3 us, but 50 us to plan for.
inline constexpr std::int64_t most_block_steps = 4096;
/// Repetitions that lanes go through without meeting, at most: of a chain; of a block of time steps, and their steps.
/// To meet costs some microseconds; who is interrupted is to find the other ranks not far ahead, and each is recorded.
inline constexpr std::int64_t most_repetitions_together = 256, most_blocks_together = 16, most_steps_together = 1 << 14;

// --- updated_fields.cpp: fields that points update in any order

/// Bytes of the copies that lanes update, at most: with fewer copies than lanes these wait for each other.
inline constexpr std::int64_t most_updated_bytes = std::int64_t{1} << 26;

// --- prepared_rows.cpp: where rows lie in memory

/// Points between the beginnings of rows that are computed together, at most: they begin and end one by one.
inline constexpr std::int64_t most_stagger = 8;

}  // namespace tilewave::tuning
