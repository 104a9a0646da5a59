// All ranks of a program on one thread, on a fabric and by a clock that draw from one seed: whose turn it is, how long
// messages take, in which order they arrive, which polls do nothing, how much of a message moves at a time, and what
// fails. A seed repeats itself exactly.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/concat.hpp"
#include "data/rows.hpp"
#include "execute/executor.hpp"
#include "support/dice.hpp"
#include "support/fibers.hpp"
#include "tilewave/tilewave.hpp"

namespace tilewave {

class SimulatedRanks {
public:
    /// What happens to one rank, the victim.
    enum class Fault : std::uint8_t { none, memory, interrupt, death, transport };

    SimulatedRanks(std::uint64_t seed, int ranks)
        : dice_(seed), ranks_(ranks), boxes_(static_cast<std::size_t>(ranks)) {
        slow_ = chance(3) ? 0.3 : chance(2) ? 0.03 : 0;
        longest_s_ = std::pow(10.0, -5 + 3 * unit());
        eager_bytes_ = std::array<std::int64_t, 4>{
            64, 1000, 60000, std::numeric_limits<std::int64_t>::max()}[static_cast<std::size_t>(dice_(0, 3))];
        idle_polls_ = chance(2) ? 0 : 0.5 * unit();
        kept_back_ = chance(2) ? 0 : 0.5 * unit();
        max_tag_ = chance(2) ? std::numeric_limits<int>::max() : 32767;
        tick_s_ = 1e-8 * static_cast<double>(dice_(1, 50));
        for (Box& box : boxes_) {
            box.arrives_last.resize(static_cast<std::size_t>(ranks));
            box.alarm_last.resize(static_cast<std::size_t>(ranks));
            box.asked_s.assign(static_cast<std::size_t>(ranks), never);
            box.weight = chance(4) ? 0.05 : 1;
        }
    }

    /// At call number `at` of the victim to the fabric, from that time on.
    void plan_fault(Fault fault, int victim, std::int64_t at, std::int64_t granted = 0) {
        fault_ = fault, victim_ = victim, fault_at_ = at, granted_ = granted;
    }

    /// Calls body(context) on each rank; gives the text of each rank's exception, or "". False in hung(): within 1000 s
    /// of the simulated clock all were over.
    std::vector<std::string> run(const std::function<void(Context&)>& body) {
        const Here here(this);
        auto errors = Fibers::run(
            ranks_,
            [&](int rank) {
                struct End {  // what a failed transport holds is never freed
                    SimulatedRanks* all;
                    int rank;
                    ~End() {
                        all->note('E', rank);
                        all->box(rank).ended_s = std::min(all->box(rank).ended_s, all->now_s_);
                    }
                } const end{this, rank};
                Context context(std::make_unique<Endpoint>(*this, rank), 1);
                context.options().heartbeat = [this, rank](double part) { return beat(rank, part); };
                box(rank).calls = 0;
                body(context);
            },
            [&](const std::vector<int>& left) { return next(left); });
        return errors;
    }

    /// From now on a rank has no fault, or may have it again.
    void spare(int rank, bool yes) { box(rank).spared = yes; }
    bool hung() const { return hung_; }
    bool struck() const { return struck_; }
    int victim() const { return victim_; }
    bool dead(int rank) const { return boxes_[static_cast<std::size_t>(rank)].dead; }
    double now() const { return now_s_; }
    /// Of all that has happened, in order.
    std::uint64_t hash() const { return hash_; }
    std::int64_t events() const { return events_; }
    /// Adds what a rank has found to the hash.
    void note(char what, int rank, std::int64_t a = 0, std::int64_t b = 0) {
        ++events_;
        const auto moment = static_cast<std::int64_t>(now_s_ * 1e9);
        for (const std::int64_t word : {static_cast<std::int64_t>(what), std::int64_t{rank}, a, b, moment})
            hash_ = (hash_ ^ static_cast<std::uint64_t>(word)) * 1099511628211u;
        last_[static_cast<std::size_t>(events_) % last_.size()] = {what, rank, a, b, now_s_};
    }
    void note(char what, int rank, const std::string& text) {
        note(what, rank, static_cast<std::int64_t>(std::hash<std::string>()(text)));
    }
    /// The last events, one a line.
    std::string last_events() const {
        std::string text;
        for (std::size_t k = 0; k < last_.size(); ++k) {
            const Event& e = last_[(static_cast<std::size_t>(events_) + 1 + k) % last_.size()];
            if (e.what)
                text += concat(e.now_s, " s, rank ", e.rank, ": ", std::string(1, e.what), " ", e.a, " ", e.b, "\n");
        }
        return text;
    }
    /// Messages and receives that nobody has waited for to their ends.
    std::size_t left_over() const {
        std::size_t count = 0;
        for (const Box& box : boxes_) count += box.receives.size() + box.inbox.size() + box.done.size();
        return count;
    }

private:
    static constexpr double never = std::numeric_limits<double>::infinity(), hang_s = 1000;

