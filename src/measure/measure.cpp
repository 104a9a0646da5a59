#include "measure/measure.hpp"

#include <algorithm>
#include <cmath>

#include "core/tags.hpp"
#include "data/memory.hpp"
#include "execute/executor.hpp"
#include "schedule/lane_builder.hpp"
#include "tilewave/engine/layout.hpp"

namespace tilewave::measure {

namespace {

// Memory of one rank for an experiment, and the schedule's arrays that say where it lies.
struct Stage {
    Schedule schedule;
    std::vector<Binding> bindings;
    std::vector<std::shared_ptr<std::byte[]>> memory;  // as that of fields

    explicit Stage(Context& context) {
        schedule.rank = context.rank();
        schedule.ranks = context.size();
        schedule.lanes.resize(1);
    }
    // Elements in a box from 0, row-major.
    int add(const Index& extents, std::int64_t item_bytes) {
        Array a;
        a.item_bytes = item_bytes;
        a.storage.lo = a.storage.hi = extents;
        for (int k = 0; k < extents.n; ++k) a.storage.lo[k] = 0;
        a.owned = a.storage;
        schedule.arrays.push_back(a);
        memory.push_back(aligned_memory(a.storage.points() * item_bytes));
        std::fill_n(memory.back().get(), a.storage.points() * item_bytes, std::byte{1});
        bindings.push_back({memory.back().get(), row_major_strides(a.storage, item_bytes), 0});
        return static_cast<int>(schedule.arrays.size()) - 1;
    }
    Outcome play(Context& context, const ExecuteOptions& options, const Kernel& kernel = {}) {
        Outcome o = execute(schedule, bindings, kernel, context.transport(), context.lanes(), options);
        o.must_have_run();
        return o;
    }
};

// What users' runs have, but signals wait for the end of the experiment.
ExecuteOptions usual(Context& context) {
    ExecuteOptions options = context.options();
    options.heartbeat = nullptr;
    options.record = true;
    return options;
}

Box all_of(const Schedule& s, int array) {
    return s.arrays[array].storage;
}

// Seconds from the end of one step to that of the next in `steps`, of lane 0.
std::vector<double> between(const Timeline& t, const std::vector<std::size_t>& steps, double begin_s, double share) {
    std::vector<double> found;
    for (std::size_t step : steps) {
        const double end = t.events[step].end_s;
        found.push_back((end - begin_s) * share);
        begin_s = end;
    }
    return found;
}

void wait_until(Transport& t, std::size_t count) {
    std::vector<int> done;
    Backoff backoff(Backoff::Kind::dedicated);
    while (done.size() < count) {
        t.poll(done);
        if (done.size() < count) backoff.pause();
    }
}

// A few operations a point that do not leave the nearest cache.
std::int64_t work_row(char* const* ptr, const std::int64_t*, std::int64_t n, const std::int64_t*, const std::int64_t*,
                      const void*) {
    auto* x = reinterpret_cast<double*>(ptr[0]);
    for (std::int64_t q = 0; q < n; ++q) x[q] = 0.5 * x[q] + 0.25 * std::sqrt(std::fabs(x[q]) + 1.0);
    return 0;
}

constexpr std::int64_t work_points = 256;

}  // namespace

// The receive of a round is posted before the other rank can send.
std::vector<double> round_trips(Context& context, Pair pair, std::int64_t bytes, int rounds, bool synchronous) {
    if (pair.peer < 0) return {};
    Stage stage(context);
    const int out = stage.add({bytes}, 1), in = stage.add({bytes}, 1);
    LaneBuilder lane(stage.schedule, 0);
    const auto post = [&] {
        return lane.post_receive(pair.peer, tags::experiment, in, all_of(stage.schedule, in), -1);
    };
    const auto give = [&] {
        lane.finish_send(
            lane.post_send(pair.peer, tags::experiment, out, all_of(stage.schedule, out), synchronous, -1));
    };
    std::vector<std::size_t> ends;
    int received = post();
    for (int i = 0; i < rounds; ++i) {
        if (pair.first) give();
        lane.finish_receive(received);
        if (pair.first) ends.push_back(stage.schedule.lanes[0].size() - 1);
        if (i + 1 < rounds) received = post();
        if (!pair.first) give();
    }
    const Outcome o = stage.play(context, usual(context));
    return pair.first ? between(o.timeline, ends, o.timeline.events[0].begin_s, 0.5) : std::vector<double>();
}

Stream stream(Context& context, Pair pair, std::int64_t bytes, int count, int turns, bool synchronous) {
    if (pair.peer < 0) return {};
    Stage stage(context);
    const int data = stage.add({pair.first ? 1 : count, bytes}, 1), to = stage.add({8}, 1), from = stage.add({8}, 1);
    LaneBuilder lane(stage.schedule, 0);
    auto& steps = stage.schedule.lanes[0];
    std::vector<std::size_t> posts, ends;
    std::vector<int> messages;
    auto receives = [&] {
        messages.clear();
        for (int c = 0; c < count; ++c) {
            posts.push_back(steps.size());
            messages.push_back(lane.post_receive(pair.peer, tags::experiment, data, {{c, 0}, {c + 1, bytes}}, -1));
        }
    };
    if (!pair.first) receives();
    for (int i = 0; i < turns; ++i)
        if (pair.first) {
            const int answer = lane.post_receive(pair.peer, tags::experiment, from, all_of(stage.schedule, from), -1);
            messages.clear();
            for (int c = 0; c < count; ++c) {
                posts.push_back(steps.size());
                messages.push_back(
                    lane.post_send(pair.peer, tags::experiment, data, {{0, 0}, {1, bytes}}, synchronous, -1));
            }
            for (int m : messages) lane.finish_send(m);
            lane.finish_receive(answer);
            ends.push_back(steps.size() - 1);
        } else {
            for (int m : messages) lane.finish_receive(m);
            if (i + 1 < turns) receives();
            lane.finish_send(lane.post_send(pair.peer, tags::experiment, to, all_of(stage.schedule, to), false, -1));
        }
    const Outcome o = stage.play(context, usual(context));
    Stream found;
    if (pair.first) found.turn_s = between(o.timeline, ends, o.timeline.events[0].begin_s, 1);
    for (std::size_t step : posts)
        (pair.first ? found.send_s : found.receive_s)
            .push_back(o.timeline.events[step].end_s - o.timeline.events[step].begin_s);
    return found;
}

OverlapTimes overlap(Context& context, Pair pair, const OverlapExperiment& what, int turns) {
    if (pair.peer < 0) return {};
    Stage stage(context);
    Schedule& s = stage.schedule;
    const std::int64_t bytes = std::max<std::int64_t>(what.bytes, 1);
    const int x = stage.add({1, work_points}, 8), data = stage.add({bytes}, 1), to = stage.add({8}, 1),
              from = stage.add({8}, 1);
    // All rows lie in the same memory.
    s.arrays[x].storage = s.arrays[x].owned = Box{{0, 0}, {what.rows, work_points}};
    stage.bindings[x].stride_bytes = {0, 8};
    std::fill_n(reinterpret_cast<double*>(stage.memory[0].get()), work_points, 1.0);
    const Box points = s.arrays[x].owned;
    s.works = {{0, NestWork{points, {}, {{x, {0, 0}, true, false}}}}};
    s.tiles = {{{0, 0}, 0, 0, points}};
    if (what.helper) {
        s.lanes.resize(2);
        s.lanes[1].push_back({Op::await, 0, 1});
    }
    LaneBuilder lane(s, 0);
    std::vector<std::size_t> computes;
    for (int i = 0; i < turns; ++i) {
        // Both begin together.
        const int in = lane.post_receive(pair.peer, tags::experiment, from, all_of(s, from), -1);
        lane.finish_send(lane.post_send(pair.peer, tags::experiment, to, all_of(s, to), false, -1));
        lane.finish_receive(in);
        int message = -1;
        if (what.bytes > 0)
            message = pair.first
                          ? lane.post_send(pair.peer, tags::experiment, data, all_of(s, data), what.synchronous, -1)
                          : lane.post_receive(pair.peer, tags::experiment, data, all_of(s, data), -1);
        computes.push_back(s.lanes[0].size());
        lane.add(Op::compute, 0);
        if (message >= 0) lane.add(Op::wait, message);
    }
    lane.add(Op::signal, 0, 1);
    ExecuteOptions options = usual(context);
    options.poll_period_s = what.poll_period_s;
    const Outcome o = stage.play(context, options, {work_row, nullptr, false, {}, {}, nullptr});
    OverlapTimes found;
    for (std::size_t step : computes) {
        const Event &post = o.timeline.events[step - 1], &compute = o.timeline.events[step],
                    &wait = o.timeline.events[step + 1];
        found.post_s.push_back(what.bytes > 0 ? post.end_s - post.begin_s : 0);
        found.compute_s.push_back(compute.end_s - compute.begin_s);
        found.wait_s.push_back(what.bytes > 0 ? wait.end_s - wait.begin_s : 0);
    }
    return found;
}

std::vector<double> polls(Context& context, Pair pair, int turns) {
    constexpr double pause_s = 200e-6;
    if (pair.peer < 0) return {};
    Transport& t = context.transport();
    std::byte here[8] = {}, there[8] = {};
    std::vector<double> found;
    for (int i = 0; i < turns; ++i)
        if (pair.first) {
            t.post_recv(0, there, 8, pair.peer, tags::experiment);
            wait_until(t, 1);
            for (const double end = now_s() + pause_s; now_s() < end;) {
            }
            t.post_send(0, here, 8, pair.peer, tags::experiment, false);
            wait_until(t, 1);
        } else {
            t.post_recv(0, there, 8, pair.peer, tags::experiment);
            t.post_send(1, here, 8, pair.peer, tags::experiment, false);
            std::vector<int> done;
            std::int64_t count = 0;
            double begin = 0, end = 0;
            while (done.size() < 2) {
                const auto before = done.size();
                t.poll(done);
                if (done.size() != before) {
                    if (done.size() == 1) begin = end = now_s();
                } else if (begin > 0) {
                    end = now_s();
                    ++count;
                }
            }
            if (count > 0) found.push_back((end - begin) / static_cast<double>(count));
        }
    return found;
}

std::vector<double> early_sends(Context& context, Pair pair, std::int64_t bytes, double delay_s, int turns) {
    constexpr int word_tag = tags::experiment + 1;
    if (pair.peer < 0) return {};
    Transport& t = context.transport();
    std::vector<std::byte> data(static_cast<std::size_t>(bytes));
    std::byte word[8] = {};
    std::vector<double> found;
    for (int i = 0; i < turns; ++i)
        if (pair.first) {
            const double begin = now_s();
            t.post_send(0, data.data(), bytes, pair.peer, tags::experiment, false);
            t.post_send(1, word, 8, pair.peer, word_tag, false);
            std::vector<int> done;
            bool left = false;
            while (done.size() < 2) {
                t.poll(done);
                if (left || std::ranges::find(done, 0) == done.end()) continue;
                left = true;
                found.push_back(now_s() - begin);
            }
        } else {  // busy from the word that follows the message: so a send that waits for its receive takes delay_s at
                  // least
            t.post_recv(1, word, 8, pair.peer, word_tag);
            wait_until(t, 1);
            for (const double end = now_s() + delay_s; now_s() < end;) {
            }
            t.post_recv(0, data.data(), bytes, pair.peer, tags::experiment);
            wait_until(t, 1);
        }
    return found;
}

std::vector<std::string> gathered(Context& context, const std::string& bytes) {
    return gather(context.transport(), bytes);
}

}  // namespace tilewave::measure
