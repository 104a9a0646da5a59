#include "polyhedral/linear_schedule.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace tilewave {
namespace {

using Span = std::span<const std::int64_t>;
using Tiles = std::vector<std::vector<std::int64_t>>;

/// The range of the times seen so far.
struct Range {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t most = std::numeric_limits<std::int64_t>::min();

    void add(std::int64_t time) {
        least = std::min(least, time);
        most = std::max(most, time);
    }
    std::int64_t width() const { return least > most ? 0 : narrow(Wide(most) - least); }
    std::int64_t waves() const { return least > most ? 0 : width() + 1; }
};

std::vector<std::int64_t> weights(int n, int mapping_dim, std::int64_t there, std::int64_t elsewhere) {
    std::vector<std::int64_t> pi(n, elsewhere);
    pi[mapping_dim] = there;
    return pi;
}

template <class Time>
std::int64_t waves_of(const Tiles& tiles, const Time& time) {
    Range range;
    for (const auto& t : tiles) range.add(time(Span(t)));
    return range.waves();
}

/// For times that are a sum of one function of each coordinate: over a box, each coordinate
/// adds its own range. `ends_suffice`: those functions are monotone.
template <class Time>
std::int64_t waves_of(const Space& tiles, bool ends_suffice, const Time& time) {
    if (tiles.is_box()) {
        std::vector<std::int64_t> corner;
        for (int k = 0; k < tiles.dims(); ++k) corner.push_back(tiles.bounds(k, corner).first);
        std::int64_t sum = 1;
        for (int k = 0; k < tiles.dims(); ++k) {
            auto t = corner;
            const auto [lo, hi] = tiles.bounds(k, Span(corner).first(k));
            const std::int64_t stride = ends_suffice ? std::max<std::int64_t>(hi - lo, 1) : 1;
            Range range;
            for (std::int64_t v = lo; v <= hi; v += stride) {
                t[k] = v;
                range.add(time(Span(t)));
            }
            sum = narrow(Wide(sum) + range.width());
        }
        return sum;
    }
    Range range;
    tiles.for_each_point([&](Span t) { range.add(time(t)); });
    return range.waves();
}

}  // namespace

LinearSchedule::LinearSchedule(std::vector<std::int64_t> pi) : pi_(std::move(pi)) {
    if (pi_.empty()) throw ConfigError("an empty schedule vector was given; 1 or more components are allowed");
}

LinearSchedule LinearSchedule::for_tiles(ScheduleKind kind, int n, int mapping_dim) {
    if (n < 1)
        throw ConfigError("a schedule for " + std::to_string(n) + " dimensions was asked for; 1 or more are allowed");
    if (mapping_dim < 0 || mapping_dim >= n)
        throw ConfigError("mapping dimension " + std::to_string(mapping_dim) + " was given; 0 to " +
                          std::to_string(n - 1) + " are allowed");
    return LinearSchedule(weights(n, mapping_dim, 1, kind == ScheduleKind::blocking ? 1 : 2));
}

LinearSchedule LinearSchedule::for_groups(ScheduleKind kind, const Grouping& grouping) {
    const int n = grouping.dims(), mapping_dim = grouping.mapping_dim();
    if (grouping.kind() == GroupingKind::vertical) return for_tiles(kind, n, mapping_dim);
    return LinearSchedule(weights(n, mapping_dim, 1, kind == ScheduleKind::blocking ? 0 : 1));
}

std::int64_t LinearSchedule::time(Span v) const {
    if (v.size() != pi_.size())
        throw ConfigError("a tile or group of " + std::to_string(v.size()) + " components was given to a schedule of " +
                          std::to_string(pi_.size()) + " dimensions; equal numbers are allowed");
    Wide sum = 0;
    for (std::size_t k = 0; k < pi_.size(); ++k) sum += Wide(pi_[k]) * v[k];
    return narrow(sum);
}

std::int64_t LinearSchedule::wave_of(const Grouping& grouping, Span tile) const {
    if (grouping.dims() != int(pi_.size()))
        throw ConfigError("a grouping of " + std::to_string(grouping.dims()) +
                          " dimensions was given to a schedule of " + std::to_string(pi_.size()) +
                          "; equal numbers are allowed");
    return time(grouping.group_of(tile));
}

std::int64_t LinearSchedule::waves(const Space& tiles) const {
    return waves_of(tiles, true, [&](Span t) { return time(t); });
}

std::int64_t LinearSchedule::waves(const Tiles& tiles) const {
    return waves_of(tiles, [&](Span t) { return time(t); });
}

std::int64_t LinearSchedule::waves(const Grouping& grouping, const Space& tiles) const {
    // A coordinate enters by its own group number and, in hyperplane groups, by the sum:
    // weights of one sign make that monotone.
    const bool same_sign = std::ranges::all_of(pi_, [](auto w) { return w >= 0; });
    return waves_of(tiles, same_sign, [&](Span t) { return wave_of(grouping, t); });
}

std::int64_t LinearSchedule::waves(const Grouping& grouping, const Tiles& tiles) const {
    return waves_of(tiles, [&](Span t) { return wave_of(grouping, t); });
}

}  // namespace tilewave
