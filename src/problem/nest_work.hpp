// A nest as schedules have it: the work, and its arrays as one rank holds them. Sweeps and stencils have this in
// common.
#pragma once
#include "tilewave/engine/schedule.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// Space, bounds, order of points and places in z coordinates.
NestWork nest_work(const SweepProblem& problem, const Plan& plan);

/// What array `a` is on all ranks; its boxes and strides are empty.
Array array_kind(const SweepProblem& problem, int a);
/// Array `a` as `rank` holds it, in blocks of `layout`.
Array array_on(const SweepProblem& problem, const Plan& plan, const Layout& layout, int a, int rank);

/// Checks what a generator is given. The number of ranks: plan.ranks() for 0.
/// @throws ConfigError as problem.validate() and plan.validate(); where rank is not below the number of ranks
int checked_ranks(const SweepProblem& problem, const Plan& plan, int rank, int ranks);

}  // namespace tilewave
