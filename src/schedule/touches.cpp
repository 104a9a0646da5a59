#include "schedule/touches.hpp"

#include <algorithm>

namespace tilewave {

namespace {

// The box of the memory's elements that holds those of a box of the array.
Box in_memory(const Array& a, const Box& box) {
    const View& view = a.view;
    if (box.empty()) return box;
    Box to = box;
    if (!view.rows.empty()) {
        to = {view.shift, view.shift};
        for (int d = 0; d < to.dims(); ++d) {
            for (int k = 0; k < box.dims(); ++k) {
                const std::int64_t by = view.rows[d][k];
                to.lo[d] += std::min(by * box.lo[k], by * (box.hi[k] - 1));
                to.hi[d] += std::max(by * box.lo[k], by * (box.hi[k] - 1));
            }
            ++to.hi[d];
        }
    }
    const std::int64_t times = to.extent(0);
    if (view.buffers > 0 && !view.rows.empty()) {  // a box of buffers: all where it would be two
        const std::int64_t first = floor_mod(to.lo[0], view.buffers);
        to = first + times > view.buffers ? to.with(0, 0, view.buffers) : to.with(0, first, first + times);
    } else if (a.time_buffers > 0 || view.buffers > 0) {  // any time may share memory with any other
        to = to.with(0, 0, 1);
    }
    return to;
}

void add(const Schedule& s, std::int32_t array, const Box& box, bool writes, std::vector<Touch>& all) {
    const Array& a = s.arrays[array];
    if (a.whole && !writes && a.view.memory < 0) return;
    const Box part = a.whole ? box : intersect(box, a.storage);
    if (part.empty()) return;
    const std::int32_t memory = a.view.memory >= 0 ? a.view.memory : -1 - array;
    all.push_back({memory, in_memory(a, part), writes});
}

}  // namespace

std::vector<Touch> touches(const Schedule& s, const Step& step) {
    std::vector<Touch> all;
    if (step.op == Op::signal || step.op == Op::await) return all;
    if (step.op == Op::compute) {
        const Tile& tile = s.tiles[step.item];
        const Work& work = s.works[tile.work];
        if (const TaskWork* task = work.task()) {
            for (const Region& r : task->reads) add(s, r.array, r.box, false, all);
            for (const Region& r : task->writes) add(s, r.array, r.box, true, all);
        } else {
            for (const Access& p : work.nest()->places)
                add(s, p.array, s.arrays[p.array].elements(tile.box.shifted(p.offset)), p.writes, all);
        }
        return all;
    }
    const Message& m = s.messages[step.item];
    const bool moves = step.op == Op::post_recv || step.op == Op::post_send || step.op == Op::wait;
    if (m.region.dims() == 0 || (moves && m.buffer >= 0)) return all;
    const bool writes = moves ? !m.send : step.op == Op::unpack;
    add(s, m.array, m.region, writes, all);
    return all;
}

void extend(std::vector<Touch>& hulls, const Touch& more) {
    for (Touch& t : hulls)
        if (t.memory == more.memory && t.writes == more.writes && t.box.dims() == more.box.dims()) {
            t.box = hull(t.box, more.box);
            return;
        }
    hulls.push_back(more);
}

bool conflict(const std::vector<Touch>& all, const Touch& y) {
    return std::ranges::any_of(all, [&](const Touch& x) {
        if (x.memory != y.memory || !(x.writes || y.writes) || x.box.dims() != y.box.dims()) return false;
        for (int k = 0; k < x.box.dims(); ++k)
            if (x.box.hi[k] <= y.box.lo[k] || y.box.hi[k] <= x.box.lo[k]) return false;
        return true;
    });
}

}  // namespace tilewave
