#include "nests/bound_sweep.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "context/exchange.hpp"
#include "context/tuning.hpp"
#include "execute/alarms.hpp"
#include "run/run_ending.hpp"

namespace tilewave {

using namespace tuning;

bool BoundSweep::suits(const PreparedSweep& sweep, std::span<const RunArray> arrays) {
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a)
        if (!sweep.in_window(a) && sweep.copied(a, arrays[static_cast<std::size_t>(a)])) return false;
    return true;
}

BoundSweep::BoundSweep(Context& context, PreparedSweep& sweep, std::vector<RunArray> arrays, Kernel kernel,
                       std::function<std::string(const Failure&)> explain)
    : context_(context),
      sweep_(sweep),
      kernel_(std::move(kernel)),
      explain_(std::move(explain)),
      time_bytes_(arrays.size(), 0) {
    const SweepProblem& problem = sweep.problem_;
    if (arrays.size() != problem.arrays.size())
        throw ConfigError("bind: " + std::to_string(arrays.size()) + " arrays given, the nest has " +
                          std::to_string(problem.arrays.size()));
    if (!kernel_.reductions.empty() && deep_halo(problem, sweep.plan_).along >= 0)
        throw ConfigError("run: points that two ranks compute were to be reduced; such a problem says `once`");
    if (!suits(sweep, arrays)) throw ConfigError("bind: an array would have to be copied for each run");
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
        const auto at = static_cast<std::size_t>(a);
        operands_.push_back(
            {arrays[at], {}, {}, std::max(problem.arrays[at].time_buffers, 1), 0, arrays[at].whole, {}});
        Operand& operand = operands_.back();
        if (sweep.in_window(a)) {
            const Array& array = sweep.schedule_.arrays[at];
            operand.binding = {nullptr, array.stride};
            for (auto& s : operand.binding.stride_bytes.v) s *= array.item_bytes;
            initial_.push_back({arrays[at].initial, arrays[at].same});
            continue;
        }
        operand.layout = field_layout(problem, sweep.plan_, a);
        operand.order = field_order(problem, sweep.plan_, a, context.rank());
        if (!operand.array.field) bind(at);
    }
}

BoundSweep::Rest::Rest(const PreparedSweep& sweep, std::int64_t extent, Context& context)
    : steps(sweep.problem_, sweep.plan_, extent, context.rank(), context.size()) {}

// Where the array is now, for the loops.
void BoundSweep::bind(std::size_t a) {
    Operand& o = operands_[a];
    const NestArray& n = sweep_.problem_.arrays[a];
    if (o.array.field) {
        o.own = sweep_.in_field(static_cast<int>(a), *o.array.field);
        o.version = o.array.field->version();
    }
    o.binding = sweep_.to_loops(static_cast<int>(a), o.own,
                                held(sweep_.problem_, sweep_.plan_, static_cast<int>(a), context_.rank()).lo);
    for (int d = 0; d < n.axes.n; ++d)
        if (n.axes[d] == 0) time_bytes_[a] = o.own.stride_bytes[d];
    if (n.time_buffers > 0) o.binding.stride_bytes[0] = o.order.items * n.item_bytes;
}

void BoundSweep::turn_buffers(std::size_t a, std::int64_t steps, bool history_beside) {
    const Operand& o = operands_[a];
    const NestArray& n = sweep_.problem_.arrays[a];
    const TimeBuffers all{o.array.field->data(), o.order.items * n.item_bytes, o.time_buffers};
    const int array = static_cast<int>(a);
    if (o.time_buffers > 2 && !history_beside)
        keep_outside(sweep_.problem_, array, all, o.own, held(sweep_.problem_, sweep_.plan_, array, context_.rank()),
                     steps);
    turn(all, steps);
    buffers_.push_back(all);
}

// Arrays where the plan wants them, also after others have moved them; what this rank lacks for it is in `lacking_`.
// `turned_later`: time buffers stay as they are.
void BoundSweep::bring_back(std::int64_t steps, bool history_beside, bool turned_later) {
    moved_ = others_may_ = false;
    lacking_ = nullptr;
    bindings_.clear();
    buffers_.clear();
    const Lacking get(lacking_);
    for (std::size_t a = 0; a < operands_.size(); ++a)
        get([&] {
            Operand& o = operands_[a];
            if (FieldStorage* const field = o.array.field) {
                const std::uint64_t orders = sweep_.orders_[a];
                if (!field->stays(*o.layout, o.time_buffers, orders)) {
                    others_may_ = true;
                    moved_ |= field->relayout(*o.layout, o.order, o.time_buffers, orders);
                }
                field->keep_history(o.time_buffers - 2);
                if (field->version() != o.version) bind(a);
                if (o.time_buffers > 1 && steps > 0 && !turned_later) turn_buffers(a, steps, history_beside);
            }
            bindings_.push_back(o.binding);
            if (const NestArray& n = sweep_.problem_.arrays[a];
                n.time_buffers > 0 && !sweep_.in_window(static_cast<int>(a)))
                bindings_.back().first_time_buffer =
                    static_cast<int>(floor_mod(steps + n.given_time_buffers() - 1, o.time_buffers));
        });
    get([&] {
        if (window_)
            window_->restart();
        else if (sweep_.window_)
            window_.emplace(*sweep_.window_, initial_);
    });
}

