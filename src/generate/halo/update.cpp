#include "generate/halo/update.hpp"

#include <algorithm>
#include <map>

#include "core/concat.hpp"
#include "generate/copy/copy.hpp"
#include "schedule/lane_builder.hpp"

namespace tilewave {

namespace {

// The shifts of an array along its periodic axes by which it may be in halos; first 0, the array itself.
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
using Pieces = std::vector<ArrayPiece>;

class Update {
public:
    Update(std::span<const HaloArray> arrays, int rank, int ranks, std::int64_t piece_bytes)
        : piece_bytes_(piece_bytes) {
        s_.rank = rank;
        s_.ranks = ranks;
        for (const HaloArray& a : arrays)
            add_array(a, static_cast<int>(s_.arrays.size()), Index::filled(a.layout.dims(), 0));
        for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
            const std::vector<Index> shifts = shifts_of(arrays[a].layout);
            first_copy_.push_back(static_cast<int>(s_.arrays.size()) - 1);  // that of the shift 0 is the array itself
            for (std::size_t i = 1; i < shifts.size(); ++i) add_array(arrays[a], a, shifts[i]);
            shifts_.push_back(shifts);
        }
    }

    Schedule write(std::span<const HaloArray> arrays, int axes, int tag) {
        std::map<int, Pieces> sends, receives;  // by how many ranks further, around
        Pieces copies;
        const auto collect = [&](int a, const std::vector<HaloPiece>& pieces, auto into) {
            for (const HaloPiece& p : pieces) into(p).push_back({a, copy_of(a, p), p});
        };
        for (int a = 0; a < static_cast<int>(arrays.size()); ++a) {
            const HaloPieces pieces = halo_pieces(arrays[a].layout, s_.rank, axes);
            const auto by_distance = [&](auto& all) {
                return [&](const HaloPiece& p) -> auto& { return all[(p.peer - s_.rank + s_.ranks) % s_.ranks]; };
            };
            collect(a, pieces.sends, by_distance(sends));
            collect(a, pieces.receives, by_distance(receives));
            collect(a, pieces.copies, [&](const HaloPiece&) -> auto& { return copies; });
        }
        write_steps(arrays, sends, receives, copies, tag);
        for (const auto& [distance, pieces] : receives) add_results(pieces);
        add_results(copies);
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
        for (int k = 0; k < n; ++k) array.view.rows.push_back(Index::unit(n, k));
        s_.arrays.push_back(std::move(array));
    }

    // The array of the schedule whose points `owned` are the piece's points in the halo.
    int copy_of(int a, const HaloPiece& piece) const {
        const std::vector<Index>& shifts = shifts_[a];
        const auto at = std::ranges::find(shifts, piece.halo.lo - piece.owned.lo) - shifts.begin();
        return at == 0 ? a : first_copy_[a] + static_cast<int>(at);
    }

    // In rounds, each of one message from and to every neighbour. A round is unpacked when the next ones are posted.
    void write_steps(std::span<const HaloArray> arrays, const std::map<int, Pieces>& sends,
                     const std::map<int, Pieces>& receives, const Pieces& copies, int tag) {
        std::vector<std::vector<Pieces>> out, in;  // by round: what goes to and comes from each neighbour
        const auto deal = [&](const std::map<int, Pieces>& all, bool send, std::vector<std::vector<Pieces>>& rounds) {
            for (const auto& [distance, pieces] : all) {
                const std::vector<Pieces> messages = messages_of(arrays, pieces, send);
                rounds.resize(std::max(rounds.size(), messages.size()));
                for (std::size_t r = 0; r < messages.size(); ++r) rounds[r].push_back(messages[r]);
            }
        };
        deal(sends, true, out);
        deal(receives, false, in);
        s_.lanes.resize(1);
        LaneBuilder lane(s_, 0);
        const std::size_t rounds = std::max(out.size(), in.size()), ahead = tuning::halo_rounds_ahead;
        std::vector<std::vector<int>> sent(rounds), received(rounds);  // messages, by round
        for (std::size_t r = 0; r < rounds + ahead; ++r) {
            if (r < in.size())
                for (const Pieces& p : in[r]) received[r].push_back(post(lane, false, p, tag));
            if (r < out.size())
                for (const Pieces& p : out[r]) sent[r].push_back(post(lane, true, p, tag));
            if (r == 0)
                for (const ArrayPiece& p : copies) lane.copy_local(p.source, p.piece.owned, p.target, p.piece.owned);
            if (r < ahead) continue;
            for (const int message : received[r - ahead])
                s_.messages[message].pieces ? lane.finish_aggregate(message) : lane.finish_receive(message);
            for (const int message : sent[r - ahead]) lane.finish_send(message);
        }
    }

