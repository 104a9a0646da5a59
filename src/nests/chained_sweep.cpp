#include "nests/chained_sweep.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "nests/tuning.hpp"
#include "schedule/repeat.hpp"
#include "tilewave/engine/layout.hpp"

namespace tilewave {

ChainedSweep::ChainedSweep(Context& context, std::vector<BoundSweep*> sweeps,
                           std::vector<std::vector<std::int32_t>> memories, bool in_steps, std::vector<ChainTurn> turns,
                           std::vector<StepRow> rows, std::size_t films)
    : context_(context),
      sweeps_(std::move(sweeps)),
      memories_(std::move(memories)),
      in_steps_(in_steps),
      turns_(std::move(turns)),
      rows_(std::move(rows)),
      films_(films) {
    if (films_ > 0 && (films_ >= sweeps_.size() || turns_.size() != sweeps_.size()))
        throw ConfigError("chain: " + std::to_string(turns_.size()) + " turns for " + std::to_string(sweeps_.size()) +
                          " sweeps, of which " + std::to_string(films_) + " are films; allowed: one for each");
    if (sweeps_.empty() || memories_.size() != sweeps_.size())
        throw ConfigError("chain: " + std::to_string(memories_.size()) + " lists of memories for " +
                          std::to_string(sweeps_.size()) + " sweeps");
    for (std::size_t i = 0; i < sweeps_.size(); ++i) {
        const PreparedSweep& sweep = sweeps_[i]->sweep_;
        kernels_.push_back(sweeps_[i]->kernel_);
        // Equal blocks and halos in another order of memory: a field cannot lie in both.
        for (std::size_t j = 0; j < i; ++j)
            for (std::size_t a = 0; a < sweep.orders_.size(); ++a)
                for (std::size_t b = 0; b < sweeps_[j]->sweep_.orders_.size(); ++b)
                    if (memories_[i][a] == memories_[j][b] && sweep.orders_[a] != sweeps_[j]->sweep_.orders_[b])
                        throw ConfigError("chain: nest " + std::to_string(i + 1) + " wants array " + std::to_string(a) +
                                          " in another order of memory than nest " + std::to_string(j + 1));
    }
    for (const BoundSweep* const sweep : sweeps_)
        for (std::size_t a = 0; a < sweep->operands_.size(); ++a)
            if (sweep->operands_[a].array.field && sweep->sweep_.problem_.written(static_cast<int>(a)))
                written_.insert(sweep->operands_[a].array.field);
    for (const StepRow& row : rows_)
        if (row.whole) written_.insert(row.whole);
    const bool given = !turns_.empty();
    for (std::size_t i = 0; i < sweeps_.size() && !given; ++i) turns_.push_back({i});
    for (const ChainTurn& turn : turns_) {
        const PreparedSweep& sweep = sweeps_.at(turn.sweep)->sweep_;
        points_ += turn.steps ? sweep.points_ / sweep.problem_.space.extent(0) * *turn.steps : sweep.points_;
        waves_ += sweep.waves_;
    }
    const auto fused = std::span(sweeps_).first(sweeps_.size() - films_);
    const bool in_turn =
        (given && films_ == 0) || std::ranges::any_of(fused, [](const BoundSweep* s) { return s->has_own_schedule(); });
    if (const std::string why = in_turn || films_ > 0 ? layout_refusal(parts_of(sweeps_.size())) : ""; !why.empty())
        throw ConfigError("chain: " + why);
    if (in_turn) return;
    tags_ = context.transport().max_tag() / static_cast<int>(sweeps_.size());
    fusion_ = chain_fusion(parts());
    std::int32_t most = 0;
    for (const auto& [number, memory] : timed_memories(parts())) most = std::max(most, memory.buffers - 1);
    operations_ = buffer_tasks(most);
    block_of(1);
}

void ChainedSweep::leave_out_reductions(std::size_t sweep, Kernel kernel) {
    kernels_.at(sweep).unreduced = std::make_shared<Kernel>(std::move(kernel));
}

std::vector<ChainPart> ChainedSweep::parts_of(std::size_t sweeps) const {
    std::vector<ChainPart> all;
    for (std::size_t i = 0; i < sweeps; ++i)
        all.push_back({sweeps_[i]->sweep_.problem_, sweeps_[i]->sweep_.plan_, memories_[i]});
    return all;
}

Schedule ChainedSweep::made(std::int64_t repetitions) const {
    Schedule s = fused_chain(parts(), context_.rank(), context_.size(), tags_, fusion_, repetitions);
    for (Work& work : s.works)  // repetitions that are no time steps begin at the same one
        if (NestWork* const nest = work.nest(); nest && !in_steps_) nest->step = 0;
    return s;
}

ChainedSweep::Block& ChainedSweep::block_of(std::int64_t repetitions) {
    if (const auto found = blocks_.find(repetitions); found != blocks_.end()) return found->second;
    Schedule once = made(repetitions);
    std::vector<ChainArray> arrays = chain_arrays(repeated_parts(parts(), repetitions));
    Block& block = blocks_[repetitions];
    block.once = std::move(once);
    block.arrays = std::move(arrays);
    return block;
}

ChainedSweep::BlockRuns ChainedSweep::runs_of(std::int64_t repetitions, std::int64_t times) {
    Block& block = block_of(repetitions);
    if (!block.run_once) block.run_once.emplace(*block.once);
    RunBlocks runs{&*block.run_once};
    runs.whole = times;
    runs.steps = in_steps_ ? repetitions : 0;
    runs.last_reduced = true;
    if (times > 1) {
        if (!block.run_repeated) block.run_repeated.emplace(block.repeated.emplace(repeatable(*block.once)));
        runs.repeated = &*block.run_repeated;
        runs.most_repetitions = std::max<std::int64_t>(tuning::most_repetitions_together / repetitions, 1);
    }
    return {&block, runs};
}

ExecuteOptions ChainedSweep::options() const {
    ExecuteOptions options = sweeps_[0]->options();
    for (BoundSweep* const sweep : sweeps_) {
        const ExecuteOptions of_sweep = sweep->options();
        options.crowded = options.crowded || of_sweep.crowded;
        options.poll_period_s = std::min(options.poll_period_s, of_sweep.poll_period_s);
    }
    options.crowded = options.crowded || static_cast<int>(blocks_.at(1).once->lanes.size()) > context_.threads();
    return options;
}

// Fields where the sweeps want them, and the bindings of all arrays.
void ChainedSweep::place_arrays(CollectiveRun& run) {
    bool moved = false, others_may = false, again = true;
    // A sweep may want more buffers of a field that another has bound already. Whether any rank moves a field is known
    // to all of them; one that moves none itself goes on with the others.
    for (std::size_t pass = 0; again; ++pass) {
        if (pass > sweeps_.size() + 1) throw InternalError("chain: its nests want different layouts of one field");
        again = false;
        for (BoundSweep* const sweep : sweeps_) {
            sweep->place_arrays(run, sweep->sweep_.problem_.space.extent(0), false, true);
            again |= sweep->others_may_;
            moved |= sweep->moved_;
        }
        others_may |= again;
    }
    bindings_.clear();
    for (const BoundSweep* const sweep : sweeps_) bindings_.push_back(sweep->bindings_);
    run.arrays_are_ready(moved, others_may);
}

// Arrays where a block has them: of timed memories in the buffers of its steps.
std::vector<Binding> ChainedSweep::bindings_of(const Block& block) const {
    std::vector<Binding> all;
    for (std::size_t i = 0; i < block.arrays.size(); ++i) {
        const std::size_t k = block.arrays[i].part % (sweeps_.size() - films_);
        const auto a = static_cast<std::size_t>(block.arrays[i].array);
        const Array& array = block.once->arrays[i];
        const View& view = array.view;
        Binding& binding = all.emplace_back(bindings_[k][a]);
        if (view.buffers <= 1) continue;
        const BoundSweep::Operand& operand = sweeps_[k]->operands_[a];
        if (const std::int64_t by = view.rows[0][0]; by < 0)
            binding.first_time_buffer =
                static_cast<int>(floor_mod(view.shift[0] + by * array.storage.lo[0], view.buffers));
        else
            binding.data += view.shift[0] * operand.order.items * array.item_bytes;
    }
    return all;
}

// Gives elements that no point writes one value in all buffers that a run of so many repetitions takes, where these are
// not carried from step to step.
void ChainedSweep::keep_unwritten(std::int64_t times) {
    std::set<std::int32_t> seen;
    const std::map<std::int32_t, TimedMemory> timed = timed_memories(parts());
    for (std::size_t k = 0; k < sweeps_.size() - films_; ++k)
        for (std::size_t a = 0; a < memories_[k].size(); ++a) {
            const BoundSweep& sweep = *sweeps_[k];
            const SweepProblem& problem = sweep.sweep_.problem_;
            const int array = static_cast<int>(a);
            if (!problem.written(array) || !timed.contains(memories_[k][a])) continue;
            const TimedMemory& memory = timed.at(memories_[k][a]);
            if (memory.carried || memory.buffers < 2 || !seen.insert(memories_[k][a]).second) continue;
            const BoundSweep::Operand& o = sweep.operands_[a];
            const Box all = held(problem, sweep.sweep_.plan_, array, context_.rank());
            const std::int64_t item = problem.arrays[a].item_bytes;
            for (const Box& part : unwritten(problem, array, all)) {
                std::byte* from = o.own.data;
                for (int d = 0; d < part.dims(); ++d) from += (part.lo[d] - all.lo[d]) * o.own.stride_bytes[d];
                for (std::int64_t back = std::max<std::int64_t>(memory.buffers - memory.steps * times, 1);
                     back < memory.buffers; ++back)
                    copy_box(from + back * o.order.items * item, o.own.stride_bytes, from, o.own.stride_bytes,
                             part.hi - part.lo, item);
            }
        }
}

// What is left of whole blocks comes first: after it time buffers are where whole blocks begin and end.
std::vector<ChainedSweep::BlockRuns> ChainedSweep::blocks_for(std::int64_t times) {
    if (times < 1) throw ConfigError("chain: " + std::to_string(times) + " repetitions; allowed: 1 or more");
    std::vector<BlockRuns> all;
    if (!is_one()) return all;
    const std::int64_t together = fusion_.repetitions, whole = times / together, left = times % together;
    if (left > 0) all.push_back(fusion_.cycle > 1 ? runs_of(left, 1) : runs_of(1, left));
    if (whole > 0) all.push_back(runs_of(together, whole));
    return all;
}

BoundRun ChainedSweep::run(const std::shared_ptr<const HashedStatus>& said, std::int64_t times,
                           std::span<const std::uintptr_t> env, std::int64_t first_step,
                           std::span<const std::vector<StepPoints>> points, bool films) {
    const double begun = now_s();
    std::vector<BlockRuns> blocks;
    const auto make = [&] {
        if (env.size() != sweeps_.size())
            throw ConfigError("chain: " + std::to_string(env.size()) + " environments were given for " +
                              std::to_string(sweeps_.size()) + " sweeps; allowed: one for each");
        blocks = blocks_for(times);
    };
    if (said)
        agree_after(context_, said, make);
    else
        make();
    for (std::size_t i = 0; i < env.size(); ++i) {
        kernels_[i].env = reinterpret_cast<const void*>(env[i]);
        if (kernels_[i].unreduced) kernels_[i].unreduced->env = kernels_[i].env;
    }
    if (!is_one()) return run_in_turn(turns_, times, {0, now_s() - begun}, first_step, points);
    BoundRun ran;
    ran.points = points_ * times;
    ran.waves = waves_ * times;
    std::vector<StepVisitor> visitors = this->visitors(points);
    const std::int64_t last_step = first_step + times - 1;
    for (const BlockRuns& of : blocks) {
        if (ran.interrupted) break;
        const bool first = &of == &blocks.front();
        add(ran, of, {0, first ? now_s() - begun : 0}, {first_step, first ? times : 0, visitors});
        first_step += of.runs.whole * of.runs.steps;
    }
    if (films_ == 0 || !films || ran.interrupted) return ran;
    const BoundRun last = run_in_turn(std::span(turns_).last(films_), 1, {}, last_step, {});
    ran.interrupted = last.interrupted;
    ran.time_s += last.time_s;
    ran.moving_s += last.moving_s;
    ran.call_s += last.call_s;
    ran.buffer_bytes = std::max(ran.buffer_bytes, last.buffer_bytes);
    ran.reduced.insert(ran.reduced.end(), last.reduced.begin(), last.reduced.end());
    return ran;
}

std::int64_t ChainedSweep::buffer_bytes() const {
    std::int64_t most = is_one() ? blocks_.at(1).once->buffer_bytes() : 0;
    for (BoundSweep* const sweep : sweeps_)
        if (!is_one()) most = std::max(most, sweep->buffer_bytes({}));
    return most;
}

// The schedules of the turns, one after another. Reductions are those of the last repetition.
BoundRun ChainedSweep::run_in_turn(std::span<const ChainTurn> turns, std::int64_t times, const CallTimes& before,
                                   std::int64_t first_step, std::span<const std::vector<StepPoints>> points) {
    // The fields that are whole on ranks are copied for the first turn of a sweep, then those that have changed.
    std::vector<bool> copied(sweeps_.size(), false);
    std::int64_t meetings = 0;
    for (const ChainTurn& turn : turns) {
        BoundSweep& sweep = *sweeps_[turn.sweep];
        const BoundSweep::Steps steps = sweep.steps_of(turn.steps);
        meetings += sweep.meetings(steps, copied[turn.sweep] ? &written_ : nullptr) +
                    (times - 1) * sweep.meetings(steps, &written_);
        copied[turn.sweep] = true;
    }
    copied.assign(sweeps_.size(), false);
    CollectiveRun run(context_, meetings, before);
    place_arrays(run);
    TakenRows rows(rows_);
    std::vector<Reduced> reduced;
    std::optional<std::size_t> failed;
    for (std::int64_t k = 0; k < times; ++k)
        for (const ChainTurn& turn : turns) {
            BoundSweep& sweep = *sweeps_[turn.sweep];
            const std::int64_t step = in_steps_ ? first_step + k : turn.first_step;
            rows.take(run, turn, step);
            const std::span<const StepPoints> visited =
                turn.sweep < points.size() ? points[turn.sweep] : std::span<const StepPoints>();
            sweep.begin({step, visited, false, turn.more});
            sweep.kernel_.env = kernels_[turn.sweep].env;
            const BoundSweep::Steps now = sweep.steps_of(turn.steps);
            sweep.run_once(run, now, false, copied[turn.sweep] ? &written_ : nullptr);
            copied[turn.sweep] = true;
            sweep.begin({});
            rows.put_back(run, false);
            if (run.failed() && !failed) failed = turn.sweep;
            std::vector<Reduced> more = run.take_reduced();
            if (k + 1 < times) continue;
            if (turn.more && more.size() <= reduced.size())
                for (std::size_t r = 0; r < more.size(); ++r)
                    reduced[reduced.size() - more.size() + r].combine(more[r]);
            else
                std::ranges::move(more, std::back_inserter(reduced));
        }
    rows.put_back(run, true);
    run.set_reduced(std::move(reduced));
    BoundRun ran{run.end([&](const Failure& f) { return sweeps_[failed.value()]->explain_(f); })};
    ran.points = points_ * times;
    ran.waves = waves_ * times;
    ran.buffer_bytes = buffer_bytes();
    ran.reduced = run.reduced();
    return ran;
}

// What lanes of this rank change and record after the nests of each time step.
std::vector<StepVisitor> ChainedSweep::visitors(std::span<const std::vector<StepPoints>> points) {
    std::vector<StepVisitor> all;
    for (std::size_t i = 0; i < std::min(points.size(), sweeps_.size() - films_); ++i) {
        BoundSweep& sweep = *sweeps_.at(i);
        sweep.begin({0, points[i]});
        std::optional<StepVisitor> found = sweep.visitor();
        all.push_back(found ? std::move(*found) : StepVisitor(only_nest(sweep.sweep_.schedule_)));
        sweep.begin({});
    }
    return all;
}

// Some runs of a block, after those that `all` is the sum of.
void ChainedSweep::add(BoundRun& all, const BlockRuns& runs, const CallTimes& before, const OfSteps& of) {
    const Block& block = *runs.block;
    const RunBlocks& blocks = runs.runs;
    CollectiveRun run(context_, blocks.meetings(), before);
    place_arrays(run);
    std::vector<Binding> bindings;
    if (!run.lacks())
        run.obtain([&] {
            if (of.all > 0) keep_unwritten(of.all);
            bindings = bindings_of(block);
        });
    ExecuteOptions options = this->options();
    options.first_time = of.first;
    options.time_of_repetition = blocks.steps;
    options.visitors = of.visitors;
    run.execute(blocks, bindings, Programs{kernels_, operations_}, options);
    const RunEnding ending = run.end([&](const Failure& f) {
        const NestWork& nest = *block.once->works[f.work].nest();
        return sweeps_[nest.kernel]->explain_(f);
    });
    all.interrupted = ending.interrupted;
    all.time_s += ending.time_s;
    all.moving_s += ending.moving_s;
    all.call_s += ending.call_s;
    all.buffer_bytes = std::max(all.buffer_bytes, block.once->buffer_bytes());
    all.reduced = run.reduced();
}

}  // namespace tilewave
