// A prepared sweep with its arrays and its kernel, run again and again: what a run needs is kept for the next one.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "arrays/converted_array.hpp"
#include "arrays/moving_memory.hpp"
#include "arrays/time_buffers.hpp"
#include "context/agreement.hpp"
#include "execute/step_visitor.hpp"
#include "nests/field_copy.hpp"
#include "nests/prepared_sweep.hpp"
#include "nests/step_blocks.hpp"
#include "nests/step_points.hpp"
#include "run/collective_run.hpp"

namespace tilewave {

/// What one run of a bound sweep was; the rest of a Report follows from its plan. Equal on all ranks.
struct BoundRun : RunEnding {
    std::int64_t points = 0, waves = 0;  ///< over all ranks
    std::int64_t buffer_bytes = 0;       ///< as Report::buffer_bytes
    std::vector<Reduced> reduced = {};
};

/// Which time steps a run is of, and what happens after each of them.
struct RunOfSteps {
    std::int64_t first = 0;  ///< what loop index 0 begins with
    std::span<const StepPoints> points = {};
    bool last_reduced = false;  ///< reductions are those of the last step, not of all
    bool more = false;          ///< fields that begin anew have what the run before has left
};

class BoundSweep {
public:
    /// Whether arrays are used where they lie: fields, and memory that the plan can use as it is.
    static bool suits(const PreparedSweep& sweep, std::span<const RunArray> arrays);

    /// `sweep`, the arrays, and what `kernel` points to must live on. `whole`: fields that stand in place of memory
    /// among them. Local.
    /// @pre as PreparedSweep::run (ConfigError)
    BoundSweep(Context& context, PreparedSweep& sweep, std::vector<RunArray> arrays, Kernel kernel,
               std::function<std::string(const Failure&)> explain, std::vector<WholeField> whole = {});

    /// What the ranks compare first is `said`. Then as PreparedSweep::run, which nothing is recorded of. `env` is what
    /// the kernel is given in this run. `steps`: of time, as many as StepBlocks::of allows; without, those of the
    /// problem. Collective; beyond the work and the moving of fields it costs two rounds of ceil(log2 ranks) messages.
    /// @throws as PreparedSweep::run and agree()
    BoundRun run(const std::shared_ptr<const HashedStatus>& said, std::optional<std::int64_t> steps, const void* env,
                 const RunOfSteps& of = {});
    /// Time steps whose reductions nobody looks at are computed by `kernel`, as Kernel::unreduced. Not while it runs;
    /// local.
    void leave_out_reductions(Kernel kernel) { kernel_.unreduced = std::make_shared<Kernel>(std::move(kernel)); }
    /// As PreparedSweep::run.
    Report run_recorded(std::optional<std::int64_t> steps, const CallTimes& before, std::int64_t first_step,
                        std::span<const StepPoints> points = {});
    /// The same with the plan, as a report without timeline.
    Report report(const BoundRun& ran) const;

private:
    friend class ChainedSweep;
    // What is left after whole blocks, by its number of steps.
    struct Rest {
        explicit Rest(std::shared_ptr<const RestOfSteps> left) : steps(std::move(left)), kept(steps->schedule()) {}
        std::shared_ptr<const RestOfSteps> steps;
        CachedExecution kept;
    };
    struct Operand {
        RunArray array;
        std::optional<Layout> layout = {};  // none of an array kept in planes
        MemoryOrder order = {};
        int time_buffers = 1;
        int version = 0;                               // of the field when its binding was made
        std::optional<ConvertedArray> converted = {};  // where the plan cannot use the memory as it is
        std::shared_ptr<FieldStorage> copied = {};     // of memory that the array is part of, in time
        std::vector<std::byte> first = {};             // RunArray::anew: what the field was before the first run
        Binding own = {}, binding = {};                // in its own dimensions, in the loops'
    };
    // Elements that sources changed after a time step: where they lie in its buffer.
    struct Added {
        std::int64_t step;
        int array;
        std::vector<std::int64_t> offsets;
    };
    // What so many time steps are on this rank.
    struct Steps {
        std::int64_t count;
        bool given;           // not those of the problem
        bool history_beside;  // points read earlier steps at other places: blocks are single steps
        StepBlocks blocks = {};
        Rest* rest = nullptr;
        RunBlocks run = {};
    };

