#include "tilewave/engine/check.hpp"

#include <algorithm>

#include "check/checker.hpp"
#include "check/repeated.hpp"
#include "check/shapes.hpp"
#include "core/concat.hpp"
#include "schedule/repeat.hpp"
#include "schedule/tile_rows.hpp"

// How the proof goes. Lanes take their steps one at a time in a fixed order. No step's effect depends on timing (there
// are no wildcards), so one order that ends proves that all do, and one that gets stuck proves a cyclic wait. Every
// lane carries a vector clock, joined by signal -> await, by post_send -> wait(receive), and by post_recv -> wait(send)
// where the send is synchronous. Two accesses to one place that no clock orders are a race, whichever came first here.

namespace tilewave {

std::string to_string(const Violation& v) {
    return concat("rank ", v.rank, ", lane ", v.lane, ", step ", v.step, ": ", v.why);
}

void Checker::set_up() {
    for (const Schedule& s : schedules_) lanes_ += static_cast<int>(s.lanes.size());
    int first = 0;
    for (const Schedule& s : schedules_) {
        RankState p(s, first);
        first += static_cast<int>(s.lanes.size());
        p.next.assign(s.lanes.size(), 0);
        p.clock.assign(s.lanes.size(), Clock(static_cast<std::size_t>(lanes_), 0));
        p.signals.resize(s.lanes.size());
        p.messages.resize(s.messages.size());
        p.buffers.resize(s.buffers.size());
        for (std::size_t w = 0; w < s.works.size(); ++w)
            p.computed.emplace_back(program_.entry(s.rank, static_cast<int>(w)).computed.size(), 0);
        for (int m = 0; m < program_.elements().memories(); ++m) p.cells.emplace_back(program_);
        for (int a = 0; a < static_cast<int>(s.arrays.size()); ++a) {
            p.memory_of.push_back(program_.elements().memory_of(a));
            p.store(a).cover(s.arrays[a]);
        }
        for (int a = 0; a < static_cast<int>(s.arrays.size()); ++a) {
            p.store(a).add(a, s.arrays[a], program_.start(s.rank, a));
        }
        ranks_.push_back(std::move(p));
    }
    if (!program_.entries().empty())
        for (std::size_t a = 0; a < schedules_[0].arrays.size(); ++a) leave_out_padding(static_cast<int>(a));
}

// Boxes of skewed coordinates have cells that no rank owns and that hold no element: whatever is there is as it should
// be.
void Checker::leave_out_padding(int array) {
    const Array& kind = program_.array(array);
    if (kind.whole || kind.time_buffers > 0 || kind.planes > 0 || kind.separate || kind.period.n > 0 ||
        kind.storage.dims() == 0)
        return;
    std::vector<char> owned(program_.elements().count(program_.elements().memory_of(array)), 0);
    const auto is_owned = [&](int id, const Index& cell) -> char& {
        const std::size_t element = program_.elements().element(id, cell);
        if (element >= owned.size())
            throw ConfigError(concat("check: an element of array ", id, " lies outside its memory"));
        return owned[element];
    };
    const auto each = [&](const RankState& p, const Box& box, auto f) {
        program_.cells(box).for_each(box, [&](const Index& cell) { f(p, cell); });
    };
    for (const RankState& p : ranks_)
        for (std::size_t b = 0; b < p.s->arrays.size(); ++b) {
            if (p.memory_of[b] != program_.elements().memory_of(array)) continue;
            each(p, intersect(p.s->arrays[b].owned, p.s->arrays[b].storage),
                 [&](const RankState&, const Index& cell) { is_owned(static_cast<int>(b), cell) = 1; });
        }
    for (RankState& p : ranks_)
        each(p, p.s->arrays[array].storage, [&](const RankState&, const Index& cell) {
            if (!is_owned(array, cell))
                p.store(array).set(array, program_.cells(kind.storage), cell, program_.start(p.s->rank, array));
        });
}

std::optional<Violation> Checker::run() {
    set_up();
    for (bool moved = true; moved;) {
        moved = false;
        for (RankState& p : ranks_)
            for (std::size_t l = 0; l < p.next.size(); ++l)
                while (p.next[l] < p.s->lanes[l].size() && ready(p, p.s->lanes[l][p.next[l]])) {
                    const int lane = static_cast<int>(l);
                    ++p.clock[l][p.first_lane + lane];
                    try {
                        perform(p, lane, p.s->lanes[l][p.next[l]]);
                    } catch (const Mistake& found) {
                        return Violation{p.s->rank, lane, p.next[l], found.why};
                    }
                    ++p.next[l];
                    moved = true;
                }
    }
    if (auto v = stuck()) return v;
    if (auto v = leftovers()) return v;
    return results();
}

bool Checker::ready(const RankState& p, const Step& step) const {
    if (step.op == Op::await) {
        const auto& signals = p.signals[step.item];
        // Counters begin at 0: to await that or less is not to wait.
        return step.count <= 0 || (!signals.empty() && signals.back().first >= step.count);
    }
    if (step.op == Op::wait) {
        // A request never posted is ready, too: perform() reports what is wrong with it.
        const MessageState& m = p.messages[step.item];
        return m.stage != Stage::posted || m.partner >= 0;
    }
    return true;
}

void Checker::perform(RankState& p, int lane, const Step& step) {
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
                wrong("signal ", step.count, " where the lane's counter is ", before, ": it only grows");
            signals.push_back({step.count, p.clock[lane]});
            return;
        }
        case Op::await:
            for (const auto& [count, clock] : p.signals[step.item])
                if (step.count > 0 && count >= step.count) {
                    join(p.clock[lane], clock);
                    break;
                }
            return;
    }
    wrong("unknown op");
}

