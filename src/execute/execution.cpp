#include "execute/execution.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "core/concat.hpp"
#include "execute/alarms.hpp"
#include "execute/tuning.hpp"
#include "tilewave/engine/layout.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// f(first point) for each row of a box along its last dimension, in row-major order.
template <class F>
void for_each_row(const Box& box, F f) {
    Index at = box.lo;
    do f(at);
    while (next_point(at, box, 1u << (box.dims() - 1)));
}

}  // namespace

// Whether a step can be taken without waiting.
bool Execution::ready(const Step& step) const {
    if (step.op == Op::wait) return request_table_.done(step.item);
    if (step.op == Op::await) return counters_[step.item].value.load(std::memory_order_acquire) >= step.count;
    return true;
}

void Execution::perform(int l, const Step& step) {
    if (options_.in_transport && l == 0 && moves_in_transport(step)) return;
    switch (step.op) {
        case Op::compute:
            if (!stopped_.load(std::memory_order_relaxed)) compute(l, s_.tiles[step.item]);
            break;
        case Op::post_recv: request_table_.post(step.item, message_data(l, s_.messages[step.item]), serves(l)); break;
        case Op::post_send:
            if (serves(l) && draining()) notify_others();
            request_table_.post(step.item, message_data(l, s_.messages[step.item]), serves(l), draining());
            break;
        case Op::pack:
        case Op::unpack:
            if (const Message& m = s_.messages[step.item]; !draining())
                copy(l, m, step.op == Op::pack, buffers_[m.buffer].get());
            break;
        case Op::combine: {
            const std::int32_t next = combine_.straight.empty() ? 0 : combine_.straight[position_];
            combine(l, s_.messages[step.item], step.count, next ? &s_.messages[s_.lanes[0][next].item] : nullptr);
            break;
        }
        case Op::signal: counters_[l].value.store(step.count, std::memory_order_release); break;
        case Op::wait:
        case Op::await: break;
    }
}

void Execution::compute(int l, const Tile& tile) {
    try {
        computers_.of(s_.works[tile.work])->compute(*this, l, tile);
    } catch (...) {
        stop_for(std::current_exception());
    }
}

void Execution::run_steps(int l) {
    const bool record = options_.record;
    auto& ends = ends_[l];
    double (*const clock)() = options_.cpu_time ? cpu_s : now_s;
    if (record) ends.push_back(clock());  // start of the lane, then the end of each step
    const auto& steps = s_.lanes[l];
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (l == 0) position_ = i;
        if (!ready(steps[i])) wait_for(l, i);
        perform(l, steps[i]);
        if (record) ends.push_back(clock());
    }
}

bool Execution::advance() {
    const auto& steps = s_.lanes[0];
    const bool record = options_.record;
    if (record && ends_[0].empty()) ends_[0].push_back(now_s());
    for (; position_ < steps.size(); ++position_) {
        const Step& step = steps[position_];
        if (!ready(step)) {
            request_table_.poll(true);
            if (!ready(step)) return false;
        }
        if (!unpacked_before(position_)) perform(0, step);
        if (record) ends_[0].push_back(now_s());
    }
    return true;
}

// Whether the combine step before has written what this one would.
bool Execution::unpacked_before(std::size_t step) const {
    return step > 0 && !combine_.straight.empty() && combine_.straight[step - 1] == static_cast<std::int32_t>(step);
}

void Execution::restart() {
    request_table_.restart();
    for (auto& ends : ends_) ends.clear();
    for (auto& begins : begins_) begins.clear();
    for (auto& requests : requests_) requests.clear();
    for (Cursor& at : cursors_) at = {};
    repetition_ = 0;
    for (Counter& c : counters_) c.value.store(0, std::memory_order_relaxed);
    if (computers_.nests) computers_.nests->restart();
    place_arrays();
    position_ = 0;
    ended_.store(0, std::memory_order_relaxed);
    stopped_.store(options_.stopped, std::memory_order_relaxed);
    failed_ = interrupted_ = notified_ = others_first_ = false;
    lacking_ = nullptr;
    end_ = 0;
    last_look_ = now_s();
    if (options_.record) begin_ = last_look_;
    if (lends()) begin_lent();
}

void Execution::place_arrays() {
    bool moves = false;
    for (std::size_t a = 0; a < bindings_.size() && repeats() && s_.advance.n > 0; ++a) {
        const int time_buffers = s_.arrays[a].time_buffers;
        moves = moves || bindings_[a].advance_bytes != 0 || (time_buffers > 0 && s_.advance[0] % time_buffers != 0);
    }
    moved_.assign(moves ? s_.lanes.size() : 0, {bindings_.begin(), bindings_.end()});
    memories_.assign(moves ? 0 : 1, {s_, bindings_, options_.window});
    for (const auto& bindings : moved_) memories_.emplace_back(s_, bindings, options_.window);
}

