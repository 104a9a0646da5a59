// One run of a prepared sweep: make the arrays ready, execute, agree on the end, report.
#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "arrays/converted_array.hpp"
#include "arrays/time_buffers.hpp"
#include "context/exchange.hpp"
#include "execute/alarms.hpp"
#include "execute/recording.hpp"
#include "execute/window/window_memory.hpp"
#include "nests/prepared_sweep.hpp"
#include "nests/run_blocks.hpp"
#include "run/run_ending.hpp"

namespace tilewave {

class PreparedSweep::Run {
public:
    Run(PreparedSweep& sweep, std::span<const RunArray> arrays, std::optional<std::int64_t> given_steps, CallTimes call,
        std::int64_t first_step);
    Report operator()(const Kernel& kernel, const std::function<std::string(const Failure&)>& explain);

private:
    bool prepare_arrays();
    void prepare_array(int a);
    void prepare_window(int a);
    void prepare_time_buffers(int a, const TimeBuffers& buffers, const Binding& own);
    ExecuteOptions options();
    BlocksRun blocks_run();
    BlocksOutcome execute(const Kernel& kernel);
    Report report(const RunEnding& end, const Outcome& outcome) const;
    void add_timeline(Report& report, const Notes& notes) const;

    const SweepProblem& problem() const { return sweep_.problem_; }
    const Plan& plan() const { return sweep_.plan_; }
    Context& context() const { return sweep_.context_; }
    Transport& transport() const { return context().transport(); }
    Alarms& alarms() const { return *context().exchange()->alarms; }

