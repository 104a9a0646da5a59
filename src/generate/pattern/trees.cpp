#include "generate/pattern/broadcast_rounds.hpp"
#include "generate/pattern/lanes.hpp"

// Order of the steps, as in papers/dawson2000.md. R(k): receive of chunk k, S(k): its sends, in
// buffer k mod w. S(k) follows the wait for R(k) at once and is waited for `late` chunks later, half
// of the buffers, where R(k + w) needs its buffer; so R stands w - late chunks ahead. One of each
// in flight is not enough: a send over TCP is done when the other side has taken it.

namespace tilewave {

namespace {

/// Sends that use one buffer each, waited for late.
class Window {
public:
    Window(PatternLane& lane, std::size_t chunks) : lane_(lane), sends_(chunks) {}
    void posted(std::size_t k, int message) { sends_[k].push_back(message); }
    void finish(std::size_t k) {
        for (int m : sends_[k]) lane_.step(Op::wait, m);
        sends_[k].clear();
    }
    void finish_all() {
        for (std::size_t k = 0; k < sends_.size(); ++k) finish(k);
    }

private:
    PatternLane& lane_;
    std::vector<std::vector<int>> sends_;
};

/// What this rank holds, to `targets`.
void send_local(PatternLane& lane, const std::vector<Chunk>& chunks, const std::vector<int>& targets, int buffers,
                std::int64_t buffer_bytes) {
    const auto w = static_cast<std::size_t>(buffers);
    const int first = lane.buffers(buffers, buffer_bytes);
    Window window(lane, chunks.size());
    for (std::size_t k = 0; k < chunks.size(); ++k) {
        if (k >= w) window.finish(k - w);
        const int m = lane.message(true, targets[0], chunks[k].give, chunks[k].box, first + static_cast<int>(k % w));
        lane.pack_and_post(m);
        window.posted(k, m);
        for (std::size_t t = 1; t < targets.size(); ++t) {
            const int more = lane.forward(m, targets[t]);
            lane.step(Op::post_send, more);
            window.posted(k, more);
        }
    }
    window.finish_all();
}

}  // namespace

void relay(PatternLane& lane, const std::vector<Chunk>& chunks, int parent, const std::vector<int>& children,
           int buffers, std::int64_t buffer_bytes) {
    if (parent < 0) {
        if (!children.empty()) send_local(lane, chunks, children, buffers, buffer_bytes);
        return;
    }
    const std::size_t n = chunks.size(), w = static_cast<std::size_t>(buffers), late = children.empty() ? 0 : w / 2;
    const int first = lane.buffers(buffers, buffer_bytes);
    std::vector<int> received(n);
    auto post = [&](std::size_t k) {
        if (k >= n) return;
        received[k] = lane.message(false, parent, chunks[k].get, chunks[k].box, first + static_cast<int>(k % w));
        lane.step(Op::post_recv, received[k]);
    };
    for (std::size_t k = 0; k < w; ++k) post(k);
    Window window(lane, n);
    for (std::size_t k = 0; k < n; ++k) {
        lane.step(Op::wait, received[k]);
        for (int child : children) {
            const int m = lane.forward(received[k], child);
            lane.step(Op::post_send, m);
            window.posted(k, m);
        }
        if (lane.staged(received[k])) lane.step(Op::unpack, received[k]);
        if (k < late) continue;
        window.finish(k - late);
        post(k - late + w);
    }
    window.finish_all();
}

void collect(PatternLane& lane, const std::vector<Chunk>& chunks, int parent, const std::vector<int>& children,
             bool this_rank_first, int buffers, std::int64_t buffer_bytes) {
    const std::size_t n = chunks.size(), w = static_cast<std::size_t>(buffers), late = parent < 0 ? 0 : w / 2;
    if (children.empty()) {
        if (parent >= 0) return send_local(lane, chunks, {parent}, buffers, buffer_bytes);
        const int buffer = lane.buffers(1, buffer_bytes);
        for (const Chunk& chunk : chunks) lane.copy(chunk, buffer);
        return;
    }
    const int each = static_cast<int>(children.size()), first = lane.buffers(buffers * each, buffer_bytes);
    std::vector<std::vector<int>> received(n);
    auto post = [&](std::size_t k) {
        for (int c = 0; c < each && k < n; ++c) {
            const int buffer = first + static_cast<int>(k % w) * each + c;
            received[k].push_back(lane.message(false, children[c], chunks[k].give, chunks[k].box, buffer, true));
            lane.step(Op::post_recv, received[k].back());
        }
    };
    for (std::size_t k = 0; k < w; ++k) post(k);
    Window window(lane, n);
    for (std::size_t k = 0; k < n; ++k) {
        for (int c = 0; c < each; ++c) {
            lane.step(Op::wait, received[k][c]);
            const int with_array = this_rank_first ? combine_array_left : combine_array_right;
            lane.step(Op::combine, received[k][c], c == 0 ? with_array : received[k][c - 1]);
        }
        if (parent >= 0) {
            const int m = lane.forward(received[k].back(), parent);
            lane.step(Op::post_send, m);
            window.posted(k, m);
        } else {
            lane.unpack_to(received[k].back(), chunks[k].get);
        }
        if (k < late) continue;
        window.finish(k - late);
        post(k - late + w);
    }
    window.finish_all();
}

void exchange_rounds(PatternLane& lane, const std::vector<Chunk>& chunks, int rank, int ranks, int root, int buffers,
                     std::int64_t buffer_bytes) {
    const auto rounds =
        broadcast_rounds(ranks, (rank - root + ranks) % ranks, static_cast<std::int64_t>(chunks.size()));
    const std::size_t w = static_cast<std::size_t>(buffers);
    const int in = lane.buffers(buffers, buffer_bytes), out = lane.buffers(buffers, buffer_bytes);
    auto peer = [&](int v) { return (v + root) % ranks; };
    std::vector<std::size_t> receiving, sending;  // rounds that receive, that send
    for (std::size_t i = 0; i < rounds.size(); ++i) {
        if (rounds[i].receive_block >= 0) receiving.push_back(i);
        if (rounds[i].send_block >= 0) sending.push_back(i);
    }
    // The q-th receive and the q-th send of this rank, in order, in buffer q mod w.
    std::vector<int> received(receiving.size()), sent(sending.size());
    std::size_t posted = 0, finished = 0, sends = 0, waited = 0;
    auto post = [&] {
        const BroadcastRound& r = rounds[receiving[posted]];
        const Chunk& c = chunks[r.receive_block];
        received[posted] = lane.message(false, peer(r.from), c.get, c.box, in + static_cast<int>(posted % w));
        lane.step(Op::post_recv, received[posted++]);
    };
    auto finish = [&] {
        lane.step(Op::wait, received[finished]);
        if (lane.staged(received[finished])) lane.step(Op::unpack, received[finished]);
        ++finished;
        if (posted < receiving.size()) post();
    };
    while (posted < std::min(receiving.size(), w)) post();
    for (std::size_t i : sending) {
        // All that arrives in earlier rounds: the block to send is among it.
        while (finished < receiving.size() && receiving[finished] < i) finish();
        if (sends >= w) lane.step(Op::wait, sent[waited++]);
        const Chunk& c = chunks[rounds[i].send_block];
        sent[sends] = lane.message(true, peer(rounds[i].to), c.give, c.box, out + static_cast<int>(sends % w));
        lane.pack_and_post(sent[sends++]);
    }
    while (finished < receiving.size()) finish();
    while (waited < sends) lane.step(Op::wait, sent[waited++]);
}

}  // namespace tilewave
