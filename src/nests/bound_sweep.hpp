// A prepared sweep with its arrays and its kernel, run again and again: what a run needs is kept for the next one.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "arrays/time_buffers.hpp"
#include "context/agreement.hpp"
#include "execute/kept_execution.hpp"
#include "nests/prepared_sweep.hpp"
#include "nests/run_blocks.hpp"

namespace tilewave {

/// What one run of a bound sweep was; the rest of a Report follows from its plan. Equal on all ranks.
struct BoundRun {
    std::int64_t points = 0, waves = 0;  ///< over all ranks
    std::int64_t buffer_bytes = 0;       ///< as Report::buffer_bytes
    double time_s = 0, moving_s = 0, call_s = 0;
    bool interrupted = false;
    std::vector<Reduced> reduced;
};

class BoundSweep {
public:
    /// Whether arrays are used where they lie: fields, and memory that the plan can use as it is.
    static bool suits(const PreparedSweep& sweep, std::span<const RunArray> arrays);

    /// `sweep`, the arrays, and what `kernel` points to must live on. Local.
    /// @pre suits(sweep, arrays), and as PreparedSweep::run (ConfigError)
    BoundSweep(Context& context, PreparedSweep& sweep, std::vector<RunArray> arrays, Kernel kernel,
               std::function<std::string(const Failure&)> explain);

    /// What the ranks compare first is `said`. Then as PreparedSweep::run, which nothing is recorded of. `env` is what
    /// the kernel is given in this run. `steps`: of time, as many as StepBlocks::of allows; without, those of the
    /// problem. Collective; beyond the work and the moving of fields it costs two rounds of ceil(log2 ranks) messages.
    /// @throws as PreparedSweep::run and agree()
    BoundRun run(const std::shared_ptr<const Said>& said, std::optional<std::int64_t> steps, const void* env);
    /// The same with the plan, as a report without timeline.
    Report report(const BoundRun& ran) const;

private:
    friend class ChainedSweep;
    // What is left after whole blocks, by its number of steps.
    struct Rest {
        Rest(const PreparedSweep& sweep, std::int64_t extent, Context& context);
        RestOfSteps steps;
        KeptExecution kept;
    };
    struct Operand {
        RunArray array;
        std::optional<Layout> layout;  // none of an array kept in planes
        MemoryOrder order;
        int time_buffers = 1;
        int version = 0;       // of the field when its binding was made
        Binding own, binding;  // in its own dimensions, in the loops'
    };

    Rest* rest_of(const StepBlocks& blocks);
    void bring_back(std::int64_t steps, bool history_beside, bool turned_later = false);
    void bind(std::size_t a);
    void turn_buffers(std::size_t a, std::int64_t steps, bool history_beside);
    ExecuteOptions options();
    BlocksRun blocks_run(const StepBlocks& blocks, Rest* rest);
    BlocksOutcome execute(BlocksRun& run, Rest* rest, std::int64_t steps, bool history_beside);

    Context& context_;
    PreparedSweep& sweep_;
    Kernel kernel_;
    std::function<std::string(const Failure&)> explain_;
    std::vector<Operand> operands_;
    std::vector<std::int64_t> time_bytes_;
    std::vector<WindowValues> initial_;
    KeptExecution main_, several_;
    std::map<std::int64_t, std::unique_ptr<Rest>> rests_;
    std::optional<WindowMemory> window_;
    // Of the run that is under way.
    std::vector<Binding> bindings_;
    std::vector<TimeBuffers> buffers_;
    std::exception_ptr lacking_;
    bool moved_ = false, others_may_ = false;
};

}  // namespace tilewave
