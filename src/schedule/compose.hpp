// Schedules made of schedules: what follows, what is embedded.
#pragma once
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// Where the parts of an appended schedule go.
struct Mapping {
    std::vector<std::int32_t> arrays = {};  ///< by array of it: which array of the whole it is; empty: the same numbers
    std::vector<std::int32_t> lanes = {};   ///< by lane of it: which lane of the whole runs it; empty: the same numbers
    std::int64_t first_number = 0;          ///< added to the numbers of its works and results
    std::int32_t first_kernel = 0;          ///< added to those of its kernels
    std::int32_t first_operation = 0;       ///< added to those of its operations
    std::int32_t first_tag = 0;             ///< added to the tags of its messages
    bool again = false;  ///< the part is the whole again: its buffers are those of the whole, and its messages in turn
};

/// Adds `part` behind `whole`, of the same rank: works, tiles, messages, buffers, results and steps. A lane of the part
/// goes on in a lane of the whole, which is made where there is none.
///
/// Steps of the part wait for those steps of other lanes of the whole that touch the same elements, if one of the two
/// writes them; elements count as boxes in their memory. The part shares no tags or buffers with the whole. Local and
/// pure; costs the product of the steps of both at worst.
/// @pre equal rank and ranks; a number for each array of the part, within whole.arrays (ConfigError)
/// @pre different lanes for different lanes; numbers of works that the whole has none of (ConfigError)
void append(Schedule& whole, const Schedule& part, const Mapping& mapping);

/// Puts works into the order of their numbers.
void sort_works(Schedule& schedule);

/// Adds to the number of a step's tile or messages.
void renumber(Step& step, std::int32_t tiles, std::int32_t messages);

/// The largest tag of a schedule's messages; -1 without messages.
std::int32_t largest_tag(const Schedule& schedule);

}  // namespace tilewave
