// Schedules of matrices, ready to run: products, factorizations, solves.
#pragma once
#include <memory>
#include <vector>

#include "arrays/moving_memory.hpp"
#include "execute/blas/factor_tasks.hpp"
#include "run/run_schedule.hpp"

namespace tilewave {

/// A schedule of tasks on matrices with all that it takes beyond them. Ranks agree between making it and run().
class MatrixRun {
public:
    /// `moving`: panels of another run of the same panels, which this one uses, too. Local.
    /// @throws std::bad_alloc, std::system_error
    MatrixRun(Context& context, Schedule schedule, std::vector<TaskFunction> tasks,
              std::shared_ptr<MovingMemory> moving = nullptr)
        : schedule_(std::move(schedule)),
          moving_(moving ? std::move(moving) : std::make_shared<MovingMemory>(schedule_)),
          tasks_(std::move(tasks)),
          ready_(context, schedule_, {tasks_, {}}) {}

    const Schedule& schedule() const { return schedule_; }
    const std::shared_ptr<MovingMemory>& moving() const { return moving_; }
    /// `matrices`: in the order of the schedule's arrays that are no panels. Collective.
    /// @throws as ReadySchedule::run
    ScheduleReport run(const std::vector<Binding>& matrices) { return ready_.run(moving_->with(matrices)); }

private:
    Schedule schedule_;
    std::shared_ptr<MovingMemory> moving_;
    std::vector<TaskFunction> tasks_;
    ReadySchedule ready_;
};

/// The same of a factorization or a solve.
class FactorRun {
public:
    /// What a run tells, beside the matrices: of a solve nothing, of LU pivots, too.
    enum class Tells { nothing, info, pivots };

    /// `rows`: of the matrix. Local.
    /// @throws as MatrixRun
    FactorRun(Context& context, Schedule schedule, std::shared_ptr<const Blas> library, Dtype type, Tells tells,
              std::int64_t rows, std::shared_ptr<MovingMemory> moving = nullptr);

    const MatrixRun& matrices() const { return run_; }
    /// Collective.
    /// @throws as ReadySchedule::run
    ScheduleReport run(const std::vector<Binding>& matrices);
    /// LAPACK's info of the last run; 0: all is well. The same on every rank.
    std::int64_t info() const { return info_; }
    /// Row i was interchanged with row pivots()[i]; the same on every rank.
    const std::vector<std::int64_t>& pivots() const { return pivots_; }

private:
    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

    Context& context_;
    Tells tells_;
    std::shared_ptr<FactorInfo> found_;
    std::int64_t info_ = 0;
    std::vector<std::int64_t> pivots_, room_;  // of the ranks' comparing them
    MatrixRun run_;
};

}  // namespace tilewave
