// Rates of bodies on disk, so that a program that runs again need not measure again.
#pragma once
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/tuning.hpp"
#include "plan/nests/planner.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

/// The rates on disk of a context's launch; rank 0's files count. State of a context.
class RateStore {
public:
    /// Equal for launches whose rates are equal; empty: nothing is read or stored. The same on all ranks.
    std::optional<std::string> launch = {};
    /// Rates are not stored where threads of rank 0 have waited for a CPU for a larger part of the time of its lanes.
    double most_queued = tuning::most_queued;
    /// The date, in seconds.
    std::function<std::time_t()> date = [] { return std::time(nullptr); };

    /// What rank 0 has stored for a key, nothing where that is none or the key is empty; the same on all ranks.
    /// Collective.
    std::vector<MeasuredRate> read(Context& context, const std::string& key);
    /// What is stored is measured from now on.
    void begin();
    /// Stores what `lanes` lanes have measured since begin(), unless other programs had the CPUs meanwhile. On rank 0.
    void store(const std::string& key, const std::vector<MeasuredRate>& rates, int lanes);

private:
    std::string data_of(const std::string& key) const;
    double begin_s_ = 0, queued_s_ = 0;  // when begin() was called
};

/// RateStore::launch of a C++ program: hosts, CPUs and threads. Empty where other ranks are not here. Collective.
std::string launch_text(Context& context);

/// Seconds that threads of this process were ready to run and another program had the CPU; 0 where Linux does not say.
double queued_s();

}  // namespace tilewave
