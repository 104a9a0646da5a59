#include "data/checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace tilewave {

namespace {

constexpr std::uint64_t prime = 0x9e3779b185ebca87u, other_prime = 0xc2b2ae3d27d4eb4fu;  // as xxHash has them

std::uint64_t mixed(std::uint64_t h, std::uint64_t word) {
    return std::rotl(h + word * other_prime, 31) * prime;
}

}  // namespace

// Four independent sums: none waits for another one's multiplications.
std::uint64_t checksum(const std::byte* data, std::int64_t bytes, std::uint64_t begin) {
    std::uint64_t h[4] = {begin + prime, begin ^ other_prime, begin + 2, begin + 3};
    std::int64_t at = 0;
    for (; at + 32 <= bytes; at += 32) {
        std::uint64_t words[4];
        std::memcpy(words, data + at, sizeof words);
        for (int k = 0; k < 4; ++k) h[k] = mixed(h[k], words[k]);
    }
    std::uint64_t all = static_cast<std::uint64_t>(bytes);
    for (std::uint64_t one : h) all = mixed(all, one);
    for (; at < bytes; ++at) all = mixed(all, static_cast<std::uint64_t>(data[at]));
    all ^= all >> 33;
    all *= other_prime;
    return all ^ all >> 29;
}

std::uint32_t crc32c(const std::byte* data, std::int64_t bytes) {
    static constexpr auto table = [] {
        std::array<std::uint32_t, 256> of_byte{};
        for (std::uint32_t n = 0; n < 256; ++n) {
            std::uint32_t crc = n;
            for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
            of_byte[n] = crc;
        }
        return of_byte;
    }();
    std::uint32_t crc = ~0u;
    for (std::int64_t at = 0; at < bytes; ++at)
        crc = crc >> 8 ^ table[(crc ^ static_cast<std::uint32_t>(data[at])) & 0xff];
    return ~crc;
}

}  // namespace tilewave
