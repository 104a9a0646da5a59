// What a schedule with a repeated block must fulfil in addition to its repetitions.
#pragma once
#include <optional>
#include <span>

#include "tilewave/engine/check.hpp"

namespace tilewave {

/// Of one rank: the ranges are there; each message and what is done with it stands before, in or behind the block; in
/// the block one lane posts it and waits for it; no await of the block means a later repetition.
/// @pre check_rank_shapes() has passed but for the ranges
std::optional<Violation> check_repeated_rank(const Schedule& schedule);

/// Of all ranks: messages of the block meet messages of the block, works of the block stand together in the program,
/// and no result stands between them.
std::optional<Violation> check_repeated(std::span<const Schedule> schedules);

/// A violation of unrolled(schedules, times), in terms of the steps of the block.
Violation folded(const Schedule& schedule, std::int64_t times, Violation violation);

}  // namespace tilewave
