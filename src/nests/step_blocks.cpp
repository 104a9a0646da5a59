// Runs of more time steps than their schedule has: it runs block after block, then a shorter or longer one what is
// left.
#include "nests/step_blocks.hpp"

#include <algorithm>

#include "nests/tuning.hpp"

namespace tilewave {

using namespace tuning;

RestOfSteps::RestOfSteps(const SweepProblem& problem, const Plan& plan, std::int64_t extent, int rank, int ranks)
    : problem_(problem.with_steps(extent)), plan_(plan) {
    plan_.tile[0] = problem.sequential && !problem.unit_dims()[0] ? extent : std::min(plan.tile[0], extent);
    schedule_ = nest_schedule(problem_, plan_, rank, ranks);
    waves_ = nest_waves(problem_, plan_);
}

StepBlocks StepBlocks::of(const SweepProblem& problem, const Plan& plan, std::int64_t steps) {
    const std::int64_t block = problem.space.extent(0);
    // A block of fewer steps than go together runs as it is.
    const std::int64_t fewest = std::min(block, std::max<std::int64_t>(plan.temporal_block, 1));
    if (steps < fewest || block == 0)
        throw ConfigError("run: " + std::to_string(steps) + " steps were asked for; allowed: at least the " +
                          std::to_string(fewest) + " that go together");
    StepBlocks b{steps / block, steps % block};
    // With fewer steps than go together ranks would need other halos.
    if (b.whole > 0 && b.rest > 0 && b.rest < plan.temporal_block) {
        --b.whole;
        b.rest += block;
    }
    return b;
}

std::int64_t repetitions_together(std::int64_t block_steps) {
    return std::clamp<std::int64_t>(most_steps_together / block_steps, 1, most_blocks_together);
}

}  // namespace tilewave
