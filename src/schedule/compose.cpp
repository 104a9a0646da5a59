#include "schedule/compose.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/concat.hpp"
#include "schedule/touches.hpp"

namespace tilewave {

namespace {

std::int32_t last_count(const std::vector<Step>& lane) {
    for (auto step = lane.rbegin(); step != lane.rend(); ++step)
        if (step->op == Op::signal) return step->count;
    return 0;
}

void check(const Schedule& whole, const Schedule& part, const Mapping& m) {
    if (whole.rank != part.rank || whole.ranks != part.ranks)
        throw ConfigError(concat("append: a schedule of rank ", part.rank, " of ", part.ranks,
                                 " was given for one of rank ", whole.rank, " of ", whole.ranks));
    if (!whole.repeated.empty() || !part.repeated.empty())
        throw ConfigError("append: a schedule with a repeated block was given; allowed: those without");
    if (m.arrays.size() != (m.arrays.empty() ? 0 : part.arrays.size()))
        throw ConfigError(concat("append: ", m.arrays.size(), " numbers for ", part.arrays.size(), " arrays"));
    for (std::size_t a = 0; a < part.arrays.size(); ++a) {
        const std::int64_t to = m.arrays.empty() ? static_cast<std::int64_t>(a) : m.arrays[a];
        if (to < 0 || to >= static_cast<std::int64_t>(whole.arrays.size()))
            throw ConfigError(concat("append: array ", a, " is to be array ", to, " of ", whole.arrays.size()));
    }
    const std::set<std::int32_t> lanes(m.lanes.begin(), m.lanes.end());
    if (!m.lanes.empty() &&
        (m.lanes.size() != part.lanes.size() || lanes.size() != m.lanes.size() || *lanes.begin() < 0))
        throw ConfigError(
            concat("append: ", lanes.size(), " different lanes for ", part.lanes.size(), "; one for each is allowed"));
    for (const Work& w : part.works) {
        const std::int64_t number = w.number + m.first_number;
        const auto at = std::ranges::lower_bound(whole.works, number, {}, &Work::number);
        if (at != whole.works.end() && at->number == number)
            throw ConfigError(concat("append: work ", number, " is in both; allowed: other numbers"));
    }
}

struct Earlier {
    bool operator()(const Touch& a, const Touch& b) const {
        const auto key = [](const Touch& t) { return std::tuple(t.memory, t.writes, t.box.lo.n); };
        if (key(a) != key(b)) return key(a) < key(b);
        for (const auto& [x, y] : {std::pair(&a.box.lo, &b.box.lo), std::pair(&a.box.hi, &b.box.hi)})
            if (*x != *y) return std::lexicographical_compare(x->begin(), x->end(), y->begin(), y->end());
        return false;
    }
};

// What a step touches in addition to arrays, as numbers: of a schedule with `again` messages that is repeated, its
// message and buffers.
std::vector<std::int32_t> touched_again(const Schedule& s, const Step& step, std::int32_t again) {
    if (again == 0 || step.op == Op::compute || step.op == Op::signal || step.op == Op::await) return {};
    const Message& m = s.messages[step.item];
    std::vector<std::int32_t> all{(m.aggregate >= 0 ? m.aggregate : step.item) % again};
    if (m.buffer >= 0) all.push_back(again + m.buffer);
    if (step.op == Op::combine && step.count >= 0) all.push_back(again + s.messages[step.count].buffer);
    return all;
}

// The steps of one lane before the part, as what they touch, and what all up to each of some steps touch.
class Before {
public:
    Before(const Schedule& s, std::size_t lane, std::int32_t again) {
        const std::vector<Step>& steps = s.lanes[lane];
        counts_.resize(steps.size());
        std::int32_t count = 0;  // of the next signal
        for (std::size_t i = steps.size(); i-- > 0;) {
            if (steps[i].op == Op::signal) count = steps[i].count;
            counts_[i] = count;
            for (const std::int32_t number : touched_again(s, steps[i], again)) again_.try_emplace(number, count);
        }
        std::vector<Touch> all;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (i % stride == 0) hulls_.push_back(all);
            touches_.push_back(touches(s, steps[i]));
            for (const Touch& t : touches_.back()) extend(all, t);
        }
    }
    // The count that says that all steps are done which `later` must come after; 0: there are none. Steps up to
    // `known` are done.
    std::int32_t needed(const Touch& later, std::int32_t known) const {
        for (std::size_t i = counts_.size(); i-- > 0;) {
            if (counts_[i] <= known && counts_[i] > 0) return 0;
            if (conflict(touches_[i], later)) return counts_[i];
            if (i % stride == 0 && !conflict(hulls_[i / stride], later)) return 0;
        }
        return 0;
    }
    std::int32_t needed(std::int32_t number) const {
        const auto found = again_.find(number);
        return found == again_.end() ? 0 : found->second;
    }

private:
    static constexpr std::size_t stride = 32;
    std::vector<std::int32_t> counts_;  // by step: that of the next signal
    std::vector<std::vector<Touch>> touches_;
    std::vector<std::vector<Touch>> hulls_;       // of the steps before each multiple of the stride
    std::map<std::int32_t, std::int32_t> again_;  // by message or buffer: the count behind its last step
};

class Appender {
public:
    Appender(Schedule& whole, const Schedule& part, const Mapping& m) : whole_(whole), part_(part), m_(m) {
        first_work_ = size(whole.works);
        first_tile_ = size(whole.tiles);
        first_message_ = size(whole.messages);
        first_buffer_ = m.again ? 0 : size(whole.buffers);
        again_ = m.again ? size(part.messages) : 0;
    }

