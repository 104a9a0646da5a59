#include "generate/sweep/geometry.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/signs.hpp"
#include "core/tags.hpp"
#include "generate/sweep/groups.hpp"
#include "problem/nest_work.hpp"

// Coordinates z, slots, weights and times, of A[i, j] = f(A[i-1, j+1], A[i, j-1]) on two ranks. The dependences are
// (1, -1) and (0, 1); tiles have 1 x 2 points. Each number is the time of a tile:
//
//              rank 0, 6 points        rank 1, 4 points
//    z1 ->   |  slot 0 |  slot 1 |  slot 2  ||  slot 3 |  slot 4 | slot 5
//    z0 = 0  |    0    |    1    |    2     ||    3    |    4    | (empty)
//         1  |    3    |    4    |    5     ||    6    |    7    |
//         2  |    6    |    7    |    8     ||    9    |   10    |
//
// Every rank has 3 slots along z1, room for the most tiles of any rank: the time of a tile is a linear function of its
// slots over all ranks, which any rank can compute of any tile. The dependence (1, -1) goes back along z1, so tiles
// have one point along z0 ("unit" dimension), and a step along z0 weighs 3: it outweighs going back by one tile, 1, and
// past the slots that a rank may leave empty, 3 - 2, and is 1 later than both. Other dimensions weigh as group_wave()
// says.

namespace tilewave {

namespace {

// Faces between two ranks have different tags, since lanes post in no certain order.
int face_tag(std::size_t number) {
    if (number > static_cast<std::size_t>(std::numeric_limits<int>::max() - tags::first_face))
        throw ConfigError("the plan makes more than 2^31 messages between two ranks; take larger tiles");
    return tags::first_face + static_cast<int>(number);
}

}  // namespace

SweepGeometry::SweepGeometry(const SweepProblem& problem, const Plan& plan)
    : problem_(problem),
      plan_(plan),
      blocks_(problem.blocks(plan.grid)),
      space_(image(problem.loops, problem.space)),
      dependences_(problem.dependences()),
      deep_halo_(deep_halo(problem, plan)),
      unit_(problem.unit_dims()),
      planes_(uses_window(problem, plan)),
      slots_(Index::filled(problem.dims(), 1)),
      fewest_(slots_),
      weights_(Index::filled(problem.dims(), 0)) {
    for (int a = 0; a < static_cast<int>(problem.arrays.size()); ++a) {
        layouts_.push_back(tilewave::layout(problem, plan, a));
        kinds_.push_back(array_kind(problem, a));
    }
    list_reads();
    count_slots();
    weigh_dimensions();
    if (plan.temporal_block > 1 && unit_[0]) {
        Index last = Index::filled(slots_.n, 0);
        for (int k = 1; k < last.n; ++k) last[k] = plan.grid[k] * slots_[k] - 1;
        block_time_ = weights_[0] * plan.temporal_block + time_of(last) + 1;
    }
}

void SweepGeometry::list_reads() {
    for (const Access& p : problem_.accesses) {
        offsets_.push_back(problem_.offset(p));
        new_.push_back(!p.writes && problem_.reads_new(p));
        if (new_.back()) reads_.push_back({p.array, offsets_.back()});
        if (!p.keeps || deep_halo_.along < 0) continue;
        reads_.push_back({p.array, offsets_.back()});  // where a point writes nothing, the value of the time before
        reads_.back().offset[0] -= 1;
    }
    // A column of tiles reads, plane by plane, what the column before it has computed next to it.
    for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a) {
        if (!in_window(a)) continue;
        const int along = problem_.window.along;
        Index back = Index::filled(problem_.dims(), 0);
        for (back[along] = -1; back[along] >= -reach(a)[along]; --back[along]) {
            reads_.push_back({a, back});
            if (std::ranges::find(dependences_, -back) == dependences_.end()) dependences_.push_back(-back);
        }
    }
}

