#include "nests/bound_sweep.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "arrays/conversion.hpp"
#include "arrays/first_touch.hpp"
#include "core/tags.hpp"
#include "nests/tuning.hpp"
#include "run/run_schedule.hpp"

namespace tilewave {

using namespace tuning;

bool BoundSweep::suits(const PreparedSweep& sweep, std::span<const RunArray> arrays) {
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
        const bool part = sweep.problem_.arrays[a].scale.n && !arrays[a].field;
        if (!sweep.in_window(a) && (part || sweep.copied(a, arrays[a]))) return false;
    }
    return true;
}

BoundSweep::BoundSweep(Context& context, PreparedSweep& sweep, std::vector<RunArray> arrays, Kernel kernel,
                       std::function<std::string(const Failure&)> explain, std::vector<WholeField> whole)
    : context_(context),
      sweep_(sweep),
      kernel_(std::move(kernel)),
      explain_(std::move(explain)),
      whole_(std::move(whole)),
      time_bytes_(sweep.schedule_.arrays.size(), 0),
      main_(sweep.schedule_) {
    const SweepProblem& problem = sweep.problem_;
    if (arrays.size() != problem.arrays.size())
        throw ConfigError("run: " + std::to_string(arrays.size()) + " arrays given, the nest has " +
                          std::to_string(problem.arrays.size()));
    for (const WholeField& w : whole_) {
        copies_.emplace_back(context, *w.field, sweep.plan_.ranks() > 1);
        place_of_.push_back(w.stand_in);
    }
    for (std::size_t a = 0; a < arrays.size(); ++a) {
        Operand& operand = operands_.emplace_back(Operand{arrays[a]});
        if (const NestArray& n = problem.arrays[a]; n.scale.n && !operand.array.field) {
            const auto first = static_cast<std::size_t>(n.field);
            operand.copied = first < a ? operands_[first].copied
                                       : std::make_shared<FieldStorage>(context, n.field_shape, n.item_bytes);
            operand.array.field = operand.copied.get();
            if (first == a) copy_memory(a, false);
        }
        operand.time_buffers = std::max(problem.arrays[a].time_buffers, 1);
        if (!sweep.in_window(static_cast<int>(a))) {
            operand.layout = field_layout(problem, sweep.plan_, static_cast<int>(a));
            operand.order = field_order(problem, sweep.plan_, static_cast<int>(a), context.rank());
            continue;
        }
        const Array& array = sweep.schedule_.arrays[a];
        operand.binding = {nullptr, array.stride};
        for (auto& s : operand.binding.stride_bytes.v) s *= array.item_bytes;
        initial_.push_back({arrays[a].initial, arrays[a].same});
    }
}

