// Blocks and halos of the arrays of a nest, and of the fields that they are part of.
#include "tilewave/engine/problem.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "core/signs.hpp"

namespace tilewave {

void SweepProblem::follow(int a, const Index& offset) {
    const NestArray& array = arrays[a];
    const std::vector<Cut> array_cuts = cuts_of(array, Index::filled(dims(), 1), false);
    const Index o = origin();
    std::vector<Cut> found;
    for (int k = 0; k < dims(); ++k) found.push_back(Cut::even(shape[k]));
    for (int m = 0; m < array.axes.n; ++m) {
        const int k = static_cast<int>(array.axes[m]);
        found[k] = array_cuts[m].moved_by(o[k] - offset[k]);
    }
    cuts = std::move(found);
}

// Calls may exchange two such arrays, as A and B of alternating steps. Both get the same halos, so that no data moves.
bool SweepProblem::interchangeable(int a, int b) const {
    const NestArray &x = arrays[a], &y = arrays[b];
    return x.shape == y.shape && x.axes == y.axes && x.item_bytes == y.item_bytes && x.time_buffers == y.time_buffers &&
           x.replicated == y.replicated && in_window(a) == in_window(b) && x.scale == y.scale && x.field == y.field &&
           x.cuts == y.cuts && (x.cuts.empty() || x.residue == y.residue);
}

Layout SweepProblem::layout(int a, const Index& grid, const Index& deep_halo, const Index& before) const {
    const NestArray& array = arrays[a];
    std::vector<char> same(arrays.size());
    for (std::size_t b = 0; b < arrays.size(); ++b) same[b] = interchangeable(a, static_cast<int>(b));
    const int n = array.shape.n;
    Index lo = Index::filled(n, 0), hi = lo, array_grid = Index::filled(n, 1);
    if (array.replicated && !wraps()) return Layout(array.shape, array_grid);
    for (int m = 0; m < n && !array.replicated; ++m) array_grid[m] = grid[static_cast<int>(array.axes[m])];
    Layout even(array.shape, array_grid);
    if (!array.replicated && (array.aligned || !array.cuts.empty() || !weights.empty()))
        even = even.cut_as(cuts_of(array, grid, false));
    if (is_gathered()) return even;
    const Index o = origin();
    Index around = Index::filled(n, 0);
    bool shorter = false;  // than the loops' extent: a block of loops may then read elements and have none itself
    for (int m = 0; m < n; ++m) {
        const int k = static_cast<int>(array.axes[m]);
        around[m] = period(k) > 0;
        shorter = shorter || (array.aligned && array.shape[m] < shape[k]);
        if (array.replicated && !around[m]) continue;
        std::int64_t below = 0, above = 0;
        if (!array.cuts.empty() && !array.replicated) std::tie(below, above) = most_beyond(even, m, blocks(grid), k);
        for (const Access& p : accesses) {
            if (!same[p.array]) continue;
            lo[m] = std::max(lo[m], o[k] - p.offset[k] + below);
            hi[m] = std::max(hi[m], p.offset[k] - o[k] + above);
        }
        for (std::size_t b = 0; b < arrays.size(); ++b) {  // one field has one layout
            const LeastHalo& least = arrays[b].least_halo;
            if (!same[b] || least.lo.n != n || arrays[b].scale.n) continue;
            lo[m] = std::max(lo[m], least.lo[m]);
            hi[m] = std::max(hi[m], least.hi[m]);
            if (least.wraps.n && !array.replicated) around[m] = around[m] || least.wraps[m];
        }
        if (array.replicated) continue;
        if (deep_halo.n) (loops.row[k][k] < 0 ? lo : hi)[m] += deep_halo[k];
        if (before.n) lo[m] += before[k];
    }
    even.halo_lo = lo;
    even.halo_hi = hi;
    even.beside_nothing = (!array.cuts.empty() || shorter) && !array.replicated;
    if (first_nonzero(around) < n) even.wraps = around;
    return even.without_idle_halos();
}

// How each loop index is cut: where weights are given, a coordinate of the grid has those of all its ranks.
std::vector<Cut> SweepProblem::loop_cuts(const Index& grid) const {
    std::vector<Cut> found = cuts;
    for (int k = static_cast<int>(found.size()); k < dims(); ++k) found.push_back(Cut::even(shape[k]));
    if (weights.empty()) return found;
    const Layout ranks(shape, grid);
    std::vector<Weights> along;
    for (const std::int64_t count : grid) along.emplace_back(static_cast<std::size_t>(count), 0);
    for (int rank = 0; rank < ranks.ranks(); ++rank) {
        const Index at = ranks.coords(rank);
        for (int k = 0; k < dims(); ++k) along[k][at[k]] += weights[rank];
    }
    for (int k = 0; k < dims(); ++k) found[k] = found[k].in_proportion(along[k]);
    return found;
}

// How each dimension of an array is cut, or of the field that it is part of.
std::vector<Cut> SweepProblem::cuts_of(const NestArray& array, const Index& grid, bool field) const {
    std::vector<Cut> found;
    const std::vector<Cut> by_loop = loop_cuts(grid);
    for (int m = 0; m < array.axes.n; ++m) {
        const std::int64_t scale = array.scale.n ? array.scale[m] : 1, residue = array.scale.n ? array.residue[m] : 0;
        if (array.cuts.empty() || array.cuts[m].of < 0)
            found.push_back(by_loop[array.axes[m]].times_of(field ? scale : 1));
        else
            found.push_back(field ? array.cuts[m] : array.cuts[m].part(residue, scale));
    }
    return found;
}

// For an array that is not cut as the loops are: the most elements by which a block of points begins before its block
// of elements, and ends after it. Far below 0 where no block does: then no halo is needed.
std::pair<std::int64_t, std::int64_t> SweepProblem::most_beyond(const Layout& elements, int m, const Layout& blocks,
                                                                int k) const {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min() / 4;
    std::pair<std::int64_t, std::int64_t> most{none, none};
    const std::int64_t o = origin()[k];
    for (std::int64_t c = 0; c < blocks.grid[k]; ++c) {
        const auto [first, end] = block_range(blocks, k, c);
        if (first == end) continue;
        const std::int64_t begins = elements.start(m, c), ends = elements.start(m, c + 1);
        if (begins > 0) most.first = std::max(most.first, begins - first - o);
        if (ends < elements.shape[m]) most.second = std::max(most.second, end + o - ends);
    }
    return most;
}

Layout SweepProblem::field_layout(int a, const Index& grid, const Index& deep_halo, const Index& before) const {
    const NestArray& array = arrays[a];
    Layout all = layout(a, grid, deep_halo, before);
    if (array.scale.n == 0) return all;
    for (int b = 0; b < static_cast<int>(arrays.size()); ++b) {
        if (arrays[b].field != array.field) continue;
        const Layout part = layout(b, grid, deep_halo, before);
        for (int m = 0; m < all.dims(); ++m) {
            all.halo_lo[m] = std::max(all.halo_lo[m], part.halo_lo[m]);
            all.halo_hi[m] = std::max(all.halo_hi[m], part.halo_hi[m]);
        }
        all.beside_nothing |= part.beside_nothing;
    }
    for (int m = 0; m < all.dims(); ++m) {
        all.halo_lo[m] *= array.scale[m];
        all.halo_hi[m] *= array.scale[m];
        for (const NestArray& b : arrays) {
            if (b.field != array.field || b.least_halo.lo.n == 0) continue;
            all.halo_lo[m] = std::max(all.halo_lo[m], b.least_halo.lo[m]);
            all.halo_hi[m] = std::max(all.halo_hi[m], b.least_halo.hi[m]);
            if (b.least_halo.wraps.n == 0 || b.least_halo.wraps[m] == 0) continue;
            if (all.wraps.n == 0) all.wraps = Index::filled(all.dims(), 0);
            all.wraps[m] = 1;
        }
    }
    Layout field = Layout(array.field_shape, all.grid, all.halo_lo, all.halo_hi).cut_as(cuts_of(array, grid, true));
    field.beside_nothing = all.beside_nothing;
    field.wraps = all.wraps;
    return field.without_idle_halos();
}

}  // namespace tilewave
