#include "problem/nest_work.hpp"

#include <algorithm>

#include "core/concat.hpp"

namespace tilewave {

NestWork nest_work(const SweepProblem& problem, const Plan& plan) {
    NestWork nest;
    nest.space = image(problem.loops, problem.space);
    nest.bounds = problem.conditions();
    nest.order = plan.order(problem.dims());
    nest.rows_depend = !plan.independent_rows(problem);
    nest.layers_together = plan.layers_together(problem);
    if (uses_window(problem, plan)) nest.window = problem.window;
    nest.loops = inverse(problem.loops);
    nest.places = problem.accesses;
    for (Access& p : nest.places) p.offset = problem.offset(p);
    return nest;
}

Array array_kind(const SweepProblem& problem, int a) {
    const NestArray& n = problem.arrays[a];
    Array result;
    result.item_bytes = n.item_bytes;
    result.time_buffers = n.time_buffers;
    result.whole = n.replicated;
    for (int k = 0; k < problem.dims() && !n.replicated; ++k)
        if (problem.lacks(a, k) && !(n.time_buffers > 0 && k == 0)) result.lacks |= 1u << k;
    return result;
}

Array array_on(const SweepProblem& problem, const Plan& plan, const Layout& layout, int a, int rank) {
    const NestArray& n = problem.arrays[a];
    const Box space = image(problem.loops, problem.space);
    Array result = array_kind(problem, a);
    if (n.replicated) {
        result.storage = result.owned = space;
        return result;
    }
    result.storage = problem.box_of(a, layout.storage(rank));
    result.owned = problem.box_of(a, layout.owned(rank));
    if (n.time_buffers > 0)
        for (Box* b : {&result.storage, &result.owned}) b->hi[0] = std::max(b->hi[0], space.hi[0]);
    const MemoryOrder memory = memory_order(problem, plan, a, rank);
    Index x = Index::filled(problem.dims(), 0);
    for (int m = 0; m < n.axes.n; ++m) x[static_cast<int>(n.axes[m])] = memory.stride[m];
    result.stride = x * inverse(problem.loops);
    if (n.time_buffers > 0) result.stride[0] = memory.items;
    return result;
}

int checked_ranks(const SweepProblem& problem, const Plan& plan, int rank, int ranks) {
    if (ranks == 0) ranks = plan.ranks();
    problem.validate();
    plan.validate(problem, ranks);
    if (rank < 0 || rank >= ranks) throw ConfigError(concat("rank ", rank, " was given; there are ", ranks));
    return ranks;
}

}  // namespace tilewave
