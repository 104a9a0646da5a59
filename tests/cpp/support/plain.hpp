// Arrays of any dimensions as plain loops have them, fields with the same values, and plain loops.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tilewave/tilewave.hpp"

namespace tilewave {

using Integer = std::int64_t;

inline Integer beginning(const Index& at) {
    Integer sum = 3;
    for (int k = 0; k < at.n; ++k) sum = (5 * sum + 3 * at[k]) % 17;
    return sum - 8;
}

// An array as plain loops have it, and a field with the same values.
template <class T>
struct Plain {
    Index shape;
    std::vector<T> values;
    explicit Plain(Index extents) : shape(extents) {
        Index at = Index::filled(shape.n, 0);
        do values.push_back(static_cast<T>(beginning(at)));
        while (next_point(at, {Index::filled(shape.n, 0), shape}));
    }
    T& operator[](const Index& at) {
        std::int64_t offset = 0;
        for (int k = 0; k < at.n; ++k) offset = offset * shape[k] + at[k];
        return values[static_cast<std::size_t>(offset)];
    }
    Field<T> field(Context& context) const {
        return Field<T>(context, shape, [](const Index& at) { return static_cast<T>(beginning(at)); });
    }
};
template <class T>
void expect_equal(Field<T>& found, const Plain<T>& plain, const char* what) {
    const std::vector<T> whole = found.gather();
    if (found.storage().context().rank() == 0) {
        EXPECT_EQ(whole, plain.values) << what;
    }
}

// Plain loops over a box, of which some run downwards, at every so many-th index.
template <class F>
void in_loops(const Box& over, const Index& strides, const std::vector<int>& reverse, F f) {
    Index counts = strides;
    for (int k = 0; k < counts.n; ++k) counts[k] = ceil_div(over.extent(k), strides[k]);
    if (Box all{Index::filled(counts.n, 0), counts}; !all.empty())
        for (Index n = all.lo, go{1}; go[0]; go[0] = next_point(n, all)) {
            Index x = n;
            for (int k = 0; k < x.n; ++k)
                x[k] = over.lo[k] +
                       strides[k] * (std::ranges::find(reverse, k) == reverse.end() ? n[k] : counts[k] - 1 - n[k]);
            f(x);
        }
}

}  // namespace tilewave
