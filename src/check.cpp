#include "tilewave/check.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "check_memory.hpp"
#include "tilewave/layout.hpp"

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

namespace {

using Clock = std::vector<std::int32_t>;

void join(Clock& a, const Clock& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
}

enum class Stage : std::uint8_t { fresh, posted, finished };

struct MessageState {
    Stage stage = Stage::fresh;
    Clock posted;               // clock of the post
    int partner = -1;           // message id on the peer, once matched
    Versions content;  // of a send: versions of the region's cells when posted
    Versions packed;   // of a staged send: versions when packed
};

struct Player {
    Player(const Schedule& schedule, int first_lane) : s(&schedule), first_lane(first_lane) {}
    const Schedule* s;
    int first_lane;  // number of its lane 0 among all lanes
    std::vector<std::size_t> next;
    std::vector<Clock> clock;
    std::vector<std::vector<std::pair<int, Clock>>> signals;  // by lane: (count, clock)
    std::vector<MessageState> messages;
    std::vector<BufferState> buffers;
    std::vector<CellStore> cells;  // by array
};

class Checker {
public:
    explicit Checker(std::span<const Schedule> schedules) : schedules_(schedules) {}
    std::optional<Violation> run();

private:
    using Why = std::optional<std::string>;

    std::optional<Violation> check_shapes() const;
    static Why check_message(const Schedule& s, int id);
    void set_up();
    bool ready(const Player& p, const Step& step) const;
    Why play(Player& p, int lane, const Step& step);
    Why compute(Player& p, int lane, const Tile& tile);
    Why post(Player& p, int lane, int id);
    Why wait(Player& p, int lane, int id);
    Why pack(Player& p, int lane, int id);
    Why unpack(Player& p, int lane, int id);
    Why read_cells(Player& p, int lane, int array, const Box& box, Versions* versions);
    Why write_cells(Player& p, int lane, int array, const Box& box, const Versions& versions);
    std::optional<Violation> stuck() const;
    std::optional<Violation> leftovers() const;
    Who who(const Player& p, int lane) const { return {p.first_lane + lane, p.clock[lane][p.first_lane + lane]}; }

