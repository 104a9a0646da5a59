// What nest.cpp plans, for bound_nest.cpp.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "nests/chain_layout.hpp"
#include "tilewave/nest.hpp"

namespace tilewave {

class PreparedSweep;
struct RunsOfPlan;

/// A plan that was chosen, the problem in the coordinates that it cuts, and the schedule.
struct PlannedNest {
    SweepProblem problem;
    Plan plan;
    double time_s = 0;  ///< predicted
    std::shared_ptr<PreparedSweep> sweep;
    std::shared_ptr<RunsOfPlan> runs = {};
};

/// A nest that was planned, for a block of its time steps where it has more.
struct ReadyNest {
    PlannedNest planned;
    std::optional<std::int64_t> block_steps;
};

/// Agrees on what `call` is given, and plans it where any rank has no plan for it; collective. `halos`: by array, or
/// none. `whole`: the plan, or null.
/// @throws as run()
ReadyNest plan_nest(Context& context, const NestLoops& loops, PlanRequest request, std::span<const ArrayReads> arrays,
                    const Kernel& kernel, const std::string& body, const std::string& call,
                    const LeastHalos& halos = {}, const Plan* whole = nullptr);

}  // namespace tilewave
