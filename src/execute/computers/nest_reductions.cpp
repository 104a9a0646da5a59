// Reductions of what nests compute: the values of some rows at a time, while they are in the nearest cache.
#include <algorithm>
#include <cstring>

#include "execute/computers/nests.hpp"

namespace tilewave {

namespace {

// Sets some bytes to 0 before rows are computed, most often few of them: then perhaps more, whose values come later.
void clear(std::byte* at, std::int64_t bytes) {
    if (bytes <= 0) return;
    if (bytes <= cache_line_bytes)
        std::memset(at, 0, cache_line_bytes);
    else
        std::memset(at, 0, static_cast<std::size_t>(bytes));
}

}  // namespace

std::vector<Reduced> NestComputer::reduced() const {
    std::vector<Reduced> all;
    for (const Nest& nest : nests_)
        for (const auto& lanes : nest.reduced) {
            all.push_back(lanes.empty() ? Reduced() : nest.found(lanes[0], 0));
            for (std::size_t l = 1; l < lanes.size(); ++l)
                all.back().combine(nest.found(lanes[l], static_cast<int>(l)));
        }
    return all;
}

// Where the kernel finds bests: of all rows, or of the first row of a batch, or where nobody looks.
void NestComputer::Nest::place_bests(const Kernel& of, int lane, bool reduces, char** to) {
    const auto place = [&](int k, std::size_t at) { to[k] = reinterpret_cast<char*>(best(lane, k) + at); };
    for (const PointReduction& r : of.reductions) {
        const std::size_t at = reduces || r.positions ? 0 : best_room - 1;
        if (r.best >= 0) place(r.best, at);
        if (r.counted >= 0) place(r.counted, at);
    }
}

// Row `row` of a batch has no best yet; or those of all rows.
void NestComputer::Nest::begin_bests(int lane, int row, bool of_rows) {
    for (const PointReduction& r : kernel->reductions) {
        if (r.best < 0 || r.positions != of_rows) continue;
        Reduced::begin_best(r.op, r.type, reinterpret_cast<std::byte*>(best(lane, r.best) + row));
        if (r.counted >= 0) *best(lane, r.counted) = 0;
    }
}

// With what the kernel has found of a lane's rows.
Reduced NestComputer::Nest::found(const LaneReduced& of, int lane) const {
    Reduced value = of.value;
    const PointReduction& what = value.what();
    const std::int64_t* const all = bests[lane].data();
    const auto cell = [&](int k) {
        return reinterpret_cast<const std::byte*>(all + static_cast<std::size_t>(k) * best_room);
    };
    if (what.best >= 0 && !what.positions && of.any && (what.counted < 0 || *cell(what.counted) != std::byte{0}))
        value.add_best(cell(what.best));
    return value;
}

// Where the values of some rows go: one row behind the other, between the first and the last point of any. What lies
// between the rows is 0, so that sums take all at once.
NestComputer::RowValues NestComputer::place_values(const Nest& nest, int lane, std::span<const Span> spans, char** ptr,
                                                   const std::int64_t* step, std::int64_t* next) {
    std::int64_t lo = spans[0].begin, hi = lo;
    for (const Span& s : spans) lo = std::min(lo, s.begin), hi = std::max(hi, s.begin + s.points);
    const std::int64_t width = hi - lo;
    for (std::size_t k = 0; k < nest.kernel->values.size(); ++k) {
        const std::size_t p = nest.work->places.size() + k;
        ptr[p] = nullptr;
        next[p] = 0;
        if (step[p] == 0) continue;
        std::byte* row = nest.row_value(lane, k);
        next[p] = width * step[p];
        ptr[p] =
            reinterpret_cast<char*>(reinterpret_cast<std::intptr_t>(row) - spans[0].number * next[p] - lo * step[p]);
        for (const Span& s : spans) {
            const std::int64_t before = s.begin - lo, after = width - before - s.points;
            clear(row, before * step[p]);
            clear(row + (before + s.points) * step[p], after * step[p]);
            row += next[p];
        }
    }
    return {lo, width};
}

void NestComputer::reduce(Nest& nest, int lane, const Computed& rows) {
    const std::size_t places = nest.work->places.size();
    for (auto& lanes : nest.reduced) {
        Reduced& r = lanes[lane].value;
        const PointReduction& what = r.what();
        lanes[lane].any = true;
        if (what.best >= 0 && !what.positions) continue;
        const auto p = static_cast<std::size_t>(what.place);
        const auto first = [&](std::size_t place, const Span& s) {
            return reinterpret_cast<const std::byte*>(reinterpret_cast<std::intptr_t>(rows.ptr[place]) +
                                                      s.number * rows.next[place] + s.begin * rows.step[place]);
        };
        if (what.op == Reduction::sum && p >= places) {
            r.add(nest.row_value(lane, p - places), rows.step[p],
                  rows.values.width * static_cast<std::int64_t>(rows.spans.size()), rows.index, rows.direction);
            continue;
        }
        const std::int64_t* const bests = what.best < 0 ? nullptr : nest.best(lane, what.best);
        for (std::size_t i = 0; i < rows.spans.size(); ++i) {
            const Span& s = rows.spans[i];
            const std::byte* const values = first(p, s);
            if (bests && r.worse(reinterpret_cast<const std::byte*>(bests + i))) continue;
            Index at = what.shift, by = what.shift;
            for (int d = 0; d < at.n; ++d) {
                const int axis = static_cast<int>(what.axes[d]);
                at[d] += rows.index[axis] + s.number * rows.turn[axis] + s.begin * rows.direction[axis];
                by[d] = rows.direction[axis];
            }
            r.add(values, rows.step[p], s.points, at, by,
                  what.counts < 0 ? nullptr : first(static_cast<std::size_t>(what.counts), s));
        }
    }
}

}  // namespace tilewave
