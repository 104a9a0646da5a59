// Matrices whose memory between and around the rows is looked after, values for them, and an order that shows.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tilewave/patterns.hpp"

namespace tilewave {

inline constexpr std::int64_t guard = -7777;

// Rows of int64 with gaps between them, which nobody may touch.
struct Guarded {
    std::vector<std::int64_t> memory;
    std::int64_t rows = 0, cols = 0, row = 0;

    Guarded(std::int64_t m, std::int64_t n, std::int64_t gap)
        : memory(static_cast<std::size_t>(m * (n + gap) + gap), guard), rows(m), cols(n), row(n + gap) {}
    std::int64_t& at(std::int64_t i, std::int64_t j) { return memory[static_cast<std::size_t>(i * row + j)]; }
    MatrixView view(std::int64_t first, std::int64_t count) {
        return {reinterpret_cast<std::byte*>(memory.data() + first), rows, count, row * 8, Dtype::i8};
    }
    MatrixView view() { return view(0, cols); }
    template <class F>
    void fill(F f) {
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < cols; ++j) at(i, j) = f(i, j);
    }
    template <class F>
    void expect(F f, const std::string& what) {
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < row; ++j)
                ASSERT_EQ(at(i, j), j < cols ? f(i, j) : guard) << what << ": row " << i << ", column " << j;
    }
};

// What rank r gives at (i, j): of a third of the points nothing (0).
inline std::int64_t value(int seed, int r, std::int64_t i, std::int64_t j) {
    const std::int64_t x = (seed * 31 + r * 17 + i * 7 + j * 3) % 101;
    return x % 3 ? 1000 * r + x : 0;
}

// Associative, not commutative: the leftmost that is not 0. Shows the order of a reduction.
inline UserReduction leftmost() {
    return {[](std::byte* into, const std::byte* left, const std::byte* right, std::int64_t n) {
                for (std::int64_t i = 0; i < 8 * n; i += 8) {
                    std::int64_t a, b;
                    std::memcpy(&a, left + i, 8);
                    std::memcpy(&b, right + i, 8);
                    const std::int64_t c = a ? a : b;
                    std::memcpy(into + i, &c, 8);
                }
                return true;
            },
            [] { return std::string(); }};
}

}  // namespace tilewave
