// Exact fractions and small dense matrices of them, for tiling matrices.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewave/error.hpp"

namespace tilewave {

/// Holds any sum of two products of int64, so one check at the end of an expression is enough.
__extension__ using Wide = __int128;

/// `value` as an int64.
/// @throws ConfigError if it does not fit: the sizes or coefficients given are too large
std::int64_t narrow(Wide value);
Wide gcd(Wide a, Wide b);
/// floor(a / b).
/// @pre b > 0 (not checked)
constexpr Wide floor_div(Wide a, Wide b) {
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// A fraction in lowest terms with a positive denominator. Arithmetic is exact; a result
/// that needs more than 64 bits is a ConfigError, never a wrong number.
class Rational {
public:
    Rational(std::int64_t value = 0) : num_(value) {}  // NOLINT: integers are fractions
    /// @pre den != 0 (ConfigError)
    Rational(std::int64_t num, std::int64_t den) : Rational(of(num, den)) {}

    std::int64_t num() const { return num_; }
    std::int64_t den() const { return den_; }
    std::int64_t floor() const { return narrow(floor_div(Wide(num_), Wide(den_))); }
    bool is_integer() const { return den_ == 1; }

    friend Rational operator+(Rational a, Rational b) {
        return of(Wide(a.num_) * b.den_ + Wide(b.num_) * a.den_, Wide(a.den_) * b.den_);
    }
    friend Rational operator-(Rational a, Rational b) {
        return of(Wide(a.num_) * b.den_ - Wide(b.num_) * a.den_, Wide(a.den_) * b.den_);
    }
    friend Rational operator*(Rational a, Rational b) { return of(Wide(a.num_) * b.num_, Wide(a.den_) * b.den_); }
    /// @pre b != 0 (ConfigError)
    friend Rational operator/(Rational a, Rational b) { return of(Wide(a.num_) * b.den_, Wide(a.den_) * b.num_); }
    friend Rational operator-(Rational a) { return of(-Wide(a.num_), a.den_); }
    friend bool operator==(Rational a, Rational b) = default;
    friend std::strong_ordering operator<=>(Rational a, Rational b) {
        return Wide(a.num_) * b.den_ <=> Wide(b.num_) * a.den_;
    }

private:
    static Rational of(Wide num, Wide den);

    std::int64_t num_ = 0;
    std::int64_t den_ = 1;
};

/// "3" or "-1/2".
std::string to_string(Rational value);

/// Rows of equal length, of integers: dependence matrices (a column is one vector).
using IntMatrix = std::vector<std::vector<std::int64_t>>;

/// A dense matrix of fractions, row by row.
class RationalMatrix {
public:
    RationalMatrix() = default;
    RationalMatrix(int rows, int cols) : rows_(rows), cols_(cols), v_(std::size_t(rows) * cols) {}
    /// @pre all rows have the same length (ConfigError)
    explicit RationalMatrix(const std::vector<std::vector<Rational>>& rows);

    static RationalMatrix identity(int n);
    static RationalMatrix diagonal(const std::vector<Rational>& entries);

    int rows() const { return rows_; }
    int cols() const { return cols_; }
    Rational& operator()(int i, int j) { return v_[std::size_t(i) * cols_ + j]; }
    Rational operator()(int i, int j) const { return v_[std::size_t(i) * cols_ + j]; }
    friend bool operator==(const RationalMatrix&, const RationalMatrix&) = default;

private:
    int rows_ = 0, cols_ = 0;
    std::vector<Rational> v_;
};

/// @pre a.cols() == b.rows() (ConfigError)
RationalMatrix operator*(const RationalMatrix& a, const RationalMatrix& b);
/// @pre a is square (ConfigError)
Rational det(const RationalMatrix& a);
/// @pre a is square (ConfigError)
/// @pre det(a) != 0 (ConfigError)
RationalMatrix inverse(const RationalMatrix& a);
/// "[[1, -2], [0, 2]]".
std::string to_string(const RationalMatrix& a);

}  // namespace tilewave
