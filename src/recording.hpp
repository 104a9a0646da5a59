// What lanes noted of a run while it was under way: a moment a step. Events and pictures are made of it when they are asked for.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "parts_count.hpp"
#include "tilewave/executor.hpp"
#include "tilewave/transport.hpp"

namespace tilewave {

/// Of all ranks' recordings.
struct Recorded {
    Parts parts;               ///< rank 0 only, as what follows; averages over all lanes
    double overlap_ratio = 0;  ///< NaN without messages
    std::vector<std::string> bytes;  ///< by rank: half a nanosecond near
};

/// Rank 0 gets what the ranks have noted, about two bytes a step, and what follows from it. Collective.
Recorded gather(Transport& transport, const Schedule& schedule, const Recording& recording, double latency_s, double byte_s);

/// The events of all ranks of it; of their schedules each is made in turn. Times count from the first event.
/// @pre the schedules are those that ran (InternalError where they have not as many steps)
Timeline timeline_of(const Recorded& recorded, const std::function<Schedule(int)>& schedule_of);

}  // namespace tilewave
