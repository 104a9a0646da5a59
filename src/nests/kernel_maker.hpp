// What Python bodies and C++ lambdas differ in when a nest is planned: how a kernel is made, and what it is measured
// on.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "plan/nests/planner.hpp"
#include "predict/rate.hpp"

namespace tilewave {

/// A nest with a plan, its schedule, and a kernel for it.
class SampledNest {
public:
    virtual ~SampledNest() = default;
    virtual const Plan& plan() const = 0;
    /// Begins to make machine code that is not there, if it can be made while others are. Local.
    virtual void start() {}
    /// Machine code, where it is made when it first runs: sample() then takes no longer. Local.
    virtual void compile() {}
    /// Times of the kernel on tiles, as PreparedSweep::sample() gives them. Local.
    virtual std::vector<RateSample> sample(double budget_s) = 0;
    /// Seconds that a run spends on bringing arrays into the plan's order and back. Local.
    virtual double bringing_s() { return 0; }
    /// Whether rows of the arrays' last dimension are computed as vectors.
    virtual bool vectors() const { return true; }
    /// Of the machine code; empty: its rates are not stored on disk.
    virtual std::string digest() const { return {}; }
};

/// Makes kernels of one call's body.
class KernelMaker {
public:
    virtual ~KernelMaker() = default;
    /// Whether the body is computed as vectors where the points of a row across two loops are neighbours in memory.
    virtual bool vectors_across(const SweepProblem& problem) = 0;
    /// A schedule and a kernel for a plan of `alternative`. `like`: for another plan of it, whose kernel may serve;
    /// else null. Local.
    virtual std::shared_ptr<SampledNest> prepare(const Alternative& alternative, const Plan& plan,
                                                 SampledNest* like) = 0;
};

}  // namespace tilewave
