// Reductions of what nests compute: the values of some rows at a time, while they are in the nearest cache.
#include "execute/computers/reduced_rows.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "tilewave/engine/limits.hpp"
#include "tilewave/error.hpp"

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

void ReducedRows::begin(const Kernel& of, std::size_t count, std::size_t lanes) {
    kernel = &of, places = count;
    const auto found = static_cast<std::size_t>(of.bests());
    if (const std::size_t n = places + of.values.size() + of.tables.size() + found; n > max_places)
        throw ConfigError("execute: a kernel has " + std::to_string(n) +
                          " places, row values, tables and bests; at most " + std::to_string(max_places) +
                          " are allowed");
    row_values.clear();
    for (std::size_t l = 0; l < lanes && !of.values.empty(); ++l)
        row_values.push_back(aligned_memory(value_room(of.values.size())));
    bests.assign(lanes, std::vector<std::int64_t>(found * best_room));
    restart();
}

void ReducedRows::restart() {
    reduced.clear();
    if (!kernel) return;
    for (const PointReduction& r : kernel->reductions) reduced.emplace_back(bests.size(), LaneReduced{Reduced(r)});
    for (int l = 0; l < static_cast<int>(bests.size()); ++l) begin_bests(l, 0, false);
}

std::vector<Reduced> ReducedRows::all() const {
    std::vector<Reduced> all;
    for (const auto& lanes : reduced) {
        all.push_back(lanes.empty() ? Reduced() : found(lanes[0], 0));
        for (std::size_t l = 1; l < lanes.size(); ++l) all.back().combine(found(lanes[l], static_cast<int>(l)));
    }
    return all;
}

std::int64_t ReducedRows::compute(int lane, char* const* at, const std::int64_t* along, std::int64_t points,
                                  const Index& index, const Index& direction) {
    char* ptr[max_places];
    std::int64_t step[max_places], next[max_places];
    const std::size_t all = places + kernel->values.size();
    std::fill(std::ranges::copy(kernel->values, std::copy(along, along + places, step)).out,
              step + all + kernel->tables.size(), 0);
    std::fill(next, next + all, 0);
    place_bests(*kernel, lane, true, std::ranges::copy(kernel->tables, ptr + all).out);
    const std::int64_t most = kernel->stores_values() ? tuning::longest_value_row : std::max<std::int64_t>(points, 1);
    for (std::int64_t first = 0; first < points; first += most) {
        const Span row{0, 0, std::min(most, points - first)};
        Index x = index;
        for (int k = 0; k < x.n; ++k) x[k] += first * direction[k];
        for (std::size_t p = 0; p < places; ++p) ptr[p] = at[p] + first * step[p];
        if (kernel->bests_by_row()) begin_bests(lane, 0, true);
        const RowValues values = kernel->values.empty() ? RowValues{} : place_values(lane, {&row, 1}, ptr, step, next);
        if (const std::int64_t code = kernel->row(ptr, step, row.points, x.begin(), direction.begin(), kernel->env);
            code != 0)
            return code + first * error_sites;
        reduce(lane, {ptr, step, next, {&row, 1}, values, x, direction, direction});
    }
    return 0;
}

// Where the kernel finds bests: of all rows, or of the first row of a batch, or where nobody looks.
void ReducedRows::place_bests(const Kernel& of, int lane, bool reduces, char** to) {
    const auto place = [&](int k, std::size_t at) { to[k] = reinterpret_cast<char*>(best(lane, k) + at); };
    for (const PointReduction& r : of.reductions) {
        const std::size_t at = reduces || r.positions ? 0 : best_room - 1;
        if (r.best >= 0) place(r.best, at);
        if (r.counted >= 0) place(r.counted, at);
    }
}

// Row `row` of a batch has no best yet; or those of all rows.
void ReducedRows::begin_bests(int lane, int row, bool of_rows) {
    for (const PointReduction& r : kernel->reductions) {
        if (r.best < 0 || r.positions != of_rows) continue;
        Reduced::begin_best(r.op, r.type, reinterpret_cast<std::byte*>(best(lane, r.best) + row));
        if (r.counted >= 0) *best(lane, r.counted) = 0;
    }
}

// With what the kernel has found of a lane's rows.
Reduced ReducedRows::found(const LaneReduced& of, int lane) const {
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
ReducedRows::RowValues ReducedRows::place_values(int lane, std::span<const Span> spans, char** ptr,
                                                 const std::int64_t* step, std::int64_t* next) const {
    std::int64_t lo = spans[0].begin, hi = lo;
    for (const Span& s : spans) lo = std::min(lo, s.begin), hi = std::max(hi, s.begin + s.points);
    const std::int64_t width = hi - lo;
    for (std::size_t k = 0; k < kernel->values.size(); ++k) {
        const std::size_t p = places + k;
        ptr[p] = nullptr;
        next[p] = 0;
        if (step[p] == 0) continue;
        std::byte* row = row_value(lane, k);
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

void ReducedRows::reduce(int lane, const Computed& rows) {
    for (auto& lanes : reduced) {
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
            r.add(row_value(lane, p - places), rows.step[p],
                  rows.values.width * static_cast<std::int64_t>(rows.spans.size()), rows.index, rows.direction);
            continue;
        }
        const std::int64_t* const bests = what.best < 0 ? nullptr : best(lane, what.best);
        for (std::size_t i = 0; i < rows.spans.size(); ++i) {
            const Span& s = rows.spans[i];
            const std::byte* const values = first(p, s);
            if (bests && r.worse(reinterpret_cast<const std::byte*>(bests + i))) continue;
            Index at = what.shift, by = what.shift;
            for (int d = 0; d < at.n; ++d) {
                const bool less = what.axes[d] < 0;
                const int axis = static_cast<int>(less ? -1 - what.axes[d] : what.axes[d]), sign = less ? -1 : 1;
                at[d] += sign * (rows.index[axis] + s.number * rows.turn[axis] + s.begin * rows.direction[axis]);
                by[d] = sign * rows.direction[axis];
            }
            r.add(values, rows.step[p], s.points, at, by,
                  what.counts < 0 ? nullptr : first(static_cast<std::size_t>(what.counts), s));
        }
    }
}

}  // namespace tilewave
