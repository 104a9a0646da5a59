// Writes the steps of one lane of a Schedule; chooses between direct and staged messages and
// reuses staging buffers as soon as the lane has waited for them.
#pragma once
#include <map>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// Adds a message of one region: its number.
int add_message(Schedule& schedule, bool send, int peer, int tag, int array, const Box& region);
/// Adds a lane that only waits until all others are done, and moves messages meanwhile. Lane l then signals counts[l].
void add_helper_lane(Schedule& schedule, const std::vector<int>& counts);

class LaneBuilder {
public:
    LaneBuilder(Schedule& schedule, int lane) : s_(schedule), lane_(lane) {}

    void add(Op op, std::int32_t item = 0, std::int32_t count = 0) { s_.lanes[lane_].push_back({op, item, count}); }

    /// Posts the receive of `region`; straight into the array where that is one run of memory and not `staged`.
    int post_receive(int peer, int tag, int array, const Box& region, int tile, bool staged = false);
    /// wait, then unpack where staged; the buffer is free after it.
    void finish_receive(int message);
    /// Packs where the region is strided or `staged`, then posts.
    int post_send(int peer, int tag, int array, const Box& region, bool synchronous, int tile, bool staged = false);
    /// wait; the buffer is free after it.
    void finish_send(int message);
    /// A message of several pieces, each packed or unpacked by itself: its number, those of the pieces follow it.
    struct Piece {
        int array;
        Box region;
        int tile;
    };
    int add_aggregate(bool send, int peer, int tag, const std::vector<Piece>& pieces, bool synchronous);
    /// add_aggregate(), then packs all pieces of a send, and posts.
    int post_aggregate(bool send, int peer, int tag, const std::vector<Piece>& pieces, bool synchronous);
    /// wait, then unpack of each piece; the buffer is free after it.
    void finish_aggregate(int message);
    /// Its buffer is free from here on.
    void release(int message) { give_back(s_.messages[message].buffer); }

    /// From a box of one array to a box of equal extents of another, or of the same, on this rank, through a buffer.
    void copy_local(int from_array, const Box& from, int to_array, const Box& to);

private:
    int add_buffered(bool send, int peer, int tag, int array, const Box& region, int tile, bool staged);
    int take_buffer(std::int64_t bytes);
    void give_back(int buffer);

    Schedule& s_;
    int lane_;
    std::multimap<std::int64_t, int> free_;  // by size
};

}  // namespace tilewave
