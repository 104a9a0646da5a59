// Tuning constants of measurements, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

// --- product_rates.cpp, task_rates.cpp: operations of matrices

/// A product of more flops is timed with fewer rows or columns: so many take less than 10 ms.
inline constexpr double product_flops = 4e8;
/// Rows and columns of blocks that turn in a copy that is timed.
inline constexpr std::int64_t copied_side = 512;

/// Flops of a task that is timed, at most: below 20 ms also where LAPACK is slow.
inline constexpr double timed_flops = 2e8;
inline constexpr int timed_calls = 5;
/// More than the caches that a lane has, shared ones too.
inline constexpr std::int64_t most_caches_bytes = 48 << 20;

// --- tile_samples.cpp: measuring the rate of a body

/// Points of the tile that tells how many others there is time for; and of the second such tile where that is quick:
/// the beginning of a tile would make points seem slow.
inline constexpr std::int64_t probe_points = 2048, second_probe_points = 16 * probe_points;
/// Points of one lane: its memory is then far larger than the caches.
inline constexpr std::int64_t most_sample_points = 16 << 20;
/// Bytes of memory like the arrays': larger than the caches, and little next to arrays that fill the machine.
inline constexpr std::int64_t most_sample_bytes = std::int64_t{256} << 20;
/// Bytes that pass through the caches of a rank from round to round.
inline constexpr std::int64_t most_displaced = std::int64_t{128} << 20;
/// Points of rows that show what beginning a row costs; or a quarter of a row.
inline constexpr std::int64_t short_row = 24;
/// The same of arrays beyond the cache of one core: at the end of a row a
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

// --- nest_rates.cpp: rates of bodies

/// Seconds that the samples of one rate take, about; and those of one that has few points, of thorough planning.
inline constexpr double rate_budget_s = 0.1, least_rate_budget_s = 0.03;
/// Bodies, each with a way in which its arrays lie, whose rates one context remembers; rates of one of them; and its
/// calls.
inline constexpr std::size_t most_known_rates = 512, most_rates_of_a_body = 96, most_planned_calls = 256;

// --- rate_store.cpp: rates on disk

/// Seconds that a stored rate is good for: meanwhile a system may have got another kernel or firmware.
inline constexpr double most_rate_age_s = 14 * 86400.0;
/// A stored rate is measured once more in another process where its spread is so large: other programs had the CPUs. Of
/// two lanes on two CPUs of a Zen 4 with other programs lanes waited for 0.5 to 2 of the time; nobody waits without
/// them.
inline constexpr double renewed_spread = 0.4;

}  // namespace tilewave::tuning
