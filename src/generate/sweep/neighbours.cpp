// Which ranks can matter to a rank: by arithmetic on the process grid, so that nothing asks all ranks.
//
// Cut dimensions alone decide. There, z_k is one loop index, every distributed array is cut as the loops are, and a
// rank's points are those of its block of the array, minus the origin, within the space.
#include <algorithm>
#include <limits>

#include "core/signs.hpp"
#include "generate/sweep/geometry.hpp"

namespace tilewave {

// The coordinates of a box of z along cut dimensions, as the first written array counts them.
Box SweepGeometry::in_array_coordinates(const Box& region) const {
    Box box = region;
    const Index origin = problem_.origin();
    for (int k = 0; k < box.dims(); ++k) {
        if (plan_.grid[k] == 1) continue;
        if (problem_.loops.row[k][k] < 0) {
            box.lo[k] = 1 - region.hi[k];
            box.hi[k] = 1 - region.lo[k];
        }
        box.lo[k] += origin[k];
        box.hi[k] += origin[k];
    }
    return box;
}

// Grid coordinates of the blocks that have points of a box, which is in array coordinates along cut dimensions.
Box SweepGeometry::coords_meeting(const Box& points) const {
    Box coords{Index::filled(points.dims(), 0), Index::filled(points.dims(), 1)};
    for (int k = 0; k < points.dims(); ++k) {
        if (plan_.grid[k] == 1) continue;
        const std::int64_t extent = problem_.shape[k];
        if (extent == 0 || points.hi[k] <= std::max<std::int64_t>(points.lo[k], 0)) return {coords.lo, coords.lo};
        // What aligned arrays have beyond the loops' extent is in the last block.
        const std::int64_t lo = std::clamp<std::int64_t>(points.lo[k], 0, extent - 1),
                           hi = std::clamp<std::int64_t>(points.hi[k], lo + 1, extent);
        coords.lo[k] = blocks_.block_at(k, lo);
        coords.hi[k] = blocks_.block_at(k, hi - 1) + 1;
    }
    return coords;
}

// Of arrays that are not cut as the loops are, ranks own other elements than those at the points that they compute.
// Adds the ranks that own what `rank` reads and writes, and those that read and write what it owns.
void SweepGeometry::add_owners(int rank, std::vector<int>& result) const {
    const Index at = blocks_.coords(rank), deep = deep_halo_.most(at.n);
    for (const Access& p : problem_.accesses) {
        const NestArray& n = problem_.arrays[p.array];
        if (n.replicated || n.cuts.empty()) continue;
        const Layout& elements = layout(p.array);
        Box owners{Index::filled(at.n, 0), Index::filled(at.n, 1)}, users = owners;
        for (int m = 0; m < n.axes.n; ++m) {
            const int k = static_cast<int>(n.axes[m]);
            if (plan_.grid[k] == 1) continue;
            const auto [first, end] = problem_.block_range(blocks_, k, at[k]);
            const std::int64_t lo = std::max<std::int64_t>(first + p.offset[k] - deep[k], 0),
                               hi = std::min(end + p.offset[k] + deep[k], elements.shape[m]);
            owners.lo[k] = first < end && lo < hi ? elements.block_at(m, lo) : 0;
            owners.hi[k] = first < end && lo < hi ? elements.block_at(m, hi - 1) + 1 : 0;
            const std::int64_t from = std::max(elements.start(m, at[k]) - p.offset[k] - deep[k], problem_.space.lo[k]),
                               to =
                                   std::min(elements.start(m, at[k] + 1) - p.offset[k] + deep[k], problem_.space.hi[k]);
            const bool used = elements.start(m, at[k]) < elements.start(m, at[k] + 1) && from < to;
            const std::int64_t o = problem_.origin()[k];
            users.lo[k] = used ? blocks_.block_at(k, from + o) : 0;
            users.hi[k] = used ? blocks_.block_at(k, to - 1 + o) + 1 : 0;
        }
        for (const Box& coords : {owners, users})
            for (const int other : blocks_.ranks_at(coords)) result.push_back(other);
    }
}

std::vector<int> SweepGeometry::neighbours(int rank) const {
    std::vector<int> result;
    if (rank >= blocks_.ranks()) return result;
    add_readers(rank, result);
    if (!problem_.cuts.empty()) add_owners(rank, result);
    std::ranges::sort(result);
    result.erase(std::unique(result.begin(), result.end()), result.end());
    std::erase(result, rank);
    return result;
}

// The ranks whose points are no further away from those of `rank` than an access reaches.
void SweepGeometry::add_readers(int rank, std::vector<int>& result) const {
    const Index at = blocks_.coords(rank), origin = problem_.origin(), deep = deep_halo_.most(at.n);
    Box block = blocks_.whole();
    Index slack = Index::filled(at.n, 0);  // by which points and elements may lie outside the blocks of the grid
    for (int k = 0; k < at.n; ++k) {
        if (plan_.grid[k] == 1) continue;
        block.lo[k] = blocks_.start(k, at[k]);
        block.hi[k] = blocks_.start(k, at[k] + 1);
        if (block.lo[k] == block.hi[k]) return;
        for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a)
            if (const NestArray& n = problem_.arrays[a]; !n.replicated) {
                slack[k] = std::max(slack[k], std::abs(problem_.shift(a)[k] - origin[k]));
                for (int m = 0; m < n.axes.n && block.hi[k] >= problem_.shape[k]; ++m)
                    if (n.axes[m] == k) block.hi[k] = std::max(block.hi[k], n.shape[m]);
            }
        slack[k] += deep[k];
    }
    // A rank reads at each offset, and is read from at its opposite.
    std::vector<Box> seen;
    const auto add = [&](const Index& offset) {
        Box points = block;
        for (int k = 0; k < at.n; ++k) {
            if (plan_.grid[k] == 1) continue;
            const std::int64_t by = offset[k] * problem_.loops.row[k][k];  // 1 or -1: the loop runs downwards
            points.lo[k] += by - slack[k];
            points.hi[k] += by + slack[k];
        }
        const Box coords = coords_meeting(points);
        if (std::ranges::find(seen, coords) != seen.end()) return;
        seen.push_back(coords);
        for (const int other : blocks_.ranks_at(coords)) result.push_back(other);
    };
    const auto both = [&](const Index& offset) {
        add(offset);
        add(-offset);
    };
    for (const Index& offset : offsets_) both(offset);
    for (const Read& read : reads_) both(read.offset);
}

