// Where the play ends: what waits for ever, what is left over, what the arrays hold.
#include <algorithm>

#include "check/checker.hpp"
#include "schedule/tile_rows.hpp"

namespace tilewave {

std::optional<Violation> Checker::stuck() const {
    for (const Player& p : players_)
        for (std::size_t l = 0; l < p.next.size(); ++l) {
            if (p.next[l] == p.s->lanes[l].size()) continue;
            const Step& step = p.s->lanes[l][p.next[l]];
            std::string why = describe(*p.s, static_cast<int>(l), p.next[l]) + " never ends: ";
            if (step.op == Op::await) {
                const auto& lane = p.s->lanes[step.item];
                const bool ever = std::any_of(lane.begin(), lane.end(), [&](const Step& x) {
                    return x.op == Op::signal && x.count >= step.count;
                });
                // A lane that waits in a cycle is reported where the cycle is; go on looking for its cause.
                if (ever) continue;
                why += "no signal of that lane reaches it";
            } else {
                const Message& m = p.s->messages[step.item];
                const Schedule& peer = schedules_[m.peer];
                const bool ever = std::any_of(peer.messages.begin(), peer.messages.end(), [&](const Message& x) {
                    if (x.peer != p.s->rank || x.tag != m.tag || x.send == m.send) return false;
                    const int id = static_cast<int>(&x - peer.messages.data());
                    if (players_[m.peer].messages[id].stage != Stage::fresh) return false;
                    for (const auto& lane : peer.lanes)
                        for (const Step& y : lane)
                            if ((y.op == Op::post_send || y.op == Op::post_recv) && y.item == id) return true;
                    return false;
                });
                if (ever) continue;
                why += std::string("rank ") + std::to_string(m.peer) + " posts no " + (m.send ? "receive" : "send") +
                       " that meets it";
            }
            return Violation{p.s->rank, static_cast<int>(l), p.next[l], why};
        }
    for (const Player& p : players_)
        for (std::size_t l = 0; l < p.next.size(); ++l)
            if (p.next[l] != p.s->lanes[l].size())
                return Violation{p.s->rank, static_cast<int>(l), p.next[l],
                                 "cyclic wait: " + describe(*p.s, static_cast<int>(l), p.next[l]) +
                                     " waits, over other lanes, for itself"};
    return std::nullopt;
}

std::optional<Violation> Checker::leftovers() const {
    for (const Player& p : players_)
        for (std::size_t m = 0; m < p.messages.size(); ++m)
            if (p.messages[m].stage == Stage::posted)
                for (std::size_t l = 0; l < p.s->lanes.size(); ++l)
                    for (std::size_t i = 0; i < p.s->lanes[l].size(); ++i) {
                        const Step& step = p.s->lanes[l][i];
                        if ((step.op == Op::post_recv || step.op == Op::post_send) && step.item == static_cast<int>(m))
                            return Violation{p.s->rank, static_cast<int>(l), i,
                                             "message " + std::to_string(m) + " is posted and never waited for"};
                    }
    const Schedule& first = schedules_[0];
    std::optional<Violation> hole;
    if (first.space.dims() == 0) return hole;  // nothing to compute
    space_.for_each(first.space, [&](const Index& cell) {
        if (hole || computed_[space_.linear(space_.all(), cell)]) return;
        const Box points = space_.box_of(cell);
        if (!TileRows(first, points).first()) return;  // none of them within the bounds
        for (const Schedule& s : schedules_)
            if (space_.inside(cell, s.arrays[0].owned))
                hole = Violation{s.rank, 0, s.lanes.empty() ? 0 : s.lanes[0].size(), ""};
        if (!hole) hole = Violation{0, 0, 0, ""};
        hole->why = "points from " + to_string(space_.low_corner(cell)) + " on are never computed";
    });
    return hole;
}

// Every request has been waited for by now, so no cell is still promised or lent.
std::optional<Violation> Checker::results() {
    for (const Player& p : players_)
        for (std::size_t a = 0; a < p.s->arrays.size(); ++a) {
            const Array& array = p.s->arrays[a];
            if (written_[a] != Written::once || array.planes > 0) continue;
            std::optional<Violation> wrong;
            Box mine = intersect(array.owned, p.s->space);
            if (array.time_buffers > 0 && !mine.empty())
                mine.lo[0] =
                    std::max(mine.lo[0], mine.hi[0] - array.time_buffers);  // what was there before is overwritten
            space_.for_each(mine, [&](const Index& cell) {
                const bool given = planned(array, cell);
                if (!wrong && p.cells[a].version(space_, cell) !=
                                  (given ? computed_at(array, cell) : start(p.s->rank, static_cast<int>(a))))
                    wrong = Violation{p.s->rank, 0, p.s->lanes.empty() ? 0 : p.s->lanes[0].size(),
                                      "at the end array " + std::to_string(a) + " from " +
                                          to_string(space_.low_corner(cell)) +
                                          (given ? " on does not hold what was computed there"
                                                 : " on does not hold what was there before, and nobody computes it")};
            });
            if (wrong) return wrong;
        }
    for (const Player& p : players_)
        for (const Result& r : p.s->results) {
            Versions want;
            for (int rank : r.ranks) want.push_back(start(rank, r.source));
            std::optional<Violation> wrong;
            space_.for_each(r.region, [&](const Index& cell) {
                const Version found = p.cells[r.array].version(space_, cell);
                if (wrong || table_.joins(found, want)) return;
                wrong = Violation{p.s->rank, 0, p.s->lanes.empty() ? 0 : p.s->lanes[0].size(),
                                  "at the end " + to_string(r.region) + " of array " + std::to_string(r.array) +
                                      " should hold " + table_.text(want, static_cast<std::int64_t>(want.size())) +
                                      "; from " + to_string(space_.low_corner(cell)) + " on it holds " +
                                      table_.text(found)};
            });
            if (wrong) return wrong;
        }
    return std::nullopt;
}

}  // namespace tilewave
