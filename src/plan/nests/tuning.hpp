// Tuning constants of the planner, with their units and where they come from.
#pragma once
#include <cstdint>

namespace tilewave::tuning {

// --- Rows

/// Points of a row, at least: rows shorter than a vector or two are computed point by point, and a row of one point
/// costs twenty times as much a point. No shorter pipeline fill is worth that. Skewed storage pays from here on, too.
inline constexpr std::int64_t shortest_row = 12;
/// Points of rows at which a kernel's rate changes.
inline constexpr double row_lengths[] = {12, 48, 192};
/// Points of a tile along an index that rows vary, from which the cost of a row is small.
inline constexpr std::int64_t long_row = 128;

// --- rules.cpp: the plan that the search starts from

/// Tiles of a lane in a sweep before rows are made longer than long_row.
inline constexpr std::int64_t least_tiles_of_a_sweep = 8;
/// Tiles of a lane where sweeps follow each other: a lane starts the next sweep while its neighbour finishes the last.
/// Ranks hear of each other later than lanes. Long rows are worth more than even work.
inline constexpr std::int64_t least_tiles_over_lanes = 2, least_tiles_over_ranks = 4;
/// The part of all sweeps that a lane may wait for its first tile.
inline constexpr double filling = 1.0 / 32;
/// Planes of a rolling window's tile: enough that beginning a panel costs little next to them.
inline constexpr std::int64_t window_planes_of_a_tile = 16384, least_window_planes_of_a_tile = 64;
/// What beginning a row in a rolling window costs, in points of it.
inline constexpr double row_cost = 300;
/// Steps of a block of a nest with a pivot, and rows of a task. Shortest paths of 2000 nodes, one core of a Xeon, with
/// blocks of 16, 32 and 64 steps: doubles 0.85, 0.74 and 1.05 s, 32-bit integers 0.46, 0.38 and 0.44 s.
inline constexpr std::int64_t pivot_steps = 32, pivot_rows = 64;
/// Bytes of a row that a call of the kernel computes: with the kept rows of a block it stays in the caches next to a
/// core.
inline constexpr std::int64_t pivot_strip_bytes = 2048;
/// Bytes that a chunk of a part of a gathered time step has at least, and the most chunks of one.
inline constexpr std::int64_t gathered_chunk_bytes = 4096, most_gathered_chunks = 8;

// --- candidates.cpp: what is tried

/// Grids and divisions into lanes that are tried, at most.
inline constexpr std::int64_t most_grids = 400, most_factors = 40;
/// Tile heights that are tried, as multiples of what the closed form gives.
inline constexpr double heights[] = {1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2, 0.71, 1, 1.41, 2, 4, 8};
/// Into how many pieces a lane's extent along one dimension is cut, at most, and the points of a piece, at least.
inline constexpr std::int64_t most_parts = 32, least_part_points = 8;

// --- evaluation.cpp: how much of a plan is simulated

/// Tiles of all ranks together that are simulated as they are.
inline constexpr std::int64_t most_tiles = 4000;
/// Tiles that are not simulated at all, where none can be left out: the closed form is used.
inline constexpr std::int64_t too_many_tiles = 300000;
/// Ranks that are simulated along a dimension that more ranks cut; then two fewer, as blocking ranks take turns.
inline constexpr std::int64_t ranks_played = 5;
/// Steps of a tile in a schedule, about.
inline constexpr double steps_of_a_tile = 8;
/// Time steps, or tiles along the mapping dimension, that are simulated where there are more.
inline constexpr std::int64_t steps_played = 12;
/// Chunks of faces, of all ranks together, from which on it is so few steps: a chunk takes about 1 us, and faces of
/// many chunks have no pipeline of steps.
inline constexpr double most_chunks = 40000;
inline constexpr std::int64_t few_steps_played = 6;
/// Tiles of all ranks together from which on each rank has fewer along the dimensions that ranks cut, and how many
/// then: a simulation of 16,000 takes about 0.1 s.
inline constexpr std::int64_t many_tiles = 16000, tiles_of_blocks = 8;
/// Where all ranks are simulated: their tiles together, of which each takes about 2 KB with its messages, and tiles
/// along a dimension.
inline constexpr std::int64_t most_tiles_of_all_ranks = 600000, least_steps = 3, most_steps = 12;

// --- planner.cpp: the search. Ratios of predicted times.

/// A plan replaces that of the rules when it is this much better: the predictor is no better than that.
inline constexpr double worth = 0.98;
/// A plan replaces one that was found earlier, closer to the rules, when it is this much better.
inline constexpr double worth_later = 0.995;
/// Fewer ranks must be this much better: arrays would move to them, and the next nest may want them back.
inline constexpr double worth_fewer = 0.9;
/// Over ranks a sweep must be this much better than a stencil: a rank that is held up holds up more of them. 7-point
/// heat, 128³ floats on two ranks under other load: 94 ms as a sweep, 74 as a stencil, both predicted at 33.
inline constexpr double worth_sweeping = 0.98;
/// Twice as many lanes must be this much better: each waits for the others, and for its CPU where other programs run.
/// SOR of 400 x 400 with a mask and its largest residual: two lanes predicted at 0.86 of one lane took 1.1 times as
/// long, and with other programs on both CPUs 40 times; without a mask, predicted at 0.81, they took 0.85.
inline constexpr double worth_doubling_lanes = 0.85;
/// Of grids that differ in the order of their numbers those with more blocks along a later loop must be this much
/// better, for points that do not depend on each other: nests in turn share arrays, which would move. Shallow water
/// 1000 x 1000 on two ranks, three nests in turn, of which one has no messages where the second loop is cut: 9.9 ms a
/// step with that grid, 0.7 with equal ones.
inline constexpr double worth_turning = 0.8;
/// Slices that cut rows, or leave fewer rows than SIMD lanes, must be this much better: each row begins with data that
/// was not prefetched. Wave equation, 1500 x 2200 floats: 13.0 ms with rows in two slices, 8.2 with whole rows, both
/// predicted at 8.3.
inline constexpr double worth_cutting_rows = 0.9;
/// The search ends when no neighbour is better by this much, or after so many rounds.
inline constexpr double worth_going_on = 0.97;
inline constexpr int most_rounds = 8;
/// Neighbours whose estimate is this much above the best are not simulated; and so many a round, at most.
inline constexpr double hopeless = 1.1;
inline constexpr int most_neighbours = 8;

// --- rates.cpp: rates of tiles that were not measured. Ratios.

/// A first-level cache over the second: 32 KB of 1 MB, 48 KB of 2 MB. Machine files do not have it.
inline constexpr double first_level_part = 1.0 / 32;
/// What a class of tiles may take of the nearest measured one: sweeps of 256³ floats over tiles in caches took 0.6 to
/// 0.75 of what they took in memory.
inline constexpr double hoped_part = 0.7;
/// The same for larger tiles and other row lengths: two arrays of 64 x 64 x 256 floats on two lanes took 0.18 ms in
/// tiles that reuse 32 KB, 0.14 in tiles that reuse 129 KB with rows twice as long.
inline constexpr double barely_hoped_part = 0.85;
/// A rate never falls below this part of what was measured, whatever the memory curves say.
inline constexpr double least_part = 0.25;
/// Seconds of a byte that hardly a lane is quicker than: beyond the caches of its core, and in them. Of rows of 40
/// doubles 12.6 ns a row and nothing a point were found; 500 x 500 points were predicted at 7 us then, and take 80.
inline constexpr double least_memory_byte_s = 2e-11, least_cache_byte_s = 5e-12;
/// The same where lines follow each other: lanes that share out time steps find what they read, and what they write,
/// in another lane's cache. 7-point heat, 256³ floats, 20 steps on two lanes in time, tiles (1, 254, 4, 254), two CPUs
/// of an AMD EPYC: 326 ms, 95 by the rate of one lane's tiles; 23 ns a line where a hand-over took 400.
inline constexpr double streamed_line_of_hand_over = 0.056;
/// Getting a cache line that another lane has written, and back, over a hand-over between lanes: 146 to 160 ns a row
/// where hand-overs took 350 to 510 (300² and 1200² doubles, two CPUs of an AMD EPYC).
inline constexpr double line_of_hand_over = 0.35;

}  // namespace tilewave::tuning
