#include "nests/chain_layout.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "nests/tuning.hpp"

namespace tilewave {

using namespace tuning;

namespace {

using Choices = std::vector<PlanRequest>;  // by member

bool any(const PlanRequest& r) {
    return r != PlanRequest{};
}

// Whether the user has fixed a choice otherwise.
bool refused(const PlanRequest& fixed, const PlanRequest& wanted) {
    return wanted.apply(fixed.apply({})) != fixed.apply(wanted.apply({}));
}

// What a plan decides of arrays, along their dimensions.
struct ArrayLayout {
    StorageKind storage = StorageKind::plain;
    Index row = {}, grid = {};
    Weights weights = {};
    friend bool operator==(const ArrayLayout&, const ArrayLayout&) = default;
};

int loops_of_time(const SweepProblem& p) {
    return std::ranges::any_of(p.arrays, [](const NestArray& a) { return a.time_buffers > 0; });
}

// The sign of each loop; nothing where loops are skewed, or an array has its dimensions in another order.
std::optional<Index> signs_of(const SweepProblem& p) {
    for (const NestArray& a : p.arrays)
        if (!a.replicated && !std::ranges::is_sorted(a.axes)) return {};
    Index signs = Index::filled(p.dims(), 1);
    for (int k = 0; k < p.dims(); ++k) {
        if (!p.loops.keeps(k)) return {};
        signs[k] = p.loops.row[k][k];
    }
    return signs;
}

// Nothing where loops are not the arrays' dimensions.
std::optional<ArrayLayout> layout_of(const ChainMember& m) {
    const std::optional<Index> signs = signs_of(m.problem);
    if (!signs) return {};
    const int first = loops_of_time(m.problem), dims = signs->n - first;
    const bool skewed = m.plan.storage == StorageKind::skewed;
    ArrayLayout layout{m.plan.storage, Index::filled(skewed ? dims : 0, 0), Index::filled(dims, 1), m.plan.weights};
    for (int k = 0; k < dims; ++k) {
        layout.grid[k] = m.plan.grid[first + k];
        if (skewed && m.plan.row.n > 0) layout.row[k] = (*signs)[first + k] * m.plan.row[first + k];
    }
    return layout;
}

// Of all loops, those of time before the arrays' dimensions.
Index of_loops(const SweepProblem& p, const Index& of_arrays, std::int64_t time) {
    Index all = Index::filled(p.dims(), time);
    for (int k = 0; k < of_arrays.n; ++k) all[p.dims() - of_arrays.n + k] = of_arrays[k];
    return all;
}

// The choices with which a plan has a layout, none where it has it; nothing where it cannot.
std::optional<PlanRequest> choices_for(const ArrayLayout& layout, const ChainMember& m, int ranks) {
    PlanRequest r;
    if (layout_of(m) == layout) return r;
    const SweepProblem& p = m.problem;
    const std::optional<Index> signs = signs_of(p);
    const bool plain = layout.storage == StorageKind::plain;
    const bool straight = signs && layout.grid.n == p.dims() - loops_of_time(p);
    if (!straight && (!plain || layout.grid.n != p.dims())) return {};
    r.storage = layout.storage;
    if (ranks > 1) r.grid = of_loops(p, layout.grid, 1);
    if (ranks > 1 && layout.weights != m.plan.weights) r.weights = layout.weights;
    if (plain) return r;
    r.row = of_loops(p, layout.row, 0);
    int up = 0;
    for (int k = 0; k < p.dims(); ++k) up += ((*r.row)[k] *= (*signs)[k]) > 0;
    if (up != 1) return {};  // rows go up one loop, and perhaps down another
    return r;
}

class ChainLayouts {
public:
    ChainLayouts(std::vector<ChainMember> members, int ranks, PathsOff off, ChainMaker& maker)
        : members_(std::move(members)), ranks_(ranks), off_(off), maker_(maker) {
        std::map<std::int32_t, std::set<const ChainMember*>> users, distributing;  // by memory
        for (const ChainMember& m : members_)
            for (std::size_t a = 0; a < m.memories.size(); ++a)
                (m.problem.arrays[a].replicated ? users : distributing)[m.memories[a]].insert(&m);
        for (auto& [memory, all] : distributing) all.merge(users[memory]);
        for (const ChainMember& m : members_) {
            auto& shared = shared_.emplace_back();
            for (std::size_t a = 0; a < m.memories.size(); ++a)
                if (distributing[m.memories[a]].size() > 1) shared.push_back(a);
        }
    }

