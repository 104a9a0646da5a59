// Runs of more time steps than their schedule has: it runs block after block, then a shorter or longer one what is
// left.
#include "nests/run_blocks.hpp"

#include <algorithm>

#include "context/tuning.hpp"
#include "execute/alarms.hpp"

namespace tilewave {

using namespace tuning;

RestOfSteps::RestOfSteps(const SweepProblem& problem, const Plan& plan, std::int64_t extent, int rank, int ranks)
    : problem_(problem.with_steps(extent)), plan_(plan) {
    plan_.tile[0] = problem.sequential ? extent : std::min(plan.tile[0], extent);
    schedule_ = nest_schedule(problem_, plan_, rank, ranks);
    waves_ = nest_waves(problem_, plan_);
}

StepBlocks StepBlocks::of(const SweepProblem& problem, const Plan& plan, std::int64_t steps) {
    const std::int64_t block = problem.space.extent(0);
    // A block of fewer steps than go together runs as it is.
    const std::int64_t fewest = std::min(block, std::max<std::int64_t>(plan.temporal_block, 1));
    if (steps < fewest || block == 0)
        throw ConfigError("run: " + std::to_string(steps) + " steps were asked for; allowed: at least the " +
                          std::to_string(fewest) + " that go together");
    StepBlocks b{steps / block, steps % block};
    // With fewer steps than go together ranks would need other halos.
    if (b.whole > 0 && b.rest > 0 && b.rest < plan.temporal_block) {
        --b.whole;
        b.rest += block;
    }
    return b;
}

namespace {

// Where arrays lie for the block that begins at `time`, from where they lie for the first.
std::vector<Binding> bindings_at(std::int64_t time, const BlocksRun& run, const Schedule& schedule,
                                 std::span<const Binding> first) {
    std::vector<Binding> all(first.begin(), first.end());
    for (std::size_t a = 0; a < all.size(); ++a) {
        all[a].data += time * run.time_bytes[a];
        all[a].advance_bytes = run.schedule_steps * run.time_bytes[a];
        if (const int time_buffers = schedule.arrays[a].time_buffers; time_buffers > 0)
            all[a].first_time_buffer = static_cast<int>(floor_mod(all[a].first_time_buffer - time, time_buffers));
    }
    return all;
}

bool has_steps(const Schedule& schedule) {
    return std::any_of(schedule.lanes.begin(), schedule.lanes.end(), [](const auto& lane) { return !lane.empty(); });
}

// What blocks have given so far, and one more run.
void join(Outcome& all, Outcome& one, bool last_reduced) {
    all.stopped = all.stopped || one.stopped;
    all.interrupted = all.interrupted || one.interrupted;
    if (last_reduced) all.reduced.clear();
    for (std::size_t r = 0; r < one.reduced.size(); ++r) {
        if (all.reduced.size() == r)
            all.reduced.push_back(std::move(one.reduced[r]));
        else
            all.reduced[r].join(one.reduced[r]);
    }
}

}  // namespace

std::int64_t repetitions_together(std::int64_t block_steps) {
    return std::clamp<std::int64_t>(most_steps_together / block_steps, 1, most_blocks_together);
}

BlocksOutcome execute_blocks(const BlocksRun& run, std::span<const Binding> bindings, const Kernel& kernel,
                             Transport& transport, Lanes& lanes, ExecuteOptions options,
                             const std::exception_ptr& lacking) {
    constexpr double look_s = 0.05;  // between two heartbeats, as in a block
    BlocksOutcome all;
    const double begin = now_s();
    double looked = begin;
    const std::int64_t blocks = run.blocks.whole + (run.blocks.rest > 0), first_time = options.first_time,
                       meetings = run.meetings();
    std::int64_t block = 0;
    const std::function<bool(double)> heartbeat = options.heartbeat;
    if (heartbeat)
        options.heartbeat = [&](double part) {
            looked = now_s();
            return heartbeat((static_cast<double>(block) + part * static_cast<double>(options.times)) /
                             static_cast<double>(blocks));
        };
    options.last_reduced = run.last_reduced;
    // A rank without messages holds nobody up, wherever it is.
    const bool meets_others = !run.schedule.messages.empty() || (run.rest && !run.rest->messages.empty());
    // Nor does it look for alarms in a block without steps: it waits for the others at the end.
    const bool idle = !has_steps(run.schedule) && !(run.rest && has_steps(*run.rest)) && !run.before_block;
    for (std::int64_t meeting = 0; meeting < meetings; ++meeting, block += options.times) {
        if (options.alarms && meets_others) options.alarms->begin_block(meeting);
        const BlockKind kind = block == run.blocks.whole ? BlockKind::rest
                               : run.repeated            ? BlockKind::several
                                                         : BlockKind::one;
        const Schedule& schedule = kind == BlockKind::rest      ? *run.rest
                                   : kind == BlockKind::several ? *run.repeated
                                                                : run.schedule;
        options.times = kind == BlockKind::rest ? 1 : std::min(run.most_repetitions, run.blocks.whole - block);
        const std::int64_t passed = block * run.schedule_steps;
        options.first_time = first_time + passed;
        if (block > 0 && run.before_block && !lacking) run.before_block(block);
        const std::vector<Binding> here = bindings_at(passed, run, schedule, bindings);
        Outcome one = lacking        ? stand_aside(schedule, transport, lacking, options)
                      : run.executed ? run.executed(kind, here, options)
                                     : execute(schedule, here, kernel, transport, lanes, options);
        if (options.record && !one.error) all.notes.add(schedule, static_cast<int>(kind), std::move(one.recording));
        if ((one.failure || one.error) && !all.outcome.failure && !all.outcome.error) {
            all.outcome.failure = one.failure;
            all.outcome.error = one.error;
            all.failed_block = meeting;
        }
        if (meeting == 0) all.outcome.time_s = one.time_s;
        join(all.outcome, one, run.last_reduced);
        if (meeting + 1 < meetings && heartbeat && now_s() - looked > look_s && options.heartbeat(1))
            all.outcome.interrupted = true;
        options.stopped = all.outcome.failure || all.outcome.error || all.outcome.interrupted || all.outcome.stopped;
        if (options.stopped && meetings > 1 && options.alarms && meeting >= options.alarms->last_block()) break;
        if (idle && !options.stopped) break;
    }
    if (meetings > 1) all.outcome.time_s = now_s() - begin;
    return all;
}

}  // namespace tilewave
