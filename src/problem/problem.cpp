#include "tilewave/engine/problem.hpp"

#include <limits>

#include "core/concat.hpp"
#include "core/signs.hpp"

namespace tilewave {

void SweepProblem::complete() {
    if (loops.n == 0) loops = IndexMatrix::identity(shape.n);
    for (NestArray& a : arrays) {
        if (a.axes.n == 0)
            for (int k = a.time_buffers > 0 ? 1 : 0; k < shape.n; ++k) a.axes.v[a.axes.n++] = k;
        if (a.shape.n == 0)
            for (auto k : a.axes) a.shape.v[a.shape.n++] = shape[static_cast<int>(k)];
    }
}

void SweepProblem::normalize_loops(const std::vector<bool>& downwards) {
    complete();
    for (int k = 0; k < dims(); ++k)
        if (downwards[k]) loops.row[k][k] = -1;
    validate();
    loops = legal_skew(*this);
    window = choose_window(*this);
}

SweepProblem SweepProblem::with_steps(std::int64_t steps) const {
    SweepProblem other = *this;
    const std::int64_t more = steps - space.extent(0);
    other.space.hi[0] += more;
    other.shape[0] += more;
    return other;
}

// What of earlier steps is read is kept apart from the arrays, but for what a run finds and leaves there.
SweepProblem SweepProblem::gathered() const {
    SweepProblem other = *this;
    other.sequential = false;
    other.cuts.clear();
    for (NestArray& a : other.arrays) {
        if (a.history == 0) a.time_buffers = std::min(a.time_buffers, 1);
        a.window = false;
        a.cuts.clear();
    }
    return other;
}

bool SweepProblem::reads_aside(int k) const {
    for (std::size_t q = 0; q < accesses.size(); ++q) {
        const Access& p = accesses[q];
        if (!written(p.array) || lacks(p.array, k)) continue;
        if (p.offset[k] != shift(p.array)[k] || (k == dims() - 1 && q < wholes.size() && wholes[q])) return true;
    }
    return false;
}

bool SweepProblem::written(int a) const {
    return std::ranges::any_of(accesses, [&](const Access& p) { return p.writes && p.array == a; });
}

bool SweepProblem::lacks(int a, int k) const {
    const Index& axes = arrays[a].axes;
    return std::ranges::find(axes, k) == axes.end();
}

bool SweepProblem::has_parts_of_fields() const {
    return std::ranges::any_of(arrays, [](const NestArray& n) { return n.scale.n > 0; });
}

bool SweepProblem::skews_parts_of_fields() const {
    bool skewed = false;
    for (int k = 0; k < dims(); ++k) skewed |= !loops.keeps(k);
    return skewed && has_parts_of_fields();
}

Index SweepProblem::shift(int a) const {
    for (const Access& p : accesses)
        if (p.writes && p.array == a) return p.offset;
    Index none = Index::filled(dims(), 0);
    none[0] = arrays[a].time_buffers > 0;
    return none;
}

int SweepProblem::owner(int k) const {
    int of_all = -1;  // where no array is spread along k, all that is read there lies on every rank
    for (std::size_t q = 0; q < accesses.size(); ++q) {
        if (lacks(accesses[q].array, k)) continue;
        if (!arrays[accesses[q].array].replicated) return static_cast<int>(q);
        if (of_all < 0) of_all = static_cast<int>(q);
    }
    return of_all;
}

Index SweepProblem::origin() const {
    Index o = Index::filled(dims(), 0);
    for (int k = 0; k < dims(); ++k) {
        if (period(k) > 0) continue;  // a periodic loop begins with element 0, whatever is read there
        if (const int q = owner(k); q >= 0) o[k] = accesses[q].offset[k];
    }
    return o;
}

Layout SweepProblem::blocks(const Index& grid) const {
    const Layout even(shape, grid);
    return cuts.empty() && weights.empty() ? even : even.cut_as(loop_cuts(grid));
}

SweepProblem SweepProblem::weighted(const Weights& given, int ranks) const {
    const auto allowed = [](std::int64_t weight) { return weight >= 1 && weight <= most_weight; };
    if (!given.empty() && (std::ssize(given) != ranks || !std::ranges::all_of(given, allowed)))
        throw ConfigError(concat("weights ", to_string(given), " were given for ", ranks, " ranks; allowed: for each ",
                                 "rank an integer from 1 to ", most_weight, ", or none"));
    if (!given.empty() && !cuts.empty())
        throw ConfigError(concat("weights ", to_string(given), " were given for a nest over fields with blocks=, ",
                                 "which say who has which points; allowed: fields without, or no weights"));
    SweepProblem other = *this;
    other.weights = given;
    return other;
}

std::pair<std::int64_t, std::int64_t> SweepProblem::block_range(const Layout& blocks, int k, std::int64_t c) const {
    if (blocks.grid[k] == 1) return {space.lo[k], space.hi[k]};
    const std::int64_t o = origin()[k], lo = std::max(blocks.start(k, c) - o, space.lo[k]);
    return {lo, std::max(lo, std::min(blocks.start(k, c + 1) - o, space.hi[k]))};
}

std::pair<std::int64_t, std::int64_t> SweepProblem::blocks_with_points(const Layout& blocks, int k) const {
    if (blocks.grid[k] == 1) return {0, space.extent(k) > 0 ? 1 : 0};
    const std::int64_t o = origin()[k], lo = std::max<std::int64_t>(space.lo[k] + o, 0),
                       hi = std::min(space.hi[k] + o, shape[k]);
    if (lo >= hi) return {0, 0};
    return {blocks.block_at(k, lo), blocks.block_at(k, hi - 1) + 1};
}

// The space cuts points off the first and the last block that have some; even blocks between them shrink from one to
// the next, and those outside have none.
SweepProblem::BlockExtents SweepProblem::block_extents(const Layout& blocks, int k) const {
    BlockExtents e;
    const auto [first, end] = blocks_with_points(blocks, k);
    if (first == end) return e;
    e.fewest = std::numeric_limits<std::int64_t>::max();
    bool empty = end - first < blocks.grid[k];
    const auto count = [&](std::int64_t c) {
        if (c < first || c >= end) return;
        const auto [lo, hi] = block_range(blocks, k, c);
        empty = empty || lo == hi;
        if (lo < hi) e.fewest = std::min(e.fewest, hi - lo);
        e.most = std::max(e.most, hi - lo);
    };
    if (cuts.empty() && weights.empty())
        for (const std::int64_t c : {first, first + 1, end - 2, end - 1}) count(c);
    else
        for (std::int64_t c = first; c < end; ++c) count(c);
    e.least = empty ? 0 : e.fewest;
    return e;
}

Index SweepProblem::offset(const Access& access) const {
    return loops * (access.offset - shift(access.array));
}

bool SweepProblem::reads_new(const Access& access) const {
    return written(access.array) && lexicographically_positive(-offset(access));
}

std::vector<Index> SweepProblem::dependences() const {
    return dependences_without({});
}

std::vector<Index> SweepProblem::dependences_of_values() const {
    return dependences_without(without(paths_off, FastPath::residues) ? std::vector<bool>{} : never_written);
}

std::vector<Index> SweepProblem::dependences_without(const std::vector<bool>& left_out) const {
    std::vector<Index> result;
    if (sequential) return result;
    const Index zero = Index::filled(dims(), 0);
    if (is_gathered()) {
        result.push_back(zero);
        result[0][gathers] = 1;
        return result;
    }
    auto add = [&](const Index& x) {
        Index d = loops * x;
        if (d == zero) return;
        if (!lexicographically_positive(d)) d = -d;
        if (std::ranges::find(result, d) == result.end()) result.push_back(d);
    };
    for (const Access& w : accesses) {
        if (!w.writes) continue;
        const int time_buffers = arrays[w.array].time_buffers;
        for (int k = time_buffers > 0 ? 1 : 0; k < dims(); ++k) {
            if (!lacks(w.array, k)) continue;
            Index same_element = zero;
            same_element[k] = 1;
            add(same_element);
        }
        if (w.keeps && time_buffers > 1) {
            Index carried = zero;  // from the previous time, which is in another buffer
            carried[0] = 1;
            add(carried);
        }
        for (std::size_t i = 0; i < accesses.size(); ++i) {
            const Access& q = accesses[i];
            // In a time buffer of several, what no point writes is not there before its point.
            if (q.array != w.array || (i < left_out.size() && left_out[i] && time_buffers < 2)) continue;
            add(w.offset - q.offset);
            if (time_buffers == 0) continue;
            Index reuse = q.offset - w.offset;
            reuse[0] += time_buffers;
            add(reuse);
        }
    }
    return result;
}

bool SweepProblem::swaps(int a, int k) const {
    const Index& axes = arrays[a].axes;
    return std::any_of(std::ranges::find(axes, k), axes.end(), [&](auto l) { return l < k; });
}

bool SweepProblem::may_cut(int k) const {
    if (sequential || !loops.keeps(k)) return false;
    if (!pivots.empty()) return k == 1;
    if (is_gathered() && k == gathers) return false;
    // Each point is some rank's.
    const std::int64_t o = origin()[k];
    if (period(k) == 0 && space.extent(k) > 0 && (space.lo[k] + o < 0 || space.hi[k] + o > shape[k])) return false;
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
        if (arrays[a].replicated) continue;
        if (lacks(a, k) || (swaps(a, k) && !is_gathered())) return false;
        for (int m = 0; m < arrays[a].axes.n; ++m)
            if (arrays[a].axes[m] == k && arrays[a].shape[m] != shape[k] && !arrays[a].aligned) return false;
        if (is_gathered() && written(a) && shift(a)[k] != 0) return false;
        Index first;  // several places of one array are written: none may be another rank's
        bool several = false;
        for (const Access& p : accesses) {
            if (!p.writes || p.array != a) continue;
            several = several || (first.n && p.offset != first);
            if (first.n == 0) first = p.offset;
        }
        if (several &&
            std::ranges::any_of(accesses, [&](const Access& p) { return p.array == a && p.offset[k] != first[k]; }))
            return false;
    }
    return true;
}