// The arrays are where the lane's repetition has them.
void Execution::move_arrays(int l) {
    const std::int64_t repetition = cursors_[l].repetition;
    auto& bindings = moved_[l];
    for (std::size_t a = 0; a < bindings.size(); ++a) {
        bindings[a].data = bindings_[a].data + repetition * bindings_[a].advance_bytes;
        if (const int time_buffers = s_.arrays[a].time_buffers; time_buffers > 0)
            bindings[a].first_time_buffer =
                static_cast<int>(floor_mod(bindings_[a].first_time_buffer - repetition * s_.advance[0], time_buffers));
    }
}

void Execution::wait_for(int l, std::size_t step) {
    for (Waiting waiting(options_.crowded);; pause(waiting, l, step)) {
        progress(l);
        if (ready(s_.lanes[l][step])) return;
    }
}

void Execution::progress(int l) {
    if (serves(l) && draining()) notify_others();
    request_table_.poll(serves(l));
}

void Execution::pause(Waiting& waiting, int l, std::size_t step) {
    if (broken_.load(std::memory_order_acquire)) throw MpiError("another lane of this rank left the run");
    waiting.backoff.pause();
    const bool look = ++waiting.rounds % rounds_of_a_look == 0;
    if (!look && !waiting.backoff.yielding()) return;
    const double now = now_s();
    if (waiting.since == 0) waiting.since = now;
    look_around(l);
    look_for_ended(l, now, waiting.ended);
    if (!options_.crowded && s_.lanes[l][step].op == Op::await && now - waiting.since < spin_s)
        return waiting.backoff.restart();
    if (!waiting.reported && now - waiting.since > options_.stall_s) report_stall(waiting, now, l, step);
}

void Execution::report_stall(Waiting& waiting, double now, int l, std::size_t step) {
    waiting.reported = true;
    const std::string text = "tilewave: stalled for " + std::to_string(static_cast<int>(now - waiting.since)) +
                             " s: " + describe(s_, l, step);
    if (options_.stalled)
        options_.stalled(text);
    else
        std::fprintf(stderr, "%s\n", text.c_str());
}

// Other lanes may still need lane 0 for their messages, and the interpreter for its signals.
void Execution::serve_until_all_ended() {
    Backoff backoff(options_.crowded ? Backoff::Kind::shared : Backoff::Kind::dedicated);
    EndedLook look;
    const int others = threads_ - 1;
    while (ended_.load(std::memory_order_acquire) < others && !broken_.load(std::memory_order_acquire)) {
        if (draining()) notify_others();
        request_table_.poll(true);
        backoff.pause();
        if (!backoff.yielding()) continue;
        look_around(0);
        look_for_ended(0, now_s(), look);
    }
}

// In a long wait: whether a message in flight is one of a rank that has ended.
void Execution::look_for_ended(int l, double now, EndedLook& look) {
    if (!serves(l)) return;
    const int ended = look(now, [&] { return request_table_.ended_peer(); });
    if (ended < 0) return;
    throw MpiError(
        concat("rank ", ended, " has ended; rank ", s_.rank, " waits ", transport_.doing(), "for a message of a run"));
}

// The one lane that may always call the transport and the interpreter looks for what ends the run.
void Execution::look_around(int l) {
    if (!serves(l)) return;
    const double now = now_s();
    look_for_alarms(now);
    if (!options_.heartbeat || now - last_look_ < 0.05) return;
    last_look_ = now;
    const double steps = std::max<double>(1, static_cast<double>(s_.lanes[0].size()));
    const double part = (static_cast<double>(repetition_) + static_cast<double>(position_) / steps) /
                        static_cast<double>(options_.times);
    if (options_.heartbeat(part) && !interrupted_) {
        interrupted_ = true;
        stopped_.store(true, std::memory_order_relaxed);
        notify_others();
    }
}

void Execution::look_for_alarms(double now) {
    if (!options_.alarms) return;
    if (stopped_.load(std::memory_order_acquire)) return notify_others();
    if (!options_.alarms->due(now)) return;
    request_table_.locked([&] {
        if (!options_.alarms->heard()) return;
        others_first_ = notified_ = true;
        stopped_.store(true, std::memory_order_relaxed);
        request_table_.send_empty_messages();
    });
}

