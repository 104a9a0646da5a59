#include "nests/common_layout.hpp"

#include <algorithm>
#include <map>

namespace tilewave {

void widen(SweepProblem& problem, const LeastHalos& halos) {
    for (std::size_t a = 0; a < halos.size(); ++a) {
        problem.arrays[a].least_halo_lo = halos[a].first;
        problem.arrays[a].least_halo_hi = halos[a].second;
    }
}

std::vector<LeastHalos> common_halos(std::vector<SweepProblem> problems, std::span<const Index> grids,
                                     const std::vector<std::vector<std::int32_t>>& memories) {
    std::vector<LeastHalos> halos(problems.size());
    for (bool settled = false; !settled;) {
        std::map<std::int32_t, std::pair<Index, Index>> most;
        for (std::size_t n = 0; n < problems.size(); ++n)
            for (std::size_t a = 0; a < memories[n].size(); ++a) {
                const Layout own = problems[n].layout(static_cast<int>(a), grids[n]);
                auto& [lo, hi] = most.try_emplace(memories[n][a], own.halo_lo, own.halo_hi).first->second;
                for (int d = 0; d < lo.n; ++d) {
                    lo[d] = std::max(lo[d], own.halo_lo[d]);
                    hi[d] = std::max(hi[d], own.halo_hi[d]);
                }
            }
        settled = true;
        for (std::size_t n = 0; n < problems.size(); ++n) {
            LeastHalos wanted;
            for (const std::int32_t memory : memories[n]) wanted.push_back(most.at(memory));
            settled = settled && wanted == halos[n];
            widen(problems[n], wanted);
            halos[n] = std::move(wanted);
        }
    }
    return halos;
}

}  // namespace tilewave
