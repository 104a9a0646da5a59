#include "polyhedral/rational.hpp"

#include <limits>
#include <utility>

namespace tilewave {

std::int64_t narrow(Wide value) {
    if (value < std::numeric_limits<std::int64_t>::min() || value > std::numeric_limits<std::int64_t>::max())
        throw ConfigError(
            "exact arithmetic on the given sizes or coefficients needs more than 64 bits; "
            "smaller ones are allowed");
    return static_cast<std::int64_t>(value);
}

Wide gcd(Wide a, Wide b) {
    if (a < 0) a = -a;
    if (b < 0) b = -b;
    while (b != 0) a = std::exchange(b, a % b);
    return a;
}

Rational Rational::of(Wide num, Wide den) {
    if (den == 0)
        throw ConfigError(
            "a fraction with denominator 0 was given or reached; "
            "any other denominator is allowed");
    if (den < 0) num = -num, den = -den;
    const Wide g = gcd(num, den);
    Rational r;
    r.num_ = narrow(num / g);
    r.den_ = narrow(den / g);
    return r;
}

std::string to_string(Rational value) {
    const std::string num = std::to_string(value.num());
    return value.is_integer() ? num : num + "/" + std::to_string(value.den());
}

RationalMatrix::RationalMatrix(const std::vector<std::vector<Rational>>& rows)
    : RationalMatrix(int(rows.size()), rows.empty() ? 0 : int(rows[0].size())) {
    for (int i = 0; i < rows_; ++i) {
        if (int(rows[i].size()) != cols_)
            throw ConfigError("row " + std::to_string(i) + " of a matrix has " + std::to_string(rows[i].size()) +
                              " entries and row 0 has " + std::to_string(cols_) + "; rows of equal length are allowed");
        for (int j = 0; j < cols_; ++j) (*this)(i, j) = rows[i][j];
    }
}

RationalMatrix RationalMatrix::identity(int n) {
    return diagonal(std::vector<Rational>(n, Rational(1)));
}

RationalMatrix RationalMatrix::diagonal(const std::vector<Rational>& entries) {
    RationalMatrix r(int(entries.size()), int(entries.size()));
    for (int i = 0; i < r.rows(); ++i) r(i, i) = entries[i];
    return r;
}

RationalMatrix operator*(const RationalMatrix& a, const RationalMatrix& b) {
    if (a.cols() != b.rows())
        throw ConfigError("a product of a matrix with " + std::to_string(a.cols()) + " columns and one with " +
                          std::to_string(b.rows()) + " rows was asked for; these must be equal");
    RationalMatrix r(a.rows(), b.cols());
    for (int i = 0; i < a.rows(); ++i)
        for (int j = 0; j < b.cols(); ++j)
            for (int k = 0; k < a.cols(); ++k) r(i, j) = r(i, j) + a(i, k) * b(k, j);
    return r;
}

namespace {

void require_square(const RationalMatrix& a) {
    if (a.rows() != a.cols() || a.rows() == 0)
        throw ConfigError("a " + std::to_string(a.rows()) + " x " + std::to_string(a.cols()) +
                          " matrix was given; a square one is allowed");
}

/// Gauss–Jordan: turns `a` into the identity and `b` into a^-1 b.
/// @returns det(a); if it is 0, both matrices are left half done
Rational reduce(RationalMatrix& a, RationalMatrix& b) {
    Rational determinant = 1;
    for (int k = 0; k < a.rows(); ++k) {
        int pivot = k;
        while (pivot < a.rows() && a(pivot, k) == 0) ++pivot;
        if (pivot == a.rows()) return 0;
        if (pivot != k) determinant = -determinant;
        for (int j = 0; j < a.cols(); ++j) std::swap(a(k, j), a(pivot, j));
        for (int j = 0; j < b.cols(); ++j) std::swap(b(k, j), b(pivot, j));
        const Rational scale = a(k, k);
        determinant = determinant * scale;
        for (int j = 0; j < a.cols(); ++j) a(k, j) = a(k, j) / scale;
        for (int j = 0; j < b.cols(); ++j) b(k, j) = b(k, j) / scale;
        for (int i = 0; i < a.rows(); ++i) {
            const Rational f = a(i, k);
            if (i == k || f == 0) continue;
            for (int j = 0; j < a.cols(); ++j) a(i, j) = a(i, j) - f * a(k, j);
            for (int j = 0; j < b.cols(); ++j) b(i, j) = b(i, j) - f * b(k, j);
        }
    }
    return determinant;
}

}  // namespace

Rational det(const RationalMatrix& a) {
    require_square(a);
    RationalMatrix work = a, none(a.rows(), 0);
    return reduce(work, none);
}

RationalMatrix inverse(const RationalMatrix& a) {
    require_square(a);
    RationalMatrix work = a, r = RationalMatrix::identity(a.rows());
    if (reduce(work, r) == 0)
        throw ConfigError("the matrix " + to_string(a) +
                          " was given, which is singular; one with an inverse is allowed");
    return r;
}

std::string to_string(const RationalMatrix& a) {
    std::string s = "[";
    for (int i = 0; i < a.rows(); ++i) {
        s += i ? ", [" : "[";
        for (int j = 0; j < a.cols(); ++j) s += (j ? ", " : "") + to_string(a(i, j));
        s += "]";
    }
    return s + "]";
}

}  // namespace tilewave
