// Choosing a plan: what there is to choose from, pruned by closed forms, the best simulated by the predictor.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "tilewave/engine/predict.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// A plan with what it would take.
struct Candidate {
    Plan plan;
    double time_s = 0;      ///< by event simulation; where the ranks or steps are many, from fewer of them
    double estimate_s = 0;  ///< by the closed form that candidates are pruned with
    Parts parts;
    std::int64_t memory_bytes = 0;  ///< of the rank that needs most: its parts of the arrays, and staging
    std::string reason;             ///< why the best was preferred; empty for the best itself
    std::string sample = {};        ///< "all ranks, 4 and 12 of 745 tiles along loop 2": what was simulated
};

/// The rate of a body, and a plan with the tiles that it was measured on.
struct MeasuredRate {
    Plan plan;
    KernelRate rate;
    bool of_all_tiles = false;  ///< whatever caches their points find what they read in
    std::string note = {};      ///< where it is from
    Index extents = {};         ///< of the loops, in z coordinates; empty: those of the nest that it is used for
    /// By how much, as a part of it, the middle half of its times differ; or the part of the time that other programs
    /// had the CPUs, where that is more.
    double spread = 0;
};
/// How the note of a rate begins that is the machine's number for any body.
inline constexpr const char* not_measured = "not measured";

/// What a planner found.
struct Choice {
    std::vector<Candidate> ranked;  ///< the one to take first
    std::int64_t considered = 0;    ///< plans that were estimated
    std::int64_t simulated = 0;     ///< of which so many were simulated
    KernelRate rate;                ///< of the body on the tiles of the first
    MeasuredRate nearest = {};      ///< from which that follows
    bool measured = true;           ///< whether that rate was measured on such tiles; else it follows from others
};

/// What is thought of the rate on classes of tiles that nobody has measured.
enum class Unmeasured {
    hoped,       ///< as quick as may be hoped: so the search finds them, and then they are measured
    as_nearest,  ///< as the nearest that was measured: runs are too short for another measurement
    left_out,    ///< no plan has such tiles, but for the one by rules where there is no other: the budget is spent
};

struct PlannerOptions {
    int simulate = 14;                  ///< candidates to play after pruning
    std::int64_t most_steps = 1500000;  ///< of schedules to play in all
    Unmeasured unmeasured = Unmeasured::hoped;
};

/// How the loops and arrays of a nest may lie: the problem in the coordinates that tiles are cut in, the
/// request that fixes rows, storage and skew, and the plan by rules, on whose tiles the rate is measured first.
struct Alternative {
    SweepProblem problem;
    PlanRequest request;
    Plan plan;
    bool on_one_rank = false;       ///< rank 0 computes for all
    std::vector<Plan> others = {};  ///< plans of other kinds, on whose tiles the rate is measured first, too
};

/// Ranks whose schedules are simulated, where they are many.
enum class Simulated {
    some_ranks,  ///< a few along each dimension, as a search compares many plans
    all_ranks,   ///< all that there is memory for, with fewer tiles each: they meet on the links of a network
};

/// What `plan` would take: schedules of all ranks are simulated with the machine's numbers. Where they are many, of
/// fewer ranks with blocks as large, and of fewer tiles; the time then goes on in a straight line along each.
/// @pre plan.validate(problem, product of plan.grid) passes (ConfigError)
Candidate evaluate(const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate,
                   Simulated simulated = Simulated::some_ranks);

/// Steps of the schedules that evaluate() simulates of some ranks, about. Pure.
/// @pre as evaluate, but is not checked
double simulated_steps(const SweepProblem& problem, const Plan& plan, const Machine& machine);

/// Seconds that a block of time steps takes longer behind another one than alone: less than 0 where ranks that are done
/// go on while others still compute. From playing one repetition of a block and two, of fewer steps than `problem`
/// has; 0 where these are too many to play.
/// @pre as evaluate, and as repeated_block (ConfigError)
double border_s(const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate);

/// What evaluate() says, by a closed form: tiles of the busiest lane, and the time until the last lane begins
/// (docs/decisions/0010-planning.md).
double estimate_s(const SweepProblem& problem, const Plan& plan, const Machine& machine, const KernelRate& rate);

/// Lanes along each dimension: the `lanes` of a rank with blocks of `block` points so that reaching the last lane
/// costs least, for `crossing` rank borders of each dimension already on it. The real optimum is m_k proportional to
/// the time of crossing one rank's share of dimension k; integers are tried around it
/// (docs/decisions/0010-planning.md).
/// @pre lanes >= 1 (ConfigError)
Index best_factors(const SweepProblem& problem, const Index& grid, int mapping_dim, std::int64_t lanes);

/// How `problem` may lie over `ranks` ranks under `request`, those to prefer first: rows across two loops
/// whose points are neighbours in memory, where dependences ask for them and `rows_across` says that the body is then
/// made of vectors; the same with tiles cut along such rows; arrays as they are. Where ranks have nothing to share, or
/// arrays would be mostly padding, rank 0 computes for all. Where ranks are not equally fast, each of these, too, with
/// blocks in proportion. Pure.
/// @pre as make_plan, for at least one of them (ConfigError)
std::vector<Alternative> alternatives(const SweepProblem& problem, int ranks, const PlanRequest& request,
                                      const Machine& machine, bool rows_across);
/// The one of a plan that is given whole. Where nothing is computed a plan of gathered steps counts for nothing. Pure.
/// @pre plan.skew is empty or two loop indices, and leaves a loop to cut over several ranks (ConfigError)
/// @pre plan.validate(problem, ranks), of the problem as the plan has it (ConfigError)
Alternative planned_alternative(const SweepProblem& problem, int ranks, const PlanRequest& request, const Plan& plan,
                                const Machine& machine);

/// Plans for `ranks` ranks, the one to take first; request is obeyed. Pure: equal arguments give equal results. No plan
/// that was simulated is predicted to take less than 0.98 of the first one, but for those that must be 10 % better:
/// plans for fewer ranks, and with slices that cut rows; twice as many lanes must be 15 % better, and, of independent
/// points, the grid of another plan with more blocks along a later loop 20 %. The search ends when no neighbour is 3 %
/// better. Plans whose tiles no rate was measured on are taken to be as quick as they may be hoped to be: measure on
/// the first one's tiles and choose again until Choice::measured.
/// @pre at least one rate (ConfigError)
/// @pre as make_plan (ConfigError)
Choice choose_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine,
                   std::span<const MeasuredRate> rates, const PlannerOptions& options = {});
/// The same with one rate for all plans.
Choice choose_plan(const SweepProblem& problem, int ranks, const PlanRequest& request, const Machine& machine,
                   const KernelRate& rate, const PlannerOptions& options = {});

/// The rate for the tiles of `plan`, from those that were measured.
/// @pre at least one rate (ConfigError)
KernelRate rate_for(const SweepProblem& problem, const Plan& plan, const Machine& machine,
                    std::span<const MeasuredRate> rates);
/// The one of them that it follows from.
/// @pre at least one rate (ConfigError)
MeasuredRate nearest_rate(const SweepProblem& problem, const Plan& plan, const Machine& machine,
                          std::span<const MeasuredRate> rates);
/// Whether a rate was measured on tiles like those of `plan`.
bool rate_is_measured(const SweepProblem& problem, const Plan& plan, const Machine& machine,
                      std::span<const MeasuredRate> rates);

}  // namespace tilewave
