// At the end: what waits for ever, what is left over, what the arrays hold.
#include <algorithm>

#include "check/checker.hpp"
#include "core/concat.hpp"
#include "schedule/tile_rows.hpp"

namespace tilewave {

static Violation at_end_of(const Schedule& s) {
    return {s.rank, 0, s.lanes.empty() ? 0 : s.lanes[0].size(), ""};
}

namespace {

// A step in words; the violation says where it stands.
std::string step_text(const Schedule& s, std::size_t lane, std::size_t step) {
    const std::string text = describe(s, static_cast<int>(lane), step);
    return text.substr(text.find(": ") + 2);
}

}  // namespace

std::optional<Violation> Checker::stuck() const {
    for (const RankState& p : ranks_)
        for (std::size_t l = 0; l < p.next.size(); ++l) {
            if (p.next[l] == p.s->lanes[l].size()) continue;
            const Step& step = p.s->lanes[l][p.next[l]];
            std::string why = step_text(*p.s, l, p.next[l]) + " never ends: ";
            if (step.op == Op::await) {
                const auto& lane = p.s->lanes[step.item];
                const bool ever = std::ranges::any_of(
                    lane, [&](const Step& x) { return x.op == Op::signal && x.count >= step.count; });
                // A lane that waits in a cycle is reported where the cycle is; go on looking for its cause.
                if (ever) continue;
                why += "no signal of that lane reaches it";
            } else {
                const Message& m = p.s->messages[step.item];
                const Schedule& peer = schedules_[m.peer];
                const bool ever = std::ranges::any_of(peer.messages, [&](const Message& x) {
                    if (x.peer != p.s->rank || x.tag != m.tag || x.send == m.send) return false;
                    const int id = static_cast<int>(&x - peer.messages.data());
                    if (ranks_[m.peer].messages[id].stage != Stage::fresh) return false;
                    for (const auto& lane : peer.lanes)
                        for (const Step& y : lane)
                            if ((y.op == Op::post_send || y.op == Op::post_recv) && y.item == id) return true;
                    return false;
                });
                if (ever) continue;
                why += concat("rank ", m.peer, " posts no ", (m.send ? "receive" : "send"), " that meets it");
            }
            return Violation{p.s->rank, static_cast<int>(l), p.next[l], why};
        }
    for (const RankState& p : ranks_)
        for (std::size_t l = 0; l < p.next.size(); ++l)
            if (p.next[l] != p.s->lanes[l].size())
                return Violation{p.s->rank, static_cast<int>(l), p.next[l],
                                 "cyclic wait, over other lanes, at " + step_text(*p.s, l, p.next[l])};
    return std::nullopt;
}

std::optional<Violation> Checker::leftovers() const {
    for (const RankState& p : ranks_)
        for (std::size_t m = 0; m < p.messages.size(); ++m)
            if (p.messages[m].stage == Stage::posted)
                for (std::size_t l = 0; l < p.s->lanes.size(); ++l)
                    for (std::size_t i = 0; i < p.s->lanes[l].size(); ++i) {
                        const Step& step = p.s->lanes[l][i];
                        if ((step.op == Op::post_recv || step.op == Op::post_send) && step.item == static_cast<int>(m))
                            return Violation{p.s->rank, static_cast<int>(l), i,
                                             concat("message ", m, " is posted and never waited for")};
                    }
    for (const Entry& entry : program_.entries())
        if (auto hole = holes(entry)) return hole;
    return std::nullopt;
}

// A point or a task that no step has computed.
std::optional<Violation> Checker::holes(const Entry& entry) const {
    std::optional<Violation> hole;
    if (entry.work->task()) {
        if (!entry.computed.empty()) return hole;
        for (const Schedule& s : schedules_)
            for (const Work& w : s.works)
                if (!hole && w.number == entry.number) hole = at_end_of(s);
        hole->why = concat("task ", entry.number, " is never computed");
        return hole;
    }
    const NestWork& nest = *entry.work->nest();
    if (nest.space.dims() == 0) return hole;
    const Cells& space = cells(nest.space);
    space.for_each(nest.space, [&](const Index& cell) {
        const std::size_t at = space.linear(space.all(), cell);
        if (hole || (entry.computed[at] && entry.reduced[at])) return;
        if (!TileRows(nest, space.box_of(cell)).first()) return;  // none of them within the bounds
        for (const Schedule& s : schedules_)
            if (!nest.places.empty() && space.inside(cell, s.arrays[nest.places[0].array].owned)) hole = at_end_of(s);
        if (!hole) hole = Violation{0, 0, 0, ""};
        hole->why = concat("points from ", space.low_corner(cell),
                           entry.computed[at] ? " on are no rank's own" : " on are never computed");
    });
    return hole;
}

// Every request has been waited for by now, so no cell is still promised or lent.
std::optional<Violation> Checker::results() {
    for (RankState& p : ranks_)
        for (int a = 0; a < static_cast<int>(p.s->arrays.size()); ++a) {
            const Array& array = p.s->arrays[a];
            if (array.planes > 0 || array.whole || !certain_at_the_end(a)) continue;
            Box owned = intersect(array.owned, array.storage);
            if (program_.entries().size() == 1 && program_.entries()[0].work->nest())
                owned = intersect(array.owned, program_.entries()[0].work->nest()->space);
            if (array.time_buffers > 0 && !owned.empty())  // earlier times are overwritten
                owned.lo[0] = std::max(owned.lo[0], owned.hi[0] - array.time_buffers);
            std::optional<Violation> wrong;
            cells(owned).for_each(owned, [&](const Index& cell) {
                if (wrong) return;
                const Expected want = program_.at_the_end(p.s->rank, a, cell);
                if (program_.right(p.store(a).version(a, cells(owned), cell), want)) return;
                wrong = at_end_of(*p.s);
                const bool before = want.list < 0 && want.version == program_.start(p.s->rank, a);
                wrong->why =
                    concat("at the end array ", a, " from ", cells(owned).low_corner(cell),
                           (before          ? " on does not hold what was there before, and nobody computes it"
                            : want.list < 0 ? " on does not hold what was computed there"
                                            : " on should hold " + program_.text(want) + ", and holds " +
                                                  program_.combined_text(p.store(a).version(a, cells(owned), cell))));
            });
            if (wrong) return wrong;
        }
    for (RankState& p : ranks_)
        for (const Result& r : p.s->results) {
            if (r.number != Result::at_the_end) continue;  // read by works, and proved there
            std::optional<Violation> wrong;
            cells(r.region).for_each(r.region, [&](const Index& cell) {
                if (wrong) return;
                Versions want;
                for (int rank : r.ranks) want.push_back(program_.at_the_end(rank, r.source, cell).version);
                const Version found = p.store(r.array).version(r.array, cells(r.region), cell);
                if (table_.joins(found, want)) return;
                wrong = at_end_of(*p.s);
                wrong->why = concat("at the end ", r.region, " of array ", r.array, " should hold ",
                                    table_.text(want, static_cast<std::int64_t>(want.size())), "; from ",
                                    cells(r.region).low_corner(cell), " on it holds ", table_.text(found));
            });
            if (wrong) return wrong;
        }
    return std::nullopt;
}

// Whether some work, or a result between works, writes the memory of array `a`, and every work that does so writes each
// element once: what its owners hold at the end is then known.
bool Checker::certain_at_the_end(int a) const {
    bool written = false;
    const int memory = program_.elements().memory_of(a);
    for (const Entry& entry : program_.entries())
        for (int b = 0; b < static_cast<int>(schedules_[0].arrays.size()); ++b) {
            if (program_.elements().memory_of(b) != memory) continue;
            if (const TaskWork* task = entry.work->task())
                for (const Region& r : task->writes) written = written || r.array == b;
            else if (entry.written[b] == Entry::Written::often)
                return false;
            else
                written = written || entry.written[b] == Entry::Written::once;
        }
    for (const Schedule& s : schedules_)
        for (const Result& r : s.results)
            written = written || (r.number != Result::at_the_end && program_.elements().memory_of(r.array) == memory);
    return written;
}

}  // namespace tilewave
