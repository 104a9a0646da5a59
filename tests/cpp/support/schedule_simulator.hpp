// Runs the schedules of all ranks on strings, in one thread, in a random order that the transport
// and the lanes could have taken: an opinion on a schedule that owes nothing to the checker.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave::testing {

/// Values are what they were made of: "r0.a1(2, 3)" before the run; joined by combine, so that
/// order, place and origin all show. Compute steps are not run.
class Simulator {
public:
    Simulator(std::span<const Schedule> schedules, unsigned seed);
    /// What went wrong in this order, or nothing: the results are right.
    std::optional<std::string> run();

private:
    struct Request {
        bool posted = false, read = false, delivered = false, rendezvous = false;
        int partner = -1;
        std::vector<std::string> payload;
    };
    struct Rank {
        const Schedule* s = nullptr;
        std::vector<std::vector<std::string>> arrays, buffers;
        std::vector<Request> requests;
        std::vector<std::size_t> next;  // by lane
        std::vector<int> counters;
    };
    struct Error {
        std::string what;
    };

    static std::vector<Index> points(const Box& box);
    static Index strides(const Array& a);
    static std::string given(const Schedule& s, int rank, int array, const Index& point);
    std::string& cell(Rank& r, int array, const Index& point);
    std::string& item(Rank& r, const Message& m, std::int64_t i);
    std::vector<std::string>& buffer(Rank& r, int message);
    bool ready(const Rank& r, const Step& step) const;
    static bool names_something(const Schedule& s, const Step& step);
    void play(Rank& r, int lane, const Step& step);
    void post(Rank& r, int id);
    void combine(Rank& r, const Step& step);
    bool transport_moves();
    void check_results();

    std::mt19937 random_;
    std::vector<Rank> ranks_;
    std::map<std::tuple<int, int, int>, std::deque<int>> sends_, receives_;  // unmatched, by (sender, receiver, tag)
};

inline std::vector<Index> Simulator::points(const Box& box) {
    std::vector<Index> all;
    if (box.empty()) return all;
    Index at = box.lo;
    for (std::int64_t i = 0; i < box.points(); ++i) {
        all.push_back(at);
        for (int k = box.dims() - 1; k >= 0 && ++at[k] == box.hi[k]; --k) at[k] = box.lo[k];
    }
    return all;
}

inline Index Simulator::strides(const Array& a) {
    if (a.stride.n) return a.stride;
    Index s = a.storage.lo;
    std::int64_t step = 1;
    for (int k = s.n - 1; k >= 0; --k) {
        s[k] = step;
        step *= a.storage.extent(k);
    }
    return s;
}

inline std::string Simulator::given(const Schedule& s, int rank, int array, const Index& point) {
    return (s.arrays[array].separate ? "r" + std::to_string(rank) : std::string("all")) + ".a" + std::to_string(array) +
           to_string(point);
}

inline Simulator::Simulator(std::span<const Schedule> schedules, unsigned seed) : random_(seed) {
    for (const Schedule& s : schedules) {
        Rank r;
        r.s = &s;
        for (const Array& a : s.arrays) {
            std::int64_t last = 0;
            const Index stride = strides(a);
            for (int k = 0; k < stride.n; ++k) last += std::max<std::int64_t>(a.storage.extent(k) - 1, 0) * stride[k];
            r.arrays.emplace_back(static_cast<std::size_t>(a.storage.empty() ? 0 : last + 1), "untouched");
        }
        for (std::size_t a = 0; a < s.arrays.size(); ++a)
            for (const Index& point : points(intersect(s.arrays[a].owned, s.arrays[a].storage)))
                cell(r, static_cast<int>(a), point) = given(s, s.rank, static_cast<int>(a), point);
        for (std::int64_t bytes : s.buffers)
            r.buffers.emplace_back(static_cast<std::size_t>(bytes / s.arrays[0].item_bytes), "empty");
        r.requests.resize(s.messages.size());
        // A send may be over as soon as its bytes are copied, or only when the receiver has them.
        for (std::size_t m = 0; m < s.messages.size(); ++m)
            r.requests[m].rendezvous = s.messages[m].synchronous || random_() % 2;
        r.next.resize(s.lanes.size());
        r.counters.resize(s.lanes.size());
        ranks_.push_back(std::move(r));
    }
}