    void run() {
        for (std::size_t l = 0; l < part_.lanes.size(); ++l)
            if (static_cast<std::size_t>(lane(l)) >= whole_.lanes.size()) whole_.lanes.resize(lane(l) + 1);
        end_lanes();
        for (std::size_t l = 0; l < whole_.lanes.size(); ++l) {
            if (whole_.lanes.size() > 1) before_.emplace_back(whole_, l, again_);
            counts_.push_back(last_count(whole_.lanes[l]));
        }
        copy_data();
        for (std::size_t l = 0; l < part_.lanes.size(); ++l) copy_lane(l);
    }

private:
    template <class T>
    static std::int32_t size(const std::vector<T>& list) {
        return static_cast<std::int32_t>(list.size());
    }
    std::int32_t lane(std::size_t l) const { return m_.lanes.empty() ? static_cast<std::int32_t>(l) : m_.lanes[l]; }
    std::int32_t array(std::int32_t a) const { return m_.arrays.empty() ? a : m_.arrays[a]; }

    // Each lane says at its end that all is done.
    void end_lanes() {
        if (whole_.lanes.size() < 2) return;
        for (auto& steps : whole_.lanes)
            if (!steps.empty() && steps.back().op != Op::signal)
                steps.push_back({Op::signal, 0, last_count(steps) + 1});
    }

    void copy_data() {
        for (Work w : part_.works) {
            w.number += m_.first_number;
            if (NestWork* nest = w.nest()) {
                nest->kernel += m_.first_kernel;
                for (Access& p : nest->places) p.array = array(p.array);
            } else {
                TaskWork* task = w.task();
                task->operation += m_.first_operation;
                for (auto* regions : {&task->reads, &task->writes})
                    for (Region& r : *regions) r.array = array(r.array);
            }
            whole_.works.push_back(std::move(w));
        }
        for (Tile t : part_.tiles) {
            t.work += first_work_;
            whole_.tiles.push_back(t);
        }
        for (Message m : part_.messages) {
            m.array = array(m.array);
            m.tag += m_.first_tag;
            if (m.buffer >= 0) m.buffer += first_buffer_;
            if (m.tile >= 0) m.tile += first_tile_;
            if (m.aggregate >= 0) m.aggregate += first_message_;
            whole_.messages.push_back(m);
        }
        if (!m_.again) whole_.buffers.insert(whole_.buffers.end(), part_.buffers.begin(), part_.buffers.end());
        sort_works(whole_);
        for (Result r : part_.results) {
            r.array = array(r.array);
            r.source = array(r.source);
            if (r.number != Result::at_the_end) r.number += m_.first_number;
            whole_.results.push_back(std::move(r));
        }
    }

    void copy_lane(std::size_t l) {
        auto& steps = whole_.lanes[lane(l)];
        std::vector<std::int32_t> known(counts_.size(), 0);  // counts that the lane has awaited
        std::set<Touch, Earlier> seen;                       // what its steps so far touch
        for (Step step : part_.lanes[l]) {
            renumber(step, first_tile_, first_message_);
            if (step.op == Op::await) step.item = lane(static_cast<std::size_t>(step.item));
            if (step.op == Op::signal) step.count += counts_[lane(l)];
            if (step.op == Op::await) step.count += counts_[step.item];
            if (counts_.size() > 1) await_before(l, step, known, seen, steps);
            steps.push_back(step);
        }
    }

    // What the step touches first of its lane waits for the steps before the part that touch it, too.
    void await_before(std::size_t l, const Step& step, std::vector<std::int32_t>& known, std::set<Touch, Earlier>& seen,
                      std::vector<Step>& steps) const {
        std::vector<Touch> fresh;
        for (const Touch& t : touches(whole_, step))
            if (seen.insert(t).second) fresh.push_back(t);
        const std::vector<std::int32_t> again = touched_again(whole_, step, again_);
        if (fresh.empty() && again.empty()) return;
        for (std::size_t other = 0; other < before_.size(); ++other) {
            if (other == static_cast<std::size_t>(lane(l))) continue;
            std::int32_t count = known[other];
            for (const Touch& t : fresh) count = std::max(count, before_[other].needed(t, count));
            for (const std::int32_t number : again) count = std::max(count, before_[other].needed(number));
            if (count == known[other]) continue;
            known[other] = count;
            steps.push_back({Op::await, static_cast<std::int32_t>(other), count});
        }
    }

    Schedule& whole_;
    const Schedule& part_;
    const Mapping& m_;
    std::int32_t first_work_, first_tile_, first_message_, first_buffer_;
    std::int32_t again_ = 0;  // messages, where they come again
    std::vector<Before> before_;
    std::vector<std::int32_t> counts_;  // by lane: its counter before the part
};

}  // namespace

void append(Schedule& whole, const Schedule& part, const Mapping& mapping) {
    check(whole, part, mapping);
    Appender(whole, part, mapping).run();
}

void sort_works(Schedule& s) {
    std::vector<std::int32_t> order(s.works.size()), place(order.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::int32_t w) { return s.works[w].number; });
    if (std::ranges::is_sorted(order)) return;
    std::vector<Work> sorted;
    for (std::size_t i = 0; i < order.size(); ++i) {
        place[order[i]] = static_cast<std::int32_t>(i);
        sorted.push_back(std::move(s.works[order[i]]));
    }
    s.works = std::move(sorted);
    for (Tile& t : s.tiles) t.work = place[t.work];
}

void renumber(Step& step, std::int32_t tiles, std::int32_t messages) {
    if (step.op == Op::signal || step.op == Op::await) return;
    step.item += step.op == Op::compute ? tiles : messages;
    if (step.op == Op::combine && step.count >= 0) step.count += messages;
}

std::int32_t largest_tag(const Schedule& s) {
    std::int32_t tag = -1;
    for (const Message& m : s.messages) tag = std::max(tag, m.tag);
    return tag;
}

}  // namespace tilewave