BoundSweep::Rest* BoundSweep::rest_of(const StepBlocks& blocks) {
    if (blocks.rest == 0) return nullptr;
    std::unique_ptr<Rest>& rest = rests_[blocks.rest];
    if (rest) return rest.get();
    auto made = std::make_unique<Rest>(sweep_, blocks.rest, context_);
    if (rests_.size() > most_kept_rests)
        std::erase_if(rests_, [&](const auto& each) { return each.first != blocks.rest; });
    return (rests_[blocks.rest] = std::move(made)).get();
}

ExecuteOptions BoundSweep::options() {
    ExecuteOptions options = context_.options();
    options.poll_period_s = sweep_.plan_.poll_period_s;
    options.record = options.events = false;
    options.alarms = context_.exchange()->alarms.get();
    options.window = window_ ? &*window_ : nullptr;
    options.crowded = options.crowded || sweep_.plan_.lanes() + sweep_.plan_.helper > context_.threads();
    return options;
}

BlocksRun BoundSweep::blocks_run(const StepBlocks& blocks, Rest* rest) {
    const std::int64_t block_steps = sweep_.problem_.space.extent(0);
    BlocksRun run{blocks, sweep_.schedule_, rest ? &rest->steps.schedule() : nullptr, block_steps, time_bytes_};
    run.repeated = sweep_.repeated(blocks);
    if (run.repeated) run.most_repetitions = repetitions_together(block_steps);
    return run;
}

BlocksOutcome BoundSweep::execute(BlocksRun& run, Rest* rest, std::int64_t steps, bool history_beside) {
    if (history_beside)  // as PreparedSweep::run
        run.before_block = [&](std::int64_t block) {
            for (const TimeBuffers& b : buffers_)
                if (block <= b.count - 2)
                    std::memcpy(b.of(steps - block - 1), b.of(steps - block), static_cast<std::size_t>(b.bytes));
        };
    run.executed = [&](BlockKind kind, std::span<const Binding> here, const ExecuteOptions& o) {
        const Schedule& schedule = kind == BlockKind::rest  ? rest->steps.schedule()
                                   : kind == BlockKind::one ? run.schedule
                                                            : *run.repeated;
        KeptExecution& kept = kind == BlockKind::rest ? rest->kept : kind == BlockKind::one ? main_ : several_;
        return kept.run(schedule, here, Programs{{&kernel_, 1}, {}}, context_.transport(), context_.lanes(), o);
    };
    return execute_blocks(run, bindings_, kernel_, context_.transport(), context_.lanes(), options(), lacking_);
}

BoundRun BoundSweep::run(const std::shared_ptr<const Said>& said, std::optional<std::int64_t> given_steps,
                         const void* env) {
    const double begun = now_s();
    const SweepProblem& problem = sweep_.problem_;
    const std::int64_t block_steps = problem.space.extent(0), steps = given_steps.value_or(block_steps);
    const bool beside = block_steps == 1 && steps > 1 && problem.reads_history_beside();
    StepBlocks blocks;
    Rest* rest = nullptr;
    std::optional<BlocksRun> several;
    kernel_.env = env;
    agree_after(context_, said, [&] {
        if (given_steps) blocks = StepBlocks::of(problem, sweep_.plan_, steps);
        rest = rest_of(blocks);
        several.emplace(blocks_run(blocks, rest));
    });

    Transport& t = context_.transport();
    Alarms& alarms = *context_.exchange()->alarms;
    const auto& heartbeat = context_.options().heartbeat;
    alarms.begin(several->meetings());
    bring_back(steps, beside);
    if (others_may_) barrier(t);  // as PreparedSweep::run
    CallTimes call;
    if (moved_) call.moving_s = now_s() - begun;
    auto [outcome, failed_block, notes] = execute(*several, rest, steps, beside);
    call.call_s = now_s() - begun;
    // A run may be shorter than a beat, and a signal may have come since the last one.
    if (heartbeat && !outcome.interrupted) outcome.interrupted = heartbeat(-1);
    const RunEnding end = agree_on_end(t, alarms, outcome, failed_block, call, explain_, heartbeat);

    BoundRun ran;
    ran.points = given_steps ? sweep_.points_ / block_steps * steps : sweep_.points_;
    ran.waves = sweep_.waves_ * blocks.whole + (rest ? rest->steps.waves() : 0);
    ran.buffer_bytes = std::max(sweep_.schedule_.buffer_bytes(), rest ? rest->steps.schedule().buffer_bytes() : 0) +
                       (sweep_.window_ ? sweep_.window_->bytes() : 0);
    ran.time_s = end.time_s;
    ran.moving_s = end.moving_s;
    ran.call_s = end.call_s;
    ran.interrupted = end.interrupted;
    ran.reduced = join_ranks(t, std::move(outcome.reduced));
    return ran;
}

Report BoundSweep::report(const BoundRun& ran) const {
    Report report;
    report.plan = sweep_.plan_;
    report.ranks = report.plan.ranks();
    report.threads = report.plan.lanes();
    report.points = ran.points;
    report.waves = ran.waves;
    report.buffer_bytes = ran.buffer_bytes;
    report.time_s = ran.time_s;
    report.moving_s = ran.moving_s;
    report.call_s = ran.call_s;
    report.overlap_ratio = std::numeric_limits<double>::quiet_NaN();
    report.interrupted = ran.interrupted;
    report.reduced = ran.reduced;
    return report;
}

}  // namespace tilewave