// The same for the halos that its fields have, where these are wider. Nests that run in turn then move no field: halos
// grow to what each of them needs, and stay. Equal on all ranks, as layouts are.
BoundSweep& BoundSweep::as_fields_lie() {
    // What a field begins anew with is known as it lies now.
    if (has_tasks(sweep_.plan_) || begins_anew()) return *this;
    LeastHalos halos(operands_.size());
    bool wider = false;
    for (std::size_t a = 0; a < operands_.size(); ++a) {
        const Operand& o = operands_[a];
        if (!o.array.field || !o.layout || sweep_.problem_.arrays[a].replicated) continue;
        const Layout &wanted = *o.layout, has = o.array.field->layout().without_idle_halos();
        if (!has.same_blocks(wanted) || o.array.field->orders() != FieldStorage::row_major_orders ||
            sweep_.orders_[a] != FieldStorage::row_major_orders)
            continue;
        LeastHalo& all = halos[a] = {wanted.halo_lo, wanted.halo_hi, wanted.wraps};
        for (int d = 0; d < has.dims(); ++d) {
            all.lo[d] = std::max(all.lo[d], has.halo_lo[d]);
            all.hi[d] = std::max(all.hi[d], has.halo_hi[d]);
            if (all.wraps.n && has.wraps.n) all.wraps[d] = all.wraps[d] || has.wraps[d];
        }
        if (all.wraps.n == 0) all.wraps = has.wraps;
        wider |= all != LeastHalo{wanted.halo_lo, wanted.halo_hi, wanted.wraps};
    }
    if (!wider || without(sweep_.problem_.paths_off, FastPath::halos_stay)) return *this;
    PreparedSweep& sweep = sweep_.widened(halos);
    if (&sweep == &sweep_) return *this;
    if (!wider_ || &wider_->sweep_ != &sweep) {
        std::vector<RunArray> arrays;
        for (const Operand& o : operands_) arrays.push_back(o.array);
        // The kernel knows how rows lie in memory: in an array that is copied for wider halos they may lie otherwise.
        if (sweep.row_steps(arrays) != sweep_.row_steps(arrays)) return *this;
        for (std::size_t k = 0; k < whole_.size(); ++k) whole_[k].stand_in = place_of_[k];
        wider_ = std::make_unique<BoundSweep>(context_, sweep, std::move(arrays), kernel_, explain_, whole_);
    }
    wider_->kernel_.env = kernel_.env;
    wider_->kernel_.unreduced = kernel_.unreduced;
    return *wider_;
}

// From the memory that array `a` is part of to the field that stands for it, or back.
void BoundSweep::copy_memory(std::size_t a, bool back) {
    const NestArray& n = sweep_.problem_.arrays[a];
    const FieldStorage& field = *operands_[a].copied;
    Binding memory = operands_[a].array.whole;
    const Binding copy = field.binding();
    std::byte* first = copy.data;  // of the elements, behind a halo
    for (int d = 0; d < n.scale.n; ++d) {
        memory.stride_bytes[d] /= n.scale[d];
        memory.data -= n.residue[d] * memory.stride_bytes[d];
        first -= field.storage().lo[d] * copy.stride_bytes[d];
    }
    const Binding elements{first, copy.stride_bytes};
    const Binding &to = back ? memory : elements, &from = back ? elements : memory;
    copy_on_lanes(context_, to.data, to.stride_bytes, from.data, from.stride_bytes, n.field_shape, n.item_bytes);
}

// Where the array is now, for the loops.
void BoundSweep::bind(std::size_t a) {
    Operand& o = operands_[a];
    const int array = static_cast<int>(a);
    const NestArray& n = sweep_.problem_.arrays[a];
    o.own = o.array.field ? sweep_.in_field(array, *o.array.field)
            : o.converted ? o.converted->binding()
                          : o.array.whole;
    o.version = o.array.field ? o.array.field->version() : 1;
    o.binding =
        sweep_.to_loops(array, o.own, held(sweep_.problem_, sweep_.plan_, array, context_.rank()).lo, o.array.mirrored);
    for (int d = 0; d < n.axes.n; ++d)
        if (n.axes[d] == 0) time_bytes_[a] = o.array.mirrored ? -o.own.stride_bytes[d] : o.own.stride_bytes[d];
    if (n.time_buffers > 0) o.binding.stride_bytes[0] = o.order.items * n.item_bytes;
}

void BoundSweep::turn_buffers(std::size_t a, std::int64_t steps, bool history_beside) {
    const Operand& o = operands_[a];
    const NestArray& n = sweep_.problem_.arrays[a];
    const TimeBuffers all{o.array.field ? o.array.field->data() : o.converted->memory(), o.order.items * n.item_bytes,
                          o.time_buffers};
    const int array = static_cast<int>(a);
    const bool part = n.scale.n > 0;
    if (o.time_buffers > 2 && !history_beside)
        keep_unwritten(sweep_.problem_, array, all, part ? o.array.field->binding() : o.own,
                       part ? o.array.field->storage() : held(sweep_.problem_, sweep_.plan_, array, context_.rank()),
                       steps);
    rotate_time_buffers(all, steps);
    buffers_.push_back(all);
}

