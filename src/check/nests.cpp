// Tiles of nests: each point once, with the values that plain loops would read.
#include <algorithm>

#include "check/checker.hpp"
#include "check/shapes.hpp"
#include "core/signs.hpp"
#include "schedule/tile_rows.hpp"

namespace tilewave {

using Written = Entry::Written;

void Checker::compute_nest(RankState& p, int lane, const Tile& tile, Entry& entry) {
    const Schedule& s = *p.s;
    const NestWork& nest = *s.works[tile.work].nest();
    if (!nest.space.contains(tile.box.shifted(-nest.period_shift(tile.box))))
        wrong("tile ", tile.box, " is not inside the space");
    if (std::ranges::any_of(s.arrays, [](const Array& a) { return a.planes > 0; })) {
        const int across = nest.window.across;
        std::vector<std::int64_t> column(tile.box.lo.begin(), tile.box.lo.end());
        column[across] = 0;
        const auto [last, first] = p.columns.try_emplace(column, tile.box.lo[across]);
        if (tile.box.lo[across] < last->second)
            wrong("tile ", tile.box,
                  " is computed after others further along its column: planes that it reads are no longer stored");
        last->second = tile.box.hi[across];
    }
    read_nest(p, lane, tile, entry);
    count_points(p, tile, entry);
    for (const Access& w : nest.places) {
        if (!w.writes) break;
        const Array& array = s.arrays[w.array];
        const Box to = array.elements(tile.box.shifted(w.offset));
        if (auto why = inside_storage(s, "it writes", w.array, to)) wrong(*why);
        Versions versions;
        cells(to).for_each(to, [&](const Index& cell) {
            // Where points are beyond the bounds, what is there stays: of a cell that some of them write there must
            // have been something.
            const Version now = program_.value(entry, s.rank, w.array, cell);
            const Version there = nest.bounds.empty() ? now : p.store(w.array).version(w.array, cells(to), cell);
            const bool stays = array.time_buffers > 0
                                   ? !program_.planned(entry, array, cell)
                                   : !nest.bounds.empty() &&
                                         (!reads(nest, tile, w, cell) ||
                                          (there == missing && array.lacks == 0 && !all_write(nest, tile, w, cell)));
            versions.push_back(stays ? there : now);
        });
        write_cells(p, lane, w.array, to, versions);
    }
}

void Checker::read_nest(RankState& p, int lane, const Tile& tile, const Entry& entry) {
    const Schedule& s = *p.s;
    const NestWork& nest = *s.works[tile.work].nest();
    std::vector<Access> reads_at = nest.places;
    for (const Access& w : nest.places) {
        if (!w.writes || !w.keeps || s.arrays[w.array].time_buffers < 1) continue;
        reads_at.push_back({w.array, w.offset});  // what may stay is that of the time before
        reads_at.back().offset[0] -= 1;
    }
    for (std::size_t q = 0; q < reads_at.size(); ++q) {
        const Access& r = reads_at[q];
        const Array& array = s.arrays[r.array];
        const Written written = entry.written[r.array];
        if (array.whole) continue;
        // What stays is there for the next time where points are beyond the bounds, too.
        const auto stays = [&](Index cell) {
            return q >= nest.places.size() && program_.planned(entry, array, (++cell[0], cell));
        };
        const Box from = tile.box.shifted(r.offset);
        Versions versions;
        const bool here = r.offset == Index::filled(r.offset.n, 0);
        if (written == Written::once && here && (array.time_buffers > 0 || (r.writes && !r.keeps)))
            continue;  // no value of before
        // What the tile writes itself is there when a later point of it reads it; what an earlier point reads was there
        // before.
        const bool by_itself = written == Written::once && lexicographically_positive(-r.offset);
        std::vector<Box> pieces = by_itself ? subtract(from, tile.box) : std::vector<Box>{array.elements(from)};
        for (const Box& part : pieces) {
            read_cells(p, lane, r.array, part, &versions);
            if (written == Written::often) continue;  // the order of steps is all that is checked
            // The array must hold what plain loops would find: new values before the point in loop
            // order, those of the works before after it.
            std::size_t i = 0;
            cells(part).for_each(part, [&](const Index& cell) {
                const Version found = versions[i++];
                const bool right = by_itself && program_.planned(entry, array, cell)
                                       ? found == program_.value(entry, s.rank, r.array, cell)
                                       : program_.right(found, program_.before(entry, s.rank, r.array, cell));
                if (!right && (stays(cell) || reads(nest, tile, r, cell)))
                    wrong("tile ", tile.box, " reads ", part, " of array ", r.array, " before ",
                          (found == missing ? "anything is there" : "it holds the right values"));
            });
        }
    }
}

// Several ranks may compute a point where all it gives are values that each of them keeps by themselves.
void Checker::count_points(RankState& p, const Tile& tile, Entry& entry) {
    const NestWork& nest = *entry.work->nest();
    const bool each = std::ranges::all_of(nest.places, [&](const Access& w) {
        return !w.writes || (entry.written[w.array] == Written::once && p.s->arrays[w.array].time_buffers > 0);
    });
    std::vector<char>& here = p.computed[tile.work];
    const Cells& space = cells(tile.box);
    const Box& own = p.s->works[tile.work].nest()->own;
    space.for_each(tile.box, [&](const Index& cell) {
        const std::size_t at = space.linear(space.all(), program_.in_the_space(nest, cell)),
                          in_space = space.linear(space.all(), cell);  // of the halo, where a loop is periodic
        if (each ? here[in_space] : entry.computed[at]) wrong("points of tile ", tile.box, " are computed twice");
        entry.computed[at] = here[in_space] = 1;
        if (own.dims() > 0 && !space.inside(cell, own)) return;
        if (own.dims() > 0 && entry.reduced[at]) wrong("points of tile ", tile.box, " are those of two ranks");
        entry.reduced[at] = 1;
    });
}

// Whether some point of the tile that is within the bounds reads the cell at `place`.
bool Checker::reads(const NestWork& nest, const Tile& tile, const Access& place, const Index& cell) const {
    Box points = cells(tile.box).box_of(cell).shifted(-place.offset);
    for (int k = 0; k < points.dims(); ++k)
        if (program_.array(place.array).lacks >> k & 1) points = points.with(k, tile.box.lo[k], tile.box.hi[k]);
    return TileRows(nest, intersect(points, tile.box)).first();
}

// Whether all points of the tile that write the cell are within the bounds.
bool Checker::all_write(const NestWork& nest, const Tile& tile, const Access& place, const Index& cell) const {
    const Box points = intersect(cells(tile.box).box_of(cell).shifted(-place.offset), tile.box);
    TileRows rows(nest, points);
    std::int64_t within = 0;
    for (bool more = rows.first(); more; more = rows.next()) within += rows.end() - rows.begin();
    return within == points.points();
}

}  // namespace tilewave
