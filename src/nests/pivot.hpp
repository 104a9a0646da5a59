// What computes the tasks of nests with a pivot: the kernel called for the rows of panels and updates.
#pragma once
#include <memory>

#include "generate/pivot/pivot.hpp"
#include "nests/tasks.hpp"

namespace tilewave {

/// They compute any part of a problem in the plain loops' order, as far as points depend on each other.
class PivotTasks final : public NestTasks {
public:
    PivotTasks(const SweepProblem& problem, const Plan& plan);
    void set(const Kernel& kernel, std::vector<LoopMemory> places, std::span<const Binding> moving,
             Explain explain) override;
    void begin_steps(std::int64_t /*first*/, std::int64_t /*done*/, std::int64_t /*steps*/) override {}
    std::vector<Reduced> reduced() const override;
    std::vector<TaskFunction> functions() override;
    std::vector<std::int64_t> row_steps(std::vector<std::int64_t> plain) const override;
    std::vector<RateSample> sample(const Schedule& schedule, const std::vector<std::vector<std::byte>>& values,
                                   Context& context, double budget_s) override;

    struct Calls;

private:
    std::shared_ptr<Calls> calls_;
};

}  // namespace tilewave
