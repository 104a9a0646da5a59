// Arrays of two dimensions as plain loops have them, and fields with the same values.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tilewave/tilewave.hpp"

namespace tilewave {

inline double start(std::int64_t i, std::int64_t j) {
    return static_cast<double>((7 * i + 13 * j) % 11) - 3.5;
}

struct Grid {
    std::int64_t rows, columns;
    std::vector<double> values;
    Grid(std::int64_t r, std::int64_t c) : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {
        for (std::int64_t i = 0; i < r; ++i)
            for (std::int64_t j = 0; j < c; ++j) (*this)(i, j) = start(i, j);
    }
    double& operator()(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
};

inline Field<double> field(Context& context, std::int64_t rows, std::int64_t columns) {
    return Field<double>(context, {rows, columns}, [](const Index& at) { return start(at[0], at[1]); });
}

inline void expect_equal(Context& context, Field<double>& found, const Grid& plain, const std::string& what) {
    const std::vector<double> whole = found.gather();
    if (context.rank() == 0) {
        EXPECT_EQ(whole, plain.values) << what;
    }
}

}  // namespace tilewave
