// Index points and boxes of global index space, as plain values without allocation.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tilewave/engine/limits.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

[[noreturn]] void refuse_components(std::size_t given);

/// A point, an offset or an extent: `n` int64 components, n <= max_dims.
/// @pre at most max_dims components (ConfigError)
struct Index {
    std::array<std::int64_t, max_dims> v{};
    int n = 0;

    Index() = default;
    Index(std::initializer_list<std::int64_t> list) : Index(std::span(list.begin(), list.size())) {}
    explicit Index(std::span<const std::int64_t> values) : n(static_cast<int>(values.size())) {
        if (values.size() > max_dims)
            throw ConfigError("an index of " + std::to_string(values.size()) + " components was given; 1 to " +
                              std::to_string(max_dims) + " are allowed");
        for (int k = 0; k < n; ++k) v[k] = values[k];
    }
    /// n components of equal value.
    static Index filled(int n, std::int64_t value) {
        Index r;
        r.n = n;
        for (int k = 0; k < n; ++k) r.v[k] = value;
        return r;
    }
    /// n components, 1 at k and else 0.
    static Index unit(int n, int k) {
        Index r = filled(n, 0);
        r.v[k] = 1;
        return r;
    }
    std::int64_t& operator[](int k) { return v[k]; }
    std::int64_t operator[](int k) const { return v[k]; }
    const std::int64_t* begin() const { return v.data(); }
    const std::int64_t* end() const { return v.data() + n; }
    std::span<const std::int64_t> span() const { return {v.data(), static_cast<std::size_t>(n)}; }
    friend bool operator==(const Index&, const Index&) = default;
};

inline Index operator+(Index a, const Index& b) {
    for (int k = 0; k < a.n; ++k) a.v[k] += b.v[k];
    return a;
}
inline Index operator-(Index a, const Index& b) {
    for (int k = 0; k < a.n; ++k) a.v[k] -= b.v[k];
    return a;
}
/// "(1, 2, 3)".
std::string to_string(const Index& index);

/// The points lo <= j < hi, componentwise.
struct Box {
    Index lo, hi;

    int dims() const { return lo.n; }
    std::int64_t extent(int k) const { return hi[k] > lo[k] ? hi[k] - lo[k] : 0; }
    std::int64_t points() const;
    bool empty() const { return points() == 0; }
    bool contains(const Index& j) const;
    bool contains(const Box& other) const;
    Box shifted(const Index& by) const { return {lo + by, hi + by}; }
    /// The box that has [from, to) along dimension k.
    Box with(int k, std::int64_t from, std::int64_t to) const {
        Box other = *this;
        other.lo[k] = from;
        other.hi[k] = to;
        return other;
    }
    friend bool operator==(const Box&, const Box&) = default;
};

/// Moves `at` to the next point of `box` in row-major order; dimensions whose bit is set in `fixed` stay. False after
/// the last point: `at` is then the first again.
inline bool next_point(Index& at, const Box& box, unsigned fixed = 0) {
    for (int k = at.n - 1; k >= 0; --k) {
        if (fixed >> k & 1u) continue;
        if (++at.v[k] < box.hi.v[k]) return true;
        at.v[k] = box.lo.v[k];
    }
    return false;
}

/// The common points; empty boxes may have hi < lo.
Box intersect(const Box& a, const Box& b);
/// The least box that holds both; an empty operand does not count.
Box hull(const Box& a, const Box& b);
/// a without b, as disjoint boxes (at most 2n), none of them empty.
std::vector<Box> subtract(const Box& a, const Box& b);
/// "[0:4, 2:8]".
std::string to_string(const Box& box);

/// A square matrix of integers, row by row: a change of loop coordinates, z = M x.
struct IndexMatrix {
    std::array<Index, max_dims> row{};
    int n = 0;

    IndexMatrix() = default;
    /// @pre as many rows as columns, 1 to max_dims (ConfigError)
    explicit IndexMatrix(const std::vector<Index>& rows);
    static IndexMatrix identity(int n);

    bool is_identity() const { return *this == identity(n); }
    /// Row k is a unit vector or minus one: coordinate k is one loop index, perhaps downwards.
    bool keeps(int k) const;
    friend bool operator==(const IndexMatrix&, const IndexMatrix&) = default;
};
Index operator*(const IndexMatrix& m, const Index& x);
IndexMatrix operator*(const IndexMatrix& a, const IndexMatrix& b);
/// x M: what coefficients of z become on x for z = M x.
Index operator*(const Index& coefficients, const IndexMatrix& m);
/// @pre the determinant is 1 or -1 (ConfigError)
IndexMatrix inverse(const IndexMatrix& m);
/// The least box that holds M x for every x of a box.
Box image(const IndexMatrix& m, const Box& box);

/// Whether the first component that is not zero is positive.
bool lexicographically_positive(const Index& d);

/// floor(a / b) for b > 0.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    return a / b - (a % b < 0);
}
/// ceil(a / b) for b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return a / b + (a % b > 0);
}
/// a - b floor(a / b) for b > 0.
constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
    return a - b * floor_div(a, b);
}

}  // namespace tilewave
