#include "generate/stencil/stencil.hpp"

#include <algorithm>

#include "core/tags.hpp"
#include "generate/copy/copy.hpp"
#include "generate/stencil/geometry.hpp"
#include "problem/nest_work.hpp"
#include "schedule/lane_builder.hpp"

// The order that makes a stencil right. Every rank and lane goes through the time steps one by one; step t of a lane:
//   await step t - 1 of the lanes whose points, halos or messages it shares;
//   halos that were exchanged after step t - 1: wait, unpack; await those that other lanes unpack;
//   post the receives of the exchange after step t: the memory of halos is free then;
//   compute the border, signal; where the border of all lanes that a message is of is done: pack, post_send;
//   compute the inner part; wait for the sends of step t - 1; signal.
// A send of step t ends with step t + 1, and step t + 2 at the earliest computes anew what it sends: an array whose
// halo is exchanged has two time buffers or more.

namespace tilewave {

namespace {

constexpr std::int64_t initial_chunk_bytes = std::int64_t{1} << 26;  // most of a message

// Even parts of a box along each dimension, as many as there are lanes.
Box part(const Box& box, const Index& lanes, const Index& at) {
    Box result = box;
    for (int k = 0; k < box.dims(); ++k) result = even_part(result, k, lanes[k], at[k]);
    return result;
}

class StencilWriter {
public:
    StencilWriter(const SweepProblem& problem, const Plan& plan, int rank, int ranks)
        : problem_(problem),
          plan_(plan),
          rank_(rank),
          geometry_(problem, plan),
          lanes_(plan.lanes()),
          begin_(geometry_.stencil().timed ? problem.space.lo[0] : 0),
          end_(geometry_.stencil().timed ? problem.space.hi[0] : 1) {
        s_.rank = rank;
        s_.ranks = ranks;
    }

    Schedule write();

private:
    struct Peer {  // whose messages a lane moves; perhaps this rank, whose halo has copies of its points
        int rank = 0, lane = 0;
        std::vector<char> gives, needs;  // by lane: it computes some of what is sent, reads some of what comes
    };
    struct Sent {
        std::int64_t time;
        int message;
    };

    void describe();
    void list_peers();
    void find_near_lanes();
    void note_lanes(Peer& peer, std::int64_t t);
    Box lane_box(int lane, const Box& box) const;
    Box all_steps(int lane) const;
    Box read_by(Box points) const;
    void write_prologue();
    void write_lane(int lane);
    void write_step(int lane, std::int64_t t);
    void receive(int lane, std::int64_t t);
    void post_receives(int lane, std::int64_t t);
    void send(int lane, std::int64_t t);
    void copy_periodic(int lane, std::int64_t t);
    void finish_sends(int lane, std::int64_t before);
    void compute(int lane, std::int64_t t, const Box& box, bool tiled);
    void compute_tiled(int lane, std::int64_t t, const Box& box);
    void signal(int lane, std::int64_t t, int what);
    void await(int lane, int other, std::int64_t t, int what);
    int post(int lane, int peer, bool send, const HaloMessage& m, int tag);

    // A lane's counter: three for each step, after 1 for what comes before the first one.
    enum { halo = 0, border = 1, done = 2 };
    int count(std::int64_t t, int what) const { return static_cast<int>(3 * (t - begin_) + what + 2); }