// Times do not fall with any coordinate of a tile, and coordinates do not fall from block to block: the corners of the
// grid have the first and the last time.
std::pair<std::int64_t, std::int64_t> SweepGeometry::first_and_last_time() const {
    std::pair<std::int64_t, std::int64_t> times{std::numeric_limits<std::int64_t>::max(),
                                                std::numeric_limits<std::int64_t>::min()};
    const int n = problem_.dims();
    for (int corner = 0; corner < 1 << n; ++corner) {
        Box coords{Index::filled(n, 0), Index::filled(n, 1)};
        bool points = true;
        for (int k = 0; k < n; ++k) {
            const auto [first, end] = problem_.blocks_with_points(blocks_, k);
            points = points && first < end;
            coords.lo[k] = corner >> k & 1 ? end - 1 : first;
            coords.hi[k] = coords.lo[k] + 1;
        }
        if (!points) return times;
        const int rank = blocks_.ranks_at(coords).front();
        const Index at = place(rank), tile = first_tile(rank), count = tile_count(rank);
        Index first = at, last = at;
        for (int k = 0; k < n; ++k) {
            first[k] = at[k] * slots_[k] + tile[k];
            last[k] = first[k] + count[k] - 1;
        }
        times.first = std::min(times.first, time_of(first));
        times.second = std::max(times.second, time_of(last));
    }
    return times;
}

}  // namespace tilewave
