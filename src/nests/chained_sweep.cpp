#include "nests/chained_sweep.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "arrays/time_buffers.hpp"
#include "context/exchange.hpp"
#include "context/tuning.hpp"
#include "execute/alarms.hpp"
#include "generate/chain/chain.hpp"
#include "run/run_ending.hpp"
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
        if (!turned_arrays(sweep.problem_).empty())
            operations_.push_back(turn_in_schedule(sweep.problem_, sweep.problem_.space.extent(0)));
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
    no_time_.assign(schedule_.arrays.size(), 0);
}

// Null where there is one repetition only.
const Schedule* ChainedSweep::repeated(std::int64_t times) {
    if (times == 1) return nullptr;
    if (!repeated_) repeated_ = repeatable(schedule_);
    return &*repeated_;
}

BlocksRun ChainedSweep::blocks_run(std::int64_t times) {
    BlocksRun run{{times, 0}, schedule_, nullptr, 0, no_time_, repeated(times), 1};
    if (run.repeated) run.most_repetitions = tuning::most_repetitions_together;
    run.last_reduced = true;
    return run;
}

BlocksOutcome ChainedSweep::execute(BlocksRun& run) {
    ExecuteOptions options = sweeps_[0]->options();
    for (BoundSweep* const sweep : sweeps_) {
        const ExecuteOptions own = sweep->options();
        options.crowded = options.crowded || own.crowded;
        options.poll_period_s = std::min(options.poll_period_s, own.poll_period_s);
    }
    options.crowded = options.crowded || static_cast<int>(schedule_.lanes.size()) > context_.threads();
    run.executed = [&](BlockKind kind, std::span<const Binding> here, const ExecuteOptions& o) {
        return (kind == BlockKind::one ? kept_ : kept_repeated_)
            .run(kind == BlockKind::one ? schedule_ : *repeated_, here, Programs{kernels_, operations_},
                 context_.transport(), context_.lanes(), o);
    };
    return execute_blocks(run, bindings_, kernels_[0], context_.transport(), context_.lanes(), options, lacking_);
}

// Fields where the sweeps want them, and the bindings of all arrays. Whether this rank has moved any.
bool ChainedSweep::bring_back() {
    bool moved = false, others_may = false, again = false;
    lacking_ = nullptr;
    do {  // a sweep may want more buffers of a field that another has bound already
        again = false;
        for (BoundSweep* const sweep : sweeps_) {
            sweep->bring_back(sweep->sweep_.problem_.space.extent(0), false, true);
            again |= sweep->moved_;
            others_may |= sweep->others_may_;
            if (sweep->lacking_ && !lacking_) lacking_ = sweep->lacking_;
        }
        moved |= again;
    } while (again && !lacking_);
    bindings_.clear();
    for (const BoundSweep* const sweep : sweeps_) {
        bindings_.insert(bindings_.end(), sweep->bindings_.begin(), sweep->bindings_.end());
        for (const int a : turned_arrays(sweep->sweep_.problem_))
            if (!lacking_) bindings_.push_back(sweep->bindings_[static_cast<std::size_t>(a)]);
    }
    if (lacking_) bindings_.resize(schedule_.arrays.size());
    if (others_may) barrier(context_.transport());  // as PreparedSweep::run
    return moved;
}

BoundRun ChainedSweep::run(const std::shared_ptr<const Said>& said, std::int64_t times,
                           std::span<const std::uintptr_t> env) {
    const double begun = now_s();
    std::optional<BlocksRun> blocks;
    agree_after(context_, said, [&] {
        if (times >= 1 && env.size() == sweeps_.size()) return blocks.emplace(blocks_run(times)), void();
        throw ConfigError("chain: " + std::to_string(times) + " repetitions and " + std::to_string(env.size()) +
                          " environments were given for " + std::to_string(sweeps_.size()) +
                          " sweeps; allowed: 1 or more, and one for each sweep");
    });
    for (std::size_t i = 0; i < env.size(); ++i) kernels_[i].env = reinterpret_cast<const void*>(env[i]);

    Transport& t = context_.transport();
    Alarms& alarms = *context_.exchange()->alarms;
    const auto& heartbeat = context_.options().heartbeat;
    alarms.begin(blocks->meetings());
    CallTimes call;
    if (bring_back()) call.moving_s = now_s() - begun;
    auto [outcome, failed_block, notes] = execute(*blocks);
    call.call_s = now_s() - begun;
    // A run may be shorter than a beat, and a signal may have come since the last one.
    if (heartbeat && !outcome.interrupted) outcome.interrupted = heartbeat(-1);
    const auto explain = [&](const Failure& f) {
        const NestWork& nest = *schedule_.works[static_cast<std::size_t>(f.work)].nest();
        return sweeps_[static_cast<std::size_t>(nest.kernel)]->explain_(f);
    };
    const RunEnding end = agree_on_end(t, alarms, outcome, failed_block, call, explain, heartbeat);

    BoundRun ran;
    ran.points = points_ * times;
    ran.waves = waves_ * times;
    ran.buffer_bytes = schedule_.buffer_bytes();
    ran.time_s = end.time_s;
    ran.moving_s = end.moving_s;
    ran.call_s = end.call_s;
    ran.interrupted = end.interrupted;
    ran.reduced = join_ranks(t, std::move(outcome.reduced));
    return ran;
}

}  // namespace tilewave