// The lanes that compute a field touch its new memory first.
void BoundSweep::touch_first(std::size_t a, std::byte* data, int buffers) {
    const Operand& o = operands_[a];
    const NestArray& n = sweep_.problem_.arrays[a];
    const int array = static_cast<int>(a);
    const std::int64_t bytes = o.order.items * n.item_bytes;
    if (n.scale.n > 0 || has_tasks(sweep_.plan_) || !touch_matters(context_, bytes * buffers)) return;
    Binding memory{data + o.order.first * n.item_bytes, o.order.stride};
    for (auto& s : memory.stride_bytes.v) s *= n.item_bytes;
    memory = sweep_.to_loops(array, memory, held(sweep_.problem_, sweep_.plan_, array, context_.rank()).lo,
                             o.array.mirrored);
    FirstTouch::by_tiles(sweep_.schedule_, array, memory, data, bytes, page_of(bytes * buffers))
        .make(context_.lanes(), data, buffers);
}

// The values from before the first run.
void BoundSweep::begin_anew(Operand& o) {
    FieldStorage& field = *o.array.field;
    const std::int64_t bytes = o.order.items * field.item_bytes() * std::max(o.time_buffers - 1, 1);
    if (o.first.empty())
        o.first.assign(field.data(), field.data() + bytes);
    else
        std::ranges::copy(o.first, field.data());
}

// The fields that are whole on ranks, of `changed` ones alone where these are given.
void BoundSweep::copy_fields(CollectiveRun& run, const Fields* changed) {
    for (std::size_t k = 0; k < copies_.size(); ++k) {
        if (changed && !changed->contains(copies_[k].field())) continue;
        const WholeField& w = whole_[k];
        const std::byte* const before = place_of_[k];
        copies_[k].make(run, context_.options());
        std::byte* const now = copies_[k].data();
        if (now == before) continue;
        place_of_[k] = now;
        for (const int a : w.arrays) {
            operands_[a].array.whole.data = now + (operands_[a].array.whole.data - before);
            operands_[a].version = 0;
        }
        if (w.table >= 0) kernel_.tables.at(w.table) = reinterpret_cast<char*>(now);
    }
}

void BoundSweep::place_arrays(std::size_t a, std::int64_t steps, bool history_beside, bool turned_later) {
    Operand& o = operands_[a];
    const NestArray& n = sweep_.problem_.arrays[a];
    const bool in_window = sweep_.in_window(static_cast<int>(a));
    int version = in_window ? 0 : 1;
    if (FieldStorage* const field = o.array.field) {
        const std::uint64_t orders = sweep_.orders_[a];
        if (!field->stays(*o.layout, o.time_buffers, orders)) {
            others_may_ = true;
            moved_ |= field->relayout(*o.layout, o.order, o.time_buffers, orders,
                                      [&](std::byte* data, int buffers) { touch_first(a, data, buffers); });
        }
        field->keep_history(o.time_buffers - 2);
        version = field->version();
        if (o.array.anew && !of_.more) begin_anew(o);
    } else if (!in_window && sweep_.copied(static_cast<int>(a), o.array)) {
        o.converted.emplace(context_, static_cast<int>(a), o.array.whole, n, *o.layout, o.order, o.time_buffers);
        // A rank that computes nothing may have no copy of a field.
        if (context_.rank() < sweep_.plan_.ranks()) o.converted->copy_in(context_);
        moved_ = true;
        o.version = 0;
    }
    if (version != o.version) bind(a);
    const bool first = n.scale.n == 0 || n.field == static_cast<int>(a);  // parts of a field turn with it
    if (first && !in_window && o.time_buffers > 1 && steps > 0 && !turned_later) turn_buffers(a, steps, history_beside);
    bindings_.push_back(o.binding);
    bindings_.back().data += of_.first * time_bytes_[a];
    if (n.time_buffers > 0 && !in_window)
        bindings_.back().first_time_buffer =
            static_cast<int>(floor_mod(steps + n.given_time_buffers() - 1, o.time_buffers));
}

