// Tiles of nests that keep planes only: strip after strip of their rows, in each plane after plane.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "execution.hpp"

namespace tilewave {

namespace {

// Where the rows of a strip are for a place of the kernel, or for an array's own elements: in planes that
// follow each other in a ring of memory, or in an array that is there whole.
struct Rows {
    std::intptr_t at = 0;         // of component 0 along the row; of the plane's row that has zeros as other components
    std::int64_t step = 0;        // bytes from element to element
    std::int64_t plane_bytes = 0, ring_bytes = 0;
    std::int32_t plane = 0, planes = 0;
    Index row_bytes;              // along the other dimensions

    // To the next plane.
    void advance() {
        at += plane_bytes;
        if (++plane == planes) {
            plane = 0;
            at -= ring_bytes;
        }
    }
    void advance(std::int64_t by) {
        at += by * plane_bytes;
        if (planes == 0) return;
        const std::int64_t to = plane + by;
        at -= to / planes * ring_bytes;
        plane = static_cast<std::int32_t>(to % planes);
    }
    // The element at component `along` of a row of the plane that has been reached.
    char* element(const std::vector<int>& others, const Index& row, std::int64_t along) const {
        std::intptr_t to = at + along * step;
        for (int k : others) to += row[k] * row_bytes[k];
        return reinterpret_cast<char*>(to);
    }
};

Rows in_planes(const FrontierMemory& memory, std::size_t p, const Frontier::Strip& strip, std::int64_t plane, const Index& offset) {
    const Frontier& f = memory.where();
    const Frontier::Part& part = f.parts()[p];
    Rows r;
    r.step = part.item_bytes;
    r.plane_bytes = part.plane * part.item_bytes;
    r.ring_bytes = part.planes * r.plane_bytes;
    r.planes = part.planes;
    r.plane = static_cast<std::int32_t>(floor_mod(plane + f.plane(offset), part.planes));
    r.at = reinterpret_cast<std::intptr_t>(memory.strip(p, strip)) + r.plane * r.plane_bytes + (offset[f.along()] - strip.lo) * r.step;
    r.row_bytes = Index::filled(f.dims(), 0);
    std::int64_t bytes = part.row * part.item_bytes;
    for (auto k = f.others().rbegin(); k != f.others().rend(); ++k) {
        r.row_bytes[*k] = bytes;
        r.at += (offset[*k] - f.block().lo[*k] + part.reach[*k]) * bytes;
        bytes *= f.extent(part, *k);
    }
    return r;
}

Rows in_array(const Frontier& f, const Binding& b, const Array& array, std::int64_t plane, const Index& offset) {
    Rows r;
    r.step = b.stride_bytes[f.along()] - f.slant() * b.stride_bytes[f.across()];
    r.plane_bytes = b.stride_bytes[f.across()];
    r.row_bytes = b.stride_bytes;
    r.at = reinterpret_cast<std::intptr_t>(b.data) + plane * r.plane_bytes;
    for (int k = 0; k < offset.n; ++k) r.at += (offset[k] - array.storage.lo[k]) * b.stride_bytes[k];
    return r;
}

void copy_item(char* to, const char* from, std::int64_t bytes) {
    switch (bytes) {
        case 1: *to = *from; break;
        case 2: std::memcpy(to, from, 2); break;
        case 4: std::memcpy(to, from, 4); break;
        default: std::memcpy(to, from, 8);
    }
}

// What one array's strip takes over from the strip and the tile before it, and leaves for those after.
class Edges {
public:
    Edges() = default;
    Edges(const FrontierMemory& memory, std::size_t p, int column, const Frontier::Strip& strip, const Box& tile, int turn)
        : memory_(&memory), part_(p), lo_(strip.lo), hi_(strip.hi) {
        const Frontier& f = memory.where();
        const int across = f.across();
        const Frontier::Part& part = f.parts()[p];
        item_ = part.item_bytes;
        slant_ = f.slant();
        begin_ = tile.lo[across];
        end_ = tile.hi[across];
        reads_ = f.reads_along(part);
        line_ = f.across_others() * reads_ * item_;
        if (reads_ > 0 && strip.lo > f.space().lo[f.along()]) {
            in_ = strip.first ? memory.face(p, column, begin_) : memory.between(p, column, strip.number - 1, 0);
            // A face has the lines before the tile too: of the rank before, or of its tile before.
            in_from_ = strip.first && (slant_ || (column == 0 && begin_ == f.block().lo[across])) ? begin_ - f.reads_across(part) : begin_;
            corners_ = slant_ && !strip.first;
        }
        if (reads_ > 0 && strip.hi < f.space().hi[f.along()])
            out_ = strip.last ? memory.face(p, column + 1, begin_) : memory.between(p, column, strip.number, 0);
        if (!slant_) return;
        back_reads_ = f.reads_across(part);
        back_line_ = f.across_others() * back_reads_ * item_;
        before_ = begin_ > f.block().lo[across] ? memory.back(p, 1 - turn, 0) : nullptr;
        after_ = end_ < f.block().hi[across] ? memory.back(p, turn, 0) : nullptr;
    }

