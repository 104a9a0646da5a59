// From a checked call to its plan: the one loop that measures what the best alternative lacks.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/nest_rates.hpp"
#include "measure/rate_store.hpp"
#include "nests/kernel_maker.hpp"

namespace tilewave {

/// What a nest is called with, as far as plans follow from it.
struct PlanCall {
    SweepProblem problem;                ///< of a block of time steps, where the call has more
    PlanRequest request;                 ///< the choices that are fixed
    std::optional<Plan> plan = {};       ///< given: only what it takes is found out
    double blocks = 1;                   ///< times that the call runs `problem`
    std::string body = {};               ///< equal where a rate of the body serves, on arrays of any shape
    std::string memory = {};             ///< the same of how arrays lie, with their shapes
    bool in_place = false;               ///< some array that is written is brought into a plan's order and back
    std::optional<int> lanes_here = {};  ///< that measure, at most, where a launch elsewhere is planned for
    double ran_s = 0;                    ///< of equal calls before, all together
};

/// What planning a call has cost beyond compiling; the same on all ranks.
struct Spending {
    double budget_s = 0;  ///< what it may cost, in all processes together; infinite: whatever it takes
    double spent_s = 0;   ///< now
    double before_s = 0;  ///< in equal calls before
    int samples = 0;      ///< rates that were measured now
    bool settled = true;  ///< nothing better is hoped for of kinds of tiles that are not measured
    std::optional<Candidate> not_measured = {};  ///< else: what was hoped for, too late to be measured
};

/// The best plan of all alternatives.
struct ChosenPlan {
    /// What an alternative would take.
    struct Time {
        Alternative alternative;
        double time_s = 0, bringing_s = 0;
    };
    std::size_t at = 0;                     ///< of the alternatives
    std::shared_ptr<SampledNest> prepared;  ///< for its plan by rules
    Choice choice;
    MeasuredRate rate;        ///< Choice::rate, and where it is from
    std::vector<Time> times;  ///< of all alternatives
    Spending spending;
};

/// The runs of a plan so far, after which planning may spend more.
struct RunsOfPlan {
    double ran_s = 0;                     ///< all together
    std::optional<double> enough_s = {};  ///< after so many seconds the call is planned once more; empty: never
    RunsOfPlan(const Spending& spending, double ran_s);
    bool enough() const { return enough_s && ran_s >= *enough_s; }
};

/// Lists the alternatives of a call, measures the rate of its body on their tiles and on those of the best plan, until
/// the best is measured or the budget spent (PlanRequest::planning). What the context knows, from arrays of any shape,
/// or has on disk is not measured; the rest is predicted from the nearest rate. `call`: null on a rank that has failed,
/// and only takes part. Collective.
/// @returns nothing where another rank has failed, or one was interrupted: the caller's next agreement says so
/// @throws what this rank alone has thrown: the caller tells the others by its next agreement
std::optional<ChosenPlan> choose_together(Context& context, const PlanCall* call, KernelMaker& maker);

}  // namespace tilewave
