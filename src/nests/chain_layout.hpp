// One layout of the arrays that the nests of a chain share: the process grid, the storage and the halos that serve all.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tilewave/plan.hpp"

namespace tilewave {

using LeastHalos = std::vector<LeastHalo>;  ///< by array of a nest

/// Gives the arrays of a problem these halos at least. An array with one is distributed.
void widen(SweepProblem& problem, const LeastHalos& halos);

/// A nest with its plan, ready to run. Languages derive what they need.
struct ChainNest {
    virtual ~ChainNest() = default;
    double time_s = 0;  ///< predicted
};

/// A nest of a chain as it is prepared by itself.
struct ChainMember {
    std::string name;  ///< for messages, as "nest 2, 'smooth',"
    std::vector<std::string> arrays;
    std::vector<std::int32_t>
        memories;  ///< by array: equal numbers, also in other members, for arrays that share memory
    SweepProblem problem;
    Plan plan;
    PlanRequest fixed = {};                  ///< choices of the user
    std::optional<std::int64_t> steps = {};  ///< of time; `problem` is of a block where they are more
    bool in_step = false;                    ///< one buffer of a field is the time step that others have written
    std::shared_ptr<ChainNest> nest;         ///< one for members where the same nest stands with the same scalars
};

/// Prepares nests of a chain with other plans, and joins nests to one schedule.
class ChainMaker {
public:
    virtual ~ChainMaker() = default;
    /// Plans member `n` with these choices, the user's among them; `as_planned`: with the whole plan that it has by
    /// itself. Collective.
    /// @throws ConfigError on all ranks: it cannot have such a plan
    virtual std::shared_ptr<ChainNest> prepare(std::size_t n, const PlanRequest& request, const LeastHalos& halos,
                                               bool as_planned) = 0;
    /// Makes the schedule of these nests, in place of one that was made before. Collective.
    /// @returns why that is not possible, the same on all ranks; empty: it is made
    virtual std::string join(std::span<const std::shared_ptr<ChainNest>> nests) = 0;
};

/// Makes the nests of a chain one schedule. Layouts of the arrays that several nests share are tried in turn: that of
/// the plans which the nests have by themselves, at most three that some nest wants, then all nests on one rank. The
/// schedule that is predicted to be quickest stays. Collective as far as `maker` is.
/// @returns why the nests must run one after another; empty: a schedule is made
std::string choose_chain_layout(std::vector<ChainMember> members, int ranks, PathsOff off, ChainMaker& maker);

}  // namespace tilewave
