// Groups of tiles: the lanes of a rank compute one group in one wave. The formulas of athanasaki2002, as exact values
// in docs/theory/tilings; here what runs need.
#pragma once
#include "tilewave/plan.hpp"

namespace tilewave {

/// Pi^G · floor(H^G tile), the wave of the group that holds a tile. Hyperplane groups: the sum of the coordinates, and
/// where the schedule is overlapping, that of the other dimensions' groups. Vertical groups: the coordinate along the
/// mapping dimension, and once or twice (overlapping) the sum of the others' groups.
/// @pre the factors of `plan` are >= 1, as many as `tile` has components (not checked)
inline std::int64_t group_wave(const Plan& plan, const Index& tile) {
    const bool hyperplane = plan.grouping == GroupingKind::hyperplane;
    const int other_weight = (plan.schedule == ScheduleKind::overlapping ? 2 : 1) - (hyperplane ? 1 : 0);
    std::int64_t wave = 0;
    for (int x = 0; x < tile.n; ++x) {
        if (hyperplane || x == plan.mapping_dim) wave += tile[x];
        if (x != plan.mapping_dim) wave += other_weight * floor_div(tile[x], plan.factors[x]);
    }
    return wave;
}

/// The lane that computes a tile: tile_x mod m_x, in row-major order.
/// @pre the factors of `plan` are >= 1, and 1 along its mapping dimension (not checked)
inline int lane_of(const Plan& plan, const Index& tile) {
    std::int64_t lane = 0;
    for (int x = 0; x < tile.n; ++x) lane = lane * plan.factors[x] + floor_mod(tile[x], plan.factors[x]);
    return static_cast<int>(lane);
}

}  // namespace tilewave
