#include "tilewave/engine/timeline.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <tuple>

#include "core/concat.hpp"
#include "schedule/parts_count.hpp"
#include "schedule/repeat.hpp"

namespace tilewave {

Event event_of(const Schedule& s, int lane, std::size_t index, double begin_s, double end_s) {
    const Step& step = s.lanes[lane][index];
    Event e{};
    e.rank = s.rank;
    e.lane = lane;
    e.step = static_cast<std::int32_t>(index);
    e.op = static_cast<std::int32_t>(step.op);
    e.peer = e.tag = -1;
    e.wave = -1;
    std::fill_n(e.tile, max_dims, -1);
    e.begin_s = begin_s;
    e.end_s = end_s;
    int tile = -1;
    if (step.op == Op::compute) {
        tile = step.item;
    } else if (step.op != Op::signal && step.op != Op::await) {
        const Message& m = s.messages[step.item];
        e.peer = m.peer;
        e.tag = m.tag;
        e.send = m.send;
        e.bytes = m.bytes;
        tile = m.tile;
    }
    if (tile >= 0) {
        const Tile& where = s.tiles[tile];
        for (int k = 0; k < where.coord.n; ++k) e.tile[k] = static_cast<std::int32_t>(where.coord[k]);
        e.slice = where.slice;
        e.wave = where.wave;
    }
    return e;
}

Timeline timeline_of(const Schedule& s, const Recording& r) {
    Timeline t;
    t.ranks = s.ranks;
    t.dims = 1;
    for (const Tile& tile : s.tiles) t.dims = std::max(t.dims, tile.coord.n);
    std::size_t events = 0;
    for (const auto& ends : r.ends) events += ends.size();
    t.events.reserve(events);
    for (std::size_t l = 0; l < r.ends.size(); ++l) {
        const Repetitions repetitions(s, l, r.times);
        for (std::size_t i = 0; i + 1 < r.ends[l].size(); ++i)
            t.events.push_back(event_of(s, static_cast<int>(l), repetitions.step(static_cast<std::int64_t>(i)),
                                        r.begins.empty() ? r.ends[l][i] : r.begins[l][i], r.ends[l][i + 1]));
    }
    t.requests = r.requests;
    return t;
}

std::vector<LaneSplit> Timeline::split() const {
    std::vector<LaneSplit> result;
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> places;
    std::size_t at = 0;
    const Event* last = nullptr;
    for (const Event& e : events) {
        if (!last || last->rank != e.rank || last->lane != e.lane) {
            const std::int32_t thread = thread_of(e.rank, e.lane);
            const auto [place, fresh] = places.try_emplace({e.rank, thread}, result.size());
            if (fresh) result.push_back({e.rank, thread, 0, 0, 0, 0, 0});
            at = place->second;
        }
        last = &e;
        result[at].add(static_cast<Op>(e.op), e.end_s - e.begin_s);
    }
    return result;
}

void LaneSplit::add(Op op, double seconds) {
    total_s += seconds;
    switch (op) {
        case Op::compute: compute_s += seconds; break;
        case Op::pack:
        case Op::unpack:
        case Op::combine: pack_s += seconds; break;
        case Op::wait:
        case Op::await: wait_s += seconds; break;
        default: post_s += seconds;
    }
}

namespace {

// Requests of one sender, receiver and tag in posting order: the order in which MPI matches them.
using Key = std::tuple<int, int, int>;
Key key_of(const Request& r) {
    return r.send ? Key{r.rank, r.peer, r.tag} : Key{r.peer, r.rank, r.tag};
}

struct Pair {
    const Request* send = nullptr;
    const Request* receive = nullptr;
};

// In the order of their keys.
std::vector<Pair> match(std::span<const Request> requests) {
    using Keyed = std::tuple<Key, double, const Request*>;
    std::vector<Keyed> sends, receives;
    for (const Request& r : requests) (r.send ? sends : receives).emplace_back(key_of(r), r.posted_s, &r);
    for (auto* side : {&sends, &receives}) std::sort(side->begin(), side->end());
    std::vector<Pair> pairs;
    pairs.reserve(std::min(sends.size(), receives.size()));
    auto end_of = [](const std::vector<Keyed>& all, std::size_t from) {
        std::size_t to = from;
        while (to < all.size() && std::get<0>(all[to]) == std::get<0>(all[from])) ++to;
        return to;
    };
    for (std::size_t s = 0, r = 0; s < sends.size() && r < receives.size();) {
        const Key &a = std::get<0>(sends[s]), &b = std::get<0>(receives[r]);
        const std::size_t s_end = a <= b ? end_of(sends, s) : s, r_end = b <= a ? end_of(receives, r) : r;
        for (std::size_t i = 0; s + i < s_end && r + i < r_end; ++i)
            pairs.push_back({std::get<2>(sends[s + i]), std::get<2>(receives[r + i])});
        s = s_end;
        r = r_end;
    }
    return pairs;
}

struct RankTimes {
    double lanes = 0, compute = 0;  // those that compute
    struct Side {
        double transfer = 0, exposed = 0;
        std::vector<std::pair<double, double>> travelling;
    };
    Side sides[2];  // receives, sends
};

// Seconds that lie in one interval at least.
double covered(std::vector<std::pair<double, double>> intervals) {
    std::ranges::sort(intervals);
    double seconds = 0, until = -std::numeric_limits<double>::infinity();
    for (const auto& [begin, end] : intervals) {
        seconds += std::max(end - std::max(begin, until), 0.0);
        until = std::max(until, end);
    }
    return seconds;
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> Timeline::messages() const {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    const auto number = [&](const Request* r) { return static_cast<std::size_t>(r - requests.data()); };
    for (const Pair& p : match(requests)) all.emplace_back(number(p.send), number(p.receive));
    return all;
}

double Timeline::overlap_ratio(double latency_s, double byte_s) const {
    const auto transfer_s = [&](int, int, std::int64_t n) { return latency_s + static_cast<double>(n) * byte_s; };
    return tilewave::overlap_ratio(ranks, split(), events, requests, transfer_s);
}

double overlap_ratio(int ranks, std::span<const LaneSplit> lanes, std::span<const Event> events,
                     std::span<const Request> requests, const TransferTime& transfer_s) {
    std::vector<RankTimes> times(ranks);
    for (const LaneSplit& s : lanes) {
        if (s.compute_s <= 0) continue;  // a helper's waits keep nobody from computing
        times[s.rank].lanes += 1;
        times[s.rank].compute += s.compute_s;
    }
    std::vector<Key> keys;
    std::vector<double> posted;  // of keys[i], by both sides
    for (const Pair& p : match(requests)) {
        for (const Request* r : {p.receive, p.send}) {
            auto& side = times[r->rank].sides[r->send];
            side.transfer += transfer_s(p.send->rank, p.receive->rank, p.send->bytes);
            side.travelling.emplace_back(p.send->posted_s, p.receive->completed_s);
        }
        keys.push_back(key_of(*p.send));
        posted.push_back(std::max(p.send->posted_s, p.receive->posted_s));
    }
    // Waits on either side that were seen of the messages of one key, counted at its first.
    std::vector<std::size_t> waited[2]{std::vector<std::size_t>(keys.size()), std::vector<std::size_t>(keys.size())};
    for (const Event& e : events) {
        if (static_cast<Op>(e.op) != Op::wait || e.peer < 0) continue;
        const Key key = e.send ? Key{e.rank, e.peer, e.tag} : Key{e.peer, e.rank, e.tag};
        const auto first = static_cast<std::size_t>(std::ranges::lower_bound(keys, key) - keys.begin());
        if (first == keys.size() || keys[first] != key) continue;
        const std::size_t i = first + waited[e.send != 0][first]++;
        if (i >= keys.size() || keys[i] != key) continue;
        times[e.rank].sides[e.send].exposed += std::max(e.end_s - std::max(e.begin_s, posted[i]), 0.0);
    }
    double hidden = 0, hideable = 0;
    for (RankTimes& r : times)
        for (auto& side : r.sides) {
            if (r.lanes == 0 || side.travelling.empty()) continue;
            // Clocks of two ranks may differ by more than a message between them takes.
            const double travelling = covered(std::move(side.travelling));
            const double transfer = travelling > 0 ? std::min(side.transfer, travelling) : side.transfer;
            const double most = std::min(transfer, r.compute / r.lanes);
            hideable += most;
            hidden += std::clamp(transfer - side.exposed / r.lanes, 0.0, most);
        }
    return hideable > 0 ? hidden / hideable : std::numeric_limits<double>::quiet_NaN();
}

namespace {

class JsonEvents {
public:
    template <class... Args>
    void add(const char* format, Args... args) {
        char line[640];
        const int n = std::snprintf(line, sizeof line, format, args...);
        if (!text_.empty()) text_ += ",\n";
        text_.append(line, static_cast<std::size_t>(std::min<int>(n, sizeof line - 1)));
    }
    std::string finish() { return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + text_ + "\n]}\n"; }

private:
    std::string text_;
};

std::string tile_text(const Event& e, int dims) {
    std::string s;
    for (int k = 0; k < dims && e.tile[0] >= 0; ++k) s += concat((k ? "," : ""), e.tile[k]);
    return s;
}

}  // namespace

std::string Timeline::chrome_json() const {
    JsonEvents out;
    int last_rank = -1, last_lane = -1;
    for (const Event& e : events) {
        if (e.rank != last_rank)
            out.add(R"({"ph":"M","name":"process_name","pid":%d,"args":{"name":"rank %d"}})", e.rank, e.rank);
        if (e.rank != last_rank || e.lane != last_lane)
            out.add(R"({"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":"lane %d"}})", e.rank, e.lane,
                    e.lane);
        last_rank = e.rank;
        last_lane = e.lane;
        const std::string tile = tile_text(e, dims);
        const char* op = to_string(static_cast<Op>(e.op));
        out.add(R"({"ph":"X","cat":"step","name":"%s%s%s","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{"step":%d,)"
                R"("tile":"%s","slice":%d,"wave":%lld,"bytes":%lld,"peer":%d,"tag":%d}})",
                op, tile.empty() ? "" : " ", tile.c_str(), e.rank, e.lane, e.begin_s * 1e6,
                std::max(0.0, e.end_s - e.begin_s) * 1e6, e.step, tile.c_str(), e.slice, static_cast<long long>(e.wave),
                static_cast<long long>(e.bytes), e.peer, e.tag);
    }
    int id = 0;
    for (const Request& r : requests) {
        const char* name = r.send ? "send" : "receive";
        out.add(R"({"ph":"b","cat":"pending","name":"%s","id":"p%d","pid":%d,"tid":%d,"ts":%.3f,)"
                R"("args":{"peer":%d,"tag":%d,"bytes":%lld}})",
                name, id, r.rank, r.lane, r.posted_s * 1e6, r.peer, r.tag, static_cast<long long>(r.bytes));
        out.add(R"({"ph":"e","cat":"pending","name":"%s","id":"p%d","pid":%d,"tid":%d,"ts":%.3f})", name, id++, r.rank,
                r.lane, r.completed_s * 1e6);
    }
    int flow = 0;
    for (const Pair& p : match(requests)) {
        out.add(R"({"ph":"s","cat":"message","name":"message","id":%d,"pid":%d,"tid":%d,"ts":%.3f})", flow,
                p.send->rank, p.send->lane, p.send->posted_s * 1e6);
        out.add(R"({"ph":"f","bp":"e","cat":"message","name":"message","id":%d,"pid":%d,"tid":%d,"ts":%.3f})", flow++,
                p.receive->rank, p.receive->lane, std::max(p.receive->completed_s, p.send->posted_s) * 1e6);
    }
    return out.finish();
}

Parts parts(const Timeline& timeline) {
    if (timeline.events.empty()) return {};
    if (!timeline.threads.empty()) {  // a thread's steps one after another, whatever lanes they are of
        Timeline by_thread;
        by_thread.events = timeline.events;
        for (Event& e : by_thread.events) e.lane = timeline.thread_of(e.rank, e.lane);
        std::ranges::stable_sort(by_thread.events, [](const Event& a, const Event& b) {
            return std::tie(a.rank, a.lane, a.begin_s, a.end_s) < std::tie(b.rank, b.lane, b.begin_s, b.end_s);
        });
        return parts(by_thread);
    }
    std::vector<PartsCount> lanes;
    double begin = timeline.events[0].begin_s, end = timeline.events[0].end_s;
    const Event* last = nullptr;
    for (const Event& e : timeline.events) {
        if (!last || last->rank != e.rank || last->lane != e.lane) lanes.emplace_back();
        last = &e;
        lanes.back().add(static_cast<Op>(e.op), e.begin_s, e.end_s);
        begin = std::min(begin, e.begin_s);
        end = std::max(end, e.end_s);
    }
    return average(lanes, begin, end);
}

}  // namespace tilewave
