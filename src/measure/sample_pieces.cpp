// Which boxes of a schedule a rate is measured on.
#include "measure/sample_pieces.hpp"

#include <algorithm>

#include "measure/tuning.hpp"
#include "predict/tile_work.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// Pieces of a box of at most `limit` points: layers of the dimensions that rows do not vary; where that is not
// enough halves of those that they do, the longer one, so that rows stay as long as they can.
void pieces(const Box& box, std::int64_t limit, const std::vector<bool>& rows, std::vector<Box>& out,
            std::int64_t& left) {
    if (left <= 0 || box.empty()) return;
    if (box.points() <= limit) {
        out.push_back(box);
        left -= box.points();
        return;
    }
    int cut = -1;
    for (int k = 0; k < box.dims() && cut < 0; ++k)
        if (!rows[k] && box.extent(k) > 1) cut = k;
    const bool halves = cut < 0;
    for (int k = 0; k < box.dims() && halves; ++k)
        if (cut < 0 || box.extent(k) > box.extent(cut)) cut = k;
    const std::int64_t layers =
        halves ? ceil_div(box.extent(cut), 2) : std::max<std::int64_t>(1, limit / (box.points() / box.extent(cut)));
    for (std::int64_t lo = box.lo[cut]; lo < box.hi[cut] && left > 0; lo += layers) {
        const Box part = box.with(cut, lo, std::min(lo + layers, box.hi[cut]));
        pieces(part, limit, rows, out, left);
    }
}

// The middle of a box: at most `most` points, or a quarter, along what `dims` says, the whole of it along the rest.
Box middle(Box box, const std::vector<bool>& dims, std::int64_t most) {
    for (int k = 0; k < box.dims(); ++k)
        if (const std::int64_t extent = std::min(most, std::max<std::int64_t>(box.extent(k) / 4, 1));
            dims[k] && box.extent(k) > extent) {
            box.lo[k] += (box.extent(k) - extent) / 2;
            box.hi[k] = box.lo[k] + extent;
        }
    return box;
}

}  // namespace

Schedule computing(const Schedule& s, const Pieces& boxes) {
    Schedule r = s;
    r.tiles.clear();
    r.messages.clear();
    r.buffers.clear();
    r.results.clear();
    r.lanes.assign(boxes.size(), {});
    for (std::size_t l = 0; l < boxes.size(); ++l)
        for (const Box& box : boxes[l]) {
            r.lanes[l].push_back({Op::compute, static_cast<std::int32_t>(r.tiles.size())});
            Tile t;
            t.coord = Index::filled(box.dims(), 0);
            t.box = box;
            r.tiles.push_back(t);
        }
    return r;
}

std::vector<bool> varied_by_rows(const Schedule& s) {
    const IndexMatrix back = inverse(only_nest(s).order);
    const int dims = back.n;
    std::vector<bool> varied(static_cast<std::size_t>(dims), false);
    for (int k = 0; k < dims; ++k) varied[k] = back.row[k][dims - 1] != 0;
    return varied;
}

Pieces tiles_by_lane(const Schedule& s) {
    Pieces tiles(s.lanes.size());
    for (std::size_t l = 0; l < s.lanes.size(); ++l)
        for (const Step& step : s.lanes[l])
            if (step.op == Op::compute) tiles[l].push_back(s.tiles[step.item].box);
    // From the tile at a third on, and from where tiles are whole: some are cut off where loops are skewed or bounded.
    TileWork work(s, only_nest(s));
    const std::vector<bool> rows = varied_by_rows(s);
    for (auto& lane : tiles) {
        std::vector<std::int64_t> points;
        for (const Box& box : lane)
            points.push_back(work.of(middle(box, rows, short_row)).points > 0 ? work.of(box).points : 0);
        if (lane.empty()) continue;
        const std::int64_t most = *std::ranges::max_element(points);
        std::size_t first = lane.size() / 3;
        for (std::size_t looked = 0; looked < lane.size() && 10 * points[first] < 9 * most; ++looked)
            first = (first + 1) % lane.size();
        std::rotate(lane.begin(), lane.begin() + static_cast<std::ptrdiff_t>(first), lane.end());
    }
    return tiles;
}

Pieces on_one_lane(const Pieces& tiles, std::int64_t total) {
    Pieces result(1);
    std::int64_t left = total;
    for (std::size_t i = 0, longest = 1; i < longest && left > 0; ++i)
        for (const auto& lane : tiles) {
            longest = std::max(longest, lane.size());
            if (i >= lane.size() || left <= 0) continue;
            result[0].push_back(lane[i]);
            left -= lane[i].points();
        }
    return result;
}

Pieces cut(const Pieces& tiles, std::int64_t limit, std::int64_t total, const std::vector<bool>& keep) {
    Pieces result(tiles.size());
    for (std::size_t l = 0; l < tiles.size(); ++l) {
        std::int64_t left = total;
        for (const Box& tile : tiles[l]) pieces(tile, limit, keep, result[l], left);
    }
    return result;
}

Pieces strips(const Pieces& boxes, const std::vector<bool>& rows, std::int64_t most, std::int64_t total) {
    Pieces result(boxes.size());
    for (std::size_t l = 0; l < boxes.size(); ++l) {
        std::int64_t left = total;
        for (const Box& box : boxes[l]) {
            int k = box.dims() - 1;
            while (k > 0 && !rows[k]) --k;
            const std::int64_t width = std::min(most, std::max<std::int64_t>(box.extent(k) / 4, 1));
            for (std::int64_t lo = box.lo[k]; lo < box.hi[k] && left > 0; lo += width) {
                const Box strip = box.with(k, lo, std::min(lo + width, box.hi[k]));
                left -= strip.points();
                result[l].push_back(strip);
            }
        }
    }
    return result;
}

Pieces middles(const Pieces& boxes, const std::vector<bool>& dims, std::int64_t most) {
    Pieces result = boxes;
    for (auto& lane : result) {
        if (lane.size() > 8) lane.resize(8);
        for (Box& box : lane) box = middle(box, dims, most);
    }
    return result;
}

}  // namespace tilewave
