// Virtual lanes at run time: a thread goes from lane to lane, and waits only where none of them can go.
#include "schedule/turns.hpp"
#include "execute/execution.hpp"

namespace tilewave {

void Execution::take_turns(int thread) {
    Turns turns(thread, threads_, static_cast<int>(s_.lanes.size()));
    double (*const clock)() = options_.cpu_time ? cpu_s : now_s;
    double last = options_.record ? clock() : 0;
    int left = 0;  // lanes that have steps left
    for (int i = 0; i < turns.count(); ++i) {
        const auto l = static_cast<std::size_t>(turns.lane(i));
        positions_[l] = 0;
        left += !s_.lanes[l].empty();
        if (options_.record) ends_[l].push_back(last);
    }
    const auto unfinished = [&](int l) {
        return positions_[static_cast<std::size_t>(l)] < s_.lanes[static_cast<std::size_t>(l)].size();
    };
    const auto can_go = [&](int l) {
        const auto at = static_cast<std::size_t>(l);
        return unfinished(l) && ready(s_.lanes[at][positions_[at]]);
    };
    while (left > 0) {
        int l = turns.next(can_go);
        for (Waiting waiting(options_.crowded); l < 0; l = turns.next(can_go)) {
            progress(thread);
            if ((l = turns.next(can_go)) >= 0) break;
            int stuck = 0;
            while (!unfinished(turns.lane(stuck))) ++stuck;
            stuck = turns.lane(stuck);
            pause(waiting, stuck, positions_[static_cast<std::size_t>(stuck)]);
        }
        take_turn(turns, l, last);
        left -= !unfinished(l);
        // Messages of the lanes that wait must not depend on those that can go.
        if (broken_.load(std::memory_order_relaxed)) throw MpiError("another lane of this rank left the run");
        progress(thread);
    }
}

// `last`: when the thread's step before ended. What it does counts once, so a step begins there.
void Execution::take_turn(Turns& turns, int l, double& last) {
    const auto at = static_cast<std::size_t>(l);
    const auto& steps = s_.lanes[at];
    std::size_t& i = positions_[at];
    for (; i < steps.size() && ready(steps[i]) && turns.takes(steps[i].op); ++i) {
        if (l == 0) position_ = i;
        perform(l, steps[i]);
        if (!options_.record) continue;
        begins_[at].push_back(last);
        last = options_.cpu_time ? cpu_s() : now_s();
        ends_[at].push_back(last);
    }
}

}  // namespace tilewave
