#include "problem/bounded_loops.hpp"

#include <algorithm>

namespace tilewave {

std::pair<std::int64_t, std::int64_t> extremes(const Bound& bound, const Box& box) {
    std::int64_t low = bound.constant, high = low;
    for (int d = 0; d < box.dims(); ++d) {
        const std::int64_t c = bound.coefficients[d], first = c * box.lo[d], last = c * (box.hi[d] - 1);
        low += std::min(first, last);
        high += std::max(first, last);
    }
    return {low, high};
}

bool BoundedLoops::none_in(const Box& box) const {
    return box.empty() ||
           std::ranges::any_of(bounds, [&](const Bound& bound) { return extremes(bound, box).second < 0; });
}

bool BoundedLoops::all_in(const Box& box) const {
    return std::ranges::all_of(bounds, [&](const Bound& bound) { return extremes(bound, box).first >= 0; });
}

std::pair<std::int64_t, std::int64_t> BoundedLoops::clipped(const Index& at, std::int64_t lo, std::int64_t hi) const {
    const int last = space.dims() - 1;
    for (int d = 0; d < last; ++d)
        if (at[d] < space.lo[d] || at[d] >= space.hi[d]) return {lo, lo};
    lo = std::max(lo, space.lo[last]);
    hi = std::min(hi, space.hi[last]);
    for (const Bound& bound : bounds) {
        std::int64_t rest = bound.constant;
        for (int d = 0; d < last; ++d) rest += bound.coefficients[d] * at[d];
        const std::int64_t c = bound.coefficients[last];
        if (c > 0) lo = std::max(lo, ceil_div(-rest, c));
        if (c < 0) hi = std::min(hi, floor_div(rest, -c) + 1);
        if (c == 0 && rest < 0) return {lo, lo};
    }
    return {lo, std::max(lo, hi)};
}

Index BoundedLoops::last(const std::vector<bool>& downwards, const Index& first, const Index& strides) const {
    Box box = space;
    const auto found = [&](const auto& self, int k) -> bool {
        if (none_in(box)) return false;
        if (k == box.dims()) return true;
        const std::int64_t lo = box.lo[k], hi = box.hi[k], stride = strides.n ? strides[k] : 1;
        for (std::int64_t n = 0; n < hi - lo; ++n) {
            const std::int64_t x = downwards[k] ? lo + n : hi - 1 - n;
            if (stride > 1 && floor_mod(x - first[k], stride) != 0) continue;
            box.lo[k] = x, box.hi[k] = x + 1;
            if (self(self, k + 1)) return true;
        }
        box.lo[k] = lo, box.hi[k] = hi;
        return false;
    };
    return found(found, 0) ? box.lo : Index();
}

std::int64_t BoundedLoops::points() const {
    if (bounds.empty() || space.empty()) return space.points();
    const int last = space.dims() - 1;
    std::int64_t sum = 0;
    Index at = space.lo;
    do {
        const auto [lo, hi] = clipped(at, space.lo[last], space.hi[last]);
        sum += hi - lo;
    } while (next_point(at, space, 1u << last));
    return sum;
}

}  // namespace tilewave
