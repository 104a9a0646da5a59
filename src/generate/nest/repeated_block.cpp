// A block of time steps that repeats: what a run of many steps does (src/run/collective_run.hpp).
#include "generate/nest/nest.hpp"
#include "schedule/repeat.hpp"

namespace tilewave {

Schedule repeated_block(const SweepProblem& problem, const Schedule& block) {
    SweepProblem given = problem;
    given.complete();
    Index steps = Index::filled(given.dims(), 0);
    steps[0] = given.space.extent(0);
    // What is read at another time by the next repetition lies somewhere else, but perhaps where this one reads.
    Schedule any_time = block;
    for (Array& a : any_time.arrays)
        if (!(a.lacks & 1) && a.time_buffers == 0) a.view.buffers = 1;
    Schedule s = repeatable(any_time);
    s.arrays = block.arrays;
    s.advance = given.loops * steps;
    return s;
}

}  // namespace tilewave
