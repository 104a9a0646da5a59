#include "nests/some_points.hpp"

#include <algorithm>
#include <cstring>

#include "tilewave/engine/limits.hpp"

namespace tilewave {

SomePoints::SomePoints(const Kernel& all, const NestProblem& nest)
    : all_(all), points_(nest.points), dims_(nest.problem.dims()), places_(nest.problem.accesses.size()) {}

// Where values are reduced and points left out, one more says which points count.
Kernel SomePoints::kernel() const {
    Kernel k = all_;
    k.row = [](char* const* ptr, const std::int64_t* step, std::int64_t n, const std::int64_t* index,
               const std::int64_t* direction, const void* env) {
        return static_cast<const SomePoints*>(env)->compute(ptr, step, n, index, direction);
    };
    k.env = this;
    k.uses_index = true;
    if (!counts()) return k;
    for (PointReduction& r : k.reductions) r.counts = static_cast<int>(places_ + all_.values.size());
    k.values.push_back(1);
    return k;
}

// Bounds cut the row at both ends; strides leave every so many-th point, those of several loops what is in all.
SomePoints::Part SomePoints::part(std::int64_t n, const std::int64_t* index, const std::int64_t* direction) const {
    std::int64_t lo = 0, hi = n;
    for (const Bound& bound : points_.bounds) {
        std::int64_t value = bound.constant, change = 0;
        for (int k = 0; k < bound.coefficients.n; ++k) {
            value += bound.coefficients[k] * index[k];
            change += bound.coefficients[k] * direction[k];
        }
        if (change > 0) lo = std::max(lo, ceil_div(-value, change));
        if (change < 0) hi = std::min(hi, floor_div(value, -change) + 1);
        if (change == 0 && value < 0) return {};
    }
    Part part{lo, 1, 0};
    for (int k = 0; k < points_.strides.n && points_.left_out; ++k) {
        const std::int64_t stride = points_.strides[k];
        if (stride == 1) continue;
        const auto kept = [&](std::int64_t q) {
            return floor_mod(index[k] + q * direction[k] - points_.first[k], stride) == 0;
        };
        const std::int64_t before = part.period;
        std::int64_t tries = 0;
        while (tries < stride && !kept(part.begin)) ++tries, part.begin += before;
        if (tries == stride) return {};
        for (part.period = before; !kept(part.begin + part.period);) part.period += before;
    }
    if (part.begin < hi) part.count = ceil_div(hi - part.begin, part.period);
    return part;
}

std::int64_t SomePoints::compute(char* const* ptr, const std::int64_t* step, std::int64_t n, const std::int64_t* index,
                                 const std::int64_t* direction) const {
    const Part part = this->part(n, index, direction);
    const std::size_t values = all_.values.size(), all = places_ + values;
    if (counts()) {
        for (std::size_t v = 0; v < values; ++v)
            std::memset(ptr[places_ + v], 0, static_cast<std::size_t>(n * step[places_ + v]));
        std::memset(ptr[all], 0, static_cast<std::size_t>(n));
        for (std::int64_t q = 0; q < part.count; ++q) ptr[all][part.begin + q * part.period] = 1;
    }
    if (part.count == 0) return 0;
    char* at[max_places];
    std::int64_t along[max_places];
    for (std::size_t p = 0; p < all; ++p) at[p] = ptr[p] + part.begin * step[p], along[p] = step[p] * part.period;
    Index x = Index::filled(dims_, 0), by = x;
    for (int k = 0; k < dims_; ++k) x[k] = index[k] + part.begin * direction[k], by[k] = direction[k] * part.period;
    if (points_.renumbered()) by = points_.given(x + by) - points_.given(x), x = points_.given(x);
    const std::int64_t code = all_.row(at, along, part.count, x.begin(), by.begin(), all_.env);
    if (code == 0) return 0;
    return (part.begin + code / error_sites * part.period) * error_sites + code % error_sites;
}

}  // namespace tilewave
