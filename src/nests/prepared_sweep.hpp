// A sweep that is ready to run: schedule, execute, agree on the end, report.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "generate/nest/nest.hpp"
#include "nests/chain_layout.hpp"
#include "nests/step_points.hpp"
#include "nests/tasks.hpp"
#include "nests/tuning.hpp"
#include "predict/rate.hpp"
#include "run/collective_run.hpp"
#include "tilewave/context.hpp"
#include "tilewave/engine/predict.hpp"
#include "tilewave/field.hpp"
#include "tilewave/plan.hpp"
#include "tilewave/report.hpp"

namespace tilewave {
class RollingWindow;
struct SampleMemory;
struct WholeField;
class RestOfSteps;
struct StepBlocks;
}  // namespace tilewave

namespace tilewave {

/// One array of a run: a field, or memory that is whole on this rank (replicated, or in place on
/// one rank), with bytes between neighbours along its dimensions; or a rolling-window array.
struct RunArray {
    FieldStorage* field = nullptr;
    Binding whole;
    /// Of a rolling-window array: the values of elements that points read and none computes, one value
    /// for all, or one for each of PreparedSweep::initial().
    const std::byte* initial = nullptr;
    bool same = true;
    /// Time, loop index 0, is its first dimension and runs backwards: the loops count from the last element.
    bool mirrored = false;
    /// Each run begins with the field's values from before the first one: to the nest it is a rolling window.
    bool anew = false;
};

/// A sweep ready to run, any number of times: the schedule is made once. Of a problem whose loop index 0 is time, what
/// is made serves any number of steps from that of the problem on: the schedule is run block after block
/// (src/nests/step_blocks.hpp).
class PreparedSweep {
public:
    /// Local and pure but for `context`'s rank.
    /// @throws ConfigError as SweepProblem::validate and Plan::validate; for more messages between
    ///   two ranks than the transport has tags
    PreparedSweep(Context& context, SweepProblem problem, Plan plan);
    ~PreparedSweep();

    /// Brings the fields into the plan's layout, runs, agrees on the end. Collective; beyond the
    /// work it costs a small allreduce and, where recorded, a gather of what lanes noted, eight bytes a step.
    /// `explain` makes the text of this rank's kernel failure. `steps`: of time, after prepare_steps(); without, those
    /// of the problem. `before`: what the call took on this rank before run() was called, to be counted in the report.
    /// Where points read earlier time steps at other places than theirs, and elements outside the space had other
    /// values then, each time step is one block. `first_step` is what loop index 0 begins with, where it is
    /// time: arrays that have it as a dimension are read from there on. `points` are visited after each time step.
    /// `whole`: fields in place of memory that is whole.
    /// @pre one RunArray for each array of the problem (ConfigError); with `points` a problem of one time step
    /// @throws KernelError on every rank when the kernel failed on any
    Report run(std::span<const RunArray> arrays, const Kernel& kernel,
               const std::function<std::string(const Failure&)>& explain, std::optional<std::int64_t> steps = {},
               const CallTimes& before = {}, std::int64_t first_step = 0, std::span<const StepPoints> points = {},
               std::span<const WholeField> whole = {});

    /// Makes what is left of `steps` steps after whole blocks ready to run, where that is not ready: a schedule of
    /// fewer than two blocks. Local.
    /// @pre loop index 0 is time, for which every array that is written has time buffers and none is a
    ///   rolling window; no bound of the loops depends on it; arrays that have it as a dimension have all steps; steps
    ///   >= those of the problem (ConfigError)
    void prepare_steps(std::int64_t steps);

    /// Times of this kernel on tiles, for fit_rate: those of the plan on memory like the arrays', computed by all
    /// lanes at once and without messages, in about `budget_s` seconds. The arrays are read for what their elements
    /// are like, and not changed. Where there are several lanes, a fourth sample is of one lane while the others rest.
    /// Local; ranks that call it at the same time see what they cost each other. Empty where
    /// the kernel raised; without points where this rank has none.
    /// @pre one RunArray for each array of the problem (ConfigError)
    std::vector<RateSample> sample(std::span<const RunArray> arrays, const Kernel& kernel, double budget_s);