    std::string run() {
        std::string why = refused_in_time();
        if (!why.empty()) return why;
        double separate_s = 0;
        for (const ChainMember& m : members_) separate_s += m.nest->time_s;
        std::optional<double> best_s;
        for (const Choices& choices : candidates()) {
            try {
                const std::vector<std::shared_ptr<ChainNest>> nests = prepared(choices);
                double time_s = 0;
                for (const auto& nest : nests) time_s += nest->time_s;
                if (best_s && time_s >= *best_s) continue;
                if (std::string text = maker_.join(nests); !text.empty()) throw ConfigError(text);
                best_s = time_s;
                if (std::ranges::none_of(choices, any) || time_s <= most_of_separate * separate_s)
                    break;                        // no layout can be much better
            } catch (const ConfigError& error) {  // on all ranks
                why = error.what();
            }
        }
        return best_s ? "" : why;
    }

private:
    // Why nests that step in time can be no part of a schedule with others; empty where they can.
    std::string refused_in_time() const {
        std::map<std::int32_t, std::pair<std::size_t, int>> first;  // by memory: the nest, and its buffers
        const auto earlier = [](int buffers) { return std::max(buffers - 2, 0); };
        for (std::size_t n = 0; n < members_.size(); ++n) {
            const ChainMember& m = members_[n];
            if (!m.steps) continue;
            const std::string block = std::to_string(m.problem.space.extent(0)), steps = std::to_string(*m.steps);
            if (steps != block)
                return m.name + " runs " + steps + " time steps in blocks of " + block + "; in one schedule: at most " +
                       block;
            if (*m.steps == 0) return m.name + " runs no time step";
            for (std::size_t a = 0; a < m.memories.size(); ++a) {
                const int buffers = m.problem.arrays[a].time_buffers;
                if (buffers == 0 || (buffers == 1 && m.in_step)) continue;
                const auto [other, others] = first.try_emplace(m.memories[a], n, buffers).first->second;
                if (earlier(others) != earlier(buffers))
                    return "nests " + std::to_string(other + 1) + " and " + std::to_string(n + 1) + " keep " +
                           std::to_string(earlier(others)) + " and " + std::to_string(earlier(buffers)) +
                           " earlier time steps of " + m.arrays[a];
            }
        }
        return "";
    }

    // Choices with which shared arrays may have one layout, those to prefer first: none, then those of the nests that
    // take longest.
    std::vector<Choices> candidates() const {
        std::vector<Choices> all{Choices(members_.size())};
        if (without(off_, FastPath::chain_layouts)) return all;
        std::vector<std::size_t> heaviest;
        for (std::size_t n = 0; n < members_.size(); ++n)
            if (!shared_[n].empty() && layout_of(members_[n])) heaviest.push_back(n);
        std::ranges::stable_sort(heaviest, [&](std::size_t n, std::size_t m) {
            return members_[n].nest->time_s > members_[m].nest->time_s;
        });
        for (const std::size_t n : heaviest) {
            const ArrayLayout layout = *layout_of(members_[n]);
            // Rows of plain storage are long where ranks cut the other dimensions: where tiles are cut across rows.
            Index turned = layout.grid;
            for (int k = 0; k < turned.n; ++k) turned[k] = layout.grid[turned.n - 1 - k];
            for (const ArrayLayout& each : {ArrayLayout{StorageKind::plain, {}, layout.grid, layout.weights}, layout,
                                            ArrayLayout{StorageKind::plain, {}, turned, layout.weights}})
                if (all.size() <= most_chain_layouts) add(all, each);
        }
        // Many small nests may be quicker on one rank, whatever the heaviest one wants.
        if (!heaviest.empty())
            add(all, {StorageKind::plain, {}, Index::filled(layout_of(members_[heaviest[0]])->grid.n, 1)});
        return all;
    }

    void add(std::vector<Choices>& all, const ArrayLayout& layout) const {
        Choices choices(members_.size());
        for (std::size_t n = 0; n < members_.size(); ++n) {
            if (shared_[n].empty()) continue;
            const std::optional<PlanRequest> wanted = choices_for(layout, members_[n], ranks_);
            if (!wanted) return;
            choices[n] = *wanted;
        }
        if (std::ranges::find(all, choices) == all.end()) all.push_back(std::move(choices));
    }

