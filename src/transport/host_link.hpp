// Messages in flight between this rank and another one of its host.
#pragma once
#include <deque>
#include <vector>

#include "transport/host_segment.hpp"

namespace tilewave::host {

inline constexpr int no_id = -1;      // of messages nobody asks for again
inline constexpr int alarm_tag = -1;  // of announcements that are an alarm

struct Piece {
    std::int32_t number, bytes;
};

struct Receive {
    int id, tag;
    std::byte* data;
    std::int64_t bytes;
    bool anywhere = false;  // it may stay in the piece that it comes in
};

/// A message that has been announced here and is not over.
struct Incoming {
    Announcement what;
    Receive to;                      // once there is one
    std::int64_t at = 0;             // bytes copied
    std::vector<Piece> pieces = {};  // that wait for a receive
};

struct Outgoing {
    int id = 0, peer = 0, tag = 0;
    bool synchronous = false;
    const std::byte* data = nullptr;
    std::int64_t bytes = 0, at = 0;
    std::uint32_t message = 0;
    int piece = -1;  // that no other message gets before this one is over
};

/// Another rank of this host, as this one sees it.
struct Link {
    Queue *to = nullptr, *from = nullptr;
    Uses* pieces = nullptr;   // the other's
    int rank = 0, place = 0;  // the other rank, and its number among those of the host
    std::uint32_t sent = 0, seen_taken = 0, messages = 0, received = 0;
    std::deque<Outgoing> waiting;         // not announced: the queue is full
    std::vector<Receive> receives;        // of which nothing has been announced
    std::vector<Incoming> early, active;  // without and with a receive
    std::uint32_t promised = 0;           // entries for what is being written to pieces

    /// The next free entry; null where there is none.
    Entry* free_entry() {
        if (sent + promised - seen_taken == queue_entries) {
            seen_taken = to->taken.load(std::memory_order_acquire);
            if (sent + promised - seen_taken == queue_entries) return nullptr;
        }
        return &to->entries[sent % queue_entries];
    }
    void publish(Entry& entry) { entry.number.store(++sent, std::memory_order_release); }
};

/// What came in one piece and stays there for a while.
struct Staying {
    const std::byte* data;  // where it was to go
    const std::byte* there;
    std::atomic<std::uint32_t>* used;
};

}  // namespace tilewave::host
