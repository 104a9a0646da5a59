// The predictor at work: lanes that take their steps in the order of simulated time, messages that meet,
// links that are shared.
//
// Time is a number of each lane; a lane goes on as long as no other event is earlier. A message that is posted on
// both sides moves when both can make it move:
//   up to Link::eager_bytes, or where the network needs no polls, it leaves with its post and is there message_s later;
//   a larger one is first asked for: it leaves at a poll of the sender that follows a poll of the receiver that
//   follows both posts. A rank polls without end while a lane waits, and every poll period while one computes.
// It then takes message_s, more where other messages use the same host's card, or the same rank's CPU. On a network of
// known topology it flows over the links of its route instead, at the rate that the other messages there leave it.
#pragma once
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "predict/flows.hpp"
#include "predict/tile_work.hpp"
#include "schedule/parts_count.hpp"
#include "schedule/round_robin.hpp"
#include "tilewave/engine/predict.hpp"

namespace tilewave {

class Simulation {
public:
    Simulation(std::span<const Schedule> schedules, const Machine& machine, const Rates& rates,
               const PredictOptions& options);
    Prediction run();

private:
    static constexpr double never = 1e300;
    // ready: between two steps, or at the end of a wait, while its thread has other lanes to run.
    enum class State : std::uint8_t { fresh, stepping, computing, waiting, ready, ended };
    struct Lane {
        std::int32_t rank = 0, number = 0;
        State state = State::fresh;
        std::size_t next = 0;         // the current step
        double begin = 0, end = 0;    // of it; end is infinite while nobody knows
        double waited = 0;            // in steps before it
        double copying = 0;           // by what the current compute step takes longer
        double computed = 0;          // since the last poll
        double tick = 0, period = 0;  // of a compute step: its first poll, and from one to the next
        std::int32_t cpus = -1;       // the CPUs that it shares with too many others
        double due = 0;               // of a compute step there: what those must have given to each lane by its end
        std::vector<std::pair<std::int32_t, double>> signals;  // its counter, and since when
        std::vector<std::int32_t> awaited_by;                  // lanes that wait for it now
        std::vector<double> ends;                              // of its steps, where recorded
        std::vector<double> begins = {};                       // the same, of lanes that take turns
        std::int32_t thread = -1;                              // whose turns it takes
        bool waited_for = false;  // ready: what its step waits for is there, and the step is not over
    };
    // A thread of several lanes.
    struct Thread {
        std::int32_t first_lane = 0;  // of its rank
        RoundRobin order;
        bool busy = false;  // a lane has its turn
        double last = 0;    // when its step before ended
    };
    // One message as one rank has it.
    struct Half {
        const Message* m = nullptr;
        std::int32_t rank = 0, channel = 0;
        std::int32_t partner = -1, next = -1;  // matched with; the next unmatched of its side
        std::int32_t lane = -1, waiter = -1;   // that posted it; that waits for it
        double posted = -1, done = never;      // done: when a poll would find it complete
        double begin = 0, there = 0;           // of the transfer; its end, or never while it is not known
        double idle = 0;                       // what the lane had waited when it began
        double busy = 0;                       // what of it needs a lane that computes nothing
    };
    struct Channel {
        std::int32_t head[2] = {-1, -1}, tail[2] = {-1, -1};  // unmatched receives, sends
    };
    // What must happen next to a matched message, and which rank's poll makes it happen.
    enum class Stage : std::uint8_t { asked, granted, arriving, matching, over };
    struct Meeting {
        std::int32_t send = 0, receive = 0;
        Stage stage = Stage::over;
        double due = -1;  // of its event, if it has one
    };
    struct Event {
        double time;
        std::int32_t what;  // a lane, or the number of lanes + a meeting, or -1 - a flow
        // In a heap the greatest is on top.
        bool operator<(const Event& o) const { return time > o.time || (time == o.time && what > o.what); }
    };
    struct Rank {
        std::int32_t first_lane = 0, first_half = 0;
        std::vector<TileWork*> works;        // by work; null for tasks
        std::vector<std::int32_t> meetings;  // that wait for a poll
        double copies_until = 0;             // of messages from its host
        std::int32_t card = 0;               // that its messages to other hosts take
        bool helped = false;                 // by a lane that only waits, and moves messages meanwhile
    };
    // CPUs of fewer than the lanes on them; those that compute have equal parts.
    struct Cpus {
        double count = 1, given = 0, at = 0;  // to each lane that computed all the time until `at`
        int busy = 0;
        std::vector<std::int32_t> lanes;
        double share(int lanes_at_work) const { return lanes_at_work > count ? count / lanes_at_work : 1; }
    };
    // A message that is on the network.
    struct Carried {
        std::int32_t send = -1;  // -1: it has arrived
        double fixed_s = 0;      // from the end of its flow to its arrival
    };
    // Of a host, where the network's topology is not known.
    struct Card {
        double out_until = -never, in_until = -never;  // busy with what has been posted
    };

