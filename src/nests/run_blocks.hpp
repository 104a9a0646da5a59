// Runs of more time steps than their schedule has.
#pragma once
#include <span>
#include <vector>

#include "execute/executor.hpp"
#include "execute/recording.hpp"
#include "generate/nest/nest.hpp"
#include "tilewave/plan.hpp"

namespace tilewave {

/// So often the schedule of a block runs, and so many steps are left after it.
struct StepBlocks {
    std::int64_t whole = 1, rest = 0;
    /// Of `steps` steps, where `problem` has the steps of a block. What is left may be longer than a block. Without a
    /// whole block all steps are left.
    /// @pre those of a block are more than 0; steps >= those of a block or those that go together, plan.temporal_block,
    /// whichever are fewer (ConfigError)
    static StepBlocks of(const SweepProblem& problem, const Plan& plan, std::int64_t steps);
};

/// The schedule of the steps that are left: the problem of a block with another number of steps, cut by the same plan.
class RestOfSteps {
public:
    RestOfSteps(const SweepProblem& block, const Plan& plan, std::int64_t extent, int rank, int ranks);
    const Schedule& schedule() const { return schedule_; }
    const SweepProblem& problem() const { return problem_; }
    const Plan& plan() const { return plan_; }
    std::int64_t extent() const { return problem_.space.extent(0); }
    std::int64_t waves() const { return waves_; }

private:
    SweepProblem problem_;
    Plan plan_;
    Schedule schedule_;
    std::int64_t waves_ = 0;
};

/// Which of the schedules of a run.
enum class BlockKind : std::uint8_t { one, several, rest };

/// What is run: this rank's schedule of a block, so often, then that of the rest.
struct BlocksRun {
    StepBlocks blocks;
    const Schedule& schedule;
    const Schedule* rest;         ///< null without a rest
    std::int64_t schedule_steps;  ///< time steps of a block
    std::span<const std::int64_t>
        time_bytes;  ///< by array: from one time to the next, of those that have time as a dimension; else 0
    /// The block as one that repeats: lanes do not meet between two. Null: they do.
    const Schedule* repeated = nullptr;
    std::int64_t most_repetitions = 1;  ///< of them without a meeting; equal on all ranks
    std::function<void(std::int64_t)> before_block =
        {};  ///< called before each block but the first, while nothing moves; not where they repeat
    /// Runs the schedule of this kind with these bindings, options.times times; without, execute() does.
    std::function<Outcome(BlockKind, std::span<const Binding>, const ExecuteOptions&)> executed = {};
    bool last_reduced = false;  ///< reductions are those of the last block, not of all
    /// How often lanes begin anew: what Alarms::begin is told. @pre as many repetitions as on the other ranks
    std::int64_t meetings() const { return ceil_div(blocks.whole, most_repetitions) + (blocks.rest > 0); }
};

/// How many blocks of so many time steps run as repetitions without a meeting. @pre block_steps > 0
std::int64_t repetitions_together(std::int64_t block_steps);

struct BlocksOutcome {
    Outcome outcome;                ///< of all blocks; the first failure. Its recording is empty
    std::int64_t failed_block = 0;  ///< counted as in BlocksRun::meetings
    Notes notes;                    ///< where recorded
};

/// Runs the blocks with all other ranks running theirs, without agreement between blocks: a rank begins the next one
/// when its own lanes and messages are done, or each lane when it has ended the one before, where blocks repeat;
/// messages of a tag follow each other in order. With `lacking`, what this rank could not get for them, it stands aside
/// in all of them. After a failure or an interrupt messages go on to the end of the last block that a rank has begun
/// (Alarms::last_block); without `options.alarms` to the end of the run. Collective in effect.
/// @throws MpiError
BlocksOutcome execute_blocks(const BlocksRun& run, std::span<const Binding> bindings, const Kernel& kernel,
                             Transport& transport, Lanes& lanes, ExecuteOptions options,
                             const std::exception_ptr& lacking = nullptr);

}  // namespace tilewave
