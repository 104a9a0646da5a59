#include "predict/simulation.hpp"

#include <cmath>
#include <utility>

#include "core/concat.hpp"
#include "predict/copy_cost.hpp"

namespace tilewave {

void Simulation::push(double time, std::int32_t what) {
    events_.push_back({time, what});
    std::push_heap(events_.begin(), events_.end());
}

Prediction Simulation::run() {
    const auto lanes = static_cast<std::int32_t>(lanes_.size());
    for (std::int32_t l = lanes - 1; l >= 0; --l) {
        const Lane& lane = lanes_[l];
        if (lane.thread < 0 || lane.number < options_.threads) push(0, l);  // a thread begins with its first lane
    }
    while (!events_.empty()) {
        std::pop_heap(events_.begin(), events_.end());
        const Event e = events_.back();
        events_.pop_back();
        if (e.what < 0) {
            if (const std::int32_t flow = -1 - e.what; carried_[flow].send >= 0 && flows_->end_of(flow) == e.time)
                end_flow(flow, e.time);
        } else if (e.what < lanes) {
            Lane& lane = lanes_[e.what];
            if (lane.cpus >= 0 && (lane.state == State::ended || e.time != lane.end))
                continue;  // others have begun or ended since
            if (lane.copying > 0) {
                lengthen(lane, std::exchange(lane.copying, 0.0), e.time);
                push(lane.end, e.what);
                continue;
            }
            if (lane.thread >= 0) {
                resume(lane, e.time);
                continue;
            }
            if (lane.state != State::fresh) finish_step(lane, e.time);
            go_on(lane, e.time);
        } else if (Meeting& m = meetings_[e.what - lanes]; m.stage != Stage::over && m.due == e.time) {
            advance(e.what - lanes, e.time);
        }
    }
    refuse_stuck();
    Prediction p;
    p.time_s = last_end_;
    p.parts = average(parts_, 0, last_end_);
    if (options_.record) p.timeline = timeline();
    return p;
}

void Simulation::finish_step(Lane& lane, double now) {
    const Schedule& s = schedules_[lane.rank];
    std::int32_t place = index(lane);
    if (lane.thread >= 0) {  // what the thread does counts once
        Thread& thread = threads_[lane.thread];
        place = thread.first_lane + thread.order.thread();
        lane.begin = std::max(lane.begin, thread.last);
        thread.last = now;
        if (options_.record) lane.begins.push_back(lane.begin);
    }
    parts_[place].add(s.lanes[lane.number][lane.next].op, lane.begin, now);
    if (lane.state == State::waiting) lane.waited += now - lane.begin;
    if (lane.state == State::computing && lane.cpus >= 0) end_work(lane, now);
    if (options_.record) lane.ends.push_back(now);
    ++lane.next;
}

// Step after step, as long as nothing else happens before one ends. Of a lane that takes turns the time when its turn
// is over, if it is.
std::optional<double> Simulation::go_on(Lane& lane, double now) {
    const std::vector<Step>& steps = schedules_[lane.rank].lanes[lane.number];
    while (true) {
        lane.begin = now;
        lane.state = State::stepping;
        if (lane.next == steps.size()) {
            lane.state = State::ended;
            last_end_ = std::max(last_end_, now);
            if (lane.thread < 0) polls(lane, now);
            return now;
        }
        if (lane.thread >= 0 && !threads_[lane.thread].order.in_slice(steps[lane.next].op)) {
            lane.state = State::ready;
            return now;
        }
        lane.end = begin_step(lane, now);
        if (lane.state == State::waiting && lane.thread >= 0) {
            if (lane.end < never) push(lane.end, index(lane));
            return now;
        }
        if (lane.end >= never) return std::nullopt;
        if (lane.state == State::stepping) lane.end = now + (lane.end - now) / machine_.speed(lane.rank);
        if (lane.state == State::stepping && lane.cpus >= 0) lane.end = now + slowed(lane, lane.end - now);
        if (!events_.empty() && events_.front().time <= lane.end) {
            push(lane.end, index(lane));
            return std::nullopt;
        }
        now = lane.end;
        finish_step(lane, now);
    }
}

double Simulation::begin_step(Lane& lane, double now) {
    const Schedule& s = schedules_[lane.rank];
    const Step& step = s.lanes[lane.number][lane.next];
    const std::int32_t half = ranks_[lane.rank].first_half + step.item;
    switch (step.op) {
        case Op::compute: return compute(lane, s.tiles[step.item], now);
        case Op::post_recv:
        case Op::post_send: {
            post(lane, half, now);
            const Half& h = halves_[half];
            const Link& l = link(h);
            if (!h.m->send) return now + machine_.step_s + l.receive_s;
            const auto bytes = static_cast<double>(h.m->bytes);
            // What leaves now is copied now.
            return now + machine_.step_s + l.send_s + (leaves(l, bytes) ? bytes * l.busy_byte_s : 0);
        }
        case Op::wait: return wait(lane, half, now);
        case Op::pack:
        case Op::unpack:
        case Op::combine: {
            const Message& m = *halves_[half].m;
            return now + machine_.step_s + copy_s(s.arrays[m.array], m, machine_);
        }
        case Op::signal: signal(lane, step.count, now); return now + machine_.step_s;
        case Op::await: return await(lane, step, now);
    }
    throw InternalError("predict: unknown op");
}

namespace {

// A number of mean 0 and standard deviation 1, by what it is for: exponential, as disturbances only lengthen.
double drawn(std::uint64_t rank, std::uint64_t lane, std::uint64_t step) {
    std::uint64_t x = (rank << 42 ^ lane << 32 ^ step) + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    const double even = (static_cast<double>((x ^ x >> 31) >> 11) + 0.5) * 0x1p-53;
    return -std::log(even) - 1;
}

}  // namespace

// The kernel, and a poll whenever a period of computing has passed, from tile to tile.
double Simulation::compute(Lane& lane, const Tile& tile, double now) {
    const Work& what = schedules_[lane.rank].works[tile.work];
    double kernel = 0;
    std::int64_t rows = 1;  // between polls
    if (const TaskWork* task = what.task()) {
        const OperationRate& rate = rates_.operations[task->operation];
        kernel = rate.call_s + task->amount * rate.amount_s;
    } else {
        const KernelRate& rate = kernel_rate(*what.nest());
        const RowCount count = ranks_[lane.rank].works[tile.work]->of(tile.box);
        rows = count.rows;
        kernel = rate.tile_s + static_cast<double>(count.rows) * rate.row_s +
                 static_cast<double>(count.points) * rate.point_s;
        if (rate.spread > 0)
            kernel *= 1 + rate.spread * drawn(static_cast<std::uint64_t>(lane.rank),
                                              static_cast<std::uint64_t>(lane.number), lane.next);
    }
    kernel /= machine_.speed(lane.rank);
    lane.state = State::computing;
    lane.period = 0;
    double end = now + machine_.step_s + kernel;
    if (options_.poll_period_s > 0 && schedules_.size() > 1) {
        // A row is not left for a poll.
        const double row = rows > 0 ? kernel / static_cast<double>(rows) : 0;
        const double period = std::max(options_.poll_period_s, row);
        lane.tick = now + std::max(period - lane.computed, 0.0);
        lane.period = period + machine_.poll_s;
        const double count = std::floor((lane.computed + kernel) / period);
        lane.computed = std::max(lane.computed + kernel - count * period, 0.0);
        end += count * machine_.poll_s;
    }
    lane.end = end;
    if (lane.cpus >= 0) begin_work(lane, now);
    for (std::size_t i = 0; i < ranks_[lane.rank].meetings.size(); ++i) {
        const std::int32_t m = ranks_[lane.rank].meetings[i];
        const double poll = next_poll(lane.rank, now);
        if (poll < never && (meetings_[m].due < now || poll < meetings_[m].due)) {
            meetings_[m].due = poll;
            push(poll, static_cast<std::int32_t>(lanes_.size()) + m);
        }
    }
    return lane.end;
}

void Simulation::signal(Lane& lane, std::int32_t count, double now) {
    lane.signals.push_back({count, now});
    for (std::size_t i = 0; i < lane.awaited_by.size();) {
        Lane& other = lanes_[lane.awaited_by[i]];
        const Step& step = schedules_[other.rank].lanes[other.number][other.next];
        if (step.count > count) {
            ++i;
            continue;
        }
        const bool same = other.thread >= 0 && other.thread == lane.thread;
        other.end = now + (same ? 0 : machine_.hand_over_s) + machine_.step_s;
        push(other.end, lane.awaited_by[i]);
        lane.awaited_by[i] = lane.awaited_by.back();
        lane.awaited_by.pop_back();
    }
}

double Simulation::await(Lane& lane, const Step& step, double now) {
    Lane& other = lane_of(lane.rank, step.item);
    const auto at = std::partition_point(other.signals.begin(), other.signals.end(),
                                         [&](const auto& s) { return s.first < step.count; });
    if (step.count <= 0) return now + machine_.step_s;
    if (at != other.signals.end()) {
        const bool same = lane.thread >= 0 && lane.thread == other.thread;
        const double seen = same ? now : at->second + machine_.hand_over_s;
        if (seen > now) polls(lane, now);
        return std::max(now, seen) + machine_.step_s;
    }
    other.awaited_by.push_back(index(lane));
    polls(lane, now);
    return never;
}

std::string Simulation::name(const Lane& lane) const {
    return describe(schedules_[lane.rank], lane.number, lane.next);
}

void Simulation::refuse_stuck() const {
    std::string text;
    int stuck = 0;
    for (const Lane& lane : lanes_)
        if (lane.state != State::ended && ++stuck <= 3) text += (stuck > 1 ? "; " : "") + name(lane);
    if (stuck > 0)
        throw ConfigError(concat("predict: these schedules do not end: ", stuck,
                                 (stuck == 1 ? " lane waits" : " lanes wait"), " for what never comes: ", text,
                                 (stuck > 3 ? "; .." : "")));
}

Timeline Simulation::timeline() const {
    Timeline t;
    t.ranks = static_cast<int>(schedules_.size());
    for (const Schedule& s : schedules_)
        for (const Tile& tile : s.tiles) t.dims = std::max(t.dims, tile.coord.n);
    if (!threads_.empty())
        for (const Schedule& s : schedules_) t.threads.push_back(runs_round_robin(s) ? options_.threads : 0);
    for (const Lane& lane : lanes_) {
        const Schedule& s = schedules_[lane.rank];
        for (std::size_t i = 0; i < lane.ends.size(); ++i)
            t.events.push_back(event_of(s, lane.number, i,
                                        lane.thread >= 0 ? lane.begins[i]
                                        : i == 0         ? 0
                                                         : lane.ends[i - 1],
                                        lane.ends[i]));
    }
    for (const Half& h : halves_)
        if (h.posted >= 0)
            t.requests.push_back({h.rank, lanes_[h.lane].number, h.m->peer, h.m->tag, h.m->send, 0, h.m->bytes,
                                  h.posted, std::max(h.posted, h.done)});
    return t;
}

}  // namespace tilewave
