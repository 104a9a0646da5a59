#include <algorithm>

#include "generate/pattern/lanes.hpp"

// All ranks send to the right and receive from the left in one common order of positions: groups of
// g chunks; within a group distance d = 0 .. p - 2 of the part's home or origin; within that the
// chunks. What arrives at position q is sent on at q + g, so g chunks travel between the
// arrival of one and its forwarding, and the link is never idle for the sake of one chunk.

namespace tilewave {

namespace {

class Shift {
public:
    Shift(PatternLane& lane, const std::vector<std::vector<Chunk>>& parts, int rank, bool reduce, int buffers,
          std::int64_t buffer_bytes)
        : lane_(lane),
          parts_(parts),
          rank_(rank),
          ranks_(static_cast<int>(parts.size())),
          reduce_(reduce),
          w_(buffers),
          g_(std::max(buffers / 2, 1)),
          in_(lane.buffers(buffers, buffer_bytes)),
          local_(lane.buffers(g_, buffer_bytes)) {
        std::size_t most = 0;
        for (const auto& part : parts) most = std::max(most, part.size());
        const auto g = static_cast<std::size_t>(g_);
        positions_ = static_cast<int>((most + g - 1) / g * g) * (ranks_ - 1);
        sent_.assign(static_cast<std::size_t>(positions_), -1);
        received_ = sent_;
    }

    void write() {
        for (int q = 0; q < std::min(w_, positions_); ++q) post(q);
        for (int at = 0; at < positions_ + g_; ++at) {
            if (at < positions_ && distance(at) == 0) send_local(at);
            if (at >= g_) take(at - g_);
            const int ahead = at + w_ - g_ - 1;
            if (ahead < w_ || ahead >= positions_) continue;
            finish(ahead - w_ + g_);  // the send from the buffer that this receive takes over
            post(ahead);
        }
        for (int at = 0; at < positions_; ++at) finish(at);
    }

private:
    int distance(int at) const { return at / g_ % (ranks_ - 1); }
    /// What `rank` sends at a position; null where that part has no such chunk.
    const Chunk* chunk(int rank, int at) const {
        const int d = distance(at), number = at / g_ / (ranks_ - 1) * g_ + at % g_;
        const int part = ((rank - d - (reduce_ ? 1 : 0)) % ranks_ + ranks_) % ranks_;
        const auto k = static_cast<std::size_t>(number);
        return k < parts_[part].size() ? &parts_[part][k] : nullptr;
    }
    int right() const { return (rank_ + 1) % ranks_; }
    int left() const { return (rank_ - 1 + ranks_) % ranks_; }

    void post(int at) {
        const Chunk* c = chunk(left(), at);
        if (!c) return;
        const int message = lane_.message(false, left(), reduce_ ? c->give : c->get, c->box, in_ + at % w_, reduce_);
        received_[at] = message;
        lane_.step(Op::post_recv, message);
    }
    void finish(int at) {
        if (at < 0 || at >= positions_ || sent_[at] < 0) return;
        lane_.step(Op::wait, sent_[at]);
        sent_[at] = -1;
    }
    void send_local(int at) {
        const Chunk* c = chunk(rank_, at);
        if (!c) return;
        finish(at - g_ * (ranks_ - 1));
        const int buffer = local_ + at % g_;
        const int message = lane_.message(true, right(), c->give, c->box, buffer);
        lane_.pack_and_post(message);
        sent_[at] = message;
        if (reduce_) return;
        if (lane_.staged(message))
            lane_.unpack_to(message, c->get);
        else
            lane_.copy(*c, buffer);
    }
    /// What arrived at a position: joined, sent on, copied out.
    void take(int at) {
        const int message = received_[at];
        if (message < 0) return;
        lane_.step(Op::wait, message);
        if (reduce_) lane_.step(Op::combine, message, combine_array_right);
        const bool home = distance(at) == ranks_ - 2;
        if (!home) {
            sent_[at + g_] = lane_.forward(message, right());
            lane_.step(Op::post_send, sent_[at + g_]);
        }
        if (!reduce_ && lane_.staged(message)) lane_.step(Op::unpack, message);
        if (reduce_ && home) lane_.unpack_to(message, chunk(left(), at)->get);
    }

