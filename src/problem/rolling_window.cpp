#include "problem/rolling_window.hpp"

#include <algorithm>

#include "data/memory.hpp"
#include "problem/panel_width.hpp"

namespace tilewave {

namespace {

std::int64_t rounded_up(std::int64_t n, std::int64_t unit) {
    return ceil_div(n, unit) * unit;
}

}  // namespace

PieceCut piece_cut(const Schedule& s) {
    const WindowShape& window = only_nest(s).window;
    Box block;
    for (const Tile& t : s.tiles) block = block.dims() == 0 ? t.box : hull(block, t.box);
    std::int64_t column_bytes = 0, least_item = 8;
    for (const Array& array : s.arrays) {
        if (array.planes == 0) continue;
        std::int64_t bytes = array.planes * array.item_bytes;
        for (int k = 0; k < block.dims(); ++k)
            if (k != window.along && k != window.across) bytes *= block.extent(k) + array.reach[k];
        column_bytes += bytes;
        least_item = std::min(least_item, array.item_bytes);
    }
    return {panel_width(column_bytes, least_item), cache_line_bytes / least_item};
}

std::vector<Box> cut_into_pieces(int along, int across, int slant, const PieceCut& cut, const Box& tile) {
    const bool across_panels = slant && tile.extent(across) <= tile.extent(along);
    const int k = across_panels ? across : along;
    std::int64_t size = cut.width;
    if (across_panels)
        size = rounded_up(ceil_div(tile.extent(k), std::max<std::int64_t>(ceil_div(tile.extent(k), cut.width), 1)),
                          cut.unit);
    std::vector<Box> pieces;
    for (std::int64_t at = tile.lo[k]; at < tile.hi[k]; at += size) {
        pieces.push_back(tile);
        pieces.back().lo[k] = at;
        pieces.back().hi[k] = std::min(at + size, tile.hi[k]);
    }
    return pieces;
}

RollingWindow::RollingWindow(const Schedule& s)
    : along_(only_nest(s).window.along),
      across_(only_nest(s).window.across),
      slant_(only_nest(s).window.slant),
      space_(only_nest(s).space),
      bounds_(only_nest(s).bounds),
      ring_of_(s.arrays.size(), -1) {
    block_ = {Index::filled(dims(), 0), Index::filled(dims(), 0)};
    reach_ = block_.lo;
    const int a = along(), f = across();
    for (const Tile& t : s.tiles) {
        block_ = block_.empty() ? t.box : hull(block_, t.box);
        columns_.push_back(t.box.lo[a]);
        tallest_ = std::max(tallest_, t.box.extent(f));
    }
    std::ranges::sort(columns_);
    columns_.erase(std::unique(columns_.begin(), columns_.end()), columns_.end());
    columns_.push_back(block_.hi[a]);
    for (int k = 0; k < dims(); ++k) {
        if (k == a || k == f) continue;
        others_.push_back(k);
        others_count_ *= space_.extent(k);
    }
    first_plane_ = block_.lo[f] + slant_ * block_.lo[a];
    end_plane_ = block_.hi[f] + slant_ * (block_.hi[a] - 1);
    for (std::size_t i = 0; i < s.arrays.size(); ++i) {
        const Array& array = s.arrays[i];
        if (array.planes == 0) continue;
        Ring ring;
        ring.array = static_cast<int>(i);
        ring.planes = array.planes;
        ring.item_bytes = array.item_bytes;
        ring.reach = array.reach;
        for (int k = 0; k < reach_.n; ++k) reach_[k] = std::max(reach_[k], ring.reach[k]);
        most_planes_ = std::max(most_planes_, ring.planes);
        ring_of_[i] = static_cast<int>(rings_.size());
        rings_.push_back(std::move(ring));
    }
    cut_ = piece_cut(s);
    std::int64_t panels = 0, widest = 1;
    for (std::size_t c = 0; c + 1 < columns_.size(); ++c) {
        first_panel_.push_back(panels);
        const std::int64_t extent = columns_[c + 1] - columns_[c];
        panels += ceil_div(extent, cut_.width);
        widest = std::max(widest, std::min(cut_.width, std::max(extent, slant_ * tallest_)));
    }
    first_panel_.push_back(panels);
    for (Ring& ring : rings_) {
        // A panel's first element begins a cache line; rows have a distance of an odd number of lines, so that those of
        // several planes do not meet in the same sets of the cache.
        const std::int64_t line = cache_line_bytes / ring.item_bytes;
        ring.lead = rounded_up(reads_along(ring), line);
        ring.row = rounded_up(ring.lead + widest + slant_ * reads_across(ring), line);
        if (ring.row / line % 2 == 0) ring.row += line;
        ring.plane = ring.row;
        for (int k : others_) ring.plane *= extent(ring, k);
        ring.panel = ring.plane * ring.planes;
        find_segments(ring, only_nest(s).places);
    }
}

int RollingWindow::column_of(std::int64_t lo) const {
    return static_cast<int>(std::upper_bound(columns_.begin(), columns_.end() - 1, lo) - columns_.begin()) - 1;
}

std::vector<RollingWindow::Piece> RollingWindow::pieces(const Box& tile) const {
    const std::int64_t panel = first_panel_[column_of(tile.lo[along_])];
    const std::int64_t lo = tile.lo[along_], hi = tile.hi[along_];
    std::vector<Piece> pieces;
    for (const Box& box : cut_into_pieces(along_, across_, slant_, cut_, tile)) {
        const bool across_panel = box.extent(along_) == hi - lo && slant_ && tile.extent(across_) <= hi - lo;
        pieces.push_back({box.lo[along_], box.hi[along_], box.lo[across_], box.hi[across_],
                          panel + (across_panel ? 0 : static_cast<std::int64_t>(pieces.size())), box.lo[along_] == lo,
                          box.hi[along_] == hi, across_panel ? 1 : 0});
    }
    return pieces;
}

std::pair<std::int64_t, std::int64_t> RollingWindow::computed(const Index& row) const {
    const int a = along_, f = across_;
    std::int64_t lo = space_.lo[a], hi = space_.hi[a];
    for (int k : others_)
        if (row[k] < space_.lo[k] || row[k] >= space_.hi[k]) return {lo, lo};
    if (slant_) {
        lo = std::max(lo, row[f] - space_.hi[f] + 1);
        hi = std::min(hi, row[f] - space_.lo[f] + 1);
    } else if (row[f] < space_.lo[f] || row[f] >= space_.hi[f]) {
        return {lo, lo};
    }
    for (const Bound& b : bounds_) {
        std::int64_t value = b.constant + b.coefficients[f] * row[f];
        for (int k : others_) value += b.coefficients[k] * row[k];
        const std::int64_t slope = b.coefficients[a] - slant_ * b.coefficients[f];
        if (slope == 0 && value < 0) return {lo, lo};
        if (slope == 1)
            lo = std::max(lo, -value);
        else if (slope == -1)
            hi = std::min(hi, value + 1);
        else if (slope > 0)
            lo = std::max(lo, ceil_div(-value, slope));
        else if (slope < 0)
            hi = std::min(hi, floor_div(value, -slope) + 1);
    }
    return {lo, std::max(lo, hi)};
}

// f(row) for each row that the array has, those before the block too, in the order of their numbers.
template <class F>
void RollingWindow::for_each_row(const Ring& ring, F f) const {
    if (block_.empty()) return;
    const Box rows{block_.lo - ring.reach, block_.hi};
    Index row = rows.lo;
    row[along_] = 0;
    for (row[across_] = first_plane_ - ring.planes + 1; row[across_] < end_plane_; ++row[across_]) {
        do f(row);
        while (next_point(row, rows, 1u << along_ | 1u << across_));
    }
}

bool RollingWindow::has_row(const Ring& ring, const Index& row) const {
    if (row[across_] < first_plane_ - ring.planes + 1) return false;
    for (int k : others_)
        if (row[k] < block_.lo[k] - ring.reach[k]) return false;
    return true;
}

void RollingWindow::find_segments(Ring& ring, std::span<const Access> places) {
    std::int64_t values = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> wanted;
    for_each_row(ring, [&](const Index& row) {
        ring.first.push_back(static_cast<std::int64_t>(ring.segments.size()));
        const auto [begin, end] = computed(row);
        wanted.clear();
        for (const Access& p : places) {
            if (p.array != ring.array || p.writes) continue;
            Index reader = row - p.offset;
            reader[across_] = row[across_] - plane(p.offset);
            bool inside = slant_ || (reader[across_] >= block_.lo[across_] && reader[across_] < block_.hi[across_]);
            for (int k : others_) inside = inside && reader[k] >= block_.lo[k] && reader[k] < block_.hi[k];
            if (!inside) continue;
            auto [lo, hi] = computed(reader);
            lo = std::max(lo, block_.lo[along_]);
            hi = std::min(hi, block_.hi[along_]);
            if (slant_) {
                lo = std::max(lo, reader[across_] - block_.hi[across_] + 1);
                hi = std::min(hi, reader[across_] - block_.lo[across_] + 1);
            }
            lo += p.offset[along_];
            hi += p.offset[along_];
            if (lo >= hi) continue;
            if (begin == end) {
                wanted.push_back({lo, hi});
                continue;
            }
            if (lo < begin) wanted.push_back({lo, std::min(hi, begin)});
            if (hi > end) wanted.push_back({std::max(lo, end), hi});
        }
        std::ranges::sort(wanted);
        for (const auto& [lo, hi] : wanted) {
            const bool joins = ring.first.back() < static_cast<std::int64_t>(ring.segments.size()) &&
                               ring.segments.back().begin + ring.segments.back().count >= lo;
            if (!joins) ring.segments.push_back({lo, values, 0});
            Segment& s = ring.segments.back();
            const std::int64_t more = std::max<std::int64_t>(hi - s.begin - s.count, 0);
            s.count += static_cast<std::int32_t>(more);
            values += more;
        }
    });
    ring.first.push_back(static_cast<std::int64_t>(ring.segments.size()));
}

std::vector<std::int64_t> RollingWindow::elements(int array) const {
    std::vector<std::int64_t> all;
    const Ring* p = ring(array);
    if (!p) return all;
    std::size_t number = 0;
    for_each_row(*p, [&](const Index& row) {
        for (std::int64_t i = p->first[number]; i < p->first[number + 1]; ++i) {
            const Segment& s = p->segments[i];
            for (std::int32_t q = 0; q < s.count; ++q) {
                Index z = row;
                z[along_] = s.begin + q;
                z[across_] -= slant_ * z[along_];
                all.insert(all.end(), z.begin(), z.end());
            }
        }
        ++number;
    });
    return all;
}

std::int64_t RollingWindow::face_bytes(const Ring& ring) const {
    return (block_.extent(across_) + ring.reach[across_]) * others_count_ * reads_along(ring) * ring.item_bytes;
}

std::int64_t RollingWindow::between_bytes(const Ring& ring) const {
    return tallest_ * others_count_ * reads_along(ring) * ring.item_bytes;
}

std::int64_t RollingWindow::back_bytes(const Ring& ring) const {
    return slant_ ? block_.extent(along_) * others_count_ * reads_across(ring) * ring.item_bytes : 0;
}

std::int64_t RollingWindow::bytes() const {
    std::int64_t n = 0;
    for (const Ring& p : rings_)
        n += window_bytes(p) + (columns() + 1) * face_bytes(p) + 2 * columns() * between_bytes(p) + 2 * back_bytes(p);
    return n;
}

}  // namespace tilewave