inline std::string& Simulator::cell(Rank& r, int array, const Index& point) {
    const Array& a = r.s->arrays[array];
    const Index stride = strides(a);
    std::int64_t at = 0;
    for (int k = 0; k < stride.n; ++k) at += (point[k] - a.storage.lo[k]) * stride[k];
    auto& memory = r.arrays[array];
    if (at < 0 || at >= static_cast<std::int64_t>(memory.size())) throw Error{"outside array " + std::to_string(array)};
    return memory[static_cast<std::size_t>(at)];
}

inline std::vector<std::string>& Simulator::buffer(Rank& r, int message) {
    const Message& m = r.s->messages[message];
    if (m.buffer < 0) throw Error{"message " + std::to_string(message) + " has no buffer"};
    auto& memory = r.buffers[m.buffer];
    if (static_cast<std::int64_t>(memory.size()) < m.region.points()) throw Error{"outside a buffer"};
    return memory;
}

// What the transport sees: one run of memory from the start of the message on.
inline std::string& Simulator::item(Rank& r, const Message& m, std::int64_t i) {
    if (m.buffer >= 0) return buffer(r, static_cast<int>(&m - r.s->messages.data()))[static_cast<std::size_t>(i)];
    const std::int64_t at = &cell(r, m.array, m.region.lo) - r.arrays[m.array].data() + i;
    if (at >= static_cast<std::int64_t>(r.arrays[m.array].size())) throw Error{"outside an array, by a message"};
    return r.arrays[m.array][static_cast<std::size_t>(at)];
}

inline bool Simulator::ready(const Rank& r, const Step& step) const {
    if (!names_something(*r.s, step)) return true;  // play() says so
    if (step.op == Op::await) return r.counters[step.item] >= step.count;
    if (step.op != Op::wait) return true;
    const Request& request = r.requests[step.item];
    return request.delivered || (r.s->messages[step.item].send && request.read && !request.rendezvous);
}

inline bool Simulator::names_something(const Schedule& s, const Step& step) {
    auto below = [](int i, std::size_t n) { return i >= 0 && static_cast<std::size_t>(i) < n; };
    if (step.op == Op::signal) return true;
    if (step.op == Op::combine && step.count < combine_array_left) return false;
    if (step.op == Op::combine && step.count >= 0 && !below(step.count, s.messages.size())) return false;
    return below(step.item, step.op == Op::await     ? s.lanes.size()
                            : step.op == Op::compute ? s.tiles.size()
                                                     : s.messages.size());
}

inline void Simulator::post(Rank& r, int id) {
    const Message& m = r.s->messages[id];
    Request& request = r.requests[id];
    if (request.posted) throw Error{"posted twice"};
    request.posted = true;
    const std::tuple key = m.send ? std::tuple{r.s->rank, m.peer, m.tag} : std::tuple{m.peer, r.s->rank, m.tag};
    // From now to its wait a receive's target is the transport's, which may leave anything there.
    for (std::int64_t i = 0; !m.send && i < m.region.points(); ++i) item(r, m, i) = "in flight";
    auto& theirs = (m.send ? receives_ : sends_)[key];
    if (theirs.empty()) {
        (m.send ? sends_ : receives_)[key].push_back(id);
        return;
    }
    Rank& peer = ranks_[m.peer];
    request.partner = theirs.front();
    peer.requests[theirs.front()].partner = id;
    theirs.pop_front();
    if (peer.s->messages[request.partner].bytes != m.bytes) throw Error{"sizes differ"};
}

inline void Simulator::combine(Rank& r, const Step& step) {
    const Message& m = r.s->messages[step.item];
    auto& into = buffer(r, step.item);
    std::size_t i = 0;
    for (const Index& point : points(m.region)) {
        if (step.count >= 0)
            into[i] = buffer(r, step.count).at(i) + "+" + into[i];
        else if (step.count == combine_array_right)
            into[i] += "+" + cell(r, m.array, point);
        else
            into[i] = cell(r, m.array, point) + "+" + into[i];
        ++i;
    }
}

