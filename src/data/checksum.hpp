// A number that stands for memory, so that ranks can compare what they were given.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tilewave {

/// The same on every rank for the same bytes; other bytes give another one but for one case in 2^64. Reads at the
/// memory's rate.
std::uint64_t checksum(const std::byte* data, std::int64_t bytes, std::uint64_t begin = 0);
/// CRC-32C (Castagnoli), as files of other programs have it; about 0.4 GB/s.
std::uint32_t crc32c(const std::byte* data, std::int64_t bytes);

}  // namespace tilewave
