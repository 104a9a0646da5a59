// The messages of one schedule that are pending or done; all lanes of a rank post and poll them here.
#pragma once
#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/clock.hpp"
#include "execute/tuning.hpp"
#include "tilewave/engine/schedule.hpp"
#include "tilewave/engine/transport.hpp"

namespace tilewave {

/// A short lock: holders only make transport calls.
class SpinLock {
public:
    bool try_lock() {
        return !held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire);
    }
    void lock() {
        Backoff backoff;
        while (!try_lock()) backoff.pause();
    }
    void unlock() { held_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> held_{false};
};

class RequestTable {
public:
    /// `timed`: posted_s() and completed_s() are needed. `first_tag` is added to the schedule's tags.
    RequestTable(const Schedule& s, Transport& transport, bool timed, int first_tag)
        : s_(s),
          transport_(transport),
          any_thread_(transport.any_thread()),
          timed_(timed),
          first_tag_(first_tag),
          state_(s.messages.size()) {
        const std::size_t at_once = std::min(s.messages.size(), tuning::messages_at_once);
        transport.reserve(at_once);
        queue_.reserve(any_thread_ ? 0 : at_once);
        found_.reserve(at_once);
    }

    /// Starts message `id`, or an empty one in its place; where only lane 0 may call the transport, others leave it for
    /// lane 0. Empty ones leave after send_empty_messages() only.
    void post(int id, std::byte* data, bool lane0, bool empty = false) {
        std::scoped_lock guard(lock_);
        pending_.fetch_add(1, std::memory_order_relaxed);
        state_[id].posted = timed_ ? now_s() : 1;
        state_[id].done.store(false, std::memory_order_relaxed);  // of the repetition before
        if ((any_thread_ || lane0) && (!empty || sends_empty_)) {
            start({id, data, empty});
        } else {
            queue_.push_back({id, data, empty});
        }
    }

    /// The same for a message in memory of the transport: what was written there, or a receive that may stay there.
    /// @pre by lane 0 (not checked)
    void post_in_transport(int id, std::byte* data) {
        std::scoped_lock guard(lock_);
        pending_.fetch_add(1, std::memory_order_relaxed);
        state_[id].posted = timed_ ? now_s() : 1;
        const Message& m = s_.messages[id];
        if (m.send)
            transport_.post_written(id, data, m.bytes, m.peer, first_tag_ + m.tag);
        else
            transport_.post_recv_anywhere(id, data, m.bytes, m.peer, first_tag_ + m.tag);
    }

    /// Makes progress for all lanes of the rank, unless another lane does. With `idle` also when nothing of this rank
    /// is pending: its peers may wait for answers of the library.
    void poll(bool lane0, bool idle = false) {
        if (!any_thread_ && !lane0) return;
        if (pending_.load(std::memory_order_relaxed) == 0 && !(idle && transport_.size() > 1)) return;
        if (!lock_.try_lock()) return;
        std::scoped_lock guard(std::adopt_lock, lock_);
        start_queued();
        found_.clear();
        transport_.poll(found_);
        if (found_.empty()) return;
        const double now = timed_ ? now_s() : 1;
        for (int id : found_) {
            state_[id].completed = now;
            state_[id].done.store(true, std::memory_order_release);
        }
        pending_.fetch_sub(static_cast<int>(found_.size()), std::memory_order_relaxed);
    }

    /// From now on empty messages leave: their receivers have been notified. @pre inside locked() (not checked)
    void send_empty_messages() {
        sends_empty_ = true;
        start_queued();
    }

    /// Calls f while no lane uses the transport.
    template <class F>
    auto locked(F f) {
        std::scoped_lock guard(lock_);
        return f();
    }

    /// As new, when every message is done.
    void restart() {
        for (State& s : state_) {
            s.done.store(false, std::memory_order_relaxed);
            s.posted = s.completed = 0;
        }
        sends_empty_ = false;
    }

    /// The rank of a message in flight that has ended; -1: none is known. All are asked.
    int ended_peer() {
        std::scoped_lock guard(lock_);
        int found = -1;
        for (std::size_t m = 0; m < state_.size(); ++m)
            if (state_[m].posted > 0 && !state_[m].done.load(std::memory_order_relaxed) &&
                transport_.has_ended(s_.messages[m].peer, false) && found < 0)
                found = s_.messages[m].peer;
        return found;
    }

    bool done(int id) const { return state_[id].done.load(std::memory_order_acquire); }
    bool was_posted(int id) const { return state_[id].posted > 0; }
    double posted_s(int id) const { return state_[id].posted; }
    double completed_s(int id) const { return state_[id].completed; }

private:
    struct State {
        std::atomic<bool> done{false};
        double posted = 0, completed = 0;
    };

    struct Post {
        int id;
        std::byte* data;
        bool empty;
    };

    void start_queued() {
        std::erase_if(queue_, [this](const Post& post) {
            if (post.empty && !sends_empty_) return false;
            start(post);
            return true;
        });
    }

    void start(const Post& post) {
        const Message& m = s_.messages[post.id];
        if (m.send)
            transport_.post_send(post.id, post.data, post.empty ? 0 : m.bytes, m.peer, first_tag_ + m.tag,
                                 m.synchronous);
        else
            transport_.post_recv(post.id, post.data, m.bytes, m.peer, first_tag_ + m.tag);
    }

    const Schedule& s_;
    Transport& transport_;
    bool any_thread_, timed_, sends_empty_ = false;
    int first_tag_;
    SpinLock lock_;
    std::atomic<int> pending_{0};
    std::vector<State> state_;
    std::vector<Post> queue_;
    std::vector<int> found_;
};

}  // namespace tilewave
