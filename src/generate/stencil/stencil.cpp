#include "generate/stencil/stencil.hpp"

#include <algorithm>

#include "core/tags.hpp"
#include "generate/copy/copy.hpp"
#include "generate/stencil/geometry.hpp"
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
    for (int k = 0; k < box.dims(); ++k) {
        result.lo[k] = box.lo[k] + block_start(box.extent(k), lanes[k], at[k]);
        result.hi[k] = box.lo[k] + block_start(box.extent(k), lanes[k], at[k] + 1);
    }
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
    struct Peer {  // whose messages a lane moves; perhaps this rank, whose halo has copies of its own points
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
    void write_prologue();
    void write_lane(int lane);
    void write_step(int lane, std::int64_t t);
    void receive(int lane, std::int64_t t);
    void post_receives(int lane, std::int64_t t);
    void send(int lane, std::int64_t t);
    void copy_own(int lane, std::int64_t t);
    void finish_sends(int lane, std::int64_t before);
    void compute(int lane, std::int64_t t, const Box& box, bool tiled);
    void compute_tiled(int lane, std::int64_t t, const Box& box);
    void write_helper();
    void signal(int lane, std::int64_t t, int what);
    void await(int lane, int other, std::int64_t t, int what);
    int post(int lane, int peer, bool send, const HaloMessage& m, int tag, std::int64_t t);

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
    NestWork nest;
    nest.space = problem_.space;
    nest.bounds = problem_.conditions();
    nest.order = plan_.order(problem_.dims());
    nest.rows_depend = !plan_.independent_rows(problem_);
    nest.layers_together = plan_.layers_together(problem_);
    nest.loops = IndexMatrix::identity(problem_.dims());
    nest.period = geometry_.period();
    nest.places = problem_.accesses;
    for (Access& p : nest.places) p.offset = problem_.offset(p);
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
        Box box = lane_box(lane, geometry_.reached(rank_, t));
        box.lo[0] = problem_.space.lo[0];
        box.hi[0] = problem_.space.hi[0];
        all = hull(all, box);
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
        peer.gives.assign(static_cast<std::size_t>(lanes_), 0);
        peer.needs = peer.gives;
        // The first exchange, one in the middle and the last are all kinds there are.
        const std::int64_t k = geometry_.halo().steps, depth = k + geometry_.stencil().deepest;
        for (std::int64_t t = begin_ + 1; t < end_; ++t)
            if (geometry_.exchanges(t) && (t - begin_ <= depth + k || end_ - t <= depth + k)) note_lanes(peer, t);
        peers_.push_back(std::move(peer));
    }
    open_.resize(peers_.size());
}

void StencilWriter::note_lanes(Peer& peer, std::int64_t t) {
    const Stencil& stencil = geometry_.stencil();
    for (int l = 0; l < lanes_; ++l) {
        Box mine = all_steps(l), read = mine;
        for (int k = 1; k < mine.dims() && !mine.empty(); ++k) {
            read.lo[k] -= stencil.lo[k];
            read.hi[k] += stencil.hi[k];
        }
        const auto meets = [&](const Box& box, Box region) {
            region.lo[0] = box.lo[0];
            region.hi[0] = box.hi[0];
            return !intersect(box, region).empty();
        };
        for (const HaloMessage& m : geometry_.messages(peer.rank, rank_, t))
            for (const StencilPiece& p : m.pieces)
                if (meets(read, p.region)) peer.needs[l] = 1;
        for (const HaloMessage& m : geometry_.messages(rank_, peer.rank, t))
            for (const StencilPiece& p : m.pieces)
                if (meets(mine, p.sent())) peer.gives[l] = 1;
    }
}

