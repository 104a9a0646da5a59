// A number that stands for memory, so that ranks can compare what they were given.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave {

/// The same on every rank for the same bytes; other bytes give another one but for one case in 2^64. Reads at the
/// memory's rate.
std::uint64_t checksum(const std::byte* data, std::int64_t bytes, std::uint64_t begin = 0);

}  // namespace tilewave
