#include "generate/halo/halo.hpp"

#include <algorithm>
#include <tuple>

#include "core/concat.hpp"

namespace tilewave {

namespace {

// What a piece is along one axis. A box of pieces is a product of these.
struct Segment {
    std::int64_t peer;  // the other rank's coordinate in the process grid
    std::int64_t owned_lo, owned_hi, halo_lo, halo_hi;
    bool outside;  // the block
};
using Segments = std::array<std::vector<Segment>, max_dims>;

// One axis of a layout, continued in both directions where it wraps: block b of copy c starts at start(b) + c·extent.
struct LayoutAxis {
    const Layout& layout;
    int k;
    std::int64_t extent, lo, hi;
    bool wraps;

    LayoutAxis(const Layout& of, int dimension)
        : layout(of),
          k(dimension),
          extent(of.shape[k]),
          lo(of.halo_lo[k]),
          hi(of.halo_hi[k]),
          wraps(of.wraps.n > 0 && of.wraps[k] != 0) {}
    std::int64_t start(std::int64_t block) const { return layout.start(k, block); }
    // Calls f(block, shift of its copy) for the blocks that hold points of [from, to), upwards.
    template <class F>
    void for_blocks(std::int64_t from, std::int64_t to, F f) const {
        if (!wraps) {
            from = std::max<std::int64_t>(from, 0);
            to = std::min(to, extent);
        }
        while (from < to) {
            const std::int64_t shift = floor_div(from, extent) * extent;
            const std::int64_t block = layout.block_at(k, from - shift);
            f(block, shift);
            from = start(block + 1) + shift;
        }
    }
    Segment within(std::int64_t here) const {
        return {here, start(here), start(here + 1), start(here), start(here + 1), false};
    }
    // What block `here` needs of each block.
    std::vector<Segment> needs(std::int64_t here) const {
        std::vector<Segment> all{within(here)};
        const auto side = [&](std::int64_t from, std::int64_t to) {
            for_blocks(from, to, [&](std::int64_t block, std::int64_t shift) {
                const std::int64_t first = std::max(from, start(block) + shift),
                                   end = std::min(to, start(block + 1) + shift);
                all.push_back({block, first - shift, end - shift, first, end, true});
            });
        };
        side(start(here) - lo, start(here));
        side(start(here + 1), start(here + 1) + hi);
        return all;
    }
    // What each block needs of block `here`: blocks above it for the halo below them, and the reverse.
    std::vector<Segment> gives(std::int64_t here) const {
        std::vector<Segment> all{within(here)};
        const std::int64_t begin = start(here), end = start(here + 1);
        const auto add = [&](std::int64_t block, std::int64_t shift, std::int64_t from, std::int64_t to) {
            from = std::max(from, begin);
            to = std::min(to, end);
            all.push_back({block, from, to, from - shift, to - shift, true});
        };
        for_blocks(end, end + lo, [&](std::int64_t block, std::int64_t shift) {
            const std::int64_t at = start(block) + shift;
            add(block, shift, at - lo, at);
        });
        for_blocks(begin - hi, begin, [&](std::int64_t block, std::int64_t shift) {
            const std::int64_t at = start(block + 1) + shift;
            add(block, shift, at, at + hi);
        });
        return all;
    }
};

// Calls f(piece) for every product of segments that lies outside the block along 1 to `most` axes.
template <class F>
void for_products(const Layout& layout, const Segments& segments, int most, F f) {
    const int n = layout.dims();
    Box choices{Index::filled(n, 0), Index::filled(n, 0)};
    for (int k = 0; k < n; ++k) choices.hi[k] = static_cast<std::int64_t>(segments[k].size());
    Index choice = choices.lo;
    do {
        HaloPiece piece;
        piece.owned = piece.halo = {Index::filled(n, 0), Index::filled(n, 0)};
        std::int64_t peer = 0;
        for (int k = 0; k < n; ++k) {
            const Segment& s = segments[k][choice[k]];
            piece.owned.lo[k] = s.owned_lo;
            piece.owned.hi[k] = s.owned_hi;
            piece.halo.lo[k] = s.halo_lo;
            piece.halo.hi[k] = s.halo_hi;
            piece.axes += s.outside;
            peer = peer * layout.grid[k] + s.peer;
        }
        piece.peer = static_cast<int>(peer);
        if (piece.axes >= 1 && piece.axes <= most) f(piece);
    } while (next_point(choice, choices));
}

void sort(std::vector<HaloPiece>& pieces) {
    std::ranges::sort(pieces, {}, [](const HaloPiece& p) { return std::tuple(p.peer, p.halo.lo.v); });
}

}  // namespace

HaloPieces halo_pieces(const Layout& layout, int rank, int axes) {
    if (rank < 0 || axes < 0)
        throw ConfigError(concat("halo_pieces: rank ", rank, " and ", axes, " axes were given; both must be >= 0"));
    HaloPieces pieces;
    if (layout.owned(rank).empty()) return pieces;
    const Index at = layout.coords(rank);
    Segments needs, gives;
    for (int k = 0; k < layout.dims(); ++k) {
        const LayoutAxis axis(layout, k);
        needs[k] = axis.needs(at[k]);
        gives[k] = axis.gives(at[k]);
    }
    for_products(layout, needs, axes, [&](const HaloPiece& piece) {
        (piece.peer == rank ? pieces.copies : pieces.receives).push_back(piece);
    });
    for_products(layout, gives, axes, [&](const HaloPiece& piece) {
        if (piece.peer != rank) pieces.sends.push_back(piece);
    });
    sort(pieces.sends);
    sort(pieces.receives);
    sort(pieces.copies);
    return pieces;
}

}  // namespace tilewave