    const SweepProblem& problem_;
    const Plan& plan_;
    int rank_;
    StencilGeometry geometry_;
    int lanes_;
    std::int64_t begin_, end_;
    Schedule s_;
    std::vector<LaneBuilder> out_;
    std::vector<Peer> peers_;
    std::vector<std::vector<char>> near_;                         // by lanes: whether they share points or halos
    std::vector<std::vector<int>> seen_;                          // by lane: of each other lane, what was awaited
    std::vector<std::vector<std::pair<HaloMessage, int>>> open_;  // by peer: receives that are posted
    std::vector<std::vector<Sent>> sent_;                         // by lane
    bool prologue_ = false;
};

void StencilWriter::describe() {
    NestWork nest = nest_work(problem_, plan_);
    nest.period = geometry_.period();
    if (geometry_.halo().most_left() > 0) nest.own = geometry_.block(rank_);
    s_.works.push_back({0, std::move(nest)});
    for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a) s_.arrays.push_back(geometry_.array(a, rank_));
}

Box StencilWriter::lane_box(int lane, const Box& box) const {
    Index at = plan_.factors;
    for (int k = at.n - 1; k >= 0; --k) {
        at[k] = lane % plan_.factors[k];
        lane = static_cast<int>(lane / plan_.factors[k]);
    }
    return box.empty() ? box : part(box, plan_.factors, at);
}

// All points that a lane computes in any step.
Box StencilWriter::all_steps(int lane) const {
    Box all;
    const std::int64_t last = std::min(end_, begin_ + geometry_.halo().steps);
    for (std::int64_t t = begin_; t < last; ++t) {
        const Box box = lane_box(lane, geometry_.reached(rank_, t));
        all = hull(all, box.with(0, problem_.space.lo[0], problem_.space.hi[0]));
    }
    return all.dims() ? all : Box{problem_.space.lo, problem_.space.lo};
}

void StencilWriter::list_peers() {
    std::vector<int> ranks = geometry_.neighbours(rank_);
    if (problem_.wraps()) ranks.push_back(rank_);
    for (const int r : ranks) {
        Peer peer;
        peer.rank = r;
        peer.lane = static_cast<int>(peers_.size()) % lanes_;
        peer.gives.assign(lanes_, 0);
        peer.needs = peer.gives;
        // The first exchange, one in the middle and the last are all kinds there are.
        const std::int64_t k = geometry_.halo().steps, depth = k + geometry_.stencil().deepest;
        for (std::int64_t t = begin_ + 1; t < end_; ++t)
            if (geometry_.exchanges(t) && (t - begin_ <= depth + k || end_ - t <= depth + k)) note_lanes(peer, t);
        peers_.push_back(std::move(peer));
    }
    open_.resize(peers_.size());
}

// The elements that a box of points reads, in any time step.
Box StencilWriter::read_by(Box points) const {
    const Stencil& stencil = geometry_.stencil();
    for (int k = 1; k < points.dims() && !points.empty(); ++k) {
        points.lo[k] -= stencil.lo[k];
        points.hi[k] += stencil.hi[k];
    }
    return points;
}

void StencilWriter::note_lanes(Peer& peer, std::int64_t t) {
    for (int l = 0; l < lanes_; ++l) {
        const Box computed = all_steps(l), read = read_by(computed);
        const auto meets = [&](const Box& box, const Box& region) {
            return !intersect(box, region.with(0, box.lo[0], box.hi[0])).empty();
        };
        for (const HaloMessage& m : geometry_.messages(peer.rank, rank_, t))
            for (const StencilPiece& p : m.pieces)
                if (meets(read, p.region)) peer.needs[l] = 1;
        for (const HaloMessage& m : geometry_.messages(rank_, peer.rank, t))
            for (const StencilPiece& p : m.pieces)
                if (meets(computed, p.sent())) peer.gives[l] = 1;
    }
}

void StencilWriter::find_near_lanes() {
    near_.assign(lanes_, std::vector<char>(lanes_, 0));
    const auto note = [&](int l, int m) {
        near_[l][m] = 1;
        near_[m][l] = 1;
    };
    for (int l = 0; l < lanes_; ++l) {
        const Box read = read_by(all_steps(l));
        for (int m = 0; m < lanes_; ++m)
            if (!intersect(read, all_steps(m)).empty()) note(l, m);
    }
    for (const Peer& p : peers_)
        for (int l = 0; l < lanes_; ++l)
            if (p.gives[l] || p.needs[l]) note(p.lane, l);
}

void StencilWriter::signal(int lane, std::int64_t t, int what) {
    if (lanes_ > 1) out_[lane].add(Op::signal, 0, count(t, what));
}

void StencilWriter::await(int lane, int other, std::int64_t t, int what) {
    int& seen = seen_[lane][other];
    if (lane == other || count(t, what) <= seen) return;
    seen = count(t, what);
    out_[lane].add(Op::await, other, seen);
}

// Values from before the run that are in the halo of what the rank computes, of all arrays: lane 0 gets them.
void StencilWriter::write_prologue() {
    LaneBuilder& out = out_[0];
    std::vector<int> received, sent;
    std::vector<StencilPiece> copies;
    for (const bool send : {false, true})
        for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a)
            for (const Peer& peer : peers_) {
                int tag = 0;
                for (const StencilPiece& p :
                     send ? geometry_.initial(a, rank_, peer.rank) : geometry_.initial(a, peer.rank, rank_)) {
                    if (peer.rank == rank_) {
                        if (send) copies.push_back(p);
                        continue;
                    }
                    for (const Box& box :
                         chunks(send ? p.sent() : p.region, s_.arrays[a].item_bytes, initial_chunk_bytes)) {
                        const int t = tags::initial_halo_tag(tag++);
                        if (send)
                            sent.push_back(out.post_send(peer.rank, t, a, box, false, -1));
                        else
                            received.push_back(out.post_receive(peer.rank, t, a, box, -1));
                    }
                }
            }
    for (const StencilPiece& p : copies) out.copy_local(p.array, p.sent(), p.array, p.region);
    for (const int m : received) out.finish_receive(m);
    for (const int m : sent) out.finish_send(m);
    prologue_ = lanes_ > 1 && !s_.lanes[0].empty();
    if (prologue_) out.add(Op::signal, 0, 1);
}

