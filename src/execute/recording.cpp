#include "execute/recording.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "execute/tuning.hpp"
#include "schedule/timeline_bytes.hpp"
#include "tilewave/error.hpp"

// A rank's bytes: the moment that times count from, when its first step began (infinity where it had none); for each
// lane its parts and the seconds of each kind of step; for each block that is kept its number, its kind, and for each
// lane how many steps and how long each took, in nanoseconds, seven bits a byte; then the waits for messages and the
// messages themselves, as a timeline.

namespace tilewave {

using namespace tuning;

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

}  // namespace

void Notes::add(const Schedule& s, int kind, Recording r) {
    if (s.repeated.empty() || r.times == 1) return add_one(s, kind, std::move(r));
    std::vector<std::size_t> waits;  // by lane: so many messages does it wait for in a repetition
    for (const auto& steps : s.lanes)
        waits.push_back(static_cast<std::size_t>(
            std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.op == Op::wait; })));
    for (std::int64_t k = 0; k < r.times; ++k) {
        const auto at = static_cast<std::size_t>(k);
        Recording one;
        auto request = r.requests.begin();
        for (std::size_t l = 0; l < r.ends.size(); ++l) {
            const auto first = r.ends[l].begin() + static_cast<std::ptrdiff_t>(at * s.lanes[l].size());
            one.ends.emplace_back(first, first + static_cast<std::ptrdiff_t>(s.lanes[l].size()) + 1);
            const auto of_lane = request + static_cast<std::ptrdiff_t>(at * waits[l]);
            one.requests.insert(one.requests.end(), of_lane, of_lane + static_cast<std::ptrdiff_t>(waits[l]));
            request += static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r.times) * waits[l]);
        }
        add_one(s, kind, std::move(one));
    }
}

void Notes::add_one(const Schedule& s, int kind, Recording r) {
    lanes_.resize(std::max(lanes_.size(), r.ends.size()));
    for (std::size_t l = 0; l < r.ends.size(); ++l) {
        const auto& ends = r.ends[l];
        LaneSums& sums = lanes_[l];
        sums.split.rank = sums.kept.rank = s.rank;
        sums.split.lane = sums.kept.lane = static_cast<std::int32_t>(l);
        if (!ends.empty()) begin_ = std::min(begin_, ends.front());
        if (ends.size() < 2) continue;  // a lane without steps has begun, too
        first_ = std::min(first_, ends.front());
        sums.parts.pause(ends.front());
        for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
            const Op op = s.lanes[l][i].op;
            sums.parts.add(op, ends[i], ends[i + 1]);
            sums.split.add(op, ends[i + 1] - ends[i]);
        }
        sums.end_s = ends.back();
    }
    keep({&s, blocks_++, kind, std::move(r)});
}

void Notes::keep(Block block) {
    kept_.push_back(std::move(block));
    if (kept_.size() <= 2 * kept_blocks) return;
    kept_.erase(kept_.begin() + kept_blocks);
}

std::string Notes::bytes() const {
    std::string out;
    put_raw(out, begin_);
    put_raw(out, first_);
    put(out, lanes_.size());
    std::vector<LaneSums> lanes = lanes_;
    for (const Block& block : kept_)
        for (std::size_t l = 0; l < block.recording.ends.size(); ++l) {
            const auto& ends = block.recording.ends[l];
            for (std::size_t i = 0; i + 1 < ends.size(); ++i)
                lanes[l].kept.add(block.schedule->lanes[l][i].op, ends[i + 1] - ends[i]);
        }
    for (const LaneSums& sums : lanes) put_raw(out, sums);
    put(out, kept_.size());
    Timeline waits;
    for (const Block& block : kept_) {
        const Recording& r = block.recording;
        put(out, static_cast<std::uint64_t>(block.number));
        put(out, static_cast<std::uint64_t>(block.kind));
        put(out, r.ends.size());
        for (std::size_t l = 0; l < r.ends.size(); ++l) {
            const auto& ends = r.ends[l];
            std::string steps;
            steps.reserve(3 * ends.size());
            std::int64_t last = 0;
            for (const double end : ends) {
                const std::int64_t tick = std::max<std::int64_t>(std::llround((end - begin_) / ns), last);
                put(steps, static_cast<std::uint64_t>(tick - last));
                last = tick;
            }
            put(out, ends.size());
            put(out, steps.size());
            out += steps;
            for (std::size_t i = 0; i + 1 < ends.size(); ++i)
                if (block.schedule->lanes[l][i].op == Op::wait)
                    waits.events.push_back(event_of(*block.schedule, static_cast<int>(l), i, ends[i], ends[i + 1]));
        }
        waits.requests.insert(waits.requests.end(), r.requests.begin(), r.requests.end());
    }
    return out + timeline_bytes(waits);
}

