// Runs of more time steps than their schedule has.
#pragma once
#include "generate/nest/nest.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// So often the schedule of a block runs, and so many steps are left after it.
struct StepBlocks {
    std::int64_t whole = 1, rest = 0;
    /// Of `steps` steps, where `problem` has the steps of a block. What is left may be longer than a block. Without a
    /// whole block all steps are left.
    /// @pre those of a block are more than 0; steps >= those of a block or those that go together, plan.temporal_block,
    /// whichever are fewer (ConfigError)
    static StepBlocks of(const SweepProblem& problem, const Plan& plan, std::int64_t steps);
};

/// The schedule of the steps that are left: the problem of a block with another number of steps, cut by the same plan.
class RestOfSteps {
public:
    RestOfSteps(const SweepProblem& block, const Plan& plan, std::int64_t extent, int rank, int ranks);
    const Schedule& schedule() const { return schedule_; }
    const SweepProblem& problem() const { return problem_; }
    const Plan& plan() const { return plan_; }
    std::int64_t extent() const { return problem_.space.extent(0); }
    std::int64_t waves() const { return waves_; }

private:
    SweepProblem problem_;
    Plan plan_;
    Schedule schedule_;
    std::int64_t waves_ = 0;
};

/// How many blocks of so many time steps run as repetitions without a meeting. @pre block_steps > 0
std::int64_t repetitions_together(std::int64_t block_steps);

}  // namespace tilewave
