#include "tilewave/machine.hpp"

#include <algorithm>
#include <cmath>

#include "problem/tuning.hpp"

namespace tilewave {

double Curve::at(double value) const {
    if (x.empty()) return 0;
    if (x.size() == 1) return y[0];
    const auto above = std::upper_bound(x.begin() + 1, x.end() - 1, value) - x.begin();
    const auto b = static_cast<std::size_t>(above), a = b - 1;
    return y[a] + (value - x[a]) * (y[b] - y[a]) / (x[b] - x[a]);
}

std::vector<double> Machine::lane_speeds(int ranks, int lanes) const {
    const auto known = std::min(static_cast<std::size_t>(ranks), set_of.size());
    std::vector<double> on_set(set_cpus.size()), found;
    for (std::size_t r = 0; r < known; ++r) on_set[set_of[r]] += lanes;
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
        const double share = r < known ? std::min(1.0, set_cpus[set_of[r]] / on_set[set_of[r]]) : 1;
        found.push_back(share * (r < speeds.size() ? speeds[r] : 1));
    }
    return found;
}

Weights Machine::weights(int ranks, int lanes) const {
    const std::vector<double> all = lane_speeds(ranks, lanes);
    const double fastest = *std::ranges::max_element(all);
    if (*std::ranges::min_element(all) > (1 - tuning::unequal) * fastest) return {};
    Weights found;
    for (const double speed : all) found.push_back(std::max(std::llround(100 * speed / fastest), 1LL));
    return found;
}

}  // namespace tilewave
