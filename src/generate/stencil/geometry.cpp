#include "generate/stencil/geometry.hpp"

#include <algorithm>
#include <cstdlib>

#include "generate/copy/copy.hpp"
#include "problem/nest_work.hpp"

namespace tilewave {

namespace {

// Bytes of a message, at most; larger ones go in pieces: MPI counts are 32-bit in older libraries.
constexpr std::int64_t most_message_bytes = std::int64_t{1} << 30;
// Bytes from which a piece that is one run of memory goes unpacked, as one message: packing and unpacking so many takes
// as long as another message, about 10 us each.
constexpr std::int64_t least_in_place_bytes = 64 << 10;

}  // namespace

StencilGeometry::StencilGeometry(const SweepProblem& problem, const Plan& plan)
    : problem_(problem),
      plan_(plan),
      stencil_(stencil_of(problem)),
      halo_(stencil_halo(problem, plan)),
      blocks_(problem.blocks(plan.grid)) {
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        layouts_.push_back(tilewave::layout(problem, plan, a));
}

Index StencilGeometry::period() const {
    Index period = Index::filled(problem_.dims(), 0);
    for (int k = 0; k < period.n; ++k) period[k] = problem_.period(k);
    return problem_.wraps() ? period : Index();
}

Array StencilGeometry::array(int a, int rank) const {
    Array result = array_on(problem_, plan_, layouts_[a], a, rank);
    if (!result.whole) result.period = period();
    return result;
}

Box StencilGeometry::block(int rank) const {
    if (rank >= blocks_.ranks()) return {problem_.space.lo, problem_.space.lo};
    const Index at = blocks_.coords(rank);
    Box box = problem_.space;
    for (int k = 0; k < at.n; ++k) std::tie(box.lo[k], box.hi[k]) = problem_.block_range(blocks_, k, at[k]);
    return box;
}

// Clipped to the space, except along periodic loops.
Box StencilGeometry::widened(Box box, const Index& lo, const Index& hi) const {
    if (box.empty()) return box;
    for (int k = stencil_.first(); k < box.dims(); ++k) {
        box.lo[k] -= lo[k];
        box.hi[k] += hi[k];
        if (problem_.period(k) > 0) continue;
        box.lo[k] = std::max(box.lo[k], problem_.space.lo[k]);
        box.hi[k] = std::min(box.hi[k], problem_.space.hi[k]);
    }
    return box;
}

Box StencilGeometry::most_reached(int rank) const {
    return widened(block(rank), halo_.most_lo(), halo_.most_hi());
}

Box StencilGeometry::reached(int rank, std::int64_t t) const {
    const std::int64_t left = halo_.left(t);
    const Box box = widened(block(rank), StencilHalo::times(halo_.lo, left), StencilHalo::times(halo_.hi, left));
    return stencil_.timed && !box.empty() ? box.with(0, t, t + 1) : box;
}

std::vector<Box> StencilGeometry::computed(const Box& box) const {
    std::vector<Box> parts;
    if (box.empty()) return parts;
    parts.push_back(box);
    for (int k = 0; k < box.dims(); ++k) {
        const std::int64_t n = problem_.period(k);
        if (n == 0) continue;
        std::vector<Box> cut;
        for (const Box& part : parts)
            for (std::int64_t w = floor_div(part.lo[k], n); w * n < part.hi[k]; ++w) {
                const Box one = part.with(k, std::max(part.lo[k], problem_.space.lo[k] + w * n),
                                          std::min(part.hi[k], problem_.space.hi[k] + w * n));
                if (!one.empty()) cut.push_back(one);
            }
        parts = std::move(cut);
    }
    return parts;
}

bool StencilGeometry::exchanges(std::int64_t t) const {
    return stencil_.timed && t > halo_.begin && t < halo_.end && halo_.left(t - 1) == 0;
}

// The blocks that may have a point of a box, shifted by whole periods.
std::vector<StencilGeometry::Image> StencilGeometry::images(const Box& region) const {
    std::vector<Image> result;
    if (region.empty()) return result;
    const int n = region.dims();
    // Along each dimension: (coordinate in the grid, shift by whole periods).
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> along(n);
    const Index origin = problem_.origin();
    Box counts{Index::filled(n, 0), Index::filled(n, 0)};
    for (int k = 0; k < n; ++k) {
        auto& list = along[k];
        const std::int64_t period = problem_.period(k), extent = problem_.shape[k];
        const auto add = [&](std::int64_t lo, std::int64_t hi, std::int64_t shift) {
            if (period > 0) {
                lo = std::max<std::int64_t>(lo, 0);
                hi = std::min(hi, extent);
            } else if (extent > 0) {  // the last block has the elements of longer arrays, too
                lo = std::clamp<std::int64_t>(lo, 0, extent - 1);
                hi = std::clamp<std::int64_t>(hi, 1, extent);
            }
            if (lo >= hi || extent == 0) return;
            for (auto c = blocks_.block_at(k, lo); c <= blocks_.block_at(k, hi - 1); ++c) list.emplace_back(c, shift);
        };
        if (period > 0)
            for (auto w = floor_div(region.lo[k], period); w * period < region.hi[k]; ++w)
                add(region.lo[k] - w * period, region.hi[k] - w * period, w * period);
        else if (plan_.grid[k] > 1)
            add(region.lo[k] + origin[k], region.hi[k] + origin[k], 0);
        else
            list.emplace_back(0, 0);
        counts.hi[k] = static_cast<std::int64_t>(list.size());
    }
    if (counts.empty()) return result;
    Index at = counts.lo;
    do {
        Image image{0, at};
        std::int64_t rank = 0;
        for (int k = 0; k < n; ++k) {
            const auto& [c, shift] = along[k][at[k]];
            rank = rank * plan_.grid[k] + c;
            image.shift[k] = shift;
        }
        image.rank = static_cast<int>(rank);
        result.push_back(image);
    } while (next_point(at, counts));
    return result;
}

const std::vector<int>& StencilGeometry::neighbours(int rank) const {
    const auto [found, fresh] = neighbours_.try_emplace(rank);
    std::vector<int>& result = found->second;
    if (!fresh || rank >= blocks_.ranks()) return result;
    // What the rank owns or computes, widened by the furthest access: it reads there, and others read from it there.
    Index reach = Index::filled(problem_.dims(), 0);
    for (const Access& p : problem_.accesses)
        for (int k = 0; k < reach.n; ++k)
            reach[k] = std::max(reach[k], std::abs(problem_.offset(p)[k]) +
                                              std::abs(problem_.shift(p.array)[k] - problem_.origin()[k]));
    const Index lo = halo_.most_lo(), hi = halo_.most_hi();
    Box region = blocks_.owned(rank);
    for (int k = 0; k < reach.n; ++k) {
        reach[k] += std::max(lo[k], hi[k]);
        if (plan_.grid[k] == 1 && problem_.period(k) == 0) continue;
        region.lo[k] -= reach[k] + problem_.origin()[k];
        region.hi[k] += reach[k] - problem_.origin()[k];
    }
    for (const Image& image : images(region))
        if (image.rank != rank) result.push_back(image.rank);
    std::ranges::sort(result);
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
}

// Adds the values of array `a` at time `s` that `target` reads from time `t` on and `source` computes for it.
void StencilGeometry::add_needed(int a, std::int64_t s, std::int64_t t, int source, int target,
                                 std::vector<StencilPiece>& out) const {
    std::vector<Box> wanted;
    Box all;
    for (const StencilRead& r : stencil_.reads) {
        const std::int64_t reader = s - r.offset[0];
        if (r.array != a || reader < t || reader >= halo_.end) continue;
        wanted.push_back(reached(target, reader).shifted(r.offset));
        all = hull(all, wanted.back());
    }
    if (all.dims() == 0 || all.empty()) return;
    const Box computed_there = reached(target, s);
    const Box points = block(source).with(0, s, s + 1);
    for (const Image& image : images(all)) {
        if (image.rank != source || (source == target && first_nonzero(image.shift) == image.shift.n)) continue;
        const Box there = points.shifted(image.shift);
        Box needed;  // read by read, since the hull of a star's reads would have corners, and so more neighbours
        for (const Box& w : wanted)
            for (const Box& part : subtract(intersect(w, there), computed_there)) needed = hull(needed, part);
        if (needed.dims() > 0 && !needed.empty()) out.push_back({a, needed, image.shift});
    }
}

std::vector<StencilPiece> StencilGeometry::pieces(int source, int target, std::int64_t t) const {
    std::vector<StencilPiece> result;
    if (block(source).empty() || block(target).empty()) return result;
    // Values of the steps since the last exchange; those from before the run are initial().
    const std::int64_t since = std::max({halo_.begin, t - halo_.steps, t - stencil_.deepest});
    for (std::int64_t s = t - 1; s >= since; --s)
        for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a)
            if (problem_.arrays[a].time_buffers > 0 && problem_.written(a)) add_needed(a, s, t, source, target, result);
    return result;
}

