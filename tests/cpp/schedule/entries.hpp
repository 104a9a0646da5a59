// Small whole schedules, and changes of one entry that some check must find.
#pragma once
#include <functional>
#include <string>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

inline Box square(std::int64_t lo, std::int64_t hi) {
    return {{lo, lo}, {hi, hi}};
}

inline IndexMatrix unit() {
    IndexMatrix m;
    m.n = 2;
    m.row[0] = {1, 0};
    m.row[1] = {0, 1};
    return m;
}

/// Rank 0 of two, with arrays 0, in memory 0, and 1; two receives of it; one lane that waits for the first, combines it
/// and computes tile 0.
inline Schedule without_works() {
    Schedule s;
    s.ranks = 2;
    Array a{8, square(0, 10), square(0, 8)};
    a.stride = {10, 1};
    a.period = {8, 0};
    a.view = {0, {{1, 0}, {0, 1}}, {0, 0}, 0};
    s.arrays = {a, {8, square(0, 10), square(0, 8)}};
    s.buffers = {64, 64};
    Message m;
    m.peer = 1;
    m.buffer = 0;
    m.region = square(0, 2);
    m.bytes = 32;
    s.messages = {m, m};
    s.messages[1].buffer = 1;
    s.lanes = {{{Op::post_recv, 0}, {Op::wait, 0}, {Op::combine, 0, combine_array_left}, {Op::compute, 0}}};
    return s;
}

/// One nest, repeated.
inline Schedule of_a_nest() {
    Schedule s = without_works();
    NestWork nest;
    nest.space = square(0, 8);
    nest.bounds = {{{1, -1}, 20}};
    nest.places = {{0, {0, 0}, true}, {1, {-1, 0}}};
    nest.order = nest.loops = unit();
    nest.period = {8, 0};
    s.works.push_back({0, nest});
    s.tiles.push_back({{0, 0}, 0, 0, square(0, 8), 0});
    s.repeated = {{0, 4}};
    s.advance = {1, 0};
    return s;
}

/// Two tasks and a result.
inline Schedule of_tasks() {
    Schedule s = without_works();
    s.arrays[1].separate = true;
    const Region part{0, square(0, 4)};
    s.works.push_back({0, TaskWork{0, {part, {1, square(0, 4)}}, {part}, 8}});
    s.works.push_back({3, TaskWork{1, {part}, {{1, square(0, 4)}}, 8}});
    s.tiles = {{}, {}};
    s.tiles[1].work = 1;
    s.results.push_back({0, square(0, 2), 1, {0, 1}});
    return s;
}

/// The entry, a part of the sentence that names what is wrong, and the change that makes it so.
struct Change {
    std::string entry, why;
    std::function<void(Schedule&)> make;
};

inline NestWork& nest(Schedule& s) {
    return *s.works[0].nest();
}

inline TaskWork& task(Schedule& s, std::size_t i) {
    return *s.works[i].task();
}

}  // namespace tilewave