    /// Seconds that run() spends on bringing arrays into the plan's order and back, about, where it must: part of each
    /// is brought there and back, and there once more. The arrays are not changed. Local.
    /// @pre one RunArray for each array of the problem (ConfigError)
    double conversion_s(std::span<const RunArray> arrays) const;

    /// Bytes from a row's point to the next for each place of the kernel, with these arrays.
    std::vector<std::int64_t> row_steps(std::span<const RunArray> arrays) const;
    /// Whether array `a` is a rolling window: it needs no memory.
    bool in_window(int a) const { return schedule_.arrays[a].planes > 0; }
    /// The subscripts of the elements of such an array that this rank's points read and none computes, one
    /// element after the other.
    std::vector<std::int64_t> initial(int a) const;
    /// For each place of the kernel: the first place of the same array in the same row, and how many points this one is
    /// behind it; -1 where there is none.
    std::vector<std::pair<int, std::int64_t>> same_row() const;
    /// Points by which a row of dependent points must at least be behind the row before it for both to be computed at
    /// once: no point then depends on a later one. 0 where rows are independent within, or can only be computed one
    /// by one.
    int stagger() const;
    /// For each place of the kernel the (rows, points) from a point to that which writes the place's element, in the
    /// same hyperplane of rows; nothing where no point of them does, or where the array is written at
    /// several places.
    std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>> neighbours() const;
    /// No point of a row depends on another: the kernel may compute them in any order.
    bool independent_rows() const { return has_tasks(plan_) || plan_.independent_rows(problem_); }
    /// Of memory that runs to come use, about.
    std::int64_t bytes() const;
    /// The same with at least these halos, where it may have any: fields lie in rows, of which each kernel call takes a
    /// part. Else itself. Equal on all ranks.
    /// @throws as the constructor
    PreparedSweep& widened(const LeastHalos& halos);
    const Schedule& schedule() const { return schedule_; }
    const SweepProblem& problem() const { return problem_; }
    const Plan& plan() const { return plan_; }
    std::int64_t points() const { return points_; }  ///< over all ranks

private:
    // The block as one that repeats, where it runs so often and can; made when it is first asked for.
    const Schedule* repeated(const StepBlocks& blocks);
    // So many steps, fewer than two blocks have.
    std::shared_ptr<const RestOfSteps> rest_of(std::int64_t steps);
    friend class BoundSweep;
    friend class ChainedSweep;
    SampleMemory sample_memory(std::span<const RunArray> arrays) const;
    std::vector<std::byte> typical_element(int a, const RunArray& given) const;
    std::vector<RateSample> sample_tasks(std::span<const RunArray> arrays, const Kernel& kernel, double budget_s) const;

    bool copied(int a, const RunArray& array) const;
    /// Whether its elements lie as the plan wants them: a field, a part of one or of memory that stands for it, a copy.
    bool lies_as_planned(int a, const RunArray& array) const;
    std::vector<std::int64_t> steps_by(const Index& along, std::span<const RunArray> arrays) const;
    Binding in_field(int a, FieldStorage& field) const;
    Binding to_loops(int a, const Binding& memory, const Index& first, bool mirrored) const;

    Context& context_;
    SweepProblem problem_;
    Plan plan_;
    Schedule schedule_;
    std::int64_t waves_, points_;
    std::vector<std::uint64_t> orders_;                                         // by array: of all ranks' memory
    std::unique_ptr<RollingWindow> window_;                                     // where there are rolling-window arrays
    std::unique_ptr<Schedule> repeated_;                                        // where it was asked for
    std::vector<std::pair<LeastHalos, std::unique_ptr<PreparedSweep>>> wider_;  // those asked for last
    std::shared_ptr<const RestOfSteps> rest_;  // of the number of steps that was asked for last
};

}  // namespace tilewave
