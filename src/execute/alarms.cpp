#include "execute/alarms.hpp"

#include <algorithm>
#include <string>

#include "core/clock.hpp"
#include "core/concat.hpp"

namespace tilewave {

// The number of the work goes with one bit more: whether the rank leaves.

void Alarms::raise(bool leaves) {
    if (raised_ && !leaves) return;
    raised_ = true;
    for (int r = 0; r < transport_.size(); ++r)
        if (r != transport_.rank()) transport_.post_alarm(r, {transport_.rank(), 2 * number_ + leaves, block_});
}

void Alarms::take() {
    found_.clear();
    transport_.take_alarms(found_);
    for (const Alarm& a : found_) {
        if (a.number % 2) left_ = a.from;
        if (a.number / 2 < number_) continue;
        heard_.push_back(a);
    }
}

bool Alarms::heard() {
    if (transport_.size() == 1) return false;
    take();
    std::erase_if(heard_, [&](const Alarm& a) { return a.number / 2 < number_; });
    if (left_ >= 0)
        throw MpiError("rank " + std::to_string(left_) +
                       " could not go on with the messages of this context; make a new context");
    const bool stopped = std::ranges::any_of(heard_, [&](const Alarm& a) { return a.number / 2 == number_; });
    if (stopped && blocks_ > 1) raise();
    return stopped;
}

const Alarm* Alarms::of_this_work(int from) const {
    const auto it =
        std::ranges::find_if(heard_, [&](const Alarm& a) { return a.from == from && a.number / 2 == number_; });
    return it == heard_.end() ? nullptr : &*it;
}

std::int64_t Alarms::last_block() {
    if (transport_.size() == 1) return block_;
    if (!transport_.alarms()) return blocks_ - 1;
    raise();
    std::int64_t last = block_;
    std::vector<int> nothing;
    for (int r = 0; r < transport_.size(); ++r) {
        if (r == transport_.rank()) continue;
        EndedLook look;
        for (Backoff backoff; !of_this_work(r); backoff.pause()) {
            transport_.poll(nothing);
            (void)heard();
            if (backoff.yielding()) must_not_have_ended(look, r);
        }
        last = std::max(last, of_this_work(r)->block);
    }
    return last;
}

void Alarms::take_outstanding() {
    if (transport_.size() == 1 || !transport_.alarms()) return;
    std::vector<std::int64_t> raised(static_cast<std::size_t>(transport_.size()), 0);
    raised[transport_.rank()] = raised_ ? -1 : 0;
    allreduce_min(transport_, raised);
    std::vector<int> nothing;
    for (int r = 0; r < transport_.size(); ++r) {
        if (r == transport_.rank() || !raised[r]) continue;
        EndedLook look;
        for (Backoff backoff; take(), !of_this_work(r); backoff.pause()) {
            transport_.poll(nothing);
            if (backoff.yielding()) must_not_have_ended(look, r);
        }
    }
}

void Alarms::must_not_have_ended(EndedLook& look, int rank) {
    if (look(now_s(), [&] { return transport_.has_ended(rank, false) ? rank : -1; }) < 0) return;
    throw MpiError(
        concat("rank ", rank, " has ended; rank ", transport_.rank(), " waits ", transport_.doing(), "for its alarm"));
}

}  // namespace tilewave
