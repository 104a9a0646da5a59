#include "generate/sweep/sweep.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/signs.hpp"
#include "core/tags.hpp"
#include "generate/sweep/geometry.hpp"
#include "problem/nest_work.hpp"
#include "schedule/lane_builder.hpp"

// The order that makes a sweep right, as relations (E precedes F: E happens before F):
//   compute(t - d) precedes compute(t)            for every dependence d,
//       within a lane by its order, between lanes by signal -> await, between ranks by send -> wait;
//   wait(receive m) precedes unpack(m) precedes compute(t) for every tile t that reads m;
//   compute(t) precedes unpack(m) for every tile t that reads what m's memory held before;
//   compute(t) precedes pack(m) precedes post_send(m)      for every face m of t;
//   pack(m) precedes compute(t) for every tile t that overwrites the time step of m;
//   wait(m) precedes the next use of m's buffer.
// Blocking and overlapping differ only in how long after its post a wait stands.

namespace tilewave {

namespace {

struct Incoming {
    int peer = 0;
    Face face;
    bool shared = false;  // read by tiles of more than the owning lane
    int message = -1;
    int aggregate = -1;  // that it comes with
};

// Faces of several tiles that go to a rank together.
struct Aggregate {
    int peer = 0, tag = 0;
    std::vector<LaneBuilder::Piece> pieces = {};
    int message = -1, left = 0;  // pieces that are still to be packed or unpacked
    std::int64_t read_at = 0;    // the last first reader's time
};

// A face that a tile sends; in an aggregate, if `aggregate` is not -1.
struct Outgoing {
    int peer = 0;
    Face face;
    int aggregate = -1;
};

// A message that has been posted.
struct Sent {
    int message;
    std::int64_t read_at;
    bool forward;  // to a rank further on in the loops
};

// One lane while it is being written.
struct Lane {
    int number;
    LaneBuilder out;
    std::vector<int> seen;                     // by other lane: the count of it that was awaited
    std::vector<int> tiles = {};               // in order
    std::vector<std::vector<Sent>> sent = {};  // by tile of the lane: messages that are still to be waited for
    std::size_t first_open = 0;                // tiles before this one have none
};

// One rank's sweep while it is being written.
class SweepWriter {
public:
    SweepWriter(const SweepProblem& problem, const Plan& plan, int rank, int ranks, const std::vector<int>* asked)
        : problem_(problem),
          plan_(plan),
          rank_(rank),
          ranks_(ranks),
          geometry_(problem, plan),
          peers_(asked ? *asked : geometry_.neighbours(rank)),
          tiles_(geometry_.tiles(rank)) {
        std::erase(peers_, rank);
    }

    Schedule write();

private:
    void index_tiles();
    void list_incoming();
    void list_outgoing();
    void count_signals();
    void write_prologue();
    void write_epilogue();
    template <class Boxes, class Tag, class First>
    bool exchange(LaneBuilder& out, Boxes boxes, Tag tag, First before_first);
    void write_lane(int number);
    void post_receives(Lane& lane, std::size_t k);
    void receive(Lane& lane, int tile);
    void compute(Lane& lane, int tile);
    void send(Lane& lane, std::size_t k);
    void finish_sends(Lane& lane, std::size_t n, std::int64_t time);
    bool signals_late(int tile) const;
    int last_piece(int tile) const { return first_slice_[tile] + static_cast<int>(slices_[tile].size()) - 1; }
    int last_signal(int tile) const { return after_first_slice_[tile] + static_cast<int>(slices_[tile].size()) - 1; }
    void await(Lane& lane, int other, int count);
    void await(Lane& lane, const std::vector<int>& counts);

    int tile_at(const Index& local) const { return order_[linear(local)]; }
    std::int64_t linear(const Index& local) const {
        std::int64_t q = 0;
        for (int k = 0; k < local.n; ++k) q = q * count_[k] + local[k];
        return q;
    }
    template <class F>
    void for_each_tile(const Box& locals, F f) const {
        Index p = locals.lo;
        if (locals.empty()) return;
        do f(tile_at(p));
        while (next_point(p, locals));
    }
    std::vector<int> tiles_reading(int array, const Box& region) const;
    void await_former_readers(Lane& lane, const Face& face);

