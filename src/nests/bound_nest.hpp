// What nest.cpp plans, for bound_nest.cpp.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nests/chain_layout.hpp"
#include "nests/some_points.hpp"
#include "nests/step_points.hpp"
#include "nests/step_row.hpp"
#include "nests/updated_fields.hpp"
#include "tilewave/nest.hpp"

namespace tilewave {

class PreparedSweep;
struct RunsOfPlan;

/// A plan that was chosen, the problem in the coordinates that it cuts, and the schedule.
struct PlannedNest {
    SweepProblem problem;
    Plan plan;
    double time_s = 0;  ///< predicted
    std::shared_ptr<PreparedSweep> sweep;
    std::shared_ptr<RunsOfPlan> runs = {};
};

/// A nest that was planned, for a block of its time steps where it has more.
struct ReadyNest {
    PlannedNest planned;
    std::optional<std::int64_t> block_steps;
    std::vector<NestOperandPart> operands;  ///< as NestProblem's
    LoopPoints points;

    /// The text of a failure whose point is of the loops as they were given.
    std::function<std::string(const Failure&)> explained(std::function<std::string(const Failure&)> text) const {
        return [text = std::move(text), points = points](Failure failure) {
            failure.point = points.given(failure.point);
            return text(failure);
        };
    }
};

/// The runs of a nest: of one that writes rows for several time steps those of the steps that have one row of each
/// array. Pure; none for other nests.
/// @pre the fields have the rows (ConfigError)
std::vector<ChainTurn> turns_of(const NestLoops& loops, std::span<const ArrayReads> arrays);

/// Runs a nest that writes rows for several time steps; as run_nest(). Collective.
Report run_rows(Context& context, const NestLoops& loops, const PlanRequest& request,
                std::span<const ArrayReads> arrays, const Kernel& kernel, const std::string& body,
                const std::function<std::string(const Failure&)>& explain, std::span<const StepPoints> points);

/// The kernel of a nest, which leaves points out where its problem has more than are to be computed, and updates
/// fields.
class NestKernel {
public:
    /// @pre what `all` refers to lives on
    explicit NestKernel(const Kernel& all) : all_(all), made_(all) {}
    void take(const NestProblem& nest, std::span<const ArrayReads> arrays);
    const Kernel& get() const { return made_; }
    /// That of every point.
    const Kernel& body() const { return all_; }
    /// What runs begin and end with; null where they update nothing.
    UpdatedFields* updated() const { return updated_.get(); }

private:
    Kernel all_, made_;
    std::unique_ptr<UpdatedFields> updated_;
    std::unique_ptr<SomePoints> some_;
};

/// Agrees on what `call` is given, and plans it where any rank has no plan for it; collective. `halos`: by array, or
/// none. `whole`: the plan, or null. `kernel` is made for the points of the problem.
/// @throws as run()
ReadyNest plan_nest(Context& context, const NestLoops& loops, PlanRequest request, std::span<const ArrayReads> arrays,
                    NestKernel& kernel, const std::string& body, const std::string& call, const LeastHalos& halos = {},
                    const Plan* whole = nullptr);

}  // namespace tilewave