bool SweepProblem::in_window(int a) const {
    const NestArray& n = arrays[a];
    if (!n.window || n.replicated || n.time_buffers > 0 || sequential || n.scale.n) return false;
    int writes = 0;
    for (const Access& p : accesses) {
        if (p.array != a) continue;
        writes += p.writes;
        // A value from before the run is asked for at points that are computed, or ahead of them.
        if (p.writes ? p.keeps : !reads_new(p)) return false;
    }
    for (int k = 0; k < dims(); ++k)
        if (lacks(a, k)) return false;
    return writes == 1;
}

int SweepProblem::window_planes(int a) const {
    std::int64_t most = 1;
    for (const Access& p : accesses) {
        const Index o = offset(p);
        if (p.array == a) most = std::max(most, 1 - o[window.across] - window.slant * o[window.along]);
    }
    return static_cast<int>(most);
}

bool SweepProblem::reads_history_of_neighbours() const {
    for (std::size_t q = 0; q < accesses.size(); ++q) {
        const Access& p = accesses[q];
        if (arrays[p.array].time_buffers == 0 || p.offset[0] >= 0) continue;
        const bool others = !written(p.array) || (q < wholes.size() && wholes[q]);
        if (others || std::any_of(p.offset.begin() + 1, p.offset.end(), [](auto x) { return x != 0; })) return true;
    }
    return false;
}

