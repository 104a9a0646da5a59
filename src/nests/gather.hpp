// What computes the tasks of nests that gather each time step: the kernel called for the rows of a part of a step.
#pragma once
#include <memory>

#include "generate/gather/gather.hpp"
#include "nests/tasks.hpp"

namespace tilewave {

class GatherTasks final : public NestTasks {
public:
    GatherTasks(const SweepProblem& problem, const Plan& plan, int rank);
    void set(const Kernel& kernel, std::vector<LoopMemory> places, std::span<const Binding> moving,
             Explain explain) override;
    void begin_steps(std::int64_t first, std::int64_t done, std::int64_t steps) override;
    std::vector<Reduced> reduced() const override;
    std::vector<TaskFunction> functions() override;
    std::vector<std::int64_t> row_steps(std::vector<std::int64_t> plain) const override;
    std::vector<RateSample> sample(const Schedule& schedule, const std::vector<std::vector<std::byte>>& values,
                                   Context& context, double budget_s) override;

private:
    struct Calls;
    std::shared_ptr<Calls> calls_;
};

}  // namespace tilewave
