// Runs a schedule that a program has made itself.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tilewave/context.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/engine/schedule.hpp"
#include "tilewave/engine/task.hpp"
#include "tilewave/engine/timeline.hpp"

namespace tilewave {

/// What the numbers in a schedule's works call.
struct ScheduleCalls {
    std::span<const TaskFunction> operations = {};  ///< by TaskWork::operation
    std::span<const Kernel> kernels = {};           ///< by NestWork::kernel
    std::span<const Combining> combinings = {};     ///< by array; needed where there are combine steps
    /// The text of what a kernel has raised; without it errors have its number and place.
    std::function<std::string(int kernel, const Failure& failure)> explain = {};
};

/// How a run of a schedule went. Equal on all ranks but for what rank 0 has alone.
struct ScheduleReport {
    double time_s = 0;  ///< of the slowest rank
    bool interrupted = false;
    Parts parts;        ///< rank 0: where the lanes' time went, on average; 0 where nothing was recorded
    Timeline timeline;  ///< rank 0: all ranks' events; empty where nothing was recorded
};

/// Runs this rank's schedule, with all others running theirs: nothing is planned, and arrays are used as they lie.
/// `bindings`: where each array's storage lies in memory. Tags may be any from 0 on; nothing else meets them.
///
/// A schedule may have more lanes than the context has threads: lane l is one of thread l modulo them. A thread runs
/// its lanes round robin, one compute step at a time, and waits only while none of them can go.
///
/// A block of the schedule runs `times` times. Lanes do not meet between two repetitions. After a failure or an
/// interrupt nothing is computed any more, and messages go on, empty, to the end of the last repetition. The timeline
/// has the first million steps of each lane.
///
/// The ranks first compare which messages they send and receive. check() proves more, and needs all ranks' schedules.
/// Collective.
/// @pre the schedule is this rank's, of as many ranks as the context has (ConfigError on every rank)
/// @pre check_rank() finds nothing (ConfigError on every rank)
/// @pre no array is stored in planes; one binding for each array; an operation or a kernel for every work that has
/// tiles (ConfigError on every rank)
/// @pre times >= 1, equal on all ranks, and times what a repetition adds to a counter < 2^31 (ConfigError on every
/// rank)
/// @pre each message meets another of equal tag and size (ConfigError on every rank)
/// @throws KernelError on every rank when a task or a kernel threw on any, after the run; the arrays that it writes
/// then hold anything
ScheduleReport run_schedule(Context& context, const Schedule& schedule, std::span<const Binding> bindings,
                            const ScheduleCalls& calls, const Caller& caller = {"run_schedule", ""},
                            std::int64_t times = 1);

}  // namespace tilewave
