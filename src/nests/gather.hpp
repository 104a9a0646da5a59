// Nests that gather each time step, ready to run: the kernel called for the rows of a part of a step.
#pragma once
#include <memory>
#include <vector>

#include "generate/gather/gather.hpp"
#include "nests/task_nest.hpp"
#include "problem/bounded_loops.hpp"

namespace tilewave {

/// Where a place of the kernel is.
struct GatherPlace {
    int matrix = -1;            ///< whose planes it is in; -1: in memory that does not turn
    int back = 0;               ///< so many steps before the one that is made
    std::byte* data = nullptr;  ///< where loop indices 0 would be
    std::int64_t offset = 0;    ///< in planes: bytes from loop indices 0
    Index stride_bytes;         ///< by loop
};

/// A matrix as it is outside of the planes, and what joins the two.
struct GatherMatrix {
    std::byte* data = nullptr;        ///< where its element 0 of time step 0 would be
    std::int64_t time_bytes = 0;      ///< from one time step to the next; 0: it has the last one only
    std::int64_t written = 0;         ///< the time step that a point writes, from its own
    bool complete = false;            ///< each element is written in each step
    Index extents;                    ///< the dimensions besides time, the cut one first
    Index stride_bytes, plane_bytes;  ///< along these: there, and in a plane
    std::int64_t item_bytes = 0;
};

/// The loops of a nest: which one is time, and which one is divided.
struct GatherLoops : BoundedLoops {
    int time = 0, cut = 1;
    bool down = false;  ///< time
    /// The loop index of time in a step.
    std::int64_t at(std::int64_t step) const { return down ? space.hi[time] - 1 - step : space.lo[time] + step; }
};

/// Ranks agree between making it and run().
class GatherRun {
public:
    /// Local. @throws std::bad_alloc, std::system_error; ConfigError as check_run()
    GatherRun(Context& context, const GatherLoops& loops, const GatherProblem& problem, const GatherPlan& plan,
              NestBody body);
    /// Collective. @throws as ReadySchedule::run
    ScheduleReport run(std::vector<GatherPlace> places, std::vector<GatherMatrix> matrices);
    std::int64_t kept_bytes() const { return run_.kept_bytes(); }

private:
    struct Calls;
    std::shared_ptr<Calls> calls_;
    TaskNestRun run_;
};

}  // namespace tilewave
