#include "problem/stencil.hpp"

#include <algorithm>

#include "core/concat.hpp"

namespace tilewave {

namespace {

bool timed(const SweepProblem& problem) {
    return std::ranges::any_of(problem.arrays, [](const NestArray& a) { return a.time_buffers > 0; });
}

// Each element is written by a point of the rank that owns it.
std::string why_no_writes(const SweepProblem& problem) {
    const Index origin = problem.origin();
    for (const Access& p : problem.accesses) {
        if (!p.writes || problem.arrays[p.array].time_buffers > 0) continue;
        const NestArray& array = problem.arrays[p.array];
        if (timed(problem)) return concat("array ", p.array, " has time as a dimension and is written");
        if (p.offset != problem.shift(p.array)) return concat("array ", p.array, " is written at two places");
        for (auto k : array.axes) {
            const auto at = static_cast<int>(k);
            if (p.offset[at] != origin[at] || (problem.period(at) > 0 && p.offset[at] != 0))
                return concat("array ", p.array, " is written at offset ", p.offset);
        }
    }
    return "";
}

}  // namespace

std::string why_no_stencil(const SweepProblem& problem) {
    if (!problem.pivots.empty()) return "its first loop is a pivot";
    if (problem.is_gathered()) return "its time steps are gathered";
    if (problem.sequential) return "its points are computed in the order of the loops";
    if (!problem.loops.is_identity()) return "a loop runs downwards or is skewed";
    if (problem.window.along >= 0) return "an array has a rolling window";
    const bool in_time = timed(problem);
    if (in_time && problem.dims() < 2) return "it has no loop but time";
    if (!in_time && !problem.wraps()) return "it has no time steps";
    if (problem.wraps() && !problem.bounds.empty()) return "bounds depend on outer loops, and a loop is periodic";
    if (std::string why = why_no_writes(problem); !why.empty()) return why;
    for (const Index& d : problem.dependences())
        if (!in_time || d[0] <= 0)
            return concat("points of one ", in_time ? "time step" : "run",
                          " depend on each other, by the dependence vector ", d);
    return "";
}

Stencil stencil_of(const SweepProblem& problem) {
    Stencil s;
    s.timed = timed(problem);
    s.lo = s.hi = s.step_lo = s.step_hi = Index::filled(problem.dims(), 0);
    if (!s.timed) return s;
    for (const Access& p : problem.accesses) {
        if (!problem.written(p.array)) continue;
        Index offset = problem.offset(p);
        if (p.writes && p.keeps) offset[0] = -1;  // a point that writes nothing keeps the value of the step before
        if (offset[0] < 0) s.reads.push_back({p.array, offset});
    }
    for (const StencilRead& r : s.reads) {
        const std::int64_t back = -r.offset[0];
        s.deepest = std::max(s.deepest, back);
        for (int k = 1; k < problem.dims(); ++k) {
            s.lo[k] = std::max(s.lo[k], -r.offset[k]);
            s.hi[k] = std::max(s.hi[k], r.offset[k]);
            s.step_lo[k] = std::max(s.step_lo[k], ceil_div(-r.offset[k], back));
            s.step_hi[k] = std::max(s.step_hi[k], ceil_div(r.offset[k], back));
        }
    }
    return s;
}

StencilHalo stencil_halo(const SweepProblem& problem, const Plan& plan) {
    StencilHalo halo;
    halo.lo = halo.hi = Index::filled(problem.dims(), 0);
    halo.begin = problem.space.lo[0];
    halo.end = problem.space.hi[0];
    if (plan.temporal_block < 2 || problem.once) return halo;
    const Stencil s = stencil_of(problem);
    if (!s.timed) return halo;
    halo.steps = plan.temporal_block;
    for (int k = 1; k < problem.dims(); ++k) {
        if (plan.grid[k] == 1 && problem.period(k) == 0) continue;  // the rank has all of it
        halo.lo[k] = s.step_lo[k];
        halo.hi[k] = s.step_hi[k];
    }
    return halo;
}

void check_stencil_plan(const SweepProblem& problem, const Plan& plan) {
    const auto refuse = [](const std::string& what) { throw ConfigError("generator stencil was given; " + what); };
    if (const std::string why = why_no_stencil(problem); !why.empty()) refuse("allowed: sweep, as of this nest " + why);
    const bool in_time = stencil_of(problem).timed;
    const int n = problem.dims();
    if (in_time && (plan.tile[0] != 1 || plan.factors[0] != 1))
        refuse(concat("tile ", plan.tile, " and factors ", plan.factors, " were, too; allowed: 1 along time"));
    if (plan.row.n && plan.order(n) != IndexMatrix::identity(n))
        refuse(concat("row ", plan.row, " was, too; allowed: rows along the last dimension"));
    if (plan.storage != StorageKind::plain || plan.skew.n) refuse("allowed: storage plain and no skew");
    if (plan.slices != 1 || plan.aggregate != 1) refuse("allowed: slices 1 and aggregate 1");
    if (problem.once && plan.temporal_block > 1)
        refuse(concat("temporal_block ", plan.temporal_block,
                      " was, too; allowed where elements are updated in any order: 1"));
}

}  // namespace tilewave
