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
/// Tasks of all plans that are simulated, of all ranks: about a second.
inline constexpr std::int64_t most_played_tasks = 1'000'000;
inline constexpr std::array<int, 3> panel_lookaheads{1, 2, 3};
/// A plan with more lanes than threads must be predicted clearly faster: predictions are no better than 5 %.
inline constexpr double clearly = 0.95;

}  // namespace tilewave::tuning