void StencilWriter::find_near_lanes() {
    near_.assign(static_cast<std::size_t>(lanes_), std::vector<char>(static_cast<std::size_t>(lanes_), 0));
    const auto note = [&](int l, int m) {
        near_[l][m] = 1;
        near_[m][l] = 1;
    };
    const Stencil& stencil = geometry_.stencil();
    for (int l = 0; l < lanes_; ++l) {
        Box read = all_steps(l);
        for (int k = 1; k < read.dims() && !read.empty(); ++k) {
            read.lo[k] -= stencil.lo[k];
            read.hi[k] += stencil.hi[k];
        }
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
    std::vector<StencilPiece> own;
    for (const bool send : {false, true})
        for (int a = 0; a < static_cast<int>(problem_.arrays.size()); ++a)
            for (const Peer& peer : peers_) {
                int tag = 0;
                for (const StencilPiece& p :
                     send ? geometry_.initial(a, rank_, peer.rank) : geometry_.initial(a, peer.rank, rank_)) {
                    if (peer.rank == rank_) {
                        if (send) own.push_back(p);
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
    for (const StencilPiece& p : own) out.copy_beside(p.array, p.sent(), p.region);
    for (const int m : received) out.finish_receive(m);
    for (const int m : sent) out.finish_send(m);
    prologue_ = lanes_ > 1 && !s_.lanes[0].empty();
    if (prologue_) out.add(Op::signal, 0, 1);
}

int StencilWriter::post(int lane, int peer, bool send, const HaloMessage& m, int tag, std::int64_t t) {
    LaneBuilder& out = out_[lane];
    (void)t;
    if (m.in_place) {
        const StencilPiece& p = m.pieces[0];
        return send ? out.post_send(peer, tag, p.array, p.sent(), plan_.synchronous, -1)
                    : out.post_receive(peer, tag, p.array, p.region, -1);
    }
    std::vector<LaneBuilder::Piece> pieces;
    for (const StencilPiece& p : m.pieces) pieces.push_back({p.array, send ? p.sent() : p.region, -1});
    const int id = out.add_aggregate(send, peer, tag, pieces, send && plan_.synchronous);
    for (int i = 1; send && i <= static_cast<int>(pieces.size()); ++i) out.add(Op::pack, id + i);
    out.add(send ? Op::post_send : Op::post_recv, id);
    return id;
}

// Those of the exchange before step t.
void StencilWriter::post_receives(int lane, std::int64_t t) {
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        if (peers_[p].lane != lane || peers_[p].rank == rank_) continue;
        int tag = tags::first_face;
        for (const HaloMessage& m : geometry_.messages(peers_[p].rank, rank_, t))
            open_[p].emplace_back(m, post(lane, peers_[p].rank, false, m, tag++, t));
    }
}

// What was posted for step t arrives.
void StencilWriter::receive(int lane, std::int64_t t) {
    LaneBuilder& out = out_[lane];
    bool any = false;
    for (std::size_t p = 0; p < peers_.size(); ++p) {
        if (peers_[p].lane != lane) continue;
        any = true;
        if (peers_[p].rank == rank_) copy_own(lane, t);
        for (const auto& [m, id] : open_[p]) {
            out.add(Op::wait, id);
            if (m.in_place) continue;
            for (int i = 1; i <= static_cast<int>(m.pieces.size()); ++i) out.add(Op::unpack, id + i);
            out.release(id);
        }
        open_[p].clear();
    }
    if (any) signal(lane, t, halo);
    for (const Peer& p : peers_)
        if (p.needs[lane]) await(lane, p.lane, t, halo);
}

void StencilWriter::copy_own(int lane, std::int64_t t) {
    for (const HaloMessage& m : geometry_.messages(rank_, rank_, t))
        for (const StencilPiece& p : m.pieces) out_[lane].copy_beside(p.array, p.sent(), p.region);
}

// Those of the exchange after step t.
void StencilWriter::send(int lane, std::int64_t t) {
    for (const Peer& p : peers_) {
        if (p.lane != lane || p.rank == rank_) continue;
        for (int l = 0; l < lanes_; ++l)
            if (p.gives[l]) await(lane, l, t, border);
        int tag = tags::first_face;
        for (const HaloMessage& m : geometry_.messages(rank_, p.rank, t + 1))
            sent_[lane].push_back({t, post(lane, p.rank, true, m, tag++, t)});
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

// The part of a box that is a lane's.
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
    const Box all = geometry_.reached(rank_, t), mine = lane_box(lane, all);
    Box inner = mine;
    if (next && overlaps && !mine.empty()) {
        const auto [first, rest] = geometry_.border(rank_, t);
        for (const Box& box : first) compute(lane, t, intersect(box, mine), true);
        inner = intersect(rest, mine);
        signal(lane, t, border);
        send(lane, t);
    }
    compute(lane, t, inner, true);
    finish_sends(lane, t);
    if (next && (!overlaps || mine.empty())) {
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

// A lane that only waits, until all others are done: as all that wait, it moves messages meanwhile.
void StencilWriter::write_helper() {
    s_.lanes.emplace_back();
    LaneBuilder helper(s_, lanes_);
    for (int l = 0; l < lanes_; ++l) {
        out_[l].add(Op::signal, 0, count(end_, done));
        helper.add(Op::await, l, count(end_, done));
    }
}

Schedule StencilWriter::write() {
    describe();
    s_.lanes.resize(lanes_);
    for (int l = 0; l < lanes_; ++l) out_.emplace_back(s_, l);
    sent_.resize(lanes_);
    seen_.assign(static_cast<std::size_t>(lanes_), std::vector<int>(static_cast<std::size_t>(lanes_), 0));
    list_peers();
    find_near_lanes();
    write_prologue();
    if (geometry_.block(rank_).empty()) return std::move(s_);
    for (int lane = 0; lane < lanes_; ++lane) write_lane(lane);
    if (plan_.helper && plan_.ranks() > 1) write_helper();
    return std::move(s_);
}

}  // namespace

Schedule stencil(const SweepProblem& problem, const Plan& plan, int rank, int ranks) {
    if (ranks == 0) ranks = plan.ranks();
    problem.validate();
    plan.validate(problem, ranks);
    if (plan.generator != GeneratorKind::stencil)
        throw ConfigError("stencil: a plan for another generator was given; allowed: generator stencil");
    if (rank < 0 || rank >= ranks)
        throw ConfigError("rank " + std::to_string(rank) + " was given; there are " + std::to_string(ranks));
    return StencilWriter(problem, plan, rank, ranks).write();
}

}  // namespace tilewave