// Lane 0, once this rank has stopped. Where an alarm is here already, the failure may be one of values that another
// rank has left out: alarms come before the empty messages that stand for these.
void Execution::notify_others() {
    if (notified_ || !options_.alarms) return;
    notified_ = true;
    request_table_.locked([&] {
        if (options_.alarms->heard())
            others_first_ = true;
        else
            options_.alarms->raise();
        request_table_.send_empty_messages();
    });
}

// The transport has thrown, here or in another lane: nothing can be taken to its end.
void Execution::leave() {
    give_up();
    try {
        if (options_.alarms) options_.alarms->raise(true);
    } catch (const MpiError&) {  // the error below is more precise
    }
    std::rethrow_exception(error_);
}

void Execution::fail(const Failure& failure) {
    std::scoped_lock guard(error_lock_);
    if (!failed_) failure_ = failure;
    failed_ = true;
    stopped_.store(true, std::memory_order_relaxed);
}

void Execution::stop_for(std::exception_ptr error) {
    std::scoped_lock guard(error_lock_);
    if (!lacking_) lacking_ = std::move(error);
    stopped_.store(true, std::memory_order_relaxed);
}

// After points were computed: polls when it is time to. False where computing is to end.
bool Execution::pace(int l, std::int64_t points, double& begin) {
    Pace& pace = paces_[l];
    pace.left -= points;
    if (pace.left > 0) return true;
    if (stopped_.load(std::memory_order_relaxed)) return false;
    if (options_.poll_period_s > 0) request_table_.poll(serves(l), true);
    look_around(l);
    const double now = now_s();
    const double passed = pace.spent_s + now - begin;
    const double period_s = options_.poll_period_s > 0 ? options_.poll_period_s : look_period_s;
    const double scale = std::clamp(period_s / std::max(passed, 1e-9), 0.25, 4.0);
    pace.quota =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(pace.quota) * scale), 64, 1 << 24);
    pace.left = pace.quota;
    pace.spent_s = 0;
    begin = now;
    return true;
}

void Execution::copy(int l, const Message& m, bool pack, std::byte* staged) {
    if (m.region.empty()) return;
    const std::int64_t item = s_.arrays[m.array].item_bytes;
    const Index& strided = memory(l).binding(m.array).stride_bytes;
    // Time buffers follow each other in memory up to the last one, then from the first one on.
    const bool buffers = s_.arrays[m.array].time_buffers > 0 && m.region.extent(0) > 1;
    if (m.aggregate >= 0 && !buffers &&
        copy_few(address(l, m.array, m.region.lo), strided, m.region.hi - m.region.lo, item, staged + m.at, pack))
        return;
    const Index packed = row_major_strides(m.region, item);
    Box part = m.region;
    for (std::int64_t t = m.region.lo[0]; t < m.region.hi[0]; t = part.hi[0]) {
        part.lo[0] = t;
        if (buffers) part.hi[0] = t + 1;
        std::byte *buffer = staged + m.at + (t - m.region.lo[0]) * packed[0], *array = address(l, m.array, part.lo);
        if (pack)
            copy_box(buffer, packed, array, strided, part.hi - part.lo, item);
        else
            copy_box(array, strided, buffer, packed, part.hi - part.lo, item);
    }
}

// Copies items one by one, where they are few and along one dimension: faster than finding their layout.
bool Execution::copy_few(std::byte* array, const Index& stride, const Index& extents, std::int64_t item,
                         std::byte* buffer, bool pack) {
    int along = -1;
    for (int k = 0; k < extents.n; ++k) {
        if (extents[k] == 1) continue;
        if (along >= 0) return false;
        along = k;
    }
    const std::int64_t n = along < 0 ? 1 : extents[along], step = along < 0 ? 0 : stride[along];
    if (n > few_items) return false;
    const auto go = [&](auto unit) {
        for (std::int64_t i = 0; i < n; ++i, array += step, buffer += sizeof unit)
            std::memcpy(pack ? buffer : array, pack ? array : buffer, sizeof unit);
        return true;
    };
    if (item == 8) return go(std::uint64_t{});
    if (item == 4) return go(std::uint32_t{});
    return false;
}

