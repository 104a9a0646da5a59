// What every lane did when: one event a step. The executor makes it, and so does the predictor.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "tilewave/schedule.hpp"

namespace tilewave {

class Transport;

/// One step of one lane. Times in seconds since the run began on rank 0.
struct Event {
    std::int32_t rank, lane, step;
    std::int32_t op;           ///< an Op
    std::int32_t peer, tag;    ///< of the message, -1 without one
    std::int32_t send;         ///< 1 for a step of a send, 0 of a receive
    std::int32_t slice;
    std::int32_t tile[max_dims];  ///< coordinates, -1 without one
    std::int64_t time_step;    ///< of the linear schedule, -1 without one
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

/// What one rank's lanes noted of a run.
struct Recording {
    std::vector<std::vector<double>> ends;  ///< by lane: its begin, then the end of each of its steps
    std::vector<Request> requests;
};

struct Timeline {
    int ranks = 1, dims = 1;
    std::vector<Event> events;      ///< by rank, lane, step
    std::vector<Request> requests;

    std::vector<LaneSplit> split() const;
    /// Hidden communication time / hideable communication time over all ranks, 0 to 1; NaN
    /// without messages. A message's transfer takes latency_s + bytes * byte_s. Exposed is what
    /// a lane waits for it after both sides have posted it; hideable is the transfer time of a
    /// rank's receives, and of its sends, each at most its compute time.
    double overlap_ratio(double latency_s, double byte_s) const;
    /// Chrome trace format: Perfetto and chrome://tracing open it. Messages are flow arrows,
    /// pending requests async events.
    std::string chrome_json() const;
};

/// One rank's events, from the schedule that it ran.
Timeline timeline_of(const Schedule& schedule, const Recording& recording);

/// Timeline::overlap_ratio from what it is made of: of the events, the waits for messages.
double overlap_ratio(int ranks, std::span<const LaneSplit> lanes, std::span<const Event> waits, std::span<const Request> requests, double latency_s,
                     double byte_s);

}  // namespace tilewave