    PreparedSweep& sweep_;
    std::span<const RunArray> arrays_;
    double begun_ = now_s();
    CallTimes call_;
    std::int64_t first_step_, block_steps_, steps_;
    StepBlocks blocks_;
    bool given_steps_;
    bool history_beside_;         // points read earlier steps at other places: blocks are single steps
    bool moved_ = false;          // this rank moved an array
    bool others_may_ = false;     // some rank may have moved one; the same on all ranks
    std::exception_ptr lacking_;  // memory or threads that this rank does not get; others may be computing already
    std::vector<std::int64_t> time_bytes_;
    std::vector<Binding> bindings_;
    std::vector<ConvertedArray> converted_;
    std::vector<TimeBuffers> buffers_;
    std::vector<WindowValues> initial_;
    std::unique_ptr<WindowMemory> window_;
};

PreparedSweep::Run::Run(PreparedSweep& sweep, std::span<const RunArray> arrays, std::optional<std::int64_t> given_steps,
                        CallTimes call, std::int64_t first_step)
    : sweep_(sweep),
      arrays_(arrays),
      call_(call),
      first_step_(first_step),
      block_steps_(problem().space.extent(0)),
      steps_(given_steps.value_or(block_steps_)),
      blocks_(given_steps ? StepBlocks::of(problem(), plan(), steps_) : StepBlocks{}),
      given_steps_(given_steps.has_value()),
      history_beside_(block_steps_ == 1 && steps_ > 1 && problem().reads_history_beside()),
      time_bytes_(arrays.size(), 0) {
    if (blocks_.rest > 0 && (!sweep.rest_ || sweep.rest_->extent() != blocks_.rest))
        throw ConfigError("run: " + std::to_string(steps_) + " steps were not prepared");
}

void PreparedSweep::Run::prepare_window(int a) {
    const Array& array = sweep_.schedule_.arrays[static_cast<std::size_t>(a)];
    bindings_.push_back({nullptr, array.stride});
    for (auto& s : bindings_.back().stride_bytes.v) s *= array.item_bytes;
    initial_.push_back({arrays_[static_cast<std::size_t>(a)].initial, arrays_[static_cast<std::size_t>(a)].same});
}

void PreparedSweep::Run::prepare_time_buffers(int a, const TimeBuffers& buffers, const Binding& own) {
    if (buffers.count > 2 && !history_beside_)
        keep_outside(problem(), a, buffers, own, held(problem(), plan(), a, context().rank()), steps_);
    turn(buffers, steps_);
    buffers_.push_back(buffers);
}

void PreparedSweep::Run::prepare_array(int a) {
    const auto at = static_cast<std::size_t>(a);
    const NestArray& n = problem().arrays[at];
    const Layout layout = field_layout(problem(), plan(), a);
    const MemoryOrder order = field_order(problem(), plan(), a, context().rank());
    const int time_buffers = std::max(n.time_buffers, 1);
    std::byte* memory = nullptr;
    Binding own = arrays_[at].whole;
    if (FieldStorage* field = arrays_[at].field) {
        others_may_ |= !field->stays(layout, time_buffers, sweep_.orders_[at]);
        moved_ |= field->relayout(layout, order, time_buffers, sweep_.orders_[at]);
        field->keep_history(time_buffers - 2);
        own = sweep_.in_field(a, *field);
        memory = field->data();
    } else if (sweep_.copied(a, arrays_[at])) {
        converted_.emplace_back(context(), a, own, n, layout, order, time_buffers);
        converted_.back().copy_in(context());
        moved_ = true;
        own = converted_.back().binding();
        memory = converted_.back().memory();
    }
    const std::int64_t buffer_bytes = order.items * n.item_bytes;
    if (time_buffers > 1 && steps_ > 0) prepare_time_buffers(a, {memory, buffer_bytes, time_buffers}, own);
    bindings_.push_back(sweep_.to_loops(a, own, held(problem(), plan(), a, context().rank()).lo));
    Binding& binding = bindings_.back();
    for (int d = 0; d < n.axes.n; ++d)
        if (n.axes[d] == 0) time_bytes_[at] = own.stride_bytes[d];
    binding.data += first_step_ * time_bytes_[at];
    if (n.time_buffers > 0) {
        binding.stride_bytes[0] = buffer_bytes;
        binding.first_time_buffer = static_cast<int>(floor_mod(steps_ + n.given_time_buffers() - 1, time_buffers));
    }
}

// Whether all is there; otherwise `lacking_` says what is not.
bool PreparedSweep::Run::prepare_arrays() {
    const Lacking get(lacking_);
    for (int a = 0; a < static_cast<int>(arrays_.size()); ++a)
        get([&] { sweep_.in_window(a) ? prepare_window(a) : prepare_array(a); });
    get([&] {
        if (sweep_.window_) window_ = std::make_unique<WindowMemory>(*sweep_.window_, std::move(initial_));
    });
    return !lacking_;
}

ExecuteOptions PreparedSweep::Run::options() {
    ExecuteOptions o = context().options();
    o.poll_period_s = plan().poll_period_s;
    o.events = false;
    o.first_time = first_step_;
    o.alarms = &alarms();
    o.window = window_.get();
    o.crowded = o.crowded || plan().lanes() + plan().helper > context().threads();
    if (transport().size() > 1 && o.record) o.clock_offset_s = context().clock_offset_s();
    return o;
}

BlocksRun PreparedSweep::Run::blocks_run() {
    BlocksRun run{blocks_, sweep_.schedule_, sweep_.rest_ ? &sweep_.rest_->schedule() : nullptr, block_steps_,
                  time_bytes_};
    run.repeated = sweep_.repeated(blocks_);
    if (run.repeated) run.most_repetitions = repetitions_together(block_steps_);
    if (history_beside_) {
        // An element that no point writes takes its current value in the buffers of earlier times, once those have been
        // read.
        run.before_block = [this](std::int64_t block) {
            for (const TimeBuffers& b : buffers_)
                if (block <= b.count - 2)
                    std::memcpy(b.of(steps_ - block - 1), b.of(steps_ - block), static_cast<std::size_t>(b.bytes));
        };
    }
    return run;
}

BlocksOutcome PreparedSweep::Run::execute(const Kernel& kernel) {
    const bool ready = prepare_arrays();
    // Ranks move different amounts: who is ready first would wait in the run, as if for its messages.
    if (others_may_) barrier(transport());
    if (moved_) call_.moving_s += now_s() - begun_;
    const BlocksRun run = blocks_run();
    BlocksOutcome result = execute_blocks(run, bindings_, kernel, transport(), context().lanes(), options(), lacking_);
    const double ran = now_s();
    if (ready)
        for (const ConvertedArray& c : converted_) c.copy_back(context(), problem());
    const double ended = now_s();
    if (!converted_.empty()) call_.moving_s += ended - ran;
    call_.call_s += ended - begun_;
    return result;
}

Report PreparedSweep::Run::report(const RunEnding& end, const Outcome& outcome) const {
    const bool rest = blocks_.rest > 0;
    Report report;
    report.plan = plan();
    report.ranks = plan().ranks();
    report.threads = plan().lanes();
    report.points = given_steps_ ? sweep_.points_ / block_steps_ * steps_ : sweep_.points_;
    report.waves = sweep_.waves_ * blocks_.whole + (rest ? sweep_.rest_->waves() : 0);
    report.buffer_bytes =
        std::max(sweep_.schedule_.buffer_bytes(), rest ? sweep_.rest_->schedule().buffer_bytes() : 0) +
        (sweep_.window_ ? sweep_.window_->bytes() : 0);
    report.reduced = join_ranks(transport(), outcome.reduced);
    report.time_s = end.time_s;
    report.moving_s = end.moving_s;
    report.call_s = end.call_s;
    report.interrupted = end.interrupted;
    report.overlap_ratio = std::numeric_limits<double>::quiet_NaN();
    return report;
}

// Overlap ratio on all ranks; timeline, and its times by kind of step, on rank 0. Collective.
void PreparedSweep::Run::add_timeline(Report& report, const Notes& notes) const {
    Transport& t = transport();
    const Machine machine = t.size() > 1 ? context().machine() : Machine();
    Recorded all;
    try {
        all = gather(t, notes, [&](int from, int to, std::int64_t bytes) {
            const Link& l = machine.link(from, to);
            const bool measured = !l.transfer_s.x.empty();
            const double byte_s = measured ? l.byte_s : machine.byte_s;
            return (measured ? l.latency_s : machine.latency_s) + static_cast<double>(bytes) * byte_s;
        });
    } catch (const OutOfResources&) {  // the run is over: a timeline for which there is no memory is left out
        return;
    } catch (const std::bad_alloc&) {  // on rank 0, of what all have sent
        all = {};
        all.overlap_ratio = std::numeric_limits<double>::quiet_NaN();
    }
    std::string ratio(reinterpret_cast<const char*>(&all.overlap_ratio), sizeof all.overlap_ratio);
    broadcast(t, ratio, 0);
    std::copy(ratio.begin(), ratio.end(), reinterpret_cast<char*>(&report.overlap_ratio));
    if (t.rank() > 0) return;
    report.parts = all.parts;
    report.lanes = all.lanes;
    const BlockTimes times{ceil_div(block_steps_, plan().tile[0]), sweep_.waves_};
    struct Kind {
        SweepProblem problem;
        Plan plan;
    };
    std::vector<Kind> kinds(3, {problem(), plan()});  // by BlockKind
    if (blocks_.rest > 0)
        kinds[static_cast<std::size_t>(BlockKind::rest)] = {sweep_.rest_->problem(), sweep_.rest_->plan()};
    report.make_timeline = [all = std::make_shared<const Recorded>(std::move(all)), times, kinds = std::move(kinds),
                            ranks = t.size()] {
        return timeline_of(*all, times, [&](int rank, int kind) {
            const Kind& k = kinds[static_cast<std::size_t>(kind)];
            const Schedule block = nest_schedule(k.problem, k.plan, rank, ranks);
            return kind == static_cast<int>(BlockKind::several) ? repeated_block(k.problem, block) : block;
        });
    };
}

Report PreparedSweep::Run::operator()(const Kernel& kernel, const std::function<std::string(const Failure&)>& explain) {
    alarms().begin(blocks_run().meetings());
    auto [outcome, failed_block, notes] = execute(kernel);
    const ExecuteOptions& given = context().options();
    // A run may be shorter than a beat, and a signal may have come since the last one.
    if (given.heartbeat && !outcome.interrupted) outcome.interrupted = given.heartbeat(-1);
    const RunEnding end = agree_on_end(transport(), alarms(), outcome, failed_block, call_, explain, given.heartbeat);
    Report result = report(end, outcome);
    if (given.record) add_timeline(result, notes);
    return result;
}

Report PreparedSweep::run(std::span<const RunArray> arrays, const Kernel& kernel,
                          const std::function<std::string(const Failure&)>& explain, std::optional<std::int64_t> steps,
                          CallTimes before, std::int64_t first_step) {
    if (arrays.size() != problem_.arrays.size())
        throw ConfigError("run: " + std::to_string(arrays.size()) + " arrays given, the nest has " +
                          std::to_string(problem_.arrays.size()));
    if (!kernel.reductions.empty() && deep_halo(problem_, plan_).along >= 0)
        throw ConfigError("run: points that two ranks compute were to be reduced; such a problem says `once`");
    return Run(*this, arrays, steps, before, first_step)(kernel, explain);
}

}  // namespace tilewave
