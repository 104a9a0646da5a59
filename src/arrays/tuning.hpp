// Tuning constants of fields and arrays, with their units and where they come from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave::tuning {

/// Bytes of the largest field: sums of such sizes do not overflow.
inline constexpr std::int64_t largest_field_bytes = std::int64_t{1} << 60;
/// Bytes from which the lanes share a copy.
inline constexpr std::int64_t large_copy_bytes = 4 << 20;
/// Items that show what copying an array into the engine's order costs.
inline constexpr std::int64_t tried_items = 1 << 19;
/// Updates that one context keeps for later calls with the same fields, at most.
inline constexpr std::size_t most_cached_updates = 32;
/// Terms of a sum that are made at once: they stay in the nearest cache.
inline constexpr std::int64_t terms_at_once = 1024;

}  // namespace tilewave::tuning
