// Schedules of matrices, ready to run: products, factorizations, solves.
#pragma once
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "arrays/moving_memory.hpp"
#include "execute/blas/factor_tasks.hpp"
#include "run/run_schedule.hpp"
#include "tilewave/linalg.hpp"

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

    const std::shared_ptr<MovingMemory>& moving() const { return moving_; }
    /// `matrices`: in the order of the schedule's arrays that are no panels. Collective.
    /// @throws as ReadySchedule::run; Interrupted
    ScheduleReport run(const std::vector<Binding>& matrices);

private:
    Schedule schedule_;
    std::shared_ptr<MovingMemory> moving_;
    std::vector<TaskFunction> tasks_;
    ReadySchedule ready_;
};

/// Rates as the fastest CPU of a machine would have them, of those that rank 0 has measured.
std::vector<OperationRate> on_fastest(std::vector<OperationRate> rates, const Machine& machine);

/// What a schedule is predicted to take; simulated when it is called. Empty on other ranks than 0. `rates`: of its
/// operations, from the schedules of all ranks.
std::function<Prediction()> prediction_of(
    Context& context, std::function<Schedule(int rank)> schedule_of,
    std::function<std::vector<OperationRate>(const std::vector<Schedule>&)> rates);

/// What a run of panels is made from, the same on every rank.
struct PanelWorks {
    FactorPlan plan;
    std::function<Schedule(int rank)> schedule_of;
    std::shared_ptr<const Blas> library;
    Dtype type = Dtype::f8;
    RowPart rows = {};  ///< of a factorization
};

/// A factorization or a solve with all that it takes beyond the matrices. Ranks agree between making it and run().
class FactorRun {
public:
    /// What a run gives besides the matrices: of a solve nothing, of LU pivots, too.
    enum class Gives { nothing, info, pivots };

    /// `rows`: of the matrix. Local.
    /// @throws as MatrixRun
    FactorRun(Context& context, PanelWorks works, Gives gives = Gives::nothing, std::int64_t rows = 0,
              std::shared_ptr<MovingMemory> moving = nullptr);

    const std::shared_ptr<MovingMemory>& moving() const { return run_.moving(); }
    /// Of the panels in flight.
    std::int64_t panels_bytes() const { return run_.moving()->bytes(); }
    /// The report says `moved`, and that the run has so many bytes of copies. Collective.
    /// @throws as MatrixRun::run
    FactorReport run(const std::vector<Binding>& matrices, const std::string& moved = "",
                     std::int64_t copies_bytes = 0);
    /// LAPACK's info of the last run; 0: all is well. The same on every rank.
    std::int64_t info() const { return info_; }
    /// Row i was interchanged with row pivots()[i]; the same on every rank.
    const std::vector<std::int64_t>& pivots() const { return pivots_; }

private:
    void share_info();

    static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

    Context& context_;
    PanelWorks works_;
    Gives gives_;
    std::shared_ptr<FactorInfo> found_;
    std::int64_t info_ = 0;
    std::vector<std::int64_t> pivots_, room_;  // of the ranks' comparing them
    MatrixRun run_;
};

}  // namespace tilewave
