#include "runtime/prepared_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "data/memory.hpp"
#include "data/rows.hpp"
#include "execute/alarms.hpp"
#include "execute/recording.hpp"
#include "execute/rolling_window.hpp"
#include "runtime/conversion.hpp"
#include "runtime/exchange.hpp"
#include "runtime/run_blocks.hpp"
#include "runtime/run_ending.hpp"
#include "runtime/time_buffers.hpp"
#include "schedule/tile_rows.hpp"

namespace tilewave {

using namespace tuning;

const Timeline& Report::timeline() const {
    if (!timeline_) timeline_ = make_timeline ? make_timeline() : Timeline{};
    return *timeline_;
}

std::string Report::to_string() const {
    char line[512];
    std::snprintf(line, sizeof line,
                  "plan           %s\nranks x threads %d x %d\nmeasured time  %.6g s\npoints         %lld (%.4g "
                  "/s)\noverlap ratio  %.3f\n",
                  plan.to_string().c_str(), ranks, threads, time_s, static_cast<long long>(points), points_per_s(),
                  overlap_ratio);
    return line;
}

namespace {

Index last_unit(int n) {
    Index e = Index::filled(n, 0);
    e[n - 1] = 1;
    return e;
}

// Points to compute over all ranks: of the box, those within the bounds.
std::int64_t points_of(const Schedule& s) {
    if (s.bounds.empty()) return s.space.points();
    std::int64_t points = 0;
    TileRows rows(s, s.space);
    for (bool more = rows.first(); more; more = rows.next()) points += rows.end() - rows.begin();
    return points;
}

SweepProblem completed(SweepProblem problem) {
    problem.complete();
    return problem;
}

}  // namespace

PreparedSweep::PreparedSweep(Context& context, SweepProblem problem, Plan plan)
    : context_(context),
      problem_(completed(std::move(problem))),
      plan_(std::move(plan)),
      schedule_(sweep(problem_, plan_, context.rank(), context.size())),
      steps_(sweep_steps(problem_, plan_)),
      points_(points_of(schedule_)) {
    for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a)
        orders_.push_back(in_window(a) ? 0 : memory_orders(problem_, plan_, a, context.size()));
    for (const Message& m : schedule_.messages)
        if (m.tag > context.transport().max_tag())
            throw ConfigError("the plan makes " + std::to_string(m.tag) +
                              " and more messages between two ranks, this MPI has "
                              "tags up to " +
                              std::to_string(context.transport().max_tag()) + "; take larger tiles or chunks");
    if (schedule_.along >= 0) window_ = std::make_unique<RollingWindow>(schedule_);
}

PreparedSweep::~PreparedSweep() = default;

void PreparedSweep::prepare_steps(std::int64_t steps) {
    const StepBlocks blocks = StepBlocks::of(problem_, plan_, steps);
    const bool in_time = std::all_of(problem_.accesses.begin(), problem_.accesses.end(), [&](const Access& p) {
        return !p.writes || problem_.arrays[static_cast<std::size_t>(p.array)].time_buffers > 0;
    });
    const bool even = std::all_of(problem_.bounds.begin(), problem_.bounds.end(),
                                  [](const Bound& b) { return b.coefficients[0] == 0; });
    if (!in_time || !even || window_)
        throw ConfigError("prepare_steps: the problem's first loop is no time that blocks of steps could be cut from");
    if (blocks.rest > 0 && (!rest_ || rest_->extent() != blocks.rest))
        rest_ = std::make_unique<RestOfSteps>(problem_, plan_, blocks.rest, context_.rank(), context_.size());
}

std::int64_t PreparedSweep::bytes() const {
    const auto of = [](const auto& list) { return static_cast<std::int64_t>(list.size() * sizeof list[0]); };
    std::int64_t bytes =
        static_cast<std::int64_t>(sizeof *this) + of(schedule_.tiles) + of(schedule_.messages) + of(schedule_.buffers);
    for (const auto& lane : schedule_.lanes) bytes += of(lane);
    return bytes;
}

std::vector<std::int64_t> PreparedSweep::initial(int a) const {
    std::vector<std::int64_t> result;
    if (!window_) return result;
    const std::vector<std::int64_t> z = window_->elements(a);
    const NestArray& n = problem_.arrays[static_cast<std::size_t>(a)];
    const Index shift = problem_.shift(a);
    const IndexMatrix back = inverse(problem_.loops);
    const auto dims = static_cast<std::size_t>(problem_.dims());
    for (std::size_t i = 0; i < z.size(); i += dims) {
        const Index x = back * Index(std::span(z).subspan(i, dims));
        for (auto k : n.axes) result.push_back(x[static_cast<int>(k)] + shift[static_cast<int>(k)]);
    }
    return result;
}

