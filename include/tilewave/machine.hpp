// What a machine's messages, lanes and memory cost: numbers that plans and predictions are made from.
#pragma once
#include <cstdint>
#include <vector>

#include "tilewave/engine/layout.hpp"
#include "tilewave/engine/network.hpp"
#include "tilewave/engine/runs.hpp"

namespace tilewave {

/// MPI libraries send messages up to this size at once, through internal buffers (UCX in shared memory: to 8064
/// bytes). For larger ones the receiver is asked first.
inline constexpr std::int64_t short_bytes = 8000;

/// y over x: straight lines between measured points, the first and the last one continued; 0 without points.
struct Curve {
    std::vector<double> x, y;  ///< of equal lengths, x ascending
    double at(double value) const;
};

// The numbers of links and machines, each declared once. The structs, the bindings, Python's classes, machine files
// and their checks are made from these lists. _s: seconds, _bytes: bytes, _byte_s: seconds a byte.
// X(type, name, default, range, documentation); range: positive, zero (allowed, too) or fraction (0 to 1).
// clang-format off
#define TILEWAVE_LINK_NUMBERS(X) \
    X(double, latency_s, 5e-6, positive, \
      "One message of 8 bytes, in one direction, while both ranks wait for it.") \
    X(double, send_s, 3e-7, positive, \
      "Posting a send: the time that a lane cannot compute.") \
    X(double, receive_s, 3e-7, positive, \
      "Posting a receive.") \
    X(double, byte_s, 1e-10, positive, \
      "One more byte in a stream of large messages.") \
    X(double, burst_bytes, 0, zero, \
      "A host that has rested may send this many bytes faster than byte_s (a token bucket). Where transfer_s is well " \
      "below byte_s, transfer_s decides.") \
    X(double, eager_bytes, 8000, zero, \
      "Larger messages leave only when the receiver has asked for them.") \
    X(double, busy_byte_s, 0, zero, \
      "CPU time that each byte costs the sender and the receiver while they compute: copies inside the MPI library.") \
    X(double, hidden_polled, 0.9, fraction, \
      "Fraction of a large transfer that overlaps computing, with polls every 50 us.") \
    X(double, hidden_unpolled, 0, fraction, \
      "The same without polls.")

#define TILEWAVE_MACHINE_NUMBERS(X) \
    X(double, latency_s, 5e-6, positive, \
      "One small message to the farthest rank, in one direction.") \
    X(double, byte_s, 1e-10, positive, \
      "One more byte of a large message to the farthest rank.") \
    X(double, chunk_s, 5e-6, positive, \
      "What a message in a stream costs beyond its bytes.") \
    X(double, short_s, 0, zero, \
      "A message of short_bytes in a stream, all included: MPI libraries send it by another protocol. 0: as any " \
      "other.") \
    X(double, ranks_per_core, 1, positive, \
      "Ranks that share a CPU, on the most crowded host.") \
    X(double, hand_over_s, 1e-6, positive, \
      "From a lane's signal to the end of another lane's await (t_sync_in of athanasaki2002).") \
    X(double, point_s, 2e-9, positive, \
      "One point of a kernel that was not measured.") \
    X(double, poll_s, 2e-7, positive, \
      "One poll of the transport that finds nothing.") \
    X(double, step_s, 5e-8, positive, \
      "The overhead of one step of a schedule.") \
    X(std::int64_t, cache_bytes, 512 << 10, positive, \
      "The second-level cache of a core.") \
    X(std::int64_t, shared_cache_bytes, 2 << 20, positive, \
      "A CPU's share of the last-level cache.")
// clang-format on

/// What messages between two ranks cost, for one kind of neighbour: see TILEWAVE_LINK_NUMBERS.
struct Link {
#define TILEWAVE_NUMBER(type, name, otherwise, range, text) type name = otherwise;
    TILEWAVE_LINK_NUMBERS(TILEWAVE_NUMBER)
#undef TILEWAVE_NUMBER
    Curve transfer_s =
        {};  ///< one message by bytes, in one direction, both ranks waiting; empty: latency_s + bytes byte_s

    /// Seconds of one message of `bytes`, in one direction.
    double message_s(double bytes) const {
        return transfer_s.x.empty() ? latency_s + bytes * byte_s : transfer_s.at(bytes);
    }
};

/// The costs that plans and predictions use: see TILEWAVE_MACHINE_NUMBERS. The defaults hold until something is
/// measured.
struct Machine {
#define TILEWAVE_NUMBER(type, name, otherwise, range, text) type name = otherwise;
    TILEWAVE_MACHINE_NUMBERS(TILEWAVE_NUMBER)
#undef TILEWAVE_NUMBER
    Link same_host, other_host;
    /// Seconds to copy one byte between an array and a buffer, over the number of contiguous bytes.
    Curve copy_byte_s = {};
    /// memory[l - 1]: seconds for a lane to read and write back one byte, over the bytes of its working set, while l
    /// lanes of a host do so.
    std::vector<Curve> memory = {};
    Runs<std::int32_t> host_of = {};  ///< each rank's host; empty: all ranks are on one host
    /// Each rank's set of CPUs, which its lanes run on. Ranks may share a set. Empty: no two lanes share a CPU.
    Runs<std::int32_t> set_of = {};
    Runs<double> set_cpus = {};  ///< how many CPUs each set has, no more than a control group's quota
    /// How fast a CPU of each rank is, as a part of the fastest; empty: all are equal.
    std::vector<double> speeds = {};
    Network network = {};  ///< what messages between hosts share; host_of has the numbers of its nodes

    double speed(int rank) const { return speeds.empty() ? 1 : speeds[rank]; }
    /// How fast each lane of `ranks` ranks is while all compute with so many lanes: its CPU's speed times the part of a
    /// CPU that it has.
    std::vector<double> lane_speeds(int ranks, int lanes) const;
    /// In proportion to which ranks should have points; empty: all equal, but for less than `unequal`.
    Weights weights(int ranks, int lanes) const;
    bool shares_host(int a, int b) const {
        const auto n = static_cast<int>(host_of.size());
        return n == 0 || (a < n && b < n && host_of[a] == host_of[b]);
    }
    const Link& link(int a, int b) const { return shares_host(a, b) ? same_host : other_host; }
};

}  // namespace tilewave
