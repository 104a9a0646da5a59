// Nests whose schedules have tasks: what such a task calls, and a run of it.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "arrays/moving_memory.hpp"
#include "run/run_schedule.hpp"

namespace tilewave {

/// The kernel of a nest, whose rows go along the last loop and have independent points.
struct NestBody {
    Kernel kernel;
    /// The text of what the kernel has raised.
    std::function<std::string(std::int64_t site, const Index& point)> explain;

    /// The points of a row from `index` on. @throws KernelError
    void row(char* const* pointers, const std::int64_t* step, std::int64_t points, const Index& index) const {
        Index along = Index::filled(index.n, 0);
        along[index.n - 1] = 1;
        const std::int64_t code = kernel.row(pointers, step, points, index.begin(), along.begin(), kernel.env);
        if (code != 0) fail(code, index);
    }
    [[noreturn]] void fail(std::int64_t code, Index index) const {
        index[index.n - 1] += code / error_sites;
        throw KernelError(explain(code % error_sites, index));
    }
};

/// A schedule of tasks with the memory of the arrays that turn. Ranks agree between making it and run().
class TaskNestRun {
public:
    /// Of `matrices` arrays the memory is given to run(). Local.
    /// @throws std::bad_alloc, std::system_error; ConfigError as check_run()
    TaskNestRun(Context& context, Schedule schedule, std::vector<TaskFunction> tasks, const std::vector<Binding>& some,
                std::int64_t times = 1)
        : schedule_(std::move(schedule)),
          moving_(schedule_),
          tasks_(std::move(tasks)),
          ready_(context, schedule_, {tasks_, {}}, times) {
        check_run(context, schedule_, moving_.with(some), {tasks_, {}}, times);
    }
    /// `matrices`: where this rank's part of each is. Collective. @throws as ReadySchedule::run
    ScheduleReport run(const std::vector<Binding>& matrices) { return ready_.run(moving_.with(matrices)); }
    /// The bindings of all arrays, but for these.
    std::vector<Binding> with(const std::vector<Binding>& matrices) const { return moving_.with(matrices); }
    std::int64_t kept_bytes() const { return moving_.bytes(); }

private:
    Schedule schedule_;
    MovingMemory moving_;
    std::vector<TaskFunction> tasks_;
    ReadySchedule ready_;
};

}  // namespace tilewave