struct PreparedSweep::Loose {
    Loose(Context& context, int array, const Binding& whole, const NestArray& n, const Box& box,
          const MemoryOrder& order, int time_buffers)
        : array(array), item_bytes(n.item_bytes), extents(box.hi), whole(whole), order(order) {
        memory = context.exchange()->spare->lend(order.items * item_bytes * time_buffers);
        binding.data = memory.get() + order.first * item_bytes;
        binding.stride_bytes = order.stride;
        for (auto& s : binding.stride_bytes.v) s *= item_bytes;
    }
    void take(Context& context) const {
        copy_on_lanes(context, binding.data, binding.stride_bytes, whole.data, whole.stride_bytes, extents, item_bytes);
    }
    void put_back(Context& context, const SweepProblem& problem) const {
        if (!problem.written(array)) return;
        copy_on_lanes(context, whole.data, whole.stride_bytes, binding.data, binding.stride_bytes, extents, item_bytes);
    }
    // take() and, for what is written, put_back(), by some of them: into memory of its own in place of the array.
    double both_s(Context& context, const SweepProblem& problem) {
        std::int64_t items = 1;
        for (auto n : extents) items *= n;
        if (items == 0) return 0;
        const double parts = std::max<double>(1.0, static_cast<double>(items) / tried_items);
        const std::int64_t all = extents[0];
        extents[0] = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(all) / parts));
        Binding copy{nullptr, row_major_strides(Box{Index::filled(extents.n, 0), extents}, item_bytes)};
        std::int64_t bytes = item_bytes;
        for (auto n : extents) bytes *= n;
        const auto target = context.exchange()->spare->lend(bytes);
        copy.data = target.get();
        take(context);
        const double begin = now_s();
        if (problem.written(array))
            copy_on_lanes(context, copy.data, copy.stride_bytes, binding.data, binding.stride_bytes, extents,
                          item_bytes);
        take(context);
        return (now_s() - begin) * static_cast<double>(all) / static_cast<double>(extents[0]);
    }
    int array;
    std::int64_t item_bytes;
    Index extents;
    Binding whole, binding;
    MemoryOrder order;
    std::shared_ptr<std::byte[]> memory;
};

// Memory that is whole on the one rank is used where it lies, unless the plan wants rows of it that
// are not there, or several time buffers.
bool PreparedSweep::copied(int a, const RunArray& array) const {
    const NestArray& n = problem_.arrays[static_cast<std::size_t>(a)];
    if (array.field || n.replicated) return false;
    return plan_.storage == StorageKind::skewed || lies_in_boxes(problem_, plan_, a) || n.time_buffers > 1;
}

int PreparedSweep::stagger() const {
    const int n = problem_.dims();
    if (problem_.sequential || n < 2) return 0;
    const IndexMatrix order = plan_.order(n);
    bool within = false;
    std::int64_t points = 1;
    for (const Index& d : problem_.dependences()) {
        const Index y = order * d;
        if (!std::all_of(y.begin(), y.end() - 2, [](auto x) { return x == 0; })) continue;
        const std::int64_t rows = y[n - 2], along = y[n - 1];
        if (rows == 0) within = true;
        if (rows < 0) return 0;
        if (rows > 0) points = std::max(points, ceil_div(1 - along, rows));
    }
    return within && points <= most_stagger ? static_cast<int>(points) : 0;
}

// A load that follows another row's store to its place in a page by less than the processor keeps of stores would wait
// for it (memory.hpp). 64x64x4096 in single precision, four rows at once: 1.6 ns a point 2 points apart, 1.05 at 8.
bool PreparedSweep::rows_meet(std::span<const RunArray> arrays) const {
    const int n = problem_.dims();
    Index unit = Index::filled(n, 0);
    unit[n - 2] = 1;
    const std::vector<std::int64_t> across = steps_by(inverse(schedule_.order) * unit, arrays);
    for (std::size_t p = 0; p < across.size(); ++p)
        for (std::int64_t r = 1; r < nearest_rows && schedule_.places[p].writes; ++r)
            if (const std::int64_t apart = ((r * across[p]) % page_bytes + page_bytes) % page_bytes;
                std::min(apart, page_bytes - apart) < near_in_page)
                return true;
    return false;
}

