#include "predict/tile_work.hpp"

#include <algorithm>

#include "core/concat.hpp"
#include "schedule/tile_rows.hpp"

namespace tilewave {

TileWork::TileWork(const Schedule& schedule, const NestWork& nest) : nest_(nest) {
    const int n = nest_.space.dims();
    up_ = down_ = n - 1;
    if (nest_.window.along >= 0) cut_ = piece_cut(schedule);
    if (nest_.order.n == 0) return;
    const IndexMatrix back = inverse(nest_.order);
    int ups = 0, downs = 0, others = 0;
    for (int k = 0; k < n; ++k) {
        const std::int64_t along = back.row[k][n - 1];
        if (along == 1)
            up_ = k, ++ups;
        else if (along == -1)
            down_ = k, ++downs;
        else if (along != 0)
            ++others;
    }
    if (others > 0 || ups > 1 || downs > 1)
        rows_ = Rows::other;
    else if (ups == 1 && downs == 1)
        rows_ = Rows::pair;
    else
        up_ = ups == 1 ? up_ : down_;
}

bool TileWork::serves(const Schedule& schedule, const NestWork& other) const {
    if (!(nest_.order == other.order) || nest_.bounds.size() != other.bounds.size() ||
        nest_.window.along != other.window.along || nest_.window.across != other.window.across ||
        nest_.window.slant != other.window.slant || nest_.space.dims() != other.space.dims())
        return false;
    for (std::size_t b = 0; b < nest_.bounds.size(); ++b)
        if (!(nest_.bounds[b].coefficients == other.bounds[b].coefficients) ||
            nest_.bounds[b].constant != other.bounds[b].constant)
            return false;
    return !cut_ || piece_cut(schedule) == *cut_;
}

std::size_t TileWork::Hash::operator()(const Key& key) const {
    std::size_t h = 0;
    auto mix = [&](std::int64_t v) { h = (h ^ static_cast<std::size_t>(v)) * 0x9e3779b97f4a7c15u + (h >> 29); };
    for (auto e : key.extents) mix(e);
    for (auto v : key.at_corner) mix(v);
    return h;
}

// So many pieces of a tile, or rows that a bound cuts, are counted one by one: some seconds.
static constexpr std::int64_t most_counted = std::int64_t{1} << 24, most_rows = std::int64_t{1} << 30;

static void refuse_many(std::int64_t count, std::int64_t most, const Box& tile) {
    if (count > most)
        throw ConfigError(concat("predict: tile ", tile, " has ", count, " rows or pieces to count; allowed: ", most));
}

RowCount TileWork::of(const Box& tile) {
    if (!cut_) return part(tile);
    for (const int k : {nest_.window.along, nest_.window.across})
        refuse_many(tile.extent(k) / std::max<std::int64_t>(cut_->width, 1), most_counted, tile);
    RowCount all;
    for (const Box& piece : cut_into_pieces(nest_.window.along, nest_.window.across, nest_.window.slant, *cut_, tile))
        all = all + part(piece);
    return all;
}

RowCount TileWork::part(const Box& box) {
    if (box.empty()) return {};
    bool cut = rows_ == Rows::other;
    for (const Bound& b : nest_.bounds) {
        std::int64_t least = b.constant, most = b.constant;
        for (int k = 0; k < box.dims(); ++k) {
            const std::int64_t c = b.coefficients[k], first = c * box.lo[k], last = c * (box.hi[k] - 1);
            least += std::min(first, last);
            most += std::max(first, last);
        }
        if (most < 0) return {};
        cut = cut || least < 0;
    }
    if (!cut) return uncut(box);
    Key key{box.hi - box.lo, {}};
    for (const Bound& b : nest_.bounds) {
        std::int64_t value = b.constant;
        for (int k = 0; k < box.dims(); ++k) value += b.coefficients[k] * box.lo[k];
        key.at_corner.push_back(value);
    }
    const auto [it, fresh] = walked_.try_emplace(std::move(key));
    if (fresh) it->second = walk(box);
    return it->second;
}

RowCount TileWork::uncut(const Box& box) const {
    const std::int64_t points = box.points();
    if (rows_ == Rows::unit) return {points / box.extent(up_), points};
    // One row for each sum of the two coordinates.
    const std::int64_t up = box.extent(up_), down = box.extent(down_);
    return {points / (up * down) * (up + down - 1), points};
}

RowCount TileWork::walk(const Box& box) const {
    refuse_many(rows_ == Rows::other ? box.points() : uncut(box).rows, most_rows, box);
    RowCount w;
    TileRows rows(nest_, box);
    for (bool more = rows.first(); more; more = rows.next()) {
        ++w.rows;
        w.points += rows.end() - rows.begin();
    }
    return w;
}

}  // namespace tilewave
