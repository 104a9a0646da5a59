// Rates that all ranks have measured at once: those of the rank that took longest, as the others wait for it.
#pragma once
#include <cstdint>
#include <vector>

#include "tilewave/engine/transport.hpp"

namespace tilewave {

/// One rank's numbers, or those of the slowest of several.
struct SlowestNumbers {
    std::int64_t ranks = 0;             ///< that have measured something
    bool failed = false;                ///< on some rank
    std::vector<std::int64_t> numbers;  ///< of the rank with the largest last number, of equals the first
};

/// By body, equal on all ranks. `numbers`: this rank's, `each` of them a body; the first one is `nothing` where the
/// rank has nothing to measure, and one below 0 means that measuring failed. Collective; O(log ranks) messages of
/// O(bodies) bytes.
std::vector<SlowestNumbers> slowest(Transport& transport, const std::vector<std::int64_t>& numbers, std::size_t each,
                                    std::int64_t nothing);

}  // namespace tilewave