// Ranks with fewer tiles than others leave slots empty: the group transform needs equal strides.
void SweepGeometry::count_slots() {
    for (int k = 0; k < slots_.n; ++k) {
        const std::int64_t whole = space_.extent(k);
        const auto n =
            plan_.grid[k] > 1 ? problem_.block_extents(blocks_, k) : SweepProblem::BlockExtents{whole, whole, whole};
        slots_[k] = std::max<std::int64_t>(ceil_div(n.most, plan_.tile[k]), 1);
        fewest_[k] = n.fewest > 0 ? ceil_div(n.fewest, plan_.tile[k]) : slots_[k];
        slots_[k] = ceil_div(slots_[k], plan_.factors[k]) * plan_.factors[k];
    }
}

// A dependence that goes back along some dimension is carried by the first dimension that it goes forward along. Tiles
// have one point there, and one step along it weighs more than going back. Innermost first, as a dependence may go back
// along another such dimension.
void SweepGeometry::weigh_dimensions() {
    for (int u = slots_.n - 1; u >= 0; --u) {
        if (!unit_[u]) continue;
        weights_[u] = 1;
        for (const Index& d : dependences_) {
            if (first_nonzero(d) != u || d[u] < 0) continue;
            std::int64_t back = 0;
            for (int k = u + 1; k < d.n; ++k)
                if (d[k] < 0 && k != deep_halo_.along && (unit_[k] || plan_.grid[k] * slots_[k] > 1))
                    back += weight(k) * (unit_[k] ? -d[k] : -d[k] + slots_[k] - fewest_[k]);
            weights_[u] = std::max(weights_[u], back + 1);
        }
    }
}

// The most by which the time of a tile changes with one step along k.
std::int64_t SweepGeometry::weight(int k) const {
    if (weights_[k] > 0) return weights_[k];
    // A group's time weighs a coordinate with 1 or 2; where lanes round it, one more.
    const Index one = Index::unit(slots_.n, k);
    bool whole = true;
    for (int l = 0; l < one.n; ++l) whole = whole && (unit_[l] || plan_.factors[l] == 1);
    return whole ? group_wave(plan_, one) : 3;
}

// The place of a rank in the grid, along z: loops that run downwards begin at the last rank.
Index SweepGeometry::place(int rank) const {
    Index at = blocks_.coords(rank);
    for (int k = 0; k < at.n; ++k)
        if (problem_.loops.row[k][k] < 0) at[k] = plan_.grid[k] - 1 - at[k];
    return at;
}

// Computed once for each rank that is asked for: a rank's schedule asks for its neighbours.
const SweepGeometry::Blocks& SweepGeometry::blocks_of(int rank) const {
    const auto [found, fresh] = seen_.try_emplace(rank);
    Blocks& blocks = found->second;
    if (!fresh) return blocks;
    if (rank >= blocks_.ranks()) {  // beyond the grid
        blocks.block = blocks.reached = {space_.lo, space_.lo};
        return blocks;
    }
    const Index at = blocks_.coords(rank);
    Box x = problem_.space;
    for (int k = 0; k < at.n; ++k) std::tie(x.lo[k], x.hi[k]) = problem_.block_range(blocks_, k, at[k]);
    blocks.block = image(problem_.loops, x);
    if (const int k = deep_halo_.along; k >= 0 && !x.empty()) {
        const std::int64_t more = deep_halo_.most(at.n)[k];
        if (problem_.loops.row[k][k] < 0)
            x.lo[k] = std::max(x.lo[k] - more, problem_.space.lo[k]);
        else
            x.hi[k] = std::min(x.hi[k] + more, problem_.space.hi[k]);
    }
    blocks.reached = image(problem_.loops, x);
    return blocks;
}

std::int64_t SweepGeometry::end_of_rows(int rank, std::int64_t t) const {
    const int k = deep_halo_.along;
    return std::min(block(rank).hi[k] + deep_halo_.at(t), space_.hi[k]);
}

Array SweepGeometry::array(int a, int rank) const {
    Array result = array_on(problem_, plan_, layout(a), a, rank);
    if (in_window(a)) describe_window(a, result);
    return result;
}

Index SweepGeometry::reach(int a) const {
    Index reach = Index::filled(problem_.dims(), 0);
    for (std::size_t i = 0; i < offsets_.size(); ++i)
        for (int k = 0; k < reach.n && problem_.accesses[i].array == a; ++k)
            reach[k] = std::max(reach[k], -offsets_[i][k]);
    return reach;
}

