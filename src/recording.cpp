#include "recording.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tilewave/error.hpp"
#include "timeline_bytes.hpp"

// A rank's bytes: the moment that times count from, when its first step began (infinity where it had none); for each lane its parts, the seconds of each kind of step, how many steps, and how long each took, in
// nanoseconds, seven bits a byte; then the waits for messages and the messages themselves, as a timeline.

namespace tilewave {

namespace {

constexpr double ns = 1e-9;

void put(std::string& out, std::uint64_t n) {
    for (; n >= 128; n >>= 7) out.push_back(static_cast<char>(n | 128));
    out.push_back(static_cast<char>(n));
}
template <class T>
void put_raw(std::string& out, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class Source {
public:
    explicit Source(const std::string& bytes) : bytes_(bytes) {}
    std::uint64_t number() {
        std::uint64_t n = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(*take(1));
            n |= static_cast<std::uint64_t>(byte & 127) << shift;
            if (byte < 128) break;
        }
        return n;
    }
    template <class T>
    T raw() {
        T value;
        std::memcpy(&value, take(sizeof value), sizeof value);
        return value;
    }
    void skip(std::size_t n) { take(n); }
    std::string rest() const { return bytes_.substr(at_); }

private:
    const char* take(std::size_t n) {
        if (bytes_.size() - at_ < n) throw InternalError("what a rank noted came in part");
        at_ += n;
        return bytes_.data() + at_ - n;
    }
    const std::string& bytes_;
    std::size_t at_ = 0;
};

struct LaneSums {
    PartsCount parts;
    LaneSplit split{};
    double end_s = 0;
};

LaneSums sums_of(const Schedule& s, const Recording& r, std::size_t lane) {
    LaneSums sums;
    sums.split.rank = s.rank;
    sums.split.lane = static_cast<std::int32_t>(lane);
    const auto& ends = r.ends[lane];
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
        const Op op = s.lanes[lane][i].op;
        sums.parts.add(op, ends[i], ends[i + 1]);
        sums.split.add(op, ends[i + 1] - ends[i]);
    }
    sums.end_s = ends.empty() ? 0 : ends.back();
    return sums;
}


std::string bytes_of(const Schedule& s, const Recording& r) {
    double first = std::numeric_limits<double>::infinity(), begin = first;
    for (const auto& ends : r.ends) {
        if (!ends.empty()) begin = std::min(begin, ends.front());
        if (ends.size() > 1) first = std::min(first, ends.front());  // a lane without steps has begun, too
    }
    std::string out;
    put_raw(out, begin);
    put_raw(out, first);
    put(out, r.ends.size());
    for (std::size_t l = 0; l < r.ends.size(); ++l) {
        const auto& ends = r.ends[l];
        put_raw(out, sums_of(s, r, l));
        std::string steps;
        steps.reserve(3 * ends.size());
        std::int64_t last = 0;
        for (const double end : ends) {
            const std::int64_t tick = std::max<std::int64_t>(std::llround((end - begin) / ns), last);
            put(steps, static_cast<std::uint64_t>(tick - last));
            last = tick;
        }
        put(out, ends.size());
        put(out, steps.size());
        out += steps;
    }
    Timeline waits;
    waits.requests = r.requests;
    for (std::size_t l = 0; l < r.ends.size(); ++l)
        for (std::size_t i = 0; i + 1 < r.ends[l].size(); ++i)
            if (s.lanes[l][i].op == Op::wait) waits.events.push_back(event_of(s, static_cast<int>(l), i, r.ends[l][i], r.ends[l][i + 1]));
    return out + timeline_bytes(waits);
}

}  // namespace

Recorded gather(Transport& transport, const Schedule& schedule, const Recording& recording, double latency_s, double byte_s) {
    Recorded result;
    result.bytes = gather(transport, bytes_of(schedule, recording));
    double begin = std::numeric_limits<double>::infinity(), end = -begin;
    std::vector<PartsCount> parts;
    std::vector<LaneSplit> splits;
    Timeline waits;
    for (const std::string& bytes : result.bytes) {
        Source in(bytes);
        in.raw<double>();
        begin = std::min(begin, in.raw<double>());
        for (std::uint64_t lanes = in.number(); lanes > 0; --lanes) {
            const auto sums = in.raw<LaneSums>();
            const std::uint64_t moments = in.number();
            in.skip(in.number());
            if (moments < 2) continue;
            parts.push_back(sums.parts);
            splits.push_back(sums.split);
            end = std::max(end, sums.end_s);
        }
        add_timeline(in.rest(), waits);
    }
    if (end >= begin) result.parts = average(parts, begin, end);
    result.overlap_ratio = overlap_ratio(transport.size(), splits, waits.events, waits.requests, latency_s, byte_s);
    return result;
}

Timeline timeline_of(const Recorded& recorded, const std::function<Schedule(int)>& schedule_of) {
    Timeline all;
    all.ranks = static_cast<int>(recorded.bytes.size());
    double zero = std::numeric_limits<double>::infinity();
    for (const std::string& bytes : recorded.bytes) {
        Source in(bytes);
        in.raw<double>();
        zero = std::min(zero, in.raw<double>());
    }
    if (!std::isfinite(zero)) zero = 0;
    for (std::size_t rank = 0; rank < recorded.bytes.size(); ++rank) {
        Source in(recorded.bytes[rank]);
        const Schedule schedule = schedule_of(static_cast<int>(rank));
        Recording recording;
        const double begin = in.raw<double>() - zero;
        in.raw<double>();
        for (std::uint64_t lanes = in.number(); lanes > 0; --lanes) {
            in.raw<LaneSums>();
            auto& ends = recording.ends.emplace_back();
            const std::uint64_t moments = in.number();
            in.number();
            const std::size_t lane = recording.ends.size() - 1;
            if (moments > 0 && (lane >= schedule.lanes.size() || moments != schedule.lanes[lane].size() + 1))
                throw InternalError("rank " + std::to_string(rank) + " noted " + std::to_string(moments) + " moments of another schedule");
            ends.reserve(moments);
            std::uint64_t tick = 0;
            for (std::uint64_t i = 0; i < moments; ++i) ends.push_back(begin + static_cast<double>(tick += in.number()) * ns);
        }
        const Timeline one = timeline_of(schedule, recording);
        all.dims = one.dims;
        all.events.insert(all.events.end(), one.events.begin(), one.events.end());
        Timeline waits;
        add_timeline(in.rest(), waits);
        for (Request& r : waits.requests) {
            r.posted_s -= zero;
            r.completed_s -= zero;
            all.requests.push_back(r);
        }
    }
    return all;
}

}  // namespace tilewave
