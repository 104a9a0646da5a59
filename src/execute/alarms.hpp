// How ranks learn, in the middle of work that they do together, that one of them cannot go on.
#pragma once
#include <cstdint>
#include <vector>

#include "execute/tuning.hpp"
#include "tilewave/engine/transport.hpp"
#include "transport/ended_look.hpp"

namespace tilewave {

/// The alarms of one transport. Work that ranks do together has a number, the same on every rank, so that an alarm that
/// comes late stops nothing else. Only the thread that may call the transport may call these.
class Alarms {
public:
    explicit Alarms(Transport& transport) : transport_(transport) {}

    /// The next work begins; it has so many blocks, the same number on every rank. Every rank counts it.
    void begin(std::int64_t blocks = 1) {
        ++number_;
        blocks_ = blocks;
        block_ = 0;
        raised_ = false;
    }
    /// This rank begins a block of the work.
    void begin_block(std::int64_t block) { block_ = block; }
    /// Tells every other rank, once, that this one stops; `leaves`: that it sends and receives nothing more, either.
    /// @throws MpiError
    void raise(bool leaves = false);
    bool raised() const { return raised_; }
    /// Whether it is time for another look, which costs as much as a poll.
    bool due(double now_s) {
        if (now_s - looked_s_ < tuning::alarm_period_s) return false;
        looked_s_ = now_s;
        return true;
    }
    /// Whether another rank has stopped. In work of several blocks this rank then raises an alarm, too: the others wait
    /// for its block.
    /// @throws MpiError where one has left
    bool heard();
    /// After a block of work that is stopped: the last block that any rank has begun. All ranks must take part in the
    /// messages up to that one. Waits until every rank has reported its block; none begins another block before.
    /// @throws MpiError
    std::int64_t last_block();
    /// After work in which a rank has raised an alarm: receives the alarms still in flight. Collective.
    /// @throws MpiError
    void take_outstanding();

private:
    void take();
    const Alarm* of_this_work(int from) const;
    void must_not_have_ended(EndedLook& look, int rank);

    Transport& transport_;
    std::int64_t number_ = 0, blocks_ = 1, block_ = 0;
    bool raised_ = false;
    double looked_s_ = 0;
    int left_ = -1;                     // the rank that has left
    std::vector<Alarm> found_, heard_;  // heard_: of this work, and of one that has begun elsewhere only
};

}  // namespace tilewave
