// Experiments inside a rank: lanes, steps, memory, copies.
#include <algorithm>

#include "data/memory.hpp"
#include "execute/executor.hpp"
#include "measure/measure.hpp"

namespace tilewave::measure {

namespace {

std::int64_t nothing_row(char* const*, const std::int64_t*, std::int64_t, const std::int64_t*, const std::int64_t*,
                         const void*) {
    return 0;
}

// Reads and writes each element once. Integers: no value of memory that nobody set is slow.
std::int64_t stream_row(char* const* ptr, const std::int64_t*, std::int64_t n, const std::int64_t*, const std::int64_t*,
                        const void*) {
    auto* x = reinterpret_cast<std::uint64_t*>(ptr[0]);
    for (std::int64_t q = 0; q < n; ++q) x[q] += 3;
    return 0;
}

Array array_of(const Box& box, std::int64_t item_bytes) {
    Array a;
    a.item_bytes = item_bytes;
    a.storage = a.owned = box;
    return a;
}

}  // namespace

std::vector<double> hand_overs(Context& context, int samples) {
    constexpr int cycles = 50;  // of two hand-overs each
    Schedule s;
    s.rank = context.rank();
    s.ranks = context.size();
    s.lanes.resize(2);
    for (int i = 1; i <= samples * cycles; ++i) {
        s.lanes[0].push_back({Op::signal, 0, i});
        s.lanes[0].push_back({Op::await, 1, i});
        s.lanes[1].push_back({Op::await, 0, i});
        s.lanes[1].push_back({Op::signal, 0, i});
    }
    ExecuteOptions options = context.options();
    options.heartbeat = nullptr;
    const Outcome o = execute(s, {}, Programs{}, context.transport(), context.lanes(), options);
    o.must_have_run();
    std::vector<double> found;
    for (int i = 0; i < samples; ++i) {
        const auto &from = o.timeline.events[2 * cycles * i], &to = o.timeline.events[2 * cycles * (i + 1) - 1];
        found.push_back((to.end_s - from.begin_s) / (2 * cycles));
    }
    return found;
}

std::vector<double> steps(int tiles, int samples) {
    Schedule s;
    s.ranks = 2;
    const Box points{{0, 0}, {1, tiles}};
    s.arrays = {array_of(points, 8)};
    s.works = {{0, NestWork{points, {}, {{0, {0, 0}, true, false}}}}};
    s.lanes.resize(1);
    for (std::int32_t i = 0; i < tiles; ++i) {
        const Box point{{0, i}, {1, i + 1}};
        s.tiles.push_back({{0, i}, i, 0, point});
        for (const bool send : {false, true}) {
            Message m;
            m.peer = 1;
            m.send = send;
            m.region = point;
            m.bytes = 8;
            s.messages.push_back(m);
        }
        for (const Step& step : {Step{Op::post_recv, 2 * i}, Step{Op::wait, 2 * i}, Step{Op::compute, i},
                                 Step{Op::post_send, 2 * i + 1}, Step{Op::wait, 2 * i + 1}, Step{Op::signal, 0, i}})
            s.lanes[0].push_back(step);
    }
    std::vector<std::byte> memory(static_cast<std::size_t>(8 * tiles));
    const std::vector<Binding> bindings{{memory.data(), {8 * tiles, 8}, 0}};
    const auto transport = make_dry_transport(0, 2);
    Lanes lanes;
    std::vector<double> found;
    for (int i = 0; i < samples; ++i) {
        const Outcome o = execute(s, bindings, Kernel{nothing_row, nullptr, false, {}, {}, nullptr}, *transport, lanes);
        o.must_have_run();
        const auto& events = o.timeline.events;
        found.push_back((events.back().end_s - events.front().begin_s) / static_cast<double>(events.size()));
    }
    return found;
}

std::vector<double> memory(Context& context, int lanes, std::int64_t bytes, int passes) {
    const std::int64_t points = std::max<std::int64_t>(bytes / 8, 1), row_bytes = 8 * points + 4096;
    // Short passes are repeated within a step, which else would cost as much.
    const std::int64_t repeats = std::max<std::int64_t>(1, (std::int64_t{1} << 20) / bytes);
    Schedule s;
    s.rank = context.rank();
    s.ranks = context.size();
    const Box all{{0, 0, 0}, {std::max(lanes, 1), repeats, points}};
    s.arrays = {array_of(all, 8)};
    s.works = {{0, NestWork{all, {}, {{0, {0, 0, 0}, true, false}}}}};
    s.lanes.resize(std::max(lanes, 1));
    for (std::int32_t l = 0; l < lanes; ++l) {
        s.tiles.push_back({{l, 0, 0}, 0, 0, {{l, 0, 0}, {l + 1, repeats, points}}});
        // The first pass gives each lane its memory.
        for (int i = 0; i <= passes; ++i) s.lanes[l].push_back({Op::compute, l});
    }
    const auto data = aligned_memory(lanes > 0 ? lanes * row_bytes : 1);
    const std::vector<Binding> bindings{{data.get(), {row_bytes, 0, 8}, 0}};
    ExecuteOptions options = context.options();
    options.heartbeat = nullptr;
    options.poll_period_s = 0;
    barrier(context.transport());
    if (lanes == 0) return {};
    const Outcome o = execute(s, bindings, Kernel{stream_row, nullptr, false, {}, {}, nullptr}, context.transport(),
                              context.lanes(), options);
    o.must_have_run();
    std::vector<double> found;
    for (const Event& e : o.timeline.events)
        if (e.step > 0) found.push_back((e.end_s - e.begin_s) / static_cast<double>(repeats));
    return found;
}

std::vector<double> copies(std::int64_t run_bytes, std::int64_t bytes, int times) {
    constexpr std::int64_t gap = 136;  // float64s from a run to the next: separate lines, no power of two
    const std::int64_t run = std::max<std::int64_t>(run_bytes / 8, 1),
                       rows = std::max<std::int64_t>(bytes / (8 * run), 1);
    Schedule s;
    s.ranks = 2;
    s.arrays = {array_of({{0, 0}, {rows, run + gap}}, 8)};
    Message m;
    m.peer = 1;
    m.send = true;
    m.buffer = 0;
    m.region = {{0, 0}, {rows, run}};
    m.bytes = 8 * rows * run;
    s.messages = {m};
    s.buffers = {m.bytes};
    s.lanes.resize(1);
    for (int i = 0; i <= times; ++i) s.lanes[0].push_back({Op::pack, 0});
    const auto data = aligned_memory(8 * rows * (run + gap));
    std::fill_n(reinterpret_cast<double*>(data.get()), rows * (run + gap), 1.0);
    const std::vector<Binding> bindings{{data.get(), {8 * (run + gap), 8}, 0}};
    const auto transport = make_dry_transport(0, 2);
    Lanes lanes;
    const Outcome o = execute(s, bindings, Programs{}, *transport, lanes);
    o.must_have_run();
    std::vector<double> found;
    for (const Event& e : o.timeline.events)
        if (e.step > 0) found.push_back(e.end_s - e.begin_s);
    return found;
}

}  // namespace tilewave::measure
