// Lanes that share CPUs: those that compute have equal parts; a lane that waits takes none.
//
// A lane's step ends when its CPUs have given each lane `due` seconds. How fast they give changes when a lane begins or
// ends, so that ends move: a lane's event counts only if it is of the end that the lane has now.
#include <algorithm>

#include "predict/simulation.hpp"

namespace tilewave {

void Simulation::give(Cpus& cpus, double now) {
    cpus.given += (now - cpus.at) * cpus.share(cpus.busy);
    cpus.at = now;
}

// The ends of those that compute, as fast as it goes now.
void Simulation::retime(Cpus& cpus, double now) {
    for (const std::int32_t l : cpus.lanes) {
        Lane& lane = lanes_[l];
        if (lane.state != State::computing) continue;
        const double end = now + std::max(lane.due - cpus.given, 0.0) / cpus.share(cpus.busy);
        if (end == lane.end) continue;
        lane.end = end;
        push(end, l);
    }
}

// @pre `lane.end` is as with a CPU for the lane alone (not checked)
void Simulation::begin_work(Lane& lane, double now) {
    Cpus& cpus = cpus_[lane.cpus];
    give(cpus, now);
    ++cpus.busy;
    lane.due = cpus.given + lane.end - now;
    retime(cpus, now);
}

void Simulation::end_work(Lane& lane, double now) {
    Cpus& cpus = cpus_[lane.cpus];
    give(cpus, now);
    --cpus.busy;
    lane.state = State::stepping;
    retime(cpus, now);
}

// A compute step that would have ended now.
void Simulation::lengthen(Lane& lane, double more, double now) {
    if (lane.cpus < 0) {
        lane.end += more;
        return;
    }
    const Cpus& cpus = cpus_[lane.cpus];
    lane.due += more;
    lane.end = now + more / cpus.share(cpus.busy);
}

// Seconds of a short step while other lanes compute.
double Simulation::slowed(const Lane& lane, double work_s) const {
    const Cpus& cpus = cpus_[lane.cpus];
    return work_s / cpus.share(cpus.busy + 1);
}

}  // namespace tilewave
