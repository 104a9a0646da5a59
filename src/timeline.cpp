#include "tilewave/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <type_traits>

#include "tilewave/transport.hpp"

namespace tilewave {

static_assert(std::is_trivially_copyable_v<Event> && std::is_trivially_copyable_v<Request>);

Event event_of(const Schedule& s, int lane, std::size_t index, double begin_s, double end_s) {
    const Step& step = s.lanes[static_cast<std::size_t>(lane)][index];
    Event e{s.rank, lane, static_cast<std::int32_t>(index), static_cast<std::int32_t>(step.op), -1, -1, 0, 0, {-1, -1, -1, -1}, -1, 0, begin_s, end_s};
    int tile = -1;
    if (step.op == Op::compute) {
        tile = step.item;
    } else if (step.op != Op::signal && step.op != Op::await) {
        const Message& m = s.messages[static_cast<std::size_t>(step.item)];
        e.peer = m.peer;
        e.tag = m.tag;
        e.send = m.send;
        e.bytes = m.bytes;
        tile = m.tile;
    }
    if (tile >= 0) {
        const Tile& where = s.tiles[static_cast<std::size_t>(tile)];
        for (int k = 0; k < where.coord.n; ++k) e.tile[k] = static_cast<std::int32_t>(where.coord[k]);
        e.slice = where.slice;
        e.time_step = where.time;
    }
    return e;
}

std::vector<LaneSplit> Timeline::split() const {
    std::vector<LaneSplit> result;
    for (const Event& e : events) {
        if (result.empty() || result.back().rank != e.rank || result.back().lane != e.lane)
            result.push_back({e.rank, e.lane, 0, 0, 0, 0, 0});
        LaneSplit& s = result.back();
        const double t = e.end_s - e.begin_s;
        s.total_s += t;
        switch (static_cast<Op>(e.op)) {
            case Op::compute: s.compute_s += t; break;
            case Op::pack:
            case Op::unpack:
            case Op::combine: s.pack_s += t; break;
            case Op::wait:
            case Op::await: s.wait_s += t; break;
            default: s.post_s += t;
        }
    }
    return result;
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

std::vector<Pair> match(const std::vector<Request>& requests) {
    std::map<Key, std::pair<std::vector<const Request*>, std::vector<const Request*>>> by_key;
    for (const Request& r : requests) {
        auto& [sends, receives] = by_key[key_of(r)];
        (r.send ? sends : receives).push_back(&r);
    }
    auto earlier = [](const Request* a, const Request* b) { return a->posted_s < b->posted_s; };
    std::vector<Pair> pairs;
    for (auto& [key, both] : by_key) {
        auto& [sends, receives] = both;
        std::sort(sends.begin(), sends.end(), earlier);
        std::sort(receives.begin(), receives.end(), earlier);
        for (std::size_t i = 0; i < std::min(sends.size(), receives.size()); ++i) pairs.push_back({sends[i], receives[i]});
    }
    return pairs;
}

struct RankTimes {
    double lanes = 0, compute = 0;
    double transfer[2] = {0, 0}, exposed[2] = {0, 0};  // receives, sends
};

}  // namespace

double Timeline::overlap_ratio(double latency_s, double byte_s) const {
    std::vector<RankTimes> times(static_cast<std::size_t>(ranks));
    for (const LaneSplit& s : split()) {
        times[s.rank].lanes += 1;
        times[s.rank].compute += s.compute_s;
    }
    // From when a message could move, as each side sees it.
    struct Movable {
        double from, transfer;
    };
    std::map<std::pair<Key, bool>, std::vector<Movable>> movable;
    for (const Pair& p : match(requests)) {
        const double both = std::max(p.send->posted_s, p.receive->posted_s);
        const double t = latency_s + static_cast<double>(p.send->bytes) * byte_s;
        for (const Request* r : {p.receive, p.send}) {
            times[r->rank].transfer[r->send] += t;
            movable[{key_of(*r), r->send != 0}].push_back({both, t});
        }
    }
    std::map<std::pair<Key, bool>, std::size_t> next;
    for (const Event& e : events) {
        if (static_cast<Op>(e.op) != Op::wait || e.peer < 0) continue;
        const Key key = e.send ? Key{e.rank, e.peer, e.tag} : Key{e.peer, e.rank, e.tag};
        const auto& from = movable[{key, e.send != 0}];
        const std::size_t i = next[{key, e.send != 0}]++;
        if (i >= from.size()) continue;
        // A wait longer than the transfer itself is for the peer's computing, not for the message.
        const double exposed = e.end_s - std::max(e.begin_s, from[i].from);
        times[e.rank].exposed[e.send] += std::clamp(exposed, 0.0, from[i].transfer);
    }
    double hidden = 0, hideable = 0;
    for (const RankTimes& r : times)
        for (int side = 0; side < 2; ++side) {
            if (r.lanes == 0) continue;
            const double most = std::min(r.transfer[side], r.compute / r.lanes);
            hideable += most;
            hidden += std::clamp(r.transfer[side] - r.exposed[side], 0.0, most);
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
    for (int k = 0; k < dims && e.tile[0] >= 0; ++k) s += (k ? "," : "") + std::to_string(e.tile[k]);
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
            out.add(R"({"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":"lane %d"}})", e.rank, e.lane, e.lane);
        last_rank = e.rank;
        last_lane = e.lane;
        const std::string tile = tile_text(e, dims);
        const char* op = to_string(static_cast<Op>(e.op));
        out.add(R"({"ph":"X","cat":"step","name":"%s%s%s","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{"step":%d,"tile":"%s","slice":%d,"time_step":%lld,"bytes":%lld,"peer":%d,"tag":%d}})",
                op, tile.empty() ? "" : " ", tile.c_str(), e.rank, e.lane, e.begin_s * 1e6,
                std::max(0.0, e.end_s - e.begin_s) * 1e6, e.step, tile.c_str(), e.slice,
                static_cast<long long>(e.time_step), static_cast<long long>(e.bytes), e.peer, e.tag);
    }
    int id = 0;
    for (const Request& r : requests) {
        const char* name = r.send ? "send" : "receive";
        out.add(R"({"ph":"b","cat":"pending","name":"%s","id":"p%d","pid":%d,"tid":%d,"ts":%.3f,"args":{"peer":%d,"tag":%d,"bytes":%lld}})",
                name, id, r.rank, r.lane, r.posted_s * 1e6, r.peer, r.tag, static_cast<long long>(r.bytes));
        out.add(R"({"ph":"e","cat":"pending","name":"%s","id":"p%d","pid":%d,"tid":%d,"ts":%.3f})", name, id++, r.rank,
                r.lane, r.completed_s * 1e6);
    }
    int flow = 0;
    for (const Pair& p : match(requests)) {
        out.add(R"({"ph":"s","cat":"message","name":"message","id":%d,"pid":%d,"tid":%d,"ts":%.3f})", flow, p.send->rank,
                p.send->lane, p.send->posted_s * 1e6);
        out.add(R"({"ph":"f","bp":"e","cat":"message","name":"message","id":%d,"pid":%d,"tid":%d,"ts":%.3f})", flow++,
                p.receive->rank, p.receive->lane, std::max(p.receive->completed_s, p.send->posted_s) * 1e6);
    }
    return out.finish();
}