    const SweepProblem& problem_;
    const Plan& plan_;
    int rank_, ranks_;
    SweepGeometry geometry_;
    std::vector<int> peers_;  // ascending; without this rank
    std::vector<PlacedTile> tiles_;
    Index count_;             // tiles of this rank a dimension
    std::vector<int> order_;  // local position -> order
    Schedule s_;
    bool prologue_ = false;
    std::vector<std::vector<Box>> slices_;                // by tile
    std::vector<int> first_slice_;                        // by tile: index into s_.tiles
    std::vector<std::vector<Incoming>> incoming_;         // by tile that owns the receive
    std::vector<std::vector<std::pair<int, int>>> uses_;  // by tile: (owner tile) of shared receives
    std::vector<std::vector<Outgoing>> outgoing_;         // by tile
    std::vector<Aggregate> arriving_, leaving_;
    std::vector<std::vector<int>> aggregates_;            // by tile that owns the receive
    std::vector<int> after_receive_, after_first_slice_;  // by tile: counter values
    std::vector<int> last_count_;                         // by lane
};

void SweepWriter::index_tiles() {
    count_ = Index::filled(problem_.dims(), 0);
    for (const auto& t : tiles_)
        for (int k = 0; k < count_.n; ++k) count_[k] = std::max(count_[k], t.local[k] + 1);
    order_.resize(tiles_.size());
    for (std::size_t q = 0; q < tiles_.size(); ++q) {
        order_[linear(tiles_[q].local)] = static_cast<int>(q);
        slices_.push_back(geometry_.slices(tiles_[q].box));
        first_slice_.push_back(static_cast<int>(s_.tiles.size()));
        for (std::size_t i = 0; i < slices_[q].size(); ++i)
            s_.tiles.push_back({tiles_[q].coord, tiles_[q].time, static_cast<std::int32_t>(i), slices_[q][i]});
    }
    incoming_.resize(tiles_.size());
    outgoing_.resize(tiles_.size());
    aggregates_.resize(tiles_.size());
    uses_.resize(tiles_.size());
    after_receive_.assign(tiles_.size(), 0);
    after_first_slice_.assign(tiles_.size(), 0);
}

// The tiles that read a point of `region`, each once. Not the hull of them: a tile that only lies between others would
// wait for values that depend on it.
std::vector<int> SweepWriter::tiles_reading(int array, const Box& region) const {
    std::vector<int> all;
    for (const Box& reading : geometry_.readers(array, region))
        for_each_tile(geometry_.tiles_meeting(rank_, reading), [&](int t) { all.push_back(t); });
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

void SweepWriter::list_incoming() {
    for (const int peer : peers_) {
        if (tiles_.empty() || !geometry_.sends(peer, rank_)) continue;
        const std::vector<PlacedTile> peer_tiles = geometry_.tiles(peer);
        const std::vector<Face> faces = geometry_.faces(peer, peer_tiles, rank_);
        const std::vector<int> together = geometry_.aggregates(faces, peer_tiles);
        std::vector<int> owners;  // of each aggregate
        const int first = static_cast<int>(arriving_.size());
        for (std::size_t f = 0; f < faces.size(); ++f) {
            const Face& face = faces[f];
            // All of a widened face counts: it must not arrive while a part of it is read.
            const std::vector<int> readers = tiles_reading(face.array, face.region);
            const int owner = readers.front();
            Incoming in{peer, face, false, -1};
            for (const int t : readers) {
                if (tiles_[t].lane == tiles_[owner].lane) continue;
                in.shared = true;
                uses_[t].push_back({tiles_[owner].lane, owner});
            }
            if (together[f] >= 0) {
                in.aggregate = first + together[f];
                if (in.aggregate == static_cast<int>(arriving_.size())) {
                    arriving_.push_back({peer, face.tag});
                    owners.push_back(owner);
                }
                arriving_[in.aggregate].pieces.push_back({face.array, face.region, first_slice_[owner]});
                owners[together[f]] = std::min(owners[together[f]], owner);
                in.message = static_cast<int>(arriving_[in.aggregate].pieces.size());  // in the aggregate, from 1
            }
            incoming_[owner].push_back(in);
        }
        for (std::size_t b = 0; b < owners.size(); ++b) aggregates_[owners[b]].push_back(first + static_cast<int>(b));
    }
}

void SweepWriter::list_outgoing() {
    for (const int peer : peers_) {
        if (!geometry_.sends(rank_, peer)) continue;
        const std::vector<Face> faces = geometry_.faces(rank_, tiles_, peer);
        const std::vector<int> together = geometry_.aggregates(faces, tiles_);
        const int first = static_cast<int>(leaving_.size());
        for (std::size_t f = 0; f < faces.size(); ++f) {
            const Face& face = faces[f];
            outgoing_[face.tile].push_back({peer, face, together[f] < 0 ? -1 : first + together[f]});
            if (together[f] < 0) continue;
            if (first + together[f] == static_cast<int>(leaving_.size())) leaving_.push_back({peer, face.tag});
            Aggregate& b = leaving_.back();
            b.pieces.push_back({face.array, face.region, last_piece(face.tile)});
            b.left = static_cast<int>(b.pieces.size());
            b.read_at = std::max(b.read_at, face.read_at);
        }
    }
}

// Counter values of each lane, before any step is written: awaits look ahead of the lane they name.
void SweepWriter::count_signals() {
    std::vector<int> counter(plan_.lanes(), 0);
    if (prologue_) counter[0] = 1;
    for (std::size_t t = 0; t < tiles_.size(); ++t) {
        int& c = counter[tiles_[t].lane];
        const bool shared = std::ranges::any_of(incoming_[t], [](auto& in) { return in.shared; });
        if (shared) after_receive_[t] = ++c;
        after_first_slice_[t] = c + 1;
        c += static_cast<int>(slices_[t].size());
    }
    last_count_ = std::move(counter);
}

// Receives the boxes(array, source, target) of each peer, and sends it those of this rank. Both ranks list the same
// boxes in the same order. Whether there were any; before the first of them, before_first() is called.
template <class Boxes, class Tag, class First>
bool SweepWriter::exchange(LaneBuilder& out, Boxes boxes, Tag tag, First before_first) {
    bool any = false;
    std::vector<int> received, sent;
    for (const bool send : {false, true})
        for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a)
            for (const int peer : peers_) {
                int number = 0;
                for (const Box& box : send ? boxes(a, rank_, peer) : boxes(a, peer, rank_)) {
                    if (!std::exchange(any, true)) before_first();
                    if (send)
                        sent.push_back(out.post_send(peer, tag(number++), a, box, false, -1));
                    else
                        received.push_back(out.post_receive(peer, tag(number++), a, box, -1));
                }
            }
    for (int m : received) out.finish_receive(m);
    for (int m : sent) out.finish_send(m);
    return any;
}

// Values from before the sweep that are on other ranks: what the written arrays' first points read, and the halo of the
// arrays that are only read. Lane 0 exchanges them, then the sweep starts: only now may what was sent be overwritten.
void SweepWriter::write_prologue() {
    LaneBuilder out(s_, 0);
    const bool any = exchange(
        out, [&](int a, int source, int target) { return geometry_.initial_halo(a, source, target); },
        tags::initial_halo_tag, [] {});
    prologue_ = any && plan_.lanes() > 1;
    if (prologue_) out.add(Op::signal, 0, 1);
}

// An array that is written at an offset from the point has values that one rank computes and another one owns. When all
// lanes are done, lane 0 exchanges them.
void SweepWriter::write_epilogue() {
    LaneBuilder out(s_, 0);
    exchange(
        out, [&](int a, int source, int target) { return geometry_.return_to_owner(a, source, target); },
        [](int number) { return tags::return_home + number % 2048; },
        [&] {
            for (int l = 1; l < plan_.lanes(); ++l)
                if (last_count_[l] > 0) out.add(Op::await, l, last_count_[l]);
        });
}

void SweepWriter::await(Lane& lane, int other, int count) {
    if (other == lane.number || count <= lane.seen[other]) return;
    lane.seen[other] = count;
    lane.out.add(Op::await, other, count);
}

void SweepWriter::await(Lane& lane, const std::vector<int>& counts) {
    for (int l = 0; l < plan_.lanes(); ++l) await(lane, l, counts[l]);
}

// Tiles of other lanes that read what the memory of a face held before it arrives; those of this lane come earlier in
// its order.
void SweepWriter::await_former_readers(Lane& lane, const Face& face) {
    std::vector<int> need(plan_.lanes(), 0);
    for (const Box& reading : geometry_.former_readers(face.array, face.region))
        for_each_tile(geometry_.tiles_meeting(rank_, reading), [&](int t) {
            int& n = need[tiles_[t].lane];
            n = std::max(n, last_signal(t));
        });
    await(lane, need);
}

// The receives of the lane's tile k.
void SweepWriter::post_receives(Lane& lane, std::size_t k) {
    if (k >= lane.tiles.size()) return;
    const int t = lane.tiles[k];
    for (const int b : aggregates_[t]) {
        Aggregate& arriving = arriving_[b];
        arriving.message = lane.out.post_aggregate(false, arriving.peer, arriving.tag, arriving.pieces, false);
        arriving.left = static_cast<int>(arriving.pieces.size());
    }
    for (Incoming& in : incoming_[t])
        if (in.aggregate < 0)
            in.message = lane.out.post_receive(in.peer, in.face.tag, in.face.array, in.face.region, first_slice_[t],
                                               geometry_.staged(in.face.array));
}

// What tile t reads from other ranks arrives, here or in another lane.
void SweepWriter::receive(Lane& lane, int t) {
    for (const int b : aggregates_[t]) lane.out.add(Op::wait, arriving_[b].message);
    for (const Incoming& in : incoming_[t]) {
        await_former_readers(lane, in.face);
        if (in.aggregate < 0) {
            lane.out.finish_receive(in.message);
            continue;
        }
        Aggregate& b = arriving_[in.aggregate];
        lane.out.add(Op::unpack, b.message + in.message);
        if (--b.left == 0) lane.out.release(b.message);
    }
    if (after_receive_[t]) lane.out.add(Op::signal, 0, after_receive_[t]);
    for (const auto& [owner_lane, owner] : uses_[t]) await(lane, owner_lane, after_receive_[owner]);
}

void SweepWriter::compute(Lane& lane, int t) {
    for (std::size_t i = 0; i < slices_[t].size(); ++i) {
        std::vector<int> need(plan_.lanes(), 0);
        for (const Index& d : geometry_.dependences()) {
            const Box read = slices_[t][i].shifted(-d);
            for_each_tile(geometry_.tiles_meeting(rank_, read), [&](int from) {
                // The last slice of `from` that the read reaches.
                std::size_t last = slices_[from].size();
                while (last > 1 && intersect(slices_[from][last - 1], read).empty()) --last;
                int& n = need[tiles_[from].lane];
                n = std::max(n, after_first_slice_[from] + static_cast<int>(last) - 1);
            });
        }
        await(lane, need);
        lane.out.add(Op::compute, first_slice_[t] + static_cast<int>(i));
        if (plan_.lanes() > 1 && !signals_late(t))
            lane.out.add(Op::signal, 0, after_first_slice_[t] + static_cast<int>(i));
    }
}

// Where time is cut over lanes, another lane may overwrite the memory of the tile's faces as soon as the tile is
// signalled: the faces are packed before.
bool SweepWriter::signals_late(int t) const {
    return plan_.factors[0] > 1 && std::ranges::any_of(outgoing_[t], [&](const auto& out) {
               return problem_.arrays[out.face.array].time_buffers > 0;
           });
}

// The faces of the lane's tile k; an aggregate leaves with the last tile that it has a face of.
void SweepWriter::send(Lane& lane, std::size_t k) {
    const int t = lane.tiles[k];
    for (const auto& [peer, face, aggregate] : outgoing_[t]) {
        if (aggregate < 0) {
            const int message = lane.out.post_send(peer, face.tag, face.array, face.region, plan_.synchronous,
                                                   last_piece(t), geometry_.staged(face.array));
            lane.sent[k].push_back({message, face.read_at, geometry_.forward(rank_, peer)});
            continue;
        }
        Aggregate& b = leaving_[aggregate];
        const int pieces = static_cast<int>(b.pieces.size());
        if (b.message < 0) b.message = lane.out.add_aggregate(true, b.peer, b.tag, b.pieces, plan_.synchronous);
        lane.out.add(Op::pack, b.message + 1 + pieces - b.left);
        if (--b.left > 0) continue;
        lane.out.add(Op::post_send, b.message);
        lane.sent[k].push_back({b.message, b.read_at, geometry_.forward(rank_, peer)});
    }
    if (signals_late(t)) lane.out.add(Op::signal, 0, last_signal(t));
}

// Waits for the sends of the lane's first n tiles that are read up to `time`. Two ranks that send to each other do not
// both wait where the reader is the other's next tile.
void SweepWriter::finish_sends(Lane& lane, std::size_t n, std::int64_t time) {
    while (lane.first_open < n && lane.sent[lane.first_open].empty()) ++lane.first_open;
    const auto due = [&](const Sent& m) { return m.read_at < time || (m.read_at == time && m.forward); };
    for (std::size_t i = lane.first_open; i < n; ++i) {
        for (const Sent& m : lane.sent[i])
            if (due(m)) lane.out.finish_send(m.message);
        std::erase_if(lane.sent[i], due);
    }
}

void SweepWriter::write_lane(int number) {
    Lane lane{number, LaneBuilder(s_, number), std::vector<int>(plan_.lanes(), 0)};
    for (std::size_t t = 0; t < tiles_.size(); ++t)
        if (tiles_[t].lane == number) lane.tiles.push_back(static_cast<int>(t));
    const std::size_t n = lane.tiles.size();
    const std::size_t ahead = plan_.schedule == ScheduleKind::blocking ? 0 : std::min<std::size_t>(plan_.lookahead, n);
    lane.sent.resize(n);
    if (prologue_) await(lane, 0, 1);
    for (std::size_t k = 0; k < ahead; ++k) post_receives(lane, k);
    for (std::size_t k = 0; k < n; ++k) {
        post_receives(lane, k + ahead);
        receive(lane, lane.tiles[k]);
        compute(lane, lane.tiles[k]);
        send(lane, k);
        // A send ends `ahead` tiles later (blocking: before the lane's next tile), unless its reader comes after that
        // tile: the reader may need it, and the send would then wait for itself.
        if (k + 1 < n)
            finish_sends(lane, k + 1 - std::min(ahead, k + 1), tiles_[lane.tiles[k + 1]].time);
        else
            finish_sends(lane, n, std::numeric_limits<std::int64_t>::max());
    }
}

Schedule SweepWriter::write() {
    s_.rank = rank_;
    s_.ranks = ranks_;
    NestWork nest = nest_work(problem_, plan_);
    if (deep_halo(problem_, plan_).along >= 0) nest.own = geometry_.block(rank_);
    s_.works.push_back({0, std::move(nest)});
    for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a) s_.arrays.push_back(geometry_.array(a, rank_));
    s_.lanes.resize(plan_.lanes());
    index_tiles();
    write_prologue();
    list_incoming();
    list_outgoing();
    count_signals();
    for (int lane = 0; lane < plan_.lanes(); ++lane) write_lane(lane);
    write_epilogue();
    if (plan_.helper && plan_.ranks() > 1 && !tiles_.empty()) {
        for (int& count : last_count_) ++count;
        add_helper_lane(s_, last_count_);
    }
    return std::move(s_);
}

}  // namespace

Schedule sweep(const SweepProblem& problem, const Plan& plan, int rank, int ranks) {
    ranks = checked_ranks(problem, plan, rank, ranks);
    return SweepWriter(problem, plan, rank, ranks, nullptr).write();
}

Schedule sweep_among(const SweepProblem& problem, const Plan& plan, int rank, int ranks,
                     const std::vector<int>& peers) {
    ranks = checked_ranks(problem, plan, rank, ranks);
    return SweepWriter(problem, plan, rank, ranks, &peers).write();
}

std::vector<int> sweep_neighbours(const SweepProblem& problem, const Plan& plan, int rank) {
    checked_ranks(problem, plan, rank, std::max(plan.ranks(), rank + 1));
    return SweepGeometry(problem, plan).neighbours(rank);
}

std::int64_t sweep_waves(const SweepProblem& problem, const Plan& plan) {
    const auto [first, last] = SweepGeometry(problem, plan).first_and_last_time();
    return last < first ? 0 : last - first + 1;
}

}  // namespace tilewave
