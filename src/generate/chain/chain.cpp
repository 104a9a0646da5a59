#include "generate/chain/chain.hpp"

#include <map>
#include <string>

#include "generate/sweep/sweep.hpp"
#include "schedule/compose.hpp"

namespace tilewave {

namespace {

// Where element z of array `a` lies among the elements of the array's own dimensions.
View view_of(const SweepProblem& problem, int a, std::int32_t memory) {
    const NestArray& array = problem.arrays[static_cast<std::size_t>(a)];
    const IndexMatrix back = inverse(problem.loops);
    const Index shift = problem.shift(a);
    View view{memory, {}, Index::filled(array.axes.n, 0), 0};
    for (int d = 0; d < array.axes.n; ++d) {
        const int k = static_cast<int>(array.axes[d]);
        const std::int64_t scale = array.scale.n ? array.scale[d] : 1;
        view.rows.push_back(back.row[k]);
        for (auto& entry : view.rows.back().v) entry *= scale;
        view.shift[d] = scale * shift[k] + (array.scale.n ? array.residue[d] : 0);
    }
    return view;
}

std::string in_sweep(std::size_t i, const std::string& what) {
    return "nest " + std::to_string(i + 1) + " " + what;
}

}  // namespace

std::string chain_refusal(std::span<const ChainPart> parts) {
    struct Seen {
        std::size_t sweep;
        int array;
        Layout layout;
    };
    std::map<std::int32_t, Seen> seen;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const SweepProblem& p = parts[i].problem;
        if (p.wraps()) return in_sweep(i, "has periodic loops");
        if (uses_window(p, parts[i].plan)) return in_sweep(i, "keeps a rolling window of an array");
        for (int a = 0; a < static_cast<int>(p.arrays.size()); ++a) {
            const NestArray& array = p.arrays[static_cast<std::size_t>(a)];
            if (array.time_buffers > 0) return in_sweep(i, "steps in time");
            const std::int32_t memory = parts[i].memories[static_cast<std::size_t>(a)];
            const Layout layout = field_layout(p, parts[i].plan, a);
            const auto [known, fresh] = seen.try_emplace(memory, Seen{i, a, layout});
            if (fresh) continue;
            const Layout& other = known->second.layout;
            if (layout.same_blocks(other) && layout.halo_lo == other.halo_lo && layout.halo_hi == other.halo_hi)
                continue;
            if (layout.grid == other.grid && !layout.same_blocks(other))
                return in_sweep(i, "has array " + std::to_string(a) +
                                       " in blocks that follow those of a coarser grid, " +
                                       in_sweep(known->second.sweep, "in other blocks"));
            return in_sweep(i, "has array " + std::to_string(a) + " on grid " + to_string(layout.grid) +
                                   " with halos " + to_string(layout.halo_lo) + " and " + to_string(layout.halo_hi) +
                                   ", nest " + std::to_string(known->second.sweep + 1) + " on grid " +
                                   to_string(other.grid) + " with halos " + to_string(other.halo_lo) + " and " +
                                   to_string(other.halo_hi));
        }
    }
    return "";
}

Schedule chain(std::span<const ChainPart> parts, int rank, int ranks, std::int32_t tags) {
    if (parts.empty()) throw ConfigError("chain: no sweeps were given; at least one is needed");
    for (const ChainPart& part : parts)
        if (part.memories.size() != part.problem.arrays.size())
            throw ConfigError("chain: " + std::to_string(part.memories.size()) + " memories for " +
                              std::to_string(part.problem.arrays.size()) + " arrays");
    if (const std::string why = chain_refusal(parts); !why.empty()) throw ConfigError("chain: " + why);
    Schedule whole;
    whole.rank = rank;
    whole.ranks = ranks;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Schedule part = sweep(parts[i].problem, parts[i].plan, rank, ranks);
        if (largest_tag(part) >= tags)
            throw ConfigError("chain: " +
                              in_sweep(i, "makes " + std::to_string(largest_tag(part)) +
                                              " and more messages between two ranks, in this chain a nest "
                                              "has " +
                                              std::to_string(tags) + " tags; take larger tiles, or fewer nests"));
        Mapping mapping;
        for (std::size_t a = 0; a < part.arrays.size(); ++a) {
            mapping.arrays.push_back(static_cast<std::int32_t>(whole.arrays.size()));
            whole.arrays.push_back(part.arrays[a]);
            Array& array = whole.arrays.back();
            if (!array.whole) array.view = view_of(parts[i].problem, static_cast<int>(a), parts[i].memories[a]);
        }
        mapping.first_number = static_cast<std::int64_t>(i);
        mapping.first_kernel = static_cast<std::int32_t>(i);
        mapping.first_tag = static_cast<std::int32_t>(i) * tags;
        append(whole, part, mapping);
    }
    return whole;
}

}  // namespace tilewave
