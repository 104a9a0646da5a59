// Experiments that a Machine's numbers come from: schedules run by the executor. They return plain samples in
// seconds; what sizes and how often is decided elsewhere (python/tilewave/measure.py).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tilewave/context.hpp"

namespace tilewave::measure {

/// A rank's part in an experiment of two: with whom, and whether it begins. peer < 0: it sits out, and gets nothing.
struct Pair {
    int peer = -1;
    bool first = false;
};

/// Half of each of `rounds` round trips of one message, both ranks waiting for it.
std::vector<double> round_trips(Context& context, Pair pair, std::int64_t bytes, int rounds, bool synchronous);

/// What `turns` times `count` messages in a row cost: posted at once, then an answer.
struct Stream {
    std::vector<double> turn_s;             ///< of the first rank
    std::vector<double> send_s, receive_s;  ///< each post of a message
};
Stream stream(Context& context, Pair pair, std::int64_t bytes, int count, int turns, bool synchronous);

/// A large message, first to second, during computing.
struct OverlapExperiment {
    std::int64_t bytes = 0;    ///< 0: no message, the computing alone
    std::int64_t rows = 1;     ///< of 256 points in the nearest cache that each rank computes meanwhile
    double poll_period_s = 0;  ///< 0: no polls
    bool helper = false;       ///< a second lane that waits, and so polls
    bool synchronous = false;
};
struct OverlapTimes {
    std::vector<double> post_s, compute_s,
        wait_s;  ///< by turn: the message's post; the fixed work; from its end until the message is there
};
OverlapTimes overlap(Context& context, Pair pair, const OverlapExperiment& what, int turns);

/// Mean time of a poll that finds a pending receive not there yet: one sample a turn.
std::vector<double> polls(Context& context, Pair pair, int turns);

/// Until a send is complete that the second rank, busy for delay_s, asks for only then: one sample a turn.
std::vector<double> early_sends(Context& context, Pair pair, std::int64_t bytes, double delay_s, int turns);

/// From a lane's signal to the end of another's await: mean of 100 hand-overs a sample.
std::vector<double> hand_overs(Context& context, int samples);

/// A step of a schedule without what it does: mean over `tiles` tiles of one point, six steps each. No messages pass.
std::vector<double> steps(int tiles, int samples);

/// Passes over `bytes` of separate memory by each of this rank's first `lanes` lanes at once, every element read and
/// written: seconds a pass, `passes` of each lane. Collective over the context; a rank with 0 lanes only takes part.
std::vector<double> memory(Context& context, int lanes, std::int64_t bytes, int passes);

/// Packing `bytes` of float64s, `run_bytes` of them next to each other: seconds a time.
std::vector<double> copies(std::int64_t run_bytes, std::int64_t bytes, int times);

/// Every rank's bytes at rank 0, in rank order. Collective.
std::vector<std::string> gathered(Context& context, const std::string& bytes);

}  // namespace tilewave::measure