    // Before a row is computed. `first`: its element at the strip's beginning; `inside`: the other components are.
    void take(const Index& row, std::int64_t plane, char* first) const {
        if (in_ || corners_)
            for (std::int64_t i = lo_ - reads_; i < lo_; ++i) {
                const std::int64_t j = plane - slant_ * i;
                if (in_ && j >= in_from_ && j < end_)
                    copy_item(first + (i - lo_) * item_, in_ + (j - begin_) * line_ + memory_->others_along(part_, row) + (i - lo_ + reads_) * item_, item_);
                else if (corners_ && before_ && j < begin_ && j >= begin_ - back_reads_)
                    put_back(row, first, i, j);
            }
        if (!before_ || plane < begin_ - back_reads_ + lo_ || plane >= begin_ + hi_ - 1) return;
        for (std::int64_t j = begin_ - back_reads_; j < begin_; ++j)
            if (const std::int64_t i = plane - j; i >= lo_ && i < hi_) put_back(row, first, i, j);
    }
    // The same for rows that the tile's first and last lines do not meet: those from the strip before alone.
    void take_inner(std::int64_t plane, char* first) const {
        if (!in_) return;
        for (std::int64_t i = lo_ - reads_; i < lo_; ++i)
            copy_item(first + (i - lo_) * item_, in_ + (plane - slant_ * i - begin_) * line_ + (i - lo_ + reads_) * item_, item_);
    }
    void leave_inner(std::int64_t plane, const char* first) const {
        if (!out_) return;
        for (std::int64_t i = hi_ - reads_; i < hi_; ++i)
            copy_item(out_ + (plane - slant_ * i - begin_) * line_ + (i - hi_ + reads_) * item_, first + (i - lo_) * item_, item_);
    }
    // After it.
    void leave(const Index& row, std::int64_t plane, const char* first) const {
        if (out_)
            for (std::int64_t i = hi_ - reads_; i < hi_; ++i)
                if (const std::int64_t j = plane - slant_ * i; j >= begin_ && j < end_)
                    copy_item(out_ + (j - begin_) * line_ + memory_->others_along(part_, row) + (i - hi_ + reads_) * item_, first + (i - lo_) * item_, item_);
        if (!after_ || plane < end_ - back_reads_ + lo_ || plane >= end_ + hi_ - 1) return;
        for (std::int64_t j = end_ - back_reads_; j < end_; ++j)
            if (const std::int64_t i = plane - j; i >= lo_ && i < hi_)
                copy_item(after_ + i * back_line_ + memory_->others_across(part_, row) + (j - end_ + back_reads_) * item_, first + (i - lo_) * item_, item_);
    }

private:
    void put_back(const Index& row, char* first, std::int64_t i, std::int64_t j) const {
        copy_item(first + (i - lo_) * item_, before_ + i * back_line_ + memory_->others_across(part_, row) + (j - begin_ + back_reads_) * item_, item_);
    }

    const FrontierMemory* memory_ = nullptr;
    std::size_t part_ = 0;
    std::int64_t lo_ = 0, hi_ = 0, begin_ = 0, end_ = 0;  // of the strip along, of the tile across
    std::int64_t item_ = 0, slant_ = 0, reads_ = 0, line_ = 0, back_reads_ = 0, back_line_ = 0, in_from_ = 0;
    const char* in_ = nullptr;      // before the strip, at the tile's first component across
    char* out_ = nullptr;           // of the strip's end
    const char* before_ = nullptr;  // what the tile before has left; at 0 along
    char* after_ = nullptr;
    bool corners_ = false;          // what is before both strip and tile is in before_
};

// Pointers that go from plane to plane in rings of several lengths: what to add to each, by phase.
class Steps {
public:
    static constexpr int most_phases = 12;
    Steps(const Rows* rows, std::size_t count) : count_(count) {
        for (std::size_t p = 0; p < count; ++p) phases_ = rows[p].planes > 1 ? std::lcm(phases_, rows[p].planes) : phases_;
        if (phases_ > most_phases) return;
        for (std::size_t p = 0; p < count; ++p) {
            Rows r = rows[p];
            for (int k = 0; k < phases_; ++k) {
                const std::intptr_t before = r.at;
                r.advance();
                by_[k][p] = r.at - before;
            }
        }
    }
    bool usable() const { return phases_ <= most_phases; }
    void advance(char** ptr) {
        for (std::size_t p = 0; p < count_; ++p) ptr[p] += by_[phase_][p];
        phase_ = phase_ + 1 == phases_ ? 0 : phase_ + 1;
    }

private:
    std::size_t count_;
    std::int32_t phases_ = 1, phase_ = 0;
    std::ptrdiff_t by_[most_phases][max_places];
};

}  // namespace

// The planes of a tile whose rows of a strip are whole, and meet nothing but the strips beside.
struct Execution::Inner {
    const Frontier& f;
    const Frontier::Strip& strip;
    const Tile& tile;
    std::int64_t first = 0, end = 0;

