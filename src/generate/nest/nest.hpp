// The schedule of a nest, by whichever generator its plan says.
#pragma once
#include "tilewave/plan.hpp"
#include "tilewave/schedule.hpp"

namespace tilewave {

/// The part of `rank` of `ranks` in the nest under `plan`; 0: as many ranks as plan.grid has. Pure.
/// @pre as sweep() and stencil() (ConfigError)
Schedule nest_schedule(const SweepProblem& problem, const Plan& plan, int rank, int ranks = 0);

/// Time steps of the linear schedule of all ranks: Tile::time is below this.
std::int64_t nest_steps(const SweepProblem& problem, const Plan& plan);

/// `times` blocks of time steps one behind the other, as PreparedSweep::run runs them: `block`, a rank's schedule of
/// `problem`, again and again with later times, and all lanes of the rank meet between two. Pure; costs `times` copies
/// of it.
/// @pre as PreparedSweep::prepare_steps; times >= 1 (ConfigError)
Schedule in_a_row(const SweepProblem& problem, const Plan& plan, const Schedule& block, int times);

}  // namespace tilewave