    // A message on its way. A long one begins when its receiver has found the receive for it and the sender hears of
    // it: both must poll.
    struct Message {
        int from, to, tag, send_id;
        std::int64_t bytes;
        bool eager;
        std::vector<std::byte> copy;  // of an eager one
        const std::byte* data;        // of another: the sender's
        double at_s;                  // when it may take its next step
        double woken_s = never;
        enum class Stage : std::uint8_t { sent, matched, moving, landed, over } stage = Stage::sent;
        int receive_id = -1;
        std::byte* into = nullptr;
        std::int64_t moved = 0;
    };
    struct Receive {
        int id, from, tag;
        std::byte* data;
        std::int64_t bytes;
    };
    struct Done {
        double at_s;
        int id;
        double woken_s = never;
    };
    struct Heard {
        double at_s;
        Alarm alarm;
        double woken_s = never;
    };
    struct Box {
        std::vector<std::shared_ptr<Message>> inbox, outbox;  // in the order in which they were sent; outbox: long ones
        std::vector<Receive> receives;
        std::vector<Done> done;
        std::vector<Heard> alarms;
        std::vector<double> arrives_last, alarm_last;  // by sender
        std::vector<double> asked_s;                   // by rank: when this one asked whether that has ended
        double weight = 1, ended_s = never;
        std::int64_t calls = std::numeric_limits<std::int64_t>::min();  // to the fabric, once there is a context
        bool awake = true, dead = false, failed = false, spared = false, interrupted = false;
    };
    struct Event {
        char what = 0;
        int rank = 0;
        std::int64_t a = 0, b = 0;
        double now_s = 0;
    };
    // The fabric's own memory is no rank's.
    struct Unlimited {
        MemoryGrant before = std::exchange(memory_grant(), MemoryGrant());
        Unlimited() = default;
        Unlimited(const Unlimited&) = delete;
        Unlimited& operator=(const Unlimited&) = delete;
        ~Unlimited() { memory_grant() = before; }
    };
    struct Here {
        explicit Here(SimulatedRanks* simulation) {
            current() = simulation;
            simulated_clock = [] { return current()->tick(); };
        }
        ~Here() { simulated_clock = nullptr; }
        Here(const Here&) = delete;
        Here& operator=(const Here&) = delete;
    };
    static SimulatedRanks*& current() {
        static SimulatedRanks* simulation = nullptr;
        return simulation;
    }

    double unit() { return static_cast<double>(dice_.engine() >> 11) * 0x1p-53; }
    bool chance(std::int64_t one_in) { return dice_(1, one_in) == 1; }
    // Seconds that something takes; always far below the second after which ranks ask for each other.
    double delay() {
        const double short_s = 1e-6 * (1 + 9 * unit());
        return unit() < slow_ ? short_s + longest_s_ * unit() : short_s;
    }
    double tick() { return now_s_ += tick_s_; }
    Box& box(int rank) { return boxes_[static_cast<std::size_t>(rank)]; }

