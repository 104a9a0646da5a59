// Virtual lanes in the predictor: a thread goes from lane to lane as the executor's do.
#include <utility>

#include "predict/simulation.hpp"

namespace tilewave {

// The thread has no lane at work: those that can go have their turns, one after another.
void Simulation::start_slice(Thread& thread, double now) {
    const auto lane_at = [&](int number) -> Lane& { return lanes_[thread.first_lane + number]; };
    while (true) {
        // A lane whose next step must wait is found out when it has its turn, which then takes no time.
        const int number = thread.order.next([&](int l) {
            const State state = lane_at(l).state;
            return state == State::fresh || state == State::ready;
        });
        poll(lane_at(0).rank, now);
        if (number < 0) return;
        Lane& lane = lane_at(number);
        thread.busy = true;
        if (std::exchange(lane.waited_for, false)) {
            lane.state = State::waiting;
            finish_step(lane, now);
        }
        const std::optional<double> over = go_on(lane, now);
        if (!over) return;
        thread.busy = false;
        now = *over;
    }
}

// The event of a lane that takes turns: the run begins, its step is over, or what it waits for is there.
void Simulation::resume(Lane& lane, double now) {
    Thread& thread = threads_[lane.thread];
    if (lane.state == State::waiting || lane.state == State::fresh) {
        lane.waited_for = lane.state == State::waiting;
        lane.state = State::ready;
        if (!thread.busy) start_slice(thread, now);
        return;
    }
    finish_step(lane, now);
    const std::optional<double> over = go_on(lane, now);
    if (!over) return;
    thread.busy = false;
    start_slice(thread, *over);
}

}  // namespace tilewave
