// What computes the tasks of nests with a pivot: the kernel called for the rows of panels and updates.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "generate/pivot/pivot.hpp"
#include "predict/rate.hpp"
#include "tilewave/context.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/engine/task.hpp"

namespace tilewave {

/// Where an array is for the loops: where its element of loop indices 0 would be, and bytes from index to index.
struct LoopMemory {
    std::byte* data = nullptr;
    Index stride_bytes = {};
};
/// The same of a place, in an array whose element `first` is at `memory`.
LoopMemory memory_of(const SweepProblem& problem, const Access& place, const Binding& memory, const Index& first);

/// The functions of PivotTask. They compute any part of a problem in the plain loops' order, as far as points depend on
/// each other.
class PivotTasks {
public:
    using Explain = std::function<std::string(const Failure&)>;
    PivotTasks(const SweepProblem& problem, const Plan& plan);
    /// What the tasks call from now on, on any lane. `operands`: by access, of arrays that are only read.
    void set(const Kernel& kernel, std::vector<LoopMemory> operands, Explain explain);
    std::vector<TaskFunction> functions() const;

    /// Times of a kernel on a task of `schedule`, a rank's, as PreparedSweep::sample() gives them: by all lanes at
    /// once, on memory whose elements are `values`, by array. set() comes before.
    std::vector<RateSample> sample(const Schedule& schedule, const std::vector<std::vector<std::byte>>& values,
                                   Context& context, double budget_s) const;

    struct Calls;

private:
    std::shared_ptr<Calls> calls_;
};

}  // namespace tilewave
