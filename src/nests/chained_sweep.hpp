// Bound sweeps that run as one schedule, again and again.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "nests/bound_sweep.hpp"

namespace tilewave {

class ChainedSweep {
public:
    /// The sweeps must live on. `memories`: for each sweep and array a number, equal for arrays that are one field.
    /// Local.
    /// @pre as chain(); every array lies where its sweep wants it (ConfigError)
    ChainedSweep(Context& context, std::vector<BoundSweep*> sweeps, std::vector<std::vector<std::int32_t>> memories);

    /// Runs the chain `times` times, without agreement or barrier between sweeps and between repetitions. Nor do a
    /// rank's lanes meet between repetitions, but once in 256 of them.
    /// `env`: by sweep, what its kernel is given. What the ranks compare first is `said`. Reductions are those of the
    /// last repetition, sweep after sweep. Collective; beyond the work it costs two rounds of ceil(log2 ranks)
    /// messages.
    /// @pre times >= 1; an env for each sweep (ConfigError)
    /// @throws as PreparedSweep::run and agree()
    BoundRun run(const std::shared_ptr<const HashedStatus>& said, std::int64_t times,
                 std::span<const std::uintptr_t> env);

    const Schedule& schedule() const { return schedule_; }

private:
    void place_arrays(CollectiveRun& run);
    ExecuteOptions options() const;
    RunBlocks blocks(std::int64_t times);

    Context& context_;
    std::vector<BoundSweep*> sweeps_;
    Schedule schedule_;
    std::optional<Schedule> repeated_;  // made when it is first asked for
    std::vector<Kernel> kernels_;
    std::vector<TaskFunction> operations_;  // of the sweeps with arrays that keep several time steps
    std::vector<Binding> bindings_;
    std::optional<CachedExecution> kept_, kept_repeated_;
    std::int64_t points_ = 0, waves_ = 0;
};

}  // namespace tilewave