std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>> PreparedSweep::neighbours() const {
    const std::vector<Access>& places = schedule_.places;
    std::vector<std::optional<std::pair<std::int64_t, std::int64_t>>> result;
    for (const Access& place : places) {
        const auto writes = [&](const Access& p) { return p.writes && p.array == place.array; };
        result.emplace_back();
        if (std::count_if(places.begin(), places.end(), writes) != 1) continue;
        const Index y = schedule_.order * (place.offset - std::find_if(places.begin(), places.end(), writes)->offset);
        if (std::all_of(y.begin(), y.end() - 2, [](auto x) { return x == 0; }))
            result.back() = {y[y.n - 2], y[y.n - 1]};
    }
    return result;
}

double PreparedSweep::conversion_s(std::span<const RunArray> arrays) const {
    if (arrays.size() != problem_.arrays.size())
        throw ConfigError("conversion_s: " + std::to_string(arrays.size()) + " arrays given, the nest has " +
                          std::to_string(problem_.arrays.size()));
    double seconds = 0;
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
        const RunArray& array = arrays[static_cast<std::size_t>(a)];
        if (in_window(a) || !copied(a, array)) continue;
        const NestArray& n = problem_.arrays[static_cast<std::size_t>(a)];
        const MemoryOrder order = memory_order(problem_, plan_, a, context_.rank());
        seconds +=
            Loose(context_, a, array.whole, n, layout(problem_, plan_, a).whole(), order, std::max(n.time_buffers, 1))
                .both_s(context_, problem_);
    }
    return seconds;
}

// From an array's own dimensions to z coordinates: the address of the schedule's storage.lo.
Binding PreparedSweep::to_loops(int a, const Binding& own, const Index& first) const {
    const NestArray& n = problem_.arrays[static_cast<std::size_t>(a)];
    const Box& storage = schedule_.arrays[static_cast<std::size_t>(a)].storage;
    const Index shift = problem_.shift(a);
    Index x_stride = Index::filled(problem_.dims(), 0);
    std::int64_t at = 0;
    for (int d = 0; d < n.axes.n; ++d) {
        const int k = static_cast<int>(n.axes[d]);
        x_stride[k] += own.stride_bytes[d];
        at += own.stride_bytes[d] * (shift[k] - first[d]);
    }
    Binding b;
    b.stride_bytes = x_stride * inverse(problem_.loops);
    for (int k = 0; k < problem_.dims(); ++k) at += b.stride_bytes[k] * storage.lo[k];
    b.data = reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(own.data) + at);
    return b;
}

std::vector<std::pair<int, std::int64_t>> PreparedSweep::beside() const {
    const Index along = inverse(schedule_.order) * last_unit(problem_.dims());
    const std::vector<Access>& places = schedule_.places;
    std::vector<std::pair<int, std::int64_t>> result;
    for (std::size_t q = 0; q < places.size(); ++q) {
        result.push_back({-1, 0});
        for (std::size_t p = 0; p < q && result.back().first < 0; ++p) {
            if (places[p].array != places[q].array || result[p].first >= 0) continue;
            const Index apart = places[q].offset - places[p].offset;
            std::int64_t points = 0;
            for (int k = 0; k < along.n; ++k)
                if (along[k] != 0) points = apart[k] / along[k];
            if (points == 0) continue;
            Index back = apart;
            for (int k = 0; k < along.n; ++k) back[k] -= points * along[k];
            if (back == Index::filled(along.n, 0)) result.back() = {static_cast<int>(p), points};
        }
    }
    return result;
}

std::vector<std::int64_t> PreparedSweep::row_steps(std::span<const RunArray> arrays) const {
    return steps_by(inverse(schedule_.order) * last_unit(problem_.dims()), arrays);
}

// Bytes that each place moves by when a point moves by `along`.
std::vector<std::int64_t> PreparedSweep::steps_by(const Index& along, std::span<const RunArray> arrays) const {
    std::vector<std::int64_t> steps;
    for (const Access& p : schedule_.places) {
        const RunArray& array = arrays[static_cast<std::size_t>(p.array)];
        if (in_window(p.array)) {
            steps.push_back(problem_.arrays[static_cast<std::size_t>(p.array)].item_bytes);
            continue;
        }
        const NestArray& n = problem_.arrays[static_cast<std::size_t>(p.array)];
        Binding own = array.whole;
        Index first = Index::filled(n.axes.n, 0);
        if (array.field || copied(p.array, array)) {
            own.stride_bytes = memory_order(problem_, plan_, p.array, context_.rank()).stride;
            for (auto& s : own.stride_bytes.v) s *= n.item_bytes;
        }
        const Binding b = to_loops(p.array, own, first);
        std::int64_t step = 0;
        for (int k = n.time_buffers > 0 ? 1 : 0; k < along.n; ++k) step += along[k] * b.stride_bytes[k];
        steps.push_back(step);
    }
    return steps;
}