// A piece that has all of the space along a loop that is not cut gets the elements outside the space, too. These do not
// change and are equal on both ranks: sending them again is harmless, and may save packing.
StencilPiece StencilGeometry::whole_rows(StencilPiece piece, const Array& there) const {
    for (int k = 1; k < piece.region.dims(); ++k) {
        if (plan_.grid[k] > 1 || problem_.period(k) > 0 || piece.region.lo[k] > problem_.space.lo[k] ||
            piece.region.hi[k] < problem_.space.hi[k])
            continue;
        piece.region = piece.region.with(k, there.storage.lo[k], there.storage.hi[k]);
    }
    return piece;
}

std::vector<HaloMessage> StencilGeometry::grouped(int source, int target, std::vector<StencilPiece> pieces) const {
    std::vector<HaloMessage> result;
    std::vector<StencilPiece> packed;
    const auto bytes = [&](const StencilPiece& p) { return p.region.points() * problem_.arrays[p.array].item_bytes; };
    for (StencilPiece& p : pieces) {
        const Array here = array(p.array, source), there = array(p.array, target);
        const auto in_one_run = [&](const StencilPiece& q) {
            return source != target && one_run(q.region, there) && one_run(q.sent(), here);
        };
        if (const StencilPiece rows = whole_rows(p, there); in_one_run(rows)) p = rows;
        const bool runs = in_one_run(p);
        if (!runs || (pieces.size() > 1 && bytes(p) < least_in_place_bytes)) {
            packed.push_back(p);
            continue;
        }
        for (const Box& part : chunks(p.region, problem_.arrays[p.array].item_bytes, most_message_bytes))
            result.push_back({{{p.array, part, p.shift}}, true});
    }
    // Packed while the chunk before it travels.
    std::int64_t room = 0;
    for (const StencilPiece& p : packed)
        for (const Box& part : chunks(p.region, problem_.arrays[p.array].item_bytes,
                                      source == target ? most_message_bytes : plan_.chunk_bytes)) {
            const StencilPiece one{p.array, part, p.shift};
            if (source == target || bytes(one) > room || result.empty() || result.back().in_place) {
                result.emplace_back();
                room = std::max(plan_.chunk_bytes, bytes(one));
            }
            result.back().pieces.push_back(one);
            room -= bytes(one);
        }
    return result;
}

