#include "generate/chain/fused.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "generate/chain/tuning.hpp"
#include "schedule/fuse.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// Repetitions after which every memory has written a multiple of its buffers; 1 where these would be too many.
std::int64_t buffers_cycle(std::span<const ChainPart> parts) {
    std::int64_t cycle = 1;
    for (const auto& [number, memory] : timed_memories(parts)) {
        const std::int64_t buffers = memory.buffers;
        cycle = std::lcm(cycle, buffers / std::gcd(buffers, memory.steps));
    }
    return cycle > most_cycle ? 1 : cycle;
}

}  // namespace

ChainFusion chain_fusion(std::span<const ChainPart> parts) {
    if (std::ranges::any_of(
            parts, [](const ChainPart& part) { return without(part.problem.paths_off, FastPath::fused_nests); }))
        return {};
    ChainFusion fusion;
    fusion.repetitions = fusion.cycle = buffers_cycle(parts);
    std::set<std::int32_t> seen;
    std::int64_t bytes = 0, rows = 1, row_points = 1, ahead = 0;
    const auto points = [](const ChainPart& part) { return part.problem.space.points(); };
    const ChainPart& largest = *std::ranges::max_element(parts, {}, points);
    for (const ChainPart& part : parts) {
        const SweepProblem& p = part.problem;
        // Of what is narrow, such as an absorbing layer, lanes have other parts.
        if (p.once || (part.plan.factors != largest.plan.factors && points(part) > points(largest) / narrow))
            return fusion;
        int along = 0;  // the loop that tiles are cut along
        while (along + 1 < p.dims() && p.space.extent(along) == 1) ++along;
        std::int64_t reach = 0;
        for (const Access& a : p.accesses) reach = std::max(reach, p.offset(a)[along]);
        ahead += reach;
        for (std::size_t a = 0; a < part.memories.size(); ++a) {
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
    if (parts.size() < 2 || bytes < least_fused_bytes) return fusion;
    bytes /= largest.plan.lanes();
    const std::int64_t row = std::max<std::int64_t>(bytes / rows, 1);
    std::int64_t together = std::max<std::int64_t>(turn_bytes / slices_in_turn / row, 1);  // rows of a slice
    together = std::max(together, ceil_div(least_slice_points, row_points));
    const std::int64_t nests = static_cast<std::int64_t>(parts.size()) * fusion.cycle;
    together = std::max(together, ceil_div(rows * nests, most_slices));
    const std::int64_t slices = turn_bytes / (together * row);
    if (slices < 2) return fusion;
    fusion.rows = together;
    fusion.pieces = ceil_div(rows, together);
    // Each repetition is a slice behind the one before, for each nest that reads ahead.
    const std::int64_t behind = std::max<std::int64_t>(ceil_div(ahead, together), 1);
    const std::int64_t most = std::min(most_repetitions_fused, most_slices / (fusion.pieces * std::ssize(parts)));
    fusion.repetitions = std::clamp<std::int64_t>((slices - 2) / behind, 1, std::max<std::int64_t>(most, 1));
    fusion.repetitions = std::max(fusion.repetitions / fusion.cycle, std::int64_t{1}) * fusion.cycle;
    return fusion;
}

std::vector<ChainPart> repeated_parts(std::span<const ChainPart> parts, std::int64_t repetitions) {
    std::vector<ChainPart> all;
    for (std::int64_t k = 0; k < repetitions; ++k)
        for (const ChainPart& part : parts) all.push_back(part);
    return all;
}

Schedule fused_chain(std::span<const ChainPart> parts, int rank, int ranks, std::int32_t tags,
                     const ChainFusion& fusion, std::int64_t repetitions) {
    Schedule whole = chain(repeated_parts(parts, repetitions), rank, ranks, {tags, parts.size(), fusion.pieces});
    return fusion.rows > 0 ? fused(std::move(whole), fusion.rows) : whole;
}

}  // namespace tilewave
