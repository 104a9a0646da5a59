// The rate of a kernel: from tiles of several shapes that it was measured on.
#pragma once
#include <span>

#include "tilewave/engine/predict.hpp"

namespace tilewave {

/// Tiles of one shape, as lanes that compute at once took them: averages of a tile. Without points: not measured.
struct RateSample {
    double rows = 0, points = 0, tile_s = 0;
    double spread = 0;  ///< how far the middle half of their times is apart, as a part of the median
};

/// The tile_s + rows row_s + points point_s, none of them negative, that the samples suggest: samples are of long rows,
/// of short rows and of few points, in this order; and, where there is a fourth, of long rows on one lane alone:
/// `one_lane_factor`, not above 1.
/// @pre three or four samples with points (ConfigError)
KernelRate fit_rate(std::span<const RateSample> samples);

}  // namespace tilewave
