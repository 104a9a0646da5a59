#include "sweep_geometry.hpp"

#include <algorithm>
#include <limits>

namespace tilewave {

namespace {

// Every face between two ranks has a tag of its own: lanes post in no certain order.
constexpr std::size_t first_face_tag = 8192;

std::vector<std::int64_t> to_vector(const Index& i) { return {i.begin(), i.end()}; }

// Most bytes of a message from before the sweep.
constexpr std::int64_t rim_chunk_bytes = std::int64_t{1} << 26;

int face_tag(std::size_t number) {
    if (number > static_cast<std::size_t>(std::numeric_limits<int>::max()) - first_face_tag)
        throw ConfigError("the plan makes more than 2^31 messages between two ranks; take larger tiles");
    return static_cast<int>(first_face_tag + number);
}

Index shape_in_tiles(const Box& block, const Index& tile) {
    Index n = block.lo;
    for (int k = 0; k < n.n; ++k) n[k] = block.empty() ? 0 : ceil_div(block.extent(k), tile[k]);
    return n;
}

}  // namespace

SweepGeometry::SweepGeometry(const SweepProblem& problem, const Plan& plan)
    : problem_(problem),
      plan_(plan),
      dependences_(problem.dependences()),
      grouping_(plan.grouping, plan.mapping_dim, to_vector(plan.factors)),
      times_(LinearSchedule::for_groups(plan.schedule, grouping_)),
      slots_(Index::filled(problem.shape.n, 1)) {
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a) layouts_.push_back(problem.layout(a, plan.grid));
    // Ranks with fewer tiles than others leave slots empty: the group transform needs equal strides.
    for (int k = 0; k < slots_.n; ++k) {
        for (std::int64_t c = 0; c < plan.grid[k]; ++c) {
            const auto lo = std::max(block_start(problem.shape[k], plan.grid[k], c), problem.space.lo[k]);
            const auto hi = std::min(block_start(problem.shape[k], plan.grid[k], c + 1), problem.space.hi[k]);
            if (hi > lo) slots_[k] = std::max(slots_[k], ceil_div(hi - lo, plan.tile[k]));
        }
        slots_[k] = ceil_div(slots_[k], plan.factors[k]) * plan.factors[k];
    }
}

Box SweepGeometry::block(int rank) const { return intersect(layouts_[0].owned(rank), problem_.space); }

std::int64_t SweepGeometry::time_of(const Index& coord) const {
    return times_.time(grouping_.group_of(coord.span()));
}

std::vector<PlacedTile> SweepGeometry::tiles(int rank) const {
    const Box mine = block(rank);
    const Index count = shape_in_tiles(mine, plan_.tile), at = layouts_[0].coords(rank);
    std::vector<PlacedTile> result;
    const Box all{Index::filled(count.n, 0), count};
    result.reserve(static_cast<std::size_t>(all.points()));
    for (std::int64_t q = 0; q < all.points(); ++q) {
        PlacedTile t;
        t.local = t.coord = count;
        std::int64_t rest = q;
        for (int k = count.n - 1; k >= 0; --k) {
            t.local[k] = rest % count[k];
            rest /= count[k];
            t.coord[k] = at[k] * slots_[k] + t.local[k];
        }
        t.box = mine;
        for (int k = 0; k < count.n; ++k) {
            t.box.lo[k] = mine.lo[k] + t.local[k] * plan_.tile[k];
            t.box.hi[k] = std::min(t.box.lo[k] + plan_.tile[k], mine.hi[k]);
        }
        t.time = time_of(t.coord);
        t.lane = static_cast<int>(grouping_.cpu_of(t.coord.span()));
        result.push_back(t);
    }
    std::stable_sort(result.begin(), result.end(), [](const PlacedTile& a, const PlacedTile& b) {
        return a.time < b.time;  // equal times stay in lexicographic order of coord
    });
    return result;
}

Box SweepGeometry::tiles_meeting(int rank, const Box& region) const {
    const Box mine = block(rank), common = intersect(region, mine);
    Box r = common;
    if (common.empty()) return {Index::filled(r.dims(), 0), Index::filled(r.dims(), 0)};
    for (int k = 0; k < r.dims(); ++k) {
        r.lo[k] = floor_div(common.lo[k] - mine.lo[k], plan_.tile[k]);
        r.hi[k] = floor_div(common.hi[k] - 1 - mine.lo[k], plan_.tile[k]) + 1;
    }
    return r;
}

