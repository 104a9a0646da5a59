// The sweep generator: tiles of a dependent nest over ranks and lanes, in the four schemes of
// athanasaki2002 ({vertical, hyperplane} x {blocking, overlapping}).
#pragma once
#include "tilewave/engine/schedule.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// The part of `rank` of `ranks` in the sweep `problem` under `plan`; 0: as many ranks as plan.grid has. Ranks beyond
/// the grid have no steps. Pure; costs O(tiles of the rank and its neighbours), however many ranks there are. A
/// blocking schedule waits for each tile's messages right before and after the tile; an overlapping one posts receives
/// `lookahead` tiles ahead and waits for sends as much later.
/// @pre problem.validate() and plan.validate(problem, ranks) pass (ConfigError)
/// @pre 0 <= rank < ranks (ConfigError)
Schedule sweep(const SweepProblem& problem, const Plan& plan, int rank, int ranks = 0);

/// The ranks that `rank` may exchange messages with in sweep(), ascending; their number depends on the blocks and on
/// how far the accesses reach. Pure; costs O(their number).
/// @pre as sweep()
std::vector<int> sweep_neighbours(const SweepProblem& problem, const Plan& plan, int rank);

/// sweep() that asks `peers`, ascending, for messages in place of the neighbours: a test asks all ranks.
Schedule sweep_among(const SweepProblem& problem, const Plan& plan, int rank, int ranks, const std::vector<int>& peers);

/// Waves of the whole sweep: steps of the plan's linear schedule.
std::int64_t sweep_waves(const SweepProblem& problem, const Plan& plan);

}  // namespace tilewave