    // By member: the halos with which arrays of one memory keep as much as any of them wants. A wider halo of one array
    // may widen that of another of its nest: so until nothing changes. What one nest reads and has whole, and another
    // writes, is distributed in both.
    std::vector<LeastHalos> common_halos(const std::vector<Index>& grids) const {
        std::vector<LeastHalos> halos;
        std::vector<SweepProblem> problems;
        for (std::size_t n = 0; n < members_.size(); ++n) {
            halos.emplace_back(members_[n].memories.size());
            problems.push_back(members_[n].problem);
            for (const std::size_t a : shared_[n])
                if (const NestArray& array = problems[n].arrays[a]; array.replicated)
                    halos[n][a].lo = halos[n][a].hi = Index::filled(array.shape.n, 0);
            widen(problems[n], halos[n]);
        }
        const auto each_shared = [&](const auto& visit) {
            for (std::size_t n = 0; n < members_.size(); ++n)
                for (const std::size_t a : shared_[n])
                    visit(problems[n].field_layout(static_cast<int>(a), grids[n]), members_[n].memories[a],
                          halos[n][a]);
        };
        for (bool changed = true; changed;) {
            std::map<std::int32_t, Layout> most;
            each_shared([&](const Layout& wanted, std::int32_t memory, const auto&) {
                Layout& all = most.try_emplace(memory, wanted).first->second;
                if (all.grid != wanted.grid)
                    throw ConfigError("the nests' arrays have no layout in common: process grids " +
                                      to_string(all.grid) + " and " + to_string(wanted.grid));
                for (int d = 0; d < all.dims(); ++d) {
                    all.halo_lo[d] = std::max(all.halo_lo[d], wanted.halo_lo[d]);
                    all.halo_hi[d] = std::max(all.halo_hi[d], wanted.halo_hi[d]);
                    if (all.wraps.n && wanted.wraps.n) all.wraps[d] = all.wraps[d] || wanted.wraps[d];
                }
                if (all.wraps.n == 0) all.wraps = wanted.wraps;
            });
            changed = false;
            each_shared([&](const Layout& has, std::int32_t memory, LeastHalo& halo) {
                const Layout& all = most.at(memory);
                const LeastHalo wanted{all.halo_lo, all.halo_hi, all.wraps};
                if (LeastHalo{has.halo_lo, has.halo_hi, has.wraps} == wanted) return;
                if (halo == wanted)
                    throw ConfigError(
                        "the nests' arrays have no layout in common: halos that wrap around, and parts "
                        "of a field");
                halo = wanted;
                changed = true;
            });
            for (std::size_t n = 0; n < members_.size(); ++n) widen(problems[n], halos[n]);
            if (changed) continue;
            each_shared([&](const Layout& has, std::int32_t memory, const auto&) {
                if (!has.same_storage(most.at(memory)))
                    throw ConfigError("the nests' arrays have no layout in common: they cut them at other elements");
            });
        }
        return halos;
    }

    // The nests with these choices, and halos in common.
    std::vector<std::shared_ptr<ChainNest>> prepared(const Choices& wanted) const {
        std::vector<Index> grids;
        for (std::size_t n = 0; n < members_.size(); ++n) {
            if (refused(members_[n].fixed, wanted[n]))
                throw ConfigError("the plan of " + members_[n].name + " is fixed");
            grids.push_back(wanted[n].grid.value_or(members_[n].plan.grid));
        }
        const std::vector<LeastHalos> halos = common_halos(grids);
        std::map<const ChainNest*, std::shared_ptr<ChainNest>> known;
        std::vector<std::shared_ptr<ChainNest>> all;
        for (std::size_t n = 0; n < members_.size(); ++n) {
            auto& nest = known[members_[n].nest.get()];
            if (!nest) nest = prepared(n, wanted[n], halos[n]);
            all.push_back(nest);
        }
        return all;
    }

    std::shared_ptr<ChainNest> prepared(std::size_t n, PlanRequest choices, const LeastHalos& halos) const {
        const ChainMember& m = members_[n];
        bool as_planned = false;
        if (!any(choices) && std::ranges::any_of(halos, [](const auto& h) { return h.lo.n > 0; })) {
            as_planned = true;  // wider halos must not change what is in common
            choices.storage = m.plan.storage;
            if (ranks_ > 1) choices.grid = m.plan.grid, choices.weights = m.plan.weights;
            if (m.plan.storage == StorageKind::skewed) choices.row = m.plan.row;
        }
        if (ranks_ > 1 && !shared_[n].empty() && m.plan.temporal_block > 1) {
            as_planned = false;
            choices.temporal_block = 1;  // others keep no halo for several steps
            if (refused(m.fixed, choices))
                throw ConfigError(m.name + " has a plan with a halo for " + std::to_string(m.plan.temporal_block) +
                                  " steps");
        }
        if (!any(choices)) return m.nest;
        PlanRequest request = m.fixed;
        if (choices.storage) request.storage = choices.storage;
        if (choices.grid) request.grid = choices.grid;
        if (choices.row) request.row = choices.row;
        if (choices.weights) request.weights = choices.weights;
        if (choices.temporal_block) request.temporal_block = choices.temporal_block;
        try {
            if (as_planned) try {
                    return maker_.prepare(n, request, halos, true);
                } catch (const ConfigError&) {  // on all ranks: perhaps other tiles allow such halos
                }
            return maker_.prepare(n, request, halos, false);
        } catch (const ConfigError& error) {
            throw ConfigError(m.name + " cannot have the layout: " + error.what());
        }
    }

    std::vector<ChainMember> members_;
    int ranks_;
    PathsOff off_;
    ChainMaker& maker_;
    std::vector<std::vector<std::size_t>>
        shared_;  // by member: arrays that others have, too, and some nest distributes
};

}  // namespace

void widen(SweepProblem& problem, const LeastHalos& halos) {
    for (std::size_t a = 0; a < halos.size(); ++a) {
        NestArray& array = problem.arrays[a];
        array.least_halo = halos[a];
        if (halos[a].lo.n > 0) array.replicated = false;
    }
}

std::string choose_chain_layout(std::vector<ChainMember> members, int ranks, PathsOff off, ChainMaker& maker) {
    return ChainLayouts(std::move(members), ranks, off, maker).run();
}

}  // namespace tilewave
