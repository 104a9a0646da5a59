// Threads with several lanes, and repeated blocks: a thread switches between its lanes, and waits only where none of
// them can go; a lane begins its next repetition whatever the others do.
#include "schedule/round_robin.hpp"

#include "execute/execution.hpp"
#include "execute/tuning.hpp"

namespace tilewave {

void Execution::run_round_robin(int thread) {
    RoundRobin order(thread, threads_, static_cast<int>(s_.lanes.size()));
    double last = !options_.record ? 0 : options_.cpu_time ? cpu_s() : now_s();
    int left = 0;  // lanes that have steps left
    for (int i = 0; i < order.count(); ++i) {
        begin_lane(order.lane(i), last);
        left += unfinished(order.lane(i));
    }
    const auto can_go = [&](int l) { return goes(l); };
    while (left > 0) {
        int l = order.next(can_go);
        for (Waiting waiting(options_.crowded); l < 0; l = order.next(can_go)) {
            progress(thread);
            if ((l = order.next(can_go)) >= 0) break;
            int stuck = 0;
            while (!unfinished(order.lane(stuck))) ++stuck;
            stuck = order.lane(stuck);
            pause(waiting, stuck, cursors_[stuck].step);
        }
        run_slice(order, l, last);
        left -= !unfinished(l);
        // Messages of the lanes that wait must not depend on those that can go.
        if (broken_.load(std::memory_order_relaxed)) throw MpiError("another lane of this rank left the run");
        progress(thread);
    }
}

// At its first step, which begins at that time.
void Execution::begin_lane(int l, double time) {
    const auto lane = static_cast<std::size_t>(l);
    Cursor& at = cursors_[lane] = {0, 0, Repetitions(s_, lane, options_.times)};
    at.repetitions.advance(at.step, at.repetition);
    if (at.repetition > 0 && !moved_.empty()) move_arrays(l);
    if (options_.record) ends_[lane].push_back(time);
}

// `last`: when the thread's previous step ended, which is where the next one begins, so that no time counts twice.
void Execution::run_slice(RoundRobin& order, int l, double& last) {
    const auto lane = static_cast<std::size_t>(l);
    Cursor& at = cursors_[lane];
    while (unfinished(l)) {
        const Step step = next_step(l);
        if (!ready(step) || !order.in_slice(step.op)) return;
        if (l == 0 && serves(l)) {
            position_ = at.step;
            repetition_ = at.repetition;
        }
        perform(l, step);
        // Repetitions of a block of time steps are few.
        if (options_.record && (!repeats() || s_.advance.n > 0 || ends_[lane].size() <= tuning::most_noted_steps)) {
            begins_[lane].push_back(std::max(last, ends_[lane].back()));  // the lane may come from another thread
            last = options_.cpu_time ? cpu_s() : now_s();
            ends_[lane].push_back(last);
            if (step.op == Op::wait && repeats()) note_request(l, step);
        }
        ++at.step;
        const std::int64_t before = at.repetition;
        at.repetitions.advance(at.step, at.repetition);
        if (at.repetition != before && !moved_.empty()) move_arrays(l);
    }
}

// The step of the schedule, with the counts of the lane's repetition.
Step Execution::next_step(int l) const {
    const Cursor& at = cursors_[l];
    Step step = s_.lanes[l][at.step];
    if (at.repetition == 0) return step;
    const auto by = static_cast<std::int32_t>(at.repetition);
    if (step.op == Op::signal) step.count += by * growth_[l];
    if (step.op == Op::await) step.count += by * growth_[step.item];
    return step;
}

// Notes a message that is over, before it is posted again.
void Execution::note_request(int l, const Step& step) {
    const Message& m = s_.messages[step.item];
    const double shift = options_.clock_offset_s;
    requests_[l].push_back({s_.rank, l, m.peer, m.tag, m.send, 0, m.bytes, request_table_.posted_s(step.item) + shift,
                            request_table_.completed_s(step.item) + shift});
}

}  // namespace tilewave
