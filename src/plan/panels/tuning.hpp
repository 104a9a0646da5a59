// Choices that plans of factors compare, and their limits; those of products are in plan/products/tuning.hpp.
#pragma once
#include <array>
#include <cstdint>

namespace tilewave::tuning {

/// Widths of block columns that are compared where the layout leaves them free: narrow ones run slowly, wide ones leave
/// ranks idle at the end.
inline constexpr std::array<std::int64_t, 4> panel_blocks{32, 64, 128, 256};
/// Bytes of a factor's messages that are compared, the largest first. Small ones let a panel that travels meet the next
/// one that comes back: over 1 Gb/s 64 KiB are 3 to 5 % faster than 256 KiB, in shared memory 1 to 5 % slower (n =
/// 2000).
inline constexpr std::array<std::int64_t, 2> panel_chunks_bytes{256 << 10, 64 << 10};
/// Of a matrix that is too small for these: some block columns for each rank, at most so wide.
inline constexpr std::int64_t usual_block = 128;
/// In addition to these where memory is short.
inline constexpr std::array<std::int64_t, 2> small_blocks{1, 8};
/// A layout's block columns that are narrower than all of these stay where there are at most so many: each costs a
/// message to every rank and a task on every other one.
inline constexpr std::int64_t most_narrow_panels = 128;
/// Blocks for each rank, on average, of what may have any blocks in proportion: weights are met to 1 or 2 %.
inline constexpr std::int64_t blocks_in_proportion = 32;
/// Steps of all lanes that are simulated for one of several plans, for all of them, and for a plan alone: of more than
/// these a sample is. A second has 2 to 4 million.
inline constexpr double most_plan_steps = 3e5, most_plans_steps = 3e6, most_alone_steps = 4e6;
/// Of a sample: columns of the grid, panels of a factor over steps, columns of a panel.
inline constexpr std::int64_t least_columns_played = 4, most_columns_played = 16, least_panels_sampled = 4;
inline constexpr std::array<std::int64_t, 2> panel_columns{2, 8};
/// Panels of which what a rank sends is counted, at each of three places.
inline constexpr std::int64_t panels_counted = 64;
/// Steps of a rank in which tasks are looked for that are timed.
inline constexpr double most_timed_steps = 2e5;
/// Of more ranks only the usual block and chunk are tried, and columns of the grid of which half as many panels have
/// at most so many; of more than the third number no row of ranks.
inline constexpr int most_ranks_of_blocks = 256, most_panels = 8192, most_ranks_in_a_row = 4096;
/// Ranks that a grid may leave idle, as a part.
inline constexpr double most_idle = 0.15;
inline constexpr std::array<int, 3> panel_lookaheads{1, 2, 3};
/// A plan with more lanes than threads must be predicted clearly faster: predictions are no better than 5 %.
inline constexpr double clearly = 0.95;

}  // namespace tilewave::tuning
