// Several sweeps as one schedule: each rank goes on to the next sweep as soon as what it reads is there.
#pragma once
#include <span>
#include <vector>

#include "tilewave/engine/schedule.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// One sweep of a chain.
struct ChainPart {
    const SweepProblem& problem;
    const Plan& plan;
    std::vector<std::int32_t> memories;  ///< by array: equal numbers, also in other parts, for arrays that share memory
};

/// The arrays of a nest that keep several time steps. Before it runs, these are brought to the buffers where its steps
/// have them (src/arrays/time_buffers.hpp).
std::vector<int> rotated_arrays(const SweepProblem& problem);

/// The part of `rank` of `ranks` in the sweeps of `parts`, one after another. The kernel of sweep i is kernel i. A lane
/// begins a sweep when it has ended the one before; a step waits for those of other lanes whose elements it touches,
/// and for messages. The tags of sweep i begin at i * tags. Pure; costs what the sweeps do and, with several lanes, the
/// product of the steps of neighbouring ones.
///
/// A nest with arrays that keep several time steps has one more array for each of them, after the others: all buffers
/// as they lie. It begins with a task on each lane, operation j for the j-th such nest, whose regions are of these
/// arrays: what it reads of each, and what it writes.
/// The parts may be those of several repetitions, `nests` in each: these share kernels and tags.
/// @pre at least one part; a memory for each array (ConfigError)
/// @pre parts that keep several time steps are of one repetition (ConfigError)
/// @pre no rolling window; no skewed loops where arrays keep several time steps (ConfigError)
/// @pre every sweep has tags below `tags` (ConfigError)
Schedule chain(std::span<const ChainPart> parts, int rank, int ranks, std::int32_t tags, std::size_t nests = 0);

/// Why the arrays of these sweeps have no layout in common; empty where they have. Equal on all ranks.
std::string layout_refusal(std::span<const ChainPart> parts);
/// Why these sweeps cannot be a chain; empty where they can. Equal on all ranks.
std::string chain_refusal(std::span<const ChainPart> parts);

}  // namespace tilewave