// By runs of contiguous items in the arrays; buffers have no gaps.
void Execution::combine(int l, const Message& m, std::int32_t with, const Message* straight) {
    if (m.region.empty() || stopped_.load(std::memory_order_relaxed)) return;
    const std::int64_t item = s_.arrays[m.array].item_bytes, points = m.region.points();
    std::byte* buffer = buffers_[m.buffer].get();
    const std::byte* with_buffer = with >= 0 ? buffers_[s_.messages[with].buffer].get() : nullptr;
    const bool other_left = with >= 0 || with == combine_array_left;
    const CombineRow row = combine_.of_arrays.empty() ? combine_.row : combine_.of_arrays[m.array];
    bool fine = true;
    auto combine_run = [&](std::byte* into, const std::byte* other, std::int64_t n) {
        fine = row(into, other_left ? other : buffer, other_left ? buffer : other, n, combine_.env) && fine;
        buffer += n * item;
    };
    const bool other_run = with >= 0 || one_run(m.region, s_.arrays[m.array]);
    if (other_run && (!straight || one_run(m.region, s_.arrays[straight->array]))) {
        combine_run(straight ? address(l, straight->array, m.region.lo) : buffer,
                    with >= 0 ? with_buffer : address(l, m.array, m.region.lo), points);
    } else if (combine_.whole) {
        copy_box(gathered_.data(), row_major_strides(m.region, item), address(l, m.array, m.region.lo),
                 memory(l).binding(m.array).stride_bytes, m.region.hi - m.region.lo, item);
        combine_run(buffer, gathered_.data(), points);
    } else {
        const std::int64_t run = m.region.extent(m.region.dims() - 1);
        for_each_row(m.region, [&](const Index& row) {
            combine_run(straight ? address(l, straight->array, row) : buffer,
                        with >= 0 ? with_buffer : address(l, m.array, row), run);
            if (with >= 0) with_buffer += run * item;
        });
    }
    if (!fine) fail({0, m.region.lo, 0});
}

std::vector<std::int32_t> straight_combines(const Schedule& s) {
    const auto& steps = s.lanes[0];
    auto buffer_of = [&](const Step& step) {
        return step.op == Op::signal || step.op == Op::await || step.op == Op::compute ? -1
                                                                                       : s.messages[step.item].buffer;
    };
    // From the end: whether each buffer's next use reads it.
    std::vector<bool> read_later(s.buffers.size(), false);
    std::vector<std::int32_t> straight(steps.size(), 0);
    for (std::size_t i = steps.size(); i-- > 0;) {
        const Step& step = steps[i];
        const int b = buffer_of(step);
        if (step.op == Op::combine && step.count >= 0) read_later[s.messages[step.count].buffer] = true;
        if (b < 0 || step.op == Op::wait) continue;
        const auto at = static_cast<std::size_t>(b);
        if (step.op == Op::unpack && i > 0 && steps[i - 1].op == Op::combine && buffer_of(steps[i - 1]) == b &&
            !read_later[at])
            straight[i - 1] = static_cast<std::int32_t>(i);
        read_later[at] = step.op != Op::post_recv && step.op != Op::pack;
    }
    return straight;
}

// Notes for which there is no memory are left out: the run is over.
void Execution::note_steps(Outcome& outcome) {
    try {
        outcome.recording = recording();
        if (options_.events) outcome.timeline = timeline_of(s_, std::exchange(outcome.recording, {}));
    } catch (const std::bad_alloc&) {
        outcome.recording = {};
        outcome.timeline = {};
    }
}

// Once a run.
Recording Execution::recording() {
    Recording r;
    const double shift = options_.clock_offset_s;
    std::vector<int> lane_of(s_.messages.size(), 0);
    for (std::size_t l = 0; l < ends_.size(); ++l)
        for (std::size_t i = 0; i < (ends_[l].empty() ? 0 : s_.lanes[l].size()); ++i) {
            const Op op = s_.lanes[l][i].op;
            if (op != Op::compute && op != Op::signal && op != Op::await)
                lane_of[s_.lanes[l][i].item] = static_cast<int>(l);
        }
    for (auto& requests : requests_) {
        for (Request& request : requests) r.requests.push_back(request);
        requests.clear();
    }
    for (std::size_t m = 0; m < (repeats() ? 0 : s_.messages.size()); ++m) {
        const Message& message = s_.messages[m];
        if (!request_table_.was_posted(static_cast<int>(m))) continue;
        r.requests.push_back({s_.rank, lane_of[m], message.peer, message.tag, message.send, 0, message.bytes,
                              request_table_.posted_s(static_cast<int>(m)) + shift,
                              request_table_.completed_s(static_cast<int>(m)) + shift});
    }
    r.ends = std::exchange(ends_, std::vector<std::vector<double>>(ends_.size()));
    r.times = options_.times;
    if (runs_round_robin()) r.begins = std::exchange(begins_, std::vector<std::vector<double>>(ends_.size()));
    for (auto* moments : {&r.ends, &r.begins})
        for (auto& of_lane : *moments)
            for (double& moment : of_lane) moment += shift;
    return r;
}

}  // namespace tilewave