void Checker::read_cells(RankState& p, int lane, int array, const Box& box, Versions* versions) {
    if (!p.s->arrays[array].storage.contains(box))
        wrong("it reads ", box, " of array ", array, ", outside its storage ", p.s->arrays[array].storage);
    return p.store(array).read(array, box, who(p, lane), p.clock[lane], versions);
}

void Checker::write_cells(RankState& p, int lane, int array, const Box& box, const Versions& versions) {
    if (!p.s->arrays[array].storage.contains(box))
        wrong("it writes ", box, " of array ", array, ", outside its storage ", p.s->arrays[array].storage);
    return p.store(array).write(array, box, who(p, lane), p.clock[lane], versions);
}

static std::string held(const RankState& p, const BufferState& buffer) {
    if (buffer.holds < 0) return "nothing";
    const Message& m = p.s->messages[buffer.holds];
    return concat("message ", buffer.holds, " of region ", m.region, " and ", m.bytes, " bytes");
}

void Checker::compute(RankState& p, int lane, const Tile& tile) {
    Entry& entry = program_.entry(p.s->rank, tile.work);
    return entry.work->task() ? compute_task(p, lane, tile, entry) : compute_nest(p, lane, tile, entry);
}

void Checker::post(RankState& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    MessageState& state = p.messages[id];
    if (state.stage != Stage::fresh) wrong("message ", id, " is posted twice");
    if (m.peer < 0 || m.peer >= p.s->ranks || m.peer == p.s->rank)
        wrong("message ", id, " has peer ", m.peer, " of ", p.s->ranks, " ranks");
    state.stage = Stage::posted;
    state.posted = p.clock[lane];
    state.poster = p.first_lane + lane;
    state.at = state.posted[state.poster];
    if (m.buffer >= 0) {
        BufferState& buffer = p.buffers[m.buffer];
        m.send ? buffer.begin_send(who(p, lane), p.clock[lane], id)
               : buffer.begin_receive(who(p, lane), p.clock[lane], id);
        if (m.send) {
            // What another message left in the buffer may go on as it is: forwarding.
            if (buffer.holds < 0 || (m.pieces > 0 ? buffer.holds != id : !same_bytes(p, id, buffer.holds)))
                wrong("message ", id, " of region ", m.region, " and ", m.bytes,
                      " bytes is sent before it is packed: its buffer holds ", held(p, buffer));
            state.content = buffer.content;
            if (m.pieces > 0 && std::ranges::find(buffer.content, missing) != buffer.content.end())
                wrong("message ", id, " is sent before all of its ", m.pieces, " parts are packed");
        }
    } else if (m.send) {
        read_cells(p, lane, m.array, m.region, &state.content);
        for (Version v : state.content)
            if (v == missing) wrong("it sends ", m.region, " before anything is there");
        p.store(m.array).lend(m.array, m.region, +1);
    } else {
        write_cells(p, lane, m.array, m.region, Versions(cells(m.region).count(m.region), missing));
        p.store(m.array).promise(m.array, m.region, id);
    }
    // Match with the other side, oldest first.
    const auto key = m.send ? std::tuple{p.s->rank, m.peer, m.tag} : std::tuple{m.peer, p.s->rank, m.tag};
    auto& same_side = m.send ? sends_[key] : receives_[key];
    auto& other_side = m.send ? receives_[key] : sends_[key];
    if (same_side.last >= 0) {
        // Two of one tag are matched in posting order. That order must be certain, even where the earlier one has been
        // matched already.
        const MessageState& last = p.messages[same_side.last];
        if (last.at > p.clock[lane][last.poster])
            wrong("message ", id, " and message ", same_side.last, " have one tag and no certain order");
    }
    same_side.last = id;
    if (other_side.waiting.empty()) {
        same_side.waiting.push_back(id);
        return;
    }
    const int other = other_side.waiting.front();
    other_side.waiting.pop_front();
    const Message& o = ranks_[m.peer].s->messages[other];
    if (o.bytes != m.bytes)
        wrong("message ", id, " of ", m.bytes, " bytes meets one of ", o.bytes, " bytes on rank ", m.peer, " (tag ",
              m.tag, ")");
    // Without results no value passes from one array to another. The rank that receives has them.
    const bool passes = p.s->works.empty() || !p.s->results.empty() || !ranks_[m.peer].s->results.empty();
    for (int i = 1; i <= std::max(m.pieces, o.pieces); ++i) {
        const Message &part = (&m)[i], &other_part = (&o)[i];
        if (m.pieces == o.pieces && (passes || part.array == other_part.array) &&
            same_elements(p.s->arrays[part.array], part.region, other_part.region))
            continue;
        wrong("message ", id, " of ", m.pieces, " parts meets others on rank ", m.peer, " (tag ", m.tag, ")");
    }
    if (!same_elements(p.s->arrays[m.array], o.region, m.region))
        wrong("message ", id, " of region ", m.region, " meets region ", o.region, " on rank ", m.peer, " (tag ", m.tag,
              ")");
    if (!passes && o.array != m.array)
        wrong("message ", id, " of array ", m.array, " meets array ", o.array, " on rank ", m.peer, " (tag ", m.tag,
              ")");
    state.partner = other;
    ranks_[m.peer].messages[other].partner = id;
}