    std::span<const Schedule> schedules_;
    int lanes_ = 0;
    Cells space_;                   // compressed coordinates of all boxes
    std::vector<Player> players_;
    std::vector<char> computed_;    // by cell of the whole space
    struct Posted {
        std::deque<int> waiting;  // not yet matched, in order
        int last = -1;            // latest, matched or not
    };
    std::map<std::tuple<int, int, int>, Posted> sends_, receives_;  // by (sender, receiver, tag)
};

std::optional<Violation> Checker::check_shapes() const {
    for (std::size_t r = 0; r < schedules_.size(); ++r) {
        const Schedule& s = schedules_[r];
        if (s.rank != static_cast<int>(r) || s.ranks != static_cast<int>(schedules_.size()))
            return Violation{static_cast<int>(r), 0, 0, "the schedule says rank " + std::to_string(s.rank) + " of " +
                                                            std::to_string(s.ranks) + ", it is " + std::to_string(r) +
                                                            " of " + std::to_string(schedules_.size())};
        const Schedule& first = schedules_[0];
        auto same_item = [](const Array& a, const Array& b) { return a.item_bytes == b.item_bytes; };
        auto same_read = [](const Access& a, const Access& b) { return a.array == b.array && a.offset == b.offset; };
        if (!std::equal(s.arrays.begin(), s.arrays.end(), first.arrays.begin(), first.arrays.end(), same_item) ||
            !(s.space == first.space) ||
            !std::equal(s.reads.begin(), s.reads.end(), first.reads.begin(), first.reads.end(), same_read))
            return Violation{s.rank, 0, 0, "its arrays, its reads or its space differ from rank 0's"};
        for (const Access& read : s.reads)
            if (read.array < 0 || static_cast<std::size_t>(read.array) >= s.arrays.size())
                return Violation{s.rank, 0, 0, "a read names array " + std::to_string(read.array) + " of " + std::to_string(s.arrays.size())};
        std::vector<char> told(s.messages.size(), 0);  // messages looked at
        for (std::size_t l = 0; l < s.lanes.size(); ++l)
            for (std::size_t i = 0; i < s.lanes[l].size(); ++i) {
                const Step& step = s.lanes[l][i];
                std::size_t limit = s.messages.size();
                if (step.op == Op::compute) limit = s.tiles.size();
                if (step.op == Op::await) limit = s.lanes.size();
                if (step.op == Op::signal) continue;
                if (step.item < 0 || static_cast<std::size_t>(step.item) >= limit)
                    return Violation{s.rank, static_cast<int>(l), i, std::string(to_string(step.op)) + " names item " +
                                                                         std::to_string(step.item) + " of " +
                                                                         std::to_string(limit)};
                const bool of_message = step.op != Op::compute && step.op != Op::await;
                if (of_message && !told[static_cast<std::size_t>(step.item)])
                    if (auto why = check_message(s, step.item)) return Violation{s.rank, static_cast<int>(l), i, *why};
                if (of_message) told[static_cast<std::size_t>(step.item)] = 1;
            }
    }
    return std::nullopt;
}

// What the executor takes on trust: numbers that name something, and sizes of memory.
Checker::Why Checker::check_message(const Schedule& s, int id) {
    const Message& m = s.messages[id];
    const std::string name = "message " + std::to_string(id);
    auto outside = [&](const char* what, int i, std::size_t n) {
        return name + " names " + what + " " + std::to_string(i) + " of " + std::to_string(n);
    };
    auto below = [](int i, std::size_t n) { return i >= 0 && static_cast<std::size_t>(i) < n; };
    if (!below(m.array, s.arrays.size())) return outside("array", m.array, s.arrays.size());
    if (m.buffer >= 0 && !below(m.buffer, s.buffers.size())) return outside("buffer", m.buffer, s.buffers.size());
    if (m.tile >= 0 && !below(m.tile, s.tiles.size())) return outside("tile", m.tile, s.tiles.size());
    const Array& array = s.arrays[m.array];
    const std::int64_t bytes = m.region.points() * array.item_bytes;
    if (m.bytes != bytes)
        return name + " has " + std::to_string(m.bytes) + " bytes, its region " + to_string(m.region) + " " + std::to_string(bytes);
    if (m.buffer >= 0 && s.buffers[m.buffer] < bytes)
        return "buffer " + std::to_string(m.buffer) + " of " + std::to_string(s.buffers[m.buffer]) + " bytes is smaller than " +
               name + " of " + std::to_string(bytes);
    if (m.buffer < 0 && !contiguous(m.region, array.storage))
        return name + " goes straight from or to " + to_string(m.region) + ", no single run of memory in " + to_string(array.storage);
    return std::nullopt;
}

void Checker::set_up() {
    for (const Schedule& s : schedules_) {
        lanes_ += static_cast<int>(s.lanes.size());
        space_.add(s.space);
        for (const Array& a : s.arrays) {
            space_.add(a.storage);
            space_.add(a.owned);
        }
        for (const Message& m : s.messages) space_.add(m.region);
        for (const Tile& t : s.tiles) {
            space_.add(t.box);
            for (const Access& r : s.reads) space_.add(t.box.shifted(r.offset));
        }
    }
    space_.finish();
    computed_.assign(space_.count(space_.all()), 0);
    int first = 0;
    for (const Schedule& s : schedules_) {
        Player p(s, first);
        first += static_cast<int>(s.lanes.size());
        p.next.assign(s.lanes.size(), 0);
        p.clock.assign(s.lanes.size(), Clock(static_cast<std::size_t>(lanes_), 0));
        p.signals.resize(s.lanes.size());
        p.messages.resize(s.messages.size());
        p.buffers.resize(s.buffers.size());
        for (std::size_t a = 0; a < s.arrays.size(); ++a)
            p.cells.emplace_back(space_, s.arrays[a].storage, s.arrays[a].owned, given(static_cast<int>(a)));
        players_.push_back(std::move(p));
    }
}

std::optional<Violation> Checker::run() {
    if (auto v = check_shapes()) return v;
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
    return leftovers();
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
        case Op::signal: {
            auto& signals = p.signals[lane];
            const std::int32_t before = signals.empty() ? 0 : signals.back().first;
            if (step.count <= before)
                return "signal " + std::to_string(step.count) + " where the lane's counter is " + std::to_string(before) +
                       ": it only grows";
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
        return "it reads " + tilewave::to_string(box) + " of array " + std::to_string(array) + ", outside its storage " +
               tilewave::to_string(p.s->arrays[array].storage);
    return p.cells[array].read(space_, box, who(p, lane), p.clock[lane], versions);
}

Checker::Why Checker::write_cells(Player& p, int lane, int array, const Box& box, const Versions& versions) {
    if (!p.s->arrays[array].storage.contains(box))
        return "it writes " + tilewave::to_string(box) + " of array " + std::to_string(array) + ", outside its storage " +
               tilewave::to_string(p.s->arrays[array].storage);
    return p.cells[array].write(space_, box, who(p, lane), p.clock[lane], versions);
}

bool earlier(const Index& offset) {  // lexicographically negative: plain loops have computed it
    for (auto x : offset)
        if (x) return x < 0;
    return false;
}

Checker::Why Checker::compute(Player& p, int lane, const Tile& tile) {
    const Schedule& s = *p.s;
    if (!s.arrays[0].owned.contains(tile.box) || !s.space.contains(tile.box))
        return "tile " + to_string(tile.box) + " is not inside the rank's own points of the space";
    for (const Access& r : s.reads) {
        const Box from = tile.box.shifted(r.offset);
        Versions versions;
        for (const Box& part : r.array == 0 ? subtract(from, tile.box) : std::vector<Box>{from}) {
            if (auto why = read_cells(p, lane, r.array, part, &versions)) return why;
            // The written array must hold what plain loops would find: new values before the point
            // in loop order, old ones after it.
            std::size_t i = 0;
            Why wrong;
            space_.for_each(part, [&](const Index& cell) {
                const Version found = versions[i++];
                const Version want = r.array == 0 && earlier(r.offset) && space_.inside(cell, s.space) ? computed : given(r.array);
                if (!wrong && found != want)
                    wrong = "tile " + to_string(tile.box) + " reads " + to_string(part) + " of array " +
                            std::to_string(r.array) + " before " +
                            (found == missing ? "anything is there" : "it holds the right values");
            });
            if (wrong) return wrong;
        }
    }
    Why twice;
    space_.for_each(tile.box, [&](const Index& cell) {
        char& seen = computed_[space_.linear(space_.all(), cell)];
        if (seen && !twice) twice = "points of tile " + to_string(tile.box) + " are computed twice";
        seen = 1;
    });
    if (twice) return twice;
    return write_cells(p, lane, 0, tile.box, Versions(space_.count(tile.box), computed));
}

Checker::Why Checker::post(Player& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    MessageState& state = p.messages[id];
    if (state.stage != Stage::fresh) return "message " + std::to_string(id) + " is posted twice";
    if (m.peer < 0 || m.peer >= p.s->ranks || m.peer == p.s->rank)
        return "message " + std::to_string(id) + " has peer " + std::to_string(m.peer) + " of " + std::to_string(p.s->ranks) +
               " ranks";
    state.stage = Stage::posted;
    state.posted = p.clock[lane];
    if (m.buffer >= 0) {
        if (m.send) {
            if (auto why = p.buffers[m.buffer].read(who(p, lane), p.clock[lane], id)) return why;
            if (p.buffers[m.buffer].holds != id) return "message " + std::to_string(id) + " is sent before it is packed";
            state.content = state.packed;
            p.buffers[m.buffer].in_flight = id;
        } else if (auto why = p.buffers[m.buffer].write(who(p, lane), p.clock[lane], id)) {
            return why;
        } else {
            p.buffers[m.buffer].in_flight = id;
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
               std::to_string(o.bytes) + " bytes on rank " + std::to_string(m.peer) + " (tag " + std::to_string(m.tag) + ")";
    if (!(o.region == m.region))
        return "message " + std::to_string(id) + " of region " + to_string(m.region) + " meets region " +
               to_string(o.region) + " on rank " + std::to_string(m.peer) + " (tag " + std::to_string(m.tag) + ")";
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
    const MessageState& other = players_[m.peer].messages[state.partner];
    if (!m.send || m.synchronous) join(p.clock[lane], other.posted);
    if (m.buffer >= 0) {
        p.buffers[m.buffer].in_flight = -1;
        return m.send ? p.buffers[m.buffer].read(who(p, lane), p.clock[lane], id) : p.buffers[m.buffer].arrive(who(p, lane), id);
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
    if (auto why = read_cells(p, lane, m.array, m.region, &p.messages[id].packed)) return why;
    for (Version v : p.messages[id].packed)
        if (v == missing) return "it packs " + to_string(m.region) + " before anything is there";
    return p.buffers[m.buffer].write(who(p, lane), p.clock[lane], id, &p.messages[id].packed);
}

Checker::Why Checker::unpack(Player& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    if (m.buffer < 0) return "unpack of message " + std::to_string(id) + ", which has no buffer";
    if (auto why = p.buffers[m.buffer].read(who(p, lane), p.clock[lane], id)) return why;
    if (m.peer == p.s->rank) {
        const int from = p.buffers[m.buffer].holds;
        if (from < 0 || !(p.s->messages[from].region == m.region))
            return "message " + std::to_string(id) + " of region " + to_string(m.region) + " is unpacked from a buffer that holds " +
                   (from < 0 ? "nothing" : to_string(p.s->messages[from].region));
        return write_cells(p, lane, m.array, m.region, p.buffers[m.buffer].content);
    }
    const MessageState& state = p.messages[id];
    if (state.stage != Stage::finished || p.buffers[m.buffer].holds != id)
        return "message " + std::to_string(id) + " is unpacked before it has arrived";
    return write_cells(p, lane, m.array, m.region, players_[m.peer].messages[state.partner].content);
}

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
                why += std::string("rank ") + std::to_string(m.peer) + " posts no " + (m.send ? "receive" : "send") + " that meets it";
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
    space_.for_each(first.space, [&](const Index& cell) {
        if (hole || computed_[space_.linear(space_.all(), cell)]) return;
        for (const Schedule& s : schedules_)
            if (space_.inside(cell, s.arrays[0].owned)) hole = Violation{s.rank, 0, s.lanes.empty() ? 0 : s.lanes[0].size(), ""};
        if (!hole) hole = Violation{0, 0, 0, ""};
        hole->why = "points from " + to_string(space_.low_corner(cell)) + " on are never computed";
    });
    return hole;
}

}  // namespace

std::optional<Violation> check(std::span<const Schedule> schedules) {
    if (schedules.empty()) return std::nullopt;
    return Checker(schedules).run();
}

}  // namespace tilewave
