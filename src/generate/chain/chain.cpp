#include "generate/chain/chain.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/concat.hpp"
#include "generate/nest/nest.hpp"
#include "schedule/compose.hpp"

namespace tilewave {

namespace {

// Maps element z of array `a` to indices of its memory. With `buffers`, dimension 0 of the memory counts time buffers,
// as some nest of the chain steps in time there; nests that do not use the first buffer.
View view_of(const SweepProblem& problem, int a, std::int32_t memory, bool buffers) {
    const NestArray& array = problem.arrays[a];
    const IndexMatrix back = inverse(problem.loops);
    const Index shift = problem.shift(a);
    const int first = buffers ? 1 : 0;
    View view{memory, {}, Index::filled(first + array.axes.n, 0), 0};
    if (buffers) {
        view.rows.push_back(Index::filled(problem.dims(), 0));
        view.buffers = std::max(array.time_buffers, 1);
        if (array.time_buffers > 0) {  // the last time is in the first buffer
            view.rows[0][0] = -1;
            view.shift[0] = problem.space.hi[0] - 1;
        }
    }
    for (int d = 0; d < array.axes.n; ++d) {
        const int k = static_cast<int>(array.axes[d]);
        const std::int64_t scale = array.scale.n ? array.scale[d] : 1;
        view.rows.push_back(back.row[k]);
        for (auto& entry : view.rows.back().v) entry *= scale;
        view.shift[first + d] = scale * shift[k] + (array.scale.n ? array.residue[d] : 0);
    }
    return view;
}

// All buffers of an array, as they lie in memory.
Array all_buffers(Array array) {
    for (Box* box : {&array.storage, &array.owned}) {
        box->lo[0] = 0;
        box->hi[0] = array.time_buffers;
    }
    array.view.rows[0][0] = 1;
    array.view.shift[0] = 0;
    array.time_buffers = 0;
    return array;
}

// The task of each lane that brings the buffers of `arrays` to where the nest has its time steps: of those that the
// rank owns, as halos follow.
Schedule rotation(const Schedule& nest, const std::vector<int>& turned, const std::vector<std::int32_t>& arrays,
                  int lanes, const std::vector<Array>& all) {
    Schedule s;
    s.arrays = all;  // numbers of arrays are those of the chain
    s.rank = nest.rank;
    s.ranks = nest.ranks;
    s.lanes.resize(lanes);
    for (int l = 0; l < lanes; ++l) {
        TaskWork task;
        for (std::size_t i = 0; i < turned.size(); ++i) {
            const Array& a = all[arrays[i]];
            Box part = intersect(a.owned, a.storage);
            int along = 1;
            for (int k = 2; k < part.dims(); ++k)
                if (part.extent(k) > part.extent(along)) along = k;
            const std::int64_t lo = part.lo[along], n = std::max<std::int64_t>(part.extent(along), 0);
            part.lo[along] = lo + block_start(n, lanes, l);
            part.hi[along] = lo + block_start(n, lanes, l + 1);
            Box read = part, written = part;
            if (part.extent(0) == 2) {  // no point reads the time before the current one
                read.hi[0] = 1;
                written.lo[0] = 1;
            }
            task.reads.push_back({arrays[i], read});
            task.writes.push_back({arrays[i], written});
            task.amount += static_cast<double>(std::max<std::int64_t>(written.points(), 0));
        }
        s.works.push_back({s.rank * lanes + l, std::move(task)});
        Tile tile;
        tile.work = l;
        s.tiles.push_back(tile);
        s.lanes[l].push_back({Op::compute, l});
    }
    return s;
}

bool straight(const IndexMatrix& loops) {
    for (int k = 0; k < loops.n; ++k)
        if (!loops.keeps(k)) return false;
    return true;
}

std::string in_sweep(std::size_t i, const std::string& what) {
    return concat("nest ", i + 1, " ", what);
}

}  // namespace

std::string chain_refusal(std::span<const ChainPart> parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const SweepProblem& p = parts[i].problem;
        if (uses_window(p, parts[i].plan)) return in_sweep(i, "keeps a rolling window of an array");
        for (const NestArray& array : p.arrays)
            if (array.time_buffers > 1 && !straight(p.loops)) return in_sweep(i, "steps in time, its loops skewed");
    }
    return layout_refusal(parts);
}

