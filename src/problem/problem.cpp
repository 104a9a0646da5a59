#include "tilewave/engine/problem.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

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

void SweepProblem::settle(const std::vector<bool>& downwards) {
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

bool SweepProblem::written(int a) const {
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& p) { return p.writes && p.array == a; });
}

bool SweepProblem::lacks(int a, int k) const {
    const Index& axes = arrays[a].axes;
    return std::find(axes.begin(), axes.end(), k) == axes.end();
}

bool SweepProblem::has_parts_of_fields() const {
    return std::any_of(arrays.begin(), arrays.end(), [](const NestArray& n) { return n.scale.n > 0; });
}

Index SweepProblem::shift(int a) const {
    for (const Access& p : accesses)
        if (p.writes && p.array == a) return p.offset;
    return Index::filled(dims(), 0);
}

Index SweepProblem::origin() const {
    Index o = Index::filled(dims(), 0);
    if (accesses.empty()) return o;
    const int a = accesses[0].array;
    for (int k = 0; k < dims(); ++k)
        if (!lacks(a, k)) o[k] = accesses[0].offset[k];
    return o;
}

Layout SweepProblem::blocks(const Index& grid) const {
    const Layout even(shape, grid);
    return cuts.empty() ? even : even.cut_as(cuts);
}

void SweepProblem::follow(int a, const Index& offset) {
    const NestArray& array = arrays[a];
    const std::vector<Cut> own = cuts_of(array, false);
    const Index o = origin();
    std::vector<Cut> found;
    for (int k = 0; k < dims(); ++k) found.push_back(Cut::even(shape[k]));
    for (int m = 0; m < array.axes.n; ++m) {
        const int k = static_cast<int>(array.axes[m]);
        found[k] = own[m].moved_by(o[k] - offset[k]);
    }
    cuts = std::move(found);
}

std::pair<std::int64_t, std::int64_t> SweepProblem::block_range(int k, std::int64_t blocks, std::int64_t c) const {
    if (blocks == 1) return {space.lo[k], space.hi[k]};
    const std::int64_t o = origin()[k];
    const Cut own = cut(k);
    const std::int64_t lo = std::max(own.start(blocks, c, shape[k]) - o, space.lo[k]);
    return {lo, std::max(lo, std::min(own.start(blocks, c + 1, shape[k]) - o, space.hi[k]))};
}

std::pair<std::int64_t, std::int64_t> SweepProblem::blocks_with_points(int k, std::int64_t blocks) const {
    if (blocks == 1) return {0, space.extent(k) > 0 ? 1 : 0};
    const std::int64_t o = origin()[k], lo = std::max<std::int64_t>(space.lo[k] + o, 0),
                       hi = std::min(space.hi[k] + o, shape[k]);
    if (lo >= hi) return {0, 0};
    const Cut own = cut(k);
    return {own.block_at(blocks, lo), own.block_at(blocks, hi - 1) + 1};
}

// The space cuts points off the first and the last block that have some; even blocks between them shrink from one to
// the next, and those outside have none.
SweepProblem::BlockExtents SweepProblem::block_extents(int k, std::int64_t blocks) const {
    BlockExtents e;
    const auto [first, end] = blocks_with_points(k, blocks);
    if (first == end) return e;
    e.fewest = std::numeric_limits<std::int64_t>::max();
    bool empty = end - first < blocks;
    const auto count = [&](std::int64_t c) {
        if (c < first || c >= end) return;
        const auto [lo, hi] = block_range(k, blocks, c);
        empty = empty || lo == hi;
        if (lo < hi) e.fewest = std::min(e.fewest, hi - lo);
        e.most = std::max(e.most, hi - lo);
    };
    if (cuts.empty())
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
    return written(access.array) && lexicographically_positive(Index::filled(dims(), 0) - offset(access));
}