inline void Simulator::play(Rank& r, int lane, const Step& step) {
    if (!names_something(*r.s, step)) throw Error{"a step names nothing"};
    switch (step.op) {
        case Op::compute: throw Error{"compute steps are not run"};
        case Op::post_recv:
        case Op::post_send: return post(r, step.item);
        case Op::wait:
        case Op::await: return;
        case Op::signal: r.counters[lane] = step.count; return;
        case Op::combine: return combine(r, step);
        case Op::pack:
        case Op::unpack: break;
    }
    const Message& m = r.s->messages[step.item];
    auto& memory = buffer(r, step.item);
    std::size_t i = 0;
    for (const Index& point : points(m.region)) {
        std::string& at = cell(r, m.array, point);
        (step.op == Op::pack ? memory[i] : at) = step.op == Op::pack ? at : memory[i];
        ++i;
    }
}

// One of the things the transport can do now: copy what a send points to, or bring it to its target.
inline bool Simulator::transport_moves() {
    std::vector<std::pair<Rank*, int>> moves;
    for (Rank& r : ranks_)
        for (std::size_t m = 0; m < r.requests.size(); ++m) {
            const Request& send = r.requests[m];
            if (!r.s->messages[m].send || !send.posted || send.delivered) continue;
            if (send.read ? send.partner >= 0 : send.partner >= 0 || !send.rendezvous)
                moves.push_back({&r, static_cast<int>(m)});
        }
    if (moves.empty()) return false;
    auto [r, id] = moves[random_() % moves.size()];
    const Message& m = r->s->messages[id];
    Request& send = r->requests[id];
    if (!send.read) {
        for (std::int64_t i = 0; i < m.region.points(); ++i) send.payload.push_back(item(*r, m, i));
        send.read = true;
        return true;
    }
    Rank& peer = ranks_[m.peer];
    const Message& to = peer.s->messages[send.partner];
    for (std::int64_t i = 0; i < to.region.points(); ++i)
        item(peer, to, i) = send.payload.at(static_cast<std::size_t>(i));
    send.delivered = peer.requests[send.partner].delivered = true;
    return true;
}

inline void Simulator::check_results() {
    for (Rank& r : ranks_)
        for (const Result& result : r.s->results)
            for (const Index& point : points(result.region)) {
                std::string want;
                for (int rank : result.ranks)
                    want += (want.empty() ? "" : "+") + given(*r.s, rank, result.source, point);
                const std::string& found = cell(r, result.array, point);
                if (found != want)
                    throw Error{"rank " + std::to_string(r.s->rank) + " array " + std::to_string(result.array) +
                                to_string(point) + " holds " + found + ", not " + want};
            }
}

inline std::optional<std::string> Simulator::run() {
    // Some runs have a fast transport, some one that moves only when no lane can.
    const unsigned chances[] = {0, 5, 50, 95};
    const unsigned chance = chances[random_() % 4];
    try {
        while (true) {
            std::vector<std::pair<Rank*, int>> able;
            bool over = true;
            for (Rank& r : ranks_)
                for (std::size_t l = 0; l < r.next.size(); ++l) {
                    if (r.next[l] == r.s->lanes[l].size()) continue;
                    over = false;
                    if (ready(r, r.s->lanes[l][r.next[l]])) able.push_back({&r, static_cast<int>(l)});
                }
            if ((able.empty() || random_() % 100 < chance) && transport_moves()) continue;
            if (over) break;
            if (able.empty()) return "no lane can go on";
            auto [r, lane] = able[random_() % able.size()];
            play(*r, lane, r->s->lanes[lane][r->next[lane]++]);
        }
        for (const Rank& r : ranks_)
            for (const Request& request : r.requests)
                if (request.posted && !request.delivered) return "a message is still under way at the end";
        check_results();
    } catch (const Error& e) {
        return e.what;
    }
    return std::nullopt;
}

}  // namespace tilewave::testing
