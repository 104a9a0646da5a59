// The points of loops within affine bounds, row by row.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// The least and the greatest value of a bound over a box.
std::pair<std::int64_t, std::int64_t> extremes(const Bound& bound, const Box& box);

struct BoundedLoops {
    Box space;                  ///< holds all points
    std::vector<Bound> bounds;  ///< which points of it to compute

    /// Whether no point of a box is to be computed, or every point of it.
    bool none_in(const Box& box) const;
    bool all_in(const Box& box) const;
    /// Points to compute.
    std::int64_t points() const;
    /// Those of the row through `at`, along the last loop, within [lo, hi): their last component.
    std::pair<std::int64_t, std::int64_t> clipped(const Index& at, std::int64_t lo, std::int64_t hi) const;
    /// The point that comes last where some loops run downwards, of every strides[k]-th index from first[k] on (empty:
    /// of all); empty where there is none.
    Index last(const std::vector<bool>& downwards, const Index& first, const Index& strides) const;
};

}  // namespace tilewave