void Checker::wait(RankState& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    MessageState& state = p.messages[id];
    if (state.stage == Stage::fresh) wrong("message ", id, " is waited for before it is posted");
    if (state.stage == Stage::finished) wrong("message ", id, " is waited for twice");
    state.stage = Stage::finished;
    // What the poster did before posting is before what follows the wait, whoever waits.
    join(p.clock[lane], state.posted);
    MessageState& other = ranks_[m.peer].messages[state.partner];
    if (!m.send || m.synchronous) join(p.clock[lane], other.posted);
    if (other.stage == Stage::finished)  // clocks are as long as there are lanes
        for (MessageState* end : {&state, &other}) Clock().swap(end->posted);
    if (m.buffer >= 0) {
        if (m.send) return p.buffers[m.buffer].end_send(who(p, lane), p.clock[lane], id);
        p.buffers[m.buffer].arrive(who(p, lane), std::move(other.content));
        return;
    }
    if (m.send) {
        p.store(m.array).lend(m.array, m.region, -1);
        return read_cells(p, lane, m.array, m.region, nullptr);
    }
    p.store(m.array).promise(m.array, m.region, -1);
    return write_cells(p, lane, m.array, m.region, other.content);
}

void Checker::pack(RankState& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    if (m.buffer < 0) wrong("pack of message ", id, ", which has no buffer");
    Versions packed;
    read_cells(p, lane, m.array, m.region, &packed);
    for (Version v : packed)
        if (v == missing) wrong("it packs ", m.region, " before anything is there");
    BufferState& buffer = p.buffers[m.buffer];
    if (m.aggregate < 0) return buffer.write(who(p, lane), p.clock[lane], id, std::move(packed));
    // The others' values stay; what is not packed yet is missing.
    const Schedule& s = *p.s;
    const int last = m.aggregate + s.messages[m.aggregate].pieces;
    Versions all = buffer.holds == m.aggregate
                       ? buffer.content
                       : Versions(place_of(s, last) + cells(m.region).count(s.messages[last].region), missing);
    std::ranges::copy(packed, all.begin() + static_cast<std::ptrdiff_t>(place_of(s, id)));
    return buffer.write(who(p, lane), p.clock[lane], m.aggregate, std::move(all));
}