// Arrays where the plan wants them, also after others have moved them. `turned_later`: time buffers stay as they are.
void BoundSweep::place_arrays(CollectiveRun& run, std::int64_t steps, bool history_beside, bool turned_later) {
    moved_ = others_may_ = false;
    bindings_.clear();
    buffers_.clear();
    for (std::size_t a = 0; a < operands_.size(); ++a)
        run.obtain([&] { place_arrays(a, steps, history_beside, turned_later); });
    run.obtain([&] {
        if (window_)
            window_->restart();
        else if (sweep_.window_)
            window_.emplace(*sweep_.window_, initial_);
    });
}

// A schedule of tasks has arrays as they lie, and memory of its own.
void BoundSweep::bind_tasks(std::int64_t steps) {
    const SweepProblem& problem = sweep_.problem_;
    if (!tasks_) {
        moving_.emplace(sweep_.schedule_);
        tasks_ = tasks_of(problem, sweep_.plan_, context_.rank());
        operations_ = tasks_->functions();
    }
    for (std::size_t a = 0; a < operands_.size(); ++a) {
        bindings_[a] = operands_[a].own;
        const Array& array = sweep_.schedule_.arrays[a];
        const Box stored = held(problem, sweep_.plan_, static_cast<int>(a), context_.rank());
        if (array.whole || array.storage.dims() != stored.dims()) continue;  // tasks have a part, without halo
        for (int d = 0; d < stored.dims(); ++d)
            bindings_[a].data += (array.storage.lo[d] - stored.lo[d]) * bindings_[a].stride_bytes[d];
    }
    bindings_ = moving_->with(bindings_);
    std::vector<LoopMemory> operands;
    for (const Access& p : problem.accesses) {
        const Operand& o = operands_[p.array];
        const Index first = held(problem, sweep_.plan_, p.array, context_.rank()).lo;
        LoopMemory& m = operands.emplace_back(memory_of(problem, p, o.own, first, o.array.mirrored));
        m.buffers = o.time_buffers, m.buffer_bytes = o.order.items * problem.arrays[p.array].item_bytes;
    }
    tasks_->set(kernel_, std::move(operands), std::span(bindings_).subspan(operands_.size()), explain_);
    tasks_->begin_steps(of_.first, 0, steps);
}

BoundSweep::Rest* BoundSweep::rest_of(const StepBlocks& blocks) {
    if (blocks.rest == 0) return nullptr;
    std::unique_ptr<Rest>& rest = rests_[blocks.rest];
    if (rest) return rest.get();
    auto made = std::make_unique<Rest>(sweep_.rest_of(blocks.rest));
    if (rests_.size() > most_kept_rests)
        std::erase_if(rests_, [&](const auto& each) { return each.first != blocks.rest; });
    return (rests_[blocks.rest] = std::move(made)).get();
}

ExecuteOptions BoundSweep::options() {
    ExecuteOptions options = context_.options();
    options.poll_period_s = sweep_.plan_.poll_period_s;
    options.record = options.events = false;
    options.first_time = of_.first;
    options.window = window_ ? &*window_ : nullptr;
    if (has_tasks(sweep_.plan_)) options.first_tag = tags::first_face;
    options.crowded = options.crowded || sweep_.plan_.lanes() + sweep_.plan_.helper > context_.threads();
    return options;
}

