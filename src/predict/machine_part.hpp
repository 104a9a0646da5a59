// Predictions that play a part of the ranks.
#pragma once
#include <algorithm>
#include <vector>

#include "tilewave/machine.hpp"

namespace tilewave {

/// More ranks than these are not all played: planning takes no longer on more of them.
inline constexpr int most_ranks_played = 64;

/// The machine as some of the first `all` of its ranks see it, numbered in this order: their hosts, and their share of
/// the CPUs of each set.
inline Machine part_of(const Machine& machine, const std::vector<int>& ranks, int all) {
    Machine part = machine;
    part.host_of.clear();
    part.speeds.clear();
    part.set_of.clear();
    part.set_cpus.clear();
    const auto n = static_cast<int>(machine.host_of.size()), sets = static_cast<int>(machine.set_of.size());
    for (const int r : ranks)
        if (n > 0) part.host_of.push_back(r < n ? machine.host_of[r] : r);
    for (const int r : ranks)
        if (!machine.speeds.empty()) part.speeds.push_back(machine.speed(r));
    if (sets == 0 || std::ranges::any_of(ranks, [&](int r) { return r >= sets; })) return part;
    std::vector<double> played(machine.set_cpus.size()), there(played.size());
    for (const int r : ranks) {
        part.set_of.push_back(machine.set_of[r]);
        ++played[machine.set_of[r]];
    }
    for (int r = 0; r < std::min(all, sets); ++r) ++there[machine.set_of[r]];
    for (std::size_t s = 0; s < there.size(); ++s)
        part.set_cpus.push_back(there[s] > 0 ? machine.set_cpus[s] * played[s] / there[s] : 0);
    return part;
}

}  // namespace tilewave