void Checker::unpack(RankState& p, int lane, int id) {
    const Message& m = p.s->messages[id];
    if (m.buffer < 0) wrong("unpack of message ", id, ", which has no buffer");
    BufferState& buffer = p.buffers[m.buffer];
    const bool local = m.peer == p.s->rank;
    const int whole = m.aggregate >= 0 ? m.aggregate : id;
    if (!local && p.messages[whole].stage != Stage::finished)
        wrong("message ", id, " is unpacked before it has arrived");
    buffer.read(who(p, lane), p.clock[lane]);
    // A copy within the rank may take any message's values; a received message is unpacked itself.
    if (local ? buffer.holds < 0 || !same_bytes(p, id, buffer.holds) : buffer.holds != whole)
        wrong("message ", id, " of region ", m.region, " and ", m.bytes, " bytes is unpacked from a buffer that holds ",
              held(p, buffer));
    if (m.aggregate >= 0) {
        const auto first = buffer.content.begin() + static_cast<std::ptrdiff_t>(place_of(*p.s, id));
        return write_cells(p, lane, m.array, m.region,
                           Versions(first, first + static_cast<std::ptrdiff_t>(cells(m.region).count(m.region))));
    }
    return write_cells(p, lane, m.array, m.region, buffer.content);
}

void Checker::combine(RankState& p, int lane, int id, int operand) {
    const Message& m = p.s->messages[id];
    const std::string name = concat("message ", id);
    BufferState& into = p.buffers[m.buffer];
    if (p.messages[id].stage != Stage::finished) wrong(name, " is combined before it has arrived");
    if (into.holds != id) wrong(name, " is combined in a buffer that holds ", held(p, into));
    Versions other;
    if (operand >= 0) {
        BufferState& from = p.buffers[p.s->messages[operand].buffer];
        named("left operand", [&] { from.read(who(p, lane), p.clock[lane]); });
        if (from.holds != operand)
            wrong(name, " is combined with message ", operand, ", whose buffer holds ", held(p, from));
        other = from.content;
    } else {
        read_cells(p, lane, m.array, m.region, &other);
        for (Version v : other)
            if (v == missing) wrong("it combines with ", m.region, " of array ", m.array, " before anything is there");
    }
    for (std::size_t i = 0; i < other.size(); ++i)
        other[i] = operand == combine_array_right ? table_.combine(into.content[i], other[i])
                                                  : table_.combine(other[i], into.content[i]);
    return into.write(who(p, lane), p.clock[lane], id, std::move(other));
}

std::optional<Violation> check(std::span<const Schedule> schedules) {
    if (schedules.empty()) return std::nullopt;
    if (auto v = check_shapes(schedules)) return v;
    if (std::ranges::none_of(schedules, [](const Schedule& s) { return !s.repeated.empty(); }))
        return Checker(schedules).run();
    if (auto v = check_repeated(schedules)) return v;
    for (const std::int64_t times : {1, 2}) {
        const std::vector<Schedule> all = unrolled(schedules, times);
        if (auto v = Checker(all).run()) return folded(schedules[v->rank], times, *v);
    }
    return std::nullopt;
}

}  // namespace tilewave
