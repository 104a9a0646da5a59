#include "run/collective_run.hpp"

#include <algorithm>
#include <limits>

#include "context/agreement.hpp"
#include "context/plans_only.hpp"
#include "context/progress_engine.hpp"

namespace tilewave {

namespace {

// Where arrays lie for the block that begins at `time`, from where they lie for the first.
std::vector<Binding> bindings_at(std::int64_t time, const RunBlocks& run, const Schedule& schedule,
                                 std::span<const Binding> first) {
    std::vector<Binding> all(first.begin(), first.end());
    for (std::size_t a = 0; a < all.size(); ++a) {
        all[a].data += time * run.time_bytes[a];
        all[a].advance_bytes = run.steps * run.time_bytes[a];
        if (const int time_buffers = schedule.arrays[a].time_buffers; time_buffers > 0)
            all[a].first_time_buffer = static_cast<int>(floor_mod(all[a].first_time_buffer - time, time_buffers));
    }
    return all;
}

bool has_steps(const Schedule& schedule) {
    return std::ranges::any_of(schedule.lanes, [](const auto& lane) { return !lane.empty(); });
}

// How the run ended on this rank; fine, too, where another rank stopped it.
RankStatus status_of(const Outcome& o, const std::function<std::string(const Failure&)>& explain, int rank) {
    RankStatus status;
    try {
        if (o.failure) return {RankStatus::Kind::kernel, explain(*o.failure), ""};
        o.must_have_run();
    } catch (const KernelError& e) {  // of a task: its text has the place
        return {RankStatus::Kind::kernel, e.what(), ""};
    } catch (...) {
        set_error(status, std::current_exception(), "in a run on rank " + std::to_string(rank));
        if (status.kind == RankStatus::Kind::resources)
            status.error += "; the arrays that are written now hold anything";
    }
    return status;
}

// Sets what the transport calls while this rank waits for others.
class Meanwhile {
public:
    template <class F>
    Meanwhile(Transport& t, F& f) : t_(t), before_(std::exchange(t.meanwhile, [&f] { f(); })) {}
    ~Meanwhile() { t_.meanwhile = std::move(before_); }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;

private:
    Transport& t_;
    std::function<void()> before_;
};

}  // namespace

CollectiveRun::CollectiveRun(Context& context, std::int64_t meetings, const CallTimes& before)
    : context_(context), meetings_(meetings), times_(before) {
    alarms().begin(meetings);
}

Alarms& CollectiveRun::alarms() const {
    return *context_.engine()->alarms;
}

void CollectiveRun::arrays_are_ready(bool moved, bool others_may) {
    // Ranks move different amounts: who is ready first would wait in the run, as if for its messages.
    if (others_may) barrier(context_.transport());
    if (moved) times_.moving_s += now_s() - begun_;
}

void CollectiveRun::move(const RunBlocks& blocks, std::span<const Binding> bindings, ExecuteOptions options) {
    const double ran_s = outcome_.time_s;
    execute(blocks, bindings, {}, std::move(options));
    times_.moving_s += outcome_.time_s - ran_s;
    outcome_.time_s = ran_s;
}

void CollectiveRun::execute(const RunBlocks& run, std::span<const Binding> bindings, const Programs& programs,
                            ExecuteOptions options) {
    if (plans_only(context_) || over_) return;
    constexpr double look_s = 0.05;  // between two heartbeats, as in a block
    Transport& t = context_.transport();
    if (t.size() > 1 && options.record) options.clock_offset_s = context_.clock_offset_s();
    options.alarms = &alarms();
    const double begin = now_s();
    double looked = begin;
    const std::int64_t blocks = run.whole + (run.rest != nullptr), first_time = options.first_time,
                       meetings = run.meetings();
    options.stopped = failed() || outcome_.interrupted || outcome_.stopped;
    std::int64_t block = 0;
    const std::function<bool(double)> heartbeat = options.heartbeat;
    if (heartbeat)
        options.heartbeat = [&](double part) {
            looked = now_s();
            const double here =
                (static_cast<double>(block) + part * static_cast<double>(options.times)) / static_cast<double>(blocks);
            return heartbeat((static_cast<double>(met_) + here * static_cast<double>(meetings)) /
                             static_cast<double>(meetings_));
        };
    const Schedule& of_block = run.block->schedule();
    const Schedule* const rest = run.rest ? &run.rest->schedule() : nullptr;
    // A rank without messages holds nobody up, wherever it is.
    const bool meets_others = !of_block.messages.empty() || (rest && !rest->messages.empty());
    // A rank without steps looks for alarms at the end only, where it waits for the others.
    const bool idle = !has_steps(of_block) && !(rest && has_steps(*rest)) && !run.before_block;
    std::vector<Binding> moved;
    for (std::int64_t meeting = 0; meeting < meetings; ++meeting, block += options.times) {
        if (meets_others) options.alarms->begin_block(met_ + meeting);
        const BlockKind kind = block == run.whole ? BlockKind::rest
                               : run.repeated     ? BlockKind::several
                                                  : BlockKind::one;
        CachedExecution& execution = kind == BlockKind::rest      ? *run.rest
                                     : kind == BlockKind::several ? *run.repeated
                                                                  : *run.block;
        options.times = kind == BlockKind::rest ? 1 : std::min(run.most_repetitions, run.whole - block);
        if (run.last_reduced) options.reduced_from = options.times - (meeting + 1 == meetings);
        const std::int64_t passed = block * run.steps;
        options.first_time = first_time + passed;
        if (block > 0 && run.before_block && !lacking_) run.before_block(block);
        if (!run.time_bytes.empty()) moved = bindings_at(passed, run, execution.schedule(), bindings);
        Outcome one = lacking_
                          ? pass_empty_messages(execution.schedule(), t, lacking_, options)
                          : execution.run(moved.empty() ? bindings : moved, programs, t, context_.lanes(), options);
        const double one_s = one.time_s;
        add(one, met_ + meeting);
        if (meetings == 1) outcome_.time_s += one_s;
        if (options.record && !options.events && !one.error)
            notes_.add(execution.schedule(), static_cast<int>(kind), std::move(one.recording));
        if (meeting + 1 < meetings && heartbeat && now_s() - looked > look_s && options.heartbeat(1))
            outcome_.interrupted = true;
        options.stopped = failed() || outcome_.interrupted || outcome_.stopped;
        over_ = options.stopped && meetings_ > 1 && met_ + meeting >= options.alarms->last_block();
        if (over_) break;
        if (idle && !options.stopped) break;
    }
    if (meetings > 1) outcome_.time_s += now_s() - begin;
    met_ += meetings;
}

// Adds the outcome of one more block.
void CollectiveRun::add(Outcome& one, std::int64_t meeting) {
    Outcome& all = outcome_;
    if ((one.failure || one.error) && !failed()) {
        all.failure = one.failure;
        all.error = one.error;
        failed_meeting_ = meeting;
    }
    if (all.timeline.events.empty()) all.timeline = std::move(one.timeline);
    all.stopped = all.stopped || one.stopped;
    all.interrupted = all.interrupted || one.interrupted;
    for (std::size_t r = 0; r < one.reduced.size(); ++r) {
        if (all.reduced.size() == r)
            all.reduced.push_back(std::move(one.reduced[r]));
        else
            all.reduced[r].combine(one.reduced[r]);
    }
}

RunEnding CollectiveRun::end(const std::function<std::string(const Failure&)>& explain) {
    times_.call_s += now_s() - begun_;
    const std::function<bool(double)>& heartbeat = context_.options().heartbeat;
    // A run may be shorter than a beat, and a signal may have come since the last one.
    if (heartbeat && !outcome_.interrupted) outcome_.interrupted = heartbeat(-1);
    Transport& t = context_.transport();
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    const auto slowest = [](double seconds) { return -static_cast<std::int64_t>(seconds * 1e9); };
    // Others may compute for long yet.
    bool late = false;
    const auto look = [&] {
        (void)alarms().heard();
        if (late || outcome_.interrupted || !heartbeat || !heartbeat(-1)) return;
        late = true;
        alarms().raise();
    };
    const Meanwhile looking(t, look);
    std::vector<std::int64_t> v{failed() ? failed_meeting_ * t.size() + t.rank() : none,
                                outcome_.interrupted ? 0 : 1,
                                outcome_.stopped || alarms().raised() ? 0 : 1,
                                slowest(outcome_.time_s),
                                slowest(times_.moving_s),
                                slowest(times_.call_s)};
    allreduce_min(t, v);
    const auto seconds = [&](std::size_t i) { return static_cast<double>(-v[i]) * 1e-9; };
    context_.engine()->ran_s += seconds(3);
    if (v[2] == 0) alarms().take_outstanding();
    if (v[0] == none && v[1] != 0 && v[2] == 0) {  // a rank that waited here has stopped the others
        std::vector<std::int64_t> interrupted{late ? 0 : 1};
        allreduce_min(t, interrupted);
        v[1] = interrupted[0];
    }
    if (v[0] != none) {
        const int from = static_cast<int>(v[0] % t.size());
        const RankStatus status = t.rank() == from ? status_of(outcome_, explain, from) : RankStatus();
        std::string text = static_cast<char>(status.kind) + status.error;
        broadcast(t, text, from);
        throw_as(static_cast<RankStatus::Kind>(text[0]), text.substr(1));
    }
    if (v[1] != 0 && v[2] == 0) throw InternalError("a run was stopped, and no rank reports why");
    return {v[1] == 0, seconds(3), seconds(4), seconds(5)};
}

std::vector<Reduced> CollectiveRun::reduced() {
    return reduce_over_ranks(context_.transport(), std::move(outcome_.reduced));
}

}  // namespace tilewave