    Inner(const Frontier& f, const Frontier::Strip& strip, const Tile& tile) : f(f), strip(strip), tile(tile) {
        if (!f.others().empty()) return;
        const std::int64_t lo = tile.box.lo[f.across()], hi = tile.box.hi[f.across()];
        const std::int64_t behind = std::max<std::int64_t>({f.reach()[f.along()], f.reach()[f.across()], 1});
        first = f.slant() ? lo + strip.hi - 1 : lo;
        end = f.slant() ? hi + strip.lo - behind : hi;
        // What is computed is convex: what holds for the first and the last plane holds for those between.
        while (first < end && !whole(first)) first += std::max<std::int64_t>((end - first) / 64, 1);
        while (first < end && !whole(end - 1)) end -= std::max<std::int64_t>((end - first) / 64, 1);
    }
    bool whole(std::int64_t plane) const {
        Index row = tile.box.lo;
        row[f.across()] = plane;
        const auto [lo, hi] = f.computed(row);
        const std::int64_t before = strip.lo > f.space().lo[f.along()] ? f.reach()[f.along()] : 0;
        return lo <= strip.lo - before && strip.hi <= hi;
    }
};

void Execution::compute_planes(int l, const Tile& tile) {
    const Frontier& f = frontier_->where();
    const std::vector<int>& others = f.others();
    const int a = f.along(), across = f.across(), slant = f.slant();
    const std::size_t places = s_.places.size(), parts = f.parts().size();
    char* ptr[max_places];
    std::int64_t step[max_places];
    Rows of_place[max_places], of_part[max_places];
    Edges edges[max_places];
    std::copy(kernel_.tables.begin(), kernel_.tables.end(), ptr + places);
    std::fill(step + places, step + places + kernel_.tables.size(), 0);
    Index along = Index::filled(f.dims(), 0);
    along[a] = 1;
    along[across] = -slant;
    const bool same_loops = s_.loops.n == 0 || s_.loops.is_identity();
    const Index direction = same_loops ? along : s_.loops * along, zero = Index::filled(f.dims(), 0);
    const int column = f.column_of(tile.box.lo[a]);
    const int turn = frontier_->turn(column) ^= 1;
    Box rows = tile.box;
    for (int k : others) rows.lo[k] -= f.reach()[k];
    double begin = options_.poll_period_s > 0 ? now_s() : 0;
    Index x = tile.box.lo;
    for (const Frontier::Strip& strip : f.strips(tile.box.lo[a])) {
        if (slant) {
            rows.lo[across] = tile.box.lo[across] + strip.lo - f.most_planes() + 1;
            rows.hi[across] = tile.box.hi[across] + strip.hi - 1;
        } else if (tile.box.lo[across] == f.block().lo[across]) {
            rows.lo[across] = tile.box.lo[across] - f.most_planes() + 1;  // nobody here computes these, but points read them
        }
        Index row = rows.lo;
        row[a] = 0;
        const Inner inner(f, strip, tile);
        for (std::size_t p = 0; p < parts; ++p) {
            of_part[p] = in_planes(*frontier_, p, strip, row[across], zero);
            edges[p] = Edges(*frontier_, p, column, strip, tile.box, turn);
        }
        for (std::size_t p = 0; p < places; ++p) {
            const Access& place = s_.places[p];
            const Frontier::Part* part = f.part(place.array);
            of_place[p] = part ? in_planes(*frontier_, static_cast<std::size_t>(part - f.parts().data()), strip, row[across], place.offset)
                               : in_array(f, bindings_[place.array], s_.arrays[place.array], row[across], place.offset);
            step[p] = of_place[p].step;
        }
        auto point = [&](std::int64_t i) {
            Index z = row;
            z[a] = i;
            z[across] -= slant * i;
            return same_loops ? z : s_.loops * z;
        };
        auto compute_row = [&](std::int64_t lo, std::int64_t hi) {
            if (kernel_.uses_index) x = point(lo);
            if (const std::int64_t code = kernel_.row(ptr, step, hi - lo, x.begin(), direction.begin(), kernel_.env); code != 0) {
                fail(point(lo + code / 4096), code % 4096);
                return false;
            }
            bool changes = false;
            for (const auto& lanes : reduced_) {
                const Reduced& r = lanes[static_cast<std::size_t>(l)].value;
                const auto p = static_cast<std::size_t>(r.what().place);
                changes = changes || !r.worse(reinterpret_cast<const std::byte*>(ptr[p]), step[p], hi - lo);
            }
            if (changes) reduce(l, ptr, step, hi - lo, point(lo), direction);
            return (paces_[l].left -= hi - lo) > 0 || pace(l, 0, begin);
        };
        while (true) {
            if (row[across] == inner.first && inner.first < inner.end) {
                // Most rows are here: no more is done for each than must be.
                Steps steps(of_place, places), steps_of_parts(of_part, parts);
                if (steps.usable() && steps_of_parts.usable()) {
                    char* first[max_places];
                    for (std::size_t p = 0; p < places; ++p) ptr[p] = reinterpret_cast<char*>(of_place[p].at + strip.lo * step[p]);
                    for (std::size_t p = 0; p < parts; ++p) first[p] = of_part[p].element(others, row, strip.lo);
                    const bool border = strip.lo == f.space().lo[a];
                    for (; row[across] < inner.end; ++row[across]) {
                        for (std::size_t p = 0; p < parts; ++p) {
                            edges[p].take_inner(row[across], first[p]);
                            if (border && f.has_segments(f.parts()[p], strip, row)) frontier_->fill(p, strip, row, first[p]);
                        }
                        if (!compute_row(strip.lo, strip.hi)) return;
                        for (std::size_t p = 0; p < parts; ++p) edges[p].leave_inner(row[across], first[p]);
                        steps.advance(ptr);
                        steps_of_parts.advance(first);
                    }
                    for (std::size_t p = 0; p < places; ++p) of_place[p].advance(inner.end - inner.first);
                    for (std::size_t p = 0; p < parts; ++p) of_part[p].advance(inner.end - inner.first);
                    if (row[across] == rows.hi[across]) break;
                }
            }
            const std::int64_t plane = row[across];
            bool inside = true, in_tile = slant || plane >= tile.box.lo[across];
            for (int k : others) {
                inside = inside && row[k] >= f.space().lo[k];
                in_tile = in_tile && row[k] >= tile.box.lo[k];
            }
            for (std::size_t p = 0; p < parts; ++p) {
                if (!f.has_row(f.parts()[p], row)) continue;
                char* first = of_part[p].element(others, row, strip.lo);
                if (inside) edges[p].take(row, plane, first);
                if (f.has_segments(f.parts()[p], strip, row)) frontier_->fill(p, strip, row, first);
            }
            if (in_tile) {
                auto [lo, hi] = f.computed(row);
                lo = std::max(lo, strip.lo);
                hi = std::min(hi, strip.hi);
                if (slant) {
                    lo = std::max(lo, plane - tile.box.hi[across] + 1);
                    hi = std::min(hi, plane - tile.box.lo[across] + 1);
                }
                if (lo < hi) {
                    if (others.empty())
                        for (std::size_t p = 0; p < places; ++p) ptr[p] = reinterpret_cast<char*>(of_place[p].at + lo * step[p]);
                    else
                        for (std::size_t p = 0; p < places; ++p) ptr[p] = of_place[p].element(others, row, lo);
                    if (!compute_row(lo, hi)) return;
                }
                for (std::size_t p = 0; p < parts; ++p) edges[p].leave(row, plane, of_part[p].element(others, row, strip.lo));
            }
            int k = static_cast<int>(others.size()) - 1;
            for (; k >= 0; --k) {
                const int d = others[static_cast<std::size_t>(k)];
                if (++row[d] < rows.hi[d]) break;
                row[d] = rows.lo[d];
            }
            if (k >= 0) continue;
            if (++row[across] == rows.hi[across]) break;
            for (std::size_t p = 0; p < places; ++p) of_place[p].advance();
            for (std::size_t p = 0; p < parts; ++p) of_part[p].advance();
        }
    }
    if (options_.poll_period_s > 0) paces_[l].spent_s += now_s() - begin;
}

}  // namespace tilewave
