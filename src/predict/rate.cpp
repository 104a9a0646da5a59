#include "predict/rate.hpp"

#include <algorithm>

#include "core/concat.hpp"

namespace tilewave {

KernelRate fit_rate(std::span<const RateSample> samples) {
    if (samples.size() < 3 || samples.size() > 4 ||
        std::ranges::any_of(samples, [](const RateSample& s) { return !(s.points > 0); }))
        throw ConfigError(
            concat("a rate was asked for from ", samples.size(), " samples; allowed: three or four, each with points"));
    KernelRate r;
    r.point_s = r.row_s = r.tile_s = 0;
    const auto &lengthy = samples[0], &brief = samples[1], &tiny = samples[2];
    // Rows of one length say nothing of what begins a row.
    const bool rows_differ = lengthy.points * brief.rows > 1.3 * brief.points * lengthy.rows;
    // Each sample is mostly of what it decides, so that taking them in turn settles.
    for (int i = 0; i < 100; ++i) {
        r.point_s = std::max(0.0, (lengthy.tile_s - r.tile_s - r.row_s * lengthy.rows) / lengthy.points);
        if (rows_differ) r.row_s = std::max(0.0, (brief.tile_s - r.tile_s - r.point_s * brief.points) / brief.rows);
        r.tile_s = std::max(0.0, tiny.tile_s - r.row_s * tiny.rows - r.point_s * tiny.points);
    }
    if (samples.size() == 4)
        r.one_lane_factor = std::clamp(
            samples[3].tile_s * lengthy.points / std::max(samples[3].points * lengthy.tile_s, 1e-30), 1e-3, 1.0);
    return r;
}

}  // namespace tilewave
