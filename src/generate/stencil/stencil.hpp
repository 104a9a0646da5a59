// The stencil generator: nests whose points of one time step are independent. Each rank computes the border of its
// block, sends what other ranks read of it, and computes the inner part while messages travel (prieto1999).
#pragma once
#include "tilewave/engine/schedule.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// The part of `rank` of `ranks` in the nest `problem` under `plan`; 0: as many ranks as plan.grid has. Ranks beyond
/// the grid have no steps. Pure; costs O(tiles of the rank, and messages with its neighbours), however many ranks there
/// are.
///
/// Lanes split a rank's block along space, equally in every time step. An overlapping schedule sends what the
/// border gives before it computes the inner part, and waits for halos before the next border; a blocking one computes
/// the block in one piece and waits for its sends at once. With plan.temporal_block = k ranks exchange halos k times as
/// wide once in k steps, and compute the halo redundantly in between.
/// @pre problem.validate() and plan.validate(problem, ranks) pass, plan.generator is stencil (ConfigError)
/// @pre 0 <= rank < ranks (ConfigError)
Schedule stencil(const SweepProblem& problem, const Plan& plan, int rank, int ranks = 0);

}  // namespace tilewave
