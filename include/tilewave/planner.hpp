// Choosing a plan: what there is to choose from, pruned by closed forms, the best played by the predictor.
#pragma once
#include <string>
#include <vector>

#include "tilewave/plan.hpp"
#include "tilewave/predict.hpp"

namespace tilewave {

/// A plan with what it would take.
struct Candidate {
    Plan plan;
    double time_s = 0;              ///< by event simulation; where the ranks or steps are many, from fewer of them
    double estimate_s = 0;          ///< by the closed form that candidates are pruned with
    Parts parts;
    std::int64_t memory_bytes = 0;  ///< of the rank that needs most: its parts of the arrays, and staging
    std::string reason;             ///< why the best was preferred; empty for the best itself
};

/// What a planner found.
struct Choice {
    std::vector<Candidate> ranked;  ///< the one to take first
    std::int64_t considered = 0;    ///< plans that were estimated
    std::int64_t simulated = 0;     ///< of which so many were played
};

struct PlannerOptions {
    int simulate = 14;                   ///< candidates to play after pruning
    std::int64_t most_steps = 1500000;   ///< of schedules to play in all
};

/// What `plan` would take: schedules of all ranks are played against the machine's numbers. Where they are many, of
/// fewer ranks with blocks as large, and of fewer tiles; the time then goes on in a straight line along each.
/// @pre plan.validate(problem, product of plan.grid) passes (ConfigError)
Candidate evaluate(const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate);

/// The same by a closed form: tiles of the busiest lane, and the way of the first tile to the last lane
/// (docs/decisions/0010-planning.md).
double estimate_s(const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate);

/// Lanes along each dimension: the `lanes` of a rank with blocks of `block` points so that the way to the last lane
/// costs least, for `crossing` rank borders of each dimension already on it. The real optimum is m_k proportional to the
/// time of crossing one rank's share of dimension k; integers are tried around it (docs/decisions/0010-planning.md).
/// @pre lanes >= 1 (ConfigError)
Index best_factors(const SweepProblem& problem, const Index& grid, int mapping_dim, std::int64_t lanes);

/// Plans for `ranks` ranks, the one to take first; request is obeyed. Pure: equal arguments give equal results.
/// @pre as make_plan (ConfigError)
Choice choose_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine,
                   const KernelRate& rate, const PlannerOptions& options = {});

}  // namespace tilewave
