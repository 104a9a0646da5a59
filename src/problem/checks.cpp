// What a problem may be: every error says what was given and what is allowed.
#include "tilewave/engine/problem.hpp"

#include <algorithm>

#include "core/concat.hpp"
#include "core/signs.hpp"

namespace tilewave {

namespace {

void check_periodic(const SweepProblem& problem) {
    if (problem.periodic.n == 0) return;
    if (problem.periodic.n != problem.dims())
        throw ConfigError(concat("periodic ", problem.periodic, " was given; allowed: an entry for each of ",
                                 problem.dims(), " loop indices"));
    for (int k = 0; k < problem.dims(); ++k) {
        const std::int64_t n = problem.period(k);
        if (n == 0) continue;
        for (const NestArray& a : problem.arrays)
            for (int m = 0; m < a.axes.n; ++m)
                if (a.axes[m] == k && a.shape[m] != n)
                    throw ConfigError(concat("loop ", k, " is periodic, and arrays have extents ", n, " and ",
                                             a.shape[m], " along it; allowed are equal ones"));
                else if (a.axes[m] == k && a.scale.n && a.field_shape[m] != a.scale[m] * n)
                    throw ConfigError(concat("loop ", k, " is periodic, and subscripts multiply it by ", a.scale[m],
                                             ", in a field of ", a.field_shape[m], " elements; allowed are ",
                                             a.scale[m] * n, ", which are there once as it goes around"));
        if (k == 0 && std::ranges::any_of(problem.arrays, [](const NestArray& a) { return a.time_buffers > 0; }))
            throw ConfigError("loop 0 is periodic; it is time, which is not");
        if (problem.space.lo[k] < 0 || problem.space.hi[k] > n)
            throw ConfigError(concat("the space ", problem.space, " leaves the period ", n, " of loop ", k));
    }
}

void check_time(const SweepProblem& problem, const Access& p) {
    const int time_buffers = problem.arrays[p.array].time_buffers;
    const Index next = Index::unit(problem.dims(), 0);
    if (p.writes && p.offset != next)
        throw ConfigError(concat("an array with time buffers is written at offset ", p.offset, "; allowed is ", next));
    const auto comes_before = [&](const Index& d) {  // or is the same point
        return first_nonzero(d) == d.n || lexicographically_positive(problem.loops * d);
    };
    if (p.offset[0] > 1 || !comes_before(next - p.offset))
        throw ConfigError(concat(
            "an array with time buffers is read at offset ", p.offset,
            ", a value that the loops have not computed yet; allowed are earlier time steps, and points of this one "
            "that come earlier in the loops"));
    Index reuse = p.offset - next;
    reuse[0] += time_buffers;
    if (!p.writes && problem.written(p.array) && !comes_before(reuse))
        throw ConfigError(concat("the read at offset ", p.offset, " of an array that keeps ",
                                 counted(time_buffers, "time buffer"),
                                 " comes after its value is overwritten; more time buffers are needed"));
}

void check_access(const SweepProblem& problem, const Access& p) {
    const int n = problem.dims();
    if (p.array < 0 || p.array >= static_cast<int>(problem.arrays.size()) || p.offset.n != n)
        throw ConfigError(concat("an access names array ", p.array, " at offset ", p.offset, "; there are ",
                                 problem.arrays.size(), " arrays and ", n, " loops"));
    const NestArray& array = problem.arrays[p.array];
    if (array.replicated) {
        if (p.writes)
            throw ConfigError(
                concat("array ", p.array, " is written and replicated; a written array is spread over the ranks"));
        return;
    }
    if (array.time_buffers > 0 && !problem.is_gathered()) check_time(problem, p);
    for (int k = 0; k < n; ++k)
        if (problem.lacks(p.array, k) && p.offset[k] != 0 && (array.time_buffers == 0 || k > 0))
            throw ConfigError(
                concat("an access names offset ", p.offset, " along loop ", k, ", which its array lacks"));
    for (int m = 0; m < array.axes.n && !problem.space.empty(); ++m) {
        const int k = static_cast<int>(array.axes[m]);
        if (problem.period(k) > 0) continue;
        if (problem.space.lo[k] + p.offset[k] < 0 || problem.space.hi[k] + p.offset[k] > array.shape[m])
            throw ConfigError(concat("the access at offset ", p.offset, " leaves the array of shape ", array.shape,
                                     " for points of ", problem.space));
    }
}

}  // namespace

void SweepProblem::validate() const {
    if (shape.n < 1) throw ConfigError("a nest needs 1 to " + std::to_string(max_dims) + " dimensions, not 0");
    if (space.dims() != shape.n)
        throw ConfigError(concat("the space ", space, " must have the dimensions of the shape ", shape));
    if (accesses.size() > max_places)
        throw ConfigError(
            concat("the nest reads and writes ", accesses.size(), " places; at most ", max_places, " are allowed"));
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        if (i && accesses[i].writes && !accesses[i - 1].writes)
            throw ConfigError("a nest lists the places it writes before those it only reads");
        check_access(*this, accesses[i]);
    }
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a)
        for (int k = 1; k < dims() && arrays[a].time_buffers > 0; ++k)
            if (lacks(a, k))
                throw ConfigError(concat("array ", a, " has time buffers and lacks loop index ", k,
                                         "; allowed are all loop indices but time"));
    check_periodic(*this);
    if (sequential || is_gathered()) return;
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
        if (!written(a)) continue;
        int missing = 0;
        for (int k = arrays[a].time_buffers > 0 ? 1 : 0; k < dims(); ++k) missing += lacks(a, k);
        if (missing == 0) continue;
        for (const Access& p : accesses)
            if (p.array == a && (missing > 1 || p.offset != shift(a)))
                throw ConfigError(concat("array ", a, " lacks ", missing, " loop indices and is accessed at offsets ",
                                         shift(a), " and ", p.offset,
                                         "; such a nest has no dependence vectors and runs in loop order only"));
    }
}

}  // namespace tilewave