Report PreparedSweep::run(std::span<const RunArray> arrays, const Kernel& kernel,
                          const std::function<std::string(const Failure&)>& explain,
                          std::optional<std::int64_t> given_steps, CallTimes call, std::int64_t first_step) {
    const double begun = now_s();
    if (arrays.size() != problem_.arrays.size())
        throw ConfigError("run: " + std::to_string(arrays.size()) + " arrays given, the nest has " +
                          std::to_string(problem_.arrays.size()));
    if (!kernel.reductions.empty() && deep_halo(problem_, plan_).along >= 0)
        throw ConfigError("run: points that two ranks compute were to be reduced; such a problem says `once`");
    const std::int64_t block_steps = problem_.space.extent(0), steps = given_steps.value_or(block_steps);
    const StepBlocks blocks = given_steps ? StepBlocks::of(problem_, plan_, steps) : StepBlocks{};
    if (blocks.rest > 0 && (!rest_ || rest_->extent() != blocks.rest))
        throw ConfigError("run: " + std::to_string(steps) + " steps were not prepared");
    const bool beside = block_steps == 1 && steps > 1 && problem_.reads_history_beside();
    Transport& t = context_.transport();
    Alarms& alarms = *context_.exchange()->alarms;
    alarms.begin(blocks.whole + (blocks.rest > 0));
    std::vector<std::int64_t> time_bytes(arrays.size(), 0);
    bool moved = false, others_may = false;  // on this rank; on some rank, as all of them know
    std::vector<Binding> bindings;
    std::vector<Loose> loose;
    std::vector<TimeBuffers> buffers;
    std::vector<WindowValues> initial;
    std::unique_ptr<WindowMemory> window;
    const auto make_ready = [&] {
        for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
            const NestArray& n = problem_.arrays[static_cast<std::size_t>(a)];
            if (in_window(a)) {
                const Array& array = schedule_.arrays[static_cast<std::size_t>(a)];
                bindings.push_back({nullptr, array.stride});
                for (auto& s : bindings.back().stride_bytes.v) s *= array.item_bytes;
                initial.push_back(
                    {arrays[static_cast<std::size_t>(a)].initial, arrays[static_cast<std::size_t>(a)].same});
                continue;
            }
            const Layout layout = tilewave::layout(problem_, plan_, a);
            const MemoryOrder order = memory_order(problem_, plan_, a, context_.rank());
            const int time_buffers = std::max(n.time_buffers, 1);
            FieldStorage* field = arrays[static_cast<std::size_t>(a)].field;
            const Binding& whole = arrays[static_cast<std::size_t>(a)].whole;
            std::byte* memory = nullptr;
            Binding own = whole;
            if (field) {
                others_may |= !field->stays(layout, time_buffers, orders_[static_cast<std::size_t>(a)]);
                moved |= field->relayout(layout, order, time_buffers, orders_[static_cast<std::size_t>(a)]);
                field->keep_history(time_buffers - 2);
                own = field->binding();
                memory = field->data();
            } else if (copied(a, arrays[static_cast<std::size_t>(a)])) {
                loose.emplace_back(context_, a, whole, n, layout.whole(), order, time_buffers);
                loose.back().take(context_);
                moved = true;
                own = loose.back().binding;
                memory = loose.back().memory.get();
            }
            const std::int64_t time_buffer_bytes = order.items * n.item_bytes;
            if (time_buffers > 1 && steps > 0) {
                const TimeBuffers all{memory, time_buffer_bytes, time_buffers};
                if (time_buffers > 2 && !beside)
                    keep_outside(problem_, a, all, own, held(problem_, plan_, a, context_.rank()), steps);
                turn(all, steps);
                buffers.push_back(all);
            }
            bindings.push_back(to_loops(a, own, held(problem_, plan_, a, context_.rank()).lo));
            for (int d = 0; d < n.axes.n; ++d)
                if (n.axes[d] == 0) time_bytes[static_cast<std::size_t>(a)] = own.stride_bytes[d];
            bindings.back().data += first_step * time_bytes[static_cast<std::size_t>(a)];
            if (n.time_buffers > 0) {
                bindings.back().stride_bytes[0] = time_buffer_bytes;
                bindings.back().first_time_buffer =
                    static_cast<int>(floor_mod(steps + n.given_time_buffers() - 1, time_buffers));
            }
        }
        if (window_) window = std::make_unique<WindowMemory>(*window_, std::move(initial));
    };
    std::exception_ptr lacking;  // what this rank does not get; the others may be computing already
    try {
        make_ready();
    } catch (const std::bad_alloc&) {
        lacking = std::current_exception();
    } catch (const std::system_error&) {
        lacking = std::current_exception();
    }
    // Ranks move different amounts: who is ready first would wait in the run, as if for its messages.
    if (others_may) barrier(t);
    if (moved) call.moving_s += now_s() - begun;
    ExecuteOptions options = context_.options();
    options.poll_period_s = plan_.poll_period_s;
    options.events = false;
    options.first_time = first_step;
    options.alarms = &alarms;
    options.window = window.get();
    options.crowded = options.crowded || plan_.lanes() + plan_.helper > context_.threads();
    if (t.size() > 1 && options.record) options.clock_offset_s = context_.clock_offset_s();
    BlocksRun run{blocks, schedule_, rest_ ? &rest_->schedule() : nullptr, block_steps, time_bytes};
    if (beside) {
        // What no point writes takes the value of the level at hand, in the buffers of those before, too, once they
        // have been read.
        run.before_block = [&](std::int64_t block) {
            for (const TimeBuffers& b : buffers)
                if (block <= b.count - 2)
                    std::memcpy(b.of(steps - block - 1), b.of(steps - block), static_cast<std::size_t>(b.bytes));
        };
    }
    auto [outcome, failed_block, notes] = execute_blocks(run, bindings, kernel, t, context_.lanes(), options, lacking);
    const double ran = now_s();
    if (!lacking)
        for (const Loose& l : loose) l.put_back(context_, problem_);
    const double ended = now_s();
    if (!loose.empty()) call.moving_s += ended - ran;
    call.call_s += ended - begun;
    // A run may be shorter than a beat, and a signal may have come since the last one.
    if (options.heartbeat && !outcome.interrupted) outcome.interrupted = options.heartbeat(-1);
    const RunEnding end = agree_on_end(t, alarms, outcome, failed_block, call, explain, options.heartbeat);
    Report report;
    report.plan = plan_;
    report.ranks = plan_.ranks();
    report.threads = plan_.lanes();
    report.points = given_steps ? points_ / block_steps * steps : points_;
    report.steps = steps_ * blocks.whole + (blocks.rest > 0 ? rest_->steps() : 0);
    report.buffer_bytes = std::max(schedule_.buffer_bytes(), blocks.rest > 0 ? rest_->schedule().buffer_bytes() : 0) +
                          (window_ ? window_->bytes() : 0);
    report.reduced = join_ranks(t, std::move(outcome.reduced));
    report.time_s = end.time_s;
    report.moving_s = end.moving_s;
    report.call_s = end.call_s;
    report.interrupted = end.interrupted;
    report.overlap_ratio = std::numeric_limits<double>::quiet_NaN();
    if (!options.record) return report;
    const Machine machine = t.size() > 1 ? context_.machine() : Machine();
    Recorded all = gather(t, notes, [&](int from, int to, std::int64_t bytes) {
        const Link& l = machine.link(from, to);
        const bool measured = !l.transfer_s.x.empty();
        const double byte_s = measured ? l.byte_s : machine.byte_s;
        return (measured ? l.latency_s : machine.latency_s) + static_cast<double>(bytes) * byte_s;
    });
    std::string ratio(reinterpret_cast<const char*>(&all.overlap_ratio), sizeof all.overlap_ratio);
    broadcast(t, ratio, 0);
    std::copy(ratio.begin(), ratio.end(), reinterpret_cast<char*>(&report.overlap_ratio));
    if (t.rank() > 0) return report;
    report.parts = all.parts;
    report.lanes = all.lanes;
    const BlockTimes times{ceil_div(block_steps, plan_.tile[0]), steps_};
    struct Kind {
        SweepProblem problem;
        Plan plan;
    };
    std::vector<Kind> kinds{{problem_, plan_}};
    if (blocks.rest > 0) kinds.push_back({rest_->problem(), rest_->plan()});
    report.make_timeline = [all = std::make_shared<const Recorded>(std::move(all)), times, kinds = std::move(kinds),
                            ranks = t.size()] {
        return timeline_of(*all, times, [&](int rank, int kind) {
            const Kind& k = kinds[static_cast<std::size_t>(kind)];
            return sweep(k.problem, k.plan, rank, ranks);
        });
    };
    return report;
}

}  // namespace tilewave
