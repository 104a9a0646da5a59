// How a run ended, on which all ranks agree.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <system_error>

#include "execute/alarms.hpp"
#include "execute/executor.hpp"
#include "tilewave/transport.hpp"

namespace tilewave {

/// Calls what gets a part of a run's memory or threads. What this rank lacks is noted: the other parts move fields
/// together with the other ranks, and these may compute already.
class Lacking {
public:
    explicit Lacking(std::exception_ptr& first) : first_(first) {}
    template <class Get>
    void operator()(Get get) const {
        try {
            get();
        } catch (const std::bad_alloc&) {
            note();
        } catch (const std::system_error&) {
            note();
        }
    }

private:
    void note() const {
        if (!first_) first_ = std::current_exception();
    }
    std::exception_ptr& first_;
};

/// Seconds of a call on this rank: of moving arrays, and all.
struct CallTimes {
    double moving_s = 0, call_s = 0;
};

/// How a run ended on all ranks; seconds of the slowest rank.
struct RunEnding {
    bool interrupted = false;
    double time_s = 0, moving_s = 0, call_s = 0;
};

/// Agrees with all ranks on how a run ended; collective, two small allreduces. `explain` makes the text of this rank's
/// kernel failure.
/// @throws the error of the lowest rank that failed in the first block of steps in which any did, on every rank
RunEnding agree_on_end(Transport& t, Alarms& alarms, const Outcome& o, std::int64_t failed_block, const CallTimes& call,
                       const std::function<std::string(const Failure&)>& explain,
                       const std::function<bool(double)>& heartbeat);

}  // namespace tilewave