namespace {

// A rank without points has no events: no memory at all.
void copy_bytes(void* to, const void* from, std::size_t n) {
    if (n > 0) std::memcpy(to, from, n);
}

}  // namespace

Timeline gather(Transport& transport, const Timeline& mine) {
    if (transport.size() == 1) return mine;
    std::string bytes(sizeof(std::int64_t) + mine.events.size() * sizeof(Event) + mine.requests.size() * sizeof(Request), '\0');
    const std::int64_t n = static_cast<std::int64_t>(mine.events.size());
    std::memcpy(bytes.data(), &n, sizeof n);
    copy_bytes(bytes.data() + sizeof n, mine.events.data(), mine.events.size() * sizeof(Event));
    copy_bytes(bytes.data() + sizeof n + mine.events.size() * sizeof(Event), mine.requests.data(),
                mine.requests.size() * sizeof(Request));
    Timeline all;
    all.ranks = transport.size();
    all.dims = mine.dims;
    for (const std::string& part : gather(transport, bytes)) {
        std::int64_t count = 0;
        std::memcpy(&count, part.data(), sizeof count);
        const std::size_t old = all.events.size(), events = static_cast<std::size_t>(count);
        all.events.resize(old + events);
        copy_bytes(all.events.data() + old, part.data() + sizeof count, events * sizeof(Event));
        const std::size_t rest = part.size() - sizeof count - events * sizeof(Event), requests = rest / sizeof(Request);
        const std::size_t before = all.requests.size();
        all.requests.resize(before + requests);
        copy_bytes(all.requests.data() + before, part.data() + part.size() - rest, rest);
    }
    return all;
}

}  // namespace tilewave
