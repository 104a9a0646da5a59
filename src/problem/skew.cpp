// The coordinates in which tiles are legal: skewed loops, and the shape of rolling windows in them.
#include "tilewave/engine/problem.hpp"

#include <algorithm>

#include "core/concat.hpp"
#include "core/signs.hpp"

namespace tilewave {

SweepProblem SweepProblem::skewed(int k, int l) const {
    auto spread = [&](int d) {
        for (int a = 0; a < static_cast<int>(arrays.size()); ++a)
            if (!arrays[a].replicated && lacks(a, d)) return false;
        return loops.keeps(d);
    };
    if (k < 0 || k >= l || l >= dims() || sequential || window.along >= 0 || !spread(k) || !spread(l) ||
        has_parts_of_fields())
        throw ConfigError(
            concat("skew (", k, ", ", l, ") was given; allowed are two loops, the outer one first, of ", dims(),
                   " that all fields have, in a nest with dependence vectors whose fields are stored whole"));
    SweepProblem p = *this;
    for (int c = 0; c < dims(); ++c) p.loops.row[l][c] += loops.row[k][c];
    return p;
}

IndexMatrix legal_skew(const SweepProblem& problem) {
    const int n = problem.dims();
    IndexMatrix m = problem.loops;
    std::vector<Index> deps = problem.dependences();
    std::vector<bool> free(n, true);
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a)
        for (int k = 0; k < n; ++k)
            if (!problem.arrays[a].replicated && problem.lacks(a, k)) free[k] = false;
    for (int k = 1; k < n; ++k) {
        if (!free[k]) continue;
        Index s = Index::filled(n, 0);
        for (const Index& d : deps) {
            const int first = first_nonzero(d);
            if (d[k] >= 0 || !free[first]) continue;
            std::int64_t reached = d[k];
            for (int l = 0; l < k; ++l) reached += s[l] * d[l];
            if (reached < 0) s[first] += ceil_div(-reached, d[first]);
        }
        for (int l = 0; l < k; ++l)
            for (int c = 0; c < n; ++c) m.row[k][c] += s[l] * m.row[l][c];
        for (Index& d : deps)
            for (int l = 0; l < k; ++l) d[k] += s[l] * d[l];
    }
    return m;
}

namespace {

bool in_row(Index d, int along) {
    d[along] = 0;
    return first_nonzero(d) == d.n;
}

}  // namespace

WindowShape choose_window(const SweepProblem& problem) {
    const int n = problem.dims();
    bool any = false, free = n > 1 && !problem.sequential;
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a) {
        any = any || problem.in_window(a);
        free = free && problem.arrays[a].time_buffers == 0;
    }
    const std::vector<Index> deps = problem.dependences();
    for (const Index& d : deps) free = free && std::ranges::all_of(d, [](auto x) { return x >= 0; });
    if (!any || !free || without(problem.paths_off, FastPath::windows)) return {};
    const Box box = image(problem.loops, problem.space);
    for (const bool cut : {true, false})
        for (const int slant : {0, 1}) {
            WindowShape best;
            for (int along = n - 1; along >= 0; --along) {
                const bool chain = std::ranges::any_of(deps, [&](const Index& d) { return in_row(d, along); });
                if ((cut && !problem.may_cut(along)) || (chain && !slant)) continue;
                int across = along == 0 ? 1 : 0;
                for (int k = 0; k < n; ++k)
                    if (k != along && box.extent(k) > box.extent(across)) across = k;
                if (best.along < 0 || box.extent(across) > box.extent(best.across)) best = {along, across, slant};
            }
            if (best.along >= 0) return best;
        }
    return {};
}

}  // namespace tilewave
