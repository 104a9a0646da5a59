// The parts of run_schedule(), for callers that agree by themselves.
#pragma once
#include <vector>

#include "run/collective_run.hpp"
#include "tilewave/engine/run_schedule.hpp"

namespace tilewave {

/// The checks of a run that this rank can make alone. Local.
/// @throws ConfigError as run_schedule()
void check_run(Context& context, const Schedule& schedule, std::span<const Binding> bindings,
               const ScheduleCalls& calls, std::int64_t times = 1);

/// Whether the messages that ranks post meet: as many between two ranks from either side, of equal tags and sizes.
/// Collective; rank 0 is sent two numbers for each two ranks that have messages.
/// @throws ConfigError on every rank
void compare_messages(Transport& transport, const Schedule& schedule);

/// The events of all ranks on rank 0, from those of each; elsewhere nothing. `threads`: that its lanes share; 0: each
/// has its own. Collective.
Timeline gather_events(Transport& transport, const Timeline& local, int threads);

/// A run with all that it takes beyond the arrays. Ranks agree between making it and run(), so that what one of them
/// lacks is an error of all before anything moves.
class ReadySchedule {
public:
    /// The schedule, and what `calls` names, must live on. Local. `record`: the report has a timeline, where the
    /// context's options ask for it.
    /// @throws std::bad_alloc, std::system_error
    ReadySchedule(Context& context, const Schedule& schedule, const ScheduleCalls& calls, std::int64_t times = 1,
                  bool record = true);
    ReadySchedule(const ReadySchedule&) = delete;
    ReadySchedule& operator=(const ReadySchedule&) = delete;

    /// After check_run() and compare_messages(); once or again and again. Collective.
    /// @throws KernelError, OutOfResources, MpiError, each on every rank
    ScheduleReport run(std::span<const Binding> bindings);

private:
    Programs programs() const { return {calls_.kernels, operations_, calls_.combinings}; }
    ScheduleReport report(const RunEnding& end, const Timeline& local);

    Context& context_;
    ScheduleCalls calls_;
    std::vector<TaskFunction> operations_;
    ExecuteOptions options_;
    std::int64_t times_;
    CachedExecution execution_;
};

}  // namespace tilewave
