// The schedule of a nest, by whichever generator its plan says.
#pragma once
#include "tilewave/engine/predict.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// The part of `rank` of `ranks` in the nest under `plan`; 0: as many ranks as plan.grid has. Pure.
/// @pre as sweep() and stencil() (ConfigError)
Schedule nest_schedule(const SweepProblem& problem, const Plan& plan, int rank, int ranks = 0);

/// What the tiles of such a schedule take where a point, a row and a tile of the kernel take this: its tasks, too.
Rates nest_rates(const SweepProblem& problem, const Plan& plan, const KernelRate& kernel);

/// How often the block of such a schedule runs in one run of the nest; 1 where it has none.
std::int64_t nest_repetitions(const SweepProblem& problem, const Plan& plan);

/// Waves of all ranks: Tile::wave is below this.
std::int64_t nest_waves(const SweepProblem& problem, const Plan& plan);

/// `block`, a rank's schedule of `problem`, as a block of time steps that repeats: repetition k is of the steps k
/// blocks later. Steps wait for those of other lanes of the repetition before that touch the same elements. Pure; costs
/// as repeatable().
/// @pre as PreparedSweep::prepare_steps (not checked); no block yet (ConfigError)
Schedule repeated_block(const SweepProblem& problem, const Schedule& block);

}  // namespace tilewave
