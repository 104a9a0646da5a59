// How wide the panels of rolling windows are: for the plan, and for the layout of their memory.
#pragma once
#include <algorithm>
#include <cstdint>

#include "data/memory.hpp"
#include "problem/tuning.hpp"

namespace tilewave {

/// Points of a panel's rows, whole cache lines. `point_bytes`: bytes of one point of a row in all hyperplanes of
/// all rolling-window arrays; `item_bytes`: of the smallest element.
inline std::int64_t panel_width(std::int64_t point_bytes, std::int64_t item_bytes) {
    const std::int64_t unit = cache_line_bytes / item_bytes;
    const std::int64_t width = std::clamp(tuning::panel_bytes / std::max<std::int64_t>(point_bytes, 1),
                                          tuning::shortest_panel, tuning::longest_panel);
    return (width + unit - 1) / unit * unit;
}

}  // namespace tilewave