    PatternLane& lane_;
    const std::vector<std::vector<Chunk>>& parts_;
    int rank_, ranks_;
    bool reduce_;
    int w_, g_, in_, local_, positions_ = 0;
    std::vector<int> sent_, received_;  // message by position; -1: none
};

}  // namespace

void shift(PatternLane& lane, const std::vector<std::vector<Chunk>>& parts, int rank, bool reduce, int buffers,
           std::int64_t buffer_bytes) {
    if (parts.size() > 1) return Shift(lane, parts, rank, reduce, buffers, buffer_bytes).write();
    const int buffer = lane.buffers(1, buffer_bytes);
    for (const Chunk& chunk : parts[0]) lane.copy(chunk, buffer);
}

void exchange_all(PatternLane& lane, const std::vector<std::vector<Chunk>>& parts, int rank, bool reduce, int buffers,
                  std::int64_t buffer_bytes) {
    const int p = static_cast<int>(parts.size()), w = buffers;
    const int in = lane.buffers(w * p, buffer_bytes), out = lane.buffers(w * p, buffer_bytes);
    std::size_t most = 0;
    for (const auto& part : parts) most = std::max(most, part.size());
    auto chunk = [&](int part, std::size_t k) { return k < parts[part].size() ? &parts[part][k] : nullptr; };
    struct Turn {
        std::vector<int> received, sent;
        int packed = -1;  // a send of this rank's part, from which the part is also copied
    };
    std::vector<Turn> turns(most);
    // Peers in the order in which a reduction joins them: rank + 1, rank + 2, ...
    auto post = [&](std::size_t k) {
        const int buffer = static_cast<int>(k % static_cast<std::size_t>(w)) * p;
        for (int d = 1; d < p; ++d) {
            const int from = (rank + d) % p;
            const Chunk* c = chunk(reduce ? rank : from, k);
            if (!c) continue;
            turns[k].received.push_back(
                lane.message(false, from, reduce ? c->give : c->get, c->box, in + buffer + d, reduce));
            lane.step(Op::post_recv, turns[k].received.back());
        }
        for (int d = 1; d < p; ++d) {
            const int to = (rank - d + p) % p;
            const Chunk* c = chunk(reduce ? to : rank, k);
            if (!c) continue;
            if (!reduce && turns[k].packed >= 0) {
                turns[k].sent.push_back(lane.forward(turns[k].packed, to));
                lane.step(Op::post_send, turns[k].sent.back());
                continue;
            }
            turns[k].sent.push_back(lane.message(true, to, c->give, c->box, out + buffer + d));
            lane.pack_and_post(turns[k].sent.back());
            if (!reduce) turns[k].packed = turns[k].sent.back();
        }
    };
    auto finish = [&](std::size_t k) {
        Turn& turn = turns[k];
        const int spare = out + static_cast<int>(k % static_cast<std::size_t>(w)) * p;  // d = 0: no send uses it
        if (const Chunk* c = chunk(rank, k); c && (!reduce || p == 1)) {
            if (turn.packed >= 0 && lane.staged(turn.packed))
                lane.unpack_to(turn.packed, c->get);
            else
                lane.copy(*c, spare);
        }
        for (std::size_t i = 0; i < turn.received.size(); ++i) {
            const int m = turn.received[i];
            lane.step(Op::wait, m);
            if (reduce && i > 0) lane.step(Op::combine, m, turn.received[i - 1]);
            if (!reduce && lane.staged(m)) lane.step(Op::unpack, m);
        }
        if (reduce && !turn.received.empty()) {
            lane.step(Op::combine, turn.received.back(), combine_array_right);
            lane.unpack_to(turn.received.back(), chunk(rank, k)->get);
        }
        for (int m : turn.sent) lane.step(Op::wait, m);
    };
    for (std::size_t k = 0; k < most + static_cast<std::size_t>(w) - 1; ++k) {
        if (k < most) post(k);
        if (k + 1 >= static_cast<std::size_t>(w)) finish(k + 1 - static_cast<std::size_t>(w));
    }
}

}  // namespace tilewave
