#include "execute/recording.hpp"

#include <algorithm>

#include "core/plain_bytes.hpp"
#include "execute/tuning.hpp"
#include "tilewave/error.hpp"

// A rank's bytes: when its first step began (infinity where it had none); for each lane its parts and the seconds of
// each kind of step; the waits for messages, and the messages; for each recorded block its number, its kind, and
// for each lane when it began and when each of its steps ended.

namespace tilewave {

using namespace tuning;

void Notes::add(const Schedule& s, int kind, Recording r) {
    if (s.repeated.empty() || r.times == 1) return add_one(s, kind, std::move(r));
    std::vector<std::size_t> waits;  // by lane: so many messages does it wait for in a repetition
    for (const auto& steps : s.lanes)
        waits.push_back(static_cast<std::size_t>(
            std::ranges::count_if(steps, [](const Step& step) { return step.op == Op::wait; })));
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
        sums.split.rank = sums.recorded.rank = s.rank;
        sums.split.lane = sums.recorded.lane = static_cast<std::int32_t>(l);
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
    if (kept_.size() <= 2 * recorded_blocks) return;
    kept_.erase(kept_.begin() + recorded_blocks);
}

std::string Notes::bytes() const {
    std::vector<LaneSums> lanes = lanes_;
    std::vector<Event> waits;
    std::vector<Request> requests;
    std::string blocks;
    for (const Block& block : kept_) {
        put(blocks, BlockHead{block.number, block.kind, block.recording.ends.size()});
        for (std::size_t l = 0; l < block.recording.ends.size(); ++l) {
            const auto& ends = block.recording.ends[l];
            put(blocks, ends);
            for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
                const Op op = block.schedule->lanes[l][i].op;
                lanes[l].recorded.add(op, ends[i + 1] - ends[i]);
                if (op == Op::wait)
                    waits.push_back(event_of(*block.schedule, static_cast<int>(l), i, ends[i], ends[i + 1]));
            }
        }
        requests.insert(requests.end(), block.recording.requests.begin(), block.recording.requests.end());
    }
    std::string out;
    put(out, first_);
    put(out, lanes);
    put(out, waits);
    put(out, requests);
    put(out, kept_.size());
    return out + blocks;
}

Recorded gather(Transport& transport, const Notes& notes, const TransferTime& transfer_s) {
    Recorded result;
    result.bytes = gather(transport, [&] { return notes.bytes(); });
    double begin = std::numeric_limits<double>::infinity(), end = -begin;
    std::vector<PartsCount> parts;
    std::vector<LaneSplit> recorded;
    std::vector<Event> waits;
    std::vector<Request> requests;
    for (const std::string& bytes : result.bytes) {
        PlainBytes in(bytes);
        begin = std::min(begin, in.take<double>());
        for (const auto& sums : in.take_all<Notes::LaneSums>()) {
            if (!sums.parts.begun()) continue;
            parts.push_back(sums.parts);
            recorded.push_back(sums.recorded);
            result.lanes.push_back(sums.split);
            end = std::max(end, sums.end_s);
        }
        append(waits, in.take_all<Event>());
        append(requests, in.take_all<Request>());
    }
    if (end >= begin) result.parts = average(parts, begin, end);
    result.overlap_ratio = overlap_ratio(transport.size(), recorded, waits, requests, transfer_s);
    return result;
}

Timeline timeline_of(const Recorded& recorded, const BlockTimes& times,
                     const std::function<Schedule(int, int)>& schedule_of) {
    Timeline all;
    all.ranks = static_cast<int>(recorded.bytes.size());
    for (std::size_t rank = 0; rank < recorded.bytes.size(); ++rank) {
        PlainBytes in(recorded.bytes[rank]);
        (void)in.take<double>();
        (void)in.take_all<Notes::LaneSums>();
        (void)in.take_all<Event>();
        append(all.requests, in.take_all<Request>());
        const std::size_t first = all.events.size();
        Schedule schedule;
        std::int64_t made = -1;
        for (auto blocks = in.take<std::size_t>(); blocks > 0; --blocks) {
            const auto head = in.take<Notes::BlockHead>();
            if (head.kind != made) schedule = schedule_of(static_cast<int>(rank), static_cast<int>(head.kind));
            made = head.kind;
            Recording recording;
            for (std::size_t lane = 0; lane < head.lanes; ++lane) {
                const auto& ends = recording.ends.emplace_back(in.take_all<double>());
                if (!ends.empty() && (lane >= schedule.lanes.size() || ends.size() != schedule.lanes[lane].size() + 1))
                    throw InternalError("rank " + std::to_string(rank) + " noted " + std::to_string(ends.size()) +
                                        " moments of another schedule");
            }
            Timeline one = timeline_of(schedule, recording);
            all.dims = one.dims;
            for (Event& e : one.events) {
                if (e.wave >= 0) e.wave += head.number * times.waves;
                if (e.tile[0] >= 0) e.tile[0] += static_cast<std::int32_t>(head.number * times.tiles);
                all.events.push_back(e);
            }
        }
        std::stable_sort(all.events.begin() + static_cast<std::ptrdiff_t>(first), all.events.end(),
                         [](const Event& a, const Event& b) { return a.lane < b.lane; });
    }
    from_zero(all);
    return all;
}

void from_zero(Timeline& t) {
    double begin = std::numeric_limits<double>::infinity();
    for (const Event& e : t.events) begin = std::min(begin, e.begin_s);
    for (Event& e : t.events) e.begin_s -= begin, e.end_s -= begin;
    for (Request& r : t.requests) r.posted_s -= begin, r.completed_s -= begin;
}

}  // namespace tilewave
