#include "generate/halo/update.hpp"

#include <algorithm>
#include <map>

#include "schedule/lane_builder.hpp"

namespace tilewave {

namespace {

// By how much the copies of an array along its periodic axes, near enough to be in halos, lie beside it; itself first.
std::vector<Index> shifts_of(const Layout& layout) {
    const int n = layout.dims();
    const Index zero = Index::filled(n, 0);
    Box copies{zero, Index::filled(n, 1)};
    for (int k = 0; k < n; ++k) {
        if (layout.wraps.n == 0 || !layout.wraps[k] || layout.shape[k] == 0) continue;
        copies.lo[k] = -ceil_div(layout.halo_lo[k], layout.shape[k]);
        copies.hi[k] = ceil_div(layout.halo_hi[k], layout.shape[k]) + 1;
    }
    std::vector<Index> shifts{zero};
    Index at = copies.lo;
    do {
        Index by = at;
        for (int k = 0; k < n; ++k) by[k] *= layout.shape[k];
        if (by != zero) shifts.push_back(by);
    } while (next_point(at, copies));
    return shifts;
}

// A piece of one of the arrays, as the schedule's arrays have it: `source` on its owner, `target` where it is halo.
struct ArrayPiece {
    int source, target;
    HaloPiece piece;
};

class Update {
public:
    Update(std::span<const HaloArray> arrays, int rank, int ranks) {
        s_.rank = rank;
        s_.ranks = ranks;
        for (const HaloArray& a : arrays)
            add_array(a, static_cast<int>(s_.arrays.size()), Index::filled(a.layout.dims(), 0));
        for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
            const std::vector<Index> shifts = shifts_of(arrays[static_cast<std::size_t>(a)].layout);
            first_copy_.push_back(static_cast<int>(s_.arrays.size()) - 1);  // that of the shift 0 is the array itself
            for (std::size_t i = 1; i < shifts.size(); ++i)
                add_array(arrays[static_cast<std::size_t>(a)], a, shifts[i]);
            shifts_.push_back(shifts);
        }
    }

    Schedule write(std::span<const HaloArray> arrays, int axes, int tag) {
        std::map<int, std::vector<ArrayPiece>> sends, receives;  // by how many ranks further, around
        std::vector<ArrayPiece> copies;
        const auto collect = [&](int a, const std::vector<HaloPiece>& pieces, auto into) {
            for (const HaloPiece& p : pieces) into(p).push_back({a, copy_of(a, p), p});
        };
        for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
            const HaloPieces pieces = halo_pieces(arrays[static_cast<std::size_t>(a)].layout, s_.rank, axes);
            const auto by_distance = [&](auto& all) {
                return [&](const HaloPiece& p) -> auto& { return all[(p.peer - s_.rank + s_.ranks) % s_.ranks]; };
            };
            collect(a, pieces.sends, by_distance(sends));
            collect(a, pieces.receives, by_distance(receives));
            collect(a, pieces.copies, [&](const HaloPiece&) -> auto& { return copies; });
        }
        s_.lanes.resize(1);
        LaneBuilder lane(s_, 0);
        std::vector<int> received, sent;
        for (const auto& [distance, pieces] : receives) received.push_back(post(lane, false, pieces, tag));
        for (const auto& [distance, pieces] : sends) sent.push_back(post(lane, true, pieces, tag));
        for (const ArrayPiece& p : copies) lane.copy_local(p.source, p.target, p.piece.owned);
        for (const int message : received) finish(lane, message);
        for (const int message : sent) lane.add(Op::wait, message);
        for (const auto& [distance, pieces] : receives)
            for (const ArrayPiece& p : pieces)
                s_.results.push_back({p.target, p.piece.owned, p.source, {p.piece.peer}});
        for (const ArrayPiece& p : copies) s_.results.push_back({p.target, p.piece.owned, p.source, {s_.rank}});
        return std::move(s_);
    }

private:
    // Element z of it is element z + shift of array `memory`.
    void add_array(const HaloArray& a, int memory, const Index& shift) {
        const int n = a.layout.dims();
        const Index back = Index::filled(n, 0) - shift;
        Array array{a.item_bytes, a.layout.storage(s_.rank).shifted(back), a.layout.owned(s_.rank).shifted(back)};
        array.separate = true;
        array.view.memory = memory;
        array.view.shift = shift;
        for (int k = 0; k < n; ++k) {
            array.view.rows.push_back(Index::filled(n, 0));
            array.view.rows.back()[k] = 1;
        }
        s_.arrays.push_back(std::move(array));
    }

    // The array of the schedule whose points `owned` are the piece's points in the halo.
    int copy_of(int a, const HaloPiece& piece) const {
        const std::vector<Index>& shifts = shifts_[static_cast<std::size_t>(a)];
        const auto at = std::find(shifts.begin(), shifts.end(), piece.halo.lo - piece.owned.lo) - shifts.begin();
        return at == 0 ? a : first_copy_[static_cast<std::size_t>(a)] + static_cast<int>(at);
    }

    int post(LaneBuilder& lane, bool send, const std::vector<ArrayPiece>& pieces, int tag) {
        const int peer = pieces.front().piece.peer;
        if (pieces.size() == 1) {
            const ArrayPiece& p = pieces.front();
            return send ? lane.post_send(peer, tag, p.source, p.piece.owned, false, -1)
                        : lane.post_receive(peer, tag, p.target, p.piece.owned, -1);
        }
        std::vector<LaneBuilder::Piece> list;
        for (const ArrayPiece& p : pieces) list.push_back({send ? p.source : p.target, p.piece.owned, -1});
        const int message = lane.add_aggregate(send, peer, tag, list, false);
        for (int i = 1; send && i <= static_cast<int>(list.size()); ++i) lane.add(Op::pack, message + i);
        lane.add(send ? Op::post_send : Op::post_recv, message);
        return message;
    }

    void finish(LaneBuilder& lane, int message) {
        const int pieces = s_.messages[static_cast<std::size_t>(message)].pieces;
        if (pieces == 0) return lane.finish_receive(message);
        lane.add(Op::wait, message);
        for (int i = 1; i <= pieces; ++i) lane.add(Op::unpack, message + i);
    }

    Schedule s_;
    std::vector<std::vector<Index>> shifts_;  // by array
    std::vector<int> first_copy_;             // by array: of its copies in the schedule, one before the first
};

}  // namespace

Schedule halo_update(std::span<const HaloArray> arrays, int rank, int ranks, int axes, int tag) {
    if (rank < 0 || rank >= ranks)
        throw ConfigError("halo_update: rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " was given");
    for (const HaloArray& a : arrays)
        if (a.layout.ranks() > ranks || a.item_bytes < 1)
            throw ConfigError("halo_update: an array on " + std::to_string(a.layout.ranks()) + " ranks with " +
                              std::to_string(a.item_bytes) + " bytes an item was given; allowed: at most " +
                              std::to_string(ranks) + " ranks, at least 1 byte");
    return Update(arrays, rank, ranks).write(arrays, axes, tag);
}

}  // namespace tilewave
