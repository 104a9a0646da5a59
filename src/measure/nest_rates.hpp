// Rates of nests' bodies: measured on all ranks at once, remembered by a context.
#pragma once
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/recent.hpp"
#include "measure/tuning.hpp"
#include "plan/nests/planner.hpp"
#include "predict/rate.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

/// What has been spent on planning one call, its compilation aside.
struct PlannedCall {
    std::uint64_t number = 0;  ///< equal for equal calls
    double spent_s = 0;
    double run_s = 0;        ///< that a run is predicted to take
    double bringing_s = -1;  ///< that bringing its arrays into another order takes; below 0: not measured
    bool settled = false;    ///< nothing better is hoped for
};

/// What is known of a body whose arrays and loops lie in one way, on arrays of any shape.
struct BodyRates {
    std::vector<MeasuredRate> rates;
    std::vector<PlannedCall> calls = {};  ///< those that were planned last, the last one last
    std::time_t date = 0;                 ///< on which the first of the rates was stored; 0: none was

    PlannedCall call(std::uint64_t number) const;
    void remember(const PlannedCall& call);
};

/// What a context has measured, by a text that says what the rates serve.
using KnownRates = Recent<std::string, BodyRates, tuning::most_known_rates>;

/// Seconds that threads of this process were ready to run and another program had the CPU; 0 where Linux does not say.
double queued_s();

/// By which planning knows what it spends, and whether others had the CPUs. State of a context.
struct PlanningClock {
    std::function<double()> now = now_s, queued = queued_s;
};

/// Forgets the rates of a body, entry by entry, that some rank has otherwise or not at all; `least` becomes the least
/// of all ranks, number by number. Collective.
/// @returns whether no rank has `failed`, and all gave as many entries
bool agree_on_rates(Context& context, bool failed, std::vector<std::vector<MeasuredRate>>& all,
                    std::vector<std::int64_t>& least);

/// What is measured of one body with one plan.
struct RateExperiment {
    const Plan* plan;
    bool takes_part;  ///< this rank has something to measure
    /// Times of tiles as PreparedSweep::sample() gives them, in about so many seconds; empty where the body raised.
    std::function<std::vector<RateSample>(double budget_s)> sample;
    double budget_s = tuning::rate_budget_s;
};

/// What measure_rates() has found, the same on all ranks.
struct Measured {
    std::vector<MeasuredRate> rates;
    double spent_s = 0;
};

/// The rates of all experiments, each of the rank that takes longest, as the others wait for it; where the body raised
/// on some rank, the machine's number for any body. Nothing where a rank was interrupted: the next agreement says so.
/// With two `visits` they are measured twice in turn, in half of their budgets, and the lesser times count: other load
/// seldom disturbs both visits of one. `spent`: what planning has cost this rank when it is called; most of all ranks
/// counts. Collective.
std::optional<Measured> measure_rates(Context& context, const std::vector<RateExperiment>& all, int visits,
                                      const std::function<double()>& spent);

/// Seconds in the unit in which ranks exchange them, so that they are the same everywhere; and back.
std::int64_t in_units(double seconds);
double in_seconds(std::int64_t units);

}  // namespace tilewave
