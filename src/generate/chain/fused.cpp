#include "generate/chain/fused.hpp"

#include <algorithm>
#include <set>

#include "generate/chain/tuning.hpp"
#include "schedule/fuse.hpp"

namespace tilewave {

using namespace tuning;

ChainFusion chain_fusion(std::span<const ChainPart> parts) {
    std::set<std::int32_t> seen;
    std::int64_t bytes = 0, rows = 1, row_points = 1, ahead = 0;
    bool in_time = false;
    for (const ChainPart& part : parts) {
        const SweepProblem& p = part.problem;
        if (part.plan.factors != parts[0].plan.factors || p.once || without(p.paths_off, FastPath::fused_nests))
            return {};
        int along = 0;  // the loop that tiles are cut along
        while (along + 1 < p.dims() && p.space.extent(along) == 1) ++along;
        std::int64_t reach = 0;
        for (const Access& a : p.accesses) reach = std::max(reach, p.offset(a)[along]);
        ahead += reach;
        for (std::size_t a = 0; a < part.memories.size(); ++a) {
            in_time = in_time || p.arrays[a].time_buffers > 1;
            if (p.arrays[a].replicated || !seen.insert(part.memories[a]).second) continue;
            bytes += array_bytes(p, part.plan, static_cast<int>(a), 0);
        }
        const std::int64_t cuts = part.plan.grid[along] * part.plan.factors[along],
                           here = ceil_div(p.space.extent(along), cuts),
                           computers = part.plan.ranks() * part.plan.lanes();
        if (here <= rows) continue;
        rows = here;
        row_points = std::max<std::int64_t>(p.space.points() / (p.space.extent(along) * computers), 1) * cuts;
    }
    if (parts.size() < 2 || bytes < least_fused_bytes) return {};
    bytes /= parts[0].plan.lanes();
    const std::int64_t row = std::max<std::int64_t>(bytes / rows, 1);
    std::int64_t together = std::max<std::int64_t>(turn_bytes / slices_in_turn / row, 1);  // rows of a slice
    together = std::max(together, ceil_div(least_slice_points, row_points));
    together = std::max(together, ceil_div(rows * static_cast<std::int64_t>(parts.size()), most_slices));
    const std::int64_t slices = turn_bytes / (together * row);
    if (slices < 2) return {};
    ChainFusion fusion{together * row_points, 1};
    if (in_time) return fusion;
    // Each repetition is a slice behind the one before, for each nest that reads ahead.
    const std::int64_t behind = std::max<std::int64_t>(ceil_div(ahead, together), 1);
    fusion.repetitions = std::clamp<std::int64_t>((slices - 2) / behind, 1, most_repetitions_fused);
    const std::int64_t all = ceil_div(rows, together) * static_cast<std::int64_t>(parts.size());
    fusion.repetitions = std::clamp<std::int64_t>(most_slices / all, 1, fusion.repetitions);
    return fusion;
}

Schedule fused_chain(std::span<const ChainPart> parts, int rank, int ranks, std::int32_t tags,
                     const ChainFusion& fusion, std::int64_t repetitions) {
    std::vector<ChainPart> all;
    for (std::int64_t k = 0; k < repetitions; ++k)
        for (const ChainPart& part : parts) all.push_back(part);
    Schedule whole = chain(all, rank, ranks, tags, parts.size());
    return fusion.points > 0 ? fused(std::move(whole), fusion.points) : whole;
}

}  // namespace tilewave
