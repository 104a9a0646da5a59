// Choices that plans of products compare, and their limits.
#pragma once
#include <array>
#include <cstdint>

#include "plan/panels/tuning.hpp"

namespace tilewave::tuning {

/// Widths of a product's panels: below, a BLAS loses speed; above, the first panel delays all.
inline constexpr std::array<std::int64_t, 4> product_panels{64, 128, 256, 512};
/// In addition to these where memory is short.
inline constexpr std::array<std::int64_t, 3> small_panels{1, 8, 32};
/// Blocks of a product's common dimension that are narrower than `least_block`, and more than so many, are compared
/// with wide ones: on a grid no panel is wider than they are.
inline constexpr std::int64_t least_block = 32, most_narrow_blocks = 64, wide_block = 128;
/// Flops of a product's task at most. Small ones run slower, as each packs its operands anew; large ones leave messages
/// alone for milliseconds.
inline constexpr std::array<double, 2> product_tasks{5e7, 4e8};

}  // namespace tilewave::tuning
