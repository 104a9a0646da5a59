// The update of the halos of several arrays as a schedule: one message for each neighbour.
#pragma once
#include <span>
#include <vector>

#include "generate/halo/halo.hpp"
#include "tilewave/schedule.hpp"

namespace tilewave {

/// An array whose halo is to get the values of its owners.
struct HaloArray {
    Layout layout;
    std::int64_t item_bytes = 0;
};

/// The part of `rank` of `ranks`, on one lane. Array a of the schedule is arrays[a], row-major in its storage. Behind
/// them stand the same arrays as their copies one period further see them, which halos beyond the ends of periodic axes
/// belong to: View::memory says in whose memory an array of the schedule lies.
///
/// All receives are posted first, then each send once it is packed; copies within the rank go on meanwhile. What goes
/// to one rank is one message. A message of one piece goes straight from or to the array where it is one run of memory.
/// Halo points that lie beside the block along more than `axes` axes stay as they are (see halo_pieces). All messages
/// have tag `tag`. Costs O(pieces of the rank, and arrays).
/// @pre 0 <= rank < ranks; layouts have at most `ranks` ranks; items have at least 1 byte (ConfigError)
Schedule halo_update(std::span<const HaloArray> arrays, int rank, int ranks, int axes = max_dims, int tag = 8);

}  // namespace tilewave
