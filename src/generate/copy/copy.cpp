#include "generate/copy/copy.hpp"

#include <algorithm>
#include <numeric>

#include "core/concat.hpp"
#include "schedule/lane_builder.hpp"

namespace tilewave {

std::vector<Box> chunks(const Box& region, std::int64_t item_bytes, std::int64_t chunk_bytes) {
    if (region.empty()) return {};
    if (region.points() * item_bytes <= chunk_bytes) return {region};
    int k = 0;
    while (k < region.dims() - 1 && region.extent(k) == 1) ++k;
    const std::int64_t layer = region.points() / region.extent(k) * item_bytes;
    const std::int64_t thick = std::max<std::int64_t>(chunk_bytes / layer, 1);
    std::vector<Box> parts;
    for (std::int64_t lo = region.lo[k]; lo < region.hi[k]; lo += thick) {
        const Box part = region.with(k, lo, std::min(lo + thick, region.hi[k]));
        // A layer over the limit is cut again, along the next dimension.
        if (part.extent(k) == 1 && layer > chunk_bytes && k + 1 < region.dims())
            for (const Box& smaller : chunks(part, item_bytes, chunk_bytes)) parts.push_back(smaller);
        else
            parts.push_back(part);
    }
    return parts;
}

Box part_of(const Box& block, const Index& extents, std::int64_t number) {
    Box part{block.lo, block.lo};
    if (block.empty()) return part;
    for (int k = block.dims() - 1; k >= 0; --k) {
        const std::int64_t along = ceil_div(block.extent(k), extents[k]);
        part.lo[k] += number % along * extents[k];
        part.hi[k] = std::min(part.lo[k] + extents[k], block.hi[k]);
        number /= along;
    }
    return number == 0 ? part : Box{block.lo, block.lo};
}

namespace {

// How an array lies before or after: by a layout, or whole on the first ranks, or one part of each rank's block.
struct Side {
    const Layout& layout;
    int whole = 0;                   // on so many ranks; 0: by the layout
    const Index* extents = nullptr;  // of parts
    std::int64_t number = 0;

    Box owned(int rank) const {
        if (extents) return part_of(layout.owned(rank), *extents, number);
        if (!whole) return layout.owned(rank);
        const Index none = Index::filled(layout.dims(), 0);
        return rank < whole ? layout.whole() : Box{none, none};
    }
    Box storage(int rank) const { return whole || extents ? owned(rank) : layout.storage(rank); }
    /// The ranks that own a point of `box`, ascending.
    std::vector<int> owners(const Box& box) const {
        if (!whole) return layout.owners(box);
        std::vector<int> all(intersect(box, layout.whole()).empty() ? 0 : whole);
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
};

// What each rank owns before and after: all that moving an array needs to know.
struct Move {
    Side before, after;
    std::int64_t item_bytes, chunk_bytes;

    std::vector<Box> pieces(int source, int target) const {
        return chunks(intersect(before.owned(source), after.owned(target)), item_bytes, chunk_bytes);
    }
    /// The rounds, ascending, in which `rank` sends or receives: of the others, only those that own a point of what
    /// it has or gets.
    std::vector<int> rounds(int rank, int ranks) const {
        std::vector<int> result;
        for (const int target : after.owners(before.owned(rank))) result.push_back((target - rank + ranks) % ranks);
        for (const int source : before.owners(after.owned(rank))) result.push_back((rank - source + ranks) % ranks);
        std::ranges::sort(result);
        result.erase(std::unique(result.begin(), result.end()), result.end());
        std::erase(result, 0);
        return result;
    }
};

// Round r moves from every rank to the rank r above it: each rank then has one partner to send to and one to receive
// from. Within a round chunk c is waited for after c + 1 is posted, so at most two chunks a direction are staged.
void write_moves(Schedule& s, const Move& move) {
    s.lanes.resize(1);
    LaneBuilder lane(s, 0);
    for (const Box& box : move.pieces(s.rank, s.rank)) lane.copy_local(0, box, 1, box);
    for (const int round : move.rounds(s.rank, s.ranks)) {
        const int target = (s.rank + round) % s.ranks, source = (s.rank - round + s.ranks) % s.ranks;
        const auto out = move.pieces(s.rank, target), in = move.pieces(source, s.rank);
        std::vector<int> sent, received;
        for (std::size_t c = 0; c < std::max(out.size(), in.size()) + 1; ++c) {
            const int tag = static_cast<int>(8 + c % 16384);
            if (c < in.size()) received.push_back(lane.post_receive(source, tag, 1, in[c], -1));
            if (c < out.size()) sent.push_back(lane.post_send(target, tag, 0, out[c], false, -1));
            if (c >= 1 && c - 1 < in.size()) lane.finish_receive(received[c - 1]);
            if (c >= 1 && c - 1 < out.size()) lane.finish_send(sent[c - 1]);
        }
    }
}

Schedule move(const Side& before, const Side& after, std::int64_t item_bytes, int rank, int ranks,
              std::int64_t chunk_bytes, const Index& before_stride, const Index& after_stride) {
    for (const Side* side : {&before, &after})
        if (rank < 0 || rank >= ranks || side->layout.ranks() > ranks)
            throw ConfigError(concat("a layout on ", side->layout.ranks(), " ranks and rank ", rank, " were given for ",
                                     ranks, " ranks"));
    Schedule s;
    s.rank = rank;
    s.ranks = ranks;
    s.arrays = {{item_bytes, before.storage(rank), before.owned(rank), before_stride},
                {item_bytes, after.storage(rank), after.owned(rank), after_stride}};
    write_moves(s, {before, after, item_bytes, chunk_bytes});
    return s;
}

}  // namespace

Schedule redistribute(const Layout& from, const Layout& to, std::int64_t item_bytes, int rank, int ranks,
                      std::int64_t chunk_bytes, const Index& from_stride, const Index& to_stride) {
    if (from.shape != to.shape)
        throw ConfigError(concat("redistribute: shapes ", from.shape, " and ", to.shape, " differ"));
    return move({from}, {to}, item_bytes, rank, ranks, chunk_bytes, from_stride, to_stride);
}

Schedule gather_schedule(const Layout& from, std::int64_t item_bytes, int rank, int ranks, std::int64_t chunk_bytes,
                         const Index& stride) {
    return move({from}, {from, 1}, item_bytes, rank, ranks, chunk_bytes, stride, {});
}

Schedule spread_schedule(const Layout& from, std::int64_t item_bytes, int rank, int ranks, std::int64_t chunk_bytes,
                         const Index& stride) {
    return move({from}, {from, ranks}, item_bytes, rank, ranks, chunk_bytes, stride, {});
}

Schedule collect_schedule(const Layout& from, const Layout& to, const Index& extents, std::int64_t number,
                          std::int64_t item_bytes, int rank, int ranks, std::int64_t chunk_bytes, const Index& stride) {
    return move({from}, {to, 0, &extents, number}, item_bytes, rank, ranks, chunk_bytes, stride, {});
}

Schedule scatter_schedule(const Layout& to, std::int64_t item_bytes, int rank, int ranks, std::int64_t chunk_bytes,
                          const Index& stride) {
    return move({to, 1}, {to}, item_bytes, rank, ranks, chunk_bytes, {}, stride);
}

}  // namespace tilewave
