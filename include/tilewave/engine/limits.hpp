// The limits of the library, each declared once. Python reads them as tilewave._core.limits.
#pragma once
#include <cstdint>

namespace tilewave {

/// The most loops of a nest and dimensions of an array.
inline constexpr int max_dims = 6;

/// The most time steps before the current one that a nest reads and a field keeps.
inline constexpr int max_history = 6;

/// The most places that a kernel reads and writes at a point, with its tables and the results of its reductions.
inline constexpr int max_places = 192;

/// The most lanes of a rank. It is far above any host: a mistyped number is refused before threads start.
inline constexpr int max_lanes = 1024;

/// Rows with dependences inside them that a kernel computes at once, a SIMD lane each. Blocks of 16 rows take 0.78 ns
/// a point where blocks of 8 take 0.58 (Zen 5): 16 are more streams than a core prefetches.
inline constexpr std::int64_t max_simd_rows = 8;

/// Rows with different indices in the third last dimension that are computed interleaved. A row that reads
/// what the row before it has just stored waits for the store; 4 interleaved rows give the stores time to finish.
inline constexpr std::int64_t max_layers_in_turn = 4;

/// A kernel that raises at its point q returns q * error_sites + site, with 1 <= site < error_sites.
inline constexpr std::int64_t error_sites = 4096;

}  // namespace tilewave
