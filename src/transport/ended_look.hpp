// Long waits for other ranks: looks now and then whether one of them has ended, which is then an error.
#pragma once
#include <utility>

#include "transport/tuning.hpp"

namespace tilewave {

/// The first look of a rank asks the ranks in question, so a wait fails when two looks in turn have found the same one:
/// until then what it has sent arrives.
class EndedLook {
public:
    /// A rank that has ended and that is waited for in vain; -1: none. `find` gives one that has ended, or -1, and is
    /// called once in look_for_ended_s. @pre called while nothing arrives
    template <class Find>
    int operator()(double now_s, Find find) {
        if (next_s_ == 0) next_s_ = now_s + tuning::look_for_ended_s;
        if (now_s <= next_s_) return -1;
        next_s_ = now_s + tuning::look_for_ended_s;
        const int before = std::exchange(ended_, find());
        return ended_ == before ? ended_ : -1;
    }
    /// Something has arrived.
    void restart() { *this = {}; }

private:
    double next_s_ = 0;
    int ended_ = -1;
};

}  // namespace tilewave
