// Nests with a pivot, ready to run: the kernel called for the rows of panels and updates.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "arrays/moving_memory.hpp"
#include "generate/pivot/pivot.hpp"
#include "run/run_schedule.hpp"

namespace tilewave {

/// What a place of the kernel is: the point's element, the pivot row's, the pivot column's, or the one in both; or an
/// element of an array that is only read.
enum class PivotRead : std::uint8_t { point, row, column, corner, operand };

struct PivotPlace {
    PivotRead what = PivotRead::point;
    int array = 0;  ///< which of the matrices, or of the operands
};

/// An array that is only read: where its element of loop indices 0 would be, and bytes from index to index.
struct PivotOperand {
    std::byte* data = nullptr;
    Index stride_bytes;
};

struct PivotBody {
    Kernel kernel;  ///< its rows go along j; their points are independent
    std::vector<PivotPlace> places;
    std::vector<PivotOperand> operands;
    /// The text of what the kernel has raised.
    std::function<std::string(std::int64_t site, const Index& point)> explain;
};

/// The functions of PivotTask. They compute any part of a problem in the plain loops' order, as far as points depend on
/// each other.
std::vector<TaskFunction> pivot_tasks(const PivotProblem& problem, const PivotPlan& plan, int ranks, PivotBody body);

/// Ranks agree between making it and run().
class PivotRun {
public:
    /// Local. @throws std::bad_alloc, std::system_error; ConfigError as check_run()
    PivotRun(Context& context, const PivotProblem& problem, const PivotPlan& plan, PivotBody body);
    /// `matrices`: where this rank's rows of each matrix are. Collective.
    /// @throws as ReadySchedule::run
    ScheduleReport run(const std::vector<Binding>& matrices) { return ready_.run(moving_.with(matrices)); }
    std::int64_t kept_bytes() const { return moving_.bytes(); }

private:
    Schedule schedule_;
    MovingMemory moving_;
    std::vector<TaskFunction> tasks_;
    ReadySchedule ready_;
};

}  // namespace tilewave
