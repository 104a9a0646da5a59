#include "tilewave/executor.hpp"

#include <chrono>
#include <ctime>

#include "execution.hpp"

namespace tilewave {

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_s() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Outcome execute(const Schedule& schedule, std::span<const Binding> bindings, const Kernel& kernel,
                Transport& transport, Lanes& lanes, const ExecuteOptions& options) {
    if (bindings.size() != schedule.arrays.size())
        throw ConfigError("execute: " + std::to_string(bindings.size()) + " bindings for " +
                          std::to_string(schedule.arrays.size()) + " arrays");
    if (transport.rank() != schedule.rank || transport.size() != schedule.ranks)
        throw ConfigError("execute: the schedule is for rank " + std::to_string(schedule.rank) + " of " +
                          std::to_string(schedule.ranks) + ", the transport is rank " + std::to_string(transport.rank()) +
                          " of " + std::to_string(transport.size()));
    if (!kernel.row && !schedule.tiles.empty()) throw ConfigError("execute: the schedule computes but no kernel was given");
    if (const std::size_t n = schedule.places.size() + kernel.tables.size() + static_cast<std::size_t>(kernel.bests()); n > max_places)
        throw ConfigError("execute: a kernel has " + std::to_string(n) + " places, tables and bests; at most " +
                          std::to_string(max_places) + " are allowed");
    transport.must_work();
    const Combine none;
    Execution run(schedule, bindings, kernel, none, transport, options);
    lanes.run(std::max<int>(1, static_cast<int>(schedule.lanes.size())), [&](int l) {
        if (l < static_cast<int>(schedule.lanes.size())) run.lane(l);
    });
    return run.outcome();
}

}  // namespace tilewave
