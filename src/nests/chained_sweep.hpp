// Bound sweeps that run as one schedule, again and again.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "generate/chain/fused.hpp"
#include "nests/bound_sweep.hpp"
#include "nests/step_row.hpp"

namespace tilewave {

class ChainedSweep {
public:
    /// The sweeps must live on. `memories`: for each sweep and array a number, equal for arrays that are one field.
    /// `in_steps`: repetitions are time steps, which loop index 0 of each sweep counts for its kernel. `turns`: the
    /// runs of a repetition, where it is not one of each sweep; `rows` are those that these take, and put back. The
    /// last `films` sweeps run by themselves after the others, where run() is asked to take films. Local.
    /// @pre as chain(); every array lies where its sweep wants it; turns for films (ConfigError)
    ChainedSweep(Context& context, std::vector<BoundSweep*> sweeps, std::vector<std::vector<std::int32_t>> memories,
                 bool in_steps = false, std::vector<ChainTurn> turns = {}, std::vector<StepRow> rows = {},
                 std::size_t films = 0);
    ChainedSweep(const ChainedSweep&) = delete;

    /// Makes what run() needs for so many repetitions; local.
    /// @pre times >= 1 (ConfigError)
    void prepare(std::int64_t times) { (void)blocks_for(times); }

    /// Runs the chain `times` times, without agreement or barrier between sweeps and between repetitions. Nor do a
    /// rank's lanes meet between repetitions, but once in 256 of them.
    /// `env`: by sweep, what its kernel is given. What the ranks compare first is `said`; null: they have agreed after
    /// prepare(times). Reductions are those of the last repetition, sweep after sweep. Collective; beyond the work it
    /// costs two rounds of ceil(log2 ranks) messages, one where the ranks have agreed. `first_step`: of time. `points`:
    /// by sweep, what its lanes change and record after each time step, in one schedule all by lanes; empty: nothing.
    /// `films`: whether the films are taken after the last repetition.
    /// @pre times >= 1; an env for each sweep (ConfigError)
    /// @throws as PreparedSweep::run and agree()
    BoundRun run(const std::shared_ptr<const HashedStatus>& said, std::int64_t times,
                 std::span<const std::uintptr_t> env, std::int64_t first_step = 0,
                 std::span<const std::vector<StepPoints>> points = {}, bool films = true);

    /// Repetitions but the last of a run compute a sweep by `kernel`, as Kernel::unreduced. Not while it runs; local.
    void leave_out_reductions(std::size_t sweep, Kernel kernel);

    const ChainFusion& fusion() const { return fusion_; }
    /// Whether a repetition is one schedule. Where a sweep has tasks, a rolling window, parts of a field in time or
    /// fields that are whole on each rank, or turns are given, each turn has one: a rank begins it when it has ended
    /// the one before, with no word to other ranks.
    bool is_one() const { return !blocks_.empty(); }
    std::int64_t buffer_bytes() const;

private:
    // A schedule of some repetitions, as one that is run once and as one that repeats.
    struct Block {
        std::vector<ChainArray> arrays = {};
        std::optional<Schedule> once = {}, repeated = {};
        std::optional<CachedExecution> run_once = {}, run_repeated = {};
    };
    // Runs of a block.
    struct BlockRuns {
        Block* block = nullptr;
        RunBlocks runs = {};
    };

    void place_arrays(CollectiveRun& run);
    std::vector<Binding> bindings_of(const Block& block) const;
    void keep_unwritten(std::int64_t times);
    ExecuteOptions options() const;
    std::vector<ChainPart> parts() const { return parts_of(sweeps_.size() - films_); }
    std::vector<ChainPart> parts_of(std::size_t sweeps) const;
    std::vector<BlockRuns> blocks_for(std::int64_t times);
    Block& block_of(std::int64_t repetitions);
    BlockRuns runs_of(std::int64_t repetitions, std::int64_t times);
    BoundRun run_in_turn(std::span<const ChainTurn> turns, std::int64_t times, const CallTimes& before,
                         std::int64_t first_step, std::span<const std::vector<StepPoints>> points);
    Schedule made(std::int64_t repetitions) const;
    std::vector<StepVisitor> visitors(std::span<const std::vector<StepPoints>> points);
    struct OfSteps {
        std::int64_t first, all;
        std::span<const StepVisitor> visitors;
    };
    void add(BoundRun& all, const BlockRuns& runs, const CallTimes& before, const OfSteps& of);

    Context& context_;
    std::vector<BoundSweep*> sweeps_;
    std::vector<std::vector<std::int32_t>> memories_;
    bool in_steps_;
    ChainFusion fusion_;
    std::int32_t tags_;
    std::map<std::int64_t, Block> blocks_;  // by repetitions
    std::vector<Kernel> kernels_;
    std::vector<TaskFunction> operations_;        // buffer_tasks
    std::vector<std::vector<Binding>> bindings_;  // by sweep; timed memories at their first buffer
    std::int64_t points_ = 0, waves_ = 0;
    BoundSweep::Fields written_;  // by some sweep
    std::vector<ChainTurn> turns_;
    std::vector<StepRow> rows_;
    std::size_t films_;  // the last sweeps
};

}  // namespace tilewave
