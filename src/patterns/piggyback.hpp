// Small matrices without extra messages: they go with those by which the ranks compare their arguments.
#pragma once
#include <functional>

#include "tilewave/engine/fast_paths.hpp"
#include "tilewave/patterns.hpp"

namespace tilewave {

/// Whether a call leaves it open how its matrices go and there are ranks to hear, so that small ones may go with the
/// comparison.
bool may_piggyback(const PatternCall& call, const Transport& port, PathsOff off);
/// The most bytes a rank's matrix may then have, on p ranks.
std::int64_t piggyback_limit_bytes(PatternKind kind, int p);

/// What a pattern leaves on one rank, once it has every rank's matrix without gaps between rows (`given`; null where it
/// has no bytes). Reductions join in the order of pattern_schedule() with `plan`, so to the same bits.
/// @pre may_piggyback(call), problem.block == 0 (not checked)
void finish_piggyback(const PatternCall& call, const PatternProblem& problem, const PatternPlan& plan, int rank,
                      const std::function<const std::byte*(int)>& given);

}  // namespace tilewave
