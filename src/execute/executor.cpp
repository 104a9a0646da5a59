#include "execute/executor.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/concat.hpp"
#include "data/memory.hpp"
#include "data/rows.hpp"
#include "execute/alarms.hpp"
#include "execute/cached_execution.hpp"
#include "schedule/repeat.hpp"

namespace tilewave {

Outcome execute(const Schedule& schedule, std::span<const Binding> bindings, const Programs& programs,
                Transport& transport, Lanes& lanes, const ExecuteOptions& options) {
    return CachedExecution(schedule).run(bindings, programs, transport, lanes, options);
}

namespace {

// A part of a schedule's messages, of which this rank takes what comes and sends nothing. Whoever waits for this rank
// waits for any of them, and two receives may not share memory: each is posted when its message is there.
class EmptyPart {
public:
    EmptyPart(const Schedule& schedule, Section section, Transport& transport, const ExecuteOptions& options)
        : transport_(transport), first_tag_(options.first_tag), alarms_(options.alarms) {
        for (std::size_t l = 0; l < schedule.lanes.size(); ++l)
            for (std::size_t i = 0; i < schedule.lanes[l].size(); ++i) {
                const Step& step = schedule.lanes[l][i];
                const bool sends = step.op == Op::post_send;
                if ((!sends && step.op != Op::post_recv) || section_of(schedule, l, i) != section) continue;
                const Message& m = schedule.messages[step.item];
                if (sends)
                    sent_.push_back(&m);
                else
                    received_.push_back({m.peer, m.tag});
                longest_ = std::max(longest_, sends ? 0 : m.bytes);
            }
        // Those of a peer and a tag come one after another.
        std::ranges::sort(received_, {}, [](const From& from) { return std::pair(from.peer, from.tag); });
        memory_ = staging_memory(longest_);
        done_.reserve(sent_.size() + 1);
    }
    // Once; the messages of a repetition wait for none of a later one.
    void run() {
        std::size_t left = sent_.size();
        for (std::size_t i = 0; i < sent_.size(); ++i)
            transport_.post_send(static_cast<int>(i), memory_.get(), 0, sent_[i]->peer, first_tag_ + sent_[i]->tag,
                                 sent_[i]->synchronous);
        for (From& from : received_) from.there = false;
        std::size_t missing = received_.size();
        Backoff backoff;
        EndedLook look;
        while (left > 0 || missing > 0) {
            const std::size_t before = left + missing;
            for (From& from : received_) {
                if (from.there || !transport_.has_message(from.peer, first_tag_ + from.tag)) continue;
                left -= take(from);
                from.there = true;
                --missing;
            }
            left -= poll();
            if (left + missing < before) {
                backoff.restart();
                look.restart();
                continue;
            }
            backoff.pause();
            if (!backoff.yielding()) continue;
            const double now = now_s();
            if (alarms_ && alarms_->due(now)) (void)alarms_->heard();  // throws where a rank has left
            if (const int ended = look(now, [&] { return ended_peer(); }); ended >= 0)
                throw MpiError(concat("rank ", ended, " has ended; rank ", transport_.rank(), " waits ",
                                      transport_.doing(), "for a message of a run"));
        }
    }

private:
    static constexpr int receive_id = std::numeric_limits<int>::max();
    struct From {
        int peer, tag;
        bool there = false;
    };
    // Receives a message; how many were sent meanwhile.
    std::size_t take(const From& from) {
        arrived_ = false;
        transport_.post_recv(receive_id, memory_.get(), longest_, from.peer, first_tag_ + from.tag);
        std::size_t sent = 0;
        for (Backoff backoff; !arrived_; backoff.pause()) sent += poll();
        return sent;
    }
    // Which send is over is not known.
    int ended_peer() {
        int found = -1;
        const auto ask = [&](int peer) {
            if (transport_.has_ended(peer, false) && found < 0) found = peer;
        };
        for (const From& from : received_)
            if (!from.there) ask(from.peer);
        for (const Message* m : sent_) ask(m->peer);
        return found;
    }
    std::size_t poll() {
        done_.clear();
        transport_.poll(done_);
        const auto received = static_cast<std::size_t>(std::ranges::count(done_, receive_id));
        arrived_ = arrived_ || received > 0;
        return done_.size() - received;
    }

    Transport& transport_;
    int first_tag_;
    Alarms* alarms_;
    std::vector<const Message*> sent_;
    std::vector<From> received_;
    std::int64_t longest_ = 0;
    std::shared_ptr<std::byte[]> memory_;
    bool arrived_ = false;
    std::vector<int> done_;
};

void take_no_part(const Schedule& schedule, Transport& transport, const ExecuteOptions& options) {
    const auto part = [&](Section section) { return EmptyPart(schedule, section, transport, options); };
    part(Section::before).run();
    if (schedule.repeated.empty()) return;
    EmptyPart block = part(Section::block);
    for (std::int64_t k = 0; k < options.times; ++k) block.run();
    part(Section::after).run();
}

}  // namespace

Outcome pass_empty_messages(const Schedule& schedule, Transport& transport, std::exception_ptr error,
                            const ExecuteOptions& options) {
    Outcome outcome;
    outcome.error = std::move(error);
    try {
        if (options.alarms) options.alarms->raise();
        take_no_part(schedule, transport, options);
    } catch (...) {
        transport.mark_failed();
        if (options.alarms) options.alarms->raise(true);
        throw;
    }
    return outcome;
}

}  // namespace tilewave
