// Rates of nests' bodies: measured on all ranks at once, remembered by a context.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/recent.hpp"
#include "measure/tuning.hpp"
#include "plan/nests/planner.hpp"
#include "predict/rate.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

/// What a context has measured, by a text that says what the rates serve.
using KnownRates = Recent<std::string, std::vector<MeasuredRate>, tuning::most_known_rates>;

/// Forgets the rates of a body, entry by entry, that some rank has otherwise or not at all. Collective.
/// @returns whether no rank has `failed`, and all gave as many entries
bool agree_on_rates(Context& context, bool failed, std::vector<std::vector<MeasuredRate>>& all);

/// What is measured of one body with one plan.
struct RateExperiment {
    const Plan* plan;
    double points;    ///< of this rank, in a run
    bool takes_part;  ///< this rank has something to measure
    /// Times of tiles as PreparedSweep::sample() gives them, in about so many seconds; empty where the body raised.
    std::function<std::vector<RateSample>(double budget_s)> sample;
};

/// The rates of all experiments, each of the rank that takes longest, as the others wait for it; where the body raised
/// on some rank, the machine's number for any body. Nothing where a rank was interrupted: the next agreement says so.
/// Several are measured twice in turn, and the lesser times count: other load seldom disturbs both visits of one.
/// Collective.
std::optional<std::vector<MeasuredRate>> measure_rates(Context& context, const std::vector<RateExperiment>& all);

}  // namespace tilewave
