#include "nests/tasks.hpp"

#include <algorithm>

#include "core/clock.hpp"
#include "nests/gather.hpp"
#include "nests/pivot.hpp"

namespace tilewave {

LoopMemory memory_of(const SweepProblem& problem, const Access& place, const Binding& memory, const Index& first,
                     bool mirrored) {
    LoopMemory found{memory.data, Index::filled(problem.dims(), 0)};
    const NestArray& array = problem.arrays[place.array];
    for (int d = 0; d < array.axes.n; ++d) {
        const int k = static_cast<int>(array.axes[d]);
        const bool back = mirrored && k == 0;
        found.stride_bytes[k] += back ? -memory.stride_bytes[d] : memory.stride_bytes[d];
        found.data +=
            memory.stride_bytes[d] * ((back ? array.shape[d] - 1 - place.offset[k] : place.offset[k]) - first[d]);
    }
    return found;
}

double median_time(double budget_s, const std::function<void()>& call) {
    constexpr std::size_t fewest = 3, most = 50;
    std::vector<double> times;
    try {
        for (const double end = now_s() + budget_s; times.size() < fewest || (now_s() < end && times.size() < most);) {
            const double begin = now_s();
            call();
            times.push_back(now_s() - begin);
        }
    } catch (const KernelError&) {
        return -1;
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
}

std::unique_ptr<NestTasks> tasks_of(const SweepProblem& problem, const Plan& plan, int rank) {
    if (plan.generator == GeneratorKind::pivot) return std::make_unique<PivotTasks>(problem, plan);
    if (plan.generator == GeneratorKind::gather) return std::make_unique<GatherTasks>(problem, plan, rank);
    return nullptr;
}

}  // namespace tilewave
