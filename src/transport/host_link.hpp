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
    int piece = -1;        // that no other message gets before this one is over
    bool written = false;  // all of it is in that piece
};

/// Another rank of this host, as this one sees it.
struct Link {
    Queue* to = nullptr;
    Uses* pieces = nullptr;                                         // the other's
    int rank = 0;                                                   // the other
    std::uint32_t seen_taken = 0, next = 0, end = 0, messages = 0;  // entries claimed here and not used: next to end
    std::deque<Outgoing> waiting;                                   // not announced: the queue is full
    std::vector<Receive> receives;                                  // of which nothing has been announced
    std::vector<Incoming> early, active;                            // without and with a receive

    /// Claims so many entries, none of which was claimed before. False: there is no room for all.
    bool claim(std::uint32_t count) {
        std::uint32_t first = to->claimed.load(std::memory_order_relaxed);
        do {
            const auto lacks = [&] {
                return static_cast<std::int32_t>(first + count - seen_taken) > static_cast<std::int32_t>(queue_entries);
            };
            if (!lacks()) continue;
            seen_taken = to->taken.load(std::memory_order_acquire);
            if (lacks()) return false;
        } while (!to->claimed.compare_exchange_weak(first, first + count, std::memory_order_relaxed));
        next = first;
        end = first + count;
        return true;
    }
    /// The next entry, which publish() must follow at once: what others send waits for it. Null: there is none.
    Entry* free_entry() { return next != end || claim(1) ? &to->entries[next % queue_entries] : nullptr; }
    void publish(Entry& entry) { entry.number.store(++next, std::memory_order_release); }
};

/// What came in one piece and stays there for a while.
struct Staying {
    const std::byte* data;  // where it was to go
    const std::byte* there;
    std::atomic<std::uint32_t>* used;
};

}  // namespace tilewave::host
