#include "tilewave/check.hpp"

#include <algorithm>

#include "check/checker.hpp"
#include "check/shapes.hpp"
#include "schedule/tile_rows.hpp"

// How the proof goes. Lanes are played one step at a time in a fixed order. No step's effect
// depends on timing (there are no wildcards), so one order that ends proves that all do, and one
// that gets stuck proves a cyclic wait. Every lane carries a vector clock, joined by
// signal -> await, by post_send -> wait(receive), and by post_recv -> wait(send) where the send is
// synchronous. Two accesses to one place that no clock orders are a race, whichever came first here.

namespace tilewave {

std::string to_string(const Violation& v) {
    return "rank " + std::to_string(v.rank) + ", lane " + std::to_string(v.lane) + ", step " + std::to_string(v.step) +
           ": " + v.why;
}

void Checker::set_up() {
    const Schedule& all = schedules_[0];
    written_.assign(all.arrays.size(), Written::never);
    for (const Access& p : all.places) {
        if (!p.writes) break;
        Written& w = written_[static_cast<std::size_t>(p.array)];
        const bool once =
            w == Written::never && p.offset == Index::filled(p.offset.n, 0) && all.arrays[p.array].lacks == 0;
        w = once ? Written::once : Written::often;
    }
    for (const Schedule& s : schedules_) {
        lanes_ += static_cast<int>(s.lanes.size());
        space_.add(s.space);
        for (const Array& a : s.arrays) {
            if (a.whole) continue;
            if (a.time_buffers > 0)  // each time is a cell of its own
                for (std::int64_t t = a.storage.lo[0]; t < a.storage.hi[0]; ++t) {
                    Box one = a.storage;
                    one.lo[0] = t;
                    one.hi[0] = t + 1;
                    space_.add(one);
                }
            space_.add(a.storage);
            space_.add(a.owned);
        }
        for (const Message& m : s.messages) space_.add(m.region);
        for (const Result& r : s.results) space_.add(r.region);
        for (const Tile& t : s.tiles) {
            space_.add(t.box);
            for (const Access& p : s.places) space_.add(s.arrays[p.array].elements(t.box.shifted(p.offset)));
        }
    }
    space_.finish();
    computed_.assign(space_.count(space_.all()), 0);
    planned_ = computed_;
    for (const Schedule& s : schedules_)
        for (const Tile& t : s.tiles)
            space_.for_each(t.box, [&](const Index& cell) {
                const bool within = s.bounds.empty() || TileRows(all, intersect(space_.box_of(cell), t.box)).first();
                char& planned = planned_[space_.linear(space_.all(), cell)];
                planned = std::max<char>(planned, within ? 2 : 1);
            });
    leave_out_corners();
    int first = 0;
    for (const Schedule& s : schedules_) {
        Player p(s, first);
        first += static_cast<int>(s.lanes.size());
        p.next.assign(s.lanes.size(), 0);
        p.clock.assign(s.lanes.size(), Clock(static_cast<std::size_t>(lanes_), 0));
        p.signals.resize(s.lanes.size());
        p.messages.resize(s.messages.size());
        p.buffers.resize(s.buffers.size());
        p.computed.assign(computed_.size(), 0);
        for (std::size_t a = 0; a < s.arrays.size(); ++a)
            p.cells.emplace_back(space_, s.arrays[a], start(s.rank, static_cast<int>(a)));
        players_.push_back(std::move(p));
    }
    if (!schedules_[0].places.empty())
        for (std::size_t a = 0; a < schedules_[0].arrays.size(); ++a) leave_out_padding(static_cast<int>(a));
}

// Boxes of skewed coordinates have cells that no rank owns and that hold no element: whatever is there is as it should
// be.
void Checker::leave_out_padding(int array) {
    if (schedules_[0].arrays[array].whole || schedules_[0].arrays[array].time_buffers > 0 ||
        schedules_[0].arrays[array].planes > 0)
        return;
    std::vector<char> owned(static_cast<std::size_t>(space_.count(space_.all())), 0);
    for (const Player& p : players_) {
        const Array& a = p.s->arrays[array];
        space_.for_each(intersect(a.owned, a.storage),
                        [&](const Index& cell) { owned[space_.linear(space_.all(), cell)] = 1; });
    }
    for (Player& p : players_)
        space_.for_each(p.s->arrays[array].storage, [&](const Index& cell) {
            if (!owned[space_.linear(space_.all(), cell)]) p.cells[array].set(space_, cell, start(p.s->rank, array));
        });
}

// Cells of tiles that hold no point within the bounds at any time.
void Checker::leave_out_corners() {
    if (schedules_[0].bounds.empty() || space_.all().dims() == 0) return;
    const std::size_t times = static_cast<std::size_t>(space_.cells(space_.all()).extent(0)),
                      one = planned_.size() / times;
    for (std::size_t c = 0; c < one; ++c) {
        char most = 0;
        for (std::size_t t = 0; t < times; ++t) most = std::max(most, planned_[t * one + c]);
        for (std::size_t t = 0; t < times && most == 1; ++t) planned_[t * one + c] = 0;
    }
}

std::optional<Violation> Checker::run() {
    set_up();
    for (bool moved = true; moved;) {
        moved = false;
        for (Player& p : players_)
            for (std::size_t l = 0; l < p.next.size(); ++l)
                while (p.next[l] < p.s->lanes[l].size() && ready(p, p.s->lanes[l][p.next[l]])) {
                    const int lane = static_cast<int>(l);
                    ++p.clock[l][p.first_lane + lane];
                    if (auto why = play(p, lane, p.s->lanes[l][p.next[l]]))
                        return Violation{p.s->rank, lane, p.next[l], *why};
                    ++p.next[l];
                    moved = true;
                }
    }
    if (auto v = stuck()) return v;
    if (auto v = leftovers()) return v;
    return results();
}

bool Checker::ready(const Player& p, const Step& step) const {
    if (step.op == Op::await) {
        const auto& signals = p.signals[step.item];
        // Counters begin at 0: to await that or less is not to wait.
        return step.count <= 0 || (!signals.empty() && signals.back().first >= step.count);
    }
    if (step.op == Op::wait) {
        // A request never posted is ready too: play() says what is wrong with it.
        const MessageState& m = p.messages[step.item];
        return m.stage != Stage::posted || m.partner >= 0;
    }
    return true;
}

Checker::Why Checker::play(Player& p, int lane, const Step& step) {
    switch (step.op) {
        case Op::compute: return compute(p, lane, p.s->tiles[step.item]);
        case Op::post_recv:
        case Op::post_send: return post(p, lane, step.item);
        case Op::wait: return wait(p, lane, step.item);
        case Op::pack: return pack(p, lane, step.item);
        case Op::unpack: return unpack(p, lane, step.item);
        case Op::combine: return combine(p, lane, step.item, step.count);
        case Op::signal: {
            auto& signals = p.signals[lane];
            const std::int32_t before = signals.empty() ? 0 : signals.back().first;
            if (step.count <= before)
                return "signal " + std::to_string(step.count) + " where the lane's counter is " +
                       std::to_string(before) + ": it only grows";
            signals.push_back({step.count, p.clock[lane]});
            return std::nullopt;
        }
        case Op::await:
            for (const auto& [count, clock] : p.signals[step.item])
                if (step.count > 0 && count >= step.count) {
                    join(p.clock[lane], clock);
                    break;
                }
            return std::nullopt;
    }
    return "unknown op";
}

Checker::Why Checker::read_cells(Player& p, int lane, int array, const Box& box, Versions* versions) {
    if (!p.s->arrays[array].storage.contains(box))
        return "it reads " + tilewave::to_string(box) + " of array " + std::to_string(array) +
               ", outside its storage " + tilewave::to_string(p.s->arrays[array].storage);
    return p.cells[array].read(space_, box, who(p, lane), p.clock[lane], versions);
}

Checker::Why Checker::write_cells(Player& p, int lane, int array, const Box& box, const Versions& versions) {
    if (!p.s->arrays[array].storage.contains(box))
        return "it writes " + tilewave::to_string(box) + " of array " + std::to_string(array) +
               ", outside its storage " + tilewave::to_string(p.s->arrays[array].storage);
    return p.cells[array].write(space_, box, who(p, lane), p.clock[lane], versions);
}

static std::string held(const Player& p, const BufferState& buffer) {
    if (buffer.holds < 0) return "nothing";
    const Message& m = p.s->messages[buffer.holds];
    return "message " + std::to_string(buffer.holds) + " of region " + to_string(m.region) + " and " +
           std::to_string(m.bytes) + " bytes";
}

Checker::Why Checker::compute(Player& p, int lane, const Tile& tile) {
    const Schedule& s = *p.s;
    if (!s.space.contains(tile.box)) return "tile " + to_string(tile.box) + " is not inside the space";
    if (std::any_of(s.arrays.begin(), s.arrays.end(), [](const Array& a) { return a.planes > 0; })) {
        std::vector<std::int64_t> column(tile.box.lo.begin(), tile.box.lo.end());
        column[static_cast<std::size_t>(s.across)] = 0;
        const auto [last, first] = p.columns.try_emplace(column, tile.box.lo[s.across]);
        if (tile.box.lo[s.across] < last->second)
            return "tile " + to_string(tile.box) +
                   " is computed after others further along its column: planes that it reads are no longer kept";
        last->second = tile.box.hi[s.across];
    }
    std::vector<Access> reads_at = s.places;
    for (const Access& w : s.places) {
        if (!w.writes || !w.keeps || s.arrays[w.array].time_buffers < 1) continue;
        reads_at.push_back({w.array, w.offset});  // what may stay is that of the level before
        reads_at.back().offset[0] -= 1;
    }
    for (std::size_t q = 0; q < reads_at.size(); ++q) {
        const Access& r = reads_at[q];
        const Array& array = s.arrays[r.array];
        if (array.whole) continue;
        // What stays is there for the next time where points are beyond the bounds, too.
        const auto stays = [&](Index cell) { return q >= s.places.size() && planned(array, (++cell[0], cell)); };
        const Box from = tile.box.shifted(r.offset);
        Versions versions;
        const bool here = r.offset == Index::filled(r.offset.n, 0);
        if (written_[r.array] == Written::once && here && (array.time_buffers > 0 || (r.writes && !r.keeps)))
            continue;  // no value of before
        // What the tile writes itself is there when a later point of it reads it; what an earlier point reads was there
        // before.
        const bool by_itself =
            written_[r.array] == Written::once && lexicographically_positive(Index::filled(r.offset.n, 0) - r.offset);
        std::vector<Box> pieces = by_itself ? subtract(from, tile.box) : std::vector<Box>{array.elements(from)};
        for (const Box& part : pieces) {
            if (auto why = read_cells(p, lane, r.array, part, &versions)) return why;
            if (written_[r.array] == Written::often) continue;  // the order of steps is all that is checked
            // The array must hold what plain loops would find: new values before the point in loop
            // order, old ones after it.
            std::size_t i = 0;
            Why wrong;
            space_.for_each(part, [&](const Index& cell) {
                const Version found = versions[i++];
                const Version want =
                    by_itself && planned(array, cell) ? computed_at(array, cell) : start(s.rank, r.array);
                if (!wrong && found != want && (stays(cell) || reads(tile, r, cell)))
                    wrong = "tile " + to_string(tile.box) + " reads " + to_string(part) + " of array " +
                            std::to_string(r.array) + " before " +
                            (found == missing ? "anything is there" : "it holds the right values");
            });
            if (wrong) return wrong;
        }
    }
    // Several ranks may compute a point where all it gives are values that each of them keeps by themselves.
    const bool each = std::all_of(s.places.begin(), s.places.end(), [&](const Access& w) {
        return !w.writes || (written_[w.array] == Written::once && s.arrays[w.array].time_buffers > 0);
    });
    Why twice;
    space_.for_each(tile.box, [&](const Index& cell) {
        const std::size_t at = space_.linear(space_.all(), cell);
        if ((each ? p.computed : computed_)[at] && !twice)
            twice = "points of tile " + to_string(tile.box) + " are computed twice";
        computed_[at] = p.computed[at] = 1;
    });
    if (twice) return twice;
    for (const Access& w : s.places) {
        if (!w.writes) break;
        const Box to = s.arrays[w.array].elements(tile.box.shifted(w.offset));
        Versions versions;
        space_.for_each(to, [&](const Index& cell) {
            // Where points are beyond the bounds, what is there stays: of a cell that some of them write there must
            // have been something.
            const Array& array = s.arrays[w.array];
            const Version there = s.bounds.empty() ? computed : p.cells[w.array].version(space_, cell);
            const bool stays =
                array.time_buffers > 0
                    ? !planned(array, cell)
                    : !s.bounds.empty() && (!reads(tile, w, cell) ||
                                            (there == missing && array.lacks == 0 && !all_write(tile, w, cell)));
            versions.push_back(stays ? there : computed_at(array, cell));
        });
        if (auto why = write_cells(p, lane, w.array, to, versions)) return why;
    }
    return std::nullopt;
}

// Whether some point of the tile that is within the bounds reads the cell at `place`.
bool Checker::reads(const Tile& tile, const Access& place, const Index& cell) const {
    Box points = space_.box_of(cell).shifted(Index::filled(place.offset.n, 0) - place.offset);
    for (int k = 0; k < points.dims(); ++k)
        if (schedules_[0].arrays[place.array].lacks >> k & 1) {
            points.lo[k] = tile.box.lo[k];
            points.hi[k] = tile.box.hi[k];
        }
    return TileRows(schedules_[0], intersect(points, tile.box)).first();
}

// Whether all points of the tile that write the cell are within the bounds.
bool Checker::all_write(const Tile& tile, const Access& place, const Index& cell) const {
    const Box points =
        intersect(space_.box_of(cell).shifted(Index::filled(place.offset.n, 0) - place.offset), tile.box);
    TileRows rows(schedules_[0], points);
    std::int64_t within = 0;
    for (bool more = rows.first(); more; more = rows.next()) within += rows.end() - rows.begin();
    return within == points.points();
}

// Whether a tile gives the cell its value. A level of time is copied where no point computes it, but some at another
// time.
bool Checker::planned(const Array& array, const Index& cell) const {
    return planned_[space_.linear(space_.all(), cell)] > (array.time_buffers > 0 ? 0 : 1);
}

// A value of an array with time buffers is that of its time: another level's is not it.
Version Checker::computed_at(const Array& array, const Index& cell) const {
    return array.time_buffers > 0 ? missing - 1 - static_cast<Version>(space_.low_corner(cell)[0] - array.storage.lo[0])
                                  : computed;
}

Checker::Why Checker::post(Player& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    MessageState& state = p.messages[id];
    if (state.stage != Stage::fresh) return "message " + std::to_string(id) + " is posted twice";
    if (m.peer < 0 || m.peer >= p.s->ranks || m.peer == p.s->rank)
        return "message " + std::to_string(id) + " has peer " + std::to_string(m.peer) + " of " +
               std::to_string(p.s->ranks) + " ranks";
    state.stage = Stage::posted;
    state.posted = p.clock[lane];
    if (m.buffer >= 0) {
        BufferState& buffer = p.buffers[m.buffer];
        if (auto why = m.send ? buffer.begin_send(who(p, lane), p.clock[lane], id)
                              : buffer.begin_receive(who(p, lane), p.clock[lane], id))
            return why;
        if (m.send) {
            // What another message left in the buffer may go on as it is: forwarding.
            if (buffer.holds < 0 || (m.pieces > 0 ? buffer.holds != id : !alike(p, id, buffer.holds)))
                return "message " + std::to_string(id) + " of region " + to_string(m.region) + " and " +
                       std::to_string(m.bytes) + " bytes is sent before it is packed: its buffer holds " +
                       held(p, buffer);
            state.content = buffer.content;
            if (m.pieces > 0 &&
                std::find(buffer.content.begin(), buffer.content.end(), missing) != buffer.content.end())
                return "message " + std::to_string(id) + " is sent before all of its " + std::to_string(m.pieces) +
                       " parts are packed";
        }
    } else if (m.send) {
        if (auto why = read_cells(p, lane, m.array, m.region, &state.content)) return why;
        for (Version v : state.content)
            if (v == missing) return "it sends " + to_string(m.region) + " before anything is there";
        p.cells[m.array].lend(space_, m.region, +1);
    } else {
        if (auto why = write_cells(p, lane, m.array, m.region, Versions(space_.count(m.region), missing))) return why;
        p.cells[m.array].promise(space_, m.region, id);
    }
    // Match with the other side, oldest first.
    const auto key = m.send ? std::tuple{p.s->rank, m.peer, m.tag} : std::tuple{m.peer, p.s->rank, m.tag};
    auto& mine = m.send ? sends_[key] : receives_[key];
    auto& theirs = m.send ? receives_[key] : sends_[key];
    if (mine.last >= 0) {
        // Two of one tag are matched in posting order, so that order must be certain, even where
        // this play has matched the earlier one already.
        const MessageState& last = p.messages[mine.last];
        for (std::size_t l = 0; l < last.posted.size(); ++l)
            if (last.posted[l] > p.clock[lane][l])
                return "message " + std::to_string(id) + " and message " + std::to_string(mine.last) +
                       " have one tag and no certain order";
    }
    mine.last = id;
    if (theirs.waiting.empty()) {
        mine.waiting.push_back(id);
        return std::nullopt;
    }
    const int other = theirs.waiting.front();
    theirs.waiting.pop_front();
    const Message& o = players_[m.peer].s->messages[other];
    if (o.bytes != m.bytes)
        return "message " + std::to_string(id) + " of " + std::to_string(m.bytes) + " bytes meets one of " +
               std::to_string(o.bytes) + " bytes on rank " + std::to_string(m.peer) + " (tag " + std::to_string(m.tag) +
               ")";
    for (int i = 1; i <= std::max(m.pieces, o.pieces); ++i) {
        const Message *mine_part = &m + i, *other_part = &o + i;
        if (m.pieces == o.pieces && mine_part->region == other_part->region && mine_part->array == other_part->array)
            continue;
        return "message " + std::to_string(id) + " of " + std::to_string(m.pieces) + " parts meets others on rank " +
               std::to_string(m.peer) + " (tag " + std::to_string(m.tag) + ")";
    }
    if (!(o.region == m.region))
        return "message " + std::to_string(id) + " of region " + to_string(m.region) + " meets region " +
               to_string(o.region) + " on rank " + std::to_string(m.peer) + " (tag " + std::to_string(m.tag) + ")";
    // Computed values do not say of which array they are.
    if (!p.s->places.empty() && o.array != m.array)
        return "message " + std::to_string(id) + " of array " + std::to_string(m.array) + " meets array " +
               std::to_string(o.array) + " on rank " + std::to_string(m.peer) + " (tag " + std::to_string(m.tag) + ")";
    state.partner = other;
    players_[m.peer].messages[other].partner = id;
    return std::nullopt;
}

Checker::Why Checker::wait(Player& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    MessageState& state = p.messages[id];
    if (state.stage == Stage::fresh) return "message " + std::to_string(id) + " is waited for before it is posted";
    if (state.stage == Stage::finished) return "message " + std::to_string(id) + " is waited for twice";
    state.stage = Stage::finished;
    // What the poster did before posting is before what follows the wait, whoever waits.
    join(p.clock[lane], state.posted);
    MessageState& other = players_[m.peer].messages[state.partner];
    if (!m.send || m.synchronous) join(p.clock[lane], other.posted);
    if (m.buffer >= 0) {
        if (m.send) return p.buffers[m.buffer].end_send(who(p, lane), p.clock[lane], id);
        p.buffers[m.buffer].arrive(who(p, lane), std::move(other.content));
        return std::nullopt;
    }
    if (m.send) {
        p.cells[m.array].lend(space_, m.region, -1);
        return read_cells(p, lane, m.array, m.region, nullptr);
    }
    p.cells[m.array].promise(space_, m.region, -1);
    return write_cells(p, lane, m.array, m.region, other.content);
}

Checker::Why Checker::pack(Player& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    if (m.buffer < 0) return "pack of message " + std::to_string(id) + ", which has no buffer";
    Versions packed;
    if (auto why = read_cells(p, lane, m.array, m.region, &packed)) return why;
    for (Version v : packed)
        if (v == missing) return "it packs " + to_string(m.region) + " before anything is there";
    BufferState& buffer = p.buffers[m.buffer];
    if (m.aggregate < 0) return buffer.write(who(p, lane), p.clock[lane], id, std::move(packed));
    // The others' values stay; what is not packed yet is missing.
    const Schedule& s = *p.s;
    const int last = m.aggregate + s.messages[m.aggregate].pieces;
    Versions all = buffer.holds == m.aggregate
                       ? buffer.content
                       : Versions(place_of(s, last) + space_.count(s.messages[last].region), missing);
    std::copy(packed.begin(), packed.end(), all.begin() + static_cast<std::ptrdiff_t>(place_of(s, id)));
    return buffer.write(who(p, lane), p.clock[lane], m.aggregate, std::move(all));
}

Checker::Why Checker::unpack(Player& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    if (m.buffer < 0) return "unpack of message " + std::to_string(id) + ", which has no buffer";
    BufferState& buffer = p.buffers[m.buffer];
    const bool local = m.peer == p.s->rank;
    const int whole = m.aggregate >= 0 ? m.aggregate : id;
    if (!local && p.messages[whole].stage != Stage::finished)
        return "message " + std::to_string(id) + " is unpacked before it has arrived";
    if (auto why = buffer.read(who(p, lane), p.clock[lane])) return why;
    // Within a rank any message's values may be taken; those from elsewhere are the message's own.
    if (local ? buffer.holds < 0 || !alike(p, id, buffer.holds) : buffer.holds != whole)
        return "message " + std::to_string(id) + " of region " + to_string(m.region) + " and " +
               std::to_string(m.bytes) + " bytes is unpacked from a buffer that holds " + held(p, buffer);
    if (m.aggregate >= 0) {
        const auto first = buffer.content.begin() + static_cast<std::ptrdiff_t>(place_of(*p.s, id));
        return write_cells(p, lane, m.array, m.region,
                           Versions(first, first + static_cast<std::ptrdiff_t>(space_.count(m.region))));
    }
    return write_cells(p, lane, m.array, m.region, buffer.content);
}

Checker::Why Checker::combine(Player& p, int lane, int id, int operand) {
    const Message& m = p.s->messages[id];
    const std::string name = "message " + std::to_string(id);
    BufferState& into = p.buffers[m.buffer];
    if (p.messages[id].stage != Stage::finished) return name + " is combined before it has arrived";
    if (into.holds != id) return name + " is combined in a buffer that holds " + held(p, into);
    Versions other;
    if (operand >= 0) {
        BufferState& from = p.buffers[p.s->messages[operand].buffer];
        if (auto why = from.read(who(p, lane), p.clock[lane])) return "left operand: " + *why;
        if (from.holds != operand)
            return name + " is combined with message " + std::to_string(operand) + ", whose buffer holds " +
                   held(p, from);
        other = from.content;
    } else {
        if (auto why = read_cells(p, lane, m.array, m.region, &other)) return why;
        for (Version v : other)
            if (v == missing)
                return "it combines with " + to_string(m.region) + " of array " + std::to_string(m.array) +
                       " before anything is there";
    }
    for (std::size_t i = 0; i < other.size(); ++i)
        other[i] = operand == combine_array_right ? table_.combine(into.content[i], other[i])
                                                  : table_.combine(other[i], into.content[i]);
    return into.write(who(p, lane), p.clock[lane], id, std::move(other));
}

std::optional<Violation> check(std::span<const Schedule> schedules) {
    if (schedules.empty()) return std::nullopt;
    if (auto v = check_shapes(schedules)) return v;
    return Checker(schedules).run();
}

}  // namespace tilewave