    // A fault of the rank that calls, where it is time.
    void call_of(int rank) {
        now_s_ += tick_s_;
        Box& here = box(rank);
        if (here.spared || ++here.calls != fault_at_ || rank != victim_ || here.dead) return;
        struck_ = true;
        note('F', rank, static_cast<std::int64_t>(fault_));
        switch (fault_) {
            case Fault::none: break;
            case Fault::memory: memory_grant() = {granted_, 24 << 10, false}; break;
            case Fault::interrupt: here.interrupted = true; break;
            case Fault::death:
                here.dead = true;
                here.ended_s = now_s_;
                Fibers::kill();
                break;
            case Fault::transport:
                here.failed = true;
                here.outbox.clear();  // what is pending is lost
                here.receives.clear();
                std::erase_if(here.inbox, [](const auto& m) { return m->stage != Message::Stage::sent; });
                throw MpiError("the fabric has failed on rank " + std::to_string(rank));
        }
    }
    bool beat(int rank, double part) {
        Box& here = box(rank);
        if (here.interrupted) {
            here.interrupted = false;
            defer_interrupt(true);
        }
        return part <= 1 && interrupt_deferred();
    }

    // The next of those that something may have come for since they have paused, by the weights; where there are none,
    // time goes on.
    int next(const std::vector<int>& left) {
        awake_.clear();
        while (true) {
            for (const int rank : left)
                if (box(rank).awake) awake_.push_back(rank);
            if (!awake_.empty()) break;
            pass_time();
        }
        if (now_s_ > hang_s) {
            hung_ = true;
            return -1;
        }
        int rank = -1;
        for (int tries = 0; tries < 20 && (rank < 0 || unit() > box(rank).weight); ++tries)
            rank = awake_[static_cast<std::size_t>(dice_.engine() % awake_.size())];
        box(rank).awake = false;
        return rank;
    }
    // To the next event of the fabric, for its ranks; where none is near, a bit further, for all.
    void pass_time() {
        double soon = now_s_ + step_s_;
        for_each_event([&](double at_s, double woken_s, int) {
            if (at_s != woken_s) soon = std::min(soon, at_s);
        });
        const bool event = soon < now_s_ + step_s_;
        now_s_ = std::max(now_s_, soon);
        for_each_event([&](double at_s, double& woken_s, int rank) {
            if (at_s > now_s_ || at_s == woken_s) return;
            woken_s = at_s;
            box(rank).awake = true;
        });
        step_s_ = event ? 1e-6 : std::min(2 * step_s_, 0.02);
        if (!event)
            for (Box& each : boxes_) each.awake = true;
    }
    // f(when, when its rank was woken for it, the rank).
    template <class F>
    void for_each_event(F f) {
        for (int r = 0; r < ranks_; ++r) {
            Box& here = box(r);
            for (const auto& m : here.inbox)
                f(m->at_s, m->woken_s,
                  m->stage == Message::Stage::matched || m->stage == Message::Stage::moving ? m->from : r);
            for (Done& each : here.done) f(each.at_s, each.woken_s, r);
            for (Heard& each : here.alarms) f(each.at_s, each.woken_s, r);
        }
    }

