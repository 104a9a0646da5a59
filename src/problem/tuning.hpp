// Tuning constants of plans as values, with their units and where they come from.
#pragma once
#include <cstdint>

namespace tilewave::tuning {

/// Ratio of a block's extents from which its rows go along the longer dimension.
inline constexpr double clearly_longer = 1.125;
/// Points of a row below which the call of the kernel costs a visible part of the time.
inline constexpr std::int64_t shortest_sliced_row = 64;

/// Ranks are equally fast where the slowest lacks no more of the fastest's speed than this. Equal CPUs differ by up to
/// 5 % from one measurement to the next, and by more beside other programs; two ranks that differ by 12 % gain 6 %.
inline constexpr double unequal = 0.12;

// --- temporal_blocking.cpp (docs/decisions/0011-temporal-blocking.md)

/// What the steps of a temporal block fill of the lanes' shares of the last cache: on one rank, and over ranks.
inline constexpr double cached_part = 0.25, cached_part_over_ranks = 0.5;
/// The same on one rank where tiles are as low as they can be: more steps are worth more than room. Heat on 300³ floats
/// with 2, 4, 6, 8 steps, which fill 0.17, 0.34, 0.5, 0.7 of a share: 2.3, 2.4, 2.8, 2.6 GPts/s.
inline constexpr double cached_part_of_layers = 0.5;
/// Steps of a temporal block, if there are not more lanes: memory traffic is then an eighth.
inline constexpr std::int64_t most_steps_of_a_block = 8;
/// Points of a tile, so that a step of the schedule costs little in comparison: on one rank, and over ranks.
inline constexpr double least_points_together = 16384, least_points_over_ranks = 32768;
/// One lane alone uses its core's private cache, if so many steps of tiles with so many points fit this part of it.
inline constexpr std::int64_t least_steps_in_core_cache = 4;
inline constexpr double least_points_in_core_cache = 6000, core_cached_part = 0.75;
/// A tile that sends one message takes at least as long as so many messages.
inline constexpr double messages = 16;
/// Aggregated messages of one time step, at least, so that ranks follow each other closely.
inline constexpr double aggregates_of_a_step = 8;
/// Points of a rank along the rows, from which tiles are cut along the sum of two loops for temporal blocking.
inline constexpr std::int64_t least_width_together = 64;

// --- panel_width.hpp: rolling windows (docs/decisions/0007-rolling-windows.md)

/// Bytes of a panel's planes: half of the nearest cache; the other half is for what else a row reads.
inline constexpr std::int64_t panel_bytes = 16 << 10;
/// Points of a panel's rows. Alignment: 0.11 ns a point to 1,024 points a row, 0.18 from 1,792 on. Rows shorter than
/// 256 show the cost of a row, longer ones than 4,096 gain nothing.
inline constexpr std::int64_t shortest_panel = 256, longest_panel = 4096;

// --- memory_order.cpp

/// Ranks whose memory orders are compared: blocks have few different extents, and few are at an edge.
inline constexpr int most_ranks_compared = 64;
/// Padding is too much beyond so many bytes and so many times the elements.
inline constexpr std::int64_t little_padding_bytes = std::int64_t{4} << 20, most_padding = 4;

}  // namespace tilewave::tuning
