// Rates of nests' bodies: measured on all ranks at once, remembered by a context, kept on disk by a front.
#pragma once
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/nests/planner.hpp"
#include "predict/rate.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

/// What a context has measured, by a text that says what the rates serve; the entries that were used last.
class KnownRates {
public:
    /// Empty where nothing is known.
    std::vector<MeasuredRate> of(const std::string& key);
    void keep(const std::string& key, std::vector<MeasuredRate> rates);
    void clear() { all_.clear(); }
    const std::deque<std::pair<std::string, std::vector<MeasuredRate>>>& all() const { return all_; }

private:
    std::deque<std::pair<std::string, std::vector<MeasuredRate>>> all_;  // the last used first
};

/// Rates on disk, for later launches.
class RateStore {
public:
    virtual ~RateStore() = default;
    /// Of each key what rank 0 has kept, nothing where that is none; the same on all ranks. Collective.
    virtual std::vector<std::vector<MeasuredRate>> read(const std::vector<std::string>& keys) = 0;
    /// Keeps rates that `lanes` lanes have measured since read(); on rank 0.
    virtual void keep(const std::string& key, const std::vector<MeasuredRate>& rates, int lanes) = 0;
};

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