int StencilWriter::post(int lane, int peer, bool send, const HaloMessage& m, int tag) {
    LaneBuilder& out = out_[lane];
    if (m.in_place) {
        const StencilPiece& p = m.pieces[0];
        return send ? out.post_send(peer, tag, p.array, p.sent(), plan_.synchronous, -1)
                    : out.post_receive(peer, tag, p.array, p.region, -1);
    }
    std::vector<LaneBuilder::Piece> pieces;
    for (const StencilPiece& p : m.pieces) pieces.push_back({p.array, send ? p.sent() : p.region, -1});
    return out.post_aggregate(send, peer, tag, pieces, send && plan_.synchronous);
}

// Those of the exchange before step t.
void StencilWriter::post_receives(int lane, std::int64_t t) {
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        if (peers_[p].lane != lane || peers_[p].rank == rank_) continue;
        int tag = tags::first_face;
        for (const HaloMessage& m : geometry_.messages(peers_[p].rank, rank_, t))
            open_[p].emplace_back(m, post(lane, peers_[p].rank, false, m, tag++));
    }
}

// What was posted for step t arrives.
void StencilWriter::receive(int lane, std::int64_t t) {
    bool any = false;
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        if (peers_[p].lane != lane) continue;
        any = true;
        if (peers_[p].rank == rank_) copy_periodic(lane, t);
        for (const auto& [m, id] : open_[p]) {
            if (m.in_place)
                out_[lane].add(Op::wait, id);
            else
                out_[lane].finish_aggregate(id);
        }
        open_[p].clear();
    }
    if (any) signal(lane, t, halo);
    for (const Peer& p : peers_)
        if (p.needs[lane]) await(lane, p.lane, t, halo);
}

void StencilWriter::copy_periodic(int lane, std::int64_t t) {
    for (const HaloMessage& m : geometry_.messages(rank_, rank_, t))
        for (const StencilPiece& p : m.pieces) out_[lane].copy_local(p.array, p.sent(), p.array, p.region);
}

// Those of the exchange after step t.
void StencilWriter::send(int lane, std::int64_t t) {
    for (const Peer& p : peers_) {
        if (p.lane != lane || p.rank == rank_) continue;
        for (int l = 0; l < lanes_; ++l)
            if (p.gives[l]) await(lane, l, t, border);
        int tag = tags::first_face;
        for (const HaloMessage& m : geometry_.messages(rank_, p.rank, t + 1))
            sent_[lane].push_back({t, post(lane, p.rank, true, m, tag++)});
    }
}