    void check() const;
    void set_up_messages();
    void set_up_work();
    void set_up_cpus();
    void begin_work(Lane& lane, double now);
    void end_work(Lane& lane, double now);
    void lengthen(Lane& lane, double more, double now);
    void give(Cpus& cpus, double now);
    void retime(Cpus& cpus, double now);
    double slowed(const Lane& lane, double work_s) const;
    void finish_step(Lane& lane, double now);
    std::optional<double> go_on(Lane& lane, double now);
    void start_slice(Thread& thread, double now);
    void resume(Lane& lane, double now);
    bool idles(const Lane& lane) const {  // nothing else runs on its thread
        return lane.thread < 0 || !threads_[lane.thread].busy;
    }
    double begin_step(Lane& lane, double now);
    double compute(Lane& lane, const Tile& tile, double now);
    bool runs_round_robin(const Schedule& s) const {
        return options_.threads > 0 && static_cast<int>(s.lanes.size()) > options_.threads;
    }
    void check_rates(const Schedule& s) const;
    const KernelRate& kernel_rate(const NestWork& nest) const {
        return rates_.kernels[rates_.kernels.size() == 1 ? 0 : static_cast<std::size_t>(nest.kernel)];
    }
    void post(Lane& lane, std::int32_t half, double now);
    double wait(Lane& lane, std::int32_t half, double now);
    double found(const Half& half, const Lane& lane) const;
    void meet(std::int32_t send, std::int32_t receive, double now);
    void seek_poll(std::int32_t meeting, std::int32_t rank, double now);
    void advance(std::int32_t meeting, double now);
    void start_transfer(Half& send, Half& receive, double now);
    void deliver(Half& send, Half& receive, double now);
    void end_transfer(Half& send, Half& receive, double now);
    void leave(std::int32_t send, double now, double ahead);
    double arrival(const Half& send, double now);
    void end_flow(std::int32_t flow, double now);
    void push_ends();
    void complete(Half& half, double when);
    void signal(Lane& lane, std::int32_t count, double now);
    double await(Lane& lane, const Step& step, double now);
    double next_poll(std::int32_t rank, double now) const;
    void polls(Lane& lane, double now);
    void poll(std::int32_t rank, double now);
    void refuse_stuck() const;
    std::string name(const Lane& lane) const;
    Timeline timeline() const;

    void push(double time, std::int32_t what);
    Lane& lane_of(std::int32_t rank, int number) { return lanes_[ranks_[rank].first_lane + number]; }
    std::int32_t index(const Lane& lane) const { return static_cast<std::int32_t>(&lane - lanes_.data()); }
    const Link& link(const Half& half) const { return machine_.link(half.rank, half.m->peer); }
    // Whether a message leaves with its post: where large ones move without any polls, their bytes are not asked for.
    static bool leaves(const Link& l, double bytes) { return bytes <= l.eager_bytes || l.hidden_unpolled > 0.8; }
    // What the lane has waited in all until now, as far as its thread had nothing else to do.
    double waited(const Lane& lane, double now) const {
        if (lane.state != State::waiting || !idles(lane)) return lane.waited;
        const double last = lane.thread < 0 ? lane.begin : threads_[lane.thread].last;
        return lane.waited + std::max(0.0, now - std::max(lane.begin, last));
    }

    std::span<const Schedule> schedules_;
    const Machine& machine_;
    const Rates& rates_;
    const PredictOptions& options_;
    std::vector<Lane> lanes_;
    std::vector<Thread> threads_;    // of ranks with more lanes than threads
    std::vector<PartsCount> parts_;  // by lane; what lanes do that take turns counts for the first of their thread
    std::vector<Rank> ranks_;
    std::vector<Card> cards_;
    std::optional<Flows> flows_;    // where the network's topology is known
    std::vector<Carried> carried_;  // by flow
    std::vector<Cpus> cpus_;
    double burst_bytes_ = 0;          // that a rested host may send ahead
    std::vector<std::int32_t> host_;  // of each rank
    std::vector<Half> halves_;
    std::vector<Channel> channels_;
    std::vector<Meeting> meetings_;
    std::vector<std::unique_ptr<TileWork>> works_;
    std::vector<Event> events_;  // a heap
    double last_end_ = 0;
};

}  // namespace tilewave
