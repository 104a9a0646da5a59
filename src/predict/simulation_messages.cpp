// Messages of the predictor: how they meet, when they may move, what they share.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/concat.hpp"
#include "predict/simulation.hpp"

namespace tilewave {

void Simulation::post(Lane& lane, std::int32_t id, double now) {
    Half& h = halves_[id];
    if (h.posted >= 0) throw ConfigError("predict: " + name(lane) + " is posted twice");
    h.posted = now;
    h.lane = index(lane);
    const bool send = h.m->send;
    const auto bytes = static_cast<double>(h.m->bytes);
    if (const Link& l = link(h); send && leaves(l, bytes)) {
        h.begin = now;
        leave(id, now, 0);
        if (!h.m->synchronous) h.done = now;
    }
    Channel& c = channels_[h.channel];
    const std::int32_t other = c.head[!send];
    if (other < 0) {
        (c.tail[send] < 0 ? c.head[send] : halves_[c.tail[send]].next) = id;
        c.tail[send] = id;
        return;
    }
    Half& o = halves_[other];
    c.head[!send] = o.next;
    if (o.next < 0) c.tail[!send] = -1;
    if (o.m->bytes != h.m->bytes)
        throw ConfigError(
            concat("predict: ", name(lane), " meets a message of ", o.m->bytes, " bytes on rank ", o.rank));
    h.partner = other;
    o.partner = id;
    meet(send ? id : other, send ? other : id, now);
}

// Both sides are posted.
void Simulation::meet(std::int32_t send, std::int32_t receive, double now) {
    Half &s = halves_[send], &r = halves_[receive];
    const Link& l = link(s);
    const bool waits_for_receiver = r.posted < s.posted;  // it has posted, and must poll to learn of the send
    const auto id = static_cast<std::int32_t>(meetings_.size());
    if (leaves(l, static_cast<double>(s.m->bytes))) {
        r.begin = s.begin;
        r.busy = static_cast<double>(s.m->bytes) * l.busy_byte_s;
        r.idle = waited(lanes_[r.lane], now);
        if (s.there < never) deliver(s, r, now);
        return;
    }
    meetings_.push_back({send, receive, waits_for_receiver ? Stage::asked : Stage::granted, -1});
    seek_poll(id, waits_for_receiver ? r.rank : s.rank, now);
}

// A message that has left with its post, and when it arrives is known.
void Simulation::deliver(Half& s, Half& r, double now) {
    complete(r, std::max(s.there, now));
    if (!s.m->synchronous) return;
    if (s.there <= now) {  // found where the receive is posted
        complete(s, now + link(s).latency_s);
        return;
    }
    push(s.there, static_cast<std::int32_t>(lanes_.size() + meetings_.size()));
    meetings_.push_back({r.partner, s.partner, Stage::arriving, s.there});
}

// Finds the poll of `rank` that moves a meeting on; where none is in sight, the rank's next one does.
void Simulation::seek_poll(std::int32_t id, std::int32_t rank, double now) {
    const double poll = next_poll(rank, now);
    Meeting& m = meetings_[id];
    if (poll <= now) {
        advance(id, now);
        return;
    }
    if (poll < never) {
        m.due = poll;
        push(poll, static_cast<std::int32_t>(lanes_.size()) + id);
    }
    ranks_[rank].meetings.push_back(id);
}

// A poll has moved a meeting on.
void Simulation::advance(std::int32_t id, double now) {
    Meeting& m = meetings_[id];
    Half &s = halves_[m.send], &r = halves_[m.receive];
    m.due = -1;
    if (m.stage != Stage::arriving) {
        auto& waiting = ranks_[m.stage == Stage::granted ? s.rank : r.rank].meetings;
        if (const auto it = std::ranges::find(waiting, id); it != waiting.end()) waiting.erase(it);
    }
    switch (m.stage) {
        case Stage::asked:
            m.stage = Stage::granted;
            seek_poll(id, s.rank, now);
            break;
        case Stage::granted:
            m.stage = Stage::over;
            start_transfer(s, r, now);
            break;
        case Stage::arriving:
            m.stage = Stage::matching;
            seek_poll(id, r.rank, now);
            break;
        case Stage::matching:
            m.stage = Stage::over;
            complete(s, now + link(s).latency_s);
            break;
        case Stage::over: break;
    }
}

void Simulation::start_transfer(Half& s, Half& r, double now) {
    const Link& l = link(s);
    const auto bytes = static_cast<double>(s.m->bytes);
    // message_s is from the post of a send to a receiver that waits, so it has the time of the post in it.
    const double posting = r.posted < s.posted ? std::min(now - s.posted, l.send_s) : 0;
    const double moving = std::max(l.message_s(bytes) - l.latency_s, 0.0);
    for (Half* h : {&s, &r}) {
        Lane& lane = lanes_[h->lane];
        const bool helped = ranks_[h->rank].helped;
        h->begin = now;
        // A helper hides what polls would, and takes the copies off the lane.
        h->busy = (1 - (helped || options_.poll_period_s > 0 ? l.hidden_polled : l.hidden_unpolled)) * moving;
        if (!helped) (lane.state == State::computing ? lane.copying : h->busy) += bytes * l.busy_byte_s;
        h->idle = waited(lane, now);
    }
    s.busy = std::max(s.busy - posting, 0.0);
    leave(r.partner, now, posting);
    if (s.there < never) end_transfer(s, r, now);
}

void Simulation::end_transfer(Half& s, Half& r, double now) {
    const double there = std::max(s.there, now);
    complete(r, there);
    complete(s, std::max(there - link(s).latency_s, now));
}

// Its bytes leave now, and so much earlier as `ahead` says. When they are there is known now, or at the end of a flow.
void Simulation::leave(std::int32_t send, double now, double ahead) {
    Half& s = halves_[send];
    if (!flows_ || host_[s.rank] == host_[s.m->peer]) {
        s.there = arrival(s, now) - ahead;
        return;
    }
    const Link& l = link(s);
    const auto bytes = static_cast<double>(s.m->bytes);
    const std::int32_t flow = flows_->begin(host_[s.rank], host_[s.m->peer], bytes, now);
    if (static_cast<std::size_t>(flow) == carried_.size()) carried_.emplace_back();
    const double fixed_s = std::max(l.message_s(bytes) - bytes * l.byte_s, l.latency_s) + flows_->latency_s(flow);
    carried_[flow] = {send, std::max(fixed_s - ahead, 0.0)};
    s.there = never;
    push_ends();
}

void Simulation::end_flow(std::int32_t flow, double now) {
    Half& s = halves_[std::exchange(carried_[flow].send, -1)];
    s.there = now + carried_[flow].fixed_s;
    flows_->end(flow, now);
    push_ends();
    if (s.partner < 0) return;
    Half& r = halves_[s.partner];
    leaves(link(s), static_cast<double>(s.m->bytes)) ? deliver(s, r, now) : end_transfer(s, r, now);
}

void Simulation::push_ends() {
    for (const std::int32_t flow : flows_->changed()) push(flows_->end_of(flow), -1 - flow);
}

// When a message that leaves now is there. In the order of their leaving, messages have a host's card to themselves,
// and what it may send ahead of its rate; those within a host, the receiving rank's CPU.
double Simulation::arrival(const Half& s, double now) {
    const Link& l = link(s);
    const auto bytes = static_cast<double>(s.m->bytes);
    const std::int32_t from = host_[s.rank], to = host_[s.m->peer];
    if (from == to) {
        double& until = ranks_[s.m->peer].copies_until;
        const double begin = std::max(now, until);
        until = begin + bytes * l.busy_byte_s;
        return begin + l.message_s(bytes);
    }
    Card &out = cards_[ranks_[s.rank].card], &in = cards_[ranks_[s.m->peer].card];
    const double burst = burst_bytes_ * l.byte_s, moving = bytes * l.byte_s;
    out.out_until = std::max(out.out_until, now - burst) + moving;
    // The bytes come in as they go out, or as those before them make room.
    const double first = std::max(now, out.out_until - moving);
    in.in_until = std::max(in.in_until, first - burst) + moving;
    // What a rested host sends ahead takes none of the time that its bytes take otherwise.
    const double alone = burst > 0 ? std::max(l.message_s(bytes) - moving, l.latency_s) : l.message_s(bytes);
    return std::max(now + alone, std::max(out.out_until, in.in_until) + l.latency_s);
}

// A poll at `when` or later finds the message complete.
void Simulation::complete(Half& h, double when) {
    h.done = when;
    if (h.waiter < 0) return;
    Lane& lane = lanes_[h.waiter];
    lane.end = found(h, lane) + machine_.step_s;
    push(lane.end, h.waiter);
}

// When the lane that waits for it since lane.begin finds it: its share of the work is done while it waits.
double Simulation::found(const Half& h, const Lane& lane) const {
    const double from = std::max(lane.begin, h.begin);
    const double idle = index(lane) == h.lane ? std::max(0.0, waited(lane, from) - h.idle) : 0;
    return std::max(std::max(h.done, lane.begin), from + std::max(h.busy - idle, 0.0));
}

double Simulation::wait(Lane& lane, std::int32_t id, double now) {
    Half& h = halves_[id];
    if (h.posted < 0) throw ConfigError("predict: " + name(lane) + " is not posted before");
    if (h.done < never) {
        const double end = found(h, lane);
        if (end > now) polls(lane, now);
        return end + machine_.step_s;
    }
    polls(lane, now);  // which may complete it
    if (h.done < never) return found(h, lane) + machine_.step_s;
    h.waiter = index(lane);
    return never;
}

// The first time from now on at which a lane of the rank polls, as far as the current steps tell.
double Simulation::next_poll(std::int32_t rank, double now) const {
    double first = never;
    const auto begin = static_cast<std::size_t>(ranks_[rank].first_lane);
    const std::size_t count = schedules_[rank].lanes.size();
    for (std::size_t l = begin; l < begin + count; ++l) {
        const Lane& lane = lanes_[l];
        if ((lane.state == State::waiting || (lane.state == State::ended && lane.number == 0)) && idles(lane))
            return now;
        if (lane.state != State::computing || lane.period <= 0) continue;
        const double ticks = std::max(std::ceil((now - lane.tick) / lane.period), 0.0),
                     poll = lane.tick + ticks * lane.period;
        if (poll < lane.end) first = std::min(first, std::max(poll, now));
    }
    return first;
}

// The lane polls from now on, till its step ends: lane 0 for all lanes when it has ended.
void Simulation::polls(Lane& lane, double now) {
    if (lane.state != State::ended)
        lane.state = State::waiting;
    else if (lane.number != 0)
        return;
    poll(lane.rank, now);
}

// What waits for a poll of the rank goes on.
void Simulation::poll(std::int32_t rank, double now) {
    auto& waiting = ranks_[rank].meetings;
    while (!waiting.empty()) {
        const std::int32_t id = waiting.front();
        advance(id, now);
    }
}

}  // namespace tilewave
