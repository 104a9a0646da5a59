// A rank may have more lanes than threads: which lane of a thread goes on, for the executor and the predictor.
#pragma once
#include <algorithm>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// The lanes of one thread, round robin in slices. Lane l belongs to thread l modulo the number of threads.
///
/// A slice has at most one compute step: it ends before the next one, so that what follows the first is posted and
/// signalled at once. It also ends before a step that must wait. Then comes the next lane that can go, in cyclic order
/// of their numbers: a lane that can go gets a slice before any other lane of the thread gets two.
class RoundRobin {
public:
    RoundRobin(int thread, int threads, int lanes)
        : thread_(thread), threads_(threads), count_(std::max(0, (lanes - thread + threads - 1) / threads)) {
        last_ = count_ - 1;
    }

    int thread() const { return thread_; }
    int count() const { return count_; }
    int lane(int i) const { return thread_ + i * threads_; }
    /// The next lane that can go, whose slice begins; -1: none can.
    template <class F>
    int next(F can_go) {
        for (int i = 0, at = last_; i < count_; ++i) {
            at = at + 1 < count_ ? at + 1 : 0;
            if (!can_go(lane(at))) continue;
            last_ = at;
            steps_ = 0;
            computed_ = false;
            return lane(at);
        }
        return -1;
    }
    /// Whether the next step of the lane belongs to its slice; else the slice is over.
    bool in_slice(Op next) {
        if (steps_++ == most_steps || (computed_ && next == Op::compute)) return false;
        computed_ = computed_ || next == Op::compute;
        return true;
    }

    /// Threads for so many lanes where `most` are allowed; 0: one for each.
    static int threads_for(std::size_t lanes, int most) {
        const int n = std::max(1, static_cast<int>(lanes));
        return most > 0 ? std::min(n, most) : n;
    }

private:
    /// Steps of a slice without compute steps: a lane that copies and never waits must not starve the others.
    static constexpr int most_steps = 64;
    int thread_, threads_, count_, last_ = 0, steps_ = 0;
    bool computed_ = false;
};

}  // namespace tilewave
