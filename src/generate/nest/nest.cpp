#include "generate/nest/nest.hpp"

#include "generate/gather/gather.hpp"
#include "generate/pivot/pivot.hpp"
#include "generate/stencil/stencil.hpp"
#include "generate/sweep/sweep.hpp"
#include "problem/stencil.hpp"
#include "schedule/repeat.hpp"

namespace tilewave {

Schedule nest_schedule(const SweepProblem& problem, const Plan& plan, int rank, int ranks) {
    switch (plan.generator) {
        case GeneratorKind::stencil: return stencil(problem, plan, rank, ranks);
        case GeneratorKind::pivot: return pivot_schedule(problem, plan, rank, ranks);
        case GeneratorKind::gather: return gathered_schedule(problem, plan, rank, ranks);
        default: return sweep(problem, plan, rank, ranks);
    }
}

// Tasks of a pivot compute rows as long as tiles.
Rates nest_rates(const SweepProblem& problem, const Plan& plan, const KernelRate& kernel) {
    if (plan.generator == GeneratorKind::gather) {  // amounts are elements of the loop that is divided
        const GatherProblem steps(problem, plan);
        double points = 1;
        for (int k = 0; k < problem.dims(); ++k)
            if (k != steps.time) points *= static_cast<double>(std::max<std::int64_t>(problem.space.extent(k), 0));
        const int last = problem.dims() - 1;
        const auto row = static_cast<double>(
            std::max<std::int64_t>(last == steps.cut ? plan.tile[last] : problem.space.extent(last), 1));
        const double element_s = points / static_cast<double>(std::max<std::int64_t>(steps.extent, 1)) *
                                 (kernel.point_s + kernel.row_s / row);
        return {{kernel}, {{kernel.tile_s, 0}, {kernel.tile_s, element_s}}};
    }
    if (plan.generator != GeneratorKind::pivot) return kernel;
    const OperationRate rate{kernel.tile_s, kernel.point_s + kernel.row_s / static_cast<double>(plan.tile[2])};
    return {{kernel}, {rate, rate}};
}

std::int64_t nest_waves(const SweepProblem& problem, const Plan& plan) {
    if (plan.generator == GeneratorKind::sweep) return sweep_waves(problem, plan);
    if (plan.generator == GeneratorKind::pivot) return ceil_div(problem.space.extent(0), plan.tile[0]);
    if (plan.generator == GeneratorKind::gather) return problem.space.extent(problem.gathers);
    return stencil_of(problem).timed ? problem.space.extent(0) : 1;
}

std::int64_t nest_repetitions(const SweepProblem& problem, const Plan& plan) {
    return plan.generator == GeneratorKind::gather ? gather_repetitions(GatherProblem(problem, plan)) : 1;
}

Schedule repeated_block(const SweepProblem& problem, const Schedule& block) {
    SweepProblem given = problem;
    given.complete();
    Index steps = Index::filled(given.dims(), 0);
    steps[0] = given.space.extent(0);
    // What is read at another time by the next repetition lies somewhere else, but perhaps where this one reads.
    Schedule any_time = block;
    for (Array& a : any_time.arrays)
        if (!(a.lacks & 1) && a.time_buffers == 0) a.view.buffers = 1;
    Schedule s = repeatable(any_time);
    s.arrays = block.arrays;
    s.advance = given.loops * steps;
    return s;
}

}  // namespace tilewave