void StencilWriter::finish_sends(int lane, std::int64_t before) {
    auto& sent = sent_[lane];
    for (const Sent& m : sent)
        if (m.time < before) out_[lane].finish_send(m.message);
    std::erase_if(sent, [&](const Sent& m) { return m.time < before; });
}

void StencilWriter::compute_tiled(int lane, std::int64_t t, const Box& box) {
    Index count = Index::filled(box.dims(), 1);
    for (int k = 0; k < count.n; ++k) count[k] = ceil_div(box.extent(k), plan_.tile[k]);
    const Box all{Index::filled(count.n, 0), count};
    if (all.empty()) return;
    Index at = all.lo;
    do compute(lane, t, part(box, count, at), false);
    while (next_point(at, all));
}

// A box in tiles, or as one tile for each part within the space.
void StencilWriter::compute(int lane, std::int64_t t, const Box& box, bool tiled) {
    if (box.empty()) return;
    if (tiled) return compute_tiled(lane, t, box);
    for (const Box& one : geometry_.computed(box)) {
        Tile tile;
        tile.coord = Index::filled(one.dims(), 0);
        for (int k = 0; k < one.dims(); ++k) tile.coord[k] = floor_div(one.lo[k] - problem_.space.lo[k], plan_.tile[k]);
        tile.wave = t - begin_;
        tile.box = one;
        out_[lane].add(Op::compute, static_cast<std::int32_t>(s_.tiles.size()));
        s_.tiles.push_back(tile);
    }
}

void StencilWriter::write_step(int lane, std::int64_t t) {
    for (int l = 0; l < lanes_; ++l)
        if (t > begin_ && near_[lane][l]) await(lane, l, t - 1, done);
    if (geometry_.exchanges(t)) receive(lane, t);
    const bool next = geometry_.exchanges(t + 1), overlaps = plan_.schedule == ScheduleKind::overlapping;
    if (next) post_receives(lane, t + 1);
    const Box all = geometry_.reached(rank_, t), part = lane_box(lane, all);
    Box inner = part;
    if (next && overlaps && !part.empty()) {
        const auto [first, rest] = geometry_.border(rank_, t);
        for (const Box& box : first) compute(lane, t, intersect(box, part), true);
        inner = intersect(rest, part);
        signal(lane, t, border);
        send(lane, t);
    }
    compute(lane, t, inner, true);
    finish_sends(lane, t);
    if (next && (!overlaps || part.empty())) {
        signal(lane, t, border);
        send(lane, t);
        if (!overlaps) finish_sends(lane, t + 1);
    }
    signal(lane, t, done);
}

void StencilWriter::write_lane(int lane) {
    if (prologue_ && lane > 0) out_[lane].add(Op::await, 0, 1);
    for (std::int64_t t = begin_; t < end_; ++t) write_step(lane, t);
    finish_sends(lane, end_);
}

Schedule StencilWriter::write() {
    describe();
    s_.lanes.resize(lanes_);
    for (int l = 0; l < lanes_; ++l) out_.emplace_back(s_, l);
    sent_.resize(lanes_);
    seen_.assign(lanes_, std::vector<int>(lanes_, 0));
    list_peers();
    find_near_lanes();
    write_prologue();
    if (geometry_.block(rank_).empty()) return std::move(s_);
    for (int lane = 0; lane < lanes_; ++lane) write_lane(lane);
    if (plan_.helper && plan_.ranks() > 1) add_helper_lane(s_, std::vector<int>(lanes_, count(end_, done)));
    return std::move(s_);
}

}  // namespace

Schedule stencil(const SweepProblem& problem, const Plan& plan, int rank, int ranks) {
    ranks = checked_ranks(problem, plan, rank, ranks);
    if (plan.generator != GeneratorKind::stencil)
        throw ConfigError("stencil: a plan for another generator was given; allowed: generator stencil");
    return StencilWriter(problem, plan, rank, ranks).write();
}

}  // namespace tilewave