    using Fields = std::set<const FieldStorage*>;

    bool begins_anew() const {
        return std::ranges::any_of(operands_, [](const Operand& o) { return o.array.anew; });
    }
    bool has_own_schedule() const {
        const auto part = [](const NestArray& n) { return n.scale.n && n.time_buffers > 0; };
        return has_tasks(sweep_.plan_) || sweep_.window_ || !copies_.empty() || begins_anew() ||
               std::ranges::any_of(sweep_.problem_.arrays, part);
    }
    BoundSweep& as_fields_lie();
    std::int64_t meetings(const Steps& steps, const Fields* changed = nullptr) const;
    void run_once(CollectiveRun& run, const Steps& steps, bool record, const Fields* changed = nullptr);
    static void begin_anew(Operand& operand);
    void copy_memory(std::size_t a, bool back);
    void copy_fields(CollectiveRun& run, const Fields* changed);
    std::int64_t buffer_bytes(const Steps& steps) const;
    Rest* rest_of(const StepBlocks& blocks);
    Steps steps_of(std::optional<std::int64_t> given);
    void place_arrays(CollectiveRun& run, std::int64_t steps, bool history_beside, bool turned_later = false);
    void touch_first(std::size_t a, std::byte* data, int buffers);
    void place_arrays(std::size_t a, std::int64_t steps, bool history_beside, bool turned_later);
    void bind(std::size_t a);
    std::optional<Index> writer(int array, const Index& at) const;
    std::optional<StepVisitor> visitor() const;
    LocalPart part(int array, std::int64_t before_last) const;
    std::byte* element(const StepPoints& points, std::int64_t k, std::int64_t before_last) const;
    void visit_points(std::int64_t step, std::int64_t steps);
    void carry_added(std::int64_t step, std::int64_t steps);
    void record_unwritten(std::int64_t steps);
    void turn_buffers(std::size_t a, std::int64_t steps, bool history_beside);
    void bind_tasks(std::int64_t steps);
    ExecuteOptions options();
    void begin(const RunOfSteps& of);
    Report run_here(std::optional<std::int64_t> steps, const CallTimes& before);
    BoundRun perform(CollectiveRun& run, const Steps& steps, bool record);
    void add_timeline(Report& report, const Notes& notes, const Rest* rest) const;

    Context& context_;
    PreparedSweep& sweep_;
    Kernel kernel_;
    std::function<std::string(const Failure&)> explain_;
    std::vector<Operand> operands_;
    std::vector<WholeField> whole_;
    std::deque<FieldCopy> copies_;            // of these
    std::vector<const std::byte*> place_of_;  // where arrays and tables have them
    std::vector<std::int64_t> time_bytes_;
    std::vector<WindowValues> initial_;
    CachedExecution main_;
    std::optional<CachedExecution> several_;
    std::map<std::int64_t, std::unique_ptr<Rest>> rests_;
    std::optional<WindowMemory> window_;
    std::optional<MovingMemory> moving_;  // of a schedule of tasks, and what these call
    std::unique_ptr<NestTasks> tasks_;
    std::vector<TaskFunction> operations_;
    std::unique_ptr<BoundSweep> wider_;  // for the halos that its fields had last
    RunOfSteps of_;
    std::vector<Added> added_;  // after the last time steps, as many as there are time buffers
    // Of the run that is under way.
    std::vector<Binding> bindings_;
    std::vector<TimeBuffers> buffers_;
    bool moved_ = false;       // this rank has moved an array
    bool others_may_ = false;  // some rank may have moved one; the same on all ranks
};

}  // namespace tilewave
