#include "generate/copy/copy.hpp"

#include <algorithm>
#include <functional>

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
        Box part = region;
        part.lo[k] = lo;
        part.hi[k] = std::min(lo + thick, region.hi[k]);
        // A layer over the limit is cut again, along the next dimension.
        if (part.extent(k) == 1 && layer > chunk_bytes && k + 1 < region.dims())
            for (const Box& smaller : chunks(part, item_bytes, chunk_bytes)) parts.push_back(smaller);
        else
            parts.push_back(part);
    }
    return parts;
}

namespace {

// What each rank owns before and after: all that moving an array needs to know.
struct Move {
    std::function<Box(int)> before, after;
    int ranks;
    std::int64_t item_bytes, chunk_bytes;

    std::vector<Box> pieces(int source, int target) const {
        return chunks(intersect(before(source), after(target)), item_bytes, chunk_bytes);
    }
};

// Round r moves from every rank to the rank r above it: each rank then has one partner to send to
// and one to receive from. Within a round chunk c is waited for after c + 1 is posted, so at most
// two chunks a direction are staged.
void write_moves(Schedule& s, const Move& move) {
    s.lanes.resize(1);
    LaneBuilder lane(s, 0);
    for (const Box& box : move.pieces(s.rank, s.rank)) lane.copy_local(0, 1, box);
    for (int round = 1; round < s.ranks; ++round) {
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

Box nothing(int dims) {
    return {Index::filled(dims, 0), Index::filled(dims, 0)};
}

Schedule start(const Layout& from, int rank, int ranks) {
    if (rank < 0 || rank >= ranks || from.ranks() > ranks)
        throw ConfigError("a layout on " + std::to_string(from.ranks()) + " ranks and rank " + std::to_string(rank) +
                          " were given for " + std::to_string(ranks) + " ranks");
    Schedule s;
    s.rank = rank;
    s.ranks = ranks;
    return s;
}

}  // namespace

Schedule redistribute(const Layout& from, const Layout& to, std::int64_t item_bytes, int rank, int ranks,
                      std::int64_t chunk_bytes, const Index& from_stride, const Index& to_stride) {
    if (from.shape != to.shape)
        throw ConfigError("redistribute: shapes " + to_string(from.shape) + " and " + to_string(to.shape) + " differ");
    start(to, rank, ranks);
    Schedule s = start(from, rank, ranks);
    s.arrays = {{item_bytes, from.storage(rank), from.owned(rank), from_stride},
                {item_bytes, to.storage(rank), to.owned(rank), to_stride}};
    write_moves(s, {[&](int r) { return from.owned(r); }, [&](int r) { return to.owned(r); }, s.ranks, item_bytes,
                    chunk_bytes});
    return s;
}

Schedule gather_schedule(const Layout& from, std::int64_t item_bytes, int rank, int ranks, std::int64_t chunk_bytes,
                         const Index& stride) {
    Schedule s = start(from, rank, ranks);
    auto whole = [&](int r) { return r == 0 ? from.whole() : nothing(from.dims()); };
    s.arrays = {{item_bytes, from.storage(rank), from.owned(rank), stride}, {item_bytes, whole(rank), whole(rank)}};
    write_moves(s, {[&](int r) { return from.owned(r); }, whole, s.ranks, item_bytes, chunk_bytes});
    return s;
}

Schedule scatter_schedule(const Layout& to, std::int64_t item_bytes, int rank, int ranks, std::int64_t chunk_bytes,
                          const Index& stride) {
    Schedule s = start(to, rank, ranks);
    auto whole = [&](int r) { return r == 0 ? to.whole() : nothing(to.dims()); };
    s.arrays = {{item_bytes, whole(rank), whole(rank)}, {item_bytes, to.storage(rank), to.owned(rank), stride}};
    write_moves(s, {whole, [&](int r) { return to.owned(r); }, s.ranks, item_bytes, chunk_bytes});
    return s;
}

}  // namespace tilewave