// Times grow with every coordinate, so the first reader of a dependence is the lowest one.
std::int64_t SweepGeometry::first_read(int target, const Box& region) const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    const Index at = layouts_[0].coords(target);
    for (const Index& d : dependences_) {
        const Box readers = tiles_meeting(target, region.shifted(d));
        if (readers.empty()) continue;
        Index coord = readers.lo;
        for (int k = 0; k < coord.n; ++k) coord[k] += at[k] * slots_[k];
        first = std::min(first, time_of(coord));
    }
    return first;
}

// Whole rows of memory where that makes one run of it on both sides: the surplus is rim that
// nobody writes, so sending it again is harmless, and saves packing.
Box SweepGeometry::widened(const Box& needed, int source, int target) const {
    Box wide = needed;
    for (int k = 0; k < wide.dims(); ++k) {
        if (plan_.grid[k] != 1 || needed.lo[k] != problem_.space.lo[k] || needed.hi[k] != problem_.space.hi[k]) continue;
        wide.lo[k] = 0;
        wide.hi[k] = problem_.shape[k];
    }
    const Layout& written = layouts_[0];
    if (contiguous(wide, written.storage(source)) && contiguous(wide, written.storage(target))) return wide;
    return needed;
}

std::vector<Face> SweepGeometry::faces(int source, const std::vector<PlacedTile>& source_tiles, int target) const {
    std::vector<Face> result;
    const Box theirs = block(target);
    if (theirs.empty()) return result;
    const std::int64_t item = problem_.arrays[0].item_bytes;
    std::vector<Box> read;  // what the target reads of the source's block, one box a dependence
    for (const Index& d : dependences_) {
        const Box r = intersect(theirs.shifted(Index::filled(d.n, 0) - d), block(source));
        if (!r.empty()) read.push_back(r);
    }
    if (read.empty()) return result;
    const Layout& written = layouts_[0];
    for (std::size_t t = 0; t < source_tiles.size(); ++t) {
        Box needed;
        for (const Box& r : read) needed = hull(needed, intersect(source_tiles[t].box, r));
        if (needed.dims() == 0 || needed.empty()) continue;
        const Box region = widened(needed, source, target);
        const bool direct = contiguous(region, written.storage(source)) && contiguous(region, written.storage(target));
        // Above 1 GiB even a direct message is cut: MPI counts are 32-bit in older libraries.
        for (const Box& part : chunks(region, item, direct ? std::int64_t{1} << 30 : plan_.chunk_bytes))
            result.push_back({static_cast<int>(t), part,
                              face_tag(result.size()), first_read(target, part)});
    }
    return result;
}

std::vector<Box> SweepGeometry::rim(int a, int source, int target) const {
    std::vector<Box> boxes;
    if (problem_.arrays[a].replicated) return boxes;
    const Box theirs = block(target), mine = layouts_[a].owned(source);
    if (theirs.empty()) return boxes;
    for (const Access& r : problem_.reads) {
        if (r.array != a) continue;
        std::vector<Box> fresh{intersect(theirs.shifted(r.offset), mine)};
        auto drop = [&fresh](const Box& known) {
            std::vector<Box> left;
            for (const Box& f : fresh)
                for (const Box& part : subtract(f, known)) left.push_back(part);
            fresh = std::move(left);
        };
        // What tiles write reaches the target as faces, after it is computed.
        if (a == 0) drop(problem_.space);
        const std::vector<Box> known = boxes;
        for (const Box& b : known) drop(b);
        for (const Box& f : fresh)
            for (const Box& part : chunks(f, problem_.arrays[a].item_bytes, rim_chunk_bytes)) boxes.push_back(part);
    }
    return boxes;
}

std::vector<Box> SweepGeometry::slices(const Box& tile) const {
    if (plan_.grouping != GroupingKind::vertical || plan_.slices == 1) return {tile};
    const int i = plan_.mapping_dim;
    const std::int64_t n = std::min<std::int64_t>(plan_.slices, tile.extent(i));
    std::vector<Box> parts;
    for (std::int64_t q = 0; q < n; ++q) {
        Box part = tile;
        part.lo[i] = tile.lo[i] + block_start(tile.extent(i), n, q);
        part.hi[i] = tile.lo[i] + block_start(tile.extent(i), n, q + 1);
        parts.push_back(part);
    }
    return parts;
}

}  // namespace tilewave
