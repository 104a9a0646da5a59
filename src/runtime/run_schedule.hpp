// The parts of run_schedule(), for callers that agree by themselves.
#pragma once
#include "tilewave/run_schedule.hpp"

namespace tilewave {

/// What this rank can tell before a run. Local.
/// @throws ConfigError as run_schedule()
void check_run(Context& context, const Schedule& schedule, std::span<const Binding> bindings,
               const ScheduleCalls& calls, std::int64_t times = 1);

/// Whether the messages that ranks post meet: as many between two ranks from either side, of equal tags and sizes.
/// Collective; rank 0 is sent two numbers for each two ranks that have messages.
/// @throws ConfigError on every rank
void compare_messages(Transport& transport, const Schedule& schedule);

/// The run, of schedules that check_run() and compare_messages() have passed. Collective.
ScheduleReport execute_agreed(Context& context, const Schedule& schedule, std::span<const Binding> bindings,
                              const ScheduleCalls& calls, std::int64_t times = 1);

}  // namespace tilewave
