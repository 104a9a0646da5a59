// What computes the tasks of a nest whose schedule has tasks of its own: one class for each such generator.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "predict/rate.hpp"
#include "tilewave/context.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/engine/task.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// Where an array is for the loops: where its element of loop indices 0 would be, and bytes from index to index.
struct LoopMemory {
    std::byte* data = nullptr;
    Index stride_bytes = {};
    int buffers = 1;  ///< of time steps: that of the last step of a run, then of each step before
    std::int64_t buffer_bytes = 0;
};
/// The same of a place, in an array whose element `first` is at `memory`. `mirrored`: its first dimension is time, of
/// which loop index 0 takes the last element.
LoopMemory memory_of(const SweepProblem& problem, const Access& place, const Binding& memory, const Index& first,
                     bool mirrored = false);

class NestTasks {
public:
    using Explain = std::function<std::string(const Failure&)>;
    virtual ~NestTasks() = default;
    /// What the tasks call from now on, on any lane: until the end of a run. `places`: by access, as memory_of() of the
    /// arrays' memory. `moving`: of the schedule's arrays that are none of the problem's.
    virtual void set(const Kernel& kernel, std::vector<LoopMemory> places, std::span<const Binding> moving,
                     Explain explain) = 0;
    /// The schedule's first time step is `first`, and `done` of the run's `steps` have been made.
    virtual void begin_steps(std::int64_t first, std::int64_t done, std::int64_t steps) = 0;
    /// What the kernel's values have been reduced to since then, on this rank.
    virtual std::vector<Reduced> reduced() const = 0;
    /// By TaskWork::operation.
    virtual std::vector<TaskFunction> functions() = 0;
    /// Bytes from a row's point to the next, by access; `plain`: where the memory of the arrays says so.
    virtual std::vector<std::int64_t> row_steps(std::vector<std::int64_t> plain) const = 0;
    /// Times of a kernel on a task of `schedule`, a rank's, as PreparedSweep::sample() gives them: by all lanes at
    /// once, on memory whose elements are `values`, by array. set() comes before.
    virtual std::vector<RateSample> sample(const Schedule& schedule, const std::vector<std::vector<std::byte>>& values,
                                           Context& context, double budget_s) = 0;
};

/// Seconds of a call of a task, the median of some within about `budget_s`; -1 where the kernel raises. Local.
double median_time(double budget_s, const std::function<void()>& call);

/// Null where the plan's schedules have tiles of the nest.
std::unique_ptr<NestTasks> tasks_of(const SweepProblem& problem, const Plan& plan, int rank);

}  // namespace tilewave