// Messages carry the elements next to a column of tiles: plane by plane, those of a row together.
void SweepGeometry::describe_window(int a, Array& array) const {
    const int along = problem_.window.along, across = problem_.window.across;
    array.reach = reach(a);
    array.planes = problem_.window_planes(a);
    array.stride = Index::unit(problem_.dims(), along);
    std::int64_t run = std::max<std::int64_t>(array.reach[along], 1);
    for (int k = problem_.dims() - 1; k >= 0; --k) {
        if (k == along || k == across) continue;
        array.stride[k] = run;
        run *= space_.extent(k);
    }
    array.stride[across] = run;
}

std::int64_t SweepGeometry::time_of(const Index& coord) const {
    Index rest = coord;
    std::int64_t time = 0;
    for (int k = 0; k < rest.n; ++k) {
        if (weights_[k] == 0) continue;
        std::int64_t steps = rest[k];
        if (k == 0 && block_time_ > 0) {
            steps += floor_mod(-space_.extent(0), plan_.temporal_block);  // the first block is the short one
            time += floor_div(steps, plan_.temporal_block) * block_time_;
            steps = floor_mod(steps, plan_.temporal_block);
        }
        time += weights_[k] * steps;
        rest[k] = 0;
    }
    return time + group_wave(plan_, rest);
}

std::vector<PlacedTile> SweepGeometry::tiles(int rank) const {
    const Box block = reached(rank);
    if (block.empty()) return {};
    const Index at = place(rank), begin = tiles_begin(rank), first = first_tile(rank), count = tile_count(rank);
    std::vector<PlacedTile> result;
    const Box all{Index::filled(count.n, 0), count};
    result.reserve(all.points());
    for (std::int64_t q = 0; q < all.points(); ++q) {
        PlacedTile t;
        t.local = t.coord = count;
        std::int64_t rest = q;
        for (int k = count.n - 1; k >= 0; --k) {
            t.local[k] = rest % count[k];
            rest /= count[k];
            t.coord[k] = at[k] * slots_[k] + first[k] + t.local[k];
        }
        t.box = block;
        for (int k = 0; k < count.n; ++k) {
            const std::int64_t lo = begin[k] + (first[k] + t.local[k]) * plan_.tile[k];
            t.box.lo[k] = std::max(lo, block.lo[k]);
            t.box.hi[k] = std::min(lo + plan_.tile[k], block.hi[k]);
        }
        if (deep_halo_.along >= 0) t.box.hi[deep_halo_.along] = end_of_rows(rank, t.box.lo[0]);
        t.time = time_of(t.coord);
        t.lane = lane_of(plan_, t.coord);
        result.push_back(t);
    }
    std::ranges::stable_sort(result, [](const PlacedTile& a, const PlacedTile& b) {
        return a.time < b.time;  // equal times stay in lexicographic order of coord
    });
    return result;
}

// Where tiles are counted from. Along a dimension that is not cut all ranks have the same tiles; where the loop is
// skewed, the block of a rank has only some of them.
Index SweepGeometry::tiles_begin(int rank) const {
    Index begin = space_.lo;
    for (int k = 0; k < begin.n; ++k)
        if (plan_.grid[k] > 1) begin[k] = reached(rank).lo[k];
    return begin;
}

Index SweepGeometry::first_tile(int rank) const {
    Index first = reached(rank).lo - tiles_begin(rank);
    for (int k = 0; k < first.n; ++k) first[k] = floor_div(first[k], plan_.tile[k]);
    return first;
}

// @pre the rank has points (not checked)
Index SweepGeometry::tile_count(int rank) const {
    const Box& block = reached(rank);
    const Index begin = tiles_begin(rank), first = first_tile(rank);
    Index count = Index::filled(begin.n, 1);
    for (int k = 0; k < count.n; ++k)
        if (k != deep_halo_.along) count[k] = ceil_div(block.hi[k] - begin[k], plan_.tile[k]) - first[k];
    return count;
}

