// How ranks learn, in the middle of work that they do together, that one of them cannot go on.
#pragma once
#include <cstdint>
#include <vector>

#include "tilewave/transport.hpp"

namespace tilewave {

/// The alarms of one transport. Work that ranks do together has a number, the same on every rank, so that an alarm that comes late
/// stops nothing else. Only the thread that may call the transport may call these.
class Alarms {
public:
    explicit Alarms(Transport& transport) : transport_(transport) {}

    /// The next work begins. Every rank counts it.
    void begin() {
        ++number_;
        raised_ = false;
    }
    /// Tells every other rank, once, that this one stops; `leaves`: that it sends and receives nothing more, either.
    /// @throws MpiError
    void raise(bool leaves = false);
    bool raised() const { return raised_; }
    /// Whether it is time for another look, which costs as much as a poll.
    bool due(double now_s) {
        constexpr double period_s = 2e-3;
        if (now_s - looked_s_ < period_s) return false;
        looked_s_ = now_s;
        return true;
    }
    /// Whether another rank has stopped.
    /// @throws MpiError where one has left
    bool heard();
    /// After work in which a rank has raised an alarm: takes what is still under way. Collective.
    /// @throws MpiError
    void settle();

private:
    void take();

    Transport& transport_;
    std::int64_t number_ = 0;
    bool raised_ = false;
    double looked_s_ = 0;
    int left_ = -1;  // the rank that has left
    std::vector<Alarm> found_, heard_;  // heard_: of this work, and of one that has begun elsewhere only
};

}  // namespace tilewave
