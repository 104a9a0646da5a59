#include "execute/computers/tasks.hpp"

#include <string>

#include "core/clock.hpp"

namespace tilewave {

TaskComputer::TaskComputer(const Schedule& schedule, std::span<const TaskFunction> operations)
    : s_(schedule), operations_(operations) {
    for (const Tile& t : s_.tiles) {
        const TaskWork* task = s_.works[t.work].task();
        if (!task) continue;
        const auto o = static_cast<std::size_t>(task->operation);
        if (task->operation < 0 || o >= operations_.size() || !operations_[o])
            throw ConfigError("execute: a task calls operation " + std::to_string(task->operation) + "; " +
                              std::to_string(operations_.size()) + " were given");
    }
}

void TaskComputer::compute(Run& run, int lane, const Tile& tile) {
    const Work& work = s_.works[tile.work];
    const TaskWork& task = *work.task();
    const ArrayMemory& memory = run.memory(lane);
    TaskCall call{work.number, lane, task.amount, {}, {}};
    const auto views = [&](const std::vector<Region>& regions, std::vector<RegionView>& into) {
        for (const Region& r : regions)
            into.push_back({r.box.empty() ? nullptr : memory.address(r.array, r.box.lo), r.box,
                            memory.binding(r.array).stride_bytes, s_.arrays[r.array].item_bytes});
    };
    views(task.reads, call.reads);
    views(task.writes, call.writes);
    double begin = now_s();
    operations_[task.operation](call);
    // A task counts a point a microsecond: a few long ones are as much reason to look around as many short ones.
    run.pace(lane, 1 + static_cast<std::int64_t>((now_s() - begin) * 1e6), begin);
    run.spent(lane, begin);
}

}  // namespace tilewave
