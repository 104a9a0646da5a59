// What a machine's messages, lanes and memory cost: numbers that plans and predictions are made from.
#pragma once
#include <cstdint>
#include <vector>

namespace tilewave {

/// Messages up to here go through the library's own buffers as they come, in shared memory with UCX
/// (to 8064 bytes) and elsewhere; larger ones are asked for first.
inline constexpr std::int64_t short_bytes = 8000;

/// y over x: straight lines between measured points, the first and the last one continued; 0 without points.
struct Curve {
    std::vector<double> x, y;  ///< of equal lengths, x ascending
    double at(double value) const;
};

/// What messages between two ranks cost, for one kind of neighbour. All times in seconds.
struct Link {
    double latency_s = 5e-6;  ///< one small message, one way, both ranks waiting for it
    double send_s = 3e-7;     ///< posting a send: what it keeps a lane from computing
    double receive_s = 3e-7;  ///< posting a receive
    double byte_s = 1e-10;    ///< one more byte in a stream of large messages
    Curve transfer_s = {};    ///< one message by bytes, one way, both ranks waiting; empty: latency_s + bytes byte_s
    /// A host that has rested may send so much ahead of byte_s (a token bucket). Where transfer_s is well below
    /// byte_s, the bytes that byte_s leaves unexplained are known to be ahead, whatever this says.
    double burst_bytes = 0;
    double eager_bytes =
        8000;  ///< larger messages leave only when the receiver, too, has asked for them (hidden_unpolled up to 0.8)
    /// Each byte of a message costs so much of the time of the rank that sends or receives it, whatever that
    /// computes meanwhile: copies by the message library, in its polls and where the message is posted.
    double busy_byte_s = 0;
    /// Part of a large transfer that runs beside computation, 0 to 1: with polls in between, and without.
    double hidden_polled = 0.9, hidden_unpolled = 0;
    /// Time of all ranks sending to a neighbour at once over that of a pair alone, by the messages that the fullest
    /// host sends: 1 where they share what a pair has for itself, 1 / messages where they do not disturb each other.
    double crowd = 1;

    /// Seconds of one message of `bytes`, one way.
    double message_s(double bytes) const {
        return transfer_s.x.empty() ? latency_s + bytes * byte_s : transfer_s.at(bytes);
    }
};

/// The costs a plan is made from, in seconds. The defaults serve until they are measured.
struct Machine {
    // To the farthest rank.
    double latency_s = 5e-6;    ///< one small message, one way
    double byte_s = 1e-10;      ///< one more byte of a large message
    double chunk_s = 5e-6;      ///< what a message in a stream costs beyond its bytes
    double short_s = 0;         ///< such a message of short_bytes in all, which libraries send another way; 0: as any
    double ranks_per_core = 1;  ///< on the most crowded host
    double hand_over_s = 1e-6;  ///< from one lane's signal to the end of another's await (t_sync_in of athanasaki2002)
    double point_s = 2e-9;      ///< one point of a kernel that was not measured
    std::int64_t cache_bytes = 512 << 10;       ///< of a core's own second-level cache
    std::int64_t shared_cache_bytes = 2 << 20;  ///< a CPU's share of the last-level cache

    Link same_host, other_host;
    double poll_s = 2e-7;  ///< one poll of the transport that finds nothing
    double step_s = 5e-8;  ///< a step of a schedule beside what it does
    /// Copying one byte between an array and a buffer, by the bytes that are contiguous.
    Curve copy_byte_s = {};
    /// memory[l - 1]: seconds a byte that a lane reads and writes back, by the bytes of its working set, l lanes of a
    /// host at it.
    std::vector<Curve> memory = {};
    std::vector<std::int32_t> host_of = {};  ///< of each rank; empty: all on one host
    /// Of each rank, the number of the set of CPUs that its lanes run on, whatever host it takes itself to be on;
    /// empty: a CPU for every lane.
    std::vector<std::int32_t> set_of = {};
    std::vector<double> set_cpus = {};  ///< by set: how many CPUs it has

    bool shares_host(int a, int b) const {
        const auto n = static_cast<int>(host_of.size());
        return n == 0 ||
               (a < n && b < n && host_of[static_cast<std::size_t>(a)] == host_of[static_cast<std::size_t>(b)]);
    }
    const Link& link(int a, int b) const { return shares_host(a, b) ? same_host : other_host; }
};

}  // namespace tilewave
