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

}  // namespace tilewave::tuning