std::string layout_refusal(std::span<const ChainPart> parts) {
    struct Seen {
        std::size_t sweep;
        int array;
        Layout layout;
    };
    std::map<std::int32_t, Seen> seen;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const SweepProblem& p = parts[i].problem;
        for (int a = 0; a < static_cast<int>(p.arrays.size()); ++a) {
            const std::int32_t memory = parts[i].memories[a];
            const Layout layout = field_layout(p, parts[i].plan, a);
            const auto [known, fresh] = seen.try_emplace(memory, Seen{i, a, layout});
            if (fresh) continue;
            const Layout& other = known->second.layout;
            if (layout.same_storage(other)) continue;
            if (layout.grid == other.grid && !layout.same_blocks(other))
                return in_sweep(i, concat("has array ", a, " in blocks that follow those of a coarser grid, ",
                                          in_sweep(known->second.sweep, "in other blocks")));
            const auto has = [](const Layout& of) { return of.beside_nothing ? "has" : "lacks"; };
            if (layout.beside_nothing != other.beside_nothing)
                return in_sweep(i, concat(has(layout), " halos of array ", a, " on ranks without elements of it, ",
                                          in_sweep(known->second.sweep, has(other)), " them"));
            return in_sweep(i, concat("has array ", a, " on grid ", layout.grid, " with halos ", layout.halo_lo,
                                      " and ", layout.halo_hi, ", nest ", known->second.sweep + 1, " on grid ",
                                      other.grid, " with halos ", other.halo_lo, " and ", other.halo_hi,
                                      layout.wraps == other.wraps ? "" : ", which wrap around along other dimensions"));
        }
    }
    return "";
}

Schedule chain(std::span<const ChainPart> parts, int rank, int ranks, std::int32_t tags, std::size_t nests) {
    if (parts.empty()) throw ConfigError("chain: no sweeps were given; at least one is needed");
    for (const ChainPart& part : parts)
        if (part.memories.size() != part.problem.arrays.size())
            throw ConfigError(
                concat("chain: ", part.memories.size(), " memories for ", part.problem.arrays.size(), " arrays"));
    if (const std::string why = chain_refusal(parts); !why.empty()) throw ConfigError("chain: " + why);
    Schedule whole;
    whole.rank = rank;
    whole.ranks = ranks;
    const bool again = nests > 0 && parts.size() > nests;
    std::set<std::int32_t> in_time;  // memories
    std::int64_t lanes = 0;
    for (const ChainPart& part : parts) {
        lanes = std::max<std::int64_t>(lanes, part.plan.lanes());
        for (std::size_t a = 0; a < part.memories.size(); ++a)
            if (part.problem.arrays[a].time_buffers > 0) in_time.insert(part.memories[a]);
    }
    const std::int64_t numbers = in_time.empty() ? 1 : lanes * ranks + 1;  // of a nest
    std::int32_t operations = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Schedule part = nest_schedule(parts[i].problem, parts[i].plan, rank, ranks);
        for (Work& work : part.works)
            if (NestWork* const nest = work.nest()) {
                nest->step = static_cast<std::int64_t>(nests ? i / nests : 0);
                nest->last = nests == 0 || i + nests >= parts.size();
            }
        if (largest_tag(part) >= tags)
            throw ConfigError("chain: " +
                              in_sweep(i, concat("makes ", largest_tag(part),
                                                 " and more messages between two ranks, in this chain a nest "
                                                 "has ",
                                                 tags, " tags; take larger tiles, or fewer nests")));
        Mapping mapping;
        const auto add_array = [&](Array array) {
            whole.arrays.push_back(std::move(array));
            return static_cast<std::int32_t>(whole.arrays.size()) - 1;
        };
        for (std::size_t a = 0; a < part.arrays.size(); ++a) {
            Array array = part.arrays[a];
            const std::int32_t memory = parts[i].memories[a];
            if (!array.whole)
                array.view = view_of(parts[i].problem, static_cast<int>(a), memory, in_time.count(memory) > 0);
            mapping.arrays.push_back(add_array(std::move(array)));
        }
        const std::int64_t first = static_cast<std::int64_t>(i) * numbers;
        if (const std::vector<int> turned = rotated_arrays(parts[i].problem); !turned.empty()) {
            if (again) throw ConfigError("chain: arrays that keep several time steps, in several repetitions");
            std::vector<std::int32_t> buffers;
            for (const int a : turned) buffers.push_back(add_array(all_buffers(whole.arrays[mapping.arrays[a]])));
            Mapping before;
            before.first_number = first;
            before.first_operation = operations++;
            append(whole, rotation(part, turned, buffers, parts[i].plan.lanes(), whole.arrays), before);
        }
        mapping.first_number = first + numbers - 1;
        mapping.first_kernel = static_cast<std::int32_t>(nests ? i % nests : i);
        mapping.first_tag = mapping.first_kernel * tags;
        append(whole, part, mapping);
    }
    return whole;
}

std::vector<int> rotated_arrays(const SweepProblem& problem) {
    std::vector<int> all;
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        if (problem.arrays[a].time_buffers > 1) all.push_back(a);
    return all;
}

}  // namespace tilewave
