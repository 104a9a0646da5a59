// Runs a Schedule: pinned lanes, counters between them, polls inside compute.
#pragma once
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "core/clock.hpp"
#include "execute/lanes/lanes.hpp"
#include "tilewave/engine/fast_paths.hpp"
#include "tilewave/engine/kernel.hpp"
#include "tilewave/engine/schedule.hpp"
#include "tilewave/engine/task.hpp"
#include "tilewave/engine/timeline.hpp"
#include "tilewave/engine/transport.hpp"

namespace tilewave {

class Alarms;
class StepVisitor;
class WindowMemory;

struct ExecuteOptions {
    std::int64_t times = 1;        ///< so often a schedule's block runs
    double poll_period_s = 50e-6;  ///< between polls inside compute; 0: never inside compute
    double stall_s = 30;           ///< a wait this long is reported once to `stalled`
    bool crowded = false;          ///< more threads than CPUs
    int threads = 0;        ///< at most so many, which more lanes share (src/schedule/round_robin.hpp); 0: one a lane
    bool record = true;     ///< note when each step ends
    bool events = true;     ///< make the timeline of it
    bool cpu_time = false;  ///< its times are what the lane's thread had of a CPU, not what passed
    double clock_offset_s = 0;  ///< added to this rank's clock to give rank 0's
    /// Called by lane 0 about every 50 ms with the part of its steps done; true interrupts the run. Below 0: once more,
    /// at its end. Above 1: by a wait on which other ranks rely, so that true is only for a caller who insists.
    std::function<bool(double)> heartbeat;
    std::function<void(const std::string&)> stalled;  ///< default: a line on stderr
    /// Lane 0's staged messages may lie in memory of the transport. @pre none is sent from a buffer that another
    /// message or the array has filled, none is combined (not checked)
    bool in_transport = false;
    PathsOff paths_off = 0;               ///< fast paths that are switched off
    WindowMemory* window = nullptr;       ///< of the arrays that have planes (src/execute/window/window_memory.hpp)
    int first_tag = 0;                    ///< added to the tags of the schedule's messages
    std::int64_t first_time = 0;          ///< added to loop index 0 for the kernel and in errors: first step of a block
    std::int64_t time_of_repetition = 0;  ///< what each repetition adds to it, of a schedule that says nothing of time
    std::span<const StepVisitor> visitors = {};  ///< by kernel, after each time step (src/execute/step_visitor.hpp)
    std::int64_t reduced_from = 0;               ///< reductions are those of the block's repetitions from this one on
    /// And of time steps from this one on.
    std::int64_t reduced_time = std::numeric_limits<std::int64_t>::min();
    bool stopped = false;  ///< computes nothing from the start on, as after a failure in an earlier block
    Alarms* alarms =
        nullptr;  ///< by which ranks stop each other (src/execute/alarms.hpp); null: other ranks go on to their end
};

struct Outcome {
    double time_s = 0;
    bool interrupted = false;
    bool stopped = false;  ///< because another rank was
    std::optional<Failure> failure;
    std::exception_ptr error;  ///< what else ended the computing here, as memory that ran out
    Timeline timeline;
    Recording recording;           ///< where no timeline is made of it
    std::vector<Reduced> reduced;  ///< by reduction of the kernel, of this rank's points
    /// @throws error, if there is one
    void must_have_run() const {
        if (error) std::rethrow_exception(error);
    }
};

/// What the numbers in a schedule's works stand for.
struct Programs {
    std::span<const Kernel> kernels = {};           ///< by NestWork::kernel
    std::span<const TaskFunction> operations = {};  ///< by TaskWork::operation
    std::span<const Combining> combinings = {};     ///< by array, where there are combine steps
};

/// Runs this rank's schedule with all others running theirs. After a failure or an interrupt, here or by an alarm of
/// another rank, tiles are no longer computed and messages are empty, but none is left out, so that every rank ends;
/// the caller then agrees on the outcome. A failure that may only follow from another rank's is not reported. Memory or
/// threads that this rank does not get before its first message are such a failure, too (Outcome::error). Collective in
/// effect (other ranks' messages).
/// @pre bindings.size() == schedule.arrays.size() (ConfigError)
/// @pre transport.rank() == schedule.rank and transport.size() == schedule.ranks (ConfigError)
/// @pre a kernel or an operation for every work that has tiles (ConfigError)
/// @pre at most max_places places and tables a kernel (ConfigError)
/// @throws MpiError
Outcome execute(const Schedule& schedule, std::span<const Binding> bindings, const Programs& programs,
                Transport& transport, Lanes& lanes, const ExecuteOptions& options = {});
inline Outcome execute(const Schedule& schedule, std::span<const Binding> bindings, const Kernel& kernel,
                       Transport& transport, Lanes& lanes, const ExecuteOptions& options = {}) {
    return execute(schedule, bindings, Programs{{&kernel, 1}, {}}, transport, lanes, options);
}

/// Takes part in the messages of `schedule` as a rank that cannot compute for `error`: what execute() does on a rank
/// that has failed, with memory for one message. Collective in effect.
/// @throws MpiError
Outcome pass_empty_messages(const Schedule& schedule, Transport& transport, std::exception_ptr error,
                            const ExecuteOptions& options = {});

}  // namespace tilewave
