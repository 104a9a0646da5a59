// Several sweeps as one schedule: each rank goes on to the next sweep as soon as what it reads is there.
#pragma once
#include <map>
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

/// A memory that keeps several time steps. Each part that writes another step takes the next buffer, in turn; after the
/// last part the last step is in the first buffer.
struct TimedMemory {
    int buffers = 1;         ///< the most that a part has
    std::int64_t steps = 0;  ///< that the parts write
    /// Some part changes elements that another leaves as they are: then a step begins as a copy of those from the one
    /// before. Otherwise these have one value in all buffers.
    bool carried = false;
    /// Steps that the buffers are turned by before the first part.
    std::int32_t turn() const { return static_cast<std::int32_t>(steps % buffers); }
};
std::map<std::int32_t, TimedMemory> timed_memories(std::span<const ChainPart> parts);

/// The elements of `held`, in the array's dimensions, that a nest leaves as they are in a time step, and perhaps some
/// that it writes.
std::vector<Box> unwritten(const SweepProblem& problem, int a, const Box& held);

/// What an array of a chain's schedule is: of which part, and whether it is all of its time buffers as they lie. Those
/// whose buffers are turned come first, then of each part its arrays and those that it carries elements of.
struct ChainArray {
    std::size_t part = 0;
    int array = 0;
    bool all_buffers = false;
};
/// @pre as chain()
std::vector<ChainArray> chain_arrays(std::span<const ChainPart> parts);

/// Operations of a chain's tasks: k > 0 brings buffers to where those of k time steps before are, for each region that
/// has several; 0 copies regions, each to that of its number.
inline constexpr std::int32_t carry_operation = 0;

/// How the parts are put together.
struct ChainForm {
    std::int32_t tags = 1 << 20;  ///< of a sweep
    std::size_t nests = 0;        ///< above 0: the parts are those of several repetitions, each of so many
    std::int64_t pieces = 1;      ///< of what a lane carries from one time step to the next
};

/// The part of `rank` of `ranks` in the sweeps of `parts`, one after another. The kernel of sweep i is kernel i. A lane
/// begins a sweep when it has ended the one before; a step waits for those of other lanes whose elements it touches,
/// and for messages. The tags of sweep i begin at i * tags. Those of several repetitions share kernels and tags. Pure;
/// costs what the sweeps do and, with several lanes, the product of the steps of neighbouring ones.
///
/// Its arrays are chain_arrays(parts). Lanes begin with tasks that turn the buffers of memories where turn() is not 0.
/// A part begins with tasks that carry elements of memories where `carried` is set. Of the other timed memories
/// unwritten() has one value in all buffers that later steps read.
/// @pre at least one part; a memory for each array (ConfigError)
/// @pre no rolling window; no skewed loops where arrays keep several time steps (ConfigError)
/// @pre every sweep has tags below `tags` (ConfigError)
Schedule chain(std::span<const ChainPart> parts, int rank, int ranks, const ChainForm& form = {});

/// Why the arrays of these sweeps have no layout in common; empty where they have. Equal on all ranks.
std::string layout_refusal(std::span<const ChainPart> parts);
/// Why these sweeps cannot be a chain; empty where they can. Equal on all ranks.
std::string chain_refusal(std::span<const ChainPart> parts);

}  // namespace tilewave
