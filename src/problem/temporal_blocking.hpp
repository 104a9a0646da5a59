// Steps of time that go over the arrays together (docs/decisions/0011-temporal-blocking.md).
#pragma once
#include "tilewave/plan.hpp"

namespace tilewave {

/// Whether steps follow each other over arrays that a lane's share of the caches does not hold.
bool streams(const SweepProblem& problem, double lanes, const Machine& machine);

}  // namespace tilewave
