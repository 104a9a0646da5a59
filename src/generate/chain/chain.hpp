// Several sweeps as one schedule: each rank goes on to the next sweep as soon as what it reads is there.
#pragma once
#include <span>
#include <vector>

#include "tilewave/plan.hpp"
#include "tilewave/schedule.hpp"

namespace tilewave {

/// One sweep of a chain.
struct ChainPart {
    const SweepProblem& problem;
    const Plan& plan;
    std::vector<std::int32_t> memories;  ///< by array: equal numbers, also in other parts, for arrays that share memory
};

/// The part of `rank` of `ranks` in the sweeps of `parts`, one after another. Work i is sweep i, and its kernel is
/// kernel i. A lane begins a sweep when it has ended the one before; a step waits for those of other lanes whose
/// elements it touches, and for messages. The tags of sweep i begin at i * tags. Pure; costs what the sweeps do and,
/// with several lanes, the product of the steps of neighbouring ones.
/// @pre at least one part; a memory for each array (ConfigError)
/// @pre no rolling window; loop index 0 is no time (ConfigError)
/// @pre every sweep has tags below `tags` (ConfigError)
Schedule chain(std::span<const ChainPart> parts, int rank, int ranks, std::int32_t tags);

/// Why these sweeps cannot be a chain; empty where they can. Equal on all ranks.
std::string chain_refusal(std::span<const ChainPart> parts);

}  // namespace tilewave
