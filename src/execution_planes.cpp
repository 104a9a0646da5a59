// Tiles of nests that keep planes only: strip after strip of their rows, in each plane after plane.
#include <algorithm>
#include <cstring>

#include "execution.hpp"

namespace tilewave {

namespace {

// Where the rows of a strip are for a place of the kernel, or for an array's own elements: in planes that
// follow each other in a ring of memory, or in an array that is there whole.
struct Rows {
    std::intptr_t at = 0;         // of component 0 along the row; the first row of its plane, or that through z
    std::int64_t step = 0;        // bytes from element to element
    std::int64_t plane_bytes = 0, ring_bytes = 0;
    std::int32_t plane = 0, planes = 1;
    Index row_bytes;              // along the other dimensions

    // To the next plane.
    void advance() {
        at += plane_bytes;
        if (++plane == planes) {
            plane = 0;
            at -= ring_bytes;
        }
    }
    // The element at component `along` of the row through z of the plane that has been reached.
    char* element(const std::vector<int>& others, const Index& z, std::int64_t along) const {
        std::intptr_t to = at + along * step;
        for (int k : others) to += z[k] * row_bytes[k];
        return reinterpret_cast<char*>(to);
    }
};

Rows in_planes(const FrontierMemory& memory, std::size_t p, const Frontier::Strip& strip, const Index& first, const Index& offset) {
    const Frontier& f = memory.where();
    const Frontier::Part& part = f.parts()[p];
    Rows r;
    r.step = part.item_bytes;
    r.plane_bytes = part.plane * part.item_bytes;
    r.ring_bytes = part.planes * r.plane_bytes;
    r.planes = part.planes;
    r.plane = static_cast<std::int32_t>(floor_mod(first[f.across()] + offset[f.across()], part.planes));
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

Rows in_array(const Frontier& f, const Binding& b, const Array& array, const Index& first, const Index& offset) {
    Rows r;
    r.step = b.stride_bytes[f.along()];
    r.plane_bytes = b.stride_bytes[f.across()];
    r.planes = 0;  // no ring
    r.row_bytes = b.stride_bytes;
    r.at = reinterpret_cast<std::intptr_t>(b.data) + first[f.across()] * r.plane_bytes;
    for (int k = 0; k < offset.n; ++k) r.at += (offset[k] - array.storage.lo[k]) * b.stride_bytes[k];
    return r;
}

// What passes between a strip and its neighbours: the elements beside it, plane after plane.
struct Edge {
    const char* in = nullptr;  // before the strip; null: nothing is
    char* out = nullptr;       // of its last elements; null: nobody reads them
    std::int64_t plane = 0;    // bytes to the next
    std::int64_t few = 0;      // bytes of a row
};

// Of a strip at plane z of the rank, which may be before the tile's first.
Edge edge_of(const FrontierMemory& memory, std::size_t p, int column, const Frontier::Strip& strip, const Index& z, std::int64_t first_of_tile) {
    const Frontier& f = memory.where();
    Index row = z;  // the plane's first
    for (int k : f.others()) row[k] = f.space().lo[k];
    Edge e;
    e.few = f.parts()[p].reads * f.parts()[p].item_bytes;
    e.plane = memory.face_plane(p);
    if (e.few == 0) return e;
    auto chars = [](std::byte* b) { return reinterpret_cast<char*>(b); };
    const std::int64_t plane = z[f.across()] - first_of_tile;
    if (strip.lo > f.space().lo[f.along()])
        e.in = chars(strip.first ? memory.face(p, column, row) : memory.between(p, column, strip.number - 1, plane));
    if (strip.hi < f.space().hi[f.along()])
        e.out = chars(strip.last ? memory.face(p, column + 1, row) : memory.between(p, column, strip.number, plane));
    return e;
}

void copy_few(char* to, const char* from, std::int64_t bytes) {
    switch (bytes) {
        case 1: *to = *from; break;
        case 2: std::memcpy(to, from, 2); break;
        case 4: std::memcpy(to, from, 4); break;
        case 8: std::memcpy(to, from, 8); break;
        default: std::memcpy(to, from, static_cast<std::size_t>(bytes));
    }
}

}  // namespace

void Execution::compute_planes(int l, const Tile& tile) {
    const Frontier& f = frontier_->where();
    const std::vector<int>& others = f.others();
    const int a = f.along(), across = f.across();
    const std::size_t places = s_.places.size(), parts = f.parts().size();
    char* ptr[max_places];
    std::int64_t step[max_places];
    Rows of_place[max_places], of_part[max_places];
    Edge edges[max_places];
    std::copy(kernel_.tables.begin(), kernel_.tables.end(), ptr + places);
    std::fill(step + places, step + places + kernel_.tables.size(), 0);
    Index unit = Index::filled(f.dims(), 0);
    unit[a] = 1;
    const bool same_loops = s_.loops.n == 0 || s_.loops.is_identity(), wants_index = kernel_.uses_index || !reduced_.empty();
    const Index direction = same_loops ? unit : s_.loops * unit, zero = Index::filled(f.dims(), 0);
    const int column = f.column_of(tile.box.lo[a]);
    // A rank begins with the planes before its first: nobody here computes them, but points read them.
    Box rows = tile.box;
    if (tile.box.lo[across] == f.block().lo[across]) rows.lo[across] -= f.reach()[across];
    for (int k : others) rows.lo[k] -= f.reach()[k];
    double begin = options_.poll_period_s > 0 ? now_s() : 0;
    Index x = tile.box.lo;
    for (const Frontier::Strip& strip : f.strips(tile.box.lo[a])) {
        Index z = rows.lo;
        z[a] = 0;
        for (std::size_t p = 0; p < parts; ++p) {
            of_part[p] = in_planes(*frontier_, p, strip, z, zero);
            edges[p] = edge_of(*frontier_, p, column, strip, z, tile.box.lo[across]);
        }
        for (std::size_t p = 0; p < places; ++p) {
            const Access& place = s_.places[p];
            const Frontier::Part* part = f.part(place.array);
            of_place[p] = part ? in_planes(*frontier_, static_cast<std::size_t>(part - f.parts().data()), strip, z, place.offset)
                               : in_array(f, bindings_[place.array], s_.arrays[place.array], z, place.offset);
            step[p] = of_place[p].step;
        }
        while (true) {
            // Before the tile's first plane and row nothing is computed here; the rank before may have.
            bool in_tile = z[across] >= tile.box.lo[across], inside = in_tile || (strip.first && column == 0);
            for (int k : others) {
                in_tile = in_tile && z[k] >= tile.box.lo[k];
                inside = inside && z[k] >= f.space().lo[k];
            }
            for (std::size_t p = 0; p < parts; ++p) {
                const Frontier::Part& part = f.parts()[p];
                if (!in_tile && !f.has_row(part, z)) continue;
                char* to = of_part[p].element(others, z, strip.lo);
                if (edges[p].in && inside) copy_few(to - edges[p].few, edges[p].in + frontier_->face_row(p, z), edges[p].few);
                if (f.has_segments(part, strip, z)) frontier_->fill(p, strip, z, to);
            }
            if (in_tile) {
                auto [lo, hi] = f.computed(z);
                lo = std::max(lo, strip.lo);
                hi = std::min(hi, strip.hi);
                if (lo < hi) {
                    if (others.empty())
                        for (std::size_t p = 0; p < places; ++p) ptr[p] = reinterpret_cast<char*>(of_place[p].at + lo * step[p]);
                    else
                        for (std::size_t p = 0; p < places; ++p) ptr[p] = of_place[p].element(others, z, lo);
                    if (wants_index) {
                        x = z;
                        x[a] = lo;
                        if (!same_loops) x = s_.loops * x;
                    }
                    if (const std::int64_t code = kernel_.row(ptr, step, hi - lo, x.begin(), direction.begin(), kernel_.env); code != 0) {
                        z[a] = lo + code / 4096;
                        fail(same_loops ? z : s_.loops * z, code % 4096);
                        return;
                    }
                    if (!reduced_.empty()) reduce(l, ptr, step, hi - lo, x, direction);
                    if (!pace(l, hi - lo, begin)) return;
                }
                for (std::size_t p = 0; p < parts; ++p)
                    if (edges[p].out) copy_few(edges[p].out + frontier_->face_row(p, z), of_part[p].element(others, z, strip.hi) - edges[p].few, edges[p].few);
            }
            int k = static_cast<int>(others.size()) - 1;
            for (; k >= 0; --k) {
                const int d = others[static_cast<std::size_t>(k)];
                if (++z[d] < rows.hi[d]) break;
                z[d] = rows.lo[d];
            }
            if (k >= 0) continue;
            if (++z[across] == rows.hi[across]) break;
            for (std::size_t p = 0; p < places; ++p) of_place[p].advance();
            for (std::size_t p = 0; p < parts; ++p) {
                of_part[p].advance();
                if (edges[p].in) edges[p].in += edges[p].plane;
                if (edges[p].out) edges[p].out += edges[p].plane;
            }
        }
    }
    if (options_.poll_period_s > 0) paces_[l].spent_s += now_s() - begin;
}

}  // namespace tilewave