// Exchanges differ in their time alone, but for the first and the last ones.
const std::vector<HaloMessage>& StencilGeometry::messages(int source, int target, std::int64_t t) const {
    const std::int64_t depth = halo_.steps + stencil_.deepest;
    const Key key{source, target, std::min(t - halo_.begin, depth), std::min(halo_.end - t, depth + 1)};
    const auto [found, fresh] = messages_.try_emplace(key, t, std::vector<HaloMessage>());
    auto& [time, list] = found->second;
    if (fresh) list = grouped(source, target, pieces(source, target, t));
    for (HaloMessage& m : list)
        for (StencilPiece& p : m.pieces) {
            p.region.lo[0] += t - time;
            p.region.hi[0] += t - time;
        }
    time = t;
    return list;
}

std::vector<StencilPiece> StencilGeometry::initial(int a, int source, int target) const {
    std::vector<StencilPiece> result;
    const NestArray& n = problem_.arrays[a];
    const Box points = most_reached(target), owned = problem_.box_of(a, layouts_[a].owned(source));
    if (n.replicated || points.empty() || owned.empty()) return result;
    const Array kind = array_kind(problem_, a);
    std::vector<Box> wanted;
    Box all;
    for (const Access& p : problem_.accesses) {
        if (p.array != a) continue;
        Box box = kind.elements(points.shifted(problem_.offset(p)));
        // Elements that no point computes have their value in all buffers that later steps read.
        if (n.time_buffers > 0 && problem_.space.extent(0) > 1) box = box.with(0, owned.lo[0], owned.hi[0]);
        wanted.push_back(box);
        all = hull(all, box);
    }
    if (wanted.empty()) return result;
    // The grid cuts points, not elements.
    for (const Image& image : images(all.shifted(problem_.shift(a) - problem_.origin()))) {
        if (image.rank != source || (source == target && first_nonzero(image.shift) == image.shift.n)) continue;
        Index shift = image.shift;
        for (int k = 0; k < shift.n; ++k)
            if (kind.lacks >> k & 1) shift[k] = 0;
        Box needed;
        for (const Box& w : wanted) needed = hull(needed, intersect(w, owned.shifted(shift)));
        if (needed.dims() == 0 || needed.empty()) continue;
        const bool known =
            std::ranges::any_of(result, [&](const StencilPiece& p) { return p.region == needed && p.shift == shift; });
        const bool in_place = source == target && first_nonzero(shift) == shift.n;
        if (!known && !in_place) result.push_back({a, needed, shift});
    }
    return result;
}

std::pair<std::vector<Box>, Box> StencilGeometry::border(int rank, std::int64_t t) const {
    const Box all = reached(rank, t);
    Box inner = all;
    std::vector<int> readers = neighbours(rank);
    readers.push_back(rank);
    for (const int reader : readers)
        for (const HaloMessage& m : messages(rank, reader, t + 1))
            for (const StencilPiece& p : m.pieces) {
                const Box sent = intersect(p.sent(), inner);
                if (p.sent().lo[0] != t || sent.empty()) continue;
                // Cut off where that leaves most.
                int best = -1;
                bool low = true;
                std::int64_t most = -1;
                for (int k = 1; k < inner.dims(); ++k)
                    for (const bool side : {true, false}) {
                        Box rest = inner;
                        (side ? rest.lo : rest.hi)[k] = side ? sent.hi[k] : sent.lo[k];
                        if (rest.points() <= most) continue;
                        most = rest.points();
                        best = k;
                        low = side;
                    }
                if (best < 0) continue;
                (low ? inner.lo : inner.hi)[best] = low ? sent.hi[best] : sent.lo[best];
            }
    if (inner.empty()) return {{all}, {all.lo, all.lo}};
    return {subtract(all, inner), inner};
}

}  // namespace tilewave
