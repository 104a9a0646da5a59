#include "tilewave/engine/layout.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "data/tuning.hpp"

namespace tilewave {

std::int64_t block_start(std::int64_t extent, std::int64_t parts, std::int64_t part) {
    return part * (extent / parts) + std::min(part, extent % parts);
}

Box even_part(const Box& box, int k, std::int64_t parts, std::int64_t part) {
    return box.with(k, box.lo[k] + block_start(box.extent(k), parts, part),
                    box.lo[k] + block_start(box.extent(k), parts, part + 1));
}

std::int64_t block_with(std::int64_t extent, std::int64_t parts, std::int64_t at) {
    const std::int64_t size = extent / parts, larger = extent % parts;  // blocks of size + 1 come first
    if (at < larger * (size + 1)) return at / (size + 1);
    return larger + (at - larger * (size + 1)) / size;
}

std::string to_string(const Weights& weights) {
    std::string text;
    for (const std::int64_t weight : weights) text += (text.empty() ? "" : ", ") + std::to_string(weight);
    return "(" + text + ")";
}

Cut Cut::part(std::int64_t from, std::int64_t by) const {
    Cut other = *this;
    other.first = from;
    other.step = by;
    return other;
}

Cut Cut::moved_by(std::int64_t by) const {
    Cut other = *this;
    other.moved += by;
    return other;
}

Cut Cut::times_of(std::int64_t factor) const {
    Cut other = *this;
    other.times *= factor;
    return other;
}

Cut Cut::in_proportion(const std::vector<std::int64_t>& weights) const {
    __extension__ using Wide = __int128;  // of products of two numbers
    Cut other = *this;
    other.begins.clear();
    if (std::ranges::adjacent_find(weights, std::not_equal_to()) == weights.end()) return other;
    const std::int64_t all = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    std::int64_t before = 0;
    other.begins.push_back(0);
    for (const std::int64_t weight : weights) {
        before += weight;
        other.begins.push_back(static_cast<std::int64_t>((Wide{2} * of * before + all) / (Wide{2} * all)));
    }
    return other;
}

std::int64_t Cut::point_start(std::int64_t parts, std::int64_t block) const {
    return std::ssize(begins) == parts + 1 ? begins[block] : block_start(of, parts, block);
}

std::int64_t Cut::block_of(std::int64_t parts, std::int64_t point) const {
    if (std::ssize(begins) != parts + 1) return block_with(of, parts, point);
    return std::ranges::upper_bound(begins, point) - begins.begin() - 1;
}

std::int64_t Cut::start(std::int64_t parts, std::int64_t c, std::int64_t extent) const {
    if (c <= 0) return 0;
    const std::int64_t block = ceil_div(c, every) * every;
    if (block >= parts) return extent;
    const std::int64_t at = ceil_div(scale * point_start(parts, block), per);
    if (at >= ceil_div(scale * of, per)) return extent;
    return std::clamp<std::int64_t>(times * (ceil_div(shift + at - first, step) + moved), 0, extent);
}

// The last block that begins at the element or before it.
std::int64_t Cut::block_at(std::int64_t parts, std::int64_t at) const {
    const std::int64_t element = first + step * (floor_div(at, times) - moved) - shift;
    const std::int64_t last = ceil_div(scale * of, per) - 1;
    const std::int64_t point = std::min(floor_div(std::min(element, last) * per, scale), of - 1);
    return point < 0 ? 0 : block_of(parts, point) / every * every;
}

Layout::Layout(Index shape_, Index grid_, Index lo, Index hi) : shape(shape_), grid(grid_), halo_lo(lo), halo_hi(hi) {
    if (shape.n < 1 || grid.n != shape.n || lo.n != shape.n || hi.n != shape.n)
        throw ConfigError("layout: shape " + to_string(shape) + ", grid " + to_string(grid) +
                          " and halo widths must have equal dimensions, 1 to " + std::to_string(max_dims));
    for (int k = 0; k < shape.n; ++k) {
        if (shape[k] < 0 || grid[k] < 1 || lo[k] < 0 || hi[k] < 0)
            throw ConfigError("layout: shape " + to_string(shape) + " and halo widths must be >= 0 and grid " +
                              to_string(grid) + " >= 1");
        cuts[k] = Cut::even(shape[k]);
    }
}

Layout Layout::following(const Index& points, const Index& factors) const {
    bool fits = points.n == shape.n && factors.n == shape.n;
    for (int k = 0; fits && k < shape.n; ++k) fits = points[k] >= 0 && factors[k] >= 1;
    if (!fits)
        throw ConfigError("layout: blocks of shape " + to_string(shape) + " cannot follow those of " +
                          to_string(points) + " points, " + to_string(factors) + " to 1");
    Layout other = *this;
    for (int k = 0; k < shape.n; ++k) other.cuts[k] = Cut::even(points[k]).times_of(factors[k]);
    return other;
}

Layout Layout::cut_as(const std::vector<Cut>& others) const {
    Layout other = *this;
    std::ranges::copy(others, other.cuts.begin());
    return other;
}

Layout Layout::without_idle_halos() const {
    Layout other = *this;
    for (int k = 0; k < dims(); ++k)
        if (grid[k] == 1 && !(wraps.n > 0 && wraps[k])) other.halo_lo[k] = other.halo_hi[k] = 0;
    if (ranks() == 1) other.beside_nothing = false;
    return other;
}

bool Layout::same_blocks(const Layout& other) const {
    if (shape != other.shape || grid != other.grid) return false;
    if (cuts == other.cuts) return true;
    for (int k = 0; k < shape.n; ++k)
        for (std::int64_t c = 1; c < grid[k]; ++c)
            if (start(k, c) != other.start(k, c)) return false;
    return true;
}

bool Layout::same_storage(const Layout& other) const {
    return same_blocks(other) && halo_lo == other.halo_lo && halo_hi == other.halo_hi && wraps == other.wraps &&
           beside_nothing == other.beside_nothing;
}

int Layout::ranks() const {
    std::int64_t product = 1;
    for (auto g : grid) product *= g;
    return static_cast<int>(product);
}

Index Layout::coords(int rank) const {
    Index c = grid;
    for (int k = grid.n - 1; k >= 0; --k) {
        c[k] = rank % grid[k];
        rank = static_cast<int>(rank / grid[k]);
    }
    return c;
}

Box Layout::owned(int rank) const {
    Box b{shape, shape};
    if (rank >= ranks()) return b;
    const Index c = coords(rank);
    for (int k = 0; k < shape.n; ++k) {
        b.lo[k] = start(k, c[k]);
        b.hi[k] = start(k, c[k] + 1);
    }
    return b;
}

Box Layout::storage(int rank) const {
    Box b = owned(rank);
    if (rank >= ranks() || (b.empty() && !beside_nothing)) return b;
    for (int k = 0; k < shape.n; ++k) {
        b.lo[k] -= halo_lo[k];
        b.hi[k] += halo_hi[k];
        if (wraps.n > 0 && wraps[k]) continue;
        b.lo[k] = std::max<std::int64_t>(b.lo[k], 0);
        b.hi[k] = std::min(b.hi[k], shape[k]);
    }
    return b;
}

std::vector<int> Layout::owners(const Box& region) const {
    const Box points = intersect(region, whole());
    if (points.empty()) return {};
    Box coords = points;
    for (int k = 0; k < dims(); ++k) {
        coords.lo[k] = block_at(k, points.lo[k]);
        coords.hi[k] = block_at(k, points.hi[k] - 1) + 1;
    }
    std::vector<int> result = ranks_at(coords);
    std::erase_if(result, [this](int rank) { return owned(rank).empty(); });  // between blocks with points
    return result;
}

std::vector<int> Layout::ranks_at(const Box& coords) const {
    std::vector<int> result;
    if (coords.empty()) return result;
    Index c = coords.lo;
    do {
        std::int64_t rank = 0;
        for (int k = 0; k < dims(); ++k) rank = rank * grid[k] + c[k];
        result.push_back(static_cast<int>(rank));
    } while (next_point(c, coords));
    return result;
}

namespace {

// Points on the faces of a largest block, a face once for each cut dimension.
double surface(const Index& shape, const Index& grid) {
    double total = 0;
    for (int k = 0; k < shape.n; ++k) {
        if (grid[k] == 1) continue;
        double face = 1;
        for (int l = 0; l < shape.n; ++l)
            if (l != k) face *= static_cast<double>(ceil_div(shape[l], grid[l]));
        total += face;
        // A dimension with fewer points than ranks leaves ranks idle: worse than any face.
        if (grid[k] > std::max<std::int64_t>(shape[k], 1)) total += 1e18;
    }
    return total;
}

void factor(const Index& shape, const std::vector<bool>& whole, int k, std::int64_t left, Index& grid, Index& best,
            double& least) {
    if (k == shape.n) {
        if (left != 1) return;
        const double s = surface(shape, grid);
        if (s < least) {
            least = s;
            best = grid;
        }
        return;
    }
    for (std::int64_t g = left; g >= 1; --g) {
        if (left % g || (whole[k] && g != 1)) continue;
        grid[k] = g;
        factor(shape, whole, k + 1, left / g, grid, best, least);
    }
}

}  // namespace

Index default_grid(const Index& shape, int ranks, int fixed) {
    std::vector<bool> whole(static_cast<std::size_t>(shape.n), false);
    if (shape.n > 1 && fixed >= 0) whole[fixed] = true;
    return default_grid(shape, ranks, whole);
}

Index default_grid(const Index& shape, int ranks, const std::vector<bool>& whole) {
    Index grid = Index::filled(shape.n, 1), best = grid;
    if (ranks > 1 && std::ranges::find(whole, false) == whole.end())
        throw ConfigError("no loop index of this nest can be cut over " + std::to_string(ranks) +
                          " ranks; allowed is 1 rank");
    double least = std::numeric_limits<double>::infinity();
    factor(shape, whole, 0, ranks, grid, best, least);
    return best;
}

Index row_major_strides(const Box& storage, std::int64_t item_bytes) {
    Index s = storage.lo;
    std::int64_t stride = item_bytes;
    for (int k = storage.dims() - 1; k >= 0; --k) {
        s[k] = stride;
        stride *= storage.extent(k);
    }
    return s;
}

MemoryOrder MemoryOrder::row_major(const Box& storage) {
    const std::int64_t items = storage.points();
    const bool in_step = items >= tuning::least_items_apart && items % tuning::items_apart == 0;
    return {row_major_strides(storage, 1), 0, items + (in_step ? tuning::items_apart : 0)};
}

bool contiguous(const Box& region, const Box& storage) {
    int k = region.dims() - 1;
    while (k >= 0 && region.extent(k) == storage.extent(k)) --k;
    for (--k; k >= 0; --k)
        if (region.extent(k) > 1) return false;
    return true;
}

}  // namespace tilewave