Box SweepGeometry::tiles_meeting(int rank, const Box& region) const {
    const Box block = reached(rank);
    Box common = intersect(region, block);
    const int m = deep_halo_.along;
    if (m >= 0 && !common.empty())
        common.hi[m] = std::min(common.hi[m], common.extent(0) == 1 ? end_of_rows(rank, common.lo[0]) : block.hi[m]);
    Box r = common;
    if (common.empty()) return {Index::filled(r.dims(), 0), Index::filled(r.dims(), 0)};
    const Index begin = tiles_begin(rank), first = first_tile(rank);
    for (int k = 0; k < r.dims(); ++k) {
        r.lo[k] = floor_div(common.lo[k] - begin[k], plan_.tile[k]) - first[k];
        r.hi[k] = floor_div(common.hi[k] - 1 - begin[k], plan_.tile[k]) - first[k] + 1;
    }
    return m < 0 ? r : r.with(m, 0, 1);
}

std::vector<Box> SweepGeometry::readers(int a, const Box& region) const {
    std::vector<Box> boxes;
    for (const Read& r : reads_)
        if (r.array == a) boxes.push_back(region.shifted(-r.offset));
    return boxes;
}

bool SweepGeometry::staged(int a) const {
    if (problem_.arrays[a].time_buffers > 0) return true;
    for (std::size_t i = 0; i < offsets_.size(); ++i)
        if (problem_.accesses[i].array == a && !new_[i] && lexicographically_positive(offsets_[i]))
            return problem_.written(a);
    return false;
}

std::vector<Box> SweepGeometry::former_readers(int a, const Box& region) const {
    std::vector<Box> boxes;
    if (!staged(a)) return boxes;
    const int time_buffers = problem_.arrays[a].time_buffers;
    Box former = region;
    if (time_buffers > 0) {
        former.lo[0] -= time_buffers + deep_halo_.steps - 1;  // redundantly computed values are there since then
        former.hi[0] -= time_buffers;
    }
    for (std::size_t i = 0; i < offsets_.size(); ++i)
        if (problem_.accesses[i].array == a && (time_buffers > 0 || !new_[i]))
            boxes.push_back(former.shifted(-offsets_[i]));
    if (deep_halo_.along >= 0)
        for (const Box& box : readers(a, former)) boxes.push_back(box);
    return boxes;
}

// Times do not fall with any coordinate, so the first reader at an offset is the lowest one.
std::int64_t SweepGeometry::first_read(int a, int target, const Box& region) const {
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    const Index at = place(target), tile = first_tile(target);
    for (const Box& box : readers(a, region)) {
        const Box reading = tiles_meeting(target, box);
        if (reading.empty()) continue;
        Index coord = reading.lo;
        for (int k = 0; k < coord.n; ++k) coord[k] += at[k] * slots_[k] + tile[k];
        first = std::min(first, time_of(coord));
    }
    return first;
}

// Whole rows of memory where that makes one run of it on both sides. What is added is halo that nobody writes: sending
// it again is harmless, and saves packing.
Box SweepGeometry::widened(int a, const Box& needed, const Array& here, const Array& there) const {
    if (staged(a) || here.lacks || here.planes) return needed;
    Box wide = needed;
    const bool timed = std::ranges::any_of(problem_.arrays, [](const NestArray& n) { return n.time_buffers > 0; });
    // Arrays with time as a dimension are not widened along it: a run may begin at a later time.
    for (int k = timed ? 1 : 0; k < wide.dims(); ++k) {
        if (plan_.grid[k] != 1 || needed.lo[k] != space_.lo[k] || needed.hi[k] != space_.hi[k]) continue;
        wide = wide.with(k, here.storage.lo[k], here.storage.hi[k]);
    }
    // What another rank owns is there only where it is needed.
    if (here.owned.contains(wide) && one_run(wide, here) && one_run(wide, there)) return wide;
    return needed;
}

bool SweepGeometry::sends(int source, int target) const {
    return std::ranges::any_of(
        reads_, [&](const Read& r) { return !intersect(reached(target).shifted(r.offset), block(source)).empty(); });
}

// The values of array `a` at time `t` that `target` reads beyond the rows that it computes itself at that time.
Box SweepGeometry::beyond_deep_halo(int a, int target, std::int64_t t) const {
    const int k = deep_halo_.along;
    Box all{space_.lo, space_.lo};
    for (const Read& wanted : reads_) {
        const std::int64_t at = t - wanted.offset[0];
        if (wanted.array != a || at >= space_.hi[0]) continue;
        Box reading = reached(target).with(0, at, at + 1);
        reading.hi[k] = end_of_rows(target, at);
        Box cells = reading.shifted(wanted.offset);
        cells.lo[k] = std::max(cells.lo[k], end_of_rows(target, t));
        if (!cells.empty()) all = hull(all, cells);
    }
    return all;
}

