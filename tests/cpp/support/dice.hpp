// Random numbers from a seed that a test prints.
#pragma once
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace tilewave {

struct Dice {
    std::mt19937_64 engine;
    explicit Dice(std::uint64_t seed) : engine(seed) {}
    std::int64_t operator()(std::int64_t least, std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>(least, most)(engine);
    }
    std::vector<std::byte> bytes(std::int64_t n) {
        std::vector<std::byte> all(static_cast<std::size_t>(n) + 7);
        for (std::int64_t at = 0; at < n; at += 8) {
            const std::uint64_t word = engine();
            std::memcpy(all.data() + at, &word, 8);
        }
        all.resize(static_cast<std::size_t>(n));
        return all;
    }
};

}  // namespace tilewave
