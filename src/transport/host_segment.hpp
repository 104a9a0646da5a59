// The layout of the memory that ranks of one host share.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "data/memory.hpp"
#include "transport/tuning.hpp"

namespace tilewave::host {

using namespace tuning;

inline constexpr std::uint32_t queue_entries = 256;
inline constexpr std::int64_t inside_bytes = 88;
/// Where the bytes of a message are.
enum class Location : std::uint32_t {
    inside,     ///< in the announcement
    pieces,     ///< the first piece with the announcement
    more,       ///< no announcement: another piece of a message announced before
    elsewhere,  ///< by the transport underneath
};

struct Announcement {
    Location location;
    std::int32_t tag;
    std::int64_t bytes;     ///< of the whole message
    std::uint32_t message;  ///< its number among those from this sender to this receiver
    std::int32_t piece, piece_bytes;
    std::int32_t from;  ///< the sender's place among the ranks of the host
    std::byte inside[inside_bytes];
};

struct alignas(128) Entry {
    Announcement what;
    std::atomic<std::uint32_t> number;  ///< of the announcement, counted from 1; written last
};
static_assert(sizeof(Entry) == 128);

/// From all ranks of the host to one of them. A sender claims entries, writes and numbers them.
struct Queue {
    Entry entries[queue_entries];
    alignas(128) std::atomic<std::uint32_t> claimed;  ///< by senders
    alignas(128) std::atomic<std::uint32_t> taken;    ///< by the receiver
};

/// Which pieces of one rank are in use: 1.
struct alignas(128) Uses {
    std::atomic<std::uint32_t> used[all_pieces];
};

/// Where things lie in the memory of `n` ranks.
class Segment {
public:
    explicit Segment(int n) : n_(n) {}
    std::size_t bytes() const { return static_cast<std::size_t>(piece_at(n_, 0) + page_bytes); }
    void at(std::byte* data) { data_ = data; }
    int ranks() const { return n_; }
    /// The longest message that goes in pieces; 0: not known yet.
    std::atomic<std::int64_t>& longest() const { return *reinterpret_cast<std::atomic<std::int64_t>*>(data_); }
    Uses& uses(int owner) const {
        return *reinterpret_cast<Uses*>(data_ + page_bytes + owner * std::int64_t{sizeof(Uses)});
    }
    Queue& queue(int to) const {
        return *reinterpret_cast<Queue*>(data_ + queues_at() + to * std::int64_t{sizeof(Queue)});
    }
    std::byte* piece(int owner, int k) const { return data_ + piece_at(owner, k); }
    /// The reverse of piece().
    int number_of(int owner, const std::byte* piece) const {
        const std::int64_t at = piece - this->piece(owner, 0), small = small_pieces * small_piece;
        return static_cast<int>(at < small ? at / small_piece : small_pieces + (at - small) / large_piece);
    }

private:
    static std::int64_t to_page(std::int64_t bytes) { return (bytes + page_bytes - 1) / page_bytes * page_bytes; }
    std::int64_t queues_at() const { return page_bytes + to_page(n_ * std::int64_t{sizeof(Uses)}); }
    // In the middle of a page, as staging_memory().
    std::int64_t piece_at(int owner, int k) const {
        constexpr std::int64_t each = small_pieces * small_piece + large_pieces * large_piece;
        const std::int64_t within =
            k < small_pieces ? k * small_piece : small_pieces * small_piece + (k - small_pieces) * large_piece;
        return queues_at() + to_page(n_ * std::int64_t{sizeof(Queue)}) + owner * each + within + page_bytes / 2;
    }
    int n_;
    std::byte* data_ = nullptr;
};

}  // namespace tilewave::host
