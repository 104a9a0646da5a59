// Steps of a lane in another order: tiles follow those whose elements they touch while these are in cache, and messages
// travel meanwhile.
#pragma once
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// The same schedule, of which tiles of nests are cut into slices of at most `rows` rows along the loop that nests go
/// through first: those of narrow nests, such as absorbing layers, have fewer points, and are as long. Steps that touch
/// the same elements, one of which writes them, keep their order.
///
/// What other ranks wait for is computed and sent first. Then the latest nest goes on that can: it finds in cache what
/// those before it have written. Each wait gets an equal share of the other tiles before it, and no wait stands before
/// a post that it stood behind: where no rank waited for ever, none does now. Signals of lanes, and waits for them,
/// keep their places among messages and the slices whose elements other lanes touch; the other slices go anywhere.
/// Pure; costs the square of the slices. Lanes with fewer than two nests stay as they are, and schedules with combine
/// steps.
Schedule fused(Schedule schedule, std::int64_t rows);

}  // namespace tilewave
