#include "generate/nest/nest.hpp"

#include "generate/stencil/stencil.hpp"
#include "generate/sweep/sweep.hpp"
#include "problem/stencil.hpp"

namespace tilewave {

Schedule nest_schedule(const SweepProblem& problem, const Plan& plan, int rank, int ranks) {
    return plan.generator == GeneratorKind::stencil ? stencil(problem, plan, rank, ranks)
                                                    : sweep(problem, plan, rank, ranks);
}

std::int64_t nest_waves(const SweepProblem& problem, const Plan& plan) {
    if (plan.generator == GeneratorKind::sweep) return sweep_waves(problem, plan);
    return stencil_of(problem).timed ? problem.space.extent(0) : 1;
}

}  // namespace tilewave