std::vector<Face> SweepGeometry::faces(int source, const std::vector<PlacedTile>& source_tiles, int target) const {
    std::vector<Face> result;
    const Box reader = block(target), writer = block(source);
    if (reader.empty() || writer.empty()) return result;
    const int arrays = static_cast<int>(problem_.arrays.size());
    std::vector<Array> here, there;
    for (int a = 0; a < arrays; ++a) {
        here.push_back(array(a, source));
        there.push_back(array(a, target));
    }
    std::vector<std::vector<Box>> read(arrays);  // by array: what the target reads of the source's block
    for (const Read& wanted : reads_) {
        const Box r = intersect(reader.shifted(wanted.offset), writer);
        if (!r.empty()) read[wanted.array].push_back(r);
    }
    const bool twice = deep_halo_.along >= 0 && writer.lo[deep_halo_.along] >= reader.hi[deep_halo_.along];
    for (std::size_t t = 0; t < source_tiles.size(); ++t)
        for (int a = 0; a < arrays; ++a) {
            Box needed;
            if (twice)
                needed = intersect(beyond_deep_halo(a, target, source_tiles[t].box.lo[0]),
                                   intersect(source_tiles[t].box, writer));
            else
                for (const Box& r : read[a]) needed = hull(needed, intersect(source_tiles[t].box, r));
            if (needed.dims() == 0 || needed.empty()) continue;
            const Box region = widened(a, needed, here[a], there[a]);
            const bool direct = !staged(a) && one_run(region, here[a]) && one_run(region, there[a]);
            // Above 1 GiB even a direct message is cut: MPI counts are 32-bit in older libraries.
            for (const Box& part :
                 chunks(region, here[a].item_bytes, direct ? std::int64_t{1} << 30 : plan_.chunk_bytes))
                // The hull of what is read has corners that nobody reads: no tile would be the one to receive them.
                if (const std::int64_t read_at = first_read(a, target, part);
                    read_at < std::numeric_limits<std::int64_t>::max())
                    result.push_back({a, static_cast<int>(t), part, face_tag(result.size()), read_at});
        }
    return result;
}

std::vector<int> SweepGeometry::aggregates(const std::vector<Face>& faces,
                                           const std::vector<PlacedTile>& source_tiles) const {
    std::vector<int> result(faces.size(), -1);
    if (plan_.aggregate == 1) return result;
    const auto block = [&](const Face& f) {
        return deep_halo_.along < 0 ? 0
                                    : floor_div(deep_halo_.end - 1 - source_tiles[f.tile].box.lo[0], deep_halo_.steps);
    };
    int aggregate = -1, tiles = 0;
    std::int64_t bytes = 0;
    for (std::size_t f = 0; f < faces.size(); ++f) {
        const std::int64_t more = faces[f].region.points() * problem_.arrays[faces[f].array].item_bytes;
        const bool next = f > 0 && faces[f].tile != faces[f - 1].tile;
        if (f == 0 || (next && tiles == plan_.aggregate) || bytes + more > plan_.chunk_bytes ||
            block(faces[f]) != block(faces[f - 1])) {
            ++aggregate;
            tiles = 0;
            bytes = 0;
        }
        tiles += next || tiles == 0;
        bytes += more;
        result[f] = aggregate;
    }
    return result;
}

std::vector<Box> SweepGeometry::slices(const Box& tile) const {
    // The one tile of a nest in loop order has no other order.
    if (plan_.grouping != GroupingKind::vertical || plan_.slices == 1 || problem_.sequential) return {tile};
    const int i = plan_.mapping_dim;
    const std::int64_t n = std::min<std::int64_t>(plan_.slices, tile.extent(i));
    std::vector<Box> parts;
    for (std::int64_t q = 0; q < n; ++q) parts.push_back(even_part(tile, i, n, q));
    return parts;
}

}  // namespace tilewave
