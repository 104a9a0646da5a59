#include "nests/chained_sweep.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "generate/chain/chain.hpp"
#include "nests/tuning.hpp"
#include "schedule/repeat.hpp"

namespace tilewave {

ChainedSweep::ChainedSweep(Context& context, std::vector<BoundSweep*> sweeps,
                           std::vector<std::vector<std::int32_t>> memories)
    : context_(context), sweeps_(std::move(sweeps)) {
    if (sweeps_.empty() || memories.size() != sweeps_.size())
        throw ConfigError("chain: " + std::to_string(memories.size()) + " lists of memories for " +
                          std::to_string(sweeps_.size()) + " sweeps");
    std::vector<ChainPart> parts;
    for (std::size_t i = 0; i < sweeps_.size(); ++i) {
        const PreparedSweep& sweep = sweeps_[i]->sweep_;
        parts.push_back({sweep.problem_, sweep.plan_, std::move(memories[i])});
        kernels_.push_back(sweeps_[i]->kernel_);
        if (!rotated_arrays(sweep.problem_).empty())
            operations_.push_back(rotation_task(sweep.problem_, sweep.problem_.space.extent(0)));
        points_ += sweep.points_;
        waves_ += sweep.waves_;
        // Equal blocks and halos in another order of memory: a field cannot lie in both.
        for (std::size_t j = 0; j < i; ++j)
            for (std::size_t a = 0; a < sweep.orders_.size(); ++a)
                for (std::size_t b = 0; b < sweeps_[j]->sweep_.orders_.size(); ++b)
                    if (parts[i].memories[a] == parts[j].memories[b] &&
                        sweep.orders_[a] != sweeps_[j]->sweep_.orders_[b])
                        throw ConfigError("chain: nest " + std::to_string(i + 1) + " wants array " + std::to_string(a) +
                                          " in another order of memory than nest " + std::to_string(j + 1));
    }
    const int tags = context.transport().max_tag() / static_cast<int>(sweeps_.size());
    schedule_ = chain(parts, context.rank(), context.size(), tags);
    for (std::size_t i = 0; i < sweeps_.size(); ++i) {
        const SweepProblem& p = sweeps_[i]->sweep_.problem_;
        for (const NestArray& a : p.arrays)
            if (a.time_buffers > 2 && (a.item_bytes > most_item_bytes || a.time_buffers > most_time_buffers))
                throw ConfigError("chain: nest " + std::to_string(i + 1) + " keeps " + std::to_string(a.time_buffers) +
                                  " time steps; allowed: " + std::to_string(most_time_buffers));
    }
    kept_.emplace(schedule_);
}

RunBlocks ChainedSweep::blocks(std::int64_t times) {
    RunBlocks blocks{&*kept_};
    blocks.whole = times;
    blocks.last_reduced = true;
    if (times == 1) return blocks;
    if (!kept_repeated_) kept_repeated_.emplace(repeated_.emplace(repeatable(schedule_)));
    blocks.repeated = &*kept_repeated_;
    blocks.most_repetitions = tuning::most_repetitions_together;
    return blocks;
}

ExecuteOptions ChainedSweep::options() const {
    ExecuteOptions options = sweeps_[0]->options();
    for (BoundSweep* const sweep : sweeps_) {
        const ExecuteOptions of_sweep = sweep->options();
        options.crowded = options.crowded || of_sweep.crowded;
        options.poll_period_s = std::min(options.poll_period_s, of_sweep.poll_period_s);
    }
    options.crowded = options.crowded || static_cast<int>(schedule_.lanes.size()) > context_.threads();
    return options;
}

// Fields where the sweeps want them, and the bindings of all arrays.
void ChainedSweep::place_arrays(CollectiveRun& run) {
    bool moved = false, others_may = false, again = false;
    do {  // a sweep may want more buffers of a field that another has bound already
        again = false;
        for (BoundSweep* const sweep : sweeps_) {
            sweep->place_arrays(run, sweep->sweep_.problem_.space.extent(0), false, true);
            again |= sweep->moved_;
            others_may |= sweep->others_may_;
        }
        moved |= again;
    } while (again && !run.lacks());
    bindings_.clear();
    for (const BoundSweep* const sweep : sweeps_) {
        bindings_.insert(bindings_.end(), sweep->bindings_.begin(), sweep->bindings_.end());
        for (const int a : rotated_arrays(sweep->sweep_.problem_))
            if (!run.lacks()) bindings_.push_back(sweep->bindings_[a]);
    }
    run.arrays_are_ready(moved, others_may);
}

BoundRun ChainedSweep::run(const std::shared_ptr<const HashedStatus>& said, std::int64_t times,
                           std::span<const std::uintptr_t> env) {
    const double begun = now_s();
    RunBlocks made;
    agree_after(context_, said, [&] {
        if (times < 1 || env.size() != sweeps_.size())
            throw ConfigError("chain: " + std::to_string(times) + " repetitions and " + std::to_string(env.size()) +
                              " environments were given for " + std::to_string(sweeps_.size()) +
                              " sweeps; allowed: 1 or more, and one for each sweep");
        made = blocks(times);
    });
    for (std::size_t i = 0; i < env.size(); ++i) kernels_[i].env = reinterpret_cast<const void*>(env[i]);
    CollectiveRun run(context_, std::move(made), {0, now_s() - begun});
    place_arrays(run);
    run.execute(bindings_, Programs{kernels_, operations_}, options());
    BoundRun ran{run.end([&](const Failure& f) {
        const NestWork& nest = *schedule_.works[f.work].nest();
        return sweeps_[nest.kernel]->explain_(f);
    })};
    ran.points = points_ * times;
    ran.waves = waves_ * times;
    ran.buffer_bytes = schedule_.buffer_bytes();
    ran.reduced = run.reduced();
    return ran;
}

}  // namespace tilewave
