#include "schedule/repeat.hpp"

#include <algorithm>
#include <limits>

#include "schedule/compose.hpp"
#include "tilewave/engine/layout.hpp"

namespace tilewave {

Section section_of(const Schedule& s, std::size_t lane, std::size_t step) {
    if (s.repeated.empty()) return Section::before;
    const StepRange& range = s.repeated[lane];
    if (step < static_cast<std::size_t>(range.begin)) return Section::before;
    return step < static_cast<std::size_t>(range.end) ? Section::block : Section::after;
}

std::vector<std::int32_t> growth(const Schedule& s) {
    std::vector<std::int32_t> all(s.lanes.size(), 0);
    for (std::size_t l = 0; l < s.repeated.size(); ++l) {
        std::int32_t before = 0, last = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(s.repeated[l].end); ++i) {
            if (s.lanes[l][i].op != Op::signal) continue;
            last = s.lanes[l][i].count;
            if (i < static_cast<std::size_t>(s.repeated[l].begin)) before = last;
        }
        all[l] = last - before;
    }
    return all;
}

WorkRange repeated_works(std::span<const Schedule> schedules) {
    WorkRange range{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
    for (const Schedule& s : schedules)
        for (std::size_t l = 0; l < s.repeated.size(); ++l)
            for (std::int32_t i = s.repeated[l].begin; i < s.repeated[l].end; ++i) {
                const Step& step = s.lanes[l][i];
                if (step.op != Op::compute) continue;
                const std::int32_t work = s.tiles[step.item].work;
                const std::int64_t number = s.works[work].number;
                range.begin = std::min(range.begin, number);
                range.end = std::max(range.end, number + 1);
            }
    return range.begin < range.end ? range : WorkRange{0, 0};
}

namespace {

class Unroller {
public:
    Unroller(const Schedule& s, WorkRange works, std::int64_t times)
        : s_(s), works_(works), times_(times), growth_(growth(s)) {
        out_.rank = s.rank;
        out_.ranks = s.ranks;
        out_.arrays = s.arrays;
        out_.buffers = s.buffers;
        tiles_ = static_cast<std::int32_t>(s.tiles.size());
        messages_ = static_cast<std::int32_t>(s.messages.size());
    }
    Schedule run() {
        copy_works();
        if (s_.advance.n) extend_arrays();
        for (std::int64_t k = 0; k < times_; ++k) copy_data(static_cast<std::int32_t>(k));
        for (Result r : s_.results) {
            if (r.number != Result::at_the_end && r.number >= works_.end && !s_.advance.n)
                r.number += (times_ - 1) * span();
            out_.results.push_back(std::move(r));
        }
        for (std::size_t l = 0; l < s_.lanes.size(); ++l) copy_lane(l);
        return std::move(out_);
    }

private:
    std::int64_t span() const { return works_.end - works_.begin; }
    bool repeats(const Work& w) const { return w.number >= works_.begin && w.number < works_.end; }

    void copy_works() {
        place_.resize(s_.works.size());
        if (s_.advance.n) return extend_works();
        const auto add = [&](std::size_t w, std::int64_t by) {
            place_[w].push_back(static_cast<std::int32_t>(out_.works.size()));
            out_.works.push_back(s_.works[w]);
            out_.works.back().number += by;
        };
        for (std::size_t w = 0; w < s_.works.size(); ++w)
            if (s_.works[w].number < works_.begin) add(w, 0);
        for (std::int64_t k = 0; k < times_; ++k)
            for (std::size_t w = 0; w < s_.works.size(); ++w)
                if (repeats(s_.works[w])) add(w, k * span());
        for (std::size_t w = 0; w < s_.works.size(); ++w)
            if (s_.works[w].number >= works_.end && s_.works[w].number >= works_.begin) add(w, (times_ - 1) * span());
    }

    Index later(std::int64_t k) const {
        Index by = s_.advance;
        for (auto& x : by.v) x *= k;
        return by;
    }
    // Repetitions of a block of time steps are of one nest.
    void extend_works() {
        for (std::size_t w = 0; w < s_.works.size(); ++w) {
            place_[w].push_back(static_cast<std::int32_t>(w));
            out_.works.push_back(s_.works[w]);
            if (NestWork* nest = out_.works.back().nest())
                for (Box* const box : {&nest->space, &nest->own})
                    if (box->dims() > 0) *box = hull(*box, box->shifted(later(times_ - 1)));
        }
    }
    void extend_arrays() {
        for (Array& a : out_.arrays) {
            if (a.lacks & 1) continue;
            if (a.stride.n == 0) a.stride = row_major_strides(a.storage, 1);
            a.storage = hull(a.storage, a.storage.shifted(later(times_ - 1)));
            a.owned = hull(a.owned, a.owned.shifted(later(times_ - 1)));
        }
    }

    void copy_data(std::int32_t k) {
        const Index by = s_.advance.n ? later(k) : Index();
        for (Tile t : s_.tiles) {
            if (by.n) t.box = t.box.shifted(by);
            const std::vector<std::int32_t>& places = place_[t.work];
            t.work = places[std::min<std::size_t>(static_cast<std::size_t>(k), places.size() - 1)];
            out_.tiles.push_back(t);
        }
        for (Message m : s_.messages) {
            if (by.n && !m.region.empty() && !(s_.arrays[m.array].lacks & 1)) m.region = m.region.shifted(by);
            if (m.tile >= 0) m.tile += k * tiles_;
            if (m.aggregate >= 0) m.aggregate += k * messages_;
            out_.messages.push_back(m);
        }
    }

    void copy_lane(std::size_t l) {
        auto& steps = out_.lanes.emplace_back();
        const std::vector<Step>& from = s_.lanes[l];
        const auto copy = [&](std::size_t begin, std::size_t end, std::int64_t k, bool block) {
            const auto by = static_cast<std::int32_t>(k), numbers = block ? by : 0;
            for (std::size_t i = begin; i < end; ++i) {
                Step step = from[i];
                renumber(step, numbers * tiles_, numbers * messages_);
                if (step.op == Op::signal) step.count += by * growth_[l];
                if (step.op == Op::await) step.count += by * growth_[step.item];
                steps.push_back(step);
            }
        };
        if (s_.repeated.empty()) return copy(0, from.size(), 0, false);
        const auto begin = static_cast<std::size_t>(s_.repeated[l].begin),
                   end = static_cast<std::size_t>(s_.repeated[l].end);
        copy(0, begin, 0, false);
        for (std::int64_t k = 0; k < times_; ++k) copy(begin, end, k, true);
        copy(end, from.size(), times_ - 1, false);
    }

    const Schedule& s_;
    WorkRange works_;
    std::int64_t times_;
    std::vector<std::int32_t> growth_;
    std::vector<std::vector<std::int32_t>> place_;  // by work: where it is, of each repetition
    std::int32_t tiles_ = 0, messages_ = 0;
    Schedule out_;
};

}  // namespace

std::vector<Schedule> unrolled(std::span<const Schedule> schedules, std::int64_t times) {
    const WorkRange works = repeated_works(schedules);
    std::vector<Schedule> all;
    for (const Schedule& s : schedules) all.push_back(Unroller(s, works, times).run());
    return all;
}

Schedule repeatable(const Schedule& schedule) {
    if (!schedule.repeated.empty()) throw ConfigError("repeatable: the schedule has a block already");
    // Appended to itself, the schedule shows what a repetition waits for. Its signals and data are the first copy's.
    Schedule twice = schedule;
    Mapping mapping;
    mapping.first_number =
        schedule.works.empty() ? 0 : schedule.works.back().number + 1 - schedule.works.front().number;
    mapping.again = true;
    append(twice, schedule, mapping);
    Schedule block = schedule;
    std::vector<std::int32_t> counted(schedule.lanes.size(), 0);
    std::vector<std::size_t> begin(schedule.lanes.size());
    for (std::size_t l = 0; l < schedule.lanes.size(); ++l) {
        begin[l] = schedule.lanes[l].size();
        // append() lets each lane say at its end that all is done.
        if (schedule.lanes.size() > 1 && !schedule.lanes[l].empty() && schedule.lanes[l].back().op != Op::signal)
            ++begin[l];
        for (std::size_t i = 0; i < begin[l]; ++i)
            if (twice.lanes[l][i].op == Op::signal) counted[l] = twice.lanes[l][i].count;
    }
    const auto tiles = static_cast<std::int32_t>(schedule.tiles.size()),
               messages = static_cast<std::int32_t>(schedule.messages.size());
    for (std::size_t l = 0; l < schedule.lanes.size(); ++l) {
        std::vector<Step> steps(twice.lanes[l].begin() + static_cast<std::ptrdiff_t>(begin[l]), twice.lanes[l].end());
        for (Step& step : steps) {
            renumber(step, -tiles, -messages);
            if (step.op == Op::signal) step.count -= counted[l];
            if (step.op == Op::await) step.count -= counted[step.item];
        }
        if (begin[l] > schedule.lanes[l].size()) steps.push_back({Op::signal, 0, counted[l]});
        block.lanes[l] = std::move(steps);
        block.repeated.push_back({0, static_cast<std::int32_t>(block.lanes[l].size())});
    }
    return block;
}

}  // namespace tilewave