BoundSweep::Steps BoundSweep::steps_of(std::optional<std::int64_t> given) {
    const SweepProblem& problem = sweep_.problem_;
    const std::int64_t block_steps = problem.space.extent(0), count = given.value_or(block_steps);
    Steps steps{count, given.has_value(), block_steps == 1 && count > 1 && problem.reads_history_of_neighbours()};
    if (given) steps.blocks = StepBlocks::of(problem, sweep_.plan_, count);
    steps.rest = rest_of(steps.blocks);
    steps.run = {&main_,      nullptr,    steps.rest ? &steps.rest->kept : nullptr, steps.blocks.whole, 1,
                 block_steps, time_bytes_};
    if (has_tasks(sweep_.plan_)) steps.run.steps = 0;  // memory of tasks begins anew
    const std::int64_t times = nest_repetitions(problem, sweep_.plan_);
    if (times > 1) {  // its schedule has a block
        steps.run.repeated = &main_;
        steps.run.whole = steps.run.most_repetitions = times;
    }
    if (const Schedule* const repeated = sweep_.repeated(steps.blocks)) {
        if (!several_) several_.emplace(*repeated);
        steps.run.repeated = &*several_;
        steps.run.most_repetitions = repetitions_together(block_steps);
    }
    const bool visited = std::ranges::any_of(of_.points, [](const StepPoints& p) { return !p.by_lanes; });
    if (steps.history_beside || visited)
        // An element that no point writes takes its current value in the buffers of earlier times, once those have been
        // read.
        steps.run.before_block = [this, count, beside = steps.history_beside](std::int64_t block) {
            if (tasks_) tasks_->begin_steps(of_.first + block, block, count);
            visit_points(block - 1, count);
            for (const TimeBuffers& b : beside ? buffers_ : std::vector<TimeBuffers>())
                if (block <= b.count - 2)
                    std::memcpy(b.of(count - block - 1), b.of(count - block), static_cast<std::size_t>(b.bytes));
        };
    return steps;
}

std::int64_t BoundSweep::meetings(const Steps& steps, const Fields* changed) const {
    const auto copied = [&](const FieldCopy& c) { return !changed || changed->contains(c.field()); };
    return steps.run.meetings() + std::ranges::count_if(copies_, copied);
}

// All of a run but its beginning and its end, between which others may follow; fields are copied where they have
// `changed`, or all.
void BoundSweep::run_once(CollectiveRun& run, const Steps& steps, bool record, const Fields* changed) {
    copy_fields(run, changed);
    place_arrays(run, steps.count, steps.history_beside);
    if (has_tasks(sweep_.plan_) && !run.lacks()) run.obtain([&] { bind_tasks(steps.count); });
    run.arrays_are_ready(moved_, others_may_);
    ExecuteOptions given = options();
    given.record = record;
    if (of_.last_reduced) given.reduced_time = of_.first + steps.count - 1;
    given.events = record && sweep_.plan_.generator == GeneratorKind::gather;  // notes are of whole blocks
    std::optional<StepVisitor> visitor;
    run.obtain([&] {
        if (std::optional<StepVisitor> found = this->visitor()) visitor.emplace(std::move(*found));
    });
    if (visitor && !visitor->empty()) given.visitors = {&*visitor, 1};
    run.execute(steps.run, bindings_, Programs{{&kernel_, 1}, operations_}, std::move(given));
    if (has_tasks(sweep_.plan_) && !run.lacks()) run.set_reduced(tasks_->reduced());
    if (steps.count > 0 && !run.lacks()) {
        visit_points(steps.count - 1, steps.count);
        record_unwritten(steps.count);
    }
    const double ran = now_s();
    for (const Operand& o : operands_)
        if (o.converted && !run.lacks()) o.converted->copy_back(context_, sweep_.problem_);
    for (std::size_t a = 0; a < operands_.size(); ++a)
        if (operands_[a].copied && sweep_.problem_.arrays[a].field == static_cast<int>(a) && !run.lacks())
            copy_memory(a, true);
    if (moved_) run.add_moving(now_s() - ran);
}

std::int64_t BoundSweep::buffer_bytes(const Steps& steps) const {
    const std::int64_t rest = steps.rest ? steps.rest->steps->schedule().buffer_bytes() : 0;
    return std::max(sweep_.schedule_.buffer_bytes(), rest) + (sweep_.window_ ? sweep_.window_->bytes() : 0) +
           (moving_ ? moving_->bytes() : 0);
}

