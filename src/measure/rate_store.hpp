// Rates of bodies on disk, so that a program that runs again need not measure again.
#pragma once
#include <ctime>
#include <functional>
#include <optional>
#include <string>

#include "measure/nest_rates.hpp"
#include "tilewave/context.hpp"

namespace tilewave {

/// The rates on disk of a context's launch; rank 0's files count. State of a context.
class RateStore {
public:
    /// Equal for launches whose rates are equal; empty: nothing is read or stored. The same on all ranks.
    std::optional<std::string> launch = {};
    /// A stored rate is measured once more where its spread is larger.
    double renewed_spread = tuning::renewed_spread;
    /// The date, in seconds.
    std::function<std::time_t()> date = [] { return std::time(nullptr); };

    /// What rank 0 has stored for a key, nothing where that is none or the key is empty; the same on all ranks.
    /// Collective.
    BodyRates read(Context& context, const std::string& key);
    /// Stores it, unless a rate is the machine's number for any body. On rank 0.
    void store(const std::string& key, const BodyRates& body);

private:
    std::string data_of(const std::string& key) const;
};

/// Whether a rate was read from disk.
bool is_stored(const MeasuredRate& rate);

/// RateStore::launch of a C++ program: hosts, CPUs and threads. Empty where other ranks are not here. Collective.
std::string launch_text(Context& context);

}  // namespace tilewave