    // What has come for a rank finds its receives, in the order of sending and of posting.
    void match(int rank) {
        Box& here = box(rank);
        for (const auto& m : here.inbox) {
            if (m->stage != Message::Stage::sent || m->at_s > now_s_) continue;
            const auto found = std::find_if(here.receives.begin(), here.receives.end(),
                                            [&](const Receive& r) { return r.from == m->from && r.tag == m->tag; });
            if (found == here.receives.end()) continue;
            if (m->bytes > found->bytes)
                throw MpiError(
                    concat("a message of ", m->bytes, " bytes, tag ", m->tag, ", meets a receive of ", found->bytes));
            m->receive_id = found->id;
            m->into = found->data;
            here.receives.erase(found);
            // Until a receive is over its memory may hold anything.
            if (m->bytes) std::memset(m->into, static_cast<int>(dice_(0, 255)), static_cast<std::size_t>(m->bytes));
            m->stage = m->eager ? Message::Stage::landed : Message::Stage::matched;
            m->at_s = now_s_ + (m->eager && chance(2) ? 0 : delay());
            note('M', rank, m->from, m->tag);
        }
    }
    // Parts of long messages that this rank sends.
    void move_parts(int rank) {
        std::erase_if(box(rank).outbox, [&](const auto& m) {
            return box(m->to).dead || (box(m->to).failed && m->stage != Message::Stage::sent);
        });
        for (const auto& m : box(rank).outbox) {
            using Stage = Message::Stage;
            if ((m->stage != Stage::matched && m->stage != Stage::moving) || m->at_s > now_s_) continue;
            const std::int64_t rest = m->bytes - m->moved, n = chance(2) ? rest : dice_(0, rest);
            // From the end on: nobody may rely on an order.
            if (n) std::memcpy(m->into + rest - n, m->data + rest - n, static_cast<std::size_t>(n));
            m->moved += n;
            m->at_s = now_s_ + delay();
            m->stage = m->moved < m->bytes ? Stage::moving : Stage::landed;
            if (m->stage == Stage::landed) box(rank).done.push_back({now_s_ + (chance(2) ? 0 : delay()), m->send_id});
            note('P', rank, m->to, m->moved);
        }
        std::erase_if(box(rank).outbox, [](const auto& m) { return m->stage >= Message::Stage::landed; });
    }
    void land(int rank) {
        Box& here = box(rank);
        for (const auto& m : here.inbox) {
            if (m->stage != Message::Stage::landed || m->at_s > now_s_) continue;
            if (m->eager && m->bytes) std::memcpy(m->into, m->copy.data(), static_cast<std::size_t>(m->bytes));
            m->stage = Message::Stage::over;
            here.done.push_back({now_s_, m->receive_id});
        }
        std::erase_if(here.inbox, [](const auto& m) { return m->stage == Message::Stage::over; });
    }

    // Messages of ranks that wait in MPI_Finalize move on.
    void progress(int rank) {
        match(rank);
        move_parts(rank);
        land(rank);
    }
    void progress_of_ended() {
        for (int r = 0; r < ranks_; ++r)
            if (box(r).ended_s != never && !box(r).dead) progress(r);
    }

    void send(int id, const std::byte* data, std::int64_t bytes, int from, int to, int tag, bool eager) {
        const Unlimited unlimited;
        note('S', from, to, tag);
        if (box(from).dead) return;
        Box& there = box(to);
        auto m = std::make_shared<Message>(Message{from, to, tag, id, bytes, eager, {}, data, 0.0});
        // One of the same tag does not overtake, and none an alarm.
        m->at_s = std::max(now_s_ + delay(), there.alarm_last[static_cast<std::size_t>(from)]);
        for (const auto& before : there.inbox)
            if (before->from == from && before->tag == tag && before->stage == Message::Stage::sent)
                m->at_s = std::max(m->at_s, before->at_s);
        if (eager && bytes) m->copy.assign(data, data + bytes);
        if (eager && id >= 0) box(from).done.push_back({now_s_ + (chance(2) ? 0 : delay()), id});
        if (!eager) box(from).outbox.push_back(m);
        if (!there.dead) there.inbox.push_back(std::move(m));
    }

    class Endpoint final : public Transport {
    public:
        Endpoint(SimulatedRanks& all, int rank) : all_(all), rank_(rank) {}
        ~Endpoint() override {
            Box& here = all_.box(rank_);
            here.ended_s = std::min(here.ended_s, all_.now_s_);
            all_.note('X', rank_);
        }
        int rank() const override { return rank_; }
        int size() const override { return all_.ranks_; }
        int max_tag() const override { return all_.max_tag_; }