BoundRun BoundSweep::perform(CollectiveRun& run, const Steps& steps, bool record) {
    run_once(run, steps, record);
    BoundRun result{run.end(explain_)};
    result.points = steps.given ? sweep_.points_ / sweep_.problem_.space.extent(0) * steps.count : sweep_.points_;
    result.waves = sweep_.waves_ * steps.blocks.whole + (steps.rest ? steps.rest->steps->waves() : 0);
    result.buffer_bytes = buffer_bytes(steps);
    result.reduced = run.reduced();
    return result;
}

BoundRun BoundSweep::run(const std::shared_ptr<const HashedStatus>& said, std::optional<std::int64_t> given,
                         const void* env, const RunOfSteps& of) {
    const double begun = now_s();
    std::optional<Steps> steps;
    kernel_.env = env;
    if (kernel_.unreduced) kernel_.unreduced->env = env;
    BoundSweep* here = this;
    const auto make = [&] {
        here = &as_fields_lie();
        here->begin(of);
        steps.emplace(here->steps_of(given));
    };
    if (said)
        agree_after(context_, said, make);
    else
        make();
    CollectiveRun run(context_, here->meetings(*steps), {0, now_s() - begun});
    return here->perform(run, *steps, false);
}

Report BoundSweep::run_recorded(std::optional<std::int64_t> given, const CallTimes& before, std::int64_t first_step,
                                std::span<const StepPoints> points) {
    BoundSweep& here = as_fields_lie();
    here.begin({first_step, points});
    return here.run_here(given, before);
}

void BoundSweep::begin(const RunOfSteps& of) {
    of_ = of;
    added_.clear();
}

Report BoundSweep::run_here(std::optional<std::int64_t> given, const CallTimes& before) {
    const Steps steps = steps_of(given);
    CollectiveRun run(context_, meetings(steps), before);
    Report result = report(perform(run, steps, context_.options().record));
    if (context_.options().record && sweep_.plan_.generator == GeneratorKind::gather) {
        const Timeline all = gather_events(context_.transport(), run.timeline(), 0);
        result.parts = parts(all);
        result.make_timeline = [all] { return all; };
    } else if (context_.options().record) {
        add_timeline(result, run.notes(), steps.rest);
    }
    return result;
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

// Overlap ratio on all ranks; timeline, and its times by kind of step, on rank 0. Collective.
void BoundSweep::add_timeline(Report& report, const Notes& notes, const Rest* rest) const {
    Transport& t = context_.transport();
    const Machine machine = t.size() > 1 ? context_.machine() : Machine();
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
    std::ranges::copy(ratio, reinterpret_cast<char*>(&report.overlap_ratio));
    if (t.rank() > 0) return;
    report.parts = all.parts;
    report.lanes = all.lanes;
    const BlockTimes times{ceil_div(sweep_.problem_.space.extent(0), sweep_.plan_.tile[0]), sweep_.waves_};
    struct Kind {
        SweepProblem problem;
        Plan plan;
    };
    std::vector<Kind> kinds(3, {sweep_.problem_, sweep_.plan_});  // by BlockKind
    if (rest) kinds[static_cast<std::size_t>(BlockKind::rest)] = {rest->steps->problem(), rest->steps->plan()};
    report.make_timeline = [all = std::make_shared<const Recorded>(std::move(all)), times, kinds = std::move(kinds),
                            ranks = t.size()] {
        return timeline_of(*all, times, [&](int rank, int kind) {
            const Kind& k = kinds[static_cast<std::size_t>(kind)];
            const Schedule block = nest_schedule(k.problem, k.plan, rank, ranks);
            return kind == static_cast<int>(BlockKind::several) ? repeated_block(k.problem, block) : block;
        });
    };
}

}  // namespace tilewave