std::vector<bool> SweepProblem::unit_dims() const {
    std::vector<bool> unit(dims(), false);
    for (const Index& d : dependences())
        if (std::ranges::any_of(d, [](auto x) { return x < 0; })) unit[first_nonzero(d)] = true;
    // An element that is not written in a time step keeps its previous value: buffers are filled in order of time.
    for (const Access& p : accesses)
        if (p.keeps && arrays[p.array].time_buffers > 1) unit[0] = true;
    return unit;
}

Box SweepProblem::box_of(int a, const Box& elements) const {
    Box box{Index::filled(dims(), 0), Index::filled(dims(), 1)};
    const Index first = shift(a);
    for (int m = 0; m < elements.dims(); ++m) {
        const int k = static_cast<int>(arrays[a].axes[m]);
        box.lo[k] = elements.lo[m] - first[k];
        box.hi[k] = std::max(elements.hi[m] - first[k], box.lo[k]);
    }
    if (arrays[a].time_buffers > 0) {
        box.lo[0] = space.lo[0] - arrays[a].given_time_buffers();
        box.hi[0] = box.lo[0] + arrays[a].time_buffers;
    }
    return image(loops, box);
}

std::vector<Bound> SweepProblem::conditions() const {
    std::vector<Bound> result;
    const IndexMatrix back = inverse(loops);
    for (int k = 0; k < dims(); ++k) {
        if (back.keeps(k)) continue;  // the box of z coordinates bounds it
        result.push_back({back.row[k], -space.lo[k]});
        result.push_back({-back.row[k], space.hi[k] - 1});
    }
    for (const Bound& b : bounds) result.push_back({b.coefficients * back, b.constant});
    return result;
}

}  // namespace tilewave
