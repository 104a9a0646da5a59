// The proof of a block that is repeated, by induction over two repetitions.
//
// check() proves the schedules with one repetition and with two. That proves any number, because
//   - no step of a repetition waits for a later one (check_repeated_rank() refuses such awaits and messages), so the
//     repetitions can run one after another;
//   - every repetition takes the same steps on the same places. What it finds there was left by the repetition before,
//     or by what precedes the block, where no repetition writes. The third repetition is ordered after the second as
//     the second is after the first, and an element or a buffer gets its value by the same steps. A value that lags
//     behind by one repetition more each time is wrong in the second one already.
#include "check/repeated.hpp"

#include <map>
#include <tuple>

#include "check/wrong.hpp"
#include "core/concat.hpp"
#include "schedule/repeat.hpp"

namespace tilewave {
namespace {

const char* text_of(Section section) {
    return section == Section::before  ? "before the block"
           : section == Section::block ? "in the block"
                                       : "behind the block";
}

// Where the steps of a message stand.
struct Seen {
    int section = -1, poster = -1, waiter = -1;
};

std::int32_t last_count(const Schedule& s, std::size_t lane, std::int32_t end) {
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < end; ++i)
        if (const Step& step = s.lanes[lane][i]; step.op == Op::signal) count = step.count;
    return count;
}

void step_of(const Schedule& s, std::size_t l, std::size_t i, std::vector<Seen>& seen) {
    const Step& step = s.lanes[l][i];
    const Section section = section_of(s, l, i);
    if (step.op == Op::compute || step.op == Op::signal) return;
    if (step.op == Op::await) {
        if (section == Section::after) return;
        const auto other = static_cast<std::size_t>(step.item);
        const StepRange& range = s.repeated[other];
        const std::int32_t last = last_count(s, other, section == Section::block ? range.end : range.begin);
        if (step.count <= last) return;
        wrong("await ", step.count, " of lane ", step.item, " stands ", text_of(section),
              ", where that lane counts to ", last, "; allowed: what it has counted by the end of the same repetition");
    }
    const Message& m = s.messages[step.item];
    const auto whole = static_cast<std::size_t>(m.aggregate >= 0 ? m.aggregate : step.item);
    Seen& of = seen[whole];
    const std::string name = concat("message ", whole);
    if (of.section >= 0 && of.section != static_cast<int>(section))
        wrong(name, " stands ", text_of(static_cast<Section>(of.section)), " and ", text_of(section),
              "; allowed: one of them");
    of.section = static_cast<int>(section);
    if (step.op == Op::post_send || step.op == Op::post_recv) of.poster = static_cast<int>(l);
    if (step.op == Op::wait) of.waiter = static_cast<int>(l);
    if (section == Section::block && of.poster >= 0 && of.waiter >= 0 && of.poster != of.waiter)
        wrong(name, " is posted by lane ", of.poster, " and waited for by lane ", of.waiter,
              "; allowed in a block: one lane for both");
}

}  // namespace

std::optional<Violation> check_repeated_rank(const Schedule& s) {
    if (s.repeated.empty()) return std::nullopt;
    std::vector<Seen> seen(s.messages.size());
    return first_wrong_step(s, [&](std::size_t lane, std::size_t i) { step_of(s, lane, i, seen); });
}

std::optional<Violation> check_repeated(std::span<const Schedule> schedules) {
    for (const Schedule& s : schedules)
        if (auto found = check_repeated_rank(s)) return found;
    const WorkRange works = repeated_works(schedules);
    // By sender, receiver, tag and section: sends less receives, and one of the steps.
    std::map<std::tuple<int, int, int, Section>, std::pair<int, Violation>> posts;
    for (const Schedule& s : schedules)
        for (std::size_t l = 0; l < s.lanes.size(); ++l)
            for (std::size_t i = 0; i < s.lanes[l].size(); ++i) {
                const Step& step = s.lanes[l][i];
                const Section section = section_of(s, l, i);
                if (step.op == Op::compute) {
                    const Work& w = s.works[s.tiles[step.item].work];
                    if (section != Section::block && w.number >= works.begin && w.number < works.end)
                        return Violation{
                            s.rank, static_cast<int>(l), i,
                            concat("work ", w.number, " stands ", text_of(section),
                                   ", and its number among those of the block, ", works.begin, " to ", works.end - 1)};
                }
                if (step.op != Op::post_send && step.op != Op::post_recv) continue;
                const Message& m = s.messages[step.item];
                auto& [count, where] = posts[{m.send ? s.rank : m.peer, m.send ? m.peer : s.rank, m.tag, section}];
                count += m.send ? 1 : -1;
                where = {s.rank, static_cast<int>(l), i, ""};
            }
    for (auto& [key, found] : posts) {
        if (found.first == 0) continue;
        const auto& [from, to, tag, section] = key;
        found.second.why = concat("messages from rank ", from, " to rank ", to, ", tag ", tag,
                                  ": not as many are sent as received ", text_of(section));
        return found.second;
    }
    for (const Schedule& s : schedules)
        for (const Result& r : s.results)
            if (r.number != Result::at_the_end && r.number > works.begin && r.number < works.end)
                return Violation{s.rank, 0, 0,
                                 "a result stands between the works of the block; allowed: before or behind them"};
    return std::nullopt;
}

Violation folded(const Schedule& s, std::int64_t times, Violation v) {
    if (s.repeated.empty() || static_cast<std::size_t>(v.lane) >= s.lanes.size()) return v;
    if (times > 1) v.why += " (where the block is repeated, and the numbers of works and messages go on)";
    v.step = Repetitions(s, static_cast<std::size_t>(v.lane), times).step(static_cast<std::int64_t>(v.step));
    return v;
}

}  // namespace tilewave
