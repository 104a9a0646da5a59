// What every lane did when: one event a step. The executor makes it, and so does the predictor.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

class Transport;

/// One step of one lane. Times in seconds since the run began on rank 0.
struct Event {
    std::int32_t rank, lane, step;
    std::int32_t op;         ///< an Op
    std::int32_t peer, tag;  ///< of the message, -1 without one
    std::int32_t send;       ///< 1 for a step of a send, 0 of a receive
    std::int32_t slice;
    std::int32_t tile[max_dims];  ///< coordinates, -1 without one
    std::int64_t wave;            ///< of the tile, -1 without one
    std::int64_t bytes;
    double begin_s, end_s;
};

/// The event of one step of a schedule.
Event event_of(const Schedule& schedule, int lane, std::size_t step, double begin_s, double end_s);

/// One message as one rank saw it: from its post to the poll that found it complete.
struct Request {
    std::int32_t rank, lane, peer, tag;
    std::int32_t send, pad;
    std::int64_t bytes;
    double posted_s, completed_s;
};

/// Seconds one lane spent on each kind of step.
struct LaneSplit {
    std::int32_t rank, lane;
    double compute_s, pack_s, wait_s, post_s, total_s;
    void add(Op op, double seconds);
};

/// The times that the lanes of one rank recorded in a run.
struct Recording {
    std::vector<std::vector<double>> ends;  ///< by lane: its begin, then the end of each of its steps
    std::vector<std::vector<double>> begins =
        {};  ///< by lane, step; empty: each step begins where the one before ended
    std::vector<Request> requests;
    std::int64_t times = 1;  ///< so often the schedule's block ran; ends may lack those of later steps
};

struct Timeline {
    int ranks = 1, dims = 1;
    std::vector<Event> events;  ///< by rank, lane, step
    std::vector<Request> requests;
    /// By rank: its threads, where they are fewer than its lanes, which share them (lane l modulo them); 0: a
    /// lane a thread. Empty: 0 for all.
    std::vector<std::int32_t> threads = {};

    /// The thread of a lane; as a number, that of its first lane.
    std::int32_t thread_of(std::int32_t rank, std::int32_t lane) const {
        const auto r = static_cast<std::size_t>(rank);
        return r < threads.size() && threads[r] > 0 ? lane % threads[r] : lane;
    }
    /// By rank and lane; lanes that share a thread count as one.
    std::vector<LaneSplit> split() const;
    /// The requests of each message of which both sides are here: numbers of its send and of its receive.
    std::vector<std::pair<std::size_t, std::size_t>> messages() const;
    /// The part of the transfers that ran while lanes computed, of all that could have, over all ranks: 0 to 1, NaN
    /// without messages or where no rank with messages computes. For a rank with lanes that compute, its receives and
    /// its sends each by themselves:
    ///   transfer  seconds of all its messages, latency_s + bytes * byte_s each; at most how long any of them was
    ///             in flight, from its post by the sender to the receiver's finding it
    ///   exposed   seconds that its lanes waited for them after both sides had posted, a lane's average
    ///   hideable  the lesser of transfer and the computing of a lane, on average
    ///   hidden    transfer - exposed, within 0 and hideable
    /// The ratio is the sum of what is hidden over the sum of what is hideable.
    double overlap_ratio(double latency_s, double byte_s) const;
    /// Chrome trace format: Perfetto and chrome://tracing open it. Messages are flow arrows,
    /// pending requests async events.
    std::string chrome_json() const;
};

/// One rank's events, from the schedule that it ran.
Timeline timeline_of(const Schedule& schedule, const Recording& recording);

/// Seconds of a message (from, to, bytes) on an otherwise idle network.
using TransferTime = std::function<double(int from, int to, std::int64_t bytes)>;

/// Timeline::overlap_ratio from its ingredients: events are the waits for messages.
double overlap_ratio(int ranks, std::span<const LaneSplit> lanes, std::span<const Event> waits,
                     std::span<const Request> requests, const TransferTime& transfer_s);

/// Where the time of a run went: averages over all lanes that have steps (threads, where lanes share them), which add
/// up to total_s.
struct Parts {
    double total_s = 0;  ///< from the first lane's start to the last one's end
    double fill_s = 0;   ///< before a lane's first tile, but for packing
    double compute_s = 0;
    double pack_s = 0;       ///< pack, unpack, combine
    double post_s = 0;       ///< posting messages, and between steps
    double wait_s = 0;       ///< for messages, after the first tile
    double hand_over_s = 0;  ///< for other lanes, after the first tile
    double drain_s = 0;      ///< after a lane's end until the last one's
};

/// The parts of a timeline that has all ranks' events, measured or predicted.
Parts parts(const Timeline& timeline);

}  // namespace tilewave