        void post_send(int id, const std::byte* data, std::int64_t bytes, int peer, int tag,
                       bool synchronous) override {
            all_.call_of(rank_);
            all_.send(id, data, bytes, rank_, peer, tag, !synchronous && bytes <= all_.eager_bytes_);
        }
        bool try_send(const MatrixView& matrix, std::int64_t at, std::int64_t bytes, int peer, int tag) override {
            all_.call_of(rank_);
            if (bytes > all_.eager_bytes_ || all_.chance(3)) return false;
            const Unlimited unlimited;
            std::vector<std::byte> copy(static_cast<std::size_t>(bytes));
            copy_range(matrix, at, copy.data(), bytes, true);
            all_.send(-1, copy.data(), bytes, rank_, peer, tag, true);
            return true;
        }
        void post_recv(int id, std::byte* data, std::int64_t bytes, int peer, int tag) override {
            all_.call_of(rank_);
            const Unlimited unlimited;
            all_.note('R', rank_, peer, tag);
            all_.box(rank_).receives.push_back({id, peer, tag, data, bytes});
        }
        bool has_message(int peer, int tag) override {
            all_.call_of(rank_);
            const Unlimited unlimited;
            all_.match(rank_);
            const auto& inbox = all_.box(rank_).inbox;
            const auto first = std::find_if(inbox.begin(), inbox.end(), [&](const auto& m) {
                return m->stage == Message::Stage::sent && m->from == peer && m->tag == tag;
            });
            return first != inbox.end() && (*first)->at_s <= all_.now_s_;
        }
        void poll(std::vector<int>& done) override {
            all_.call_of(rank_);
            const Unlimited unlimited;
            Box& here = all_.box(rank_);
            if (here.dead || (all_.idle_polls_ > 0 && all_.unit() < all_.idle_polls_)) return;
            all_.progress(rank_);
            all_.progress_of_ended();
            if (here.done.empty()) return;
            std::vector<int> now;
            std::erase_if(here.done, [&](const Done& each) {
                if (each.at_s > all_.now_s_ || (all_.kept_back_ > 0 && all_.unit() < all_.kept_back_)) return false;
                now.push_back(each.id);
                return true;
            });
            std::shuffle(now.begin(), now.end(), all_.dice_.engine);
            for (const int id : now) all_.note('D', rank_, id);
            done.insert(done.end(), now.begin(), now.end());
        }
        bool alarms() const override { return true; }
        void post_alarm(int peer, const Alarm& alarm) override {
            all_.call_of(rank_);
            const Unlimited unlimited;
            if (all_.box(rank_).dead) return;
            all_.note('A', rank_, peer, alarm.number);
            Box& there = all_.box(peer);
            double& last = there.alarm_last[static_cast<std::size_t>(rank_)];
            last = std::max(last, all_.now_s_ + all_.delay());
            there.alarms.push_back({last, alarm});
        }
        void take_alarms(std::vector<Alarm>& alarms) override {
            all_.call_of(rank_);
            const Unlimited unlimited;
            std::erase_if(all_.box(rank_).alarms, [&](const Heard& each) {
                if (each.at_s > all_.now_s_) return false;
                alarms.push_back(each.alarm);
                all_.note('a', rank_, each.alarm.from, each.alarm.number);
                return true;
            });
        }
        bool has_ended(int peer, bool) override {
            double& asked_s = all_.box(rank_).asked_s[static_cast<std::size_t>(peer)];
            const double answer_s = std::max(asked_s, all_.box(peer).ended_s) + 1e-4;
            if (asked_s == never) asked_s = all_.now_s_;
            return answer_s <= all_.now_s_;
        }

    private:
        SimulatedRanks& all_;
        int rank_;
    };

    Dice dice_;
    int ranks_;
    std::vector<Box> boxes_;
    double slow_, longest_s_, idle_polls_, kept_back_, tick_s_;
    std::int64_t eager_bytes_;
    int max_tag_;
    double now_s_ = 1, step_s_ = 1e-6;
    std::int64_t events_ = 0;
    std::vector<int> awake_;
    std::uint64_t hash_ = 14695981039346656037u;
    std::array<Event, 40> last_ = {};
    Fault fault_ = Fault::none;
    int victim_ = -1;
    std::int64_t fault_at_ = -1, granted_ = 0;
    bool hung_ = false, struck_ = false;
};

}  // namespace tilewave
