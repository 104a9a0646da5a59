// Sequences kept as runs, against plain vectors.
#include "tilewave/engine/runs.hpp"

#include <gtest/gtest.h>

#include "support/dice.hpp"

namespace tilewave {
namespace {

// Of equal numbers, of ones that grow by one, and of neither.
template <class T>
void compare(std::uint64_t seed, T scale) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    Runs<T> runs;
    std::vector<T> plain;
    while (plain.size() < 60) {
        const auto value = static_cast<T>(dice(0, 5)) * scale;
        const std::int64_t kind = dice(0, 2), n = dice(0, 6);
        if (kind == 0) {
            runs.append(value, static_cast<std::size_t>(n));
            plain.insert(plain.end(), static_cast<std::size_t>(n), value);
        }
        for (std::int64_t i = 0; kind > 0 && i < n; ++i) {
            plain.push_back(kind == 1 ? value + static_cast<T>(i) : static_cast<T>(dice(0, 3)) * scale);
            runs.push_back(plain.back());
        }
    }
    EXPECT_EQ(runs.values(), plain);
    EXPECT_EQ(runs.size(), plain.size());
    EXPECT_EQ(Runs<T>(plain).values(), plain);
    if constexpr (std::integral<T>)
        for (const T value : plain)
            EXPECT_EQ(runs.count(value), static_cast<std::size_t>(std::count(plain.begin(), plain.end(), value)));
}

}  // namespace

TEST(Runs, HaveTheValuesOfAVector) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        compare<std::int32_t>(seed, 1);
        compare<double>(seed, 0.3);
    }
}

}  // namespace tilewave