std::vector<Index> SweepProblem::dependences() const {
    std::vector<Index> result;
    if (sequential) return result;
    const Index zero = Index::filled(dims(), 0);
    auto add = [&](const Index& x) {
        Index d = loops * x;
        if (d == zero) return;
        if (!lexicographically_positive(d)) d = zero - d;
        if (std::find(result.begin(), result.end(), d) == result.end()) result.push_back(d);
    };
    for (const Access& w : accesses) {
        if (!w.writes) continue;
        const int time_buffers = arrays[w.array].time_buffers;
        for (int k = time_buffers > 0 ? 1 : 0; k < dims(); ++k) {
            if (!lacks(w.array, k)) continue;
            Index same = zero;  // the same element again
            same[k] = 1;
            add(same);
        }
        if (w.keeps && time_buffers > 1) {
            Index carried = zero;  // from the previous time, which is in another buffer
            carried[0] = 1;
            add(carried);
        }
        for (const Access& q : accesses) {
            if (q.array != w.array) continue;
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
    const auto own = std::find(axes.begin(), axes.end(), k);
    return std::any_of(own, axes.end(), [&](auto l) { return l < k; });
}

bool SweepProblem::may_cut(int k) const {
    if (sequential || !loops.keeps(k)) return false;
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
        if (arrays[a].replicated) continue;
        if (lacks(a, k) || swaps(a, k)) return false;
        for (int m = 0; m < arrays[a].axes.n; ++m)
            if (arrays[a].axes[m] == k && arrays[a].shape[m] != shape[k] && !arrays[a].aligned) return false;
        Index first;  // several places of one array are written: none may be another rank's
        bool several = false;
        for (const Access& p : accesses) {
            if (!p.writes || p.array != a) continue;
            several = several || (first.n && p.offset != first);
            if (first.n == 0) first = p.offset;
        }
        if (several && std::any_of(accesses.begin(), accesses.end(),
                                   [&](const Access& p) { return p.array == a && p.offset[k] != first[k]; }))
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

bool SweepProblem::reads_history_beside() const {
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& p) {
        return arrays[p.array].time_buffers > 0 && p.offset[0] < 0 &&
               std::any_of(p.offset.begin() + 1, p.offset.end(), [](auto x) { return x != 0; });
    });
}

std::vector<bool> SweepProblem::unit_dims() const {
    std::vector<bool> unit(dims(), false);
    for (const Index& d : dependences())
        if (std::any_of(d.begin(), d.end(), [](auto x) { return x < 0; }))
            unit[std::find_if(d.begin(), d.end(), [](auto x) { return x != 0; }) - d.begin()] = true;
    // An element that is not written in a time step keeps its previous value: buffers are filled in order of time.
    for (const Access& p : accesses)
        if (p.keeps && arrays[p.array].time_buffers > 1) unit[0] = true;
    return unit;
}

SweepProblem SweepProblem::skewed(int k, int l) const {
    auto spread = [&](int d) {
        for (int a = 0; a < static_cast<int>(arrays.size()); ++a)
            if (!arrays[a].replicated && lacks(a, d)) return false;
        return loops.keeps(d);
    };
    if (k < 0 || k >= l || l >= dims() || sequential || window.along >= 0 || !spread(k) || !spread(l) ||
        has_parts_of_fields())
        throw ConfigError("skew (" + std::to_string(k) + ", " + std::to_string(l) +
                          ") was given; allowed are two loops, the outer one first, of " + std::to_string(dims()) +
                          " that all fields have, in a nest with dependence vectors whose fields are kept whole");
    SweepProblem p = *this;
    for (int c = 0; c < dims(); ++c) p.loops.row[l][c] += loops.row[k][c];
    return p;
}

// Arrays that could be given in each other's place, as A and B in turn: they get the same halos, so that nothing has
// to move then.
bool SweepProblem::alike(int a, int b) const {
    const NestArray &x = arrays[a], &y = arrays[b];
    return x.shape == y.shape && x.axes == y.axes && x.item_bytes == y.item_bytes && x.time_buffers == y.time_buffers &&
           x.replicated == y.replicated && in_window(a) == in_window(b) && x.scale == y.scale && x.field == y.field &&
           x.cuts == y.cuts && (x.cuts.empty() || x.residue == y.residue);
}

Layout SweepProblem::layout(int a, const Index& grid, const Index& deep_halo, const Index& before) const {
    const NestArray& array = arrays[a];
    std::vector<char> same(arrays.size());
    for (std::size_t b = 0; b < arrays.size(); ++b) same[b] = alike(a, static_cast<int>(b));
    Index own = Index::filled(array.shape.n, 1), lo = Index::filled(own.n, 0), hi = lo;
    if (array.replicated && !wraps()) return Layout(array.shape, own);
    Layout even(array.shape, own);
    if (!array.replicated) {
        for (int m = 0; m < own.n; ++m) own[m] = grid[static_cast<int>(array.axes[m])];
        even = Layout(array.shape, own);
        if (array.aligned || !array.cuts.empty()) even = even.cut_as(cuts_of(array, false));
    }
    const Index o = origin();
    Index around = Index::filled(own.n, 1);
    bool shorter = false;  // than the loops' extent: a block of loops may read elements and own none
    for (int m = 0; m < own.n; ++m) {
        const int k = static_cast<int>(array.axes[m]);
        around[m] = period(k) > 0;
        shorter = shorter || (array.aligned && array.shape[m] < shape[k]);
        if (array.replicated && !around[m]) continue;
        std::int64_t below = 0, above = 0;
        if (!array.cuts.empty() && !array.replicated) std::tie(below, above) = most_beyond(even, m, k, grid[k]);
        for (const Access& p : accesses) {
            if (!same[p.array]) continue;
            lo[m] = std::max(lo[m], o[k] - p.offset[k] + below);
            hi[m] = std::max(hi[m], p.offset[k] - o[k] + above);
        }
        for (std::size_t b = 0; b < arrays.size(); ++b) {  // one field has one layout
            if (!same[b] || arrays[b].least_halo_lo.n != own.n || arrays[b].scale.n) continue;
            lo[m] = std::max(lo[m], arrays[b].least_halo_lo[m]);
            hi[m] = std::max(hi[m], arrays[b].least_halo_hi[m]);
        }
        if (array.replicated) continue;
        if (deep_halo.n) (loops.row[k][k] < 0 ? lo : hi)[m] += deep_halo[k];
        if (before.n) lo[m] += before[k];
    }
    even.halo_lo = lo;
    even.halo_hi = hi;
    even.beside_nothing = (!array.cuts.empty() || shorter) && !array.replicated;
    if (wraps()) even.wraps = around;
    return even;
}

// How each dimension of an array is cut, or of the field that it is part of.
std::vector<Cut> SweepProblem::cuts_of(const NestArray& array, bool field) const {
    std::vector<Cut> found;
    for (int m = 0; m < array.axes.n; ++m) {
        const std::int64_t scale = array.scale.n ? array.scale[m] : 1, residue = array.scale.n ? array.residue[m] : 0;
        const bool own = !array.cuts.empty() && array.cuts[m].of >= 0;
        const Cut cut_here = own ? array.cuts[m] : cut(static_cast<int>(array.axes[m]));
        found.push_back(own ? (field ? cut_here : cut_here.part(residue, scale))
                            : cut_here.times_of(field ? scale : 1));
    }
    return found;
}

// By how many elements blocks of points begin below those of an array that has cuts of its own, and end above them, at
// most. Far below 0 where no block does: then no halo is needed at all.
std::pair<std::int64_t, std::int64_t> SweepProblem::most_beyond(const Layout& own, int m, int k,
                                                                std::int64_t blocks) const {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min() / 4;
    std::pair<std::int64_t, std::int64_t> most{none, none};
    const std::int64_t o = origin()[k];
    for (std::int64_t c = 0; c < blocks; ++c) {
        const auto [first, end] = block_range(k, blocks, c);
        if (first == end) continue;
        const std::int64_t begins = own.start(m, c), ends = own.start(m, c + 1);
        if (begins > 0) most.first = std::max(most.first, begins - first - o);
        if (ends < own.shape[m]) most.second = std::max(most.second, end + o - ends);
    }
    return most;
}

Layout SweepProblem::field_layout(int a, const Index& grid, const Index& deep_halo) const {
    const NestArray& array = arrays[a];
    Layout all = layout(a, grid, deep_halo);
    if (array.scale.n == 0) return all;
    for (int b = 0; b < static_cast<int>(arrays.size()); ++b) {
        if (arrays[b].field != array.field) continue;
        const Layout part = layout(b, grid, deep_halo);
        for (int m = 0; m < all.dims(); ++m) {
            all.halo_lo[m] = std::max(all.halo_lo[m], part.halo_lo[m]);
            all.halo_hi[m] = std::max(all.halo_hi[m], part.halo_hi[m]);
        }
    }
    for (int m = 0; m < all.dims(); ++m) {
        all.halo_lo[m] *= array.scale[m];
        all.halo_hi[m] *= array.scale[m];
        for (const NestArray& b : arrays) {
            if (b.field != array.field || b.least_halo_lo.n == 0) continue;
            all.halo_lo[m] = std::max(all.halo_lo[m], b.least_halo_lo[m]);
            all.halo_hi[m] = std::max(all.halo_hi[m], b.least_halo_hi[m]);
        }
    }
    Layout field = Layout(array.field_shape, all.grid, all.halo_lo, all.halo_hi).cut_as(cuts_of(array, true));
    field.beside_nothing = all.beside_nothing;
    return field;
}

Box SweepProblem::box_of(int a, const Box& own) const {
    Box box{Index::filled(dims(), 0), Index::filled(dims(), 1)};
    const Index first = shift(a);
    for (int m = 0; m < own.dims(); ++m) {
        const int k = static_cast<int>(arrays[a].axes[m]);
        box.lo[k] = own.lo[m] - first[k];
        box.hi[k] = std::max(own.hi[m] - first[k], box.lo[k]);
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
        const Index zero = Index::filled(dims(), 0);
        result.push_back({back.row[k], -space.lo[k]});
        result.push_back({zero - back.row[k], space.hi[k] - 1});
    }
    for (const Bound& b : bounds) result.push_back({b.coefficients * back, b.constant});
    return result;
}

namespace {

void check_periodic(const SweepProblem& problem) {
    if (problem.periodic.n == 0) return;
    if (problem.periodic.n != problem.dims())
        throw ConfigError("periodic " + to_string(problem.periodic) + " was given; allowed: an entry for each of " +
                          std::to_string(problem.dims()) + " loop indices");
    for (int k = 0; k < problem.dims(); ++k) {
        const std::int64_t n = problem.period(k);
        if (n == 0) continue;
        for (const NestArray& a : problem.arrays)
            for (int m = 0; m < a.axes.n; ++m)
                if (a.axes[m] == k && a.shape[m] != n)
                    throw ConfigError("loop " + std::to_string(k) + " is periodic, and arrays have extents " +
                                      std::to_string(n) + " and " + std::to_string(a.shape[m]) +
                                      " along it; allowed are equal ones");
        if (k == 0 && std::any_of(problem.arrays.begin(), problem.arrays.end(),
                                  [](const NestArray& a) { return a.time_buffers > 0; }))
            throw ConfigError("loop 0 is periodic; it is time, which is not");
        if (problem.space.lo[k] < 0 || problem.space.hi[k] > n)
            throw ConfigError("the space " + to_string(problem.space) + " leaves the period " + std::to_string(n) +
                              " of loop " + std::to_string(k));
    }
}

void check_time(const SweepProblem& problem, const Access& p) {
    const int time_buffers = problem.arrays[p.array].time_buffers;
    Index next = Index::filled(problem.dims(), 0);
    next[0] = 1;
    if (p.writes && p.offset != next)
        throw ConfigError("an array with time buffers is written at offset " + to_string(p.offset) + "; allowed is " +
                          to_string(next));
    const Index d = next - p.offset;  // from the writer of what is read to the reader
    if (p.offset[0] > 1 || (d != Index::filled(d.n, 0) && !lexicographically_positive(problem.loops * d)))
        throw ConfigError(
            "an array with time buffers is read at offset " + to_string(p.offset) +
            ", a value that the loops have not computed yet; allowed are earlier time steps, and points of this one "
            "that come earlier in the loops");
    Index reuse = p.offset - next;
    reuse[0] += time_buffers;
    const Index zero = Index::filled(d.n, 0);
    if (!p.writes && problem.loops * reuse != zero && !lexicographically_positive(problem.loops * reuse))
        throw ConfigError("the read at offset " + to_string(p.offset) + " of an array that keeps " +
                          std::to_string(time_buffers) +
                          " time buffer(s) comes after its value is overwritten; more time buffers are needed");
}

void check_access(const SweepProblem& problem, const Access& p) {
    const int n = problem.dims();
    if (p.array < 0 || p.array >= static_cast<int>(problem.arrays.size()) || p.offset.n != n)
        throw ConfigError("an access names array " + std::to_string(p.array) + " at offset " + to_string(p.offset) +
                          "; there are " + std::to_string(problem.arrays.size()) + " arrays and " + std::to_string(n) +
                          " loops");
    const NestArray& array = problem.arrays[p.array];
    if (array.replicated) {
        if (p.writes)
            throw ConfigError("array " + std::to_string(p.array) +
                              " is written and replicated; a written array is spread over the ranks");
        return;
    }
    if (array.time_buffers > 0) check_time(problem, p);
    for (int k = 0; k < n; ++k)
        if (problem.lacks(p.array, k) && p.offset[k] != 0 && (array.time_buffers == 0 || k > 0))
            throw ConfigError("an access names offset " + to_string(p.offset) + " along loop " + std::to_string(k) +
                              ", which its array lacks");
    for (int m = 0; m < array.axes.n && !problem.space.empty(); ++m) {
        const int k = static_cast<int>(array.axes[m]);
        if (problem.period(k) > 0) continue;
        if (problem.space.lo[k] + p.offset[k] < 0 || problem.space.hi[k] + p.offset[k] > array.shape[m])
            throw ConfigError("the access at offset " + to_string(p.offset) + " leaves the array of shape " +
                              to_string(array.shape) + " for points of " + to_string(problem.space));
    }
}

}  // namespace

void SweepProblem::validate() const {
    if (shape.n < 1) throw ConfigError("a nest needs 1 to 4 dimensions, not 0");
    if (space.dims() != shape.n)
        throw ConfigError("the space " + to_string(space) + " must have the dimensions of the shape " +
                          to_string(shape));
    if (arrays.empty() || accesses.empty()) throw ConfigError("a nest needs an array, which its points write or read");
    if (accesses.size() > max_places)
        throw ConfigError("the nest reads and writes " + std::to_string(accesses.size()) + " places; at most " +
                          std::to_string(max_places) + " are allowed");
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        if (i && accesses[i].writes && !accesses[i - 1].writes)
            throw ConfigError("a nest lists the places it writes before those it only reads");
        check_access(*this, accesses[i]);
    }
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a)
        for (int k = 1; k < dims() && arrays[a].time_buffers > 0; ++k)
            if (lacks(a, k))
                throw ConfigError("array " + std::to_string(a) + " has time buffers and lacks loop index " +
                                  std::to_string(k) + "; allowed are all loop indices but time");
    check_periodic(*this);
    if (sequential) return;
    for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
        if (!written(a)) continue;
        int missing = 0;
        for (int k = arrays[a].time_buffers > 0 ? 1 : 0; k < dims(); ++k) missing += lacks(a, k);
        if (missing == 0) continue;
        for (const Access& p : accesses)
            if (p.array == a && (missing > 1 || p.offset != shift(a)))
                throw ConfigError("array " + std::to_string(a) + " lacks " + std::to_string(missing) +
                                  " loop indices and is accessed at offsets " + to_string(shift(a)) + " and " +
                                  to_string(p.offset) +
                                  "; such a nest has no dependence vectors and runs in loop order only");
    }
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
            const int first =
                static_cast<int>(std::find_if(d.begin(), d.end(), [](auto x) { return x != 0; }) - d.begin());
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

bool in_row(const Index& d, int along) {
    for (int k = 0; k < d.n; ++k)
        if (k != along && d[k] != 0) return false;
    return true;
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
    for (const Index& d : deps) free = free && std::all_of(d.begin(), d.end(), [](auto x) { return x >= 0; });
    if (!any || !free || without(problem.paths_off, FastPath::windows)) return {};
    const Box box = image(problem.loops, problem.space);
    for (const bool cut : {true, false})
        for (const int slant : {0, 1}) {
            WindowShape best;
            for (int along = n - 1; along >= 0; --along) {
                const bool chain =
                    std::any_of(deps.begin(), deps.end(), [&](const Index& d) { return in_row(d, along); });
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
