#include "problem/temporal_blocking.hpp"
#include "problem/stencil.hpp"
#include "problem/tuning.hpp"

#include <algorithm>
#include <cmath>

namespace tilewave {

using namespace tuning;

namespace {

// Bytes that a point of the arrays has on a rank, with all time buffers.
double point_bytes(const SweepProblem& problem) {
    double bytes = 0;
    for (const NestArray& a : problem.arrays)
        if (!a.replicated) bytes += static_cast<double>(a.item_bytes * std::max(a.time_buffers, 1));
    return bytes;
}

// By how many tiles a time step follows the one before it: as far as dependences go back (SweepGeometry).
std::int64_t lag_of_a_step(const SweepProblem& problem, const Plan& plan) {
    std::int64_t most = 0;
    const int twice = deep_halo(problem, plan).along;
    for (const Index& d : problem.dependences()) {
        std::int64_t back = 0;
        for (int k = 1; k < d.n; ++k)
            if (d[0] > 0 && d[k] < 0 && k != twice && (k == plan.mapping_dim || plan.grid[k] > 1))
                back += k == plan.mapping_dim ? 1 : 2;
        most = std::max(most, back);
    }
    return most + 1;
}

}  // namespace

Index DeepHalo::most(int dims) const {
    Index all = Index::filled(dims, 0);
    if (along >= 0) all[along] = layers * (steps - 1);
    return all;
}

DeepHalo deep_halo(const SweepProblem& problem, const Plan& plan) {
    if (plan.generator != GeneratorKind::sweep || plan.temporal_block < 2 || problem.sequential || problem.once ||
        problem.dims() < 2 || !problem.unit_dims()[0])
        return {};
    int cut = -1;
    for (int k = 0; k < plan.grid.n; ++k) {
        if (plan.grid[k] == 1) continue;
        if (k == 0 || cut >= 0) return {};
        cut = k;
    }
    if (cut < 0 || plan.tile[cut] < largest_block(problem, plan.grid, cut)) return {};
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        if (problem.written(a) && (problem.arrays[a].time_buffers == 0 || problem.lacks(a, cut))) return {};
    DeepHalo m{cut, 0, std::min<std::int64_t>(plan.temporal_block, problem.space.extent(0)), problem.space.hi[0]};
    for (const Access& p : problem.accesses) {
        const Index from = problem.offset(p);
        if (p.writes || from[cut] <= 0 || !problem.reads_new(p)) continue;
        if (from[0] > -1) return {};
        m.layers = std::max(m.layers, ceil_div(from[cut], -from[0]));
    }
    if (problem.block_extents(problem.blocks(plan.grid), cut).least < m.layers * m.steps) return {};
    return m.layers > 0 && m.steps > 1 ? m : DeepHalo{};
}

bool may_aggregate(const SweepProblem& problem, const Plan& plan) {
    if (plan.lanes() > 1 || uses_window(problem, plan)) return false;
    if (deep_halo(problem, plan).along >= 0) return true;
    for (const Access& p : problem.accesses) {
        const Index from = problem.offset(p);
        for (int k = 0; k < from.n; ++k)
            if (plan.grid[k] > 1 && from[k] > 0 && !p.writes && problem.reads_new(p)) return false;
    }
    return true;
}

namespace {

// Of an array, or of the field that it is part of.
Layout layout_of(const SweepProblem& problem, const Plan& plan, int a, bool field) {
    const auto made = field ? &SweepProblem::field_layout : &SweepProblem::layout;
    if (plan.generator == GeneratorKind::stencil) {
        const StencilHalo deep = stencil_halo(problem, plan);
        return (problem.*made)(a, plan.grid, deep.most_hi(), deep.most_lo());
    }
    return (problem.*made)(a, plan.grid, deep_halo(problem, plan).most(problem.dims()), {});
}

}  // namespace

Layout layout(const SweepProblem& problem, const Plan& plan, int a) {
    return layout_of(problem, plan, a, false);
}

Layout field_layout(const SweepProblem& problem, const Plan& plan, int a) {
    return layout_of(problem, plan, a, true);
}

Box held(const SweepProblem& problem, const Plan& plan, int a, int rank) {
    const Layout l = layout(problem, plan, a);
    return problem.arrays[a].replicated ? l.storage(0) : l.storage(rank);
}

bool streams(const SweepProblem& problem, double lanes, const Machine& machine) {
    if (problem.dims() < 2 || problem.sequential || problem.window.along >= 0 || problem.space.extent(0) < 2 ||
        !problem.unit_dims()[0] || problem.has_parts_of_fields() ||
        without(problem.paths_off, FastPath::temporal_blocks))
        return false;
    double points = 1;
    for (int k = 1; k < problem.dims(); ++k)
        points *= static_cast<double>(std::max<std::int64_t>(problem.space.extent(k), 0));
    return points * point_bytes(problem) / lanes > cached_part * static_cast<double>(machine.shared_cache_bytes);
}

Index skew_for_time(const SweepProblem& problem, int ranks, int lanes, const Index& row, const Machine& machine) {
    if (!streams(problem, static_cast<double>(ranks) * lanes, machine) || row.n != problem.dims()) return {};
    Index pair;
    for (int k = 0; k < row.n; ++k)
        if (row[k] != 0) pair.v[pair.n++] = k;
    if (pair.n != 2 || pair[0] == 0) return {};
    const int k = static_cast<int>(pair[0]), l = static_cast<int>(pair[1]);
    if (problem.unit_dims()[k] || !problem.loops.keeps(k) || !problem.loops.keeps(l)) return {};
    if ((ranks > 1 && !problem.may_cut(k)) || problem.space.extent(k) < least_width_together * ranks) return {};
    try {
        problem.skewed(k, l);
    } catch (const ConfigError&) {
        return {};
    }
    return pair;
}

bool block_in_time(const SweepProblem& problem, const Machine& machine, int lanes, Plan& plan) {
    const int i = plan.mapping_dim;
    double all = lanes, layer = 1;
    for (auto g : plan.grid) all *= static_cast<double>(g);
    const std::vector<bool> unit = problem.unit_dims();
    if (!streams(problem, all, machine) || unit[i] || (plan.row.n ? plan.row[i] != 0 : i == problem.dims() - 1))
        return false;
    for (int k = 0; k < problem.dims(); ++k)
        if (k != i && !unit[k])
            layer *= static_cast<double>(std::max<std::int64_t>(largest_block(problem, plan.grid, k), 1));
    Plan taken = plan;
    for (int k = 0; k < problem.dims(); ++k) {
        taken.factors[k] = k == 0 ? lanes : 1;
        if (!unit[k]) taken.tile[k] = std::max<std::int64_t>(largest_block(problem, plan.grid, k), 1);
    }
    taken.temporal_block = 2;
    taken.grouping = GroupingKind::hyperplane;
    const bool together =
        lanes == 1 && deep_halo(problem, taken).along >= 0;  // messages of many tiles, and nobody waits for them long
    const bool ranks = all > lanes && !together;             // each tile has messages then
    const double room =
        (ranks ? cached_part_over_ranks : cached_part) * static_cast<double>(machine.shared_cache_bytes) * lanes;
    const double step_bytes =
        static_cast<double>(lag_of_a_step(problem, taken)) * layer * point_bytes(problem);  // of a layer of each step
    double layers = room / step_bytes;                                                      // of all steps
    double most_layers = layers * (ranks ? 1 : cached_part_of_layers / cached_part);
    double least = std::ceil((ranks ? std::max(least_points_over_ranks, messages * machine.latency_s / machine.point_s)
                                    : least_points_together) /
                             layer);
    const double core_layers = core_cached_part * static_cast<double>(machine.cache_bytes) / step_bytes,
                 core_least = std::ceil(least_points_in_core_cache / layer);
    if ((all == 1 || together) && core_layers >= core_least * static_cast<double>(least_steps_in_core_cache)) {
        layers = most_layers = core_layers;
        least = core_least;
    }
    auto steps = static_cast<std::int64_t>(
        std::min(most_layers / least, static_cast<double>(std::max<std::int64_t>(most_steps_of_a_block, lanes))));
    steps = std::min(steps, problem.space.extent(0)) / lanes * lanes;  // each lane has every `lanes`th
    if (steps < 2) return false;
    plan = std::move(taken);
    plan.temporal_block = static_cast<int>(steps);
    while (together && plan.temporal_block > 2 && deep_halo(problem, plan).along < 0)
        --plan.temporal_block;  // as many as the blocks are wide enough for
    plan.tile[i] = std::clamp<std::int64_t>(static_cast<std::int64_t>(layers / plan.temporal_block), 1, plan.tile[i]);
    if (!together || without(problem.paths_off, FastPath::aggregate)) return true;
    // The fewest messages, of n tiles a step, and the shortest time until the last rank has its first: B that minimises
    // n/B l + (ranks - 1) B t.
    const double tile_s = layer * static_cast<double>(plan.tile[i]) * machine.point_s;
    const double step_tiles =
        std::ceil(static_cast<double>(largest_block(problem, plan.grid, i)) / static_cast<double>(plan.tile[i]));
    const double best =
        std::sqrt(static_cast<double>(problem.space.extent(0)) * step_tiles * machine.latency_s / ((all - 1) * tile_s));
    plan.aggregate = static_cast<int>(std::clamp(best, 1.0, std::max(1.0, step_tiles / aggregates_of_a_step)));
    return true;
}

}  // namespace tilewave
