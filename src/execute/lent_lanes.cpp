// Lanes of one rank that lend each other their steps. A thread without a CPU delays those that wait for its lanes: at
// hundreds of hand-overs a run each costs the time until the system gives it a CPU again. So a thread that waits long
// lends its lanes, and takes steps of lent ones that can go: a thread that has a CPU does all there is to do.
#include "execute/execution.hpp"
#include "execute/tuning.hpp"

namespace tilewave {

namespace {

constexpr int lent = -1, finished = -2;
/// Pauses of a thread, about 0.1 us each, before it lends its lanes.
constexpr int rounds_before_lending = 256;

}  // namespace

void Execution::begin_lent() {
    const double now = options_.record ? now_s() : 0;
    waited_.assign(static_cast<std::size_t>(threads_), false);
    for (std::size_t l = 0; l < s_.lanes.size(); ++l) {
        begin_lane(static_cast<int>(l), now);
        holders_[l].value.store(lent, std::memory_order_relaxed);
    }
}

bool Execution::take(int l, int thread) {
    auto& holder = holders_[l].value;
    int now = holder.load(std::memory_order_relaxed);
    return now == thread || (now == lent && holder.compare_exchange_strong(now, thread, std::memory_order_acquire));
}

// Of a lane that the thread holds.
void Execution::give_back(int l) {
    holders_[l].value.store(unfinished(l) ? lent : finished, std::memory_order_release);
}

bool Execution::run_lent(int thread) {
    const int lanes = static_cast<int>(s_.lanes.size());
    RoundRobin own(thread, threads_, lanes), all(0, 1, lanes);
    double last = options_.record ? now_s() : 0;
    Waiting waiting(options_.crowded);
    for (;;) {
        RoundRobin* order = &own;
        int l = own.next([&](int lane) { return take(lane, thread) && goes(lane); });
        if (l < 0) {
            order = &all;
            l = all.next([&](int lane) {
                if (lane % threads_ == thread || !take(lane, thread)) return false;
                if (goes(lane)) return true;
                give_back(lane);
                return false;
            });
        }
        if (broken_.load(std::memory_order_acquire)) throw MpiError("another lane of this rank left the run");
        if (l >= 0) {
            run_slice(*order, l, last);
            if (order == &all || !unfinished(l)) give_back(l);
            if (order == &own) waited_[thread] = false;
            waiting = Waiting(options_.crowded);
            continue;
        }
        bool over = true;  // of all lanes for thread 0, which others leave to it
        for (int lane = 0; lane < lanes; ++lane)
            if (thread == 0 || lane % threads_ == thread)
                over = over && holders_[lane].value.load(std::memory_order_acquire) == finished;
        if (over) return true;
        if (!waited_[thread] && ++waiting.rounds <= rounds_before_lending) {
            waiting.backoff.pause();
            continue;
        }
        for (int i = 0; i < own.count(); ++i)
            if (holders_[own.lane(i)].value.load(std::memory_order_relaxed) == thread) give_back(own.lane(i));
        if (thread > 0 && waited_[thread]) return false;
        if (waited_[thread]) pause_while_lent(waiting);
        waited_[thread] = true;
    }
}

// Thread 0 in a long wait: for interrupts, and for a schedule that does not go on.
void Execution::pause_while_lent(Waiting& waiting) {
    waiting.backoff.pause();
    if (!waiting.backoff.yielding()) return;
    const double now = now_s();
    if (waiting.since == 0) waiting.since = now;
    if (!options_.crowded && now - waiting.since < tuning::spin_s) waiting.backoff.restart();
    look_around(0);
    if (waiting.reported || now - waiting.since <= options_.stall_s) return;
    for (int l = 0; l < static_cast<int>(s_.lanes.size()) && !waiting.reported; ++l) {
        if (!take(l, 0)) continue;
        if (unfinished(l)) report_stall(waiting, now, l, cursors_[l].step);
        give_back(l);
    }
}

}  // namespace tilewave