    // The pieces between this rank and another, put together to messages: the same on both ranks.
    std::vector<Pieces> messages_of(std::span<const HaloArray> arrays, const Pieces& pieces, bool send) const {
        std::vector<Pieces> small, large;
        std::int64_t bytes = 0;  // of the last small one
        for (const ArrayPiece& p : pieces) {
            const HaloArray& a = arrays[p.source];
            const std::int64_t more = p.piece.owned.points() * a.item_bytes;
            if (more <= piece_bytes_) {
                if (small.empty() || bytes + more > piece_bytes_) {
                    small.emplace_back();
                    bytes = 0;
                }
                bytes += more;
                small.back().push_back(p);
                continue;
            }
            const int owner = send ? s_.rank : p.piece.peer, needs = send ? p.piece.peer : s_.rank;
            if (contiguous(p.piece.owned, a.layout.storage(owner)) &&
                contiguous(p.piece.halo, a.layout.storage(needs))) {
                large.push_back({p});
                continue;
            }
            const Index shift = p.piece.halo.lo - p.piece.owned.lo;
            for (const Box& part : chunks(p.piece.owned, a.item_bytes, piece_bytes_)) {
                ArrayPiece some = p;
                some.piece.owned = part;
                some.piece.halo = part.shifted(shift);
                large.push_back({some});
            }
        }
        small.insert(small.end(), large.begin(), large.end());
        return small;
    }

    void add_results(const Pieces& pieces) {
        for (const ArrayPiece& p : pieces) s_.results.push_back({p.target, p.piece.owned, p.source, {p.piece.peer}});
    }

    int post(LaneBuilder& lane, bool send, const Pieces& pieces, int tag) {
        const int peer = pieces.front().piece.peer;
        if (pieces.size() == 1) {
            const ArrayPiece& p = pieces.front();
            return send ? lane.post_send(peer, tag, p.source, p.piece.owned, false, -1)
                        : lane.post_receive(peer, tag, p.target, p.piece.owned, -1);
        }
        std::vector<LaneBuilder::Piece> list;
        for (const ArrayPiece& p : pieces) list.push_back({send ? p.source : p.target, p.piece.owned, -1});
        return lane.post_aggregate(send, peer, tag, list, false);
    }

    Schedule s_;
    std::int64_t piece_bytes_;
    std::vector<std::vector<Index>> shifts_;  // by array
    std::vector<int> first_copy_;             // by array: of its copies in the schedule, one before the first
};

}  // namespace

Schedule halo_update(std::span<const HaloArray> arrays, int rank, int ranks, int axes, int tag,
                     std::int64_t piece_bytes) {
    if (rank < 0 || rank >= ranks) throw ConfigError(concat("halo_update: rank ", rank, " of ", ranks, " was given"));
    if (piece_bytes < 1) throw ConfigError(concat("halo_update: pieces of ", piece_bytes, " bytes were given"));
    for (const HaloArray& a : arrays)
        if (a.layout.ranks() > ranks || a.item_bytes < 1)
            throw ConfigError(concat("halo_update: an array on ", a.layout.ranks(), " ranks with ", a.item_bytes,
                                     " bytes an item was given; allowed: at most ", ranks, " ranks, at least 1 byte"));
    return Update(arrays, rank, ranks, piece_bytes).write(arrays, axes, tag);
}

}  // namespace tilewave
