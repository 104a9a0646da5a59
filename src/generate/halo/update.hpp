// The update of the halos of several arrays as a schedule.
#pragma once
#include <span>

#include "generate/halo/halo.hpp"
#include "generate/halo/tuning.hpp"
#include "tilewave/engine/schedule.hpp"

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
/// Small pieces that go to one rank go together in messages of at most `piece_bytes`. A larger piece that is one run of
/// memory on both ranks is a message straight from and to the arrays; another one is packed in chunks of `piece_bytes`,
/// each while the ones before it travel. Receives are posted first; copies within the rank overlap with the messages.
/// Halo points that lie outside the block along more than `axes` axes stay as they are (see halo_pieces). All messages
/// have tag `tag`. Costs O(pieces of the rank, and arrays).
/// @pre 0 <= rank < ranks; layouts have at most `ranks` ranks; items and pieces have at least 1 byte (ConfigError)
Schedule halo_update(std::span<const HaloArray> arrays, int rank, int ranks, int axes = max_dims, int tag = 8,
                     std::int64_t piece_bytes = tuning::halo_piece_bytes);

}  // namespace tilewave
