// Tuning constants of copies, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

// --- memory.cpp: pages

/// Bytes of a large page of x86-64.
inline constexpr std::size_t large_page = std::size_t{2} << 20;
/// Large pages that are tried first, and the seconds of one from which memory stays in small pages: about what those
/// cost. Where the system had to make room for large pages, 336 MB took 1.35 s, with small pages 0.22.
inline constexpr std::size_t tried_large_pages = 4;
inline constexpr double slow_large_page_s = 2e-3;
/// Bytes: spare memory of at least least_cut is cut from blocks of large_block.
inline constexpr std::int64_t least_cut = 32 << 10, large_block = 4 << 20;

// --- layout.cpp: time buffers

/// Items: boxes of at least least_items_apart, in multiples of items_apart, get that much more distance. Time buffers
/// at a distance of exactly 2^29 bytes share banks of the memory: 7-point heat, 512³ floats, a step at a time on an AMD
/// EPYC took 1.45 GPts/s, with 64 KB between them 1.65.
inline constexpr std::int64_t least_items_apart = std::int64_t{1} << 22, items_apart = std::int64_t{1} << 14;

// --- boxes.cpp: copies of boxes

/// Bytes. The C library copies runs from this length on in large steps. Its stores then delay loads that lie a little
/// further in another page (staging_memory).
inline constexpr std::int64_t shortest_delayed_run = 2048;
/// Bytes: how far into the other page such a load is delayed, and the size of a page.
inline constexpr std::uintptr_t delayed_within = 64, page = 4096;
/// Bytes of a run that is copied inline. Zen 3, glibc: a call of memcpy costs more than copying one cache line. Beyond
/// two lines neither wider vectors nor prefetching nor rep movs were faster.
inline constexpr std::int64_t longest_short_run = 128;
/// Rows that are prefetched ahead. Matrices beyond the caches with rows a page or more from each other gained 15 to 30
/// %, cached ones lost nothing; 12 to 20 rows were about equal.
inline constexpr std::int64_t rows_ahead = 16;
/// Bytes that all runs lie within, where nothing is prefetched: prefetching doubled the time of such copies at worst.
inline constexpr std::int64_t near_runs = 32 << 10;
/// Items of a diagonal. Shorter ones cost more as runs than item by item.
inline constexpr std::int64_t shortest_diagonal = 32;
/// A row of at most few_runs runs costs as much as a long one. The next dimension then makes the rows, `piece` at a
/// time: the cache lines are still there when the following runs need them.
inline constexpr std::int64_t few_runs = 8, piece = 128;

// --- shear.cpp: transpositions and sheared matrices

/// Columns that all rows pass before the next columns begin: their cache lines and pages stay near until the
/// neighbouring rows come to them.
inline constexpr std::int64_t window_columns = 1024;
/// Blocks of one row of blocks that fill a cache line. A block has 16 bytes of columns and 32 bytes of rows, which half
/// and a whole AVX2 register hold. Two rows of blocks fill the lines of the side whose columns are contiguous. So each
/// line is fetched once, even where all rows or all columns share a cache set.
inline constexpr std::int64_t blocks_a_line = 4;
/// Lines that are prefetched on the side whose columns are contiguous: there each line is on another page.
/// 1024 x 1024 doubles: two to three times as fast.
inline constexpr std::int64_t lines_ahead = 4;

}  // namespace tilewave::tuning
