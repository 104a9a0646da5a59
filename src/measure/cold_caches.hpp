// Caches as they are in the midst of other work.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "measure/tuning.hpp"

namespace tilewave {

/// What the caches held is gone, as far as `bytes` that are used in between displace it.
inline void sweep_caches(std::int64_t bytes) {
    static thread_local std::vector<std::byte> memory;
    const auto size = static_cast<std::size_t>(std::min(bytes, tuning::most_caches_bytes));
    if (memory.size() < size) memory.resize(size);
    for (std::size_t at = 0; at < size; at += 64) memory[at] ^= std::byte{1};
}

}  // namespace tilewave
