#include "generate/linalg/panels.hpp"

#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace tilewave {

namespace {
// The parts alternate, so that all ranks send all the time instead of one rank after another.
std::vector<Interval> in_turn(const std::vector<Interval>& all, const Axis& one, const Axis& other) {
    std::map<std::pair<int, int>, std::int64_t> seen;
    std::vector<std::tuple<std::int64_t, std::int64_t, Interval>> order;  // turn, then as they came
    for (const Interval& at : all) {
        std::int64_t& turn = seen[{one.part_of({at.lo}), other.part_of({at.lo})}];
        order.emplace_back(turn++, at.lo, at);
    }
    std::ranges::sort(order, [](const auto& a, const auto& b) {
        return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
    });
    std::vector<Interval> turned;
    for (const auto& [turn, lo, at] : order) turned.push_back(at);
    return turned;
}

}  // namespace

std::vector<Interval> intervals(const Axis& one, const Axis& other, std::int64_t most, bool turns) {
    std::vector<Interval> all;
    for (std::int64_t at = 0; at < one.extent;) {
        std::int64_t end = one.extent;
        if (one.parts > 1) end = std::min(end, one.block_end({at}).at);
        if (other.parts > 1) end = std::min(end, other.block_end({at}).at);
        // Even pieces: a short last one would cost one more message.
        const std::int64_t count = (end - at - 1) / most + 1;
        end = at + (end - at + count - 1) / count;
        all.push_back({at, end});
        at = end;
    }
    return turns ? in_turn(all, one, other) : all;
}

std::int64_t most_columns(const MatmulProblem& p, std::int64_t most) {
    std::int64_t widest = 0;
    for (const Interval& at : intervals(p.b.columns, p.b.columns, std::max<std::int64_t>(1, p.b.columns.extent), false))
        widest = std::max(widest, at.extent());
    return widest > most && p.b.rows.extent > most ? widest : most;
}

std::vector<ColumnPanel> column_panels(const MatmulProblem& p, std::int64_t most, bool turns) {
    const std::int64_t widest = most_columns(p, most), depth = p.b.rows.extent;
    const Axis whole{depth, 1, 0};
    const std::vector<Interval> depths =
        intervals(whole, whole, widest > most ? most : std::max<std::int64_t>(1, depth), false);
    const std::vector<Interval> blocks = intervals(p.b.columns, p.b.columns, widest, turns);
    std::vector<ColumnPanel> all;
    for (std::size_t first = 0, last = 0; first < blocks.size(); first = last) {
        // One block of each part: their panels take turns.
        std::set<int> parts;
        while (last < blocks.size() && (turns || last == first) &&
               parts.insert(p.b.columns.part_of({blocks[last].lo})).second)
            ++last;
        for (const Interval& at : depths)
            for (std::size_t i = first; i < last; ++i) all.push_back({blocks[i], at, depths.front().extent()});
    }
    return all;
}

std::pair<std::int64_t, std::int64_t> place(const Axis& axis, const Interval& i) {
    if (axis.parts == 1) return {i.lo, i.hi};
    const std::int64_t lo = axis.first(axis.part_of({i.lo})) + axis.local_of({i.lo}).at;
    return {lo, lo + i.hi - i.lo};
}

BroadcastPlace broadcast_place(BroadcastTree tree, int size, int root, int me) {
    const auto real = [&](int place) { return (place + root) % size; };
    const int place = (me - root + size) % size;
    BroadcastPlace p;
    if (tree == BroadcastTree::ring) {
        if (place > 0) p.parent = real(place - 1);
        if (place + 1 < size) p.children.push_back(real(place + 1));
        return p;
    }
    // Binomial: the parent is the place without its highest bit; the child that has most to do comes first.
    int bit = 1;
    for (; bit <= place; bit *= 2) {
    }
    if (place > 0) p.parent = real(place - bit / 2);
    for (; place + bit < size; bit *= 2) p.children.push_back(real(place + bit));
    return p;
}

std::vector<Box> pieces_of(const Box& c, std::int64_t depth, double flops, int least, bool by_rows) {
    std::vector<Box> all;
    if (c.empty()) return all;
    const double whole = 2.0 * static_cast<double>(c.points()) * static_cast<double>(std::max<std::int64_t>(depth, 1));
    std::int64_t count = static_cast<std::int64_t>(std::ceil(std::min(whole / flops, 1e9)));
    int k = by_rows ? 0 : 1;
    if (c.extent(k) < c.extent(1 - k) && c.extent(k) < least_side * std::max<std::int64_t>(count, least)) k = 1 - k;
    const std::int64_t side = c.extent(k);
    count = std::clamp<std::int64_t>(count, 1, std::max<std::int64_t>(1, side / least_side));
    count = std::min(std::max<std::int64_t>(count, least), side);
    for (std::int64_t i = 0; i < count; ++i) {
        Box part = c;
        part.lo[k] = c.lo[k] + side * i / count;
        part.hi[k] = c.lo[k] + side * (i + 1) / count;
        all.push_back(part);
    }
    return all;
}

}  // namespace tilewave