Recorded gather(Transport& transport, const Notes& notes, const TransferTime& transfer_s) {
    Recorded result;
    result.bytes = gather(transport, [&] { return notes.bytes(); });
    double begin = std::numeric_limits<double>::infinity(), end = -begin;
    std::vector<PartsCount> parts;
    std::vector<LaneSplit> kept;
    Timeline waits;
    for (const std::string& bytes : result.bytes) {
        Source in(bytes);
        in.raw<double>();
        begin = std::min(begin, in.raw<double>());
        for (std::uint64_t lanes = in.number(); lanes > 0; --lanes) {
            const auto sums = in.raw<Notes::LaneSums>();
            if (!sums.parts.begun()) continue;
            parts.push_back(sums.parts);
            kept.push_back(sums.kept);
            result.lanes.push_back(sums.split);
            end = std::max(end, sums.end_s);
        }
        for (std::uint64_t blocks = in.number(); blocks > 0; --blocks) {
            in.number();
            in.number();
            for (std::uint64_t lanes = in.number(); lanes > 0; --lanes) {
                in.number();
                in.skip(in.number());
            }
        }
        add_timeline(in.rest(), waits);
    }
    if (end >= begin) result.parts = average(parts, begin, end);
    result.overlap_ratio = overlap_ratio(transport.size(), kept, waits.events, waits.requests, transfer_s);
    return result;
}

Timeline timeline_of(const Recorded& recorded, const BlockTimes& times,
                     const std::function<Schedule(int, int)>& schedule_of) {
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
        const double begin = in.raw<double>() - zero;
        in.raw<double>();
        for (std::uint64_t lanes = in.number(); lanes > 0; --lanes) in.raw<Notes::LaneSums>();
        const std::size_t first = all.events.size();
        Schedule schedule;
        int made = -1;
        for (std::uint64_t blocks = in.number(); blocks > 0; --blocks) {
            const auto number = static_cast<std::int64_t>(in.number());
            const int kind = static_cast<int>(in.number());
            if (kind != made) schedule = schedule_of(static_cast<int>(rank), kind);
            made = kind;
            Recording recording;
            for (std::uint64_t lanes = in.number(); lanes > 0; --lanes) {
                auto& ends = recording.ends.emplace_back();
                const std::uint64_t moments = in.number();
                in.number();
                const std::size_t lane = recording.ends.size() - 1;
                if (moments > 0 && (lane >= schedule.lanes.size() || moments != schedule.lanes[lane].size() + 1))
                    throw InternalError("rank " + std::to_string(rank) + " noted " + std::to_string(moments) +
                                        " moments of another schedule");
                ends.reserve(moments);
                std::uint64_t tick = 0;
                for (std::uint64_t i = 0; i < moments; ++i)
                    ends.push_back(begin + static_cast<double>(tick += in.number()) * ns);
            }
            Timeline one = timeline_of(schedule, recording);
            all.dims = one.dims;
            for (Event& e : one.events) {
                if (e.wave >= 0) e.wave += number * times.waves;
                if (e.tile[0] >= 0) e.tile[0] += static_cast<std::int32_t>(number * times.tiles);
                all.events.push_back(e);
            }
        }
        std::stable_sort(all.events.begin() + static_cast<std::ptrdiff_t>(first), all.events.end(),
                         [](const Event& a, const Event& b) { return a.lane < b.lane; });
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
